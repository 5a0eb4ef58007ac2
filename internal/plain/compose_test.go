package plain_test

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/hopscope/hopscope/internal/plain"
)

// compose makes a frame for a profile that is as its pages state, with random choices where they leave one to the
// sender. No capture has such frames. Mutations make it wrong.
func compose(r *rand.Rand, p *plain.Profile) plain.Frame {
	c := composer{r, p}
	var b []byte
	switch {
	case p.Path:
		labels := r.IntN(6)
		if r.IntN(16) == 0 {
			labels = 126 + r.IntN(5)
		}
		payload := append(make([]byte, 60), random(r, 4+22*labels+4)...)
		b = ethernet(c.packet(2222, 0, payload, false))
	case p.PINT:
		b = ethernet(c.packet(53, 0, random(r, 8), false))
		copy(b, []byte{0, byte(r.Uint32()), 0, byte(r.IntN(16)), 0, byte(r.IntN(2))})
		if b[12] == 8 {
			b[15] = 1
		}
	case p.Probe && (p.Mask == 0 || r.IntN(8) == 0):
		labels, entries := r.IntN(5), r.IntN(17)
		b = append(random(r, 12), 7, 1)
		if r.IntN(2) == 0 {
			b[13] = 0
			b = append(b, 0, byte(2+2*entries))
			b = append(b, random(r, 2*entries)...)
			b = append(b, 7, 1)
		}
		b = append(append(b, 0, byte(labels)), random(r, 32*labels)...)
	case p.IOAM && (p.Mask == 0 || r.IntN(8) == 0):
		b = ethernet(c.ioam())
	case p.IFA && (p.Mask == 0 || r.IntN(8) == 0):
		b = ethernet(c.ifa())
	case len(p.Reports) > 0 && r.IntN(3) > 0:
		b = ethernet(c.packet(int(p.ReportPorts[0]), 0, c.report(), false))
	default:
		b = ethernet(c.carrier())
	}
	return plain.Frame{Number: 1, Link: 1, Data: b, Length: len(b)}
}

// composer draws parts of packets.
type composer struct {
	*rand.Rand
	p *plain.Profile
}

// value returns a value that devices write: small numbers, all ones, noise.
func (c composer) value(n int) []byte {
	if n == 0 {
		return nil
	}
	switch b := make([]byte, n); c.IntN(4) {
	case 0:
		for i := range b {
			b[i] = 0xff
		}
		return b
	case 1:
		return random(c.Rand, n)
	case 2:
		if n > 1 {
			copy(b, c.value(n/2))
			copy(b[n/2:], c.value(n-n/2))
		}
		return b
	default:
		b[n-1] = byte(c.IntN(3))
		return b
	}
}

func (c composer) values(n int) (b []byte) {
	for range n {
		b = append(b, c.value(4)...)
	}
	return b
}

func ethernet(packet []byte) []byte {
	b := []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0}
	if packet[0]>>4 == 6 {
		b[12], b[13] = 0x86, 0xdd
	}
	return append(b, packet...)
}

