package events

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// former ends the findings that an older program left open and whose detectors have been replaced.
type former struct{ *lifecycle[uint64, tally] }

func newFormer(j *journal) former {
	return former{newLifecycle(j, cmp.Compare[uint64], func(c *coder, id *uint64) { number(c, id) }, (*coder).tally)}
}

func (x former) step(*inference.Window) {
	x.forEachAbsent(func(_ uint64, t *tally, _ int) bool {
		x.end(&t.finding, fmt.Sprintf("%s: is watched by a new detector from here on; before: %s", t.finding.Kind, t.finding.Text))
		return true
	})
}

// TakeOver takes over findings that another program left open, which watched the network in the place of this one: they end
// with the next window. Those whose ids this detector has open itself are left out.
func (d *Detector) TakeOver(left []inference.Finding) {
	j := d.journal
	for i := range left {
		f := left[i]
		at, taken := slices.BinarySearchFunc(j.open, f.ID, func(o *inference.Finding, id uint64) int { return cmp.Compare(o.ID, id) })
		if f.ID == 0 || f.End != 0 || taken {
			continue
		}
		f.Cause, f.Evidence = 0, 0 // what that one knew of causes is gone
		j.open = slices.Insert(j.open, at, &f)
		j.id = max(j.id, f.ID)
		d.former.addOpen(&f)
	}
}

// addOpen adds a finding that an older program left open.
func (x former) addOpen(f *inference.Finding) {
	if x.index[f.ID] == nil {
		s := &subject[uint64, tally]{key: f.ID, last: x.windows}
		s.state.finding = f
		x.add(s)
	}
}

// version2 reads what version 2 wrote: changes of paths and hops, of which the open findings are kept, and drops, digests and
// exporters, which are as they were.
func (c *coder) version2() {
	var kept former
	var drops, digests, exporters coded
	for _, s := range c.states {
		switch s := s.(type) {
		case *lifecycle[uint64, tally]:
			kept = former{s}
		case *lifecycle[dropKey, tally]:
			drops = s
		case *lifecycle[digestKey, tally]:
			digests = s
		case *lifecycle[inference.ExporterKey, exporter]:
			exporters = s
		}
	}
	keep := func(f *inference.Finding) {
		if f != nil && c.OK() {
			kept.addOpen(f)
		}
	}
	each := func(subject func()) {
		var n int
		number(c, &n)
		for i := 0; i < n && c.OK(); i++ {
			subject()
		}
	}
	var last uint64
	counted := func() {
		var t tally
		number(c, &last)
		c.tally(&t)
		keep(t.finding)
	}
	each(func() { c.hop(new(inference.HopKey)); counted() })
	each(func() { c.flow(new(decode.FlowKey)); counted() })
	each(counted)
	drops.code(c)
	digests.code(c)
	exporters.code(c)
	each(func() {
		c.hop(new(inference.HopKey))
		number(c, &last)
		for range 2 { // latency and queue
			keep(c.formerSeries())
		}
	})
}

// formerSeries reads what version 2 remembered of a latency or a queue. Nothing of it is of use any more but its finding.
func (c *coder) formerSeries() *inference.Finding {
	var values []float64
	var n int
	var worst float64
	var f *inference.Finding
	list(c, &values, c.float)
	number(c, &n) // where the history goes on
	c.Check("place in a history", n < max(len(values), 1))
	for range 3 { // windows above the limit, calm, and absent
		number(c, &n)
	}
	c.finding(&f)
	c.float(&worst)
	return f
}
