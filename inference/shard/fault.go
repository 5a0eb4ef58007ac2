package shard

import (
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

type faultKey struct {
	fault inference.Fault
	flow  decode.FlowKey
}

// countFault counts a digest of a flow that has a fault. As many flows are listed as path changes.
func (s *State) countFault(r *decode.Report, fault inference.Fault) {
	k, c := faultKey{fault, r.Flow}, s.cut
	i, ok := c.faultIndex[k]
	if !ok {
		if len(c.faults) >= s.cfg.MaxPathChanges {
			c.otherFaults++
			return
		}
		i = len(c.faults)
		c.faultIndex[k] = i
		c.faults = append(c.faults, inference.DigestFault{Flow: r.Flow, Fault: fault})
	}
	c.faults[i].Count++
	if fault == inference.Looping {
		c.faults[i].Node = r.NodeID
	}
}
