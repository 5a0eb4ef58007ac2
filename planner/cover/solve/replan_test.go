package solve

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/topo"
)

func TestRedundant(t *testing.T) {
	for seed := range uint64(testkit.Rounds(150, 500)) {
		r := rand.New(rand.NewPCG(seed, 10))
		g := randomGraph(t, r, 20, 60)
		p := &cover.Problem{Graph: g, Redundant: true, MaxHops: r.IntN(10)}
		plan := checked(t, seed, p, Options{Balanced: true, Seed: seed})
		if p.MaxHops == 0 && len(plan.Second) != fewest(g) {
			t.Fatalf("seed %d: the second cover has %d probes, want %d", seed, len(plan.Second), fewest(g))
		}
	}
}

// The links that a failure hides, counted link by link.
func blindTwin(g *topo.Graph, covers ...[]cover.Walk) (most int) {
	passes := func(w cover.Walk, l int) bool {
		return slices.ContainsFunc(w, func(i int32) bool { return g.Link(int(i)) == l })
	}
	for l := range g.NumLinks() {
		hidden := 0
		for m := range g.NumLinks() {
			on, seen := false, false
			for _, cover := range covers {
				for _, w := range cover {
					if passes(w, m) {
						on = true
						seen = seen || !passes(w, l)
					}
				}
			}
			if m != l && on && !seen {
				hidden++
			}
		}
		most = max(most, hidden)
	}
	return most
}

func TestRedundantDepots(t *testing.T) {
	for seed := range uint64(testkit.Rounds(300, 1500)) {
		r := rand.New(rand.NewPCG(seed, 13))
		g := randomGraph(t, r, 10, 25)
		p := &cover.Problem{Graph: g, Redundant: true, MaxHops: max(0, r.IntN(24)-8)}
		p.Depots, _ = randomDepots(r, g)
		plan := checked(t, seed, p, Options{Partial: true, Seed: seed})
		walks, err := cover.Walks(g, plan.Probes)
		if err != nil {
			t.Fatal(err)
		}
		second, err := cover.Walks(g, plan.Second)
		if err != nil {
			t.Fatal(err)
		}
		if want := blindTwin(g, walks, second); plan.Stats.Blind != want {
			t.Fatalf("seed %d: %d links said to be hidden, want %d", seed, plan.Stats.Blind, want)
		}
	}
	g := generated(t, "fat-tree:10")
	p := &cover.Problem{Graph: g, Redundant: true}
	for v := 0; v < g.NumNodes(); v++ {
		if g.Tier(v) == topo.Edge && v%5 == 0 {
			p.Depots = append(p.Depots, v)
		}
	}
	s := checked(t, 0, p, Options{}).Stats
	if s.Blind > 2*s.Longest/3 {
		t.Errorf("a failure hides %d links, probes have %d: the second cover is cut like the first", s.Blind, s.Longest)
	}
}

func TestReplan(t *testing.T) {
	for seed := range uint64(testkit.Rounds(400, 1500)) {
		r := rand.New(rand.NewPCG(seed, 11))
		g := generated(t, fmt.Sprintf("random:%d,%d,%d", 20, 50, seed))
		p := &cover.Problem{Graph: g, Directed: seed%2 == 0}
		switch {
		case seed%3 == 0:
			p.Depots, _ = randomDepots(r, g)
		case seed%3 == 1:
			p.Redundant = !p.Directed
		}
		if seed%5 < 3 {
			p.MaxHops = 8 + r.IntN(10)
		}
		old := checked(t, seed, p, Options{Balanced: true, Partial: true})
		failed := r.IntN(g.NumLinks())
		now := *p
		now.Skip = make([]bool, g.NumLinks())
		now.Skip[failed] = true
		plan := replanned(t, seed, &now, old)
		keeps(t, seed, g, failed, old.Probes, plan.Probes, plan.Kept)
		keeps(t, seed, g, failed, old.Second, plan.Second, plan.KeptSecond)
		// The link comes back: what is there stays, and the link is covered again.
		newer := replanned(t, seed, p, plan)
		if newer.Kept != len(plan.Probes) || newer.KeptSecond != len(plan.Second) {
			t.Fatalf("seed %d: %d and %d probes are kept of %d and %d", seed, newer.Kept, newer.KeptSecond, len(plan.Probes), len(plan.Second))
		}
		keeps(t, seed, g, -1, plan.Probes, newer.Probes, newer.Kept)
		keeps(t, seed, g, -1, plan.Second, newer.Second, newer.KeptSecond)
	}
}

