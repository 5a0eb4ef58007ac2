package events

import "github.com/hopscope/hopscope/inference"

// Detector turns windows into findings. It has one owner and takes no lock.
type Detector struct {
	journal   *journal
	detectors []detector
}

// detector finds something in the windows. What it remembers from one window to the next is in a [lifecycle].
type detector interface {
	step(w *inference.Window)
}

// Stats is the state of a Detector and what it had no room for.
type Stats struct {
	Open          int // findings
	Hops          int // with a history
	HopsRefused   uint64
	DropsRefused  uint64
	FaultsRefused uint64 // digests with a fault, of flows that have no finding of their own
}

// New returns a detector that has seen nothing. cfg must be valid.
func New(cfg Config) *Detector {
	j := &journal{cfg: cfg}
	return &Detector{j, detectors(j)}
}

// Configure replaces the settings from the next window on; what was learnt is kept. cfg must be valid.
func (d *Detector) Configure(cfg Config) { d.journal.cfg = cfg }

// Step takes the next window and returns the findings that started, became more severe or ended with it, valid until
// the next call. It does not keep w.
func (d *Detector) Step(w *inference.Window) []inference.Finding {
	d.journal.begin(w.End)
	for _, x := range d.detectors {
		x.step(w)
	}
	d.journal.finish()
	return d.journal.told
}

// Open returns the findings that have not ended, oldest first.
func (d *Detector) Open() []inference.Finding {
	out := make([]inference.Finding, 0, len(d.journal.open))
	for _, f := range d.journal.open {
		out = append(out, *f)
	}
	return out
}

// Stats tells the state of the detector.
func (d *Detector) Stats() Stats {
	s := d.journal.stats
	s.Open = len(d.journal.open)
	return s
}
