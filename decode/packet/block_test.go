package packet

import (
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

var allHopFields = decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | decode.HopLatency | decode.HopQueueID |
	decode.HopQueueOccupancy | decode.HopIngressTime | decode.HopEgressTime | decode.HopL2IngressIf | decode.HopL2EgressIf |
	decode.HopTxUtilization | decode.HopBufferID | decode.HopBufferOccupancy

// The values are distinguished by their digits; the expected words were written by hand from the tables of the
// specifications.
func TestAppendBlock(t *testing.T) {
	h := decode.Hop{
		Has: allHopFields, NodeID: 0x11111111, IngressIf: 0x2222, EgressIf: 0x3333, Latency: 0x44444444, QueueID: 0x55,
		QueueOccupancy: 0x666666, IngressTime: 0x7777777777777777, EgressTime: 0x8888888888888888, L2IngressIf: 0x99999999,
		L2EgressIf: 0xaaaaaaaa, TxUtilization: 0xbbbbbbbb, BufferID: 0xcc, BufferOccupancy: 0xdddddd,
	}
	none := decode.Hop{}
	tests := []struct {
		name   string
		layout Layout
		bitmap uint16
		hop    *decode.Hop
		want   string
	}{
		{"2.x, all", INT2, 0xff80, &h, "11111111 22223333 44444444 55666666 7777777777777777 8888888888888888 99999999aaaaaaaa bbbbbbbb ccdddddd"},
		{"2.x, absent", INT2, 0xff80, &none, "ffffffff ffffffff ffffffff ffffffff ffffffffffffffff ffffffffffffffff ffffffffffffffff ffffffff ffffffff"},
		{"2.x, complement", INT2, 0x8001, &h, "11111111 ffffffff"},
		{"2.x from the other end", INT2Reversed, 0x0003, &h, "11111111 22223333"},
		{"1.0", INT10, 0xff00, &h, "11111111 22223333 44444444 55666666 77777777 88888888 99999999aaaaaaaa bbbbbbbb"},
		{"1.0, wide times", INT10Wide, 0x0e00, &h, "7777777777777777 8888888888888888 9999aaaa"},
		{"FANT, the rest of the bits", INT2FANT, 0x007f, &h, "ffffffff ffffffff ffffffff ffffffffffffffff ffffffffffffffff ffffffffffffffff ffffffff"},
		{"FANT, detailed", INT2FANT, 0xff8f, &h, "11111111 22223333 44444444 55666666 7777777777777777 8888888888888888 99999999aaaaaaaa bbbbbbbb ccdddddd ffffffffffffffff ffffffffffffffff ffffffffffffffff ffffffff"},
		{"0.5", INT05, 0x8200, &h, "11111111 55ffffff"},
	}
	for _, tt := range tests {
		got := AppendBlock(nil, tt.layout, tt.bitmap, tt.hop)
		want, err := hex.DecodeString(strings.ReplaceAll(tt.want, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %x\nwant %x", tt.name, got, want)
		}
		if len(got) != 4*Words(tt.layout, tt.bitmap) {
			t.Errorf("%s: %d bytes, Words says %d", tt.name, len(got), Words(tt.layout, tt.bitmap))
		}
	}
	buf := make([]byte, 0, 4*MaxWords)
	if n := testing.AllocsPerRun(1000, func() { buf = AppendBlock(buf[:0], INT2FANT, 0xffff, &h) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// FuzzAppendBlock holds that written blocks equal read ones. A block that is read and written again decodes alike,
// for every bitmap and layout.
func FuzzAppendBlock(f *testing.F) {
	f.Add(uint8(INT2), uint16(0xff81), []byte("0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz1234"))
	f.Add(uint8(INT2FANT), uint16(0xffff), []byte("0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz1234567890abcdef"))
	f.Add(uint8(INT05), uint16(0xff00), []byte("\xff\xff\xff\xff0123\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, layout uint8, bitmap uint16, data []byte) {
		l := Layout(layout % uint8(numLayouts))
		plan := Compile(l, bitmap)
		block := make([]byte, 4*plan.Words)
		copy(block, data)
		var first, second [1]decode.Hop
		plan.Stack(first[:], block, len(block))
		var counts, sameCounts [1]decode.HopCounts
		plan.ReadCounts(counts[:], block, len(block))
		again := AppendCounted(nil, l, bitmap, &first[0], &counts[0])
		if len(again) != len(block) {
			t.Fatalf("bitmap %#04x: %d bytes, want %d", bitmap, len(again), len(block))
		}
		plan.Stack(second[:], again, len(again))
		plan.ReadCounts(sameCounts[:], again, len(again))
		if first != second || counts != sameCounts {
			t.Fatalf("bitmap %#04x: %x reads as %+v, %+v, written again as %x it reads as %+v, %+v", bitmap, block, first[0], counts[0], again, second[0], sameCounts[0])
		}
	})
}

// A stack is its blocks, newest first, whichever way it is written.
func TestAppendStack(t *testing.T) {
	hops := []decode.Hop{{Has: allHopFields, NodeID: 1, QueueID: 2}, {Has: allHopFields, NodeID: 2}, {Has: decode.HopNodeID, NodeID: 3}}
	for _, n := range []int{0, 2, 3} {
		for _, bitmap := range []uint16{0, 0xf000, 0x000f, 0xff81} {
			for l := range numLayouts {
				var want []byte
				for i := n - 1; i >= 0; i-- {
					want = AppendBlock(want, l, bitmap, &hops[i])
				}
				if got := AppendStack([]byte{7}, l, bitmap, hops[:n]); !reflect.DeepEqual(got, append([]byte{7}, want...)) {
					t.Errorf("layout %d, bitmap %#04x, %d hops:\n got %x\nwant 07%x", l, bitmap, n, got, want)
				}
			}
		}
	}
}

func BenchmarkAppendBlock(b *testing.B) {
	h := decode.Hop{Has: allHopFields, NodeID: 7}
	buf := make([]byte, 0, 4*MaxWords)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendBlock(buf[:0], INT2, 0xf000, &h)
	}
}
