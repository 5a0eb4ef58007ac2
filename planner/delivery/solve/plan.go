package solve

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/delivery"
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

// Options says how to plan.
type Options struct {
	Method  Method      // Exact if empty
	NoLinks bool        // add none
	Partial bool        // leave out points that cannot be served, rather than fail
	Seed    uint64      // of PSO and PSOGA
	Stop    func() bool // ends the search with the best found; nil for never
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
	if o.Stop == nil {
		o.Stop = func() bool { return false }
	}
	m := newModel(p, o.Stop)
	var r result
	if o.Method == Exact {
		r = m.exact(&o)
	} else {
		r = m.baseline(&o)
	}
	plan, err := m.plan(&r, &o)
	if err != nil {
		return nil, err
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

// result is what a method finds.
type result struct {
	sol         solution
	first       int     // points served without links
	linkBound   int     // fewest links that the same points need
	serverBound int     // fewest servers with so many links
	proven      bool    // no more points can be served
	without     []int32 // points served without links, by the method; the others are why links are added
}

// exact looks for the best plan.
func (m *model) exact(o *Options) (r result) {
	n := len(m.points)
	points, most := m.served()
	if m.unsure && (m.p.Test() == delivery.LossExact || m.p.Test() == delivery.LossChernoff) || slices.Contains(m.capped, true) {
		most = m.possible() // there may be paths, or rates, that the search has not seen
	}
	if _, some := m.assign(nil); len(some) > len(points) && m.p.Test() == delivery.LossPath {
		points = some // the search was stopped too soon
	}
	r.first, r.without, r.proven = len(points), points, true
	total := 0.0
	for _, d := range m.demand {
		total += d
	}
	room := m.capacityBound(total)
	if len(points) == n || o.NoLinks {
		r.proven = len(points) == most
		if len(points) < n {
			total = 0
			fewest := slices.Sorted(slices.Values(m.demand))
			for _, d := range fewest[:len(points)] {
				total += d
			}
			room = m.capacityBound(total)
		}
		g := goal{apart: n - len(points)}
		sol, bound, cut := m.fewest(g, math.MaxInt32, room, false, &budget{})
		if sol == nil {
			sol = m.realise(&stage{points: points}, &budget{}) // what served has found
			if sol == nil {
				r.fallback(m, o)
				return r
			}
		}
		r.sol, r.serverBound = *sol, max(room, bound)
		if m.unsure && !cut {
			r.serverBound = room
		}
		return r
	}
	r.linkBound = n - most
	linkable := 0
	for i := range n {
		if m.linkable(int32(i)) {
			linkable++
		}
	}
	for k := n - len(points); k <= 2*linkable && !m.timeout; k++ {
		// Links to servers first. What these do not settle soon is looked at with links to switches too.
		g := goal{apart: k, links: true, twice: k > n-len(points)}
		thrice := k > n-len(points)+1 // which is not looked at
		sol, _, cut := m.fewest(g, math.MaxInt32, room, false, &budget{limit: directNodes})
		bound := room
		if sol == nil || sol.servers() > room {
			best := math.MaxInt32
			if sol != nil {
				best = sol.servers()
			}
			var better *solution
			better, bound, cut = m.fewest(g, best, room, true, &budget{})
			if bound = max(bound, room); better != nil {
				sol = better
			}
		}
		if sol != nil {
			if thrice || slices.Contains(m.capped, true) {
				bound = room
			}
			r.sol, r.serverBound = *sol, min(bound, sol.servers())
			break
		}
		if cut || m.unsure || thrice {
			continue
		}
		if k == r.linkBound {
			r.linkBound = k + 1
		}
	}
	if r.sol.flows == nil {
		r.fallback(m, o)
		return r
	}
	if links := len(r.sol.links()); m.p.TransitAll && links > 0 {
		// Other points might use an added link, which is not looked at.
		r.linkBound, r.serverBound = 1, room
	} else if links > r.linkBound {
		r.serverBound = room
	}
	return r
}

// possible counts the points that might be served without links: by themselves, or by paths that are not looked at.
func (m *model) possible() (count int) {
	for i := range m.points {
		sum := 0.0
		for _, k := range m.of[i] {
			sum += m.most(&m.paths[k])
		}
		if m.capped[i] || sum >= m.demand[i]-slack {
			count++
		}
	}
	return count
}

// directNodes is how many nodes are spent on links to servers alone before links to switches are tried.
const directNodes = 2000

// fallback is the assignment of the paper with links to servers, where the exact method has found nothing in time.
func (r *result) fallback(m *model, o *Options) {
	sol, served := m.assign(nil)
	if !o.NoLinks {
		m.linkServers(sol, served)
	}
	r.sol, r.proven = solution{}, false
	for i := range int32(len(m.points)) {
		var flows []flow
		for _, f := range sol.flows {
			if f.path.point == i {
				flows = append(flows, f)
			}
		}
		if len(flows) > 0 && !m.tooLossy(i, flows) {
			r.sol.flows = append(r.sol.flows, flows...)
		}
	}
	if r.serverBound = 0; r.complete(m) {
		total := 0.0
		for _, d := range m.demand {
			total += d
		}
		r.serverBound = m.capacityBound(total)
	}
}

// complete reports whether all points are served.
func (r *result) complete(m *model) bool {
	served := make([]bool, len(m.points))
	for _, f := range r.sol.flows {
		served[f.path.point] = true
	}
	return !slices.Contains(served, false)
}

// linkServers links the points that an assignment leaves out to servers, fast ones first: to the used server with the
// least room that is enough, else to the emptiest, and to more than one if need be.
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
			rate := min(rest, room[s], delivery.AddedCapacity)
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
		u := why.of(i)
		added = append(added, delivery.AddedLink{A: m.p.Nodes[l[0]].ID, B: m.p.Nodes[l[1]].ID, Constraint: u.Constraint, Detail: u.Detail})
	}
	plan, err := delivery.NewPlan(m.p, string(o.Method), routes, added, nil)
	if err != nil {
		return nil, err
	}
	for i, ok := range served {
		if !ok {
			u := why.of(int32(i))
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
	s.LinkBound = min(r.linkBound, s.Links)
	s.LowerBound = float64(min(r.serverBound, s.Servers))
	s.Optimal = r.proven && s.LinkBound == s.Links && s.LowerBound == s.Objective
	if s.Optimal {
		s.LeftOutBound = s.LeftOut
	}
	return plan, nil
}
