package wire

import (
	"math"

	"github.com/hopscope/hopscope/decode"
)

const max24 = 1<<24 - 1

// The functions below store a value that is not all ones, which stands for "not available" (INT v2.1 §4.7), and mark
// it as present.

// SetWord stores v in *to, which is the field f of h.
func SetWord(h *decode.Hop, f decode.HopField, to *uint32, v uint32) {
	if v != math.MaxUint32 {
		*to = v
		h.Has |= f
	}
}

// SetTime64 stores v in *to, which is the field f of h.
func SetTime64(h *decode.Hop, f decode.HopField, to *uint64, v uint64) {
	if v != math.MaxUint64 {
		*to = v
		h.Has |= f
		h.TimeBits = 64
	}
}

// SetInterfaces stores the ingress and egress interface of level 1, 16 bits each.
func SetInterfaces(h *decode.Hop, v uint32) {
	if in := uint16(v >> 16); in != math.MaxUint16 {
		h.IngressIf = in
		h.Has |= decode.HopIngressIf
	}
	if out := uint16(v); out != math.MaxUint16 {
		h.EgressIf = out
		h.Has |= decode.HopEgressIf
	}
}

// SetQueue stores an 8-bit queue id and a 24-bit occupancy.
func SetQueue(h *decode.Hop, v uint32) {
	SetQueueID(h, uint8(v>>24))
	if v&max24 != max24 {
		h.QueueOccupancy = v & max24
		h.Has |= decode.HopQueueOccupancy
	}
}

// SetQueueID stores a queue id unless h has one already.
func SetQueueID(h *decode.Hop, id uint8) {
	if id != math.MaxUint8 && h.Has&decode.HopQueueID == 0 {
		h.QueueID = id
		h.Has |= decode.HopQueueID
	}
}

// SetBuffer stores an 8-bit buffer id and a 24-bit occupancy.
func SetBuffer(h *decode.Hop, v uint32) {
	if id := uint8(v >> 24); id != math.MaxUint8 {
		h.BufferID = id
		h.Has |= decode.HopBufferID
	}
	if v&max24 != max24 {
		h.BufferOccupancy = v & max24
		h.Has |= decode.HopBufferOccupancy
	}
}
