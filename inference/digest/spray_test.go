package digest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/aggregation"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/internal/plain"
)

// spraying is a flow in a network of leaves 0 to 7 and spines 100 to 115, with digests of 2 × 8 bits.
type spraying struct {
	t   *testing.T
	r   *rand.Rand
	s   *table
	p   *pint.Plan
	now int64
}

func newSpraying(t *testing.T, seed uint64, bytes int64) *spraying {
	t.Helper()
	c := pint.Published(8)
	c.Instances = 2
	scheme, err := pint.New(c)
	if err != nil {
		t.Fatal(err)
	}
	p := &pint.Plan{Epoch: 7, Bits: 16, Queries: []pint.Query{{Name: "path", Value: pint.NodeValue, Aggregation: pint.Static, Bits: 16, Scheme: scheme}},
		Sets: []pint.Set{{Share: 1, Slots: []pint.Slot{{Query: 0}}}}}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	var nodes []uint32
	var links [][2]int32
	for leaf := range int32(8) {
		nodes = append(nodes, uint32(leaf))
		for spine := range int32(16) {
			links = append(links, [2]int32{leaf, 8 + spine})
		}
	}
	for spine := range uint32(16) {
		nodes = append(nodes, 100+spine)
	}
	m, err := prior.NewModel(prior.Config{Scheme: scheme, Nodes: nodes, Links: links, Routing: prior.Distance})
	if err != nil {
		t.Fatal(err)
	}
	d := Config{Plans: []Plan{{Plan: p, Models: []*prior.Model{m}, Loads: nil}}, Values: aggregation.DefaultConfig(), SprayBytes: bytes}
	d.Plans[0].Loads = append(d.Plans[0].Loads, nil)
	d.Values.Hops = 16
	return &spraying{t: t, r: rand.New(rand.NewPCG(seed, 11)), s: newTable(t, d), p: p, now: 1e18}
}

// send sends packets of a flow, each over a path that is drawn.
func (x *spraying) send(flow, n int, path func() []uint32) {
	for range n {
		x.now += 1e6
		x.s.update(plain.RandomDigest(x.r, x.p, flow, path(), x.now))
	}
}

// forge sends packets with digests that no switch wrote.
func (x *spraying) forge(flow, n int) {
	for range n {
		x.now += 1e6
		r := plain.RandomDigest(x.r, x.p, flow, []uint32{0, 100, 1}, x.now)
		r.Digest.Value = x.r.Uint64() & 0xffff
		x.s.update(r)
	}
}

func (x *spraying) window() inference.Window {
	return x.s.window()
}

func (x *spraying) flow() inference.FlowStats {
	x.t.Helper()
	all := x.s.stats()
	if len(all) != 1 {
		x.t.Fatalf("%d flows", len(all))
	}
	return all[0]
}

// over draws one of the first spines.
func (x *spraying) over(spines int) func() []uint32 {
	return func() []uint32 { return []uint32{0, 100 + uint32(x.r.IntN(spines)), 1} }
}

// A flow that is sprayed over several paths has all of them, each with its share. It is not strange and does not change
// its path.
func TestSprayed(t *testing.T) {
	for _, spines := range []int{3, 4, 8, 16} {
		for seed := range uint64(4) {
			x := newSpraying(t, seed, 1<<20)
			for range 5 {
				x.send(1, 600, x.over(spines))
				// The first few are strange before it is known that there is a spray; a finding needs ten.
				w := x.window()
				if len(w.Digests) > 0 && w.Digests[0].Count >= sprayUnrest || len(w.Paths) > 0 {
					t.Errorf("%d paths, seed %d: digests %+v, changes %+v", spines, seed, w.Digests, w.Paths)
				}
			}
			got := x.flow()
			found := map[uint32]float64{}
			if len(got.Hops) == 3 && !got.Partial {
				found[got.Hops[1].Node] = got.Share
			}
			for _, o := range got.Others {
				found[o.Nodes[1]] = o.Share
			}
			if len(found) != spines || len(got.Others) != spines-1 || len(got.Inseparable) > 0 || got.Unexplained > .01 {
				t.Fatalf("%d paths, seed %d: %+v", spines, seed, got)
			}
			for spine := range uint32(spines) {
				if math.Abs(found[100+spine]-1/float64(spines)) > .06 {
					t.Errorf("%d paths, seed %d: the share of the one over %d is %.3f", spines, seed, 100+spine, found[100+spine])
				}
			}
			if d := x.s.d.Stats(); d.Sprayed != 1 || d.Unexplained >= sprayUnrest {
				t.Errorf("%d paths, seed %d: %+v", spines, seed, d)
			}
		}
	}
}

