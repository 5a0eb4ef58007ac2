package intmd

import (
	"encoding/binary"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

const format = decode.INTMD

// Decoder reads INT of one domain. It is for one goroutine.
type Decoder struct {
	opts  Options
	plans packet.Cache
}

// New makes a decoder.
func New(opts Options) *Decoder { return &Decoder{opts: opts} }

// Decode reads the INT part at p.At of data into r. Hops that r holds already are those of the reporting node and
// stay behind the hops of the stack. Offsets of errors count from data[0]. Less data than the lengths claim is no
// error: the data are read, and r is marked as truncated. After an error r is unchanged except for the error.
//
// It gives the version of the headers, or 0 if they were rejected or cut. At least the four bytes of the shim must lie
// before p.IPEnd.
func (d *Decoder) Decode(r *decode.Report, data []byte, p *Place) decode.Version {
	p.Type = TypeMD
	data = data[:min(len(data), p.IPEnd)] // the rest is a trailer
	b := data[min(p.At, len(data)):]
	if len(b) < 4 {
		d.cutShim(r, b, p)
		return 0
	}
	shim := binary.BigEndian.Uint32(b)
	switch {
	case p.Carrier == Geneve:
		return d.decode2(r, data, p, shim, uint8(shim>>8), 4*int(shim&0x1f))
	case shim>>28 != 0:
		return d.decode2(r, data, p, shim, uint8(shim>>28), 4*int(shim>>16&0xff))
	}
	return d.decode1(r, data, p, uint8(shim>>24), 4*int(shim>>8&0xff))
}

// accepts1 reports whether a shim of 0.5 and 1.0 can have that type.
func (d *Decoder) accepts1(typ uint8, p *Place) bool {
	stack := uint8(TypeMD)
	if d.opts.HostINT {
		stack = typeHost
	}
	return (typ == stack || typ == TypeDestination) && p.Carrier == TCPUDP && d.opts.Versions&(V05|V10) != 0
}

// accepts2 returns the type of a shim of 2.x, and whether it is valid.
func (d *Decoder) accepts2(shim uint32, typ uint8, p *Place) (_, npt uint8, ok bool) {
	switch p.Carrier {
	case TCPUDP:
		npt = uint8(shim >> 26 & 3)
	case VXLANGPE:
		if shim>>24&0x0f != 0 { // the type is 8 bits wide in this carrier
			typ = 0
		}
	}
	return typ, npt, typ >= TypeMD && typ <= TypeMX && d.opts.Versions&V21 != 0
}

// decode1 reads INT with the shim of 0.5 and 1.0: an 8-bit type, and a length that includes the shim.
func (d *Decoder) decode1(r *decode.Report, data []byte, p *Place, typ uint8, length int) decode.Version {
	host := d.opts.HostINT
	if !d.accepts1(typ, p) {
		r.Fail(format, "type", p.At, decode.BadType)
		return 0
	}
	if typ == TypeDestination {
		p.Type = typ
		return d.destination(r, data, p, decode.V10, length-4)
	}
	if length < 12 {
		r.Fail(format, "length", p.At+2, decode.BadLength)
		return 0
	}
	if len(data)-p.At < 5 { // the version cannot be read, nor the bound that belongs to it
		if p.At+length > p.IPEnd && !p.SinkReport {
			r.Fail(format, "length", p.At+2, decode.BadLength)
			return 0
		}
		r.Flags |= decode.Truncated
		return 0
	}
	ver := data[p.At+4] >> 4
	v10 := ver == 1 || ver == 0 && d.opts.Version0
	switch {
	case host && ver == 0, ver == 0 && !d.opts.Version0 && d.opts.Versions&V05 != 0:
		return d.decode05(r, data, p, host, length)
	case v10 && !host && d.opts.Versions&V10 != 0:
		return d.decode10(r, data, p, length)
	}
	r.Fail(format, "version", p.At+4, decode.BadVersion)
	return 0
}

// decode05 reads version 0.5. Behind the stack is a tail of 4 bytes, and with Intel's shim a sequence number before.
func (d *Decoder) decode05(r *decode.Report, data []byte, p *Place, host bool, length int) decode.Version {
	be := binary.BigEndian
	around := 4 + 8 + 4 // shim, header, and the tail or, in Intel's reports, the sequence number
	if host && !p.SinkReport {
		around += 4
	}
	if length < around || !p.SinkReport && p.At+length > p.IPEnd {
		r.Fail(format, "length", p.At+2, decode.BadLength)
		return 0
	}
	if len(data)-p.At < 12 {
		return d.cut05(r, data[p.At+4:], p, length, around)
	}
	h := data[p.At+4 : p.At+12 : p.At+12]
	bitmap := be.Uint16(h[4:])
	if !checks05(r, h, p, bitmap, length-around) {
		return 0
	}
	words, total := int(h[1]&0x1f), h[3]
	r.Instructions = bitmap
	r.Has |= decode.HasInstructions
	r.Flags |= decode.Flags(h[0]>>1&1)*decode.Copy | decode.Flags(h[0]&1)*decode.HopLimit
	d.Stack(r, data[p.At+12:], int(total), d.plans.Plan(packet.INT05, bitmap), 4*words)
	if at := p.At + 12 + 4*words*int(total); host && len(data)-at >= 4 {
		r.SourceSeq = be.Uint32(data[at:])
		r.Has |= decode.HasSourceSeq
	}
	return accept(r, data, p, length, decode.V05)
}

// decode10 reads version 1.0.
func (d *Decoder) decode10(r *decode.Report, data []byte, p *Place, length int) decode.Version {
	be := binary.BigEndian
	if p.At+length > p.End {
		r.Fail(format, "length", p.At+2, decode.BadLength)
		return 0
	}
	if len(data)-p.At < 12 {
		return d.cut10(r, data[p.At+4:], p, length)
	}
	h := data[p.At+4 : p.At+12 : p.At+12]
	bitmap := be.Uint16(h[4:])
	plan, hops, ok := d.checks10(r, h, p, bitmap, length-12)
	if !ok {
		return 0
	}
	r.Instructions, r.RemainingHops = bitmap, h[3]
	r.Has |= decode.HasInstructions | decode.HasRemainingHops
	r.Flags |= decode.Flags(h[0]>>1&1)*decode.Copy | decode.Flags(h[0]&1)*decode.HopLimit | decode.Flags(h[1]>>7)*decode.MTU
	if d.opts.WideTimes {
		r.SourceSeq = uint32(be.Uint16(h[6:]))
		r.Has |= decode.HasSourceSeq
	}
	d.Stack(r, data[p.At+12:], hops, plan, 4*plan.Words)
	return accept(r, data, p, length, decode.V10)
}

// checks10 holds the fields of a header of 1.0 against each other and against the size of its stack. It returns the
// plan of its bitmap and the number of blocks.
func (d *Decoder) checks10(r *decode.Report, h []byte, p *Place, bitmap uint16, stack int) (plan *packet.Plan, hops int, ok bool) {
	layout := packet.INT10
	if d.opts.WideTimes {
		layout = packet.INT10Wide
		if bitmap&0xf000 == 0x3000 {
			r.Fail(format, "instructions", p.At+8, decode.BadWidth)
			return nil, 0, false
		}
	}
	plan = d.plans.Plan(layout, bitmap)
	stride := 4 * int(h[2]&0x1f)
	if stride != 4*plan.Words || stride == 0 && stack != 0 {
		r.Fail(format, "hop_ml", p.At+6, decode.BadWidth)
		return nil, 0, false
	}
	if stride != 0 {
		if hops = stack / stride; hops*stride != stack {
			r.Fail(format, "length", p.At+2, decode.BadStack)
			return nil, 0, false
		}
	}
	return plan, hops, true
}

// destination skips a type 2 header of length bytes behind the shim and keeps its content.
func (d *Decoder) destination(r *decode.Report, data []byte, p *Place, v decode.Version, length int) decode.Version {
	at := p.At + 4
	if length < 0 || at+length > p.End && !p.SinkReport {
		field := p.At + 2
		if v == decode.V21 {
			field = lengthAt(p)
		}
		r.Fail(format, "length", field, decode.BadLength)
		return 0
	}
	if at < min(at+length, len(data)) {
		r.Unknown = data[at:min(at+length, len(data))]
		r.Remarks |= decode.RemarkMoreData
	}
	return accept(r, data, p, 4+length, v)
}

// accept notes where an INT part of length bytes ends, and marks r if that is behind the captured bytes.
func accept(r *decode.Report, data []byte, p *Place, length int, v decode.Version) decode.Version {
	p.Next = p.At + length
	if p.Next > len(data) {
		r.Flags |= decode.Truncated
	}
	return v
}

// Plan returns the plan of a bitmap. It is valid until the next call.
func (d *Decoder) Plan(l packet.Layout, bitmap uint16) *packet.Plan { return d.plans.Plan(l, bitmap) }

// Stack reads n blocks from b, newest first, or as many as were captured, the last one in part. They come before the hops
// that r has. A block that was cut before its first value is no hop.
func (d *Decoder) Stack(r *decode.Report, b []byte, n int, plan *packet.Plan, stride int) {
	r.Announced = uint8(min(n, 255))
	if n > 0 && len(b) < n*stride {
		if n = len(b) / stride; plan.Begun(len(b) - n*stride) {
			n++
		}
	}
	local := len(r.Hops)
	hops := r.Grow(n)
	if local > 0 {
		copy(hops[n:], hops[:local])
	}
	plan.Stack(hops[:n], b, stride)
	if plan.Counts != 0 {
		plan.ReadCounts(r.GrowCounts(n), b, stride)
	}
}
