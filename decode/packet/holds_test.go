package packet

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// Random bytes that begin as IP does hold once in a hundred times or less.
func TestHoldsRandom(t *testing.T) {
	const n = 200_000
	for _, version := range []byte{4, 6} {
		r, held, began := rand.New(rand.NewPCG(7, uint64(version))), 0, 0
		for range n {
			b := make([]byte, 8*(6+r.IntN(170)))
			for i := 0; i < len(b); i += 8 {
				binary.LittleEndian.PutUint64(b[i:], r.Uint64())
			}
			b[0] = version<<4 | b[0]&0x0f
			var p Packet
			if version == 4 {
				p.IPv4(b, 0, len(b))
			} else {
				p.IPv6(b, 0, len(b))
			}
			if p.IP == 0 || !Upper(p.IP, p.Proto) {
				continue
			}
			if began++; p.Holds(b, len(b)) {
				held++
			}
		}
		if began < n/20 || held*100 > began {
			t.Errorf("IPv%d: %d of %d hold", version, held, began)
		}
	}
}

// What networks carry holds, whole, padded or cut.
func TestHoldsPackets(t *testing.T) {
	udp := func(b []byte, n int) []byte {
		return append(AppendUDP(b, 1000, 2000, n), make([]byte, n)...)
	}
	tcp := append([]byte{0, 80, 0xc0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0x80, 0x10}, make([]byte, 400)...)
	v4 := func(h IPv4, rest []byte) []byte { return append(AppendIPv4(nil, &h, len(rest)), rest...) }
	v6 := func(proto, limit uint8, src, dst [16]byte, rest []byte) []byte {
		b := append([]byte{0x60, 0, 0, 0, 0, 0, proto, limit}, src[:]...)
		binary.BigEndian.PutUint16(b[4:], uint16(len(rest)))
		return append(append(b, dst[:]...), rest...)
	}
	global, doc, local, lab := [16]byte{0x2a, 1, 4, 0xf8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, [16]byte{0x20, 1, 0xd, 0xb8, 15: 1}, [16]byte{0xfe, 0x80, 8: 2, 1, 2, 0xff, 0xfe, 4, 5, 6}, [16]byte{0xb, 15: 2}
	packets := [][]byte{
		v4(IPv4{TTL: 3, Proto: ProtoUDP, Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}}, udp(nil, 400)),
		v4(IPv4{TTL: 3, Proto: ProtoTCP, Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}}, tcp),
		v6(ProtoUDP, 64, global, doc, udp(nil, 400)), v6(ProtoTCP, 1, local, local, tcp), v6(ProtoTCP, 255, lab, lab, tcp),
		v6(58, 255, local, [16]byte{0xff, 2, 15: 1}, append([]byte{135, 0}, make([]byte, 300)...)),
		v6(59, 255, local, global, nil),
	}
	fragment := v4(IPv4{TTL: 3, Proto: ProtoUDP, Src: [4]byte{10, 0, 0, 1}, Dst: [4]byte{10, 0, 0, 2}}, make([]byte, 400))
	fragment[6], fragment[7], fragment[10], fragment[11] = 0, 185, 0, 0
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(fragment[i:]))
	}
	packets = append(packets, append([]byte{}, fragment...))
	binary.BigEndian.PutUint16(fragment[10:], ^uint16(sum>>16+sum))
	packets = append(packets, fragment)
	for k, whole := range packets {
		for _, n := range []int{len(whole), min(len(whole), 60), min(len(whole), 128), len(whole) + 3} {
			b := append(append([]byte{}, whole...), 0, 0, 0)[:n]
			var p Packet
			if b[0]>>4 == 4 {
				p.IPv4(b, 0, n)
			} else {
				p.IPv6(b, 0, n)
			}
			if !p.Holds(b, n) {
				t.Errorf("packet %d does not hold with %d bytes", k, n)
			}
			if short := b[:min(n, 41)]; !p.Holds(short, n) {
				t.Errorf("packet %d does not hold with %d bytes, captured to 41", k, n)
			}
		}
	}
}
