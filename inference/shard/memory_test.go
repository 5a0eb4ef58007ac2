package shard

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/testkit"
)

// An exporter that reports whatever takes most memory, window after window, takes no more than Memory returns.
func TestMemory(t *testing.T) {
	testkit.Long(t)
	cfg := DefaultConfig()
	cfg.MemoryBytes, cfg.MaxHops, cfg.TopFlows, cfg.MaxPathChanges, cfg.MaxDrops = 4<<20, 500, 20, 100, 100
	const shards, windows, reports = 2, 12, 60_000
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	states := newShards(shards, cfg, 1)
	var merged window.Partial
	totals := window.NewTotals(cfg.MaxHops)
	rng := rand.New(rand.NewPCG(1, 1))
	var batch decode.Batch
	most := int64(0)
	for w := range windows {
		for i := range reports {
			r := batch.Next()
			r.Time, r.Kind, r.Has = int64(w)*1e9+int64(i), decode.KindStack, decode.HasFlow
			if rng.IntN(10) == 0 {
				r.Kind, r.NodeID, r.DropReason = decode.KindDrop, rng.Uint32(), uint8(rng.Uint32())
				r.Has |= decode.HasNodeID
			}
			// A few flows are busy, the others come once.
			r.Flow.SrcPort, r.Flow.IPVersion, r.Flow.Src[3] = uint16(rng.UintN(100)), 4, byte(w)
			if rng.IntN(2) == 0 {
				r.Flow.DstPort, r.Flow.SrcPort = uint16(rng.Uint32()), uint16(rng.Uint32())
			}
			for range 1 + rng.IntN(8) {
				h := r.AddHop()
				h.Has = decode.HopNodeID | decode.HopLatency | decode.HopQueueOccupancy
				h.NodeID = uint32(rng.UintN(700))
				h.Latency, h.QueueOccupancy = rng.Uint32()>>rng.UintN(32), rng.Uint32()>>rng.UintN(32)
			}
			if len(batch.Reports) == 256 {
				states.update(1, batch.Reports)
				batch.Reset()
			}
		}
		merged.Reset()
		merged.Span(int64(w)*1e9, int64(w+1)*1e9)
		var cuts []*Cut
		for _, s := range states {
			c := s.Cut(int64(w+1) * 1e9)
			c.AddTo(&merged)
			cuts = append(cuts, c)
		}
		totals.Add(&merged)
		most = max(most, heap()-before)
		for i, s := range states {
			s.Recycle(cuts[i])
		}
	}
	limit := shards*cfg.MemoryBytes + cfg.Memory(shards)
	t.Logf("%d bytes of %d", most, limit)
	if most > limit {
		t.Errorf("%d bytes in use, the limit is %d", most, limit)
	}
	if most < limit/20 {
		t.Errorf("%d bytes in use are far below the limit of %d, which says nothing then", most, limit)
	}
	runtime.KeepAlive(totals)
	runtime.KeepAlive(&batch)
	runtime.KeepAlive(states)
}
