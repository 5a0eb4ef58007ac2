package cover

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/topo"
)

// Check returns where a plan does not answer its problem. It trusts only the topology: probes are read by their node
// names and ports.
func Check(p *Problem, plan *Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	walks, err := Walks(p.Graph, plan.Probes)
	if err != nil {
		return err
	}
	second, err := Walks(p.Graph, plan.Second)
	if err != nil {
		return fmt.Errorf("second cover: %w", err)
	}
	missing, err := CheckWalks(p, walks)
	if err != nil {
		return err
	}
	if p.Redundant {
		if err := checkSecond(p, walks, second, missing); err != nil {
			return err
		}
	} else if len(second) > 0 {
		return errors.New("a second cover that was not asked for")
	}
	if len(missing) > 0 && !plan.Partial {
		return fmt.Errorf("%d of %s are not covered, among them %s", len(missing), p.items(), p.Graph.LinkName(p.Graph.Link(missing[0])))
	}
	switch {
	case plan.Directed != p.Directed:
		return fmt.Errorf("the plan says %v of passing both directions of every link, and %v is asked for", plan.Directed, p.Directed)
	case plan.Kept < 0 || plan.Kept > len(plan.Probes) || plan.KeptSecond < 0 || plan.KeptSecond > len(plan.Second):
		return fmt.Errorf("%d and %d probes are said to be kept, and there are %d and %d", plan.Kept, plan.KeptSecond, len(plan.Probes), len(plan.Second))
	}
	if err := planner.Check(p.Graph, plan.Probes, plan.Second); err != nil {
		return err
	}
	if err := plan.checkOwn(); err != nil {
		return err
	}
	if err := checkLeftOut(p, plan, walks); err != nil {
		return err
	}
	if err := checkAgents(p, plan); err != nil {
		return err
	}
	return checkCoverStats(p, plan, walks, second)
}

func (p *Problem) items() string {
	if p.Directed {
		return "the directions"
	}
	return "the links"
}

// Walks reads probes by their node names and ports.
func Walks(g *topo.Graph, probes []planner.Probe) ([]Walk, error) {
	var bad planner.Errors
	walks := make([]Walk, 0, len(probes))
	for k := range probes {
		w, err := planner.Walk(g, &probes[k])
		if err != nil {
			bad.Add("probe %s: %w", probes[k].ID, err)
		}
		walks = append(walks, w)
	}
	return walks, bad.Join()
}

// CheckWalks reports what keeps walks from being a cover. It returns one interface for every link that is left out, or
// for every direction in a directed problem. Without depots no link may be passed twice.
func CheckWalks(p *Problem, walks []Walk) (missing []int, err error) {
	g := p.Graph
	var bad planner.Errors
	depot := make([]bool, g.NumNodes())
	for _, d := range p.Depots {
		depot[d] = true
	}
	times := make([]int, 2*g.NumLinks())
	for k, w := range walks {
		if len(w) == 0 {
			bad.Add("probe %d passes no link", k+1)
			continue
		}
		if p.MaxHops > 0 && len(w) > p.MaxHops {
			bad.Add("probe %d has %d hops, at most %d are allowed", k+1, len(w), p.MaxHops)
		}
		if d := p.Time(valid(g, w)); p.MaxDelay > 0 && d > p.MaxDelay {
			bad.Add("probe %d has a delay of %d ns, at most %d are allowed", k+1, d, p.MaxDelay)
		}
		for s, i := range w {
			if int(i) >= g.NumInterfaces() || i < 0 || g.Link(int(i)) < 0 {
				return nil, fmt.Errorf("probe %d: hop %d leaves by interface %d, which leads nowhere", k+1, s+1, i)
			}
			if s > 0 && g.Neighbor(int(w[s-1])) != g.Node(int(i)) {
				bad.Add("probe %d: hop %d leaves %q, but the probe is at %q", k+1, s+1, g.NodeName(g.Node(int(i))), g.NodeName(g.Neighbor(int(w[s-1]))))
			}
			if s > 0 && p.host(g.Node(int(i))) {
				bad.Add("probe %d: hop %d leaves %q, a host, which forwards nothing", k+1, s+1, g.NodeName(g.Node(int(i))))
			}
			if !p.Usable(int(i)) {
				bad.Add("probe %d: hop %d leaves by port %d of %q, which must not be used", k+1, s+1, g.Port(int(i)), g.NodeName(g.Node(int(i))))
			}
			times[p.item(int(i))]++
		}
		if p.Depots == nil {
			continue
		}
		for _, n := range [...]int{g.Node(int(w[0])), g.Neighbor(int(w[len(w)-1]))} {
			if !depot[n] {
				bad.Add("probe %d ends at %q, which is no depot", k+1, g.NodeName(n))
			}
		}
	}
	for l := range g.NumLinks() {
		x, y := g.Ends(l)
		first, second := p.Wanted(l)
		for side, wanted := range [...]bool{first, second && p.Directed} {
			switch n := times[2*l+side]; {
			case n > 1 && p.Depots == nil:
				bad.Add("link %s is passed %d times", g.LinkName(l), n)
			case n == 0 && wanted:
				missing = append(missing, [...]int{x, y}[side])
			}
		}
	}
	return missing, bad.Join()
}

