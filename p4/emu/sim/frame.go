package sim

import (
	"encoding/binary"
	"slices"

	headers "github.com/hopscope/hopscope/decode/packet"
)

var be = binary.BigEndian

// Frame is a frame with an IP packet in it.
type Frame struct {
	Buf  []byte // its first bytes
	L3   int    // where the IP header is
	Size int    // of the whole frame
	V6   bool
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
