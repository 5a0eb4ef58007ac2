package packet

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/decode"
)

// AppendBlock appends the block of one node: the values of h that bitmap asks for, in the order of the wire. Values
// are cut to the width that they have there. A value that h has not got is all ones. So are the words of undefined
// bits, and the checksum complement, which the caller fills in.
func AppendBlock(dst []byte, l Layout, bitmap uint16, h *decode.Hop) []byte {
	return AppendCounted(dst, l, bitmap, h, nil)
}

// AppendCounted is AppendBlock with counts, for layouts that have them; nil is none.
func AppendCounted(dst []byte, l Layout, bitmap uint16, h *decode.Hop, c *decode.HopCounts) []byte {
	at, given := len(dst), bitmap
	if l == INT2Reversed {
		l, bitmap = INT2, bits.Reverse16(bitmap)
	}
	for bitmap != 0 {
		i := bits.LeadingZeros16(bitmap)
		bitmap &^= 0x8000 >> i
		it := reserved
		if i < len(items[l]) {
			it = items[l][i]
		}
		dst = appendItem(dst, it, h)
		if it == reserved && doubled[l]&(0x8000>>i) != 0 {
			dst = appendItem(dst, it, h)
		}
	}
	if asked := counts(l, given); c != nil && asked != 0 {
		at += 4 * Words(l, given&^(0xffff>>firstCount))
		for k, n := range c.All() {
			if asked>>k&1 == 0 {
				continue
			}
			if c.Has>>k&1 != 0 {
				binary.BigEndian.PutUint32(dst[at:], *n)
			}
			at += 4
		}
	}
	return dst
}

// AppendStack appends a block for each hop, the last one first: hops are in the order of the path.
func AppendStack(dst []byte, l Layout, bitmap uint16, hops []decode.Hop) []byte {
	n := len(dst)
	if bitmap == 0xf000 && l != INT2Reversed { // what senders ask for most
		dst = slices.Grow(dst, 16*len(hops))[:n+16*len(hops)]
		if nodeLatencyQueue(dst[n:], hops) {
			return dst
		}
		dst = dst[:n]
	}
	for i := len(hops) - 1; i >= 0; i-- {
		dst = AppendBlock(dst, l, bitmap, &hops[i])
	}
	return dst
}

// nodeLatencyQueue writes the stack of bitmap 0xf000 to b, if the hops have all of its values.
func nodeLatencyQueue(b []byte, hops []decode.Hop) bool {
	const all = decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | decode.HopLatency | decode.HopQueueID | decode.HopQueueOccupancy
	be := binary.BigEndian
	for i := len(hops) - 1; i >= 0; i-- {
		h := &hops[i]
		if h.Has&all != all || len(b) < 16 {
			return false
		}
		be.PutUint64(b, uint64(h.NodeID)<<32|uint64(h.IngressIf)<<16|uint64(h.EgressIf))
		be.PutUint64(b[8:], uint64(h.Latency)<<32|uint64(h.QueueID)<<24|uint64(h.QueueOccupancy&max24))
		b = b[16:]
	}
	return true
}

func appendItem(dst []byte, it item, h *decode.Hop) []byte {
	be := binary.BigEndian
	switch it {
	case nodeID:
		return be.AppendUint32(dst, orOnes32(h, decode.HopNodeID, h.NodeID))
	case interfaces:
		return be.AppendUint32(dst, orOnes16(h, decode.HopIngressIf, uint32(h.IngressIf))<<16|orOnes16(h, decode.HopEgressIf, uint32(h.EgressIf)))
	case latency:
		return be.AppendUint32(dst, orOnes32(h, decode.HopLatency, h.Latency))
	case queue:
		return be.AppendUint32(dst, eightAnd24(h, decode.HopQueueID, h.QueueID, decode.HopQueueOccupancy, h.QueueOccupancy))
	case ingressTime:
		return be.AppendUint32(dst, orOnes32(h, decode.HopIngressTime, uint32(h.IngressTime)))
	case egressTime:
		return be.AppendUint32(dst, orOnes32(h, decode.HopEgressTime, uint32(h.EgressTime)))
	case ingressTime64:
		return be.AppendUint64(dst, orOnes64(h, decode.HopIngressTime, h.IngressTime))
	case egressTime64:
		return be.AppendUint64(dst, orOnes64(h, decode.HopEgressTime, h.EgressTime))
	case l2Interfaces:
		dst = be.AppendUint32(dst, orOnes32(h, decode.HopL2IngressIf, h.L2IngressIf))
		return be.AppendUint32(dst, orOnes32(h, decode.HopL2EgressIf, h.L2EgressIf))
	case l2Interfaces16:
		return be.AppendUint32(dst, orOnes16(h, decode.HopL2IngressIf, h.L2IngressIf)<<16|orOnes16(h, decode.HopL2EgressIf, h.L2EgressIf))
	case txUtilization:
		return be.AppendUint32(dst, orOnes32(h, decode.HopTxUtilization, h.TxUtilization))
	case buffer:
		return be.AppendUint32(dst, eightAnd24(h, decode.HopBufferID, h.BufferID, decode.HopBufferOccupancy, h.BufferOccupancy))
	case congestion:
		return be.AppendUint32(dst, eightAnd24(h, decode.HopQueueID, h.QueueID, decode.HopQueueCongestion, h.QueueCongestion))
	}
	return be.AppendUint32(dst, math.MaxUint32)
}

// orOnes64 and its like return the value of the field f of h as it is written: all ones if h lacks it.
func orOnes64(h *decode.Hop, f decode.HopField, v uint64) uint64 {
	if h.Has&f == 0 {
		return math.MaxUint64
	}
	return v
}

func orOnes32(h *decode.Hop, f decode.HopField, v uint32) uint32 {
	if h.Has&f == 0 {
		return math.MaxUint32
	}
	return v
}

func orOnes16(h *decode.Hop, f decode.HopField, v uint32) uint32 {
	if h.Has&f == 0 {
		return math.MaxUint16
	}
	return v & math.MaxUint16
}

// eightAnd24 puts an 8-bit id before a 24-bit value.
func eightAnd24(h *decode.Hop, idField decode.HopField, id uint8, field decode.HopField, v uint32) uint32 {
	if h.Has&idField == 0 {
		id = math.MaxUint8
	}
	if h.Has&field == 0 {
		v = max24
	}
	return uint32(id)<<24 | v&max24
}
