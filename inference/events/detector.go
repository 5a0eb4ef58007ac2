package events

import (
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
)

// Detector turns windows into findings. It has one owner and takes no lock.
type Detector struct {
	journal   *subject.Journal
	detectors []detector
	hops      *hops   // one of them
	probes    *probes // another one
	former    former  // another one
	accepted  map[subjectOfKind]Acceptance
}

// detector finds something in the windows. Its memory from one window to the next is a [Table].
type detector interface {
	Step(w *inference.Window)
}

// Config holds the conditions of findings; see [subject.Config].
type Config = subject.Config

// Stats is the state of a Detector and what it had no room for.
type Stats = subject.Stats

// DefaultConfig suits windows of one to ten seconds.
func DefaultConfig() Config { return subject.DefaultConfig() }

// New returns a detector that has seen nothing. cfg must be valid.
func New(cfg Config) *Detector {
	j := &subject.Journal{Cfg: cfg, Late: map[uint64]uint64{}, Moved: map[uint64][]inference.HopKey{}}
	d := &Detector{journal: j, detectors: detectors(j)}
	for _, x := range d.detectors {
		switch x := x.(type) {
		case *hops:
			d.hops = x
		case *probes:
			d.probes = x
		case former:
			d.former = x
		}
	}
	return d
}

// Configure replaces the settings from the next window on; what was learnt is kept. cfg must be valid.
func (d *Detector) Configure(cfg Config) { d.journal.Cfg = cfg }

// Step takes the next window and returns the findings that started, became more severe or ended with it, valid until
// the next call. It does not keep w.
func (d *Detector) Step(w *inference.Window) []inference.Finding {
	d.journal.Begin(w.End)
	d.acceptOpen()
	for _, x := range d.detectors {
		x.Step(w)
	}
	d.journal.Finish()
	return d.journal.Published
}

// Mark marks the hops and the paths of probes of a window as judged or not. It also marks hops that are younger than
// their statistics need. The window is the last that was taken, or one with the same ones.
func (d *Detector) Mark(w *inference.Window) {
	for i := range w.Hops {
		if h := d.hops.Index[w.Hops[i].HopKey]; h != nil {
			w.Hops[i].Learning, w.Hops[i].Judgement = h.State.learning(), h.State.judgement
		}
	}
	for i := range w.Probes {
		s := &w.Probes[i]
		if p := d.probes.Index[probedKey{s.From, s.To, s.Path}]; p != nil && !s.Other() {
			s.Judgement = p.State.judgement
		}
	}
}

// Coverage returns how many hops and paths of probes of the last window were judged.
func (d *Detector) Coverage() inference.Coverage {
	c := d.hops.covered
	c.Paths, c.PathsJudged, c.PathsUnknown = d.probes.seen, d.probes.judged, d.probes.unknown
	return c
}

// Open returns the findings that have not ended, oldest first.
func (d *Detector) Open() []inference.Finding {
	out := make([]inference.Finding, 0, len(d.journal.Open))
	for _, f := range d.journal.Open {
		out = append(out, *f)
	}
	return out
}

// Stats returns the state of the detector.
func (d *Detector) Stats() Stats {
	s := d.journal.Stats
	s.Open = len(d.journal.Open)
	s.Watched += d.journal.Judged()
	for _, h := range d.hops.List {
		if h.State.learning() {
			s.Learning++
		}
	}
	return s
}

// Refused returns two counts since the detector was made that are not in Stats. Unjudged counts links, interfaces and
// losses of flows that were not judged in a window for want of a place. Unlisted counts changes and faults of flows
// that have no finding of their own.
func (d *Detector) Refused() (unjudged, unlisted uint64) {
	return d.journal.Unjudged, d.journal.Unlisted
}
