package shard

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

type dropKey struct {
	node   uint32
	reason uint8
}

// countDrop counts a dropped packet at the node that dropped it: the reporting node, or the last one that the packet
// came by. Reason 0 stands for reports that give none.
func (s *State) countDrop(r *decode.Report) {
	k := dropKey{reason: r.DropReason}
	if r.Has&decode.HasNodeID != 0 {
		k.node = r.NodeID
	} else if n := len(r.Hops); n > 0 {
		k.node = r.Hops[n-1].NodeID
	}
	c := s.cut
	i, ok := c.dropIndex[k]
	if !ok {
		if len(c.drops) >= s.cfg.MaxDrops {
			c.otherDrops++
			return
		}
		i = len(c.drops)
		c.dropIndex[k] = i
		c.drops = append(c.drops, inference.DropStats{Node: k.node, Reason: k.reason})
	}
	c.drops[i].Count++
	c.drops[i].Flow = r.Flow
}
