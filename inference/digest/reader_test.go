package digest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/plain"
	"github.com/hopscope/hopscope/internal/testkit"
)

func TestStrangeDigests(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	s, plans, nodes, links := newPlanTable(t, nil)
	p := plans[0]
	path := plain.RandomWalk(rng, nodes, links, 5)
	count := func(n int, change func(r *decode.Report)) Stats {
		before := s.d.Stats()
		for range n {
			r := plain.RandomDigest(rng, p, 1, path, 1e18)
			change(r)
			s.update(r)
		}
		after := s.d.Stats()
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
	w := s.window()
	if len(w.Digests) != 1 || w.Digests[0].Fault != inference.Inconsistent || w.Digests[0].Count < 1000 {
		t.Errorf("seed %d: faults of digests: %+v", seed, w.Digests)
	}
}

// Flows that leave the table leave nothing behind.
func TestForget(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	s, plans, nodes, links := newPlanTable(t, nil)
	path := plain.RandomWalk(rng, nodes, links, 4)
	for round := range 20 {
		var keys []decode.FlowKey
		for f := range 100 {
			r := plain.RandomDigest(rng, plans[0], f, path, 1e18)
			s.update(r)
			keys = append(keys, r.Flow)
		}
		for _, k := range keys {
			s.forget(k)
		}
		if n := len(s.d.flows); n != 101 {
			t.Fatalf("seed %d: round %d: state of %d flows, want 100", seed, round, n-1)
		}
	}
	if st := s.d.Stats(); st.Undecided != 0 {
		t.Errorf("seed %d: %d undecided flows in an empty table", seed, st.Undecided)
	}
	for _, pool := range s.d.plans[plans[0].Epoch].pools {
		if pool != nil && pool.Stats().Hops != 0 {
			t.Errorf("seed %d: sketches of %d hops without a flow", seed, pool.Stats().Hops)
		}
	}
}

// While switches go over from one plan to the next, packets of both come in turn. Neither plan's knowledge is lost.
func TestPlanChangeOver(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	s, plans, nodes, links := newPlanTable(t, nil, 7, 8, 9)
	before, after, third := plans[0], plans[1], plans[2]
	path := plain.RandomWalk(rng, nodes, links, 7)
	send := func(n int, plans ...*pint.Plan) {
		for i := range n {
			s.update(plain.RandomDigest(rng, plans[i%len(plans)], 1, path, 1e18))
		}
	}
	check := func(when string, decoded uint64) {
		t.Helper()
		f := s.stats()[0]
		st := s.d.Stats()
		if f.Partial || !slices.Equal(flowPath(&f), path) || f.Changes != 0 || st.Decoded != decoded || st.Unexplained+st.Rejected+st.Unread != 0 {
			t.Errorf("seed %d: %s: path %d, want %d; changes %d, partial %v; %+v", seed, when, flowPath(&f), path, f.Changes, f.Partial, st)
		}
		if len(s.d.flows) > 3 {
			t.Errorf("seed %d: %s: %d states of one flow", seed, when, len(s.d.flows)-1)
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

// A flow whose ends are known needs fewer digests. A path with other ends contradicts them, and is published all the
// same.
func TestEnds(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	path := []uint32{100, 101, 102, 103, 104, 109} // from the first set to the second one
	needed := func(port uint16) (sum uint64) {
		s, plans, _, _ := newPlanTable(t, nil)
		p := plans[0]
		for f := range 300 {
			for range 100 {
				r := plain.RandomDigest(rng, p, f, path, 1e18)
				r.Flow.DstPort = port
				s.update(r)
			}
		}
		for _, f := range s.stats() {
			if f.Partial || !slices.Equal(flowPath(&f), path) {
				t.Fatalf("seed %d: path %d, want %d", seed, flowPath(&f), path)
			}
			sum += f.Digests
		}
		return sum
	}
	if with, without := needed(1<<8|2), needed(0); with >= without {
		t.Errorf("seed %d: %d digests with known ends, %d without", seed, with, without)
	}
	s, plans, _, _ := newPlanTable(t, nil)
	p := plans[0]
	for range 300 {
		r := plain.RandomDigest(rng, p, 1, path, 1e18)
		r.Flow.DstPort = 2<<8 | 1
		s.update(r)
	}
	if f := s.stats()[0]; f.Partial || !slices.Equal(flowPath(&f), path) || s.d.Stats().Unexplained == 0 {
		t.Errorf("seed %d: a path between other ends: %+v, %+v", seed, f, s.d.Stats())
	}
}

// Paths that flowlets take in turn are several paths and no changes; a path that is never taken again is one.
func TestFlowlets(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	s, plans, nodes, links := newPlanTable(t, nil)
	p := plans[0]
	a := plain.RandomWalk(rng, nodes, links, 6)
	b := plain.RandomWalk(rng, nodes, links, 6)
	for slices.Equal(a, b) {
		b = plain.RandomWalk(rng, nodes, links, 6)
	}
	send := func(path []uint32, n int) {
		for range n {
			s.update(plain.RandomDigest(rng, p, 1, path, 1e18))
		}
	}
	send(a, 100)
	for range 100 { // bursts that are too short to be distinguished from a change that goes back at first
		send(b, 1+rng.IntN(10))
		send(a, 1+rng.IntN(10))
	}
	f := s.stats()[0]
	shown := flowPath(&f)
	if !(slices.Equal(shown, a) || slices.Equal(shown, b)) || len(f.Others) == 0 || f.Changes > 6 {
		t.Errorf("seed %d: flowlets on %d and %d: path %d, others %v, %d changes", seed, a, b, shown, f.Others, f.Changes)
	}
	both := map[bool]bool{slices.Equal(shown, a): true}
	for _, o := range f.Others {
		both[slices.Equal(o.Nodes, a)] = true
	}
	if len(both) != 2 {
		t.Errorf("seed %d: path %d, others %v, want %d and %d", seed, shown, f.Others, a, b)
	}
	other := a
	if slices.Equal(shown, a) {
		other = b
	}
	send(other, 2*goneAfter)
	if g := s.stats()[0]; !slices.Equal(flowPath(&g), other) || g.Changes == f.Changes {
		t.Errorf("seed %d: after a change path %d, want %d; %d changes", seed, flowPath(&g), other, g.Changes)
	}
}

// Digests of a flow whose path is known take no memory.
func TestAllocations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	s, plans, nodes, links := newPlanTable(t, nil)
	path := plain.RandomWalk(rng, nodes, links, 6)
	next := func() *decode.Report { return plain.RandomDigest(rng, plans[0], 1, path, 1e18) }
	for range 500 {
		s.update(next())
	}
	var reports []*decode.Report
	for range 201 {
		reports = append(reports, next())
	}
	id, values := s.flows[0].PathID, 0
	if n := testing.AllocsPerRun(len(reports)-1, func() {
		var part Parts
		for s.d.Begin(&part, 0, reports[0]); part.Next(id, &s.open); {
			values += len(part.Values)
		}
		reports = reports[1:]
	}); n != 0 || values < 100 {
		t.Errorf("%v allocations a digest, %d values", n, values)
	}
}
