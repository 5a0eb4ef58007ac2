package shard

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/aggregation"
	"github.com/hopscope/hopscope/inference/digest"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/internal/plain"
	"github.com/hopscope/hopscope/internal/testkit"
)

// newDigestState follows plans of the given epochs, or one of epoch 7.
func newDigestState(t *testing.T, epochs ...uint8) (*State, *pint.Plan, []uint32, [][2]int32) {
	t.Helper()
	nodes, links := plain.Ring(40)
	if epochs == nil {
		epochs = []uint8{7}
	}
	cfg := DefaultConfig()
	cfg.MemoryBytes = 8 << 20
	s := New(cfg, 1)
	c := aggregation.DefaultConfig()
	c.Hops = 4096
	var plans []digest.Plan
	for _, epoch := range epochs {
		p := plain.DigestPlan(t, epoch)
		m, err := prior.NewModel(prior.Config{Scheme: p.Queries[0].Scheme, Nodes: nodes, Links: links, Ends: [][]int32{{0}, {3, 9}}})
		if err != nil {
			t.Fatal(err)
		}
		load, err := aggregation.NewLoadTracker(aggregation.DefaultLoadConfig(), p.Queries[2].Code)
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, digest.Plan{Plan: p, Models: []*prior.Model{m, nil, nil}, Loads: []*aggregation.LoadTracker{nil, nil, load}})
	}
	ends := func(k *decode.FlowKey) (ingress, egress uint16) { return k.DstPort >> 8, k.DstPort & 0xff } // tests say it there
	if err := s.ReadDigests(digest.Config{Plans: plans, Values: c, Ends: ends}, 1); err != nil {
		t.Fatal(err)
	}
	return s, plans[0].Plan, nodes, links
}

func flowPath(f *inference.FlowStats) (path []uint32) {
	for i := range f.Hops {
		path = append(path, f.Hops[i].Node)
	}
	return path
}

func TestDigestsOfFlows(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	s, p, nodes, links := newDigestState(t)
	const flows, packets = 60, 600
	paths := make([][]uint32, flows)
	now := int64(1e18)
	send := func(n int) {
		for range n {
			var batch []*decode.Report
			for f := range flows {
				now += 1000
				batch = append(batch, plain.RandomDigest(rng, p, f, paths[f], now))
			}
			s.Update(batch)
		}
	}
	for f := range paths {
		paths[f] = plain.RandomWalk(rng, nodes, links, 2+f%9)
	}
	send(packets)
	for _, got := range s.Flows(flows) {
		want := paths[got.Key.SrcPort]
		if got.Partial || !slices.Equal(flowPath(&got), want) || got.Confidence < 1-1e-6 || got.Digests == 0 || got.Digests >= packets {
			t.Fatalf("seed %d: flow %d took %d, inferred %+v", seed, got.Key.SrcPort, want, got)
		}
		if l := got.Load; l.Digests == 0 || l.Mean < .48 || l.Mean > .52 || l.Max > .55 {
			t.Errorf("seed %d: fullest link at %+v, want 0.5", seed, l)
		}
		for h, n := range want {
			if l := got.Hops[h].Latency; l.Count == 0 || float64(l.P50) < float64(n)*1000*.85 || float64(l.P50) > float64(n)*1000*1.15 {
				t.Errorf("seed %d: median latency %d ns of %d digests at node %d, want about %d", seed, l.P50, l.Count, n, n*1000)
			}
		}
	}
	s.Recycle(s.Cut(now))

	// Every flow goes another way, of the same length.
	old := paths
	paths = make([][]uint32, flows)
	for f := range paths {
		for paths[f] = plain.RandomWalk(rng, nodes, links, len(old[f])); slices.Equal(paths[f], old[f]); {
			paths[f] = plain.RandomWalk(rng, nodes, links, len(old[f]))
		}
	}
	send(packets)
	w := windowOf(100, s.Cut(now))
	changed := map[uint16]int{}
	for _, c := range w.Paths {
		changed[c.Flow.SrcPort]++
	}
	if len(changed) != flows {
		t.Errorf("seed %d: %d of %d flows changed their path", seed, len(changed), flows)
	}
	for _, got := range s.Flows(flows) {
		if want := paths[got.Key.SrcPort]; !slices.Equal(flowPath(&got), want) {
			t.Errorf("seed %d: flow %d took %d, inferred %+v", seed, got.Key.SrcPort, want, flowPath(&got))
		}
	}
	if st := s.Stats().Digests; st.Digests != 2*flows*packets || st.Unread+st.Rejected+st.Unexplained != 0 || st.Decoded != flows || st.Undecided != 0 {
		t.Errorf("seed %d: %+v", seed, st)
	}
	// The hops of the network have their latencies, too.
	if len(w.Hops) == 0 || w.Hops[0].Latency.Count == 0 {
		t.Errorf("seed %d: no latencies of hops", seed)
	}
}

// Flows that leave the table leave nothing behind.
func TestDigestsOfEvictedFlows(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	s, p, nodes, links := newDigestState(t)
	path := plain.RandomWalk(rng, nodes, links, 4)
	for f := range 3 * s.flows.Cap() {
		s.Update([]*decode.Report{plain.RandomDigest(rng, p, 0, path, 1e18+int64(f))})
		r := plain.RandomDigest(rng, p, f, path, 1e18+int64(f))
		r.Flow.Src[0] = byte(f >> 16)
		s.Update([]*decode.Report{r})
	}
	for slot := range s.flows.All() {
		s.flows.Delete(slot)
		if s.digests.Has(slot) {
			t.Fatalf("seed %d: digests of a flow that left the table", seed)
		}
	}
	if st := s.Stats().Digests; st.Undecided != 0 {
		t.Errorf("seed %d: %d undecided flows in an empty table", seed, st.Undecided)
	}
}
