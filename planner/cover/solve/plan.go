package solve

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/opt"
	"github.com/hopscope/hopscope/planner/opt/postman"
)

// Method is a way to cut a topology into probes.
type Method string

// The methods.
const (
	Euler         Method = "euler"          // fewest probes, O(V + E)
	DFS           Method = "dfs"            // INT-path's first plan: one walk with backtracking
	Paper         Method = "paper"          // INT-path's Euler plan as published
	PaperBalanced Method = "paper-balanced" // its balanced form as published
	IntBalance    Method = "int-balance"    // INT-Balance: segments between odd nodes, joined
)

// Options are the options of planning.
type Options struct {
	Method   Method // Euler if empty
	Balanced bool   // make probes about equally long; plans with depots and with a limit of hops always are
	Seed     uint64
	Stop     func() bool // ends improving; nil for never
	Partial  bool        // leave out uncoverable links, rather than fail

	// Churn is the most probes that Replan adds, removes or changes, or those that it has to if these are more; below 0, any
	// number. With nil it keeps every probe that is whole as it is.
	Churn *int
}

// The kinds of errors that callers test.
var (
	ErrUncoverable = errors.New("cannot be covered") // some link is out of reach
	ErrMethod      = errors.New("method does not fit the problem")
)

// Plan covers the topology of p.
func Plan(p *cover.Problem, o Options) (*cover.Plan, error) {
	if p.Attention != nil {
		return forAttention(p, o)
	}
	return once(p, o)
}

// once makes one plan, whatever a loop does with it.
func once(p *cover.Problem, o Options) (*cover.Plan, error) {
	c, err := newCoverer(p, &o)
	if err != nil {
		return nil, err
	}
	var second []cover.Walk
	walks := c.cover(newNet(p, c.want))
	if p.Redundant {
		walks, second = c.redundant(walks)
	}
	walks, second, err = c.assign(walks, second)
	if err != nil {
		return nil, err
	}
	plan := c.plan(walks, second)
	c.nameAgents(plan, nil)
	return plan, nil
}

type coverer struct {
	p     *cover.Problem
	o     *Options
	ways  *depotWays // nil without depots
	left  []cover.Unprobed
	out   map[int]bool // by interface: wanted, but not to be covered
	some  bool         // left holds what should be covered
	edges int          // to be covered
	bound int          // of the objective
	loose int          // left-out links that another plan might cover
	asked *cover.Problem

	keptFirst, keptSecond int   // walks of an older plan, which come first
	lost                  []int // places of those that agents have no room for, one after the other
}

func newCoverer(p *cover.Problem, o *Options) (*coverer, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if o.Method == "" {
		o.Method = Euler
	}
	o.Stop = opt.Never(o.Stop)
	switch o.Method {
	case Euler:
	case DFS, Paper, PaperBalanced, IntBalance:
		if p.Directed || p.Depots != nil || p.Redundant {
			return nil, fmt.Errorf("cover: %w: %s plans undirected covers without depots only", ErrMethod, o.Method)
		}
	default:
		return nil, fmt.Errorf("cover: %w: there is no method %q", ErrMethod, o.Method)
	}
	c := &coverer{p: withoutIdleHosts(p), asked: p, o: o, out: map[int]bool{}}
	if p.Depots != nil {
		c.ways = newDepotWays(c.p)
	}
	c.leftOut()
	if c.some && !o.Partial {
		for _, u := range c.left {
			if u.Reason != skipped {
				return nil, fmt.Errorf("cover: link %s %w: %s%s", u.Link, ErrUncoverable, u.Reason, c.andMore())
			}
		}
	}
	return c, nil
}

func (c *coverer) andMore() string {
	n := -1
	for _, u := range c.left {
		if u.Reason != skipped {
			n++
		}
	}
	if n == 0 {
		return "; a partial plan would leave it out"
	}
	return fmt.Sprintf("; a partial plan would leave it and %d more out", n)
}

const skipped = "not to be probed"

