package shard

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// countDrops counts the drop reports among those that are rare.
func (c *Cut) countDrops(rare []*decode.Report) {
	for _, r := range rare {
		if r.Kind == decode.KindDrop {
			c.countDrop(r)
		}
	}
}

// countDrop counts a dropped packet at the node that dropped it: the reporting node, or the last one that the packet came
// by. Reason 0 stands for reports that give none. Where the capture ended before node and reason, no place is made up.
func (c *Cut) countDrop(r *decode.Report) {
	d := inference.DropStats{Node: r.NodeID, Reason: r.DropReason, Count: uint64(max(r.Weight, 1)), Last: r.Time, Flow: r.Flow}
	if r.Has&decode.HasNodeID == 0 {
		d.Node = 0
		if n := len(r.Hops); n > 0 {
			d.Node = r.Hops[n-1].NodeID
		} else if r.Flags&decode.Truncated != 0 {
			c.partial.OtherDrops += d.Count
			return
		}
	}
	c.partial.AddDrops(&d)
}
