package planner

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/planner/topo"
)

// CoverProblem says what the probes of a cover must pass, and what they may.
type CoverProblem struct {
	Graph     *topo.Graph
	Directed  bool   // both directions of every link, for a queue belongs to a direction; else every link in one of them
	Skip      []bool // by link: must not be probed or passed; nil for none
	MaxPort   int    // directions that leave by a higher port cannot be addressed; 0 for no limit
	MaxHops   int    // most links of a probe; 0 for no limit
	Depots    []int  // nodes where probes may start and end; nil for all
	Redundant bool   // two covers, which together pass both directions of every link; not with Directed
}

// Usable reports whether a probe may leave by interface i.
func (p *CoverProblem) Usable(i int) bool {
	l := p.Graph.Link(i)
	return l >= 0 && (p.Skip == nil || !p.Skip[l]) && (p.MaxPort == 0 || p.Graph.Port(i) <= p.MaxPort)
}

// Wanted reports whether link l, or in a directed problem the direction that leaves by its first or second end, has to
// be covered. An undirected cover may walk a link either way, so both ways must be usable.
func (p *CoverProblem) Wanted(l int) (first, second bool) {
	x, y := p.Graph.Ends(l)
	first, second = p.Usable(x), p.Usable(y)
	if !p.Directed {
		first = first && second
		second = first
	}
	return first, second
}

// Validate says what is wrong with the problem itself.
func (p *CoverProblem) Validate() error {
	g := p.Graph
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if g == nil || g.NumNodes() == 0 {
		return errors.New("cover: the topology has no nodes")
	}
	if p.MaxHops < 0 {
		fail("cover: at most %d hops a probe: the limit must not be negative", p.MaxHops)
	}
	if p.MaxPort < 0 {
		fail("cover: ports up to %d: the limit must not be negative", p.MaxPort)
	}
	if p.Skip != nil && len(p.Skip) != g.NumLinks() {
		fail("cover: links to skip are given for %d links, the topology has %d", len(p.Skip), g.NumLinks())
	}
	if p.Depots != nil && len(p.Depots) == 0 {
		fail("cover: no node may send or receive probes")
	}
	seen := map[int]bool{}
	for _, d := range p.Depots {
		switch {
		case d < 0 || d >= g.NumNodes():
			fail("cover: depot %d is none of the %d nodes", d, g.NumNodes())
		case seen[d]:
			fail("cover: depot %q is given twice", g.NodeName(d))
		}
		seen[d] = true
	}
	if p.Redundant && p.Directed {
		fail("cover: two covers take the two directions of every link, which a directed cover takes both of")
	}
	return errors.Join(errs...)
}

// CoverPlan is a set of probes that covers a topology.
type CoverPlan struct {
	Algorithm  string     `json:"algorithm"`
	Topology   string     `json:"topology"`
	Probes     []Probe    `json:"probes"`
	Second     []Probe    `json:"second_cover,omitempty"` // of a redundant plan
	KeptSecond int        `json:"kept_second,omitempty"`  // as Kept
	NotProbed  []Unprobed `json:"not_probed,omitempty"`
	Kept       int        `json:"kept,omitempty"`    // probes of an older plan, which come first, with their ids
	Partial    bool       `json:"partial,omitempty"` // links that should be probed are not
	Stats      CoverStats `json:"stats"`
}

// Unprobed is a link, or one direction of it, that no probe passes.
type Unprobed struct {
	Link   string `json:"link"`
	From   string `json:"from,omitempty"` // node that the direction leaves; empty for both
	Reason string `json:"reason"`
}

// CoverStats describes a cover. The objective is the number of probes; with depots it is the number of link
// traversals, and the number of probes comes out of that.
type CoverStats struct {
	Stats
	Probes     int     `json:"probes"`
	Links      int     `json:"links"`      // that are covered; directions in a directed cover
	Traversals int     `json:"traversals"` // sum of the lengths
	Duplicated int     `json:"duplicated"` // traversals beyond the first of a link or direction
	Shortest   int     `json:"shortest"`   // length in links
	Longest    int     `json:"longest"`
	Mean       float64 `json:"mean"`
	Variance   float64 `json:"variance"`
	Blind      int     `json:"blind,omitempty"` // redundant: most other links that the failure of one hides
}

// Walk is a probe as the interfaces by which it leaves its nodes, in order.
type Walk = []int32

// NewCoverPlan names what walks pass.
func NewCoverPlan(p *CoverProblem, algorithm string, walks, second []Walk) *CoverPlan {
	plan := &CoverPlan{Algorithm: algorithm, Topology: p.Graph.Name(), Probes: p.probes("p", walks)}
	if p.Redundant {
		plan.Second = p.probes("q", second)
	}
	plan.Stats = p.stats(walks, second)
	return plan
}

