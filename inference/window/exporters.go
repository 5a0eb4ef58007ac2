package window

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

var exporterKind = kindOf[inference.ExporterKey, inference.ExporterStats]{
	one: "exporter", many: "exporters", least: len(decode.Addr{}) + 14,
	in:      func(p *Partial) *table[inference.ExporterKey, inference.ExporterStats] { return &p.exporters },
	limit:   func(l *Limits) int { return l.Exporters },
	slice:   func(s *Slicer, e *inference.ExporterStats) int { return s.Exporter(e.ExporterKey) },
	key:     func(e *inference.ExporterStats) inference.ExporterKey { return e.ExporterKey },
	compare: func(a, b *inference.ExporterStats) int { return a.ExporterKey.Compare(b.ExporterKey) },
	sum:     func(_ *memory, to, from *inference.ExporterStats) { to.Add(from) },
	late:    func(e *inference.ExporterStats) bool { return e.OfNode0() },
	leave: func(p *Partial, e *inference.ExporterStats) { // into the one with no address, which has room beside the limit
		to, _ := p.exporters.at(inference.ExporterKey{})
		to.Add(e)
	},
	code: func(c *coder, _ *memory, e *inference.ExporterStats) {
		c.exporter("exporter", &e.ExporterKey)
		c.flags("exporter flags", &e.Sequenced)
		c.uints("exporter counters", &e.Reports, &e.Events, &e.Provisional, &e.Duplicated, &e.Reordered, &e.Late, &e.Down, &e.Restarts, &e.Malformed)
		c.int("exporter losses", &e.Lost)
		c.time("exporter time", &e.Last)
	},
	rows: func(w *inference.Window) (*[]inference.ExporterStats, *uint64) { return &w.Exporters, nil },
}

// AddExporters adds what trackers of exporters counted. An exporter belongs to one tracker: another one would see gaps
// where there are none. Where that cannot be, they also add [Numbers].
func (p *Partial) AddExporters(all []inference.ExporterStats) {
	for i := range all {
		exporterKind.put(p, &all[i])
	}
}

// Exporters returns what was counted of each exporter, in no order. It is the memory of p: to be read, until the next
// call of a method.
func (p *Partial) Exporters() []inference.ExporterStats { return p.exporters.items }

// Exporter returns what was counted of an exporter, to be changed, or nil.
func (p *Partial) Exporter(k inference.ExporterKey) *inference.ExporterStats {
	return p.exporters.find(k)
}

// Heard yields the exporters of which there were reports, in no order.
func (p *Partial) Heard(yield func(inference.ExporterKey) bool) {
	for i := range p.exporters.items {
		if e := &p.exporters.items[i]; e.Reports+e.Malformed > 0 && !yield(e.ExporterKey) {
			return
		}
	}
}

// Silent yields the counts of exporters of which there were no reports, in no order.
func (p *Partial) Silent(yield func(*inference.ExporterStats) bool) {
	for i := range p.exporters.items {
		if e := &p.exporters.items[i]; e.Reports+e.Malformed == 0 && !yield(e) {
			return
		}
	}
}
