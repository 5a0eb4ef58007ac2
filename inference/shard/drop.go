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

// drops counts the drop reports of a window by node and reason. If there are too many pairs, those with the least numbers
// stay: which of them came first depends on who looks, because drops of one node reach several shards.
type drops struct {
	bounded[inference.DropStats]
	index map[dropKey]int
}

func newDrops(n int) drops {
	return drops{index: map[dropKey]int{}, bounded: bounded[inference.DropStats]{
		max: n,
		compare: func(a, b inference.DropStats) int {
			return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Reason, b.Reason))
		},
		weight: func(d *inference.DropStats) uint64 { return d.Count },
	}}
}

// observe counts the drop reports among those that are rare.
func (d *drops) observe(rare []*decode.Report) {
	for _, r := range rare {
		if r.Kind == decode.KindDrop {
			d.count(r)
		}
	}
}

// count counts a dropped packet at the node that dropped it: the reporting node, or the last one that the packet came
// by. Reason 0 stands for reports that give none. Where the capture ended before node and reason, no place is made up.
func (d *drops) count(r *decode.Report) {
	k := dropKey{reason: r.DropReason}
	if r.Has&decode.HasNodeID != 0 {
		k.node = r.NodeID
	} else if n := len(r.Hops); n > 0 {
		k.node = r.Hops[n-1].NodeID
	} else if r.Flags&decode.Truncated != 0 {
		d.other++
		return
	}
	if i, ok := d.index[k]; ok {
		e := &d.list[i]
		e.Count++
		e.Saw(r.Time, &r.Flow)
		return
	}
	if d.full() {
		d.trim()
	}
	if d.add(inference.DropStats{Node: k.node, Reason: k.reason, Count: 1, Last: r.Time, Flow: r.Flow}) == nil {
		d.other++
		return
	}
	d.index[k] = len(d.list) - 1
}

// trim lets all but the least go.
func (d *drops) trim() {
	d.bounded.trim()
	clear(d.index)
	for i := range d.list {
		d.index[dropKey{d.list[i].Node, d.list[i].Reason}] = i
	}
}

func (d *drops) reset() {
	d.bounded.reset()
	clear(d.index)
}

func (d *drops) addTo(p *inference.Partial) {
	d.bounded.trim()
	for i := range d.list {
		p.AddDrops(&d.list[i])
	}
	p.OtherDrops += d.other
}
