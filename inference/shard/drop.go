package shard

import (
	"cmp"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

type dropKey struct {
	node   uint32
	reason uint8
}

// drops counts the drop reports of a window by node and reason.
type drops struct {
	firsts[inference.DropStats]
	index map[dropKey]int
}

func newDrops(n int) drops {
	return drops{index: map[dropKey]int{}, firsts: firsts[inference.DropStats]{
		max: n,
		compare: func(a, b inference.DropStats) int {
			return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Reason, b.Reason))
		},
		weight: func(d *inference.DropStats) uint64 { return d.Count },
	}}
}

// count counts a dropped packet at the node that dropped it: the reporting node, or the last one that the packet came
// by. Reason 0 stands for reports that give none.
func (d *drops) count(r *decode.Report) {
	k := dropKey{reason: r.DropReason}
	if r.Has&decode.HasNodeID != 0 {
		k.node = r.NodeID
	} else if n := len(r.Hops); n > 0 {
		k.node = r.Hops[n-1].NodeID
	}
	if i, ok := d.index[k]; ok {
		e := &d.list[i]
		e.Count++
		e.First = min(e.First, r.Time)
		e.Saw(r.Time, &r.Flow)
		return
	}
	if d.full() {
		d.trim()
	}
	if d.add(inference.DropStats{Node: k.node, Reason: k.reason, Count: 1, First: r.Time, Last: r.Time, Flow: r.Flow}) == nil {
		d.other++
		return
	}
	d.index[k] = len(d.list) - 1
}

// trim lets all but the first pairs go.
func (d *drops) trim() {
	d.firsts.trim()
	clear(d.index)
	for i := range d.list {
		d.index[dropKey{d.list[i].Node, d.list[i].Reason}] = i
	}
}

func (d *drops) reset() {
	d.firsts.reset()
	clear(d.index)
}

func (d *drops) addTo(p *inference.Partial) {
	d.firsts.trim()
	for i := range d.list {
		p.AddDrops(&d.list[i])
	}
	p.OtherDrops += d.other
}