// checkSecond returns where the second cover is none, or a link that both covers pass in one direction only. Links that
// the first one leaves out it may leave out too.
func checkSecond(p *Problem, walks, second []Walk, out []int) error {
	missing, err := CheckWalks(p, second)
	if err != nil {
		return fmt.Errorf("second cover: %w", err)
	}
	known := make(map[int]bool, len(out))
	for _, i := range out {
		known[i] = true
	}
	missing = slices.DeleteFunc(missing, func(i int) bool { return known[i] })
	if len(missing) > 0 {
		return fmt.Errorf("second cover: %d links are not covered, among them %s", len(missing), p.Graph.LinkName(p.Graph.Link(missing[0])))
	}
	g := p.Graph
	ways := make([]bool, g.NumInterfaces()) // by interface: a probe leaves by it
	for _, cover := range [...][]Walk{walks, second} {
		for _, w := range cover {
			for _, i := range w {
				ways[i] = true
			}
		}
	}
	for l := range g.NumLinks() {
		if x, y := g.Ends(l); ways[x] != ways[y] {
			return fmt.Errorf("second cover: %s is passed in the direction of the first only", g.LinkName(l))
		}
	}
	return nil
}

// checkAttention takes what follows from no walk over into want: the bound, and the longest probe that was allowed.
func checkAttention(want *AttentionCost, got *Stats) error {
	a := &got.Attention
	if a.Bound < 0 || a.Bound > a.Bytes && !planner.Near(a.Bound, a.Bytes) || a.MaxHops != 0 && a.MaxHops < got.Longest {
		return fmt.Errorf("attention: %v bytes with probes of at most %d links, at least %v: the longest has %d", a.Bytes, a.MaxHops, a.Bound, got.Longest)
	}
	want.Bound, want.MaxHops = a.Bound, a.MaxHops
	if planner.Near(want.Bytes, a.Bytes) {
		want.Bytes = a.Bytes
	}
	return nil
}

// checkCoverStats recomputes the statistics.
func checkCoverStats(p *Problem, plan *Plan, walks, second []Walk) error {
	want, got := p.stats(walks, second), plan.Stats
	want.Stats = got.Stats
	if planner.Near(want.Mean, got.Mean) {
		want.Mean = got.Mean
	}
	if math.Abs(want.Variance-got.Variance) <= 1e-6*(1+want.Variance) {
		want.Variance = got.Variance
	}
	if p.Attention != nil {
		if err := checkAttention(&want.Attention, &got); err != nil {
			return err
		}
	}
	if want != got {
		return fmt.Errorf("statistics: %s", planner.Difference(got, want))
	}
	if want := p.Minimise; plan.Minimise != want && (want != Links || plan.Minimise != "") {
		return fmt.Errorf("the plan minimises %q, and %q is asked for", plan.Minimise, want)
	}
	if p.Depots != nil && got.Optimal && !p.Directed && p.MaxHops == 0 && p.MaxDelay == 0 && p.measure() != Bytes {
		if err := checkTwice(p, walks); err != nil {
			return err
		}
	}
	s := got.Stats
	if objective := p.objective(walks); s.Objective != float64(objective) {
		return fmt.Errorf("objective %v, the probes say %d", s.Objective, objective)
	}
	var bad planner.Errors
	s.CheckBound(&bad)
	plan.CheckClaims(&bad, "probes")
	return bad.Join()
}

