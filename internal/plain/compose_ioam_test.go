package plain_test

import (
	"encoding/binary"
	"math/bits"
)

// ioam is an IPv6 packet with IOAM options of all types in its extension headers.
func (c composer) ioam() []byte {
	var extensions []byte
	numbers := []byte{0, 60, 43, 51, 44}[:1+c.IntN(5)]
	for i, kind := range numbers {
		next := byte(17)
		if i+1 < len(numbers) {
			next = numbers[i+1]
		}
		switch kind {
		case 0, 60:
			h := []byte{next, 0}
			for range c.IntN(4) {
				h = append(h, make([]byte, -len(h)&3)...)
				h = append(h, c.ioamOption()...)
			}
			for len(h)%8 != 0 {
				h = append(h, 0)
			}
			h[1] = byte(len(h)/8 - 1)
			extensions = append(extensions, h...)
		case 44:
			extensions = append(extensions, next, 0, 0, byte(c.IntN(2)), 0, 0, 0, 1)
		case 51:
			extensions = append(extensions, next, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		default:
			extensions = append(extensions, next, 0, 0, 0, 0, 0, 0, 0)
		}
	}
	b := make([]byte, 40)
	b[0], b[6], b[7], b[8], b[23], b[24], b[39] = 0x60, 0, 64, 0xfd, 1, 0xfd, 2
	setU16(b, 4, len(extensions)+8)
	return append(append(b, extensions...), 4, 1, 4, 2, 0, 8, 0, 0)
}

func (c composer) ioamOption() []byte {
	kind := byte(c.IntN(5))
	if c.IntN(2) == 0 {
		kind = 0
	}
	body := []byte{0, byte(c.IntN(3))}
	switch kind {
	case 0, 1:
		body = append(body, c.ioamTrace(kind == 0)...)
	case 2:
		body = append(body, byte(c.IntN(8)/7), 0)
		body = append(body, random(c.Rand, 16)...)
	case 3:
		t := byte(c.IntN(16))
		body = append(body, t<<4, 0)
		body = append(body, c.values(2*int(t>>3)+bits.OnesCount8(t&7))...)
	case 4:
		t := byte(c.IntN(4)) << 6
		if c.IntN(4) == 0 {
			t |= 0x10
		}
		body = append(body, 0, t)
		body = append(append(body, random(c.Rand, 3)...), 0)
		body = append(body, c.values(bits.OnesCount8(t)+c.IntN(2))...)
	}
	code := byte(0x31)
	if c.IntN(2) == 0 {
		code = 0x11
	}
	return append([]byte{code, byte(2 + len(body)), 0, kind}, body...)
}

// ioamTrace returns the bytes behind the namespace of a trace.
func (c composer) ioamTrace(allocated bool) []byte {
	kind := c.Uint32N(1 << 24)
	if c.IntN(4) > 0 {
		kind &= 0xfff002
	}
	if c.IntN(2) == 0 {
		kind &= c.Uint32N(1 << 24)
	}
	words := bits.OnesCount32(kind&0xfffffc) + bits.OnesCount32(kind&0x00e000)
	var nodes []byte
	for range c.IntN(5) {
		n := c.values(words)
		if kind&2 != 0 {
			opaque := c.IntN(4)
			n = append(append(append(n, byte(opaque)), c.value(3)...), random(c.Rand, 4*opaque)...)
		}
		if len(nodes)+len(n) < 200 {
			nodes = append(nodes, n...)
		}
	}
	free := c.IntN(8)
	h := binary.BigEndian.AppendUint16(nil, uint16(words<<11|c.IntN(16)<<7|free))
	h = binary.BigEndian.AppendUint32(h, kind<<8)
	if allocated {
		h = append(h, make([]byte, 4*free)...)
	}
	return append(h, nodes...)
}
