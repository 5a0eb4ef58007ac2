package suspicion

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/inference"
)

// fewFlows are so few that their change of path is no evidence against the place that they left.
const fewFlows = 3

// mostTouched bounds the links that one finding is evidence against.
const mostTouched = 1024

// explainAll notes what causes explain.
func (s *State) explainAll(all []inference.Finding) {
	for _, l := range s.explained {
		s.links[l].explained = false
	}
	s.explained = s.explained[:0]
	if s.places == nil {
		return
	}
	for i := range all {
		if f := &all[i]; f.End == 0 && f.Cause != 0 && f.Element.Kind == inference.InterfaceElement && s.placed(all, f.Cause) {
			s.explain(f)
		}
	}
}

// found takes the open findings that stand for themselves, and causes while a finding that they explain is open. A
// cause stays open for new evidence when its last one has ended, and then accuses no links. An open finding whose place
// is as usual again accuses none until that changes. Evidence of probes in the cycle comes before.
func (s *State) found(all []inference.Finding) {
	if s.places == nil {
		return
	}
	clear(s.alive)
	for i := range all {
		if f := &all[i]; f.End == 0 && f.Cause != 0 && !f.Resting && ofPackets(f.Kind) {
			s.alive[f.Cause] = true
		}
	}
	s.forgetClosed(all)
	probed := len(s.now)
	for i := range all {
		if f := &all[i]; f.End == 0 && f.Cause == 0 && !f.Resting && (f.Evidence == 0 || s.alive[f.ID]) && s.counts(f) && !s.follows(f) {
			s.suspect(f, s.now[:probed:probed])
		}
	}
	s.acquit(all)
}

// narrow keeps those links of a node that are suspected already or that probes accuse, if there are any. Drops and
// latencies of a node are often those of one of its interfaces, which reports do not name.
func (s *State) narrow(probed []evidence) {
	kept := 0
	for _, l := range s.touched {
		if l < 0 || int(l) >= len(s.links) {
			continue
		}
		if s.links[l].suspected || s.links[l].explained || slices.ContainsFunc(probed, func(e evidence) bool { return e.link == l && e.confidence >= .5 }) {
			s.touched[kept] = l
			kept++
		}
	}
	if kept > 0 {
		s.touched = s.touched[:kept]
	}
}

// counts reports whether a finding is evidence.
func (s *State) counts(f *inference.Finding) bool {
	if f.Kind == inference.StrangeDigests && f.Element.Kind == inference.FlowElement { // others will locate it
		return false
	}
	least := s.cfg.Least
	if f.Element.Kind == inference.FlowElement || f.Kind == inference.PathChanged && f.Value < fewFlows {
		least = max(least, inference.Warning) // single flows change their ways all the time
	}
	return f.Severity >= least && ofPackets(f.Kind)
}

// placed reports whether a cause is evidence against links that can be named.
func (s *State) placed(all []inference.Finding, id uint64) bool {
	i, there := slices.BinarySearchFunc(all, id, func(f inference.Finding, id uint64) int { return cmp.Compare(f.ID, id) })
	if !there {
		i = slices.IndexFunc(all, func(f inference.Finding) bool { return f.ID == id })
	}
	if i < 0 || !s.counts(&all[i]) {
		return false
	}
	switch all[i].Element.Kind {
	case inference.NodeElement, inference.InterfaceElement, inference.LinkElement:
		return true
	}
	return false
}

// explain notes that a cause explains what an interface shows, so that probes need not suspect it for that.
func (s *State) explain(f *inference.Finding) {
	s.touched = s.places.Links(s.touched[:0], f)
	for _, l := range s.touched {
		if l >= 0 && int(l) < len(s.links) && !s.links[l].explained {
			s.links[l].explained = true
			s.explained = append(s.explained, l)
		}
	}
}

// suspect takes a finding, after the evidence of probes.
func (s *State) suspect(f *inference.Finding, probed []evidence) {
	s.touched = s.places.Links(s.touched[:0], f)
	if len(s.touched) > mostTouched {
		s.touched = s.touched[:mostTouched]
	}
	if f.Element.Kind == inference.NodeElement {
		s.narrow(probed)
	}
	e := evidence{severity: f.Severity, learning: f.Learning, confidence: 1, finding: f.ID}
	if k := f.Element.Kind; k == inference.FlowElement || k == inference.RouteElement { // one of those on the way
		e.confidence = 1 / float64(max(len(s.touched), 1))
	}
	for _, e.link = range s.touched {
		if e.link < 0 || int(e.link) >= len(s.links) {
			continue
		}
		if e.why == "" {
			e.why = fmt.Sprintf("finding %d, %s of %v: %s", f.ID, f.Kind, f.Element, f.Text)
		}
		s.accuse(e)
	}
}

// ofPackets reports whether a finding is about packets that fare worse, and not about reports, the inventory, or fallen
// values. Where nothing passes any more, or values stand still, reports may be the reason; if it is the link, probes
// get lost. More traffic alone is no trouble before a queue grows.
func ofPackets(k inference.Kind) bool {
	switch k {
	case inference.ExporterLoss, inference.ExporterSilence, inference.InventoryError, inference.LowLatency, inference.LowUtilization,
		inference.HopSilence, inference.StuckValues, inference.HighUtilization:
		return false
	}
	return true
}
