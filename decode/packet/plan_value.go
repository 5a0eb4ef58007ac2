package packet

import (
	"math"

	"github.com/hopscope/hopscope/decode"
)

const max24 = 1<<24 - 1

// The setters below store a value whose field is already marked as present. They undo both if the value is all ones,
// which means "not available" (INT v2.1 §4.7). Each half of an item counts by itself. They are small enough to be
// inlined, and a valid value passes one untaken branch.

func setNode(h *decode.Hop, v uint32) {
	h.NodeID = v
	if v == math.MaxUint32 {
		h.NodeID = 0
		h.Has &^= decode.HopNodeID
	}
}

func setInterfaces(h *decode.Hop, v uint32) {
	in, out := uint16(v>>16), uint16(v)
	h.IngressIf, h.EgressIf = in, out
	if in == math.MaxUint16 {
		h.IngressIf = 0
		h.Has &^= decode.HopIngressIf
	}
	if out == math.MaxUint16 {
		h.EgressIf = 0
		h.Has &^= decode.HopEgressIf
	}
}

func setLatency(h *decode.Hop, v uint32) {
	h.Latency = v
	if v == math.MaxUint32 {
		h.Latency = 0
		h.Has &^= decode.HopLatency
	}
}

func setQueue(h *decode.Hop, v uint32) {
	id, occupancy := uint8(v>>24), v&max24
	h.QueueID, h.QueueOccupancy = id, occupancy
	if id == math.MaxUint8 {
		h.QueueID = 0
		h.Has &^= decode.HopQueueID
	}
	if occupancy == max24 {
		h.QueueOccupancy = 0
		h.Has &^= decode.HopQueueOccupancy
	}
}

func setIngressTime(h *decode.Hop, v uint64) {
	h.IngressTime = v
	if v == math.MaxUint64 {
		h.IngressTime = 0
		h.Has &^= decode.HopIngressTime
	}
}

func setEgressTime(h *decode.Hop, v uint64) {
	h.EgressTime = v
	if v == math.MaxUint64 {
		h.EgressTime = 0
		h.Has &^= decode.HopEgressTime
	}
}

func setL2Interfaces(h *decode.Hop, in, out uint32) {
	h.L2IngressIf, h.L2EgressIf = in, out
	if in == math.MaxUint32 {
		h.L2IngressIf = 0
		h.Has &^= decode.HopL2IngressIf
	}
	if out == math.MaxUint32 {
		h.L2EgressIf = 0
		h.Has &^= decode.HopL2EgressIf
	}
}

func setTxUtilization(h *decode.Hop, v uint32) {
	h.TxUtilization = v
	if v == math.MaxUint32 {
		h.TxUtilization = 0
		h.Has &^= decode.HopTxUtilization
	}
}

func setBuffer(h *decode.Hop, v uint32) {
	id, occupancy := uint8(v>>24), v&max24
	h.BufferID, h.BufferOccupancy = id, occupancy
	if id == math.MaxUint8 {
		h.BufferID = 0
		h.Has &^= decode.HopBufferID
	}
	if occupancy == max24 {
		h.BufferOccupancy = 0
		h.Has &^= decode.HopBufferOccupancy
	}
}

func setCongestion(h *decode.Hop, v uint32) {
	if h.QueueCongestion = v & max24; h.QueueCongestion == max24 {
		h.QueueCongestion = 0
		h.Has &^= decode.HopQueueCongestion
	}
}

// The functions below add a value to a hop unless it is all ones. They are for headers outside of stacks.

// AddWord stores v in *to, which is the field f of h.
func AddWord(h *decode.Hop, f decode.HopField, to *uint32, v uint32) {
	if v != math.MaxUint32 {
		*to = v
		h.Has |= f
	}
}

// AddTime32 stores v in *to, which is the field f of h.
func AddTime32(h *decode.Hop, f decode.HopField, to *uint64, v uint32) {
	if v != math.MaxUint32 {
		*to = uint64(v)
		h.Has |= f
		h.TimeBits = 32
	}
}

// AddTime64 stores v in *to, which is the field f of h.
func AddTime64(h *decode.Hop, f decode.HopField, to *uint64, v uint64) {
	if v != math.MaxUint64 {
		*to = v
		h.Has |= f
		h.TimeBits = 64
	}
}

// AddInterfaces stores the ingress and egress interface of level 1, 16 bits each.
func AddInterfaces(h *decode.Hop, v uint32) {
	h.Has |= decode.HopIngressIf | decode.HopEgressIf
	setInterfaces(h, v)
}

// AddQueue stores an 8-bit queue id and a 24-bit occupancy.
func AddQueue(h *decode.Hop, v uint32) {
	h.Has |= decode.HopQueueID | decode.HopQueueOccupancy
	setQueue(h, v)
}

// AddQueueID stores a queue id unless h has one already.
func AddQueueID(h *decode.Hop, id uint8) {
	if id != math.MaxUint8 && h.Has&decode.HopQueueID == 0 {
		h.QueueID = id
		h.Has |= decode.HopQueueID
	}
}

// AddBuffer stores an 8-bit buffer id and a 24-bit occupancy.
func AddBuffer(h *decode.Hop, v uint32) {
	h.Has |= decode.HopBufferID | decode.HopBufferOccupancy
	setBuffer(h, v)
}
