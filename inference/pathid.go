package inference

import (
	"math/bits"

	"github.com/hopscope/hopscope/decode"
)

// PathID hashes the nodes and interfaces of a path in order. It is the same in every process, and never 0. Logical
// interfaces count where ports are not reported: packets that begin to report both take no other path.
func PathID(hops []decode.Hop) uint64 {
	const step, mul = 0x9e3779b97f4a7c15, 0xe7037ed1a0b428db
	id, k := uint64(len(hops)), uint64(step)
	for i := range hops {
		h := &hops[i]
		x := uint64(h.NodeID)<<32 | uint64(h.IngressIf)<<16 | uint64(h.EgressIf)
		y := uint64(0)
		if h.Has&(decode.HopIngressIf|decode.HopEgressIf) == 0 {
			y = uint64(h.L2IngressIf)<<32 | uint64(h.L2EgressIf)
		}
		hi, lo := bits.Mul64(x^k, y^mul)
		id += hi ^ lo // terms do not wait for each other
		k += step
	}
	return max(id, 1)
}
