package digests

import (
	"math"
	"testing"
)

// The bounds of PINT's appendix A.2.1 hold, each by exact probabilities and not by draws.

// atMost is the probability that of n flips with probability p at most k succeed.
func atMost(n, k int, p float64) (sum float64) {
	term := math.Exp(float64(n) * math.Log1p(-p))
	for i := 0; i <= min(k, n); i++ {
		sum += term
		term *= float64(n-i) / float64(i+1) * p / (1 - p)
	}
	return sum
}

// distinct is the probability that after n draws of r coupons at least want different ones were drawn.
func distinct(n, r, want int) (p float64) {
	have := make([]float64, r+1)
	have[0] = 1
	for range n {
		for k := r; k > 0; k-- {
			have[k] = have[k]*float64(k)/float64(r) + have[k-1]*float64(r-k+1)/float64(r)
		}
		have[0] = 0
	}
	for k := want; k <= r; k++ {
		p += have[k]
	}
	return p
}

func TestProofLemma1(t *testing.T) {
	for _, k := range []int{1, 5, 25, 100} {
		for _, p := range []float64{.02, .1, .36, .9} {
			for _, delta := range []float64{.5, .1, .01, 1e-6} {
				l := math.Log(1 / delta)
				n := int(math.Ceil((float64(k) + 2*l + math.Sqrt(2*float64(k)*l)) / p))
				if got := atMost(n, k, p); got > delta {
					t.Errorf("k = %d, p = %g: at most k successes of %d with %g, above %g", k, p, n, got, delta)
				}
			}
		}
	}
}

func TestProofTheorem2(t *testing.T) {
	for _, k := range []int{1, 2, 5, 25, 59} {
		for _, z := range []int{1, 2, 5, 20} {
			for _, delta := range []float64{.5, .1, .01, 1e-6} {
				a := float64(z-1) + math.Log(float64(k)/delta)
				n := int(math.Ceil(float64(k) * (a + math.Sqrt(a*a-float64(z-1)*float64(z-1)/4))))
				miss := 0.
				if k > 1 {
					miss = atMost(n, z-1, 1/float64(k))
				} else if n < z {
					miss = 1
				}
				if got := float64(k) * miss; got > delta { // by the union of the coupons, as in the proof
					t.Errorf("%d coupons, %d copies: missed after %d with %g, above %g", k, z, n, got, delta)
				}
			}
		}
	}
}

// Theorem 5 and, where all but a share ψ are wanted, lemma 6.
func TestProofTheorem5(t *testing.T) {
	for _, r := range []int{2, 5, 25, 59} {
		for want := 1; want < r; want++ {
			for _, delta := range []float64{.5, .1, .01, 1e-6} {
				l, mean := math.Log(1/delta), 0.
				for i := range want {
					mean += float64(r) / float64(r-i)
				}
				rest := float64(r - want)
				n := mean + float64(r)*l/rest + math.Sqrt(2*float64(r)*mean*l/rest)
				if got := distinct(int(math.Ceil(n)), r, want); 1-got > delta {
					t.Errorf("%d of %d coupons: missed after %.1f with %g, above %g", want, r, n, 1-got, delta)
				}
				psi := rest / float64(r)
				if psi > .5 {
					continue
				}
				k, log := float64(r), math.Log(1/psi)
				n = k*log + l/psi + math.Sqrt(2*k/psi*log*l)
				if got := distinct(int(math.Ceil(n)), r, want); 1-got > delta {
					t.Errorf("all but %.2f of %d coupons: missed after %.1f with %g, above %g", psi, r, n, 1-got, delta)
				}
			}
		}
	}
}
