package demux

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
	"github.com/hopscope/hopscope/internal/testkit"
)

// Packets for the tests. Correct headers come from the encoders of the formats. Metadata of reports and stacks, which
// tests need in every state, are assembled byte by byte, and so are the worked examples.

var be = binary.BigEndian

// join returns vectors ("int10-tcp", from byte 54 on "int10-tcp@54") and hex, one after the other.
func join(t testing.TB, parts ...string) (b []byte) {
	t.Helper()
	for _, part := range strings.Fields(strings.Join(parts, " ")) {
		name, from, _ := strings.Cut(part, "@")
		v, err := testkit.Vector(name)
		if err != nil {
			if v, err = hex.DecodeString(name); err != nil {
				t.Fatal(err)
			}
		}
		skip := 0
		for _, c := range from {
			skip = skip*10 + int(c-'0')
		}
		b = append(b, v[skip:]...)
	}
	return b
}

const macs = "020000000002020000000001"

// ether puts an Ethernet header before b.
func ether(_ testing.TB, b []byte) []byte {
	typ := packet.EtherIPv4
	if len(b) > 0 && b[0]>>4 == 6 {
		typ = packet.EtherIPv6
	}
	return append(packet.AppendEthernet(nil, packet.MAC{2, 0, 0, 0, 0, 2}, packet.MAC{2, 0, 0, 0, 0, 1}, typ), b...)
}

// ipv4 puts an IPv4 header before b: 10.0.1.1 to 10.0.2.2, id 4097, TTL 60.
func ipv4(dscp, proto uint8, b []byte) []byte {
	h := packet.IPv4{TOS: dscp << 2, TTL: 60, Proto: proto, ID: 0x1001, DontFragment: true, Src: [4]byte{10, 0, 1, 1}, Dst: [4]byte{10, 0, 2, 2}}
	return append(packet.AppendIPv4(nil, &h, len(b)), b...)
}

// ipv6 puts an IPv6 header before b: fd00::1 to fd00::2, hop limit 60.
func ipv6(dscp, proto uint8, b []byte) []byte {
	h := packet.IPv6{TrafficClass: dscp << 2, HopLimit: 60, Proto: proto, Src: [16]byte{0: 0xfd, 15: 1}, Dst: [16]byte{0: 0xfd, 15: 2}}
	return append(packet.AppendIPv6(nil, &h, len(b)), b...)
}

// udp puts a UDP header before b, from port 33000.
func udp(dst uint16, b []byte) []byte {
	return append(packet.AppendUDP(nil, 33000, dst, len(b)), b...)
}

// tcp puts a TCP header before b, from port 33000, with words of options that b begins with or ends with.
func tcp(dst uint16, options int, b []byte) []byte {
	h := packet.AppendTCP(nil, &packet.TCP{SrcPort: 33000, DstPort: dst, Seq: 1, Ack: 1, Flags: 0x10, Window: 0x2000})
	h[12] += byte(options) << 4
	return append(h, b...)
}

// report20 is a group with one report around an IPv4 packet.
func report20(flags byte, mdBits uint16, md []byte, inner []byte) []byte {
	inType := byte(4)
	if len(inner) == 0 {
		inType = 0
	}
	b := append(telemetry.AppendGroup(nil, 1, 7, 5), 0x10|inType, byte((8+len(md)+len(inner))/4), byte(len(md)/4), flags)
	b = be.AppendUint16(b, mdBits)
	b = append(b, 0, 0, 0, 0, 0, 0)
	b = append(b, md...)
	return append(b, inner...)
}

const (
	flagD = 0x80
	flagQ = 0x40
	flagF = 0x20
)

// int21 is an INT-MD 2.1 part for UDP (NPT 1, original port 4789) with blocks of the nodes 1 to n.
func int21(bitmap uint16, n int) []byte {
	stack := blocks(bitmap, n, func(bit int) bool { return bit == 4 || bit == 5 || bit == 6 })
	h := intmd.Header{Version: decode.V21, NPT: 1, Original: 4789, RemainingHops: 8, Instructions: bitmap}
	return append(intmd.AppendHeader(nil, &h, len(stack)), stack...)
}

// int10 is an INT 1.0 part.
func int10(bitmap uint16, n int) []byte {
	stack := blocks(bitmap, n, func(bit int) bool { return bit == 6 })
	h := intmd.Header{Version: decode.V10, RemainingHops: 8, Instructions: bitmap}
	return append(intmd.AppendHeader(nil, &h, len(stack)), stack...)
}

// blocks writes a stack, node n first.
func blocks(bitmap uint16, n int, wide func(bit int) bool) (stack []byte) {
	for ; n > 0; n-- {
		for bit := range 16 {
			switch {
			case bitmap&(0x8000>>bit) == 0:
			case bit == 0:
				stack = be.AppendUint32(stack, uint32(n))
			case bit == 1:
				stack = be.AppendUint32(stack, uint32(n)<<16|uint32(n+1))
			case wide(bit):
				stack = be.AppendUint64(stack, uint64(n*1000+bit*100))
			default:
				stack = be.AppendUint32(stack, uint32(n*100+bit))
			}
		}
	}
	return stack
}
