package inference

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// The stated errors hold for at least nine of ten samples of lognormal and exponential values, however many there are.
// They are no more than four times the error that nine of ten samples have.
func TestQuantileErrors(t *testing.T) {
	testkit.Long(t)
	r := rand.New(rand.NewPCG(1, 10))
	for _, draw := range []struct {
		name     string
		value    func() float64
		p50, p99 float64
	}{
		{"lognormal", func() float64 { return 1e5 * math.Exp(.5*r.NormFloat64()) }, 1e5, 1e5 * math.Exp(.5*2.3263)},
		{"exponential", func() float64 { return 1e5 + 1e5*r.ExpFloat64() }, 1e5 + 1e5*math.Ln2, 1e5 + 1e5*math.Log(100)},
	} {
		for _, n := range []int{10, 30, 100, 300, 1000, 10000} {
			const trials = 1000
			held := [2]int{}
			var reported, seen [2][]float64
			for range trials {
				values := make([]float64, n)
				for i := range values {
					values[i] = draw.value()
				}
				slices.Sort(values)
				at := func(q float64) uint64 { return uint64(values[int(math.Ceil(q*float64(n)-1e-9))-1]) }
				s := Summary{Count: uint64(n), P50: at(.5), P90: at(.9), P99: at(.99), Max: uint64(values[n-1])}
				for k, x := range [2]struct{ v, truth, reported float64 }{{float64(s.P50), draw.p50, s.P50Error()}, {float64(s.P99), draw.p99, s.P99Error()}} {
					off := math.Abs(x.truth/x.v - 1)
					if off <= x.reported {
						held[k]++
					}
					reported[k], seen[k] = append(reported[k], x.reported), append(seen[k], off)
				}
			}
			for k, q := range [2]string{"p50", "p99"} {
				slices.Sort(reported[k])
				slices.Sort(seen[k])
				t.Logf("%s of %d %s: reported %.3f in the median, nine of ten within %.3f, held by %.3f", q, n, draw.name, reported[k][trials/2], seen[k][trials*9/10], float64(held[k])/trials)
				if k == 1 && n < 100 { // nothing is promised
					continue
				}
				if held[k] < trials*9/10 || reported[k][trials/2] > 4*seen[k][trials*9/10]+2*valueError {
					t.Errorf("%s of %d %s: reported %.3f, nine of ten within %.3f, held by %d of %d", q, n, draw.name, reported[k][trials/2], seen[k][trials*9/10], held[k], trials)
				}
			}
		}
	}
}

func TestNanosecondsWithin(t *testing.T) {
	for _, x := range []struct {
		ns, share float64
		want      string
	}{{163200, .28, "160µs ± 28 %"}, {163200, .02, "163µs ± 2 %"}, {163200, 2, "about 200µs"}, {163200, 0, "163µs"}, {163200, .0512, "160µs ± 5.1 %"}} {
		if got := NanosecondsWithin(x.ns, x.share); got != x.want {
			t.Errorf("%v, %v: %q, want %q", x.ns, x.share, got, x.want)
		}
	}
}
