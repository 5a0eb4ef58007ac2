package solve

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/topo"
)

// withHosts is a fat-tree with two hosts at each edge switch, the first of which are depots.
func withHosts(t *testing.T, pods int) *cover.Problem {
	t.Helper()
	g, err := topo.FatTree(pods)
	if err != nil {
		t.Fatal(err)
	}
	b, p := g.Extend(), &cover.Problem{}
	for v := range g.NumNodes() {
		for i := 0; g.Tier(v) == topo.Edge && i < 2; i++ {
			h := b.AddNode(fmt.Sprintf("host-%d-%d", v, i), topo.NoTier)
			b.AddLink(topo.LinkEnd{Node: v}, topo.LinkEnd{Node: h})
			if i == 0 {
				p.Depots = append(p.Depots, h)
			}
		}
	}
	if p.Graph, err = b.Build(); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAttention: of all limits of hops the plan takes the one with the fewest expected bytes. Randomly drawn suspicious
// links cost that much, and the bound is below it.
func TestAttention(t *testing.T) {
	for _, tt := range []struct {
		pods, limit int
		directed    bool
		share       float64
	}{{6, 0, false, .03}, {6, 12, false, .03}, {6, 0, false, .3}, {4, 0, true, .1}, {8, 0, false, .01}} {
		name := fmt.Sprintf("%+v", tt)
		p := withHosts(t, tt.pods)
		p.MaxHops, p.Directed = tt.limit, tt.directed
		p.Attention = &cover.Attention{Share: tt.share, Basic: 32, Detailed: 88}
		plan, err := Plan(p, Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := cover.Check(p, plan); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a := plan.Stats.Attention
		if a.Bound <= 0 || a.Bound > a.Bytes || a.Bytes > 1.6*a.Bound {
			t.Errorf("%s: %.0f bytes, at least %.0f", name, a.Bytes, a.Bound)
		}
		for hops := 4; hops <= 40; hops++ {
			q := *p
			if q.MaxHops == 0 || hops < q.MaxHops {
				q.MaxHops = hops
			}
			other, err := once(&q, Options{Seed: 1})
			if err != nil {
				continue
			}
			if b := other.Stats.Attention.Bytes; b < .98*a.Bytes || b < a.Bound {
				t.Errorf("%s: %.0f bytes with at most %d links, %.0f with at most %d, at least %.0f", name, a.Bytes, a.MaxHops, b, hops, a.Bound)
			}
		}
		// What a loop costs that takes all probes over suspicious links, which is no less than one that chooses among them.
		walks, err := cover.Walks(p.Graph, plan.Probes)
		if err != nil {
			t.Fatal(err)
		}
		rng, mean := rand.New(rand.NewPCG(1, 2)), 0.0
		const rounds = 400
		for range rounds {
			bad, seen := map[int]bool{}, map[int]bool{}
			key := func(i int32) int {
				if tt.directed {
					return int(i)
				}
				return p.Graph.Link(int(i))
			}
			for _, w := range walks {
				detailed := false
				for _, i := range w {
					k := key(i)
					if !seen[k] {
						seen[k], bad[k] = true, rng.Float64() < tt.share
						detailed = detailed || bad[k]
					}
				}
				bytes := 32.0
				if detailed {
					bytes = 88
				}
				mean += float64(len(w)+1) * bytes / rounds
			}
		}
		if math.Abs(mean-a.Bytes) > .03*a.Bytes {
			t.Errorf("%s: %.0f bytes are expected, and %.0f came", name, a.Bytes, mean)
		}
	}
	p := withHosts(t, 4)
	for _, a := range []cover.Attention{{Share: 0, Detailed: 1}, {Share: 1, Detailed: 1}, {Share: math.NaN(), Detailed: 1}, {Share: .1, Basic: 2, Detailed: 1}} {
		p.Attention = &a
		if _, err := Plan(p, Options{}); err == nil {
			t.Errorf("%+v is accepted", a)
		}
	}
}

// The hosts are named, their links carry a stamp less, and a plan with other bytes fails the check.
func TestAttentionChecked(t *testing.T) {
	p := withHosts(t, 4)
	p.Attention = &cover.Attention{Share: .05, Basic: 32, Detailed: 88}
	switches, err := Plan(p, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	p.Hosts = make([]bool, p.Graph.NumNodes())
	for _, v := range p.Depots {
		p.Hosts[v] = true
	}
	plan, err := Plan(p, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := cover.Check(p, plan); err != nil {
		t.Fatal(err)
	}
	if a, b := plan.Stats.Attention, switches.Stats.Attention; a.Bytes >= b.Bytes || a.Bound > a.Bytes {
		t.Errorf("%+v with hosts, %+v without", a, b)
	}
	for _, change := range []func(*cover.AttentionCost){
		func(a *cover.AttentionCost) { a.Bytes *= 1.1 }, func(a *cover.AttentionCost) { a.Bound = a.Bytes + 1 },
		func(a *cover.AttentionCost) { a.MaxHops = 1 }, func(a *cover.AttentionCost) { a.Share = .06 },
	} {
		other := *plan
		change(&other.Stats.Attention)
		if cover.Check(p, &other) == nil {
			t.Errorf("%+v holds", other.Stats.Attention)
		}
	}
}