func replanned(t *testing.T, seed uint64, p *cover.Problem, old *cover.Plan) *cover.Plan {
	t.Helper()
	plan, err := Replan(p, old, Options{Partial: true})
	if err == nil {
		err = cover.Check(p, plan)
	}
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return plan
}

// keeps checks that every probe that avoids the failed link is unchanged in the new plan. No new probe may have the id
// of an old one.
func keeps(t *testing.T, seed uint64, g *topo.Graph, failed int, old, now []planner.Probe, kept int) {
	t.Helper()
	walks, err := cover.Walks(g, old)
	if err != nil {
		t.Fatal(err)
	}
	at, ids := 0, map[string]bool{}
	for k, w := range walks {
		ids[old[k].ID] = true
		if slices.ContainsFunc(w, func(i int32) bool { return g.Link(int(i)) == failed }) {
			continue
		}
		if at >= kept || now[at].ID != old[k].ID || !slices.Equal(now[at].Nodes, old[k].Nodes) || !slices.Equal(now[at].Ports, old[k].Ports) {
			t.Fatalf("seed %d: probe %s does not pass the failed link, and was not kept", seed, old[k].ID)
		}
		at++
	}
	if at != kept {
		t.Fatalf("seed %d: %d probes kept, %d pass the failed link not", seed, kept, at)
	}
	for _, p := range now[kept:] {
		if ids[p.ID] {
			t.Fatalf("seed %d: a new probe has the id %s of an old one", seed, p.ID)
		}
	}
}

// Probes of an old plan that are no longer valid are planned afresh. They are probes of another topology, without an id
// or with the same one, and walks that pass links of another. Second covers that go the way of the first are replaced
// too.
func TestReplanForeign(t *testing.T) {
	g := generated(t, "leaf-spine:3,5")
	p := &cover.Problem{Graph: g, Redundant: true}
	plan := checked(t, 0, p, Options{})
	other := checked(t, 0, &cover.Problem{Graph: generated(t, "fat-tree:4")}, Options{})
	mixed := &cover.Plan{Probes: append(slices.Clone(other.Probes), plan.Probes[0], plan.Probes[0], plan.Probes[1]), Second: plan.Probes}
	mixed.Probes[len(mixed.Probes)-1].ID = ""
	second := replanned(t, 0, p, mixed)
	if second.Kept != 1 || second.Probes[0].ID != plan.Probes[0].ID {
		t.Errorf("%d probes are kept, the first is %s, want 1 and %s", second.Kept, second.Probes[0].ID, plan.Probes[0].ID)
	}
	if len(plan.Probes) > 1 && second.KeptSecond != len(plan.Probes)-1 {
		t.Errorf("%d probes of the second cover are kept, want %d", second.KeptSecond, len(plan.Probes)-1)
	}
}

// A new plan keeps the id of every kept probe, and no id stands for another way than before. A difference by ids
// therefore holds all that senders need.
func TestReplanKeepsIDs(t *testing.T) {
	g, err := topo.Parse("fat-tree:4")
	if err != nil {
		t.Fatal(err)
	}
	old, err := Plan(&cover.Problem{Graph: g}, Options{Balanced: true})
	if err != nil {
		t.Fatal(err)
	}
	for l := range g.NumLinks() {
		p := &cover.Problem{Graph: g, Skip: make([]bool, g.NumLinks())}
		p.Skip[l] = true
		plan, err := Replan(p, old, Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := planner.Diff(old.Probes, plan.Probes)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Changed) != 0 || len(c.Added) != len(plan.Probes)-plan.Kept || len(c.Removed) != len(old.Probes)-plan.Kept {
			t.Errorf("without %s: %d added, %d removed, %d changed; %d of %d kept, %d now", g.LinkName(l), len(c.Added), len(c.Removed), len(c.Changed), plan.Kept, len(old.Probes), len(plan.Probes))
		}
	}
}
