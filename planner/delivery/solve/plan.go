package solve

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/opt"
)

// Method is a way to find a plan.
type Method string

// The methods.
const (
	Exact  Method = "exact"  // most points, fewest links, fewest servers, proven
	Paper  Method = "paper"  // the paper's assignment, repaired, and its heuristic for links
	Greedy Method = "greedy" // the paper's assignment, and links one by one, each the best for it
	Brute  Method = "brute"  // the paper's assignment, and all sets of links, smallest first
	PSO    Method = "pso"    // the paper's assignment, and links by particle swarm
	PSOGA  Method = "pso-ga" // the same with crossover and mutation
)

// Methods lists the methods.
var Methods = []Method{Exact, Paper, Greedy, Brute, PSO, PSOGA}

// Options are the options of [Plan].
type Options struct {
	Method  Method // Exact if empty
	NoLinks bool   // add none
	Partial bool   // leave out points that cannot be served, rather than fail
	Seed    uint64 // of PSO and PSOGA

	Previous *delivery.Plan // that the plan replaces; nil for none
	Churn    int            // most points that may change then; below 0 for any number

	Stop func() bool // ends the search with the best found; nil for never
}

// The kinds of errors that callers test.
var (
	ErrUnserved = errors.New("cannot be served")
	ErrMethod   = errors.New("cannot be planned so")
)

// Plan assigns the points of p to servers.
func Plan(p *delivery.Problem, o Options) (*delivery.Plan, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if o.Method == "" {
		o.Method = Exact
	}
	if !slices.Contains(Methods, o.Method) {
		return nil, fmt.Errorf("delivery: method %q %w: there are %v", o.Method, ErrMethod, Methods)
	}
	if o.Method != Exact && p.Test() != delivery.LossPath {
		return nil, fmt.Errorf("delivery: loss test %s with method %s %w: only exact knows it", p.Test(), o.Method, ErrMethod)
	}
	o.Stop = opt.Never(o.Stop)
	if o.Previous != nil && o.Method != Exact {
		return nil, fmt.Errorf("delivery: a plan that replaces another one with method %s %w: only exact knows it", o.Method, ErrMethod)
	}
	m := newModel(p, o.Stop)
	var r result
	must := 0
	switch {
	case o.Method != Exact:
		r = m.baseline(&o)
	case o.Previous != nil:
		fresh := *m
		var sol *solution
		b := m.newBefore(o.Previous, o.NoLinks)
		if sol, must = m.replan(b, &o); sol == nil {
			sol = b.keep(m)
		}
		fresh.timeout = m.timeout
		m = &fresh
		r = m.exact(&o)
		r.replaced(m, sol, o.Churn >= 0)
	default:
		r = m.exact(&o)
	}
	plan, err := m.plan(&r, &o)
	if err != nil {
		return nil, err
	}
	if o.Previous != nil {
		if err := plan.Replace(p, o.Previous); err != nil {
			return nil, err
		}
		plan.Count(o.Churn, must)
	}
	if plan.Partial && !o.Partial {
		u := plan.Unserved[0]
		more := ""
		if n := len(plan.Unserved) - 1; n > 0 {
			more = fmt.Sprintf("; %d more cannot either", n)
		}
		return nil, fmt.Errorf("delivery: point %s %w: %s: %s%s", u.Point, ErrUnserved, u.Constraint, u.Detail, more)
	}
	return plan, nil
}

// result is the result of a method.
type result struct {
	sol         solution
	first       int     // points served without links
	leftBound   float64 // cost that every plan leaves out
	linkBound   int     // fewest links of plans that leave out no more than the solution
	serverBound int     // fewest servers of such plans with no more links
	without     []int32 // points served without links, by the method; the others are why links are added
}

// exact looks for the best plan: the most weight that can be served, then the fewest links for it, then the fewest
// servers.
func (m *model) exact(o *Options) (r result) {
	if m.large() {
		_, some := m.assign(nil)
		first := choices{points: some, out: m.leftOut(some)}
		first.bound = min(first.out, m.floor(false))
		r.first, r.without, r.leftBound = len(some), some, min(first.out, m.floor(!o.NoLinks))
		r.fallback(m, o, &first)
		return r
	}
	first := m.served(false)
	if _, some := m.assign(nil); m.leftOut(some) < first.out && m.p.Test() == delivery.LossPath {
		first.points, first.out = some, m.leftOut(some) // the search was stopped too soon
	}
	r.first, r.without = len(first.points), first.points
	best := first
	if first.out > 0 && !o.NoLinks {
		best = m.served(true)
	}
	r.leftBound = best.bound
	if best.out >= first.out {
		r.leftBound = min(r.leftBound, first.out)
		r.unlinked(m, o, &first)
		return r
	}
	r.linked(m, o, &first, &best)
	return r
}

