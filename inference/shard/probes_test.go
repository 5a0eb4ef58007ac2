package shard

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// probeOf is a report of the n-th probe of an agent.
func probeOf(n uint16, at int64) *decode.Report {
	r := stack(1<<20+uint32(n), at, hop(1, n, 100), hop(2, 1, 200))
	r.Flow.Proto, r.Flow.SrcPort, r.Flow.DstPort = 17, 49152+n, 17769
	return r
}

// TestProbesAmongFlows: if there are many more flows than are listed, and all of them busier, probes are listed
// nevertheless. They are listed with all their reports, by any number of shards. A sender that floods their port takes
// half of the places and no more, and the busiest flows are listed all the same.
func TestProbesAmongFlows(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 29))
		cfg := testConfig()
		cfg.TopFlows = 20
		s := newSplit(cfg, 1+rng.IntN(4), rng)
		for window, probes := range []int{8, 8, 0, 500, 8} {
			count := map[decode.FlowKey]uint64{}
			var reports []*decode.Report
			add := func(r *decode.Report) {
				reports = append(reports, r)
				count[r.Flow]++
			}
			at := int64(window + 1)
			for n := range uint32(2000) {
				for range 6 + rng.IntN(30) {
					add(stack(n, at, hop(1, 1, 100), hop(2, 1, 200)))
				}
			}
			for n := range probes {
				for range 5 {
					add(probeOf(uint16(n), at))
				}
			}
			rng.Shuffle(len(reports), func(i, k int) { reports[i], reports[k] = reports[k], reports[i] })
			s.update(reports)
			w := s.cut(t, at).Window(cfg.Limits())
			found := 0
			for i, f := range w.Flows {
				if f.Packets != count[f.Key] || i > 0 && f.Packets > w.Flows[i-1].Packets {
					t.Fatalf("seed %d, window %d: flow %d has %d reports, want %d", seed, window, i, f.Packets, count[f.Key])
				}
				if inference.IsProbe(&f.Key) {
					found++
					if len(f.Hops) != 2 || f.Hops[0].Latency.Count != 5 {
						t.Fatalf("seed %d, window %d: probe %+v", seed, window, f)
					}
				}
				delete(count, f.Key)
			}
			if want := min(probes, cfg.TopFlows/2); found != want || len(w.Flows) != cfg.TopFlows {
				t.Fatalf("seed %d, window %d: %d of %d flows are probes, want %d", seed, window, found, len(w.Flows), want)
			}
			for k, n := range count {
				if n > w.FlowBound {
					t.Fatalf("seed %d, window %d: %v has %d reports and is not listed, the bound is %d", seed, window, k, n, w.FlowBound)
				}
			}
			busiest, least := uint64(0), ^uint64(0) // of others, left out and listed
			for k, n := range count {
				if !inference.IsProbe(&k) {
					busiest = max(busiest, n)
				}
			}
			for i := range w.Flows {
				if !inference.IsProbe(&w.Flows[i].Key) {
					least = min(least, w.Flows[i].Packets)
				}
			}
			if busiest > least {
				t.Fatalf("seed %d, window %d: a flow of %d reports is left out, and one of %d listed", seed, window, busiest, least)
			}
		}
	}
}
