package solve

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/topo"
)

// randomAgents puts agents on some nodes, several on some.
func randomAgents(r *rand.Rand, g *topo.Graph, most int) (agents []topo.Agent, depots []int) {
	for v := range g.NumNodes() {
		for k := range r.IntN(3) {
			if k == 0 {
				depots = append(depots, v)
			}
			agents = append(agents, topo.Agent{Name: fmt.Sprintf("x%d", len(agents)), Node: v, Port: 100 + k, Send: r.IntN(most), Receive: r.IntN(most)})
		}
	}
	return agents, depots
}

// The walks that agents have room for: where every walk may go either way, the ways round are found whenever there are any.
func TestAgentsTurn(t *testing.T) {
	placed, not := 0, 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 80))
		g := weightedGraph(t, r, 2+r.IntN(5), 1+r.IntN(9), 3)
		agents, depots := randomAgents(r, g, 4)
		if depots == nil {
			continue
		}
		p := &cover.Problem{Graph: g, Depots: depots, Agents: agents}
		a := &assigner{c: &coverer{p: p, o: &Options{}}, second: g.NumLinks()}
		for l := range g.NumLinks() {
			x, _ := g.Ends(l)
			a.walks = append(a.walks, cover.Walk{int32(x)})
			a.turns = append(a.turns, r.IntN(4) > 0)
		}
		a.send, a.receive = p.Room()
		possible := false
		for set := range 1 << len(a.walks) {
			sends, receives, ok := make([]int, g.NumNodes()), make([]int, g.NumNodes()), true
			for k := range a.walks {
				u, v := a.tail(k), a.head(k)
				if set>>k&1 == 1 {
					u, v = v, u
					ok = ok && a.turns[k]
				}
				sends[u]++
				receives[v]++
			}
			for v := range sends {
				ok = ok && sends[v] <= a.send[v] && receives[v] <= a.receive[v]
			}
			possible = possible || ok
		}
		got := a.place()
		if got != possible {
			t.Fatalf("seed %d: placed %v, possible %v", seed, got, possible)
		}
		if !got {
			not++
			continue
		}
		placed++
		sends, receives := make([]int, g.NumNodes()), make([]int, g.NumNodes())
		for k := range a.walks {
			sends[a.tail(k)]++
			receives[a.head(k)]++
		}
		for v := range sends {
			if sends[v] > a.send[v] || receives[v] > a.receive[v] {
				t.Fatalf("seed %d: node %d sends %d of %d and receives %d of %d", seed, v, sends[v], a.send[v], receives[v], a.receive[v])
			}
		}
	}
	if placed < 100 || not < 100 {
		t.Errorf("%d placed, %d not; too few to say anything", placed, not)
	}
}

// Plans with agents keep to their room and all other limits, or report that there is none.
func TestAgents(t *testing.T) {
	whole, partial, none := 0, 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 81))
		g := weightedGraph(t, r, 2+r.IntN(12), 1+r.IntN(25), 9)
		agents, depots := randomAgents(r, g, 6)
		if depots == nil {
			continue
		}
		p := &cover.Problem{Graph: g, Depots: depots, Agents: agents, Directed: r.IntN(4) == 0, MaxHops: r.IntN(2) * r.IntN(9)}
		if r.IntN(3) == 0 {
			p.MaxDelay = 10 + r.Int64N(40)
		} else if !p.Directed && r.IntN(4) == 0 {
			p.Redundant = true
		}
		if r.IntN(3) == 0 { // links that can be passed one way only are of no use in an undirected plan
			p.MaxPort = 1 + r.IntN(4)
		}
		plan, err := Plan(p, Options{Partial: true})
		if err != nil {
			if !p.Redundant || !errors.Is(err, ErrUncoverable) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			none++
			continue
		}
		if err := cover.Check(p, plan); err != nil {
			t.Fatalf("seed %d, %+v: %v", seed, p, err)
		}
		room := slices.ContainsFunc(plan.NotProbed, func(u cover.Unprobed) bool { return strings.Contains(u.Reason, "no room") })
		if room != (plan.Stats.LeftOut > plan.Stats.LeftOutBound) || room && plan.Stats.Optimal {
			t.Fatalf("seed %d: %+v leaves out %v", seed, plan.Stats, plan.NotProbed)
		}
		if !room {
			whole++
			continue
		}
		partial++
		if _, err := Plan(p, Options{}); !errors.Is(err, ErrUncoverable) {
			t.Fatalf("seed %d: %v, want %v", seed, err, ErrUncoverable)
		}
	}
	if whole < 200 || partial < 100 || none < 20 {
		t.Errorf("%d whole plans, %d partial, %d errors; too few to say anything", whole, partial, none)
	}
}

// A probe that is kept keeps its agents, and its direction.
func TestAgentsReplan(t *testing.T) {
	lost := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 82))
		g := weightedGraph(t, r, 4+r.IntN(8), 10+r.IntN(20), 9)
		var agents []topo.Agent
		var depots []int
		for v := range g.NumNodes() {
			depots = append(depots, v)
			for k := range 3 {
				agents = append(agents, topo.Agent{Name: fmt.Sprintf("x%d", len(agents)), Node: v, Port: 100 + k, Send: 30, Receive: 30})
			}
		}
		p := &cover.Problem{Graph: g, Depots: depots, Agents: agents, MaxHops: 2 + r.IntN(4)}
		old := checked(t, seed, p, Options{})
		p.Skip = make([]bool, g.NumLinks())
		p.Skip[r.IntN(len(p.Skip))] = true
		plan, err := Replan(p, old, Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := cover.Check(p, plan); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for k := range plan.Kept {
			q := plan.Probes[k]
			i := slices.IndexFunc(old.Probes, func(o planner.Probe) bool { return o.ID == q.ID })
			if o := old.Probes[i]; o.AgentHost != q.AgentHost || o.CollectorHost != q.CollectorHost || !slices.Equal(o.Nodes, q.Nodes) {
				t.Fatalf("seed %d: probe %+v was %+v", seed, q, o)
			}
		}
		for k := range p.Agents { // now there is less room than what was kept needs
			p.Agents[k].Send = r.IntN(2)
		}
		plan, err = Replan(p, old, Options{Partial: true})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := cover.Check(p, plan); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for k := range plan.Kept {
			if !slices.ContainsFunc(old.Probes, func(o planner.Probe) bool {
				return o.ID == plan.Probes[k].ID && slices.Equal(o.Ports, plan.Probes[k].Ports)
			}) {
				t.Fatalf("seed %d: probe %+v is called kept", seed, plan.Probes[k])
			}
		}
		if plan.Kept < len(old.Probes)-1 {
			lost++
		}
	}
	if lost < 50 {
		t.Errorf("%d plans without room for what was kept; too few to say anything", lost)
	}
}