// maxTableau bounds the numbers in the tableau of a search.
const maxTableau = 1 << 25

// large reports whether the searches would take too much memory, and then time, to be of use.
func (m *model) large() bool { return m.largeWith(len(m.paths)) }

func (m *model) largeWith(paths int) bool {
	points, servers := len(m.points), len(m.servers)
	return (paths+3*points+2*servers)*(2*points+servers) > maxTableau
}

// unlinked looks for fewest servers without links.
func (r *result) unlinked(m *model, o *Options, best *choices) {
	room := m.capacityBound(m.lightest(best.out))
	sol, bound, cut := m.fewest(goal{out: best.out}, math.MaxInt32, room, false, &budget{})
	if sol == nil {
		sol = m.realise(&stage{points: best.points}, &budget{}) // the solution of the search
		if sol == nil {
			r.fallback(m, o, best)
			return
		}
	}
	r.sol, r.serverBound = *sol, max(room, bound)
	if m.unsure && !cut {
		r.serverBound = room
	}
}

// maxEach bounds the added links of a point that the exact method tries.
const maxEach = 4

// linked looks for fewest links that leave out no more than best, and for fewest servers with these.
func (r *result) linked(m *model, o *Options, first, best *choices) {
	room := m.capacityBound(m.lightest(best.out))
	capped := slices.Contains(m.capped, true) || m.blur > 0
	r.linkBound = m.linkFloor(first, best.out)
	must := max(1, r.linkBound, m.fewestLinked(best.out))
	if !capped && !m.p.TransitAll {
		r.linkBound = must
	}
	linkable := 0
	for i := range m.points {
		if m.linkable(int32(i)) {
			linkable++
		}
	}
	for k := must; k <= maxEach*linkable && !m.timeout; k++ {
		// Links to servers come first. What these do not settle soon is searched with links to switches too.
		g := goal{out: best.out, links: k, each: min(k-must+1, maxEach)}
		partly := k-must+1 > maxEach // more links of a point are not looked at
		sol, _, cut := m.fewest(g, math.MaxInt32, room, false, &budget{limit: directNodes})
		bound := room
		if sol == nil || sol.servers() > room {
			fewest := math.MaxInt32
			if sol != nil {
				fewest = sol.servers()
			}
			var better *solution
			better, bound, cut = m.fewest(g, fewest, room, true, &budget{})
			if bound = max(bound, room); better != nil {
				sol = better
			}
		}
		if sol != nil {
			if partly || capped || m.unsure && !cut {
				bound = room
			}
			r.sol, r.serverBound = *sol, min(bound, sol.servers())
			break
		}
		if cut || m.unsure || partly {
			continue
		}
		if k == r.linkBound {
			r.linkBound = k + 1
		}
	}
	if r.sol.flows == nil {
		proven := r.linkBound
		if out := r.fallback(m, o, first); out <= best.out {
			r.linkBound = max(r.linkBound, proven)
		}
		return
	}
	if links := len(r.sol.links()); m.p.TransitAll {
		// Other points might use an added link, which is not looked at.
		r.linkBound, r.serverBound = m.linkFloor(first, best.out), room
	} else if links > r.linkBound {
		r.serverBound = room
	}
}

// linkFloor is the least number of points that need links in a plan that leaves out a cost of at most out. Without
// these points it is a plan without links, of which a bound is known.
func (m *model) linkFloor(first *choices, out float64) (count int) {
	missing := first.bound - out - m.blur/m.unit
	if missing > 0 && m.p.TransitAll {
		return 1 // others may use an added link
	}
	costs := slices.Sorted(slices.Values(m.cost))
	for _, c := range slices.Backward(costs) {
		if missing <= 1e-9 {
			break
		}
		missing -= c
		count++
	}
	return count
}

// directNodes is how many nodes are spent on links to servers alone before links to switches are tried.
const directNodes = 2000

// fallback is the best solution without links, and with links to servers, where the exact method has found nothing in
// time.
func (r *result) fallback(m *model, o *Options, first *choices) (out float64) {
	sol, served := m.assign(nil)
	if m.leftOut(served) > first.out && !m.large() {
		if better := m.realise(&stage{points: first.points}, &budget{limit: lossNodes}); better != nil {
			sol, served = better, first.points
		}
	}
	if !o.NoLinks {
		m.linkServers(sol, served)
	}
	r.sol = solution{}
	of := make([][]flow, len(m.points))
	for _, f := range sol.flows {
		of[f.path.point] = append(of[f.path.point], f)
	}
	for i, flows := range of {
		if i := int32(i); len(flows) > 0 && !m.tooLossy(i, flows) {
			r.sol.flows = append(r.sol.flows, flows...)
		}
	}
	out = m.leftOut(r.sol.points())
	r.linkBound = m.linkFloor(first, out)
	r.serverBound = m.capacityBound(m.lightest(out))
	return out
}

