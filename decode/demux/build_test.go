package demux

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode/decodetest"
)

// Packets for the tests, put together byte by byte.

var be = binary.BigEndian

// join gives vectors ("int10-tcp", from byte 54 on "int10-tcp@54") and hex, one after the other.
func join(t testing.TB, parts ...string) (b []byte) {
	t.Helper()
	for _, part := range strings.Fields(strings.Join(parts, " ")) {
		name, from, _ := strings.Cut(part, "@")
		v, err := decodetest.Bytes(name)
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
func ether(t testing.TB, b []byte) []byte {
	typ := "0800"
	if len(b) > 0 && b[0]>>4 == 6 {
		typ = "86dd"
	}
	return append(join(t, macs, typ), b...)
}

// ipv4 puts an IPv4 header before b: 10.0.1.1 to 10.0.2.2, id 4097, TTL 60.
func ipv4(dscp, proto uint8, b []byte) []byte {
	h := []byte{0x45, dscp << 2, 0, 0, 0x10, 1, 0x40, 0, 60, proto, 0, 0, 10, 0, 1, 1, 10, 0, 2, 2}
	be.PutUint16(h[2:], uint16(20+len(b)))
	return append(h, b...)
}

// ipv6 puts an IPv6 header before b: fd00::1 to fd00::2, hop limit 60.
func ipv6(dscp, proto uint8, b []byte) []byte {
	h := make([]byte, 40)
	be.PutUint16(h, 0x6000|uint16(dscp)<<6)
	be.PutUint16(h[4:], uint16(len(b)))
	h[6], h[7], h[8], h[23], h[24], h[39] = proto, 60, 0xfd, 1, 0xfd, 2
	return append(h, b...)
}

// udp puts a UDP header before b, from port 33000.
func udp(dst uint16, b []byte) []byte {
	h := be.AppendUint16(nil, 33000)
	h = be.AppendUint16(h, dst)
	h = be.AppendUint16(h, uint16(8+len(b)))
	return append(append(h, 0, 0), b...)
}

// tcp puts a TCP header before b, from port 33000, with words of options that b begins with or ends with.
func tcp(dst uint16, options int, b []byte) []byte {
	h := be.AppendUint16(nil, 33000)
	h = be.AppendUint16(h, dst)
	h = append(h, 0, 0, 0, 1, 0, 0, 0, 1, byte(5+options)<<4, 0x10, 0x20, 0, 0, 0, 0, 0)
	return append(h, b...)
}

// report20 is a group with one report around an IPv4 packet.
func report20(flags byte, mdBits uint16, md []byte, inner []byte) []byte {
	inType := byte(4)
	if len(inner) == 0 {
		inType = 0
	}
	b := []byte{0x20, 0x40, 0, 7, 0, 0, 0, 5, 0x10 | inType, byte((8 + len(md) + len(inner)) / 4), byte(len(md) / 4), flags}
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
	stack, stride := blocks(bitmap, n, func(bit int) bool { return bit == 4 || bit == 5 || bit == 6 })
	b := []byte{0x14, byte(3 + len(stack)/4), 0x12, 0xb5, 0x20, 0, byte(stride), 8, byte(bitmap >> 8), byte(bitmap), 0, 0, 0, 0, 0, 0}
	return append(b, stack...)
}

// int10 is an INT 1.0 part.
func int10(bitmap uint16, n int) []byte {
	stack, stride := blocks(bitmap, n, func(bit int) bool { return bit == 6 })
	b := []byte{1, 0, byte(3 + len(stack)/4), 0, 0x10, 0, byte(stride), 8, byte(bitmap >> 8), byte(bitmap), 0, 0}
	return append(b, stack...)
}

// blocks writes a stack, node n first.
func blocks(bitmap uint16, n int, wide func(bit int) bool) (stack []byte, words int) {
	if n == 0 {
		_, words = blocks(bitmap, 1, wide)
	}
	for ; n > 0; n-- {
		at := len(stack)
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
		words = (len(stack) - at) / 4
	}
	return stack, words
}
