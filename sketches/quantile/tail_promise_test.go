package quantile

import (
	"math"
	"math/rand/v2"
	"testing"
)

// alarm returns how many of n trials may fail if each does with probability p. More are seen by chance less often than
// once in two million times.
func alarm(n int, p float64) int {
	tail, term := 1.0, math.Pow(1-p, float64(n)) // the probability of k and more, and that of k
	for k := 0; ; k++ {
		if tail < .5e-6 {
			return k - 1
		}
		tail -= term
		term *= float64(n-k) / float64(k+1) * p / (1 - p)
	}
}

// TestTailPromise holds the promise of the package for flows of 10³ to 10⁶ values. Of 20 flows at most one is off by more
// than 10 % at the 0.99-quantile. If that is so, the test fails less often than once in a million times, whatever the
// seeds.
func TestTailPromise(t *testing.T) {
	const trials = 60
	most := alarm(trials, .05)
	if most < 11 || most > 15 {
		t.Fatalf("of %d trials %d may fail, which is computed wrongly", trials, most)
	}
	for _, d := range distributions[:2] {
		bad, worst := 0, 0.0
		for run := range trials {
			g := rand.New(rand.NewPCG(uint64(run), 31))
			r := Rand(g.Uint64())
			n := int(1000 * math.Exp(g.Float64()*math.Log(1000)))
			values, codes := make([]uint64, n), make([]uint16, n)
			for i := range values {
				values[i] = uint64(max(d.draw(g), 1))
				codes[i] = Encode(values[i])
			}
			var s Tail
			[]way{inBatches, oneByOne}[run%2](&s, codes, &r)
			// The true quantile is one of the values. It is below 1/1.1 of the answer if enough values are, and so on.
			got, rank := float64(s.Quantile(.99)), int(math.Ceil(.99*float64(n)))
			within := func(off float64) bool {
				below, upTo := 0, 0
				for _, v := range values {
					if float64(v)*(1+off) < got {
						below++
					}
					if float64(v)*(1-off) <= got {
						upTo++
					}
				}
				return below < rank && upTo >= rank
			}
			if !within(.1) {
				bad++
			}
			for !within(worst) {
				worst += .01
			}
		}
		t.Logf("%s: %d of %d flows are off by more than 10 %%, the worst by %.0f %%", d.name, bad, trials, 100*worst)
		if bad > most {
			t.Errorf("%s: %d of %d flows are off by more than 10 %% at the 0.99-quantile; %d would be chance", d.name, bad, trials, most)
		}
	}
}
