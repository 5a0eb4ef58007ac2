package ipfix

import (
	"encoding/binary"
	"strconv"

	"github.com/hopscope/hopscope/decode"
)

// The ids of the sets in which chips of Broadcom report drops. No template of them is ever sent.
const (
	Tomahawk5 = 0x1234
	Tomahawk6 = 0x1239
)

// Drop is the record of a Broadcom chip about a packet that it dropped.
type Drop struct {
	Seconds, Nanos  uint32 // of the observation
	Switch          uint32 // 0 where the switch has none
	Egress, Ingress uint16 // the chip's numbers of the ports, module above port; an egress of 0 is none
	Reason          uint8  // see [ReasonName]
	HasReason       bool   // a Tomahawk 5 has no code for reason 0
	Metadata        uint16
	Queue           uint8  // packed with colour and probability, in a way that is not known
	Frame           []byte // from its MAC addresses on, perhaps cut
	FrameAt         int    // in the data
}

// Reasons are numbered as by a Tomahawk 6. Those below mmu are of the ingress, mmuEnd and above of the egress.
const (
	ingressEnd = 0x79
	mmu        = 0x90
	mmuEnd     = 0x98
)

// ReasonName returns the name of a drop reason of a Broadcom chip: the stage, and the name of the number there, if
// known.
func ReasonName(reason uint8) string {
	switch {
	case reason == 0x10:
		return "ingress ACL"
	case reason == 0x1a:
		return "L3 destination discard"
	case reason == mmu+1:
		return "MMU, ingress priority group"
	case reason == mmu+3:
		return "MMU, egress port"
	case reason < ingressEnd:
		return "ingress reason " + strconv.Itoa(int(reason))
	case reason >= mmu && reason < mmuEnd:
		return "MMU reason " + strconv.Itoa(int(reason-mmu))
	case reason >= mmuEnd:
		return "egress reason " + strconv.Itoa(int(reason-mmuEnd))
	}
	return "unknown reason " + strconv.Itoa(int(reason))
}

// broadcomLen is the length of the record before the frame.
const broadcomLen = 24

// ReadDrop reads the set of a message that has nothing else. Offsets of errors count as those of the set.
func ReadDrop(d *Drop, s *Set, alone bool) (e decode.Error) {
	be, b := binary.BigEndian, s.Data
	fail := func(field string, at int, reason decode.Reason) decode.Error {
		return decode.Error{Format: decode.IPFIX, Field: field, Offset: s.At + at, Reason: reason}
	}
	switch {
	case !alone:
		return fail("set_length", -2, decode.BadLength)
	case len(b) < broadcomLen:
		return fail("drop", 0, decode.Short)
	case b[21] != 0xff:
		return fail("sampled_marker", 21, decode.BadType)
	case int(be.Uint16(b[22:])) != len(b)-broadcomLen:
		return fail("sampled_length", 22, decode.BadLength)
	}
	*d = Drop{Seconds: be.Uint32(b), Nanos: be.Uint32(b[4:]), Switch: be.Uint32(b[8:]), Egress: be.Uint16(b[12:]), Ingress: be.Uint16(b[14:]),
		Reason: b[16], HasReason: true, Metadata: be.Uint16(b[18:]), Queue: b[20], Frame: b[broadcomLen:], FrameAt: s.At + broadcomLen}
	if s.ID == Tomahawk5 {
		if d.Reason = min(b[16], mmu-1); b[16] == 0 && b[17] != 0 {
			d.Reason = mmu + min(b[17], mmuEnd-mmu-1)
		}
		d.HasReason = d.Reason != 0
	}
	return e
}
