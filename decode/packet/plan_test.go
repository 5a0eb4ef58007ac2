package packet

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

// twin reads a block the slow way, bit by bit, from the tables of the specifications. It returns the items that b
// holds whole.
func twin(l Layout, bitmap uint16, b []byte) (h decode.Hop) {
	if l == INT2Reversed {
		l, bitmap = INT2, bits.Reverse16(bitmap)
	}
	receive := func(n int) (uint64, bool) {
		if len(b) < n {
			b = nil
			return 0, false
		}
		var v uint64
		for _, c := range b[:n] {
			v = v<<8 | uint64(c)
		}
		b = b[n:]
		return v, true
	}
	set := func(f decode.HopField, v uint64, width int, store func(uint64)) {
		if v != 1<<width-1 && h.Has&f == 0 {
			h.Has |= f
			store(v)
		}
	}
	queueID := func(v uint64) { h.QueueID = uint8(v) }
	for bit := range 16 {
		if bitmap&(0x8000>>bit) == 0 {
			continue
		}
		n := 4
		switch {
		case (l == INT2 || l == INT2FANT) && (bit == 4 || bit == 5 || bit == 6), l == INT2FANT && bit >= 12 && bit <= 14, l == INT10 && bit == 6, l == INT10Wide && (bit == 4 || bit == 5):
			n = 8
		}
		v, ok := receive(n)
		if !ok {
			break
		}
		half := n * 4 // bits in each half of a two-part item
		switch {
		case bit == 0:
			set(decode.HopNodeID, v, 32, func(v uint64) { h.NodeID = uint32(v) })
		case bit == 1:
			set(decode.HopIngressIf, v>>16, 16, func(v uint64) { h.IngressIf = uint16(v) })
			set(decode.HopEgressIf, v&0xffff, 16, func(v uint64) { h.EgressIf = uint16(v) })
		case bit == 2:
			set(decode.HopLatency, v, 32, func(v uint64) { h.Latency = uint32(v) })
		case bit == 3:
			set(decode.HopQueueID, v>>24, 8, queueID)
			set(decode.HopQueueOccupancy, v&0xffffff, 24, func(v uint64) { h.QueueOccupancy = uint32(v) })
		case bit == 4 || bit == 5:
			f, to := decode.HopIngressTime, &h.IngressTime
			if bit == 5 {
				f, to = decode.HopEgressTime, &h.EgressTime
			}
			if n == 4 {
				set(f, v, 32, func(v uint64) { *to = v })
			} else if v != ^uint64(0) {
				*to = v
				h.Has |= f
			}
		case bit == 6 && l == INT05:
			set(decode.HopQueueID, v>>24, 8, queueID)
			set(decode.HopQueueCongestion, v&0xffffff, 24, func(v uint64) { h.QueueCongestion = uint32(v) })
		case bit == 6:
			set(decode.HopL2IngressIf, v>>half, half, func(v uint64) { h.L2IngressIf = uint32(v) })
			set(decode.HopL2EgressIf, v&(1<<half-1), half, func(v uint64) { h.L2EgressIf = uint32(v) })
		case bit == 7:
			set(decode.HopTxUtilization, v, 32, func(v uint64) { h.TxUtilization = uint32(v) })
		case bit == 8 && (l == INT2 || l == INT2FANT):
			set(decode.HopBufferID, v>>24, 8, func(v uint64) { h.BufferID = uint8(v) })
			set(decode.HopBufferOccupancy, v&0xffffff, 24, func(v uint64) { h.BufferOccupancy = uint32(v) })
		}
	}
	return h
}

var layouts = []Layout{INT2, INT10, INT10Wide, INT05, INT2Reversed, INT2FANT}

// fill writes words of which some are, or begin or end with, all ones.
func fill(rng *rand.Rand, b []byte) {
	for i := 0; i+4 <= len(b); i += 4 {
		v := rng.Uint32()
		switch rng.IntN(6) {
		case 0:
			v = 0xffffffff
		case 1:
			v |= 0xffff0000
		case 2:
			v |= 0x00ffffff
		case 3:
			v |= 0xff00ffff
		}
		binary.BigEndian.PutUint32(b[i:], v)
	}
}

