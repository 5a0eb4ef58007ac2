package intmd

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

// This file reads shims and headers that the capture ends in. Their captured bytes count: they can be enough to
// reject a header, and otherwise its values are those of a whole one. A check of which a byte is missing ends the
// reading.

// cutShim reads the less than four bytes b of a shim.
func (d *Decoder) cutShim(r *decode.Report, b []byte, p *Place) {
	if len(b) == 0 || p.Carrier == Geneve { // the finder of the option has seen all of it
		r.Flags |= decode.Truncated
		return
	}
	var typ, npt uint8
	at, length, least, end := p.At+1, 4+headerLen, 4+headerLen, p.End // length and least include the shim
	ok := false
	if b[0]>>4 == 0 {
		typ, at, length, least = b[0], p.At+2, 12, 12
		if ok = d.accepts1(typ, p); typ != TypeDestination {
			end = p.IPEnd // 0.5 is possible
		}
		if p.SinkReport {
			end = math.MaxInt
		}
		if len(b) > 2 {
			length = 4 * int(b[2])
		}
	} else {
		typ, npt, ok = d.accepts2(uint32(b[0])<<24, b[0]>>4, p)
		if len(b) > 1 {
			length = 4 + 4*int(b[1])
		}
	}
	if typ == TypeDestination {
		least = 4
	}
	if ok && (typ == TypeDestination || b[0]>>4 != 0) {
		p.Type = typ
	}
	switch {
	case !ok:
		r.Fail(format, "type", p.At, decode.BadType)
	case npt == 3 || npt != 0 && !p.ByPort:
		r.Fail(format, "npt", p.At, decode.BadType)
	case len(b) > at-p.At && (length < least || p.At+length > end):
		r.Fail(format, "length", at, decode.BadLength)
	default:
		r.Flags |= decode.Truncated
	}
}

// cut05 reads h, the first bytes of a header of 0.5, at least one. The header has length bytes with its shim, of
// which around are no stack.
func (d *Decoder) cut05(r *decode.Report, h []byte, p *Place, length, around int) decode.Version {
	if len(h) >= 6 {
		bitmap := binary.BigEndian.Uint16(h[4:])
		if !checks05(r, h, p, bitmap, length-around) {
			return 0
		}
		r.Instructions = bitmap
		r.Has |= decode.HasInstructions
		r.Announced = h[3]
	}
	r.Flags |= decode.Flags(h[0]>>1&1)*decode.Copy | decode.Flags(h[0]&1)*decode.HopLimit | decode.Truncated
	p.Next = p.At + length
	return decode.V05
}

// checks05 holds the fields of a header of 0.5 against each other and against the size of its stack.
func checks05(r *decode.Report, h []byte, p *Place, bitmap uint16, stack int) bool {
	words, limit, total := int(h[1]&0x1f), h[2], h[3]
	switch {
	case words == 0 || words != bits.OnesCount16(bitmap):
		r.Fail(format, "ins_cnt", p.At+5, decode.BadWidth)
	case total > limit:
		r.Fail(format, "total_hop_cnt", p.At+7, decode.BadCount)
	case stack != 4*words*int(total):
		r.Fail(format, "length", p.At+2, decode.BadLength)
	default:
		return true
	}
	return false
}

// cut10 reads the first bytes h, at least one, of a header of 1.0 that has length bytes with its shim.
func (d *Decoder) cut10(r *decode.Report, h []byte, p *Place, length int) decode.Version {
	if len(h) >= 6 {
		bitmap := binary.BigEndian.Uint16(h[4:])
		_, hops, ok := d.checks10(r, h, p, bitmap, length-12)
		if !ok {
			return 0
		}
		r.Instructions = bitmap
		r.Has |= decode.HasInstructions
		r.Announced = uint8(min(hops, 255))
	}
	r.Flags |= decode.Flags(h[0]>>1&1)*decode.Copy | decode.Flags(h[0]&1)*decode.HopLimit | decode.Truncated
	if len(h) >= 2 {
		r.Flags |= decode.Flags(h[1]>>7) * decode.MTU
	}
	if len(h) >= 4 {
		r.RemainingHops = h[3]
		r.Has |= decode.HasRemainingHops
	}
	p.Next = p.At + length
	return decode.V10
}

