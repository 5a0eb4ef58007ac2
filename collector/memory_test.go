package collector

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/testkit"
)

var memoryWindows = flag.Int("memory-windows", 300, "windows that TestMemoryOfHops sees")

// heap returns the memory in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// busyWindow is a window in which hops have values, and some of them a fault that lasts.
func busyWindow(rng *rand.Rand, w, hops, oneIn int) *inference.Window {
	const length = 10_000_000_000
	out := &inference.Window{Start: 1e18 + int64(w)*length, End: 1e18 + int64(w+1)*length, Reports: uint64(hops) * 100}
	for i := range hops {
		scale := math.Exp(.1 * rng.NormFloat64())
		if i%oneIn == 0 && w%150 > 120 {
			scale *= 30
		}
		v := func(base float64) uint64 { return uint64(base * scale * math.Exp(.05*rng.NormFloat64())) }
		out.Hops = append(out.Hops, inference.HopStats{HopKey: inference.HopKey{Node: uint32(i / 8), EgressIf: uint32(i % 8)}, Count: 100,
			Latency: inference.Summary{Count: 100, P50: v(20_000), P90: v(40_000), P99: v(90_000), Max: v(150_000)},
			Queue:   inference.Summary{Count: 100, P50: v(2_000), P90: v(9_000), P99: v(30_000), Max: v(60_000)}, Utilization: .3 * scale, HasUtilization: true})
	}
	return out
}

// TestMemoryOfHops measures the memory of a hop in the detectors and in the tables of a shard. A tenth of the hops, or
// all of them, are in trouble for a fifth of the time. The detectors take no more than Memory states. go test -run
// TestMemoryOf -v prints it.
func TestMemoryOfHops(t *testing.T) {
	hops := testkit.Rounds(500, 500)
	rng := rand.New(rand.NewPCG(1, 1))
	cfg := testConfig().Analysis
	cfg.Events.MaxHops = hops
	for _, oneIn := range []int{10, 1} {
		before := heap()
		detector := events.New(cfg.Events)
		reported, most := 0, int64(0)
		for w := range *memoryWindows {
			reported += len(detector.Step(busyWindow(rng, w, hops, oneIn)))
			if w%150 == 149 || w == *memoryWindows-1 { // with findings open, and at the end
				most = max(most, heap()-before)
			}
		}
		t.Logf("detectors: %d bytes a hop, %d are counted, with one hop in %d in trouble; %d findings reported", most/int64(hops), historyBytes, oneIn, reported)
		if n := detector.Stats().Hops; n != hops || reported == 0 {
			t.Fatalf("%d hops are followed, %d findings reported", n, reported)
		}
		if most > int64(hops)*historyBytes {
			t.Errorf("detectors take %d bytes a hop, and Memory counts %d", most/int64(hops), historyBytes)
		}
		runtime.KeepAlive(detector)
	}

	// The tables have room for as many hops as the settings say, whether they are there or not. What a hop costs is the
	// difference between two settings.
	size := func(room int) (perTable int64, stated int64) {
		c := cfg.Flows
		c.MaxHops, c.MemoryBytes, c.TopFlows = room, 4<<20, 10
		before := heap()
		s := shard.New(c, 1)
		totals := window.NewTotals(room)
		var merged window.Partial
		var batch decode.Batch
		for w := range 4 {
			for i := range 40 * room {
				r := batch.Next()
				r.Time, r.Kind, r.Has = int64(w)*1e9+int64(i), decode.KindStack, decode.HasFlow
				r.Flow = decode.FlowKey{SrcPort: uint16(i), Proto: 6, IPVersion: 4}
				h := r.AddHop()
				h.Has, h.NodeID = decode.HopNodeID|decode.HopLatency|decode.HopQueueOccupancy, uint32(i%room)
				h.Latency, h.QueueOccupancy = uint32(20_000*math.Exp(rng.NormFloat64())), uint32(2_000*math.Exp(rng.NormFloat64()))
				if len(batch.Reports) == 256 {
					s.Update(batch.Reports)
					batch.Reset()
				}
			}
			s.Update(batch.Reports)
			batch.Reset()
			cut := s.Cut(int64(w+1) * 1e9)
			merged.Reset()
			cut.AddTo(&merged)
			s.Recycle(cut)
			totals.Add(&merged)
		}
		window := merged.Window(c.Limits())
		if len(window.Hops) != room {
			t.Fatalf("%d hops of %d", len(window.Hops), room)
		}
		n := heap() - before
		runtime.KeepAlive([]any{s, totals, &merged, &window})
		return n, c.Memory(1) + c.MemoryBytes
	}
	room := testkit.Rounds(1000, 1000)
	small, smallStated := size(room)
	large, largeStated := size(3 * room)
	t.Logf("tables, window and sums of one shard: %d bytes a hop, of at most %d", (large-small)/int64(2*room), (largeStated-smallStated)/int64(2*room))
	if small > smallStated || large > largeStated || large <= small {
		t.Errorf("%d and %d bytes, of at most %d and %d", small, large, smallStated, largeStated)
	}
}

