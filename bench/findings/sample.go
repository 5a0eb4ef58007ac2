package findings

import (
	"math"
	"math/rand/v2"
)

// ranks are the quantiles of a window, by nearest rank.
var ranks = [...]float64{0, .5, .9, .99}

// orderStatistics draws the uniform variates whose ranks among n are those of the quantiles, with their exact joint
// law. Each is a beta variate above the one before.
func orderStatistics(r *rand.Rand, n int) (u [len(ranks)]float64) {
	before, at := 0, 0.0
	for i, q := range ranks {
		k := max(int(math.Ceil(q*float64(n)-1e-9)), 1)
		if k > before {
			a := gamma(r, float64(k-before))
			at += (1 - at) * a / (a + gamma(r, float64(n-k+1)))
		}
		u[i], before = min(max(at, 1e-12), 1-1e-12), k
	}
	return u
}

// gamma draws from the gamma distribution of a shape of at least 1, by the method of Marsaglia and Tsang.
func gamma(r *rand.Rand, shape float64) float64 {
	d := shape - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		if u := r.Float64(); u < 1-.0331*x*x*x*x || math.Log(u) < .5*x*x+d*(1-v+math.Log(v)) {
			return d * v
		}
	}
}

// A law returns a value by its probability, around 1.
type law func(u float64) float64

func logNormal(sigma float64) law {
	return func(u float64) float64 { return math.Exp(-sigma * math.Sqrt2 * math.Erfcinv(2*u)) }
}

func exponential(u float64) float64 { return .05 - math.Log1p(-u) }

func pareto(u float64) float64 { return .5 / math.Sqrt(1-u) }

func bimodal(u float64) float64 {
	if u < .97 {
		return .5 + .1*u
	}
	return 5 + .1*u
}

// packets is the law of a queue that most packets find empty. A share of the packets find an exponential number of
// packets of a size before them.
func packets(busy, mean, size float64) law {
	return func(u float64) float64 {
		if u < 1-busy {
			return 0
		}
		return size * math.Ceil(-mean*math.Log((1-u)/busy))
	}
}