// When a spray moves to other paths these are found, and when it ends the one path is.
func TestSprayMoves(t *testing.T) {
	x := newSpraying(t, 1, 1<<20)
	x.send(1, 2500, x.over(4))
	x.window()
	others := func() []uint32 { return []uint32{0, 108 + uint32(x.r.IntN(4)), 1} }
	for range 4 {
		x.send(1, 1500, others)
		x.window()
	}
	if got := x.flow(); len(got.Others) != 3 || got.Hops[1].Node < 108 || got.Others[0].Nodes[1] < 108 {
		t.Fatalf("%+v", got)
	}
	for range 40 {
		x.send(1, 1500, func() []uint32 { return []uint32{0, 115, 1} })
		x.window()
	}
	if got := x.flow(); len(got.Hops) != 3 || got.Hops[1].Node != 115 || got.Share != 0 || x.s.d.Stats().Sprayed != 0 {
		t.Fatalf("%+v, %+v", got, x.s.d.Stats())
	}
}

// Forged digests are published as strange, at the latest after some windows, and a share of them beside a spray is, too.
func TestSprayForged(t *testing.T) {
	x := newSpraying(t, 2, 1<<20)
	strange := uint64(0)
	for range 8 {
		x.forge(1, 400)
		for _, d := range x.window().Digests {
			strange += d.Count
		}
	}
	if got := x.flow(); strange < 2000 || len(got.Others) > 0 || got.Share > 0 {
		t.Fatalf("%d strange digests, %+v", strange, got)
	}
	x = newSpraying(t, 3, 1<<20)
	strange = 0
	for range 8 {
		for range 100 {
			x.send(1, 4, x.over(6))
			x.forge(1, 1)
		}
		for _, d := range x.window().Digests {
			strange += d.Count
		}
	}
	got := x.flow()
	if strange < 300 || strange > 1000 || len(got.Others) != 5 || math.Abs(got.Unexplained-.2) > .06 {
		t.Fatalf("%d strange digests, %+v", strange, got)
	}
}

// Memory is bounded, given back with the flows, and 0 keeps nothing.
func TestSprayMemory(t *testing.T) {
	x := newSpraying(t, 4, 64<<10)
	for flow := range 50 {
		x.send(flow, 600, x.over(6))
	}
	x.window()
	p := &x.s.d.sprays
	if p.bytes > p.most || p.bytes < 32<<10 || len(p.flows) < 3 {
		t.Fatalf("%d bytes of %d, %d flows", p.bytes, p.most, len(p.flows))
	}
	if st := x.s.d.Stats(); st.Unkept == 0 || st.Unkept > st.Digests {
		t.Errorf("%d of %d digests were not kept", st.Unkept, st.Digests)
	}
	sum := int64(0)
	for i := range p.flows[1:] {
		if f := &p.flows[i+1]; f.x != 0 {
			sum += sprayStruct + int64(cap(f.digests))*sprayDigest
		}
	}
	if sum != p.bytes {
		t.Errorf("%d bytes are counted, %d are taken", p.bytes, sum)
	}
	for key := range x.s.slots {
		x.s.forget(key)
	}
	if p.bytes != 0 {
		t.Errorf("%d bytes are still taken", p.bytes)
	}
	x = newSpraying(t, 4, 0)
	x.send(1, 3000, x.over(6))
	if p := &x.s.d.sprays; p.bytes != 0 || len(p.flows) != 1 || p.unkept != 0 {
		t.Errorf("%d bytes without memory, %d digests that it has no room for", p.bytes, p.unkept)
	}
}

// In lists of flows' paths, a sprayed flow is neither known nor undecided, and has all paths. While it is not known
// whether it is sprayed, its one path is marked as contradicted.
func TestInferredSprayed(t *testing.T) {
	x := newSpraying(t, 5, 1<<20)
	x.send(1, 200, x.over(1))
	x.send(2, 200, x.over(1))
	one := x.s.inferred(10)
	if one.Known != 2 || one.Sprayed+one.Undecided != 0 || one.Flows[0].Unsettled || one.Flows[0].Sprayed() {
		t.Fatalf("two flows with one path each: %+v", one)
	}
	x.send(1, 40, x.over(4)) // too few to decide
	key := one.Flows[0].Key
	if first := one.Flows[1].Key; x.s.describe(x.s.slots[first]).Unsettled {
		key = first
	}
	of := func() InferredFlow {
		t.Helper()
		return x.s.d.Infer(x.s.slots[key], x.s.describe(x.s.slots[key]))
	}
	if got := of(); !got.Unsettled || got.Sprayed() {
		t.Errorf("after 40 digests of four paths: %+v", got)
	}
	for range 3 {
		x.send(1, 600, x.over(4))
		x.window()
	}
	if got := of(); got.Unsettled || !got.Sprayed() || 1+len(got.Others) != 4 || got.Needed != 0 {
		t.Errorf("sprayed over four paths: %+v", got)
	}
	all := x.s.inferred(10)
	if all.Known != 1 || all.Sprayed != 1 || all.Undecided != 0 || len(all.Flows) != 2 || all.Flows[0].Key != key {
		t.Errorf("all: %+v", all)
	}
	var sum Inferred
	sum.Add(&all, 1)
	sum.Add(&all, 1)
	if sum.Sprayed != 2 || sum.Known != 2 || len(sum.Flows) != 1 {
		t.Errorf("two shards: %+v", sum)
	}
}