// sameHop ignores the width of times that are absent: both values of it are right for a hop without times.
func sameHop(a, b decode.Hop) bool {
	a.TimeBits, b.TimeBits = 0, 0
	return a == b
}

func TestStack(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, 3*4*(MaxWords+2))
	dirty := decode.Hop{Has: 1<<31 - 1, NodeID: 9, QueueID: 9, EgressTime: 9, DeqOccupancy: 9}
	hops := make([]decode.Hop, 3)
	for _, l := range layouts {
		for bitmap := range 1 << 16 {
			if bitmap&0x7f != 0 && rng.IntN(16) != 0 { // the reserved bits need not be tried in all combinations
				continue
			}
			bm := uint16(bitmap)
			p := Compile(l, bm)
			stride := 4 * (p.Words + rng.IntN(3)) // domain specific words may follow
			n := 3 * stride
			fill(rng, b[:n])
			cut := n
			if rng.IntN(2) == 0 && stride > 0 {
				cut = 2*stride + rng.IntN(stride+1)
			}
			for i := range hops {
				hops[i] = dirty
			}
			p.Stack(hops, b[:cut:cut], stride)
			for i := range hops {
				block := b[min((2-i)*stride, cut):cut]
				want := twin(l, bm, block[:min(len(block), 4*p.Words)])
				if !sameHop(hops[i], want) {
					t.Fatalf("seed %d: layout %d bitmap %#04x hop %d of\n%x\n= %+v, want %+v", seed, l, bm, i, b[:cut], hops[i], want)
				}
				if wide := hops[i].Has&(decode.HopIngressTime|decode.HopEgressTime) != 0; wide && hops[i].TimeBits != timeBits(l) {
					t.Fatalf("layout %d bitmap %#04x: TimeBits %d", l, bm, hops[i].TimeBits)
				}
			}
		}
	}
}

func timeBits(l Layout) uint8 {
	if l == INT10 || l == INT05 {
		return 32
	}
	return 64
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		layout Layout
		bitmap uint16
		want   int
	}{
		{INT2, 0xdc00, 7}, {INT2, 0xff00, 11}, {INT2, 0xffff, 19}, {INT2FANT, 0xffff, MaxWords}, {INT2FANT, 0xfffe, 21}, {INT2FANT, 0xf160, 7}, {INT2, 0, 0}, {INT2, 0x0001, 1},
		{INT10, 0xff00, 9}, {INT10, 0xffff, 17}, {INT10Wide, 0xff00, 10}, {INT10Wide, 0x0a00, 3}, {INT10, 0x0a00, 3},
		{INT05, 0xff00, 8}, {INT05, 0xffff, 16}, {INT2Reversed, 0x000d, 3}, {INT2Reversed, 0x00ff, 11}, {INT2Reversed, 0xffff, 19},
	} {
		if got := Words(c.layout, c.bitmap); got != c.want {
			t.Errorf("Words(%d, %#04x) = %d, want %d", c.layout, c.bitmap, got, c.want)
		}
		if got := Compile(c.layout, c.bitmap).Words; got != c.want {
			t.Errorf("Compile(%d, %#04x).Words = %d, want %d", c.layout, c.bitmap, got, c.want)
		}
	}
}

// More bitmaps than slots, in both orders: a plan never belongs to another bitmap.
func TestCache(t *testing.T) {
	var c Cache
	keys := make([]uint32, 0, 5<<12)
	for bitmap := 0; bitmap < 1<<16; bitmap += 16 {
		for _, l := range layouts {
			keys = append(keys, uint32(l)<<16|uint32(bitmap))
		}
	}
	for range 2 {
		for _, k := range keys {
			want := Compile(Layout(k>>16), uint16(k))
			if got := c.Plan(Layout(k>>16), uint16(k)); !reflect.DeepEqual(*got, want) {
				t.Fatalf("Plan(%d, %#04x) = %+v, want %+v", k>>16, uint16(k), *got, want)
			}
		}
		slices.Reverse(keys)
	}
	if n := testing.AllocsPerRun(100, func() { c.Plan(INT2, 0xdc00); c.Plan(INT10, 0xdc00) }); n != 0 {
		t.Errorf("%v allocs per look-up, want 0", n)
	}
}