// TestMemoryOfProbes measures the memory of a path of probes in the detectors. All paths lose and damage probes, and
// are slow for a fifth of the time, on the longest ways, which have no router in common. It is no more than Memory states.
func TestMemoryOfProbes(t *testing.T) {
	paths := testkit.Rounds(500, 500)
	all := testConfig()
	stated := func(most int) int64 {
		all.Analysis.Events.MaxProbes = most
		return TotalMemory(Memory(&all.Config, &all.Analysis, all))
	}
	counted := (stated(2*paths) - stated(paths)) / int64(paths)
	all.Analysis.Events.MaxProbes = paths
	rng := rand.New(rand.NewPCG(1, 1))
	before := heap()
	detector := events.New(all.Analysis.Events)
	reported, most := 0, int64(0)
	windows := min(*memoryWindows, 150)
	for n := range windows {
		w := &inference.Window{Start: int64(n) * 1e9, End: int64(n+1) * 1e9}
		bad := uint64(0)
		if n%150 >= 120 {
			bad = 1
		}
		for i := range paths {
			s := inference.ProbeStats{ProbeKey: inference.ProbeKey{From: decode.AddrFrom4([]byte{10, 0, byte(i >> 8), byte(i)}), To: decode.AddrFrom4([]byte{10, 1, byte(i >> 8), byte(i)}), Path: 49152, Epoch: 1}}
			s.Flow = decode.FlowKey{Src: s.From, Dst: s.To, SrcPort: 49152, DstPort: 862, Proto: 17, IPVersion: 4}
			s.Sent, s.Received, s.Missed, s.Corrupt, s.Forward = 1000, 1000-200*bad, 200*bad, 50*bad, int64(200*bad)
			v := func(ns float64) uint64 { return uint64(ns * (1 + .05*rng.Float64()) * float64(1+20*bad)) }
			s.Delay = inference.Summary{Count: s.Received, P50: v(200e3), P90: v(300e3), P99: v(400e3), Max: v(500e3)}
			w.Probes = append(w.Probes, s)
			way := []inference.HopKey{{Node: 9, Other: true}}
			for k := range uint32(decode.MostWay) { // no two sessions have a router in common
				way = append(way, inference.HopKey{Node: 1<<24 + uint32(i)<<8 + k})
			}
			w.Losses = append(w.Losses, inference.FlowLoss{Flow: s.Flow, Packets: 1000, Lost: 200 * bad, Path: append(way, inference.HopKey{Node: s.To.Node()})})
		}
		reported += len(detector.Step(w))
		if n%150 == 149 || n == windows-1 {
			most = max(most, heap()-before)
		}
	}
	t.Logf("%d bytes a path, %d are counted; %d findings reported", most/int64(paths), counted, reported)
	if reported < 3*paths || most > int64(paths)*counted {
		t.Errorf("detectors take %d bytes a path, and Memory counts %d; %d findings", most/int64(paths), counted, reported)
	}
	runtime.KeepAlive(detector)
}

// TestMemoryOfFlows fills a table with flows and measures what one costs: no more than the settings allow, and no less than
// they say.
func TestMemoryOfFlows(t *testing.T) {
	for _, path := range []int{1, 5, 12} {
		t.Run(fmt.Sprint(path, " hops"), func(t *testing.T) {
			c := testConfig().Flows
			c.MemoryBytes, c.MaxHops, c.TopFlows = int64(testkit.Rounds(64, 64))<<20, 256, 10
			before := heap()
			s := shard.New(c, 1)
			var batch decode.Batch
			rng := rand.New(rand.NewPCG(2, 2))
			empty := heap() - before
			for i := range testkit.Rounds(400_000, 400_000) {
				r := batch.Next()
				r.Time, r.Kind, r.Has = 1e18+int64(i), decode.KindStack, decode.HasFlow
				r.Flow = decode.FlowKey{SrcPort: uint16(i), DstPort: uint16(i >> 16), Proto: 6, IPVersion: 4}
				for k := range path {
					h := r.AddHop()
					h.Has, h.NodeID, h.Latency = decode.HopNodeID|decode.HopLatency, uint32(k), rng.Uint32()>>12
				}
				if len(batch.Reports) == 256 {
					s.Update(batch.Reports)
					batch.Reset()
				}
			}
			s.Update(batch.Reports)
			batch = decode.Batch{}
			full, st := heap()-before, s.Stats()
			t.Logf("%d flows of %d hops in %d bytes: %d bytes a flow; %d bytes when it is empty", st.Flows, path, full, st.MemoryBytes/int64(st.Flows), empty)
			if st.MemoryBytes > c.MemoryBytes || full > c.MemoryBytes+c.Memory(1) || full < st.MemoryBytes {
				t.Errorf("%d bytes for flows, %d on the heap, of %d and %d", st.MemoryBytes, full, c.MemoryBytes, c.MemoryBytes+c.Memory(1))
			}
			if st.EvictedPressure == 0 || st.MemoryBytes < c.MemoryBytes*9/10 {
				t.Errorf("%d flows do not fill the table", st.Flows)
			}
			runtime.KeepAlive(s)
		})
	}
}
