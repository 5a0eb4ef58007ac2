package events

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// Detector turns windows into findings. It has one owner and takes no lock.
type Detector struct {
	cfg   Config
	id    uint64
	now   int64 // end of the window
	out   []inference.Finding
	open  map[uint64]*inference.Finding
	stats Stats

	hops      map[inference.HopKey]*hop
	paths     map[decode.FlowKey]*path
	groups    map[inference.HopKey]*group
	morePaths path // of flows that have no finding of their own
	drops     map[dropKey]*drops
	digests   map[digestKey]*digests
	exporters map[inference.ExporterKey]*exporter
	windows   uint64
	scratch   []float64
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
	return &Detector{
		cfg:       cfg,
		open:      map[uint64]*inference.Finding{},
		hops:      map[inference.HopKey]*hop{},
		paths:     map[decode.FlowKey]*path{},
		groups:    map[inference.HopKey]*group{},
		drops:     map[dropKey]*drops{},
		digests:   map[digestKey]*digests{},
		exporters: map[inference.ExporterKey]*exporter{},
		scratch:   make([]float64, cfg.History),
	}
}

// Configure replaces the settings from the next window on; what was learnt is kept. cfg must be valid.
func (d *Detector) Configure(cfg Config) {
	d.cfg = cfg
	d.scratch = make([]float64, cfg.History)
}

// Step takes the next window and returns the findings that started, became more severe or ended with it, valid until
// the next call. It does not keep w.
func (d *Detector) Step(w *inference.Window) []inference.Finding {
	d.out, d.now = d.out[:0], w.End
	d.windows++
	d.stepPaths(w)
	d.stepDrops(w)
	d.stepDigests(w)
	d.stepExporters(w)
	d.stepHops(w)
	return d.out
}

// Open returns the findings that have not ended, oldest first.
func (d *Detector) Open() []inference.Finding {
	out := make([]inference.Finding, 0, len(d.open))
	for _, f := range d.open {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b inference.Finding) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Stats tells the state of the detector.
func (d *Detector) Stats() Stats {
	s := d.stats
	s.Open, s.Hops = len(d.open), len(d.hops)
	return s
}

// start opens a finding. The text and values are those of f.
func (d *Detector) start(f inference.Finding) *inference.Finding {
	d.id++
	f.ID, f.Start, f.Updated = d.id, d.now, d.now
	d.open[f.ID] = &f
	d.out = append(d.out, f)
	return &f
}

// update notes how a finding stands. It is told only if it became more severe; severity does not fall before the end.
func (d *Detector) update(f *inference.Finding, s inference.Severity, value, baseline float64, text string) {
	f.Updated, f.Value, f.Baseline, f.Text = d.now, value, baseline, text
	if s > f.Severity {
		f.Severity = s
		d.out = append(d.out, *f)
	}
}

// end closes a finding.
func (d *Detector) end(f *inference.Finding, text string) {
	f.Updated, f.End, f.Text = d.now, d.now, text
	d.out = append(d.out, *f)
	delete(d.open, f.ID)
}

// ordered gives the keys of m in the order of less, so that what depends on them does not depend on the map.
func ordered[K comparable, V any](m map[K]V, compare func(a, b K) int) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compare)
	return keys
}