// cut2 reads the first bytes h of a header of 2.x, of which length are announced. It returns 0 if h is empty, or if
// the header is rejected.
func (d *Decoder) cut2(r *decode.Report, h []byte, p *Place, length int) decode.Version {
	if len(h) == 0 {
		r.Flags |= decode.Truncated
		return 0
	}
	var whole [headerLen]byte
	copy(whole[:], h)
	be := binary.BigEndian
	bitmap, domain := be.Uint16(whole[4:]), be.Uint16(whole[6:])
	md := p.Type == TypeMD
	reversed := md && d.opts.LeastFirst
	if reversed {
		domain = 0
	}
	if md && (len(h) >= 10 || len(h) >= 8 && domain == 0 || len(h) >= 6 && reversed) {
		_, _, hops, _, ok := d.checks2(r, whole[:], p, length-headerLen)
		if !ok {
			return 0
		}
		r.Announced = uint8(min(hops, 255))
	}
	r.Flags |= decode.Flags(h[0]>>3&1)*decode.Discard | decode.Truncated
	if md {
		r.Flags |= decode.Flags(h[0]>>2&1)*decode.HopLimit | decode.Flags(h[0]>>1&1)*decode.MTU
		if len(h) >= 4 {
			r.RemainingHops = h[3]
			r.Has |= decode.HasRemainingHops
		}
	}
	if len(h) >= 6 {
		r.Instructions = bitmap
		r.Has |= decode.HasInstructions
	}
	if len(h) >= 8 && domain != 0 {
		r.DomainID = domain
		r.Has |= decode.HasDomainID
	}
	return decode.V21
}

// checks2 holds the fields of an INT-MD header of 2.x against each other and against n, the size of its stack. It
// returns the plan of its bitmap, the size of a block, the number of blocks, and how much longer the last one is.
func (d *Decoder) checks2(r *decode.Report, h []byte, p *Place, n int) (plan *packet.Plan, stride, hops, source int, ok bool) {
	be := binary.BigEndian
	// Ver 4, D 1, E 1, M 1, reserved 12, Hop ML 5, remaining hops 8, bitmap 16, domain 16
	word := be.Uint64(h)
	bitmap, domain := uint16(word>>16), uint16(word)
	stride = 4 * int(word>>40&0x1f)
	layout := packet.INT2
	if d.opts.LeastFirst {
		layout, domain = packet.INT2Reversed, 0
	}
	about := d.opts.domain(domain)
	if about != nil {
		layout = about.Layout
	}
	plan = d.plans.Plan(layout, bitmap)
	width := 4 * plan.Words
	if domain != 0 {
		if ds := be.Uint16(h[8:]); ds != 0 && about != nil {
			source = about.sourceBytes(ds)
			width = max(width, stride) // what Hop ML has above the bitmap belongs to the domain
		} else if ds != 0 {
			r.Fail(format, "domain_id", p.At+4+6, decode.UnknownDomain)
			return nil, 0, 0, 0, false
		}
	}
	if stride != width || stride == 0 && n != 0 {
		r.Fail(format, "hop_ml", p.At+4+2, decode.BadWidth)
		return nil, 0, 0, 0, false
	}
	if n != 0 {
		// Both fit into 32 bits, whose division takes half the time.
		hops = int(uint32(n-source) / uint32(stride))
		if n < source+stride || hops*stride+source != n {
			r.Fail(format, "length", lengthAt(p), decode.BadStack)
			return nil, 0, 0, 0, false
		}
	}
	return plan, stride, hops, source, true
}
