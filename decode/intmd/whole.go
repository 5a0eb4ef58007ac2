package intmd

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/wire"
)

// Whole reads b, from the shim to the end of the packet, if it begins with what most packets with INT carry: INT-MD 2.x
// behind TCP or UDP, with no domain, all of it there. It gives the shim. For everything else it gives 0: then r has not
// changed, and [Decoder.Decode] is to read it.
//
// byPort is as in [Place]. Where it does not give 0, r is what Decode makes of it.
func (d *Decoder) Whole(r *decode.Report, b []byte, byPort bool) (shim uint32) {
	be := binary.BigEndian
	if len(b) < 4+headerLen || d.opts.Versions&V21 == 0 || d.opts.LeastFirst || d.opts.SwapNPT2 {
		return 0
	}
	shim = be.Uint32(b)
	length, npt := int(shim>>14&0x3fc), shim>>26&3
	word := be.Uint64(b[4:])
	// Type 1, version 2, domain 0.
	if shim>>28 != TypeMD || word>>60 != 2 || uint16(word) != 0 || npt == 3 || npt != 0 && !byPort || length+4 > len(b) {
		return 0
	}
	bitmap := uint16(word >> 16)
	plan := d.plans.Plan(wire.INT2, bitmap)
	stride, n := 4*plan.Words, length-headerLen
	if n < 0 || stride == 0 || int(word>>38&0x7c) != stride {
		return 0
	}
	count := int(uint32(n) / uint32(stride))
	if count*stride != n {
		return 0
	}
	r.Instructions, r.RemainingHops = bitmap, uint8(word>>32)
	r.Has |= decode.HasInstructions | decode.HasRemainingHops
	if flags := decode.Flags(word >> 57 & 7); flags != 0 { // D, E, M
		r.Flags |= (flags>>2)*decode.Discard | (flags>>1&1)*decode.HopLimit | (flags&1)*decode.MTU
	}
	stack := b[4+headerLen : 4+length]
	if len(r.Hops) == 0 {
		plan.Stack(r.Grow(count), stack, stride)
	} else {
		d.stack(r, stack, count, plan, stride)
	}
	return shim
}
