package shard

import (
	"cmp"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

type faultKey struct {
	fault inference.Fault
	flow  decode.FlowKey
}

// faults counts the digests of a window that have a fault, by fault and flow. If there are too many, those stay whose
// first digest came first.
type faults struct {
	bounded[inference.DigestFault]
	index map[faultKey]int
}

func newFaults(n int) faults {
	return faults{index: map[faultKey]int{}, bounded: bounded[inference.DigestFault]{
		max: n,
		compare: func(a, b inference.DigestFault) int {
			return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Fault, b.Fault), a.Flow.Compare(&b.Flow))
		},
		weight: func(d *inference.DigestFault) uint64 { return d.Count },
	}}
}

// observe counts packets that came around again, among the reports that are rare. Digests that fit no path are told by
// who traces them.
func (d *faults) observe(rare []*decode.Report) {
	for _, r := range rare {
		if r.Flags&decode.Loop != 0 && r.Has&decode.HasFlow != 0 {
			d.count(r, inference.Looping)
		}
	}
}

// count counts a digest of a flow that has a fault.
func (d *faults) count(r *decode.Report, fault inference.Fault) {
	node := uint32(0)
	if fault == inference.Looping {
		node = r.NodeID
	}
	d.note(inference.DigestFault{Flow: r.Flow, Fault: fault, Node: node, Count: 1, First: r.Time, Last: r.Time})
}

// note counts digests of a flow that have a fault.
func (d *faults) note(f inference.DigestFault) {
	k := faultKey{f.Fault, f.Flow}
	if i, ok := d.index[k]; ok {
		e := &d.list[i]
		e.Count += f.Count
		e.First = min(e.First, f.First)
		e.Saw(f.Last, f.Node)
		return
	}
	if d.full() {
		d.trim()
	}
	if d.add(f) == nil {
		d.other += f.Count
		return
	}
	d.index[k] = len(d.list) - 1
}

// trim lets all but the least go.
func (d *faults) trim() {
	d.bounded.trim()
	clear(d.index)
	for i := range d.list {
		d.index[faultKey{d.list[i].Fault, d.list[i].Flow}] = i
	}
}

func (d *faults) reset() {
	d.bounded.reset()
	clear(d.index)
}

func (d *faults) addTo(p *inference.Partial) {
	d.bounded.trim()
	for i := range d.list {
		p.AddFault(&d.list[i])
	}
	p.OtherFlows += d.other
}
