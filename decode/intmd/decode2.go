package intmd

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/wire"
)

// headerLen is the size of the 2.x headers behind the shim.
const headerLen = 12

// decode2 reads what has a shim of 2.x: a 4-bit type (Geneve: 8), and a length in bytes that excludes the shim.
func (d *Decoder) decode2(r *decode.Report, data []byte, p *Place, typ uint8, length int) decode.Version {
	s := data[p.At : p.At+4 : p.At+4]
	lengthAt, npt := p.At+1, uint8(0)
	switch p.Carrier {
	case TCPUDP:
		npt = s[0] >> 2 & 3
	case VXLANGPE:
		if s[0]&0x0f != 0 { // the type is 8 bits wide in this carrier
			typ = 0
		}
	case Geneve:
		lengthAt = p.At + 3
	}
	switch {
	case typ < TypeMD || typ > TypeMX || d.opts.Versions&V21 == 0:
		r.Fail(format, "type", p.At, decode.BadType)
		return 0
	case npt == 3 || npt != 0 && !p.ByPort:
		r.Fail(format, "npt", p.At, decode.BadType)
		return 0
	}
	if typ == TypeDestination {
		return d.destination(r, data, p, decode.V21, length)
	}
	if length < headerLen {
		r.Fail(format, "length", lengthAt, decode.BadLength)
		return 0
	}
	if len(data)-p.At > 4 && data[p.At+4]>>4 != 2 {
		r.Fail(format, "version", p.At+4, decode.BadVersion)
		return 0
	}
	if p.At+4+length > p.End {
		r.Fail(format, "length", lengthAt, decode.BadLength)
		return 0
	}
	if len(data)-p.At < 4+headerLen {
		r.Flags |= decode.Truncated
		return 0
	}
	h := data[p.At+4 : p.At+4+headerLen : p.At+4+headerLen]
	ok := false
	if typ == TypeMX {
		ok = d.instruct(r, data, h, p.At+16, length-headerLen)
	} else {
		ok = d.metadata(r, data, h, p.At+4, length-headerLen, lengthAt)
	}
	if !ok {
		return 0
	}
	if npt != 0 {
		p.NPT = npt
		switch {
		case npt == 1:
			p.Original = binary.BigEndian.Uint16(s[2:])
		case d.opts.SwapNPT2:
			p.Original = uint16(s[2])
		default:
			p.Original = uint16(s[3])
		}
	}
	return accept(r, data, p, 4+length, decode.V21)
}

// metadata reads an INT-MD header h, which is at data[at], and the stack behind it.
func (d *Decoder) metadata(r *decode.Report, data, h []byte, at, stack, lengthAt int) bool {
	be := binary.BigEndian
	stride := 4 * int(h[2]&0x1f)
	bitmap, domain, ds := be.Uint16(h[4:]), be.Uint16(h[6:]), be.Uint16(h[8:])
	layout := wire.INT2
	if d.opts.LeastFirst {
		layout, domain = wire.INT2Reversed, 0
	}
	plan := d.plans.Plan(layout, bitmap)
	source := 0
	if domain != 0 && ds != 0 {
		var known bool
		if source, known = d.sourceBytes(domain, ds); !known {
			r.Unknown = data[at+headerLen : min(at+headerLen+stack, len(data))]
			r.Fail(format, "domain_id", at+6, decode.UnknownDomain)
			return false
		}
		if stride < 4*plan.Words {
			r.Fail(format, "hop_ml", at+2, decode.BadWidth)
			return false
		}
	} else if stride != 4*plan.Words {
		r.Fail(format, "hop_ml", at+2, decode.BadWidth)
		return false
	}
	hops := 0
	if stride != 0 {
		if stack != 0 {
			hops = (stack - source) / stride
		}
		if stack != 0 && (stack < source+stride || hops*stride+source != stack) {
			r.Fail(format, "length", lengthAt, decode.BadStack)
			return false
		}
	} else if stack != 0 {
		r.Fail(format, "hop_ml", at+2, decode.BadWidth)
		return false
	}
	r.Instructions, r.RemainingHops = bitmap, h[3]
	r.Has |= decode.HasInstructions | decode.HasRemainingHops
	r.Flags |= decode.Flags(h[0]>>3&1)*decode.Discard | decode.Flags(h[0]>>2&1)*decode.HopLimit | decode.Flags(h[0]>>1&1)*decode.MTU
	if domain != 0 {
		r.DomainID = domain
		r.Has |= decode.HasDomainID
	}
	if d.opts.LeastFirst {
		r.FlowID = uint32(be.Uint16(h[10:]))
		r.Has |= decode.HasFlowID
	}
	d.stack(r, data[at+headerLen:], hops, plan, stride)
	if source != 0 && hops > 0 {
		words := at + headerLen + (hops-1)*stride + 4*plan.Words
		r.Unknown = data[min(words, len(data)):min(at+headerLen+stack, len(data))]
	}
	return true
}

// sourceBytes is how much the source alone adds in the given domain.
func (d *Decoder) sourceBytes(id, ds uint16) (n int, known bool) {
	for i := range d.opts.Domains {
		if dom := &d.opts.Domains[i]; dom.ID == id {
			for bit, words := range dom.SourceWords {
				if ds&(0x8000>>bit) != 0 {
					n += 4 * int(words)
				}
			}
			return n, true
		}
	}
	return 0, false
}

// instruct reads an INT-MX header h and n bytes of source-inserted words at data[at].
func (d *Decoder) instruct(r *decode.Report, data, h []byte, at, n int) bool {
	be := binary.BigEndian
	n = min(n, (len(data)-at)&^3)
	r.Instructions = be.Uint16(h[4:])
	r.Has |= decode.HasInstructions
	r.Flags |= decode.Flags(h[0]>>3&1) * decode.Discard
	if domain := be.Uint16(h[6:]); domain != 0 {
		r.DomainID = domain
		r.Has |= decode.HasDomainID
	}
	if n > 0 {
		r.SourceMetadata = data[at : at+n]
		r.Has |= decode.HasSourceMetadata
	}
	return true
}
