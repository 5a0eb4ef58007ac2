package shard

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// countLoops counts packets that came around again, among the reports that are rare. Digests that fit no path are
// counted where they are read.
func (c *Cut) countLoops(rare []*decode.Report) {
	for _, r := range rare {
		if r.Flags&decode.Loop != 0 && r.Has&decode.HasFlow != 0 {
			c.partial.AddFault(&inference.DigestFault{Flow: r.Flow, Fault: inference.Looping, Node: r.NodeID, Count: 1, First: r.Time, Last: r.Time})
		}
	}
}
