package kll

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/sketches/exact"
)

// worst is the largest error over all ranks: between the share of values and the estimated share that is not larger
// than v, for every v. items and weights are those of the sketch, in order.
func worst[T Number](values *exact.Values[T], items []T, weights []uint64) float64 {
	var total uint64
	for _, w := range weights {
		total += w
	}
	n, t, err := float64(values.Count()), float64(total), 0.0
	var below uint64
	for i := 0; i < len(items); {
		v := items[i]
		less, notMore := values.Ranks(v)
		err = max(err, math.Abs(float64(below)/t-float64(less)/n))
		for ; i < len(items) && items[i] == v; i++ {
			below += weights[i]
		}
		err = max(err, math.Abs(float64(below)/t-float64(notMore)/n))
	}
	return err
}

func contents[T Number](s *Sketch[T]) (items []T, weights []uint64) {
	for c := newCursor(s); ; {
		v, w := c.next()
		if w == 0 {
			return items, weights
		}
		items, weights = append(items, v), append(weights, w)
	}
}

func (t *Tiny) contents() (items []uint16, weights []uint64) {
	var sorted [tinyItems]uint32
	n, _ := t.sort(&sorted)
	for _, c := range sorted[:n] {
		items, weights = append(items, uint16(c>>8)), append(weights, 1<<(c&0xff))
	}
	return items, weights
}

// allowed is the number of violations, each of probability at most p, that n trials reach with probability below
// 1e-6 (sum of the binomial tail).
func allowed(n int, p float64) int {
	tail := 0.0
	for k := n; k >= 0; k-- {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		if tail += math.Exp(a - b - c + float64(k)*math.Log(p) + float64(n-k)*math.Log(1-p)); tail >= 1e-6 {
			return k + 1
		}
	}
	return 0
}

func TestAllowed(t *testing.T) {
	// P(Binomial(200, 0.01) ≥ 13) = 4.6e-7, ≥ 12 = 2.8e-6.
	if got := allowed(200, 0.01); got != 13 {
		t.Errorf("allowed(200, 0.01) = %d, want 13", got)
	}
}

// streams are orders and distributions that sketches have been known to get wrong.
var streams = []struct {
	name  string
	value func(i, n int) uint32 // ascending in i
	order func(v []uint32, r *rand.Rand)
}{
	{"shuffled", identity, shuffle},
	{"ascending", identity, func([]uint32, *rand.Rand) {}},
	{"descending", identity, func(v []uint32, _ *rand.Rand) { slices.Reverse(v) }},
	{"few values", func(i, n int) uint32 { return uint32(i * 20 / n) }, shuffle},
	{"long tail", func(i, n int) uint32 { return uint32(float64(n) / float64(n-i)) }, shuffle},
	{"inwards", identity, func(v []uint32, _ *rand.Rand) { // smallest, largest, second, ...
		u := slices.Clone(v)
		for i := range v {
			if v[i] = u[i/2]; i%2 == 1 {
				v[i] = u[len(u)-1-i/2]
			}
		}
	}},
	{"blocks", identity, func(v []uint32, r *rand.Rand) { // a value range after the other, each shuffled
		for c := range slices.Chunk(v, 1+len(v)/7) {
			shuffle(c, r)
		}
	}},
}

func identity(i, _ int) uint32 { return uint32(i) }

func shuffle(v []uint32, r *rand.Rand) {
	r.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
}

// The bound, for a length at which the error is largest: just after the heaviest level was halved.
func TestErrorBound(t *testing.T) {
	const trials = 150
	for _, k := range []int{8, 25, 100, 200} {
		for _, st := range streams {
			t.Run(fmt.Sprintf("k=%d/%s", k, st.name), func(t *testing.T) {
				t.Parallel()
				n := worstLength(k)
				if testing.Short() {
					n /= 16
				}
				var values exact.Values[uint32]
				for i := range n {
					values.Update(st.value(i, n))
				}
				values.Sorted()
				v := make([]uint32, n)
				bad, sum := 0, 0.0
				for seed := range uint64(trials) {
					r := rand.New(rand.NewPCG(seed, uint64(k)))
					copy(v, values.Sorted())
					st.order(v, r)
					s := New[uint32](k, seed)
					for _, x := range v {
						s.Update(x)
					}
					items, weights := contents(s)
					err := worst(&values, items, weights)
					if sum += err; err > ErrorBound(k) {
						bad++
					}
				}
				t.Logf("%d of %d streams of %d values exceed %.4f, mean error %.4f", bad, trials, n, ErrorBound(k), sum/trials)
				if bad >= allowed(trials, 0.01) {
					t.Errorf("%d of %d streams of %d values exceed %.4f, mean error %.4f; want below %d", bad, trials, n, ErrorBound(k), sum/trials, allowed(trials, 0.01))
				}
			})
		}
	}
}

// worstLength is where a sketch of shuffled values has just got its ninth level.
func worstLength(k int) int {
	s := New[uint32](k, 1)
	for r := rand.New(rand.NewPCG(1, 1)); s.base == 0 && s.top < 8; {
		s.Update(r.Uint32())
	}
	return int(s.count) + 2*k
}

// Merges in any shape keep the bound: many small ones, equal halves, different bases.
func TestErrorBoundAfterMerge(t *testing.T) {
	const trials, n = 150, 40_000
	for _, k := range []int{8, 25, 200} {
		for _, parts := range []int{2, 7, 500} {
			t.Run(fmt.Sprintf("k=%d/parts=%d", k, parts), func(t *testing.T) {
				t.Parallel()
				var values exact.Values[uint32]
				for i := range n {
					values.Update(uint32(i))
				}
				values.Sorted()
				bad, sum := 0, 0.0
				for seed := range uint64(trials) {
					r := rand.New(rand.NewPCG(seed, uint64(parts)))
					s := make([]*Sketch[uint32], parts)
					for i := range s {
						s[i] = New[uint32](k, r.Uint64())
					}
					for _, x := range r.Perm(n) {
						// Uneven parts: the first gets half of all values.
						i := max(r.IntN(2*parts)-parts, 0)
						s[i].Update(uint32(x))
					}
					for len(s) > 1 { // two at random
						i := r.IntN(len(s))
						a := s[i]
						s = slices.Delete(s, i, i+1)
						s[r.IntN(len(s))].Merge(a)
					}
					if s[0].Count() != n || s[0].Min() != 0 || s[0].Max() != n-1 {
						t.Fatalf("seed %d: Count, Min, Max = %d, %d, %d, want %d, 0, %d", seed, s[0].Count(), s[0].Min(), s[0].Max(), n, n-1)
					}
					items, weights := contents(s[0])
					err := worst(&values, items, weights)
					if sum += err; err > ErrorBound(k) {
						bad++
					}
				}
				if bad >= allowed(trials, 0.01) {
					t.Errorf("%d of %d exceed %.4f, mean error %.4f; want below %d", bad, trials, ErrorBound(k), sum/trials, allowed(trials, 0.01))
				}
			})
		}
	}
}
