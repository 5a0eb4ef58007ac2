package events

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events/subject"
)

// former ends the findings that an older program left open and whose detectors have been replaced.
type former struct {
	*subject.Table[uint64, subject.Tally]
}

func newFormer(j *subject.Journal) former {
	return former{subject.NewTable(j, cmp.Compare[uint64], func(c *subject.Coder, id *uint64) { subject.Number(c, id) }, (*subject.Coder).Tally)}
}

func (x former) Step(*inference.Window) {
	x.ForEachAbsent(func(_ uint64, t *subject.Tally, _ int) bool {
		x.End(&t.Finding, fmt.Sprintf("%s: is watched by a new detector from here on; before: %s", t.Finding.Kind, t.Finding.Text))
		return true
	})
}

// Inherit takes over findings that another program left open, which watched the network in the place of this one: they
// end with the next window. Those whose ids this detector has open itself are left out.
func (d *Detector) Inherit(left []inference.Finding) {
	j := d.journal
	for i := range left {
		f := left[i]
		at, taken := slices.BinarySearchFunc(j.Open, f.ID, func(o *inference.Finding, id uint64) int { return cmp.Compare(o.ID, id) })
		if f.ID == 0 || f.End != 0 || taken {
			continue
		}
		f.Cause, f.Evidence = 0, 0 // what that one knew of causes is gone
		j.Open = slices.Insert(j.Open, at, &f)
		j.ID = max(j.ID, f.ID)
		d.former.addOpen(&f)
	}
}

// addOpen adds a finding that an older program left open.
func (x former) addOpen(f *inference.Finding) {
	if x.Index[f.ID] == nil {
		s := &subject.Entry[uint64, subject.Tally]{Key: f.ID, Last: x.Windows}
		s.State.Finding = f
		x.Add(s)
	}
}

// readVersion2 reads a state of version 2. It keeps the open findings of paths and hops. Drops, digests and exporters
// are as they were.
func readVersion2(c *subject.Coder) {
	var kept former
	var drops, digests, exporters subject.Coded
	for _, s := range c.States {
		switch s := s.(type) {
		case *subject.Table[uint64, subject.Tally]:
			kept = former{s}
		case *subject.Table[dropKey, subject.Tally]:
			drops = s
		case *subject.Table[digestKey, subject.Tally]:
			digests = s
		case *subject.Table[inference.ExporterKey, exporter]:
			exporters = s
		}
	}
	keep := func(f *inference.Finding) {
		if f != nil && c.OK() {
			kept.addOpen(f)
		}
	}
	each := func(one func()) {
		var n int
		subject.Number(c, &n)
		for i := 0; i < n && c.OK(); i++ {
			one()
		}
	}
	var last uint64
	counted := func() {
		var t subject.Tally
		subject.Number(c, &last)
		c.Tally(&t)
		keep(t.Finding)
	}
	each(func() { c.Hop(new(inference.HopKey)); counted() })
	each(func() { c.Flow(new(decode.FlowKey)); counted() })
	each(counted)
	drops.Code(c)
	digests.Code(c)
	exporters.Code(c)
	each(func() {
		c.Hop(new(inference.HopKey))
		subject.Number(c, &last)
		for range 2 { // latency and queue
			keep(readFormerSeries(c))
		}
	})
}

// readFormerSeries reads what version 2 remembered of a latency or a queue. Nothing of it is of use any more but its
// finding.
func readFormerSeries(c *subject.Coder) *inference.Finding {
	var values []float64
	var n int
	var worst float64
	var f *inference.Finding
	subject.List(c, &values, c.Float)
	subject.Number(c, &n) // where the history goes on
	c.Check("place in a history", n < max(len(values), 1))
	for range 3 { // windows above the limit, calm, and absent
		subject.Number(c, &n)
	}
	c.Finding(&f)
	c.Float(&worst)
	return f
}