// objective is the objective of a plan of these walks: the number of probes, or with depots their length in the measure
// of the problem.
func (p *Problem) objective(walks []Walk) int64 {
	if p.Depots == nil {
		return int64(len(walks))
	}
	sum := int64(0)
	for _, w := range walks {
		sum += p.Length(w)
	}
	return sum
}

// leftOut lists the links, or directions, that should be covered and are not.
func (p *Problem) leftOut(walks []Walk) (list []Unprobed) {
	g, covered := p.Graph, p.coveredBy(walks)
	for l := range g.NumLinks() {
		if p.Skipped(l) {
			continue
		}
		x, y := g.Ends(l)
		for side, i := range [...]int{x, y} {
			if covered[2*l+side] || side == 1 && !p.Directed {
				continue
			}
			u := Unprobed{Link: g.LinkName(l), Reason: "no probe of the plan passes it"}
			if p.Directed {
				u.From = g.NodeName(g.Node(i))
			}
			list = append(list, u)
		}
	}
	return list
}

// coveredBy returns the covered items.
func (p *Problem) coveredBy(walks []Walk) []bool {
	covered := make([]bool, 2*p.Graph.NumLinks())
	for _, w := range walks {
		for _, i := range w {
			covered[p.item(int(i))] = true
		}
	}
	return covered
}

// checkLeftOut returns where a plan is wrong about what it leaves out. Exactly that must be counted and named.
func checkLeftOut(p *Problem, plan *Plan, walks []Walk) error {
	g, covered := p.Graph, p.coveredBy(walks)
	left := len(p.leftOut(walks))
	switch {
	case plan.Stats.LeftOut != float64(left):
		return fmt.Errorf("%d of %s are left out, the plan says %v", left, p.items(), plan.Stats.LeftOut)
	case plan.Partial != (left > 0):
		return fmt.Errorf("%d of %s are left out, and that the plan is partial is said to be %v", left, p.items(), plan.Partial)
	case len(plan.NotProbed) < left:
		return fmt.Errorf("%d of %s are left out, and %d are named", left, p.items(), len(plan.NotProbed))
	}
	out := map[[2]string]bool{} // links by name, and where they are left
	if len(plan.NotProbed) > 0 {
		for l := range g.NumLinks() {
			x, y := g.Ends(l)
			for side, i := range [...]int{x, y} {
				if !covered[2*l+side] && (p.Directed || side == 0) {
					name := g.LinkName(l)
					out[[2]string{name}], out[[2]string{name, g.NodeName(g.Node(i))}] = true, true
				}
			}
		}
	}
	for _, u := range plan.NotProbed {
		if !out[[2]string{u.Link, u.From}] {
			return fmt.Errorf("link %s is said not to be probed, and there is none or a probe passes it", u.Link)
		}
	}
	return nil
}

// checkTwice finds a link that is passed three times: that cannot be the best, since two of them can be left out.
func checkTwice(p *Problem, walks []Walk) error {
	times := make([]int, p.Graph.NumLinks())
	for _, w := range walks {
		for _, i := range w {
			l := p.Graph.Link(int(i))
			if times[l]++; times[l] > 2 {
				return fmt.Errorf("link %s is passed %d times in a plan said to be optimal", p.Graph.LinkName(l), times[l])
			}
		}
	}
	return nil
}
