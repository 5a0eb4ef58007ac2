package telemetry

import (
	"encoding/binary"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/wire"
)

// Single reads data, the payload of a datagram, if it is what most are: one report 2.0, whole, that holds a packet or
// metadata without a domain or both. It gives what the inside starts with, and where. For everything else it gives
// false: then r is to be emptied, and read by a [Reader], which says what is wrong if something is.
//
// Where it gives true, r is what a Reader makes of data.
func Single(r *decode.Report, opts *Options, data []byte) (inner InnerType, at int, ok bool) {
	const group, fixed = 8, 12 // bytes of the group header, and of it with the first word of a report
	be := binary.BigEndian
	if len(data) < fixed || data[0]>>4 != 2 || opts.Versions&V20 == 0 {
		return 0, 0, false
	}
	first, node := be.Uint32(data), be.Uint32(data[4:])
	word := be.Uint32(data[group:])
	if 4*int(word>>16&0xff) != len(data)-fixed {
		return 0, 0, false
	}
	has := r.Has | decode.HasHWID | decode.HasNodeID | decode.HasSeq
	r.Format, r.Version = format, decode.V20
	r.HWID, r.NodeID, r.Seq = uint8(first>>22&0x3f), node, first&0x3fffff
	if !opts.NoSequence {
		r.SeqBits, r.FirstOfGroup = 22, true
	}
	r.Flags |= decode.Flags(bits.Reverse8(uint8(word & 0xf0)))
	r.Kind = kind(r.Flags)
	at = fixed
	switch word >> 28 {
	case 0:
	case 1:
		x := data[fixed:]
		if len(x) < 8 {
			return 0, 0, false
		}
		main, size := be.Uint64(x), 4*int(word>>8&0xff)
		md := uint16(main >> 48)
		if x = x[8:]; size > len(x) || md&(mdReserved0|MDDrop) != 0 || uint16(main>>32) != 0 || size != 4*wire.Words(wire.INT2, md) {
			return 0, 0, false
		}
		if md != 0 {
			metadata20(local(r), md, x[:size])
		}
		at += 8 + size
	default:
		return 0, 0, false
	}
	r.Has = has
	switch in := word >> 24 & 0x0f; {
	case in >= 3 && in <= 5:
		return InnerEthernet + InnerType(in-3), at, true
	case in == 0 && at == len(data):
		return InnerNone, at, true
	}
	return 0, 0, false
}
