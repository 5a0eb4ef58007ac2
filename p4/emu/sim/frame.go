package sim

import (
	"encoding/binary"
	"slices"

	"github.com/hopscope/hopscope/decode/intmd"
	headers "github.com/hopscope/hopscope/decode/packet"
)

var be = binary.BigEndian

// Frame is a frame with an IP packet in it.
type Frame struct {
	Buf  []byte // its first bytes
	L3   int    // where the IP header is
	Size int    // of the whole frame
	V6   bool

	L4    int   // where the outermost TCP or UDP header is
	Proto uint8 // its protocol
}

// Insert makes room for k bytes at off. The room holds whatever was there.
func (p *Frame) Insert(off, k int) []byte {
	old := len(p.Buf)
	p.Buf = slices.Grow(p.Buf, k)[:old+k]
	copy(p.Buf[off+k:], p.Buf[off:old])
	p.Size += k
	return p.Buf[off : off+k]
}

// Remove takes out k bytes at off.
func (p *Frame) Remove(off, k int) {
	p.Buf = append(p.Buf[:off], p.Buf[off+k:]...)
	p.Size -= k
}

// ResizeIP adds delta to the length field of the IP header.
func (p *Frame) ResizeIP(delta int) {
	h := p.Buf[p.L3:]
	if p.V6 {
		be.PutUint16(h[4:], uint16(int(be.Uint16(h[4:]))+delta))
		return
	}
	old := be.Uint16(h[2:])
	be.PutUint16(h[2:], uint16(int(old)+delta))
	headers.UpdateChecksum(h[10:12], uint64(old), uint64(be.Uint16(h[2:])))
}

// DSCP reads the DSCP of the IP header, and SetDSCP writes it.
func (p *Frame) DSCP() uint8 {
	h := p.Buf[p.L3:]
	if p.V6 {
		return h[0]<<2&0x3c | h[1]>>6
	}
	return h[1] >> 2
}

func (p *Frame) SetDSCP(v uint8) {
	h := p.Buf[p.L3:]
	if p.V6 {
		h[0], h[1] = h[0]&0xf0|v>>2, h[1]&0x3f|v<<6
		return
	}
	old := be.Uint16(h)
	h[1] = v<<2 | h[1]&3
	headers.UpdateChecksum(h[10:12], uint64(old), uint64(be.Uint16(h)))
}

// SetProto writes the IP protocol, or the next header.
func (p *Frame) SetProto(v uint8) {
	h := p.Buf[p.L3:]
	if p.V6 {
		h[6] = v
		return
	}
	old := be.Uint16(h[8:])
	h[9] = v
	headers.UpdateChecksum(h[10:12], uint64(old), uint64(be.Uint16(h[8:])))
}

// TTL reads the TTL, or the hop limit.
func (p *Frame) TTL() uint8 {
	if p.V6 {
		return p.Buf[p.L3+7]
	}
	return p.Buf[p.L3+8]
}

// DecrementTTL does what every router does, and returns false when the TTL is used up.
func (p *Frame) DecrementTTL() bool {
	h := p.Buf[p.L3:]
	if p.V6 {
		if h[7] <= 1 {
			return false
		}
		h[7]--
		return true
	}
	if h[8] <= 1 {
		return false
	}
	old := be.Uint16(h[8:])
	h[8]--
	headers.UpdateChecksum(h[10:12], uint64(old), uint64(be.Uint16(h[8:])))
	return true
}

// Change is the words that left and entered a frame, as sums.
type Change struct{ Out, In uint64 }

// Add adds to both.
func (c *Change) Add(out, in uint64) { c.Out, c.In = c.Out+out, c.In+in }

// ResizeL4 adds k to the length of the L4 header. The frame must have its new size already. The change for the checksum
// includes the pseudo header.
func (p *Frame) ResizeL4(k int) (c Change) {
	if p.Proto == headers.ProtoTCP {
		return Change{Out: uint64(p.Size - p.L4 - k), In: uint64(p.Size - p.L4)}
	}
	length := p.Buf[p.L4+4:]
	old := be.Uint16(length)
	be.PutUint16(length, old+uint16(k))
	return Change{Out: 2 * uint64(old), In: 2 * uint64(old+uint16(k))} // in the header and in the pseudo header
}

// Checksum is the checksum field of the L4 header.
func (p *Frame) Checksum() []byte {
	if p.Proto == headers.ProtoTCP {
		return p.Buf[p.L4+16 : p.L4+18]
	}
	return p.Buf[p.L4+6 : p.L4+8]
}

// Settle updates the L4 checksum for c. A UDP checksum of 0 means that there is none, and stays.
func (p *Frame) Settle(c Change) {
	b := p.Checksum()
	if p.Proto == headers.ProtoUDP && be.Uint16(b) == 0 {
		return
	}
	headers.UpdateChecksum(b, c.Out, c.In)
	if p.Proto == headers.ProtoUDP && be.Uint16(b) == 0 {
		be.PutUint16(b, 0xffff)
	}
}

// Strip takes k bytes of INT out at cut, and restores what the source changed: the DSCP, or the port that marks INT, or the
// protocol behind a UDP header that was put in front.
func (p *Frame) Strip(part intmd.Part, cut, k int, mark uint16) {
	npt, original, dscp := part.Restore()
	out, in := headers.Sum(p.Buf[cut:cut+k]), uint64(0)
	switch npt {
	case 1:
		out, in = out+uint64(mark), uint64(original)
		be.PutUint16(p.Buf[p.L4+2:], original)
	case 2:
		p.SetProto(uint8(original))
	default:
		p.SetDSCP(dscp)
	}
	p.Remove(cut, k)
	if npt == 2 { // nothing else was touched
		p.Proto = uint8(original)
	} else {
		c := p.ResizeL4(-k)
		c.Add(out, in)
		p.Settle(c)
	}
	p.ResizeIP(-k)
}
