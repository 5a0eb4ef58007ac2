package suspicion

import (
	"math"
	"slices"
)

// share is the part of the probes' excess that links explain.
type share struct {
	Links      []int32 // one, or several that the same probes cross and that cannot be distinguished
	Value      float64 // that they add to each of these probes, together
	Confidence float64 // that it is these
}

// excess is the excess of a probe over its usual time, with its error.
type excess struct {
	Probe int32
	Value float64
	Error float64 // standard deviation of Value where nothing happened, above 0
}

// unmix explains the excess of probes by as few links as possible. Each adds the same to every probe that crosses it,
// and nothing below 0. It is a non-negative lasso, Σ ½((y − Σ x)/σ)² + Σ λx over the links x, by coordinate descent. A
// link stays at 0 unless the probes that cross it exceed by z standard errors of their weighted mean, which is λ. The
// factor z is such that chance alone, with normal errors, explains anything by any link less than once in 1/alarm
// times. The chosen links are then fitted without λ, and links go that the others make needless.
//
// The confidence of a share is its likelihood among those of all links, the other shares given.
func unmix(in *Incidence, list []excess, alarm float64) []share {
	u := newUnmixer(in, list, alarm)
	if u == nil || !u.lasso() {
		return nil
	}
	return u.shares()
}

type unmixer struct {
	in      *Incidence
	rest    []float64 // by probe: the unexplained excess
	weight  []float64 // by probe
	classes []int32   // that are crossed
	square  []float64 // by class: sum of the weights of its probes
	x       []float64 // by class
	z       float64
}

func newUnmixer(in *Incidence, list []excess, alarm float64) *unmixer {
	u := &unmixer{
		in: in, rest: make([]float64, len(in.probes)), weight: make([]float64, len(in.probes)),
		square: make([]float64, len(in.cross)), x: make([]float64, len(in.cross)),
	}
	for _, e := range list {
		if e.Probe < 0 || int(e.Probe) >= len(in.probes) || !(e.Error > 0) || math.IsInf(e.Value, 0) || math.IsNaN(e.Value) || math.IsInf(e.Error, 0) {
			continue
		}
		u.rest[e.Probe], u.weight[e.Probe] = e.Value, 1/(e.Error*e.Error)
	}
	for c, probes := range in.cross {
		for _, p := range probes {
			u.square[c] += u.weight[p]
		}
		if u.square[c] > 0 {
			u.classes = append(u.classes, int32(c))
		}
	}
	if len(u.classes) == 0 {
		return nil
	}
	u.z = -math.Sqrt2 * math.Erfcinv(2*(1-alarm/float64(len(u.classes))))
	u.z = math.Abs(u.z)
	return u
}

// slope is the sum of the weighted rests of the probes that cross a class.
func (u *unmixer) slope(c int32) (sum float64) {
	for _, p := range u.in.cross[c] {
		sum += u.weight[p] * u.rest[p]
	}
	return sum
}

// set changes the value of a class.
func (u *unmixer) set(c int32, x float64) {
	by := x - u.x[c]
	u.x[c] = x
	for _, p := range u.in.cross[c] {
		u.rest[p] -= by
	}
}

const (
	mostSweeps = 2000
	settled    = 1e-9 // relative change of a value that is none
)

// descend finds the least of the sum over some classes, where λ is z of their standard errors; it reports whether any
// is above 0.
func (u *unmixer) descend(classes []int32, z float64) (any bool) {
	for range mostSweeps {
		moved := false
		any = false
		for _, c := range classes {
			was := u.x[c]
			x := max(0, was+(u.slope(c)-z*math.Sqrt(u.square[c]))/u.square[c])
			if math.Abs(x-was) > settled*max(x, was) {
				u.set(c, x)
				moved = true
			}
			any = any || x > 0
		}
		if !moved {
			break
		}
	}
	return any
}

// lasso chooses classes.
func (u *unmixer) lasso() bool { return u.descend(u.classes, u.z) }

// loss is the weighted sum of the squares of the rests, halved.
func (u *unmixer) loss() (sum float64) {
	for p, r := range u.rest {
		sum += u.weight[p] * r * r / 2
	}
	return sum
}

// shares fits what the lasso chose, and leaves out what is needless.
func (u *unmixer) shares() (out []share) {
	var chosen []int32
	for _, c := range u.classes {
		if u.x[c] > 0 {
			chosen = append(chosen, c)
		}
	}
	u.descend(chosen, 0)
	for len(chosen) > 0 {
		least, at := u.z*u.z/2, -1
		all := u.loss()
		for i, c := range chosen {
			x, rest := slices.Clone(u.x), slices.Clone(u.rest)
			u.set(c, 0)
			u.descend(slices.Concat(chosen[:i], chosen[i+1:]), 0)
			if gain := u.loss() - all; gain < least {
				least, at = gain, i
			}
			u.x, u.rest = x, rest
		}
		if at < 0 {
			break
		}
		u.set(chosen[at], 0)
		chosen = slices.Delete(chosen, at, at+1)
		u.descend(chosen, 0)
	}
	for _, c := range chosen {
		out = append(out, share{Links: u.in.alike[c], Value: u.x[c], Confidence: u.confidence(c)})
	}
	return out
}

// confidence is the likelihood of a class among all, the others given.
func (u *unmixer) confidence(c int32) float64 {
	x := u.x[c]
	u.set(c, 0)
	gain := func(o int32) float64 {
		s := max(0, u.slope(o))
		return s * s / (2 * u.square[o])
	}
	best, sum := gain(c), 0.0
	for _, o := range u.classes {
		if u.x[o] == 0 {
			sum += math.Exp(min(gain(o)-best, 700))
		}
	}
	u.set(c, x)
	return 1 / max(sum, 1)
}