// packet is a UDP or TCP packet over IPv4, at times IPv6.
func (c composer) packet(port int, tos byte, payload []byte, tcp bool) []byte {
	l4 := []byte{0x12, byte(c.IntN(256)), byte(port >> 8), byte(port), byte((len(payload) + 8) >> 8), byte(len(payload) + 8), 0, 0}
	proto := byte(17)
	if tcp {
		proto = 6
		l4 = append(l4[:4], 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0)
		if c.p.BehindOpts && c.IntN(2) == 0 {
			l4[12] = 0x70
			l4 = append(l4, 1, 1, 1, 1, 1, 1, 1, 1)
		}
	}
	payload = append(l4, payload...)
	if c.IntN(8) == 0 {
		b := make([]byte, 40, 40+len(payload))
		binary.BigEndian.PutUint32(b, 6<<28|uint32(tos)<<20)
		setU16(b, 4, len(payload))
		b[6], b[7], b[8], b[23], b[24], b[39] = proto, 64, 0xfd, 1, 0xfd, 2
		return append(b, payload...)
	}
	b := make([]byte, 20, 20+len(payload))
	b[0], b[1], b[5], b[8], b[9] = 0x45, tos, byte(c.IntN(256)), 64, proto
	setU16(b, 2, 20+len(payload))
	copy(b[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	return append(b, payload...)
}

// carrier is a packet with INT and the mark of the profile.
func (c composer) carrier() []byte {
	port, tos, byPort := 5001, byte(0), false
	if len(c.p.Ports) > 0 && c.IntN(2) == 0 {
		port, byPort = int(c.p.Ports[0]), true
	} else if c.p.Mask != 0 {
		tos = c.p.DSCP<<2 | byte(c.IntN(4))
	}
	if c.p.Encapsulated && c.IntN(6) == 0 {
		if b := c.tunnel(); b != nil {
			return b
		}
	}
	return c.packet(port, tos, append(c.int(byPort), random(c.Rand, c.IntN(24))...), !byPort && c.IntN(3) == 0)
}

// tunnel is INT 2.x in VXLAN-GPE or Geneve; it returns nil where INT of another version was drawn.
func (c composer) tunnel() []byte {
	b := c.int(false)
	if b[0]>>4 == 0 {
		return nil
	}
	tos := byte(0)
	if c.IntN(8) == 0 {
		tos = c.p.DSCP << 2
	}
	if c.IntN(2) == 0 {
		b[0] &= 0xf0
		return c.packet(4790, tos, append([]byte{0x0c, 0, 0, 0x80 | 2*byte(c.IntN(2)), 0, 0, 1, 0}, b...), false)
	}
	if b[1] > 31 {
		return nil
	}
	copy(b, []byte{1, 3, b[0] >> 4, b[1] | byte(c.IntN(8))<<5})
	if c.IntN(2) == 0 {
		b = append([]byte{1, 2, 3, 1, 0, 0, 0, 0}, b...)
	}
	if c.IntN(2) == 0 {
		b = append(b, 1, 2, 3, 0)
	}
	return c.packet(6081, tos, append([]byte{byte(len(b)/4) & 0x3f, 0, 0x65, 0x58, 0, 0, 1, 0}, b...), false)
}

// int is INT of a version that the profile reads.
func (c composer) int(byPort bool) []byte {
	if len(c.p.INT) == 0 {
		return random(c.Rand, 8)
	}
	hops := c.IntN(5)
	bitmap := uint16(c.Uint32())
	if c.IntN(2) == 0 {
		bitmap &= 0xff00
	}
	if c.IntN(2) == 0 {
		bitmap |= 0x8000
	}
	var words int
	switch version := c.p.INT[c.IntN(len(c.p.INT))]; version {
	case "0.5":
		words = bits.OnesCount16(bitmap)
		if words > 31 || words == 0 {
			bitmap, words = 0x8000, 1
		}
		b := []byte{1, 0, byte(4 + words*hops), 0, byte(c.IntN(16)), byte(words), byte(hops + c.IntN(3)), byte(hops), byte(bitmap >> 8), byte(bitmap), 0, 0}
		b = append(b, c.values(words*hops)...)
		if c.p.Intel {
			b[0] = 3
			b[2]++
			b = append(b, c.value(4)...)
		}
		return append(b, []byte{6, 17, 0}[c.IntN(3)], 0x13, 0x89, 4)
	case "1.0":
		words = bits.OnesCount16(bitmap)
		switch {
		case c.p.Geant:
			words += bits.OnesCount16(bitmap & 0x0c00)
		default:
			words += bits.OnesCount16(bitmap & 0x0200)
		}
		if c.IntN(8) == 0 {
			return append([]byte{2, 0, byte(1 + hops), 0}, c.values(hops)...)
		}
		b := []byte{1, 0, byte(3 + words*hops), 0, 0x10 | byte(c.IntN(16)), byte(c.Uint32()), byte(words), byte(c.IntN(9)), byte(bitmap >> 8), byte(bitmap), 0, byte(c.IntN(3))}
		if c.p.OnosINT && c.IntN(2) == 0 {
			b[4] &= 15
		}
		return append(b, c.values(words*hops)...)
	}
	wide := uint16(0x0e00)
	if c.p.Elavinal {
		wide = bits.Reverse16(wide)
	}
	fant := c.p.FANT && c.IntN(4) > 0
	if fant {
		wide |= 0x000e
	}
	words = bits.OnesCount16(bitmap) + bits.OnesCount16(bitmap&wide)
	if words > 31 {
		bitmap, words = 0x8000, 1
		if c.p.Elavinal {
			bitmap = 1
		}
	}
	kind, npt := 1, 0
	if byPort {
		npt = c.IntN(3)
	}
	domain := c.IntN(3) * c.IntN(2)
	if fant {
		domain = 0xfa17
	}
	b := []byte{0, byte(3 + words*hops), 0x13, []byte{6, 17, 0}[c.IntN(3)], 0x20 | byte(c.IntN(16)), 0, byte(words), byte(c.IntN(9)), byte(bitmap >> 8), byte(bitmap), byte(domain >> 8), byte(domain), 0, byte(c.IntN(4) / 3), 0, 0}
	switch c.IntN(8) {
	case 0:
		kind = 2
	case 1, 2:
		kind = 3
		words = c.IntN(4)
		hops = 1
		b[1] = byte(3 + words)
	}
	b[0] = byte(kind<<4 | npt<<2)
	return append(b, c.values(words*hops)...)
}

// report is the payload of a datagram to a report port.
func (c composer) report() []byte {
	flags := byte(c.IntN(8)) << 5
	if c.IntN(3) > 0 {
		flags = 0x20
	}
	switch version := c.p.Reports[c.IntN(len(c.p.Reports))]; version {
	case "0.5":
		nproto := c.IntN(3)
		if c.p.Intel {
			nproto = c.IntN(5)
		}
		b := append([]byte{byte(nproto), flags, 0, byte(c.Uint32())}, c.values(2)...)
		switch nproto {
		case 1:
			b = append(b, c.values(3)...)
		case 2:
			b = append(b, c.values(4)...)
		case 3:
			stand := c.packet(5001, 0, nil, false)
			return append(append(b, c.values(6)...), stand...)
		case 4:
			if !c.p.NoSinkID {
				b = append(b, c.value(4)...)
			}
			inner := c.carrier()
			return append(b, inner...)
		}
		return append(b, ethernet(c.carrier())...)
	case "1.0":
		md := 0
		if c.IntN(2) == 0 && !c.p.Braine {
			md = c.IntN(64)
		}
		nprot := c.IntN(3)
		inner := c.carrier()
		switch {
		case nprot == 0 || c.p.Braine:
			nprot = 0
			inner = ethernet(inner)
		case inner[0]>>4 == 4:
			nprot = 1
		default:
			nprot = 2
		}
		word := uint32(1<<28 | (4+bits.OnesCount(uint(md)))<<24 | nprot<<21 | md<<15)
		if c.p.FlagsOnos {
			word |= uint32(flags>>5) << 12
		} else {
			word |= uint32(flags>>5) << 6
		}
		b := binary.BigEndian.AppendUint32(nil, word|c.Uint32()&0x3f>>c.IntN(6))
		b = append(b, c.values(3+bits.OnesCount(uint(md)))...)
		if c.p.Braine {
			b = append(b, c.values(6)...)
		}
		return append(b, inner...)
	}
	b := binary.BigEndian.AppendUint32(nil, 2<<28|c.Uint32()&0xfffffff)
	b = append(b, c.value(4)...)
	for range 1 + c.IntN(3) {
		repType := 1 - c.IntN(5)/4
		head := []byte{byte(repType << 4), 0, 0, flags | byte(c.IntN(2))<<4}
		if repType == 1 {
			md := uint16(0)
			if c.IntN(3) > 0 {
				md = uint16(c.Uint32()) & 0x7fff
			}
			base := bits.OnesCount16(md) + bits.OnesCount16(md&0x0e00)
			domain, ds := 0, 0
			if c.IntN(4) == 0 {
				domain, ds = c.IntN(2)*c.IntN(70), c.IntN(2)
			}
			extra := 0
			if domain != 0 && ds != 0 {
				extra = c.IntN(3)
			}
			head[2] = byte(base + extra)
			head = append(head, byte(md>>8), byte(md), 0, byte(domain), byte(ds), 0, 0, 0)
			head = append(head, c.values(base+extra)...)
		}
		inner := c.carrier()
		if c.p.IOAM && c.IntN(6) == 0 {
			inner = c.ioam()
		}
		inType := 3
		switch c.IntN(5) {
		case 0:
			inType, inner = 0, nil
		case 1:
			inType = 4 + int(inner[0]>>4-4)/2
		case 2:
			inner = pad(inner)
			kind := 2 + int(inner[0]>>4)/6
			inner = append([]byte{byte(kind << 4), byte(len(inner) / 4), 0, 0}, inner...)
			if c.IntN(2) == 0 {
				inner = slices.Concat([]byte{byte(c.IntN(6)) & 12 << 4, 1, 0, 0, 1, 2, 3, 4}, inner)
			}
			if c.IntN(2) == 0 {
				inner = append(inner, 0x10, 4, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0, 0, 0)
			}
			inType = 1
		case 3:
			inType = 2
		default:
			inner = ethernet(inner)
		}
		inner = pad(inner)
		head[0] |= byte(inType)
		head[1] = byte((len(head)+len(inner))/4 - 1)
		if c.p.ToTheEnd && c.IntN(2) == 0 {
			head[1] = 0
		}
		if c.IntN(16) == 0 {
			inner = append(inner, make([]byte, 1024)...)
			head[1] = 0xff
		}
		b = append(append(b, head...), inner...)
	}
	return b
}

func pad(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}
