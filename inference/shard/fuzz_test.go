package shard

import (
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// FuzzUpdate makes reports out of bytes and holds what must hold of a state with hardly any memory, whatever comes.
func FuzzUpdate(f *testing.F) {
	f.Add([]byte("a stack, a postcard and a drop go into a table"))
	f.Add([]byte{0, 1, 5, 9, 1, 3, 64, 2, 4, 200, 0, 255, 1, 1, 1, 7, 7, 7, 0, 63, 3, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		cfg := testConfig()
		cfg.MemoryBytes, cfg.MaxHops, cfg.MaxDrops, cfg.MaxPathChanges, cfg.TopFlows, cfg.MaxPathLength = 200<<10, 20, 3, 4, 3, 12
		cfg.PathLength, cfg.IdleTimeout = 3, time.Second
		s := New(cfg, 1)
		next := func() byte {
			if len(b) == 0 {
				return 0
			}
			v := b[0]
			b = b[1:]
			return v
		}
		var now int64
		var sent, hops, counted, reports uint64
		cut := func() {
			c := s.Cut(now)
			w := windowOf(3, c)
			s.Recycle(c)
			for _, h := range w.Hops {
				counted += h.Count
			}
			reports += w.Reports
			if len(w.Hops) > 21 || len(w.Drops) > 3 || len(w.Paths) > 4 || len(w.Flows) > 3 {
				t.Fatalf("%d hops, %d drops, %d path changes, %d flows", len(w.Hops), len(w.Drops), len(w.Paths), len(w.Flows))
			}
		}
		for len(b) > 0 {
			r := &decode.Report{Time: now, Kind: decode.Kind(next()) % decode.Kind(decode.NumKinds), INT: decode.Version(next() & 1 * 21),
				Flags: decode.Flags(next()), Flow: flowKey(uint32(next())), Has: decode.HasFlow, TTL: next(), DropReason: next() & 7}
			if r.TTL&1 != 0 {
				r.Has |= decode.HasTTL
			}
			if next()&15 == 0 {
				r.Has = 0
			}
			for range next() % 40 {
				v := next()
				h := hop(uint32(v&7), uint16(v>>3), uint32(v)<<(v&15))
				h.Has &= decode.HopField(next()) | decode.HopNodeID
				r.Hops = append(r.Hops, h)
			}
			for range 1 + next()%30 {
				s.Update([]*decode.Report{r})
				sent++
				if r.Kind != decode.KindProbes { // which are about no packet: the decoder gives them no hops
					hops += uint64(len(r.Hops))
				}
			}
			now += int64(next()) * int64(time.Millisecond)
			if next()&7 == 0 {
				cut()
			}
		}
		cut()
		if counted != hops || reports != sent {
			t.Fatalf("%d hop records in windows of %d reports, want %d of %d", counted, reports, hops, sent)
		}
		used := 0
		for _, e := range s.flows.All() {
			used += int(e.Value.blocks)
		}
		if used != s.slab.live {
			t.Fatalf("flows hold %d blocks, %d are in use", used, s.slab.live)
		}
		for _, f := range s.Flows(1000) {
			for _, h := range f.Hops {
				if h.Other || h.HopKey == (inference.HopKey{Other: true}) || h.Latency.P50 > h.Latency.Max {
					t.Fatalf("flow %+v", f)
				}
			}
		}
	})
}