// leftOut lists what the plan does not cover, and why.
func (c *coverer) leftOut() {
	p, g := c.p, c.p.Graph
	add := func(l, from int, reason string) {
		u := cover.Unprobed{Link: g.LinkName(l), Reason: reason}
		if from >= 0 {
			u.From = g.NodeName(from)
		}
		c.left = append(c.left, u)
		c.some = c.some || reason != skipped
	}
	for l := range g.NumLinks() {
		x, y := g.Ends(l)
		if h := c.idleHost(l); h >= 0 {
			c.out[x], c.out[y] = true, true
			reason := fmt.Sprintf("nothing sends or receives at host %s", g.NodeName(h))
			if !p.Directed {
				add(l, -1, reason)
				continue
			}
			add(l, g.Node(x), reason)
			add(l, g.Node(y), reason)
			continue
		}
		if p.Skipped(l) {
			add(l, -1, skipped)
			continue
		}
		first, second := p.Wanted(l)
		for k, wanted := range [...]bool{first, second} {
			i, from := [...]int{x, y}[k], -1
			if p.Directed {
				from = g.Node(i)
			} else if k == 1 {
				break
			}
			switch {
			case !wanted:
				if !p.Directed && p.Usable(x) {
					i = y
				}
				add(l, from, fmt.Sprintf("port %d of %s cannot be addressed: the highest is %d", g.Port(i), g.NodeName(g.Node(i)), p.MaxPort))
			case c.reaches(i, true):
				c.edges++
			default:
				c.out[i] = true
				reason := "no depot is connected"
				if c.reaches(i, false) {
					reason = c.tooFar()
				}
				add(l, from, reason)
			}
		}
	}
}

func (c *coverer) want(i int) bool { return !c.out[i] }

// cover plans the edges of n.
func (c *coverer) cover(n *postman.Net) []cover.Walk {
	p, o := c.p, c.o
	if n.Edges() == 0 {
		return nil
	}
	n.Seed = o.Seed
	if p.Depots != nil {
		return c.coverFromDepots(n)
	}
	c.bound = c.boundLimits(n)
	n.Detach(p.Hosts)
	var trails [][]int32
	switch {
	case o.Method == DFS:
		trails = n.DFS()
	case o.Method == Paper || o.Method == PaperBalanced:
		trails = n.INTPath(o.Method == PaperBalanced, rand.New(rand.NewPCG(o.Seed, 0)), o.Stop)
	case o.Method == IntBalance:
		trails = n.INTBalance()
	default:
		trails = n.Euler(o.Balanced || p.MaxHops > 0)
	}
	if o.Balanced {
		n.Balance(trails, o.Stop)
	}
	switch {
	case p.MaxHops == 0:
	case o.Method == Euler:
		trails = n.Limit(trails, p.MaxHops, o.Stop)
	default:
		trails = postman.Cut(trails, func(_, length int) int { return (length + p.MaxHops - 1) / p.MaxHops })
	}
	return walks(n, c.limitDelay(n, trails))
}

// coverFromDepots plans walks between depots. In undirected problems second traversals are chosen at their optimum, and
// the multigraph has a cover that ends at depots only. A limit of hops then cuts the walks. In directed problems the
// two directions balance each other, and no traversal needs to be added. Where one direction is unusable, the ends of
// trails are joined to the nearest depots.
func (c *coverer) coverFromDepots(n *postman.Net) []cover.Walk {
	p, o := c.p, c.o
	depot := c.depots()
	original := n.Edges()
	c.duplicate(n, depot)
	trails := n.Euler(true)
	n.Balance(trails, o.Stop)
	n.Rotate(trails, depot)
	trails = n.Split(trails, p.Hosts)
	if p.MaxHops == 0 && p.MaxDelay == 0 && p.Minimise != cover.Bytes && !c.homeless(n, trails, depot) {
		return walks(n, trails)
	}
	return c.ways.walksBetween(n, trails, original, p.MaxHops)
}

// depots returns by node whether probes may start and end there.
func (c *coverer) depots() []bool {
	depot := make([]bool, c.p.Graph.NumNodes())
	for _, v := range c.p.Depots {
		depot[v] = true
	}
	return depot
}

// homeless reports whether some trail does not start and end at depots.
func (c *coverer) homeless(n *postman.Net, trails [][]int32, depot []bool) bool {
	for _, t := range trails {
		if !depot[n.From[t[0]]] || !depot[n.Head(t[len(t)-1])] {
			return true
		}
	}
	return false
}

// plan names everything.
func (c *coverer) plan(walks, second []cover.Walk) *cover.Plan {
	name := string(c.o.Method)
	if c.o.Balanced && c.o.Method != PaperBalanced {
		name += "-balanced"
	}
	if c.p.Depots != nil {
		name = "depots"
	}
	if c.p.Redundant {
		name += "-redundant"
	}
	plan := cover.NewPlan(c.p, name, walks, second)
	plan.NotProbed, plan.Partial = c.left, c.some
	s := &plan.Stats
	s.Objective = c.objective(walks)
	s.LowerBound = min(float64(c.bound), s.Objective)
	c.leftOutStats(s)
	s.Optimal = s.LowerBound == s.Objective && s.LeftOutBound == s.LeftOut
	return plan
}