// points lists the points that a solution serves.
func (s *solution) points() (list []int32) {
	for _, f := range s.flows {
		list = append(list, f.path.point)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// linkServers links the points that an assignment leaves out to servers, largest rates first. It takes the used server
// with the least sufficient room, otherwise the emptiest, and several if necessary.
func (m *model) linkServers(sol *solution, served []int32) {
	room := slices.Clone(m.room)
	used := make([]bool, len(m.servers))
	for _, f := range sol.flows {
		room[f.path.server] -= f.rate
		used[f.path.server] = true
	}
	left := m.unserved(served)
	slices.SortStableFunc(left, func(a, b int32) int { return cmp.Compare(m.demand[b], m.demand[a]) })
	for _, i := range left {
		if !m.linkable(i) {
			continue
		}
		var servers []int32
		for s, v := range m.servers {
			if room[s] > slack && !m.joined(i, v) {
				servers = append(servers, int32(s))
			}
		}
		slices.SortStableFunc(servers, func(a, b int32) int {
			fitsA, fitsB := used[a] && room[a] >= m.demand[i], used[b] && room[b] >= m.demand[i]
			switch {
			case fitsA != fitsB:
				if fitsA {
					return -1
				}
				return 1
			case fitsA:
				return cmp.Compare(room[a], room[b])
			}
			return cmp.Compare(room[b], room[a])
		})
		rest := m.demand[i]
		var flows []flow
		for _, s := range servers {
			p := m.direct(i, s)
			rate := min(rest, room[s], delivery.AddedCapacity, m.p.Limit())
			flows = append(flows, flow{&p, rate})
			if rest -= rate; rest <= slack {
				break
			}
		}
		if rest > slack {
			continue
		}
		for _, f := range flows {
			room[f.path.server] -= f.rate
			used[f.path.server] = true
		}
		sol.flows = append(sol.flows, flows...)
	}
}

// links lists the added links of a solution.
func (s *solution) links() (list [][2]int32) {
	for _, f := range s.flows {
		if l := [2]int32{f.path.nodes[0], f.path.via}; f.path.via >= 0 && !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	return list
}

// plan puts names to a result.
func (m *model) plan(r *result, o *Options) (*delivery.Plan, error) {
	var routes []delivery.Route
	served := make([]bool, len(m.points))
	for _, f := range r.sol.flows {
		served[f.path.point] = true
		d := delivery.Route{Point: m.p.Nodes[m.points[f.path.point]].ID, Server: m.p.Nodes[m.servers[f.path.server]].ID, Rate: f.rate}
		for _, v := range f.path.nodes {
			d.Nodes = append(d.Nodes, m.p.Nodes[v].ID)
		}
		for _, l := range f.path.links {
			d.Links = append(d.Links, int(l))
		}
		routes = append(routes, d)
	}
	var added []delivery.AddedLink
	why := m.newReasons(r)
	for _, l := range r.sol.links() {
		i := m.place[l[0]]
		u := why.firstInWay(i)
		added = append(added, delivery.AddedLink{A: m.p.Nodes[l[0]].ID, B: m.p.Nodes[l[1]].ID, Constraint: u.Constraint, Detail: u.Detail})
	}
	plan, err := delivery.NewPlan(m.p, string(o.Method), routes, added, o.Previous)
	if err != nil {
		return nil, err
	}
	for i, ok := range served {
		if !ok {
			u := why.firstInWay(int32(i))
			if !o.NoLinks {
				u.Detail += why.noHelp(int32(i))
			}
			plan.Unserved = append(plan.Unserved, u)
		}
	}
	s := &plan.Stats
	s.ServedAtFirst, s.Paths, s.Nodes = r.first, m.usable, m.nodes
	for _, c := range m.capped {
		if c {
			s.Capped++
		}
	}
	s.PairAcceptance = float64(m.pairs) / float64(max(1, len(m.points)*len(m.servers)))
	s.LeftOutBound = min(max(0, r.leftBound*m.unit-m.blur), s.LeftOut)
	s.LinkBound = min(r.linkBound, s.Links)
	s.LowerBound = float64(min(r.serverBound, s.Servers))
	s.Optimal = planner.Near(s.LeftOutBound, s.LeftOut) && s.LinkBound == s.Links && s.LowerBound == s.Objective
	return plan, nil
}
