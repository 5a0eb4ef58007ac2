package events

import (
	"fmt"

	"github.com/hopscope/hopscope/inference"
)

// Acceptance is the statement of an operator about a finding: its values are normal.
type Acceptance struct {
	Kind    inference.Kind
	Element inference.Element
	By      string
	At      int64 // ns since 1970; findings that began later are not accepted
}

// Acceptable reports whether findings of a kind are about a level that can be the usual one.
func Acceptable(k inference.Kind) bool {
	switch k {
	case inference.HighLatency, inference.LowLatency, inference.HighQueue, inference.HighUtilization, inference.LowUtilization, inference.StuckValues,
		inference.HopSilence:
		return true
	}
	return false
}

// subjectOfKind is a kind of findings at an element.
type subjectOfKind struct {
	kind    inference.Kind
	element inference.Element
}

// accepter is a detector with findings about levels.
type accepter interface {
	// accept makes the condition of an open finding the usual state. It returns the place at which the finding is kept,
	// or nil if the finding is of another detector.
	accept(f *inference.Finding) **inference.Finding
}

// Accept makes the conditions of findings the usual state from the next window on. It applies to findings that are open
// then or later and that began before they were accepted. It replaces what was accepted before.
func (d *Detector) Accept(all []Acceptance) {
	if len(all) == 0 {
		d.accepted = nil
		return
	}
	d.accepted = make(map[subjectOfKind]Acceptance, len(all))
	for _, a := range all {
		d.accepted[subjectOfKind{a.Kind, a.Element}] = a
	}
}

// acceptOpen ends the findings that were accepted.
func (d *Detector) acceptOpen() {
	if len(d.accepted) == 0 {
		return
	}
	for _, f := range d.journal.Open {
		a, ok := d.accepted[subjectOfKind{f.Kind, f.Element}]
		if !ok || f.Start > a.At || f.End != 0 {
			continue
		}
		for _, x := range d.detectors {
			x, ok := x.(accepter)
			if !ok {
				continue
			}
			if kept := x.accept(f); kept != nil {
				text := fmt.Sprintf("%s of %s was accepted as normal", f.Kind, f.Element)
				if a.By != "" {
					text += " by " + a.By
				}
				d.journal.End(kept, text)
				break
			}
		}
	}
}

func (x *hops) accept(f *inference.Finding) **inference.Finding {
	k := inference.HopKey{Node: f.Node, EgressIf: f.EgressIf}
	if s := x.Index[k]; s != nil {
		for i := range s.State.series {
			if h := &s.State.series[i]; h.finding == f {
				h.Accept()
				return &h.finding
			}
		}
	}
	if s := x.uses.Index[k]; s != nil && s.State.finding == f {
		s.State.Accept()
		return &s.State.finding
	}
	return nil
}

func (x *flows) accept(f *inference.Finding) **inference.Finding {
	if s := x.Index[f.Flow]; s != nil && s.State.finding == f {
		s.State.Accept()
		return &s.State.finding
	}
	return nil
}

func (x *transits) accept(f *inference.Finding) **inference.Finding {
	for _, s := range x.List {
		if s.State.finding == f {
			s.State.series.Accept()
			return &s.State.finding
		}
	}
	return nil
}
