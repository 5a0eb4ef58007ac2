package pathtrace

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/internal/testkit"
)

// A path of fragments of ids is decoded as it is. However many digests agree, those of fragments that came before confirm
// nothing: hops of 8-bit ids keep their marks, and hops of 32-bit ids lose them after all four fragments.
func TestFragments(t *testing.T) {
	for _, tt := range []struct {
		bits, valueBits, instances int
		wide, confirmed            bool // ids of 32 bits; marks go
	}{
		{8, 8, 1, false, false},
		{4, 8, 1, false, false},
		{4, 8, 2, false, false},
		{8, 32, 1, true, true},
		{8, 32, 2, true, true},
		{16, 32, 1, true, true},
		{32, 32, 1, true, true},
		{11, 32, 2, true, true},
		{12, 8, 1, false, false}, // a fragment is wider than an id
		{12, 16, 1, false, false},
		{30, 32, 1, true, true},
	} {
		for round := range uint64(5) {
			seed := testkit.Seed(t) + round
			r := rand.New(rand.NewPCG(seed, 9))
			c := sparse(r, 150)
			slices.Sort(c.Nodes)
			for i := range c.Nodes {
				if c.Nodes[i] = uint32(i); tt.wide {
					c.Nodes[i] = uint32(i) * 28_633_115 // different in each of the four bytes
				}
			}
			scheme, err := pint.New(pint.Config{Seed: r.Uint32(), Bits: tt.bits, Instances: tt.instances, Tau: .75, P: []float64{.3}, ValueBits: tt.valueBits})
			if err != nil {
				t.Fatal(err)
			}
			c.Scheme, c.Routing = scheme, prior.Distance
			m, err := prior.NewModel(c)
			if err != nil {
				t.Fatal(err)
			}
			l := &lab{t: t, r: r, seed: seed, scheme: scheme, m: m, tracer: New(m)}
			path := shortestPath(r, m, -1, 0, 6)
			l.until(Decoded, 400, always(path))
			for range 20 * m.Config.Window {
				l.send(path)
				s, _ := l.tracer.Path(&l.flow, 0, nil)
				if s.Marked == 0 && !tt.confirmed {
					t.Fatalf("seed %d: %+v: no mark is left", seed, tt)
				}
			}
			l.wantPath(0, path)
			if s, _ := l.tracer.Path(&l.flow, 0, nil); tt.confirmed && s.Marked != 0 {
				t.Errorf("seed %d: %+v: hops %b are marked", seed, tt, s.Marked)
			}
		}
	}
}

// A node that is not on the map, whose id has the lowest fragments of the one on the map, keeps its mark.
func TestFragmentsAlike(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 9))
	nodes := []uint32{1 << 24, 2 << 24, 3 << 24}
	scheme, err := pint.New(pint.Config{Seed: r.Uint32(), Bits: 8, Instances: 1, Tau: 1, ValueBits: 32})
	if err != nil {
		t.Fatal(err)
	}
	m, err := prior.NewModel(prior.Config{Scheme: scheme, Nodes: nodes, Links: [][2]int32{{0, 1}, {1, 2}}})
	if err != nil {
		t.Fatal(err)
	}
	tracer := New(m)
	var flow Flow
	for range 2000 {
		id := r.Uint32()
		p := scheme.Packet(id, 0)
		if p.Fragment() == 3 && scheme.Writers(&p, 3) == 2 {
			continue // the fragment in which another id differs, at the second hop
		}
		tracer.Add(&flow, id, 3, scheme.Digest(id, nodes))
		if s, ok := tracer.Path(&flow, 0, nil); ok && s.Complete && s.Marked&2 == 0 {
			t.Fatalf("seed %d: the second hop has no mark after three of four fragments: %+v", seed, s)
		}
	}
	if !flow.Known() {
		t.Errorf("seed %d: the path is not known", seed)
	}
}

// Hops of which only fragments came that all nodes share are no more probable where the digests are not kept, as in a process that
// goes on with the flow.
func TestFragmentsResumed(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 9))
	nodes := []uint32{1, 2, 3}
	scheme, err := pint.New(pint.Config{Seed: r.Uint32(), Bits: 8, Instances: 1, Tau: 1, ValueBits: 32})
	if err != nil {
		t.Fatal(err)
	}
	m, err := prior.NewModel(prior.Config{Scheme: scheme, Nodes: nodes, Links: [][2]int32{{0, 1}, {1, 2}}})
	if err != nil {
		t.Fatal(err)
	}
	tracer := New(m)
	var flow, resumed Flow
	for range 500 {
		id := r.Uint32()
		if p := scheme.Packet(id, 0); p.Fragment() != 0 || scheme.Writers(&p, 3) == 1 {
			tracer.Add(&flow, id, 3, scheme.Digest(id, nodes))
		}
	}
	kept := tracer.HopConfidence(&flow, 0, nil)
	tracer.Resume(&resumed, tracer.Saved(&flow))
	after := tracer.HopConfidence(&resumed, 0, nil)
	if len(kept) != 3 || len(after) != 3 || kept[1] > 0.95 {
		t.Fatalf("seed %d: hops are right with %v, then with %v", seed, kept, after)
	}
	for h := 1; h < 3; h++ {
		if after[h] > kept[h] {
			t.Errorf("seed %d: hop %d is right with %v, and with %v where its digests are not kept", seed, h+1, kept[h], after[h])
		}
	}
}
