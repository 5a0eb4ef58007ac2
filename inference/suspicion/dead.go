package suspicion

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// deadRatio is the share of lost rounds from which a culprit, or a probe, counts as dead. Its losses are then
// explained, and the missing rounds change the reports of the rest.
const deadRatio = .5

// dead reports whether a class of links is a culprit that lost most rounds, and is not well again.
func (x *losses) dead(class int32) bool {
	if class < 0 {
		return false
	}
	at, there := x.culprit(class)
	return there && x.culprits[at].dead
}

// anyDead reports whether there is such a class.
func (x *losses) anyDead() bool {
	return slices.ContainsFunc(x.culprits, func(c culprit) bool { return c.dead })
}

// deadLink reports whether a link is dead, by the rounds of the probes that cross it.
func (s *State) deadLink(l int32) bool {
	return l >= 0 && int(l) < len(s.links) && s.losses.dead(s.incidence.class[l])
}

// backOfDead reports whether a class has a link whose other direction is dead: a line mostly fails in both.
func (x *losses) backOfDead(in *Incidence, class int32) bool {
	return slices.ContainsFunc(in.alike[class], func(l int32) bool { return in.reverse != nil && in.reverse[l] >= 0 && x.dead(in.class[in.reverse[l]]) })
}

// thin notes which links a probe crosses that lost most of its rounds: of the packets that were compared there before,
// some are missing.
func (s *State) thin(list []Round) {
	clear(s.thinned)
	for i := range list {
		r := &list[i]
		if r.Probe < 0 || int(r.Probe) >= len(s.incidence.probes) || r.Lost == 0 || float64(r.Lost) < deadRatio*float64(r.Sent) {
			continue
		}
		for _, l := range s.incidence.probes[r.Probe] {
			s.thinned[l] = true
		}
	}
}

// follows reports whether a finding follows from a dead line at its ends: flows that go another way, and drops of the
// node there. A finding that follows once does so to its end.
func (s *State) follows(f *inference.Finding) bool {
	if s.followed[f.ID] {
		return true
	}
	if !s.losses.anyDead() {
		return false
	}
	switch f.Kind {
	case inference.PathChanged, inference.PacketDrops:
	case inference.HighLatency, inference.HighQueue:
		return s.passing(f)
	default:
		return false
	}
	ends := []uint32{f.Element.Node}
	switch f.Element.Kind {
	case inference.NodeElement:
	case inference.LinkElement:
		ends = append(ends, f.Element.Peer)
	default:
		return false
	}
	if s.touched = s.places.Links(s.touched[:0], f); f.Element.Kind == inference.LinkElement && slices.ContainsFunc(s.touched, s.deadLink) {
		return false // it is the line
	}
	for _, n := range ends {
		at := inference.Finding{Node: n, Element: inference.ElementOfNode(n)}
		if s.touched = s.places.Links(s.touched[:0], &at); slices.ContainsFunc(s.touched, s.deadLink) {
			s.followed[f.ID] = true
			return true
		}
	}
	return false
}

// rerouted is how many windows after a line died findings begin that flows bring about which go another way by now.
const rerouted = 5

// passing reports whether a queue at an interface is one of packets that came together as flows left a dead line. Its
// finding began with that, and probes that cross the interface are as usual.
func (s *State) passing(f *inference.Finding) bool {
	window := int64(s.cfg.Window)
	with := func(c culprit) bool { return c.dead && f.Start >= c.died-2*window && f.Start <= c.died+rerouted*window }
	if f.Element.Kind != inference.InterfaceElement || !slices.ContainsFunc(s.losses.culprits, with) {
		return false
	}
	s.touched = s.places.Links(s.touched[:0], f)
	return len(s.touched) > 0 && !slices.ContainsFunc(s.touched, func(l int32) bool { return l < 0 || int(l) >= len(s.links) || !s.hops.usual(l) })
}

// acquit ends the suspicion of links that rests on consequences of a dead line, or on evidence of these. It also ends
// the suspicion by findings that a cause explains by now. The cause accuses the links that it names, and no others.
func (s *State) acquit(all []inference.Finding) {
	consequences := map[uint64]bool{}
	for i := range all {
		if f := &all[i]; s.followed[f.ID] || f.Cause != 0 && (s.followed[f.Cause] || f.End == 0 && s.placed(all, f.Cause)) {
			consequences[f.ID] = true
		}
	}
	if len(consequences) == 0 {
		return
	}
	for _, l := range s.marked {
		if h := &s.links[l]; h.finding != 0 && consequences[h.finding] {
			h.calm = uint16(min(s.cfg.ClearAfter, math.MaxUint16-1)) // unless there is other evidence in this cycle
		}
	}
}

// forgetClosed drops what is known of findings that are not open any more.
func (s *State) forgetClosed(open []inference.Finding) {
	if len(s.followed) == 0 {
		return
	}
	still := map[uint64]bool{}
	for i := range open {
		if f := &open[i]; f.End == 0 && s.followed[f.ID] {
			still[f.ID] = true
		}
	}
	s.followed = still
}
