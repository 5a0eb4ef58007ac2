package shard

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/aggregation"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/internal/testkit"
)

// ring is a network of n nodes 100, 101, ... in a ring with chords.
func ring(n int) (nodes []uint32, links [][2]int32) {
	for i := range n {
		nodes = append(nodes, uint32(100+i))
		links = append(links, [2]int32{int32(i), int32((i + 1) % n)}, [2]int32{int32(i), int32((i + 5) % n)})
	}
	return nodes, links
}

func digestPlan(t *testing.T, epoch uint8) *pint.Plan {
	t.Helper()
	path, err := pint.New(pint.Config{Seed: uint32(epoch), Bits: 8, Instances: 1, Tau: .5, P: []float64{.2}})
	if err != nil {
		t.Fatal(err)
	}
	delay, err := pint.New(pint.Config{Seed: 2, Bits: 8, Instances: 1, Tau: 1})
	if err != nil {
		t.Fatal(err)
	}
	code, err := pint.NewCode(pint.CodeConfig{Bits: 8, Max: 1e9})
	if err != nil {
		t.Fatal(err)
	}
	load, err := pint.NewCode(pint.CodeConfig{Bits: 8, Epsilon: .025})
	if err != nil {
		t.Fatal(err)
	}
	p := &pint.Plan{Epoch: epoch, Bits: 24,
		Queries: []pint.Query{
			{Name: "path", Value: pint.NodeValue, Aggregation: pint.Static, Bits: 8, Scheme: path},
			{Name: "latency", Value: pint.LatencyValue, Aggregation: pint.Dynamic, Bits: 8, Scheme: delay, Code: code},
			{Name: "load", Value: pint.UtilizationValue, Aggregation: pint.PerPacket, Bits: 8, Code: load},
		},
		Sets: []pint.Set{{Share: 1, Slots: []pint.Slot{{Query: 0}, {Query: 1, Shift: 8}, {Query: 2, Shift: 16}}}},
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

// walk is a random path of n nodes without a loop.
func walk(rng *rand.Rand, nodes []uint32, links [][2]int32, n int) []uint32 {
	for {
		at, seen := rng.IntN(len(nodes)), map[int]bool{}
		var path []uint32
		for len(path) < n && !seen[at] {
			seen[at] = true
			path = append(path, nodes[at])
			var next []int
			for _, l := range links {
				if int(l[0]) == at {
					next = append(next, int(l[1]))
				}
				if int(l[1]) == at {
					next = append(next, int(l[0]))
				}
			}
			at = next[rng.IntN(len(next))]
		}
		if len(path) == n {
			return path
		}
	}
}

// digestReport is what the last switch of a path says of one packet. Node n takes about n microseconds.
func digestReport(rng *rand.Rand, p *pint.Plan, flow int, path []uint32, at int64) *decode.Report {
	r := &decode.Report{Time: at, Format: decode.TelemetryReport, Kind: decode.KindDigest, Has: decode.HasFlow | decode.HasDigest}
	r.Flow = decode.FlowKey{SrcPort: uint16(flow), Proto: 17, IPVersion: 4}
	r.Digest = decode.Digest{ID: rng.Uint32(), Hops: uint8(len(path)), Epoch: p.Epoch}
	rnd := rng.Uint32()
	for i, n := range path {
		v := pint.Values{Node: n, Latency: uint64(n)*1000 + rng.Uint64N(10), Utilization: pint.UtilizationUnit / uint64(i+2)}
		r.Digest.Value = p.Write(r.Digest.Value, r.Digest.ID, i+1, v, rnd)
	}
	return r
}

// newDigestState follows plans of the given epochs, or one of epoch 7.
func newDigestState(t *testing.T, epochs ...uint8) (*State, *pint.Plan, []uint32, [][2]int32) {
	t.Helper()
	nodes, links := ring(40)
	if epochs == nil {
		epochs = []uint8{7}
	}
	cfg := DefaultConfig()
	cfg.MemoryBytes = 8 << 20
	s := New(cfg, 1)
	c := aggregation.DefaultConfig()
	c.Hops = 4096
	var plans []DigestPlan
	for _, epoch := range epochs {
		p := digestPlan(t, epoch)
		m, err := prior.NewModel(prior.Config{Scheme: p.Queries[0].Scheme, Nodes: nodes, Links: links, Ends: [][]int32{{0}, {3, 9}}})
		if err != nil {
			t.Fatal(err)
		}
		load, err := aggregation.NewLoadTracker(aggregation.DefaultLoadConfig(), p.Queries[2].Code)
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, DigestPlan{Plan: p, Models: []*prior.Model{m, nil, nil}, Loads: []*aggregation.LoadTracker{nil, nil, load}})
	}
	ends := func(k *decode.FlowKey) (ingress, egress uint16) { return k.DstPort >> 8, k.DstPort & 0xff } // tests say it there
	if err := s.ReadDigests(Digests{Plans: plans, Values: c, Ends: ends}, 1); err != nil {
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

func equal(a, b []uint32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
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
				batch = append(batch, digestReport(rng, p, f, paths[f], now))
			}
			s.Update(batch)
		}
	}
	for f := range paths {
		paths[f] = walk(rng, nodes, links, 2+f%9)
	}
	send(packets)
	for _, got := range s.Flows(flows) {
		want := paths[got.Key.SrcPort]
		if got.Partial || !equal(flowPath(&got), want) || got.Confidence < 1-1e-6 || got.Digests == 0 || got.Digests >= packets {
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
		for paths[f] = walk(rng, nodes, links, len(old[f])); equal(paths[f], old[f]); {
			paths[f] = walk(rng, nodes, links, len(old[f]))
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
		if want := paths[got.Key.SrcPort]; !equal(flowPath(&got), want) {
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

func TestStrangeDigests(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	s, p, nodes, links := newDigestState(t)
	path := walk(rng, nodes, links, 5)
	count := func(n int, change func(r *decode.Report)) DigestStats {
		before := s.Stats().Digests
		for range n {
			r := digestReport(rng, p, 1, path, 1e18)
			change(r)
			s.Update([]*decode.Report{r})
		}
		after := s.Stats().Digests
		after.Unread -= before.Unread
		after.Rejected -= before.Rejected
		after.Unexplained -= before.Unexplained
		return after
	}
	if st := count(10, func(r *decode.Report) { r.Digest.Epoch++ }); st.Unread != 10 {
		t.Errorf("digests of another plan: %+v", st)
	}
	if st := count(10, func(r *decode.Report) { r.Digest.Hops = 0 }); st.Rejected != 10 {
		t.Errorf("digests without a hop: %+v", st)
	}
	if st := count(10, func(r *decode.Report) { r.Digest.Hops = 255 }); st.Rejected != 10 {
		t.Errorf("digests of 255 hops: %+v", st)
	}
	if st := count(10, func(r *decode.Report) { r.Digest.Value |= 1 << 30 }); st.Rejected != 10 {
		t.Errorf("digests wider than the plan: %+v", st)
	}
	if st := count(10, func(r *decode.Report) { r.Digest.Coding = decode.CodingMininet }); st.Unread != 10 {
		t.Errorf("digests of another program: %+v", st)
	}
	if st := count(5000, func(r *decode.Report) { r.Digest.Value = rng.Uint64() & (1<<24 - 1) }); st.Unexplained < 1000 {
		t.Errorf("seed %d: forged digests: %+v", seed, st)
	}
	w := windowOf(10, s.Cut(2e18))
	if len(w.Digests) != 1 || w.Digests[0].Fault != inference.Inconsistent || w.Digests[0].Count < 1000 {
		t.Errorf("seed %d: faults of digests: %+v", seed, w.Digests)
	}
}

// Flows that leave the table leave nothing behind.
func TestDigestsOfEvictedFlows(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	s, p, nodes, links := newDigestState(t)
	path := walk(rng, nodes, links, 4)
	most := 0
	for f := range 3 * s.flows.Cap() {
		s.Update([]*decode.Report{digestReport(rng, p, 0, path, 1e18+int64(f))})
		r := digestReport(rng, p, f, path, 1e18+int64(f))
		r.Flow.Src[0] = byte(f >> 16)
		s.Update([]*decode.Report{r})
		most = max(most, len(s.digests.flows))
	}
	if most > s.flows.Cap()+1 {
		t.Errorf("seed %d: state of %d flows with digests for %d places in the table", seed, most, s.flows.Cap())
	}
	for slot := range s.flows.All() {
		s.flows.Delete(slot)
	}
	if st := s.Stats().Digests; st.Undecided != 0 {
		t.Errorf("seed %d: %d undecided flows in an empty table", seed, st.Undecided)
	}
	for _, pool := range s.digests.plans[p.Epoch].pools {
		if pool != nil && pool.Stats().Hops != 0 {
			t.Errorf("seed %d: sketches of %d hops without a flow", seed, pool.Stats().Hops)
		}
	}
}

// While switches go over from one plan to the next, packets of both come in turn. Neither plan's knowledge is lost.
func TestPlanChangeOver(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	s, before, nodes, links := newDigestState(t, 7, 8, 9)
	after, third := s.digests.plans[8].Plan, s.digests.plans[9].Plan
	path := walk(rng, nodes, links, 7)
	send := func(n int, plans ...*pint.Plan) {
		for i := range n {
			s.Update([]*decode.Report{digestReport(rng, plans[i%len(plans)], 1, path, 1e18)})
		}
	}
	check := func(when string, decoded uint64) {
		t.Helper()
		f := s.Flows(1)[0]
		st := s.Stats().Digests
		if f.Partial || !equal(flowPath(&f), path) || f.Changes != 0 || st.Decoded != decoded || st.Unexplained+st.Rejected+st.Unread != 0 {
			t.Errorf("seed %d: %s: path %d, want %d; changes %d, partial %v; %+v", seed, when, flowPath(&f), path, f.Changes, f.Partial, st)
		}
		if len(s.digests.flows) > 3 {
			t.Errorf("seed %d: %s: %d states of one flow", seed, when, len(s.digests.flows)-1)
		}
	}
	send(500, before)
	check("before", 1)
	send(1, after)
	check("with the first packet", 1)
	send(1000, before, after)
	check("with packets of both", 2)
	send(500, after)
	check("after", 2)
	send(500, third, after)
	check("with the next change", 3)
}

// A flow whose ends are known needs fewer digests. A path with other ends contradicts them, and is published all the same.
func TestEnds(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	path := []uint32{100, 101, 102, 103, 104, 109} // from the first set to the second one
	needed := func(port uint16) (sum uint64) {
		s, p, _, _ := newDigestState(t)
		for f := range 300 {
			for range 100 {
				r := digestReport(rng, p, f, path, 1e18)
				r.Flow.DstPort = port
				s.Update([]*decode.Report{r})
			}
		}
		for _, f := range s.Flows(300) {
			if f.Partial || !equal(flowPath(&f), path) {
				t.Fatalf("seed %d: path %d, want %d", seed, flowPath(&f), path)
			}
			sum += f.Digests
		}
		return sum
	}
	if with, without := needed(1<<8|2), needed(0); with >= without {
		t.Errorf("seed %d: %d digests with known ends, %d without", seed, with, without)
	}
	s, p, _, _ := newDigestState(t)
	for range 300 {
		r := digestReport(rng, p, 1, path, 1e18)
		r.Flow.DstPort = 2<<8 | 1
		s.Update([]*decode.Report{r})
	}
	if f := s.Flows(1)[0]; f.Partial || !equal(flowPath(&f), path) || s.Stats().Digests.Unexplained == 0 {
		t.Errorf("seed %d: a path between other ends: %+v, %+v", seed, f, s.Stats().Digests)
	}
}

// Paths that flowlets take in turn are several paths and no changes; a path that is never taken again is one.
func TestFlowlets(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	s, p, nodes, links := newDigestState(t)
	a := walk(rng, nodes, links, 6)
	b := walk(rng, nodes, links, 6)
	for equal(a, b) {
		b = walk(rng, nodes, links, 6)
	}
	send := func(path []uint32, n int) {
		for range n {
			s.Update([]*decode.Report{digestReport(rng, p, 1, path, 1e18)})
		}
	}
	send(a, 100)
	for range 100 { // bursts that are too short to be distinguished from a change that goes back at first
		send(b, 1+rng.IntN(10))
		send(a, 1+rng.IntN(10))
	}
	f := s.Flows(1)[0]
	shown := flowPath(&f)
	if !(equal(shown, a) || equal(shown, b)) || len(f.Others) == 0 || f.Changes > 6 {
		t.Errorf("seed %d: flowlets on %d and %d: path %d, others %v, %d changes", seed, a, b, shown, f.Others, f.Changes)
	}
	both := map[bool]bool{equal(shown, a): true}
	for _, o := range f.Others {
		both[equal(o.Nodes, a)] = true
	}
	if len(both) != 2 {
		t.Errorf("seed %d: path %d, others %v, want %d and %d", seed, shown, f.Others, a, b)
	}
	other := a
	if equal(shown, a) {
		other = b
	}
	send(other, 2*goneAfter)
	if g := s.Flows(1)[0]; !equal(flowPath(&g), other) || g.Changes == f.Changes {
		t.Errorf("seed %d: after a change path %d, want %d; %d changes", seed, flowPath(&g), other, g.Changes)
	}
}