func BenchmarkStack(b *testing.B) {
	for _, c := range []struct {
		name   string
		layout Layout
		bitmap uint16
	}{
		{"node-if-queue-times", INT2, 0xdc00}, {"node-if-latency-queue-times", INT2, 0xfc00}, {"all", INT2, 0xff80},
		{"int10-all", INT10, 0xff00}, {"node", INT2, 0x8000}, {"node-latency", INT2, 0xa000},
	} {
		b.Run(c.name+"/hops=5", func(b *testing.B) {
			p := Compile(c.layout, c.bitmap)
			in := make([]byte, 5*4*p.Words)
			for i := range in {
				in[i] = byte(i)
			}
			hops := make([]decode.Hop, 5)
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				p.Stack(hops, in, 4*p.Words)
			}
		})
	}
}

// Counts stand behind the other values of a block: what the bitmap asks for, each half of an item by itself. Of a
// block that was cut those that are whole are read, and all ones are no count.
func TestReadCounts(t *testing.T) {
	block := func(words ...uint32) (b []byte) {
		for _, w := range words {
			b = binary.BigEndian.AppendUint32(b, w)
		}
		return b
	}
	const all = ^uint32(0)
	for _, tt := range []struct {
		layout Layout
		bitmap uint16
		b      []byte
		cut    int // bytes of the second block that are left; 0 for all
		want   [2]decode.HopCounts
	}{
		{INT2FANT, 0x8061, block(2, 20, all, all, 1, 10, 11, all), 0, [2]decode.HopCounts{
			{Has: decode.HopTxPackets | decode.HopDroppedPackets, TxPackets: 10, DroppedPackets: 11}, {Has: decode.HopTxPackets, TxPackets: 20},
		}},
		{INT2FANT, 0x8009, block(2, 20, 21, 0, 1, all, 11, 0), 0, [2]decode.HopCounts{
			{Has: decode.HopSRBytes, SRBytes: 11}, {Has: decode.HopSRPackets | decode.HopSRBytes, SRPackets: 20, SRBytes: 21},
		}},
		{INT2FANT, 0x0006, block(3, 4, 5, 6, 30, 40, 50, 60), 15, [2]decode.HopCounts{
			{Has: decode.HopIPv4Packets | decode.HopIPv4Bytes, IPv4Packets: 30, IPv4Bytes: 40}, // the item of IPv6 is not whole
			{Has: decode.HopIPv4Packets | decode.HopIPv4Bytes | decode.HopIPv6Packets | decode.HopIPv6Bytes, IPv4Packets: 3, IPv4Bytes: 4, IPv6Packets: 5, IPv6Bytes: 6},
		}},
		{INT2, 0x8060, block(2, 20, 21, 1, 10, 11), 0, [2]decode.HopCounts{}},
	} {
		plan, got, b := Compile(tt.layout, tt.bitmap), [2]decode.HopCounts{}, tt.b
		if tt.cut > 0 {
			b = b[:4*plan.Words+tt.cut]
		}
		plan.ReadCounts(got[:], b, 4*plan.Words)
		if got != tt.want {
			t.Errorf("%#04x: got %+v, want %+v", tt.bitmap, got, tt.want)
		}
	}
	if p := Compile(INT2FANT, 0xf060); p.Usual() {
		t.Error("a block with counts is taken for a usual one, whose counts nothing reads")
	}
	if p := Compile(INT2FANT, 0x0060); p.Begun(3) || !p.Begun(4) {
		t.Error("a block of counts alone is begun with its first one")
	}
}
