package shard

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// chosen are flows and hops that come in an order, differ in few bits, or were chosen with the constants of common
// hashes.
var chosen = []struct {
	name string
	flow func(i uint64) decode.FlowKey
	hop  func(i uint64) inference.HopKey
}{
	{"random", func(i uint64) decode.FlowKey {
		r := rand.New(rand.NewPCG(i, 7))
		return flowOf(r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), uint32(r.Uint64()))
	}, func(i uint64) inference.HopKey {
		r := rand.New(rand.NewPCG(i, 8))
		return inference.HopKey{Node: r.Uint32(), EgressIf: r.Uint32()}
	}},
	{"sequential", func(i uint64) decode.FlowKey { return flowOf(1, i, 1, 2, 3) },
		func(i uint64) inference.HopKey { return inference.HopKey{Node: uint32(i)} }},
	{"single bits", func(i uint64) decode.FlowKey {
		return flowOf(1<<(i&63), 1<<(i>>6&63), 1<<(i>>12&63), 7, 1)
	}, func(i uint64) inference.HopKey {
		return inference.HopKey{Node: 1<<(i&31) ^ uint32(i>>10), EgressIf: 1 << (i >> 5 & 31)}
	}},
	{"high bits", func(i uint64) decode.FlowKey { return flowOf(1, 2, 3, bits.Reverse64(i), 1) },
		func(i uint64) inference.HopKey { return inference.HopKey{Node: bits.Reverse32(uint32(i))} }},
	{"hostile", func(i uint64) decode.FlowKey { return flowOf(0xa0761d6478bd642f, i, 0xe7037ed1a0b428db, i, 1) },
		func(i uint64) inference.HopKey {
			k := 0xa0761d6478bd642f + i<<32
			return inference.HopKey{Node: uint32(k >> 32), EgressIf: uint32(k)}
		}},
}

func flowOf(a, b, c, d uint64, ports uint32) decode.FlowKey {
	k := decode.FlowKey{SrcPort: uint16(ports >> 16), DstPort: uint16(ports), Proto: 17, IPVersion: 6}
	le := binary.LittleEndian
	le.PutUint64(k.Src[:], a)
	le.PutUint64(k.Src[8:], b)
	le.PutUint64(k.Dst[:], c)
	le.PutUint64(k.Dst[8:], d)
	return k
}

// Without the seed no sender finds flows or hops that make the tables slow. No flow is refused, no hop is folded, and
// the cells of the table of hops are read as often as for random ones.
func TestChosenKeys(t *testing.T) {
	for _, c := range chosen {
		for _, seed := range []uint64{0, 1, 0xa0761d6478bd642f} {
			cfg := DefaultConfig()
			cfg.MemoryBytes = 64 << 20
			cfg.MaxHops = 20_000
			s := New(cfg, seed)
			batch := decode.Batch{}
			for i := range uint64(20_000) {
				r := batch.Next()
				r.Time, r.Kind, r.Has, r.Flow = int64(i), decode.KindStack, decode.HasFlow, c.flow(i)
				k := c.hop(i)
				h := r.AddHop()
				h.Has, h.NodeID, h.L2EgressIf, h.Latency = decode.HopNodeID|decode.HopLatency, k.Node, k.EgressIf, 5
				if len(batch.Reports) == batchSize {
					s.Update(batch.Reports)
					batch.Reset()
				}
			}
			s.Update(batch.Reports)
			st := s.Stats()
			if st.Refused != 0 || st.OtherHops != 0 {
				t.Errorf("%s, seed %#x: %d reports refused, %d hops folded", c.name, seed, st.Refused, st.OtherHops)
			}
			read, cells := 0, len(s.hops.cells)
			for i := 1; i < len(s.hops.keys); i++ {
				key := uint64(s.hops.keys[i].Node)<<32 | uint64(s.hops.keys[i].EgressIf)
				for at := int(s.hops.hash.Word(key)) & (cells - 1); s.hops.cells[at].key != key; at = (at + 1) & (cells - 1) {
					read++
				}
				read++
			}
			// At most half full, a look-up reads 1.5 cells with random hashes (Knuth, TAOCP 3, §6.4).
			if n := float64(read) / float64(len(s.hops.keys)-1); n > 1.5*1.2 {
				t.Errorf("%s, seed %#x: %.2f cells a hop", c.name, seed, n)
			}
		}
	}
}

// BenchmarkChosenKeys is for comparing the lines with each other: new flows and hops, as fast as they can come.
func BenchmarkChosenKeys(b *testing.B) {
	for _, c := range chosen {
		b.Run(c.name, func(b *testing.B) {
			cfg := DefaultConfig()
			cfg.MemoryBytes = 64 << 20
			const n = 1 << 15
			var batch decode.Batch
			for i := range uint64(n) {
				r := batch.Next()
				r.Time, r.Kind, r.Has, r.Flow = int64(i), decode.KindStack, decode.HasFlow, c.flow(i)
				k, h := c.hop(i&2047), r.AddHop()
				h.Has, h.NodeID, h.L2EgressIf, h.Latency = decode.HopNodeID|decode.HopLatency, k.Node, k.EgressIf, 5
			}
			s := New(cfg, 12345)
			for i := 0; b.Loop(); i++ {
				at := i % (n / batchSize) * batchSize
				s.Update(batch.Reports[at : at+batchSize])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batchSize, "ns/report")
		})
	}
}
