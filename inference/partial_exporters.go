package inference

import "github.com/hopscope/hopscope/decode"

var exporterKind = kindOf[ExporterKey, ExporterStats]{
	one: "exporter", many: "exporters", least: len(decode.Addr{}) + 14,
	in:      func(p *Partial) *table[ExporterKey, ExporterStats] { return &p.exporters },
	limit:   func(l *Limits) int { return l.Exporters },
	slice:   func(s *Slicer, e *ExporterStats) int { return s.Exporter(e.ExporterKey) },
	key:     func(e *ExporterStats) ExporterKey { return e.ExporterKey },
	compare: func(a, b *ExporterStats) int { return a.ExporterKey.Compare(b.ExporterKey) },
	sum:     func(_ *memory, to, from *ExporterStats) { to.Add(from) },
	late:    func(e *ExporterStats) bool { return e.ofNode0() },
	leave: func(p *Partial, e *ExporterStats) { // into the one with no address, which has room beside the limit
		to, _ := p.exporters.at(ExporterKey{})
		to.Add(e)
	},
	code: func(c *coder, _ *memory, e *ExporterStats) {
		c.exporter("exporter", &e.ExporterKey)
		c.flags("exporter flags", &e.Sequenced)
		c.uints("exporter counters", &e.Reports, &e.Events, &e.Provisional, &e.Duplicated, &e.Reordered, &e.Late, &e.Down, &e.Restarts, &e.Malformed)
		c.int("exporter losses", &e.Lost)
		c.time("exporter time", &e.Last)
	},
	rows: func(w *Window) (*[]ExporterStats, *uint64) { return &w.Exporters, nil },
}

// AddExporters adds what trackers of exporters counted. An exporter belongs to one tracker: another one would see gaps where
// there are none. Where that cannot be, they also add [Numbers].
func (p *Partial) AddExporters(all []ExporterStats) {
	for i := range all {
		exporterKind.put(p, &all[i])
	}
}

// Exporters returns what was counted of each exporter, in no order. It is the memory of p: to be read, until the next call of a
// method.
func (p *Partial) Exporters() []ExporterStats { return p.exporters.items }

// Exporter returns what was counted of an exporter, to be changed, or nil.
func (p *Partial) Exporter(k ExporterKey) *ExporterStats { return p.exporters.find(k) }

// Heard gives the exporters of which there were reports, in no order, to a function that returns whether it wants more.
func (p *Partial) Heard(yield func(ExporterKey) bool) {
	for i := range p.exporters.items {
		if e := &p.exporters.items[i]; e.Reports+e.Malformed > 0 && !yield(e.ExporterKey) {
			return
		}
	}
}

// Silent gives what was counted of exporters of which there were no reports, as Heard does.
func (p *Partial) Silent(yield func(*ExporterStats) bool) {
	for i := range p.exporters.items {
		if e := &p.exporters.items[i]; e.Reports+e.Malformed == 0 && !yield(e) {
			return
		}
	}
}

// Add adds what was counted of another exporter, or by another tracker.
func (e *ExporterStats) Add(o *ExporterStats) {
	e.Reports += o.Reports
	e.Events += o.Events
	e.Lost += o.Lost
	e.Provisional += o.Provisional
	e.Duplicated += o.Duplicated
	e.Reordered += o.Reordered
	e.Late += o.Late
	e.Down += o.Down
	e.Restarts += o.Restarts
	e.Malformed += o.Malformed
	e.Last = max(e.Last, o.Last)
	e.Sequenced = e.Sequenced || o.Sequenced
}
