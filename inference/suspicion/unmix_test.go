package suspicion

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomIncidence returns probes that cross links at random.
func randomIncidence(t *testing.T, r *rand.Rand, links, probes int, share float64) *Incidence {
	t.Helper()
	lists := make([][]int32, probes)
	for p := range lists {
		for l := range links {
			if r.Float64() < share {
				lists[p] = append(lists[p], int32(l))
			}
		}
	}
	in, err := NewIncidence(links, lists)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// objective is the function that the lasso minimises.
func objective(in *Incidence, list []excess, x []float64, z float64) (sum float64) {
	square := make([]float64, len(in.cross))
	for _, e := range list {
		r, w := e.Value, 1/(e.Error*e.Error)
		for _, c := range in.probeClasses[e.Probe] {
			r -= x[c]
			square[c] += w
		}
		sum += w * r * r / 2
	}
	for c, v := range x {
		sum += z * math.Sqrt(square[c]) * v
	}
	return sum
}

// solve returns the solution of a x = b by elimination, or nil if there is not one.
func solve(a [][]float64, b []float64) []float64 {
	n := len(b)
	for k := range n {
		top := k
		for i := k; i < n; i++ {
			if math.Abs(a[i][k]) > math.Abs(a[top][k]) {
				top = i
			}
		}
		if math.Abs(a[top][k]) < 1e-9 {
			return nil
		}
		a[k], a[top], b[k], b[top] = a[top], a[k], b[top], b[k]
		for i := range n {
			if i != k {
				f := a[i][k] / a[k][k]
				for j := k; j < n; j++ {
					a[i][j] -= f * a[k][j]
				}
				b[i] -= f * b[k]
			}
		}
	}
	for k := range n {
		b[k] /= a[k][k]
	}
	return b
}

// bruteForce tries all sets of classes, on each of which the least of the sum is a system of equations.
func bruteForce(in *Incidence, list []excess, z float64) float64 {
	n := len(in.cross)
	best := objective(in, list, make([]float64, n), z)
	for set := uint(1); set < 1<<n; set++ {
		var classes []int
		for c := range n {
			if set>>c&1 != 0 {
				classes = append(classes, c)
			}
		}
		a, b := make([][]float64, len(classes)), make([]float64, len(classes))
		for i, c := range classes {
			a[i] = make([]float64, len(classes))
			square := 0.0
			for _, e := range list {
				if !slices.Contains(in.probeClasses[e.Probe], int32(c)) {
					continue
				}
				w := 1 / (e.Error * e.Error)
				square += w
				b[i] += w * e.Value
				for j, d := range classes {
					if slices.Contains(in.probeClasses[e.Probe], int32(d)) {
						a[i][j] += w
					}
				}
			}
			b[i] -= z * math.Sqrt(square)
		}
		got := solve(a, b)
		if got == nil || slices.Min(got) < 0 {
			continue
		}
		x := make([]float64, n)
		for i, c := range classes {
			x[c] = got[i]
		}
		best = min(best, objective(in, list, x, z))
	}
	return best
}

// Coordinate descent reaches the least sum of all sets of links.
func TestLassoIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	sizes := map[int]int{}
	for range 400 {
		in := randomIncidence(t, r, 3+r.IntN(6), 2+r.IntN(9), .4)
		var list []excess
		for p := range in.probes {
			list = append(list, excess{Probe: int32(p), Value: 12 * r.NormFloat64(), Error: .5 + r.Float64()})
		}
		u := newUnmixer(in, list, 1e-3)
		if u == nil {
			continue
		}
		u.lasso()
		got, want := objective(in, list, u.x, u.z), bruteForce(in, list, u.z)
		if math.Abs(got-want) > 1e-6*max(1, want) {
			t.Fatalf("%v of %v: %v, least %v", list, in.probes, got, want)
		}
		set := 0
		for _, x := range u.x {
			if x > 0 {
				set++
			}
		}
		sizes[set]++
	}
	if len(sizes) < 4 {
		t.Errorf("sets of %v links: too much alike", sizes)
	}
}

