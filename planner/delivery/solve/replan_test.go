package solve

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/delivery"
)

// copyOf copies a problem.
func copyOf(p *delivery.Problem) *delivery.Problem {
	q := *p
	q.Nodes, q.Links = slices.Clone(p.Nodes), slices.Clone(p.Links)
	return &q
}

// changed is a network after a while: loads move, a link may fail, a point may send more, and a point may go.
func changed(p *delivery.Problem, rng *rand.Rand) *delivery.Problem {
	q := copyOf(p)
	for i := range q.Links {
		if rng.IntN(4) == 0 {
			q.Links[i].Load = float64(rng.IntN(60))
		}
	}
	for i := range q.Nodes {
		n := &q.Nodes[i]
		switch {
		case n.Kind == delivery.PointNode && rng.IntN(6) == 0:
			n.Rate = float64(5 + rng.IntN(35))
		case n.Kind == delivery.ServerNode && rng.IntN(4) == 0:
			n.Load = float64(rng.IntN(40))
		}
	}
	if rng.IntN(3) == 0 && len(q.Links) > 0 {
		k := rng.IntN(len(q.Links))
		q.Links = slices.Delete(q.Links, k, k+1)
	}
	return q
}

// without removes points that keep their paths, and the capacity that they take.
func without(p *delivery.Problem, plan *delivery.Plan, kept []string) *delivery.Problem {
	q := copyOf(p)
	receive := func(a, b string, port int, rate float64) {
		for i := range q.Links {
			if l := &q.Links[i]; l.A == a && l.B == b && l.PortA == port || l.A == b && l.B == a && l.PortB == port {
				l.Load += rate
			}
		}
		for i := range q.Nodes {
			if n := &q.Nodes[i]; n.ID == b && n.Kind != delivery.PointNode {
				n.Load += rate
			}
		}
	}
	for _, d := range plan.Assignment {
		if slices.Contains(kept, d.Point) {
			for k, port := range d.Ports {
				receive(d.Path[k], d.Path[k+1], port, d.Rate)
			}
		}
	}
	q.Nodes = slices.DeleteFunc(q.Nodes, func(n delivery.Node) bool { return slices.Contains(kept, n.ID) })
	q.Links = slices.DeleteFunc(q.Links, func(l delivery.Link) bool { return slices.Contains(kept, l.A) || slices.Contains(kept, l.B) })
	return q
}

// TestReplan compares plans that replace others, in changed networks, with all choices of points that keep their paths.
// No more points change than may or must. No less is served and no more links are added than needed, and every step of
// the transition is valid.
func TestReplan(t *testing.T) {
	seeds := uint64(testkit.Rounds(200, 600))
	compared, bounded, steps, deadlocks := 0, 0, 0, 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 31))
		p := random(rng)
		if err := p.NamePorts(); err != nil {
			t.Fatal(err)
		}
		noLinks := rng.IntN(2) == 0
		old, err := Plan(p, Options{Partial: true, NoLinks: noLinks})
		if err != nil {
			t.Fatal(err)
		}
		q := changed(p, rng)
		free, err := Plan(q, Options{Partial: true, NoLinks: noLinks})
		if err != nil {
			t.Fatal(err)
		}
		for _, churn := range []int{0, 1, 2, -1} {
			plan, err := Plan(q, Options{Partial: true, NoLinks: noLinks, Previous: old, Churn: churn})
			if err == nil {
				err = delivery.Check(q, plan)
			}
			if err == nil {
				err = delivery.CheckTransition(q, old, plan)
			}
			if err != nil {
				t.Fatalf("seed %d, churn %d: %v", seed, churn, err)
			}
			s, c := &plan.Stats, plan.Churn
			if churn >= 0 && c.Changed > max(churn, c.Forced) {
				t.Errorf("seed %d, churn %d: %d points change, and %d must", seed, churn, c.Changed, c.Forced)
			}
			if c.Forced > c.Changed {
				t.Errorf("seed %d, churn %d: %d points must change, and %d do", seed, churn, c.Forced, c.Changed)
			}
			if err := s.Hold(&free.Stats); err != nil {
				t.Errorf("seed %d, churn %d: %v", seed, churn, err)
			}
			if plan.Deadlock != "" {
				deadlocks++
			}
			steps += len(plan.Transition.Steps)
			if churn < 0 {
				if f := &free.Stats; !planner.Near(s.LeftOut, f.LeftOut) || s.Links != f.Links || s.Servers != f.Servers || s.Optimal != f.Optimal {
					t.Errorf("seed %d: %+v, want as good as %+v", seed, s, f)
				}
				continue
			}
			if old.Partial {
				continue
			}
			left, links := bestReplan(t, q, old, max(churn, c.Forced), noLinks)
			compared++
			if free.Stats.LeftOut < s.LeftOut || free.Stats.Links < s.Links {
				bounded++
			}
			if s.LeftOut > left+1e-9 || planner.Near(s.LeftOut, left) && s.Links > links {
				t.Errorf("seed %d, churn %d: weight %v left out with %d links, want %v with %d", seed, churn, s.LeftOut, s.Links, left, links)
			}
		}
	}
	t.Logf("%d compared, %d of them worse for the limit, %d steps, %d deadlocks", compared, bounded, steps, deadlocks)
	if compared < testkit.Rounds(100, 300) || bounded < testkit.Rounds(5, 15) || steps < testkit.Rounds(100, 300) {
		t.Errorf("%d compared, %d of them worse for the limit, %d steps", compared, bounded, steps)
	}
}

// bestReplan tries all sets of points that keep their paths, of which at most some change.
func bestReplan(t *testing.T, q *delivery.Problem, old *delivery.Plan, most int, noLinks bool) (left float64, links int) {
	t.Helper()
	m := newModel(q, func() bool { return false })
	b := m.newBefore(old, noLinks)
	var points []int
	for i := range m.points {
		if b.bundle[i] != nil {
			points = append(points, i)
		}
	}
	left, links = 1e9, 0
	for size := max(0, len(m.points)-most); size <= len(points); size++ {
		subsets(points, size, func(some []int) bool {
			one := &before{bundle: make([][]flow, len(m.points)), load: b.load, servers: b.servers}
			var kept []string
			with := 0
			for _, i := range some {
				one.bundle[i] = b.bundle[i]
				kept = append(kept, q.Nodes[m.points[i]].ID)
				with += b.links[i]
			}
			if !one.fit(m) {
				return false
			}
			rest := without(q, old, kept)
			l, n := 0.0, 0
			if len(some) < len(m.points) {
				plan, err := Plan(rest, Options{Partial: true, NoLinks: noLinks})
				if err != nil {
					t.Fatal(err)
				}
				l, n = plan.Stats.LeftOut, plan.Stats.Links
			}
			if l < left || l == left && n+with < links {
				left, links = l, n+with
			}
			return false
		})
	}
	return left, links
}