func (p *CoverProblem) probes(prefix string, walks []Walk) []Probe {
	g, total := p.Graph, 0
	for _, w := range walks {
		total += len(w)
	}
	nodes, links, ports := make([]string, 0, total+len(walks)), make([]string, 0, total), make([]int, 0, total)
	linkNames := make([]string, g.NumLinks())
	probes := make([]Probe, len(walks))
	for k, w := range walks {
		n, l := len(nodes), len(links)
		for _, i := range w {
			link := g.Link(int(i))
			if linkNames[link] == "" {
				linkNames[link] = g.LinkName(link)
			}
			nodes = append(nodes, g.NodeName(g.Node(int(i))))
			links = append(links, linkNames[link])
			ports = append(ports, g.Port(int(i)))
		}
		nodes = append(nodes, g.NodeName(g.Neighbor(int(w[len(w)-1]))))
		probes[k] = Probe{
			ID: fmt.Sprintf("%s%d", prefix, k+1), Nodes: nodes[n:len(nodes):len(nodes)],
			Links: links[l:len(links):len(links)], Ports: ports[l:len(ports):len(ports)],
			Agent: nodes[n], Collector: nodes[len(nodes)-1],
		}
	}
	return probes
}

// stats gives all of the statistics but objective, bound and time.
func (p *CoverProblem) stats(walks, second []Walk) (s CoverStats) {
	covered := make([]bool, 2*p.Graph.NumLinks())
	for n, w := range walks {
		s.Traversals += len(w)
		s.Longest = max(s.Longest, len(w))
		if s.Shortest = min(s.Shortest, len(w)); n == 0 {
			s.Shortest = len(w)
		}
		for _, i := range w {
			if item := p.item(int(i)); !covered[item] {
				covered[item] = true
				s.Links++
			}
		}
	}
	s.Probes, s.Duplicated = len(walks), s.Traversals-s.Links
	if len(walks) > 0 {
		s.Mean = float64(s.Traversals) / float64(len(walks))
		for _, w := range walks {
			d := float64(len(w)) - s.Mean
			s.Variance += d * d / float64(len(walks))
		}
	}
	s.Blind = Blind(p, walks, second)
	return s
}

// item numbers what is to be covered: links at 2l, or the directions of links at 2l and 2l+1.
func (p *CoverProblem) item(i int) int {
	l := p.Graph.Link(i)
	if x, _ := p.Graph.Ends(l); p.Directed && x != i {
		return 2*l + 1
	}
	return 2 * l
}

// Blind counts for every link the others that are out of sight when it fails, since all probes of both covers that pass
// them pass it too, and gives the largest count.
func Blind(p *CoverProblem, walks, second []Walk) int {
	if len(second) == 0 {
		return 0
	}
	g := p.Graph
	first, other := newPassing(g.NumLinks(), g.Link, walks), newPassing(g.NumLinks(), g.Link, second)
	alone := map[[2]int32]int{} // links by their probes, where they are on one of each cover
	var several []int
	most := 0
	for l := range g.NumLinks() {
		switch a, b := first.of(l), other.of(l); {
		case len(a) == 1 && len(b) == 1:
			key := [2]int32{a[0], b[0]}
			most = max(most, alone[key])
			alone[key]++
		case len(a) > 0 && len(b) > 0:
			several = append(several, l)
		}
	}
	seen := make([]int, g.NumLinks())
	for _, l := range several {
		seen[l] = l + 1
		hidden := 0
		for _, k := range first.of(l) {
			for _, i := range walks[k] {
				if m := g.Link(int(i)); seen[m] != l+1 {
					seen[m] = l + 1
					if within(first.of(m), first.of(l)) && within(other.of(m), other.of(l)) {
						hidden++
					}
				}
			}
		}
		most = max(most, hidden)
	}
	return most
}

// passing lists by link the walks that pass it, each once, ascending.
type passing struct{ at, walk []int32 }

func newPassing(links int, link func(i int) int, walks []Walk) *passing {
	p := &passing{at: make([]int32, links+1)}
	last := make([]int32, links)
	each := func(do func(l int, k int32)) {
		clear(last)
		for k, w := range walks {
			for _, i := range w {
				if l := link(int(i)); last[l] != int32(k)+1 {
					last[l] = int32(k) + 1
					do(l, int32(k))
				}
			}
		}
	}
	each(func(l int, _ int32) { p.at[l+1]++ })
	for l := range links {
		p.at[l+1] += p.at[l]
	}
	p.walk = make([]int32, p.at[links])
	next := slices.Clone(p.at)
	each(func(l int, k int32) {
		p.walk[next[l]] = k
		next[l]++
	})
	return p
}

func (p *passing) of(l int) []int32 { return p.walk[p.at[l]:p.at[l+1]] }

// within reports whether all of a are in b, both ascending.
func within(a, b []int32) bool {
	for _, x := range a {
		if _, ok := slices.BinarySearch(b, x); !ok {
			return false
		}
	}
	return true
}
