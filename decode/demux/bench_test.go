package demux

import (
	"encoding/binary"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

var be = binary.BigEndian

// innerUDP is an IPv4 and UDP header in front of n bytes.
func innerUDP(dscp uint8, port uint16, n int) []byte {
	h := make([]byte, 28)
	h[0], h[1], h[8], h[9] = 0x45, dscp<<2, 60, 17
	be.PutUint16(h[2:], uint16(28+n))
	copy(h[12:], []byte{10, 0, 1, 1, 10, 0, 2, 2})
	be.PutUint16(h[20:], 33000)
	be.PutUint16(h[22:], port)
	be.PutUint16(h[24:], uint16(8+n))
	return h
}

// report20 is a group with one report around an IPv4 packet cut to whole words.
func report20(mdBits uint16, md []byte, inner []byte) []byte {
	flags := byte(0x20)
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

// int21 is an INT-MD 2.1 part in UDP with a stack of the given nodes, newest first.
func int21(bitmap uint16, nodes int) []byte {
	stride := 0
	var stack []byte
	for n := nodes; n > 0; n-- {
		at := len(stack)
		for bit := range 16 {
			if bitmap&(0x8000>>bit) == 0 {
				continue
			}
			switch bit {
			case 0:
				stack = be.AppendUint32(stack, uint32(n))
			case 1:
				stack = append(stack, 0, byte(n), 0, byte(n+1))
			case 4, 5:
				stack = be.AppendUint64(stack, 1700000000000001000+uint64(n*1000+bit*500))
			case 6:
				stack = be.AppendUint64(stack, uint64(n)<<32|uint64(n+1))
			default:
				stack = be.AppendUint32(stack, uint32(n*100+bit))
			}
		}
		stride = (len(stack) - at) / 4
	}
	b := []byte{0x14, byte(3 + len(stack)/4), 0x12, 0xb5, 0x20, 0, byte(stride), 8, byte(bitmap >> 8), byte(bitmap), 0, 0, 0, 0, 0, 0}
	return append(b, stack...)
}

// int10 is an INT 1.0 part.
func int10(bitmap uint16, nodes int) []byte {
	var stack []byte
	stride := 0
	for n := nodes; n > 0; n-- {
		at := len(stack)
		for bit := range 16 {
			if bitmap&(0x8000>>bit) == 0 {
				continue
			}
			switch bit {
			case 6:
				stack = be.AppendUint64(stack, uint64(n)<<32|uint64(n+1))
			default:
				stack = be.AppendUint32(stack, uint32(n*100+bit))
			}
		}
		stride = (len(stack) - at) / 4
	}
	b := []byte{1, 0, byte(3 + len(stack)/4), 0, 0x10, 0, byte(stride), 8, byte(bitmap >> 8), byte(bitmap), 0, 0}
	return append(b, stack...)
}

func withINT(dscp uint8, port uint16, part []byte) []byte {
	return append(innerUDP(dscp, port, len(part)+8), part...)
}

func BenchmarkDatagram(b *testing.B) {
	md := []byte{0, 3, 0, 4, 0, 0, 0, 99, 1, 0, 0, 7}
	report10 := []byte{0x14, 0x20, 0, 0x41, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 9}
	for _, bm := range []struct {
		name    string
		payload []byte
	}{
		{"report20-int21-5hops", report20(0, nil, withINT(0, portINT, int21(0xdc00, 5)))},
		{"report20-int21-5hops-all", report20(0, nil, withINT(0, portINT, int21(0xff80, 5)))},
		{"report20-int21-4hops+sink", report20(0x7000, md, withINT(0, portINT, int21(0xdc00, 4)))},
		{"postcard20", report20(0x7000, md, innerUDP(0, 5000, 0))},
		{"postcard20-headers-only", report20(0x7000, md, nil)},
		{"report10-int10-5hops", append(report10, withINT(dscpINT, 5000, int10(0xfc00, 5))...)},
	} {
		b.Run(bm.name, func(b *testing.B) {
			p, _ := Lookup("auto")
			d := New(p)
			var batch decode.Batch
			src := decode.Addr{15: 1}
			b.SetBytes(int64(len(bm.payload)))
			b.ReportAllocs()
			for b.Loop() {
				batch.Reset()
				d.Datagram(&batch, src, bm.payload, 1)
			}
			if r := batch.Reports[0]; r.Error() != nil {
				b.Fatal(r.Error())
			}
		})
	}
}
