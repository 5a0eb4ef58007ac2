package suspicion

import (
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/inference"
)

const (
	transitWarmup = 60   // cycles before a probe is judged
	transitAdopt  = 360  // cycles after which a new level is the usual one
	transitFar    = 8    // errors from which on a value is not usual
	transitAlarm  = 1e-7 // chance of a false share in a cycle, with normal errors
	transitTail   = 4    // errors that the farthest value of a probe is taken to be
)

// transits compares the times that probes are under way with their own history, and unmixes what they have in excess.
type transits struct {
	probes []transit // by probe
	excess []excess
}

// transit is the state of a probe.
type transit struct {
	cycles uint32
	far    uint32 // cycles in a row that were not usual
	mean   float64
	square float64 // mean of the squares of differences
	tail   float64 // farthest difference in errors, fading over a thousand cycles
}

func (x *transits) reset(in *Incidence) { *x = transits{probes: make([]transit, len(in.probes))} }

// inherit takes over the state of other probes. The function probe returns the number here of one there, or -1.
func (x *transits) inherit(from *transits, probe func(int32) int32) {
	for p := range from.probes {
		if q := probe(int32(p)); q >= 0 {
			x.probes[q] = from.probes[p]
		}
	}
}

func (x *transits) step(s *State, list []Round) {
	x.excess = x.excess[:0]
	significant := false
	for i := range list {
		r := &list[i]
		if r.Probe < 0 || int(r.Probe) >= len(x.probes) || !(r.Transit > 0) || math.IsInf(r.Transit, 0) {
			continue
		}
		if e, ok := x.probes[r.Probe].step(r.Transit, s.cfg.LatencyFloor); ok {
			e.Probe = r.Probe
			x.excess = append(x.excess, e)
			significant = significant || e.Value > 3*e.Error
		}
	}
	var shares []share
	if significant {
		shares = unmix(s.incidence, x.excess, transitAlarm)
	}
	s.named.forget(false, func(class int32) bool {
		return slices.ContainsFunc(shares, func(f share) bool { return s.incidence.class[f.Links[0]] == class })
	})
	for _, f := range shares {
		links := s.named.among(s.incidence.class[f.Links[0]], f.Links, false)
		e := evidence{severity: inference.Warning, confidence: f.Confidence / float64(len(links))}
		e.why = fmt.Sprintf("probes that cross it take %s longer", inference.Nanoseconds(f.Value))
		if n := len(links) - 1; n > 0 {
			e.why += fmt.Sprintf("; the same probes cross %d more, which cannot be distinguished", n)
		}
		for _, e.link = range links {
			s.accuse(e)
		}
	}
}

// step takes a value and returns its excess, if the probe is known well enough.
func (p *transit) step(v, floor float64) (e excess, ok bool) {
	d := v - p.mean
	e.Error = math.Sqrt(p.square)*max(1, p.tail/transitTail) + floor
	e.Value = d
	ok = p.cycles >= transitWarmup
	if ok && math.Abs(d) > transitFar*e.Error {
		if p.far++; p.far < transitAdopt {
			return e, true
		}
		*p = transit{}
		d = v
	}
	p.far = 0
	if s := math.Sqrt(p.square); p.cycles >= transitWarmup/2 && s > 0 {
		p.tail = max(p.tail*.999, math.Abs(d)/(s+floor))
	}
	p.cycles = min(p.cycles+1, 1<<30)
	rate := max(.01, 1/float64(p.cycles))
	p.square += rate * ((1-rate)*d*d - p.square)
	p.mean += rate * d
	return e, ok
}