// Links that add much more than chance are found by their values, and no others, if the probes distinguish them.
// Otherwise their class is found.
func TestUnmixFindsWhatWasMixed(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	alike, two := 0, 0
	for try := range 300 {
		in := randomIncidence(t, r, 30, 40, .15)
		var list []excess
		truth := map[int32]float64{}
		for range 1 + try%2 {
			if l := int32(r.IntN(30)); len(in.Alike(l)) > 0 {
				truth[in.class[l]] = 20 + 10*r.Float64()
			}
		}
		for p := range in.probes {
			e := excess{Probe: int32(p), Value: r.NormFloat64(), Error: 1}
			for c, v := range truth {
				if slices.Contains(in.probeClasses[p], c) {
					e.Value += v
				}
			}
			list = append(list, e)
		}
		got := unmix(in, list, 1e-7)
		if len(got) != len(truth) {
			t.Fatalf("try %d: %v, want %v", try, got, truth)
		}
		for _, s := range got {
			v, there := truth[in.class[s.Links[0]]]
			if !there || math.Abs(s.Value-v) > 6 || s.Confidence < .99 {
				t.Errorf("try %d: %+v, want %v", try, s, truth)
			}
			if !slices.Equal(s.Links, in.Alike(s.Links[0])) {
				t.Errorf("try %d: links %v of a class %v", try, s.Links, in.Alike(s.Links[0]))
			}
			if len(s.Links) > 1 {
				alike++
			}
		}
		two += len(got) / 2
	}
	if two < 100 {
		t.Errorf("two at once %d times", two)
	}
	in, err := NewIncidence(5, [][]int32{{0, 1, 2}, {1, 0, 3}, {3, 2}})
	if err != nil {
		t.Fatal(err)
	}
	got := unmix(in, []excess{{0, 50, 1}, {1, 51, 1}, {2, 0, 1}}, 1e-7)
	if len(got) != 1 || !slices.Equal(got[0].Links, []int32{0, 1}) {
		t.Errorf("%+v, want links 0 and 1, which the same probes cross", got)
	}
}

// A probe alone is less evidence for its link than two that meet in one.
func TestUnmixConfidence(t *testing.T) {
	in, err := NewIncidence(4, [][]int32{{0, 1}, {1, 2}, {3, 2}, {0, 3}, {0, 2}})
	if err != nil {
		t.Fatal(err)
	}
	sure := unmix(in, []excess{{0, 20, 1}, {1, 20, 1}, {2, 0, 1}, {3, 0, 1}, {4, 0, 1}}, 1e-6)
	doubt := unmix(in, []excess{{0, 20, 1}}, 1e-6)
	if len(sure) != 1 || sure[0].Links[0] != 1 || sure[0].Confidence < .99 {
		t.Errorf("two probes that meet in link 1: %+v", sure)
	}
	if len(doubt) != 1 || math.Abs(doubt[0].Confidence-.5) > 1e-6 {
		t.Errorf("one probe of two links: %+v", doubt)
	}
}

// Chance alone explains something as often as is accepted.
func TestUnmixFalseAlarms(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const n, alarm = 20_000, .01
	in := randomIncidence(t, r, 40, 60, .1)
	list := make([]excess, len(in.probes))
	found := 0
	for range n {
		for p := range list {
			sigma := 1 + float64(p%5)
			list[p] = excess{Probe: int32(p), Value: sigma * r.NormFloat64(), Error: sigma}
		}
		if len(unmix(in, list, alarm)) > 0 {
			found++
		}
	}
	if most := n*alarm + 5*math.Sqrt(n*alarm); float64(found) > most || found < n*alarm/5 {
		t.Errorf("%d of %d, at most %.0f and not far fewer", found, n, most)
	}
}

// Lists are taken as they come: any order, twice the same link; a link that does not exist is an error.
func TestIncidence(t *testing.T) {
	in, err := NewIncidence(6, [][]int32{{5, 0, 5, 1}, {1, 0}, {}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(in.Alike(0), []int32{0, 1}) || !slices.Equal(in.Alike(5), []int32{5}) || in.Alike(3) != nil {
		t.Errorf("alike %v %v %v", in.Alike(0), in.Alike(5), in.Alike(3))
	}
	for _, bad := range [][]int32{{6}, {-1}} {
		if _, err := NewIncidence(6, [][]int32{{0}, bad}); err == nil {
			t.Errorf("%v is no error", bad)
		}
	}
	if len(in.cross) != 2 {
		t.Errorf("%d classes, want 2", len(in.cross))
	}
}

// Values that are no numbers, and errors without a meaning, are left out.
func TestUnmixHostile(t *testing.T) {
	in := randomIncidence(t, rand.New(rand.NewPCG(1, 1)), 5, 5, .5)
	bad := []excess{{0, math.NaN(), 1}, {1, math.Inf(1), 1}, {2, 1, 0}, {3, 1, math.NaN()}, {-1, 9, 1}, {5, 9, 1}, {4, 9, math.Inf(1)}}
	if got := unmix(in, bad, 1e-7); got != nil {
		t.Errorf("%v", got)
	}
	if got := unmix(in, nil, 1e-7); got != nil {
		t.Errorf("%v of nothing", got)
	}
}
