package intmd

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// headerLen is the size of the 2.x headers behind the shim.
const headerLen = 12

// decode2 reads INT with a shim of 2.x: a 4-bit type (Geneve: 8), and a length in bytes that excludes the shim.
func (d *Decoder) decode2(r *decode.Report, data []byte, p *Place, shim uint32, typ uint8, length int) decode.Version {
	typ, npt, ok := d.accepts2(shim, typ, p)
	if !ok {
		r.Fail(format, "type", p.At, decode.BadType)
		return 0
	}
	p.Type = typ
	b := data[p.At+4:]
	switch {
	case npt == 3 || npt != 0 && !p.ByPort:
		r.Fail(format, "npt", p.At, decode.BadType)
		return 0
	case typ == TypeDestination:
		return d.destination(r, data, p, decode.V21, length)
	case length < headerLen:
		r.Fail(format, "length", lengthAt(p), decode.BadLength)
		return 0
	case len(b) > 0 && b[0]>>4 != 2:
		r.Fail(format, "version", p.At+4, decode.BadVersion)
		return 0
	case p.At+4+length > p.End:
		r.Fail(format, "length", lengthAt(p), decode.BadLength)
		return 0
	}
	// The shim names what INT replaced, also if the capture ends behind it.
	switch p.NPT = npt; {
	case npt == 1:
		p.Original = uint16(shim)
	case npt == 2 && d.opts.SwapNPT2:
		p.Original = uint16(shim >> 8 & 0xff)
	case npt == 2:
		p.Original = uint16(shim & 0xff)
	}
	p.Next = p.At + 4 + length
	v := decode.V21
	switch {
	case len(b) < headerLen:
		v = d.cut2(r, b, p, length)
	case typ == TypeMX && d.opts.StackInMX && d.stackInMX(b, length):
		p.Type = TypeMD
		if !d.metadata(r, b, p, length) {
			v = 0
		}
	case typ == TypeMX:
		d.instruct(r, b, length)
	default:
		if !d.metadata(r, b, p, length) {
			v = 0
		}
	}
	switch {
	case r.Err.Reason != 0:
		p.NPT = 0 // of a header that is rejected nothing stays
	case len(b) < length:
		r.Flags |= decode.Truncated
	}
	return v
}

// lengthAt is where the length is in the shim.
func lengthAt(p *Place) int {
	if p.Carrier == Geneve {
		return p.At + 3
	}
	return p.At + 1
}

// metadata reads an INT-MD header at the start of b, and the stack behind it; the two claim length bytes.
func (d *Decoder) metadata(r *decode.Report, b []byte, p *Place, length int) bool {
	be := binary.BigEndian
	plan, stride, hops, source, ok := d.checks2(r, b, p, length-headerLen)
	if !ok {
		if r.Err.Reason == decode.UnknownDomain {
			r.Unknown = b[headerLen:min(length, len(b))]
		}
		return false
	}
	word := be.Uint64(b)
	bitmap, domain := uint16(word>>16), uint16(word)
	if d.opts.LeastFirst {
		domain = 0
	}
	has := r.Has | decode.HasInstructions | decode.HasRemainingHops
	r.Instructions, r.RemainingHops = bitmap, uint8(word>>32)
	if flags := decode.Flags(word >> 57 & 7); flags != 0 { // D, E, M
		r.Flags |= (flags>>2)*decode.Discard | (flags>>1&1)*decode.HopLimit | (flags&1)*decode.MTU
	}
	if domain != 0 {
		r.DomainID = domain
		has |= decode.HasDomainID
	}
	if d.opts.LeastFirst {
		r.FlowID = uint32(be.Uint16(b[10:]))
		has |= decode.HasFlowID
	}
	r.Has = has
	if len(b) >= length && len(r.Hops) == 0 {
		plan.Stack(r.Grow(hops), b[headerLen:], stride)
		if plan.Counts != 0 {
			plan.ReadCounts(r.GrowCounts(hops), b[headerLen:], stride)
		}
	} else {
		d.Stack(r, b[headerLen:], hops, plan, stride)
	}
	if source != 0 && hops > 0 {
		words := headerLen + (hops-1)*stride + 4*plan.Words
		r.Unknown = b[min(words, len(b)):min(length, len(b))]
	}
	return true
}

// sourceBytes is how much the source alone adds for a DS instruction.
func (dom *Domain) sourceBytes(ds uint16) (n int) {
	for bit, words := range dom.SourceWords {
		if ds&(0x8000>>bit) != 0 {
			n += 4 * int(words)
		}
	}
	return n
}

// instruct reads an INT-MX header at the start of b, and the source-inserted words behind it; the two claim length
// bytes.
func (d *Decoder) instruct(r *decode.Report, b []byte, length int) {
	be := binary.BigEndian
	r.Instructions = be.Uint16(b[4:])
	r.Has |= decode.HasInstructions
	r.Flags |= decode.Flags(b[0]>>3&1) * decode.Discard
	if domain := be.Uint16(b[6:]); domain != 0 {
		r.DomainID = domain
		r.Has |= decode.HasDomainID
	}
	if n := min(length, len(b)) &^ 3; n > headerLen {
		r.SourceMetadata = b[headerLen:n]
		r.Has |= decode.HasSourceMetadata
		if d.stackInMX(b, length) {
			r.Remarks |= decode.RemarkStackInMX
		} else if be.Uint16(b[6:]) == 0 {
			r.Remarks |= decode.RemarkDomainData
		}
	}
}

// stackInMX reports whether an INT-MX header of domain 0, which has no words, is followed by the header and stack of
// INT-MD. The words of a hop must be those of the bitmap, and the stack must fill the length.
func (d *Decoder) stackInMX(b []byte, length int) bool {
	be := binary.BigEndian
	stride := 4 * int(b[2]&0x1f)
	return be.Uint16(b[6:]) == 0 && stride != 0 && length > headerLen && (length-headerLen)%stride == 0 && stride == 4*d.plans.Plan(packet.INT2, be.Uint16(b[4:])).Words
}
