package cover

import (
	"fmt"

	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/opt"
	"github.com/hopscope/hopscope/planner/topo"
)

// Plan is a set of probes that covers a topology.
type Plan struct {
	planner.Head
	Algorithm  string          `json:"algorithm"`
	Topology   string          `json:"topology"`
	Directed   bool            `json:"directed,omitempty"` // both directions of every link are covered
	Minimise   Measure         `json:"minimise,omitempty"` // what the objective counts, unless links or probes
	Probes     []planner.Probe `json:"probes"`
	Second     []planner.Probe `json:"second_cover,omitempty"` // of a redundant plan
	KeptSecond int             `json:"kept_second,omitempty"`  // as Kept
	NotProbed  []Unprobed      `json:"not_probed,omitempty"`
	Kept       int             `json:"kept,omitempty"`    // probes of an older plan, which come first, with their ids
	Partial    bool            `json:"partial,omitempty"` // links that should be probed are not
	Stats      Stats           `json:"stats"`

	planner.Replacement // probe by probe
}

// Unprobed is a link, or one direction of it, that no probe passes.
type Unprobed struct {
	Link   string `json:"link"`
	From   string `json:"from,omitempty"` // node that the direction leaves; empty for both
	Reason string `json:"reason"`
}

// Stats describes a cover. The objective is the number of probes; with depots it is the number of link
// traversals, and the number of probes comes out of that.
type Stats struct {
	planner.Stats
	Probes     int     `json:"probes"`
	Links      int     `json:"links"`      // that are covered; directions in a directed cover
	Traversals int     `json:"traversals"` // sum of the lengths
	Duplicated int     `json:"duplicated"` // traversals beyond the first of a link or direction
	Shortest   int     `json:"shortest"`   // length in links
	Longest    int     `json:"longest"`
	Mean       float64 `json:"mean"`
	Variance   float64 `json:"variance"`
	Delay      int64   `json:"longest_delay_ns,omitempty"` // of a probe, where delays matter
	Bytes      int64   `json:"bytes,omitempty"`            // on the wire in one round, where the size of probes is known
	Blind      int     `json:"blind,omitempty"`            // redundant: most other links that the failure of one hides

	Attention AttentionCost `json:"attention,omitzero"` // of a plan for a loop with attention
}

// Walk is a probe as the interfaces by which it leaves its nodes, in order.
type Walk = []int32

// NewPlan names what walks pass.
func NewPlan(p *Problem, algorithm string, walks, second []Walk) *Plan {
	plan := &Plan{Algorithm: algorithm, Topology: p.Graph.Name(), Directed: p.Directed, Probes: p.probes("p", walks)}
	if p.Redundant {
		plan.Second = p.probes("q", second)
	}
	if p.measure() != Links {
		plan.Minimise = p.Minimise
	}
	plan.Stats = p.stats(walks, second)
	return plan
}

func (p *Problem) probes(prefix string, walks []Walk) []planner.Probe {
	g, total := p.Graph, 0
	for _, w := range walks {
		total += len(w)
	}
	nodes, links, ports := make([]string, 0, total+len(walks)), make([]string, 0, total), make([]int, 0, total)
	linkNames := make([]string, g.NumLinks())
	probes := make([]planner.Probe, len(walks))
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
		probes[k] = planner.Probe{
			ID: fmt.Sprintf("%s%d", prefix, k+1), Nodes: nodes[n:len(nodes):len(nodes)],
			Links: links[l:len(links):len(links)], Ports: ports[l:len(ports):len(ports)],
			Agent: nodes[n], Collector: nodes[len(nodes)-1],
		}
	}
	return probes
}

// stats gives all of the statistics but objective, bound and time.
func (p *Problem) stats(walks, second []Walk) (s Stats) {
	covered := make([]bool, 2*p.Graph.NumLinks())
	for n, w := range walks {
		s.Traversals += len(w)
		s.Longest = max(s.Longest, len(w))
		if s.Shortest = min(s.Shortest, len(w)); n == 0 {
			s.Shortest = len(w)
		}
		if p.MaxDelay > 0 || p.measure() == Delay {
			s.Delay = max(s.Delay, p.Time(w))
		}
		if p.Size != (Size{}) {
			s.Bytes += p.Size.Of(len(w))
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
	if a := p.Attention; a != nil {
		s.Attention = AttentionCost{Share: a.Share, Basic: a.Basic, Detailed: a.Detailed, Bytes: p.attentionBytes(walks)}
	}
	return s
}

// item numbers what is to be covered: links at 2l, or the directions of links at 2l and 2l+1.
func (p *Problem) item(i int) int {
	l := p.Graph.Link(i)
	if x, _ := p.Graph.Ends(l); p.Directed && x != i {
		return 2*l + 1
	}
	return 2 * l
}

// Blind returns the largest number of other links that go out of sight when one link fails. A link goes out of sight if
// every probe of both covers that passes it also passes the failed link.
func Blind(p *Problem, walks, second []Walk) int {
	if len(second) == 0 {
		return 0
	}
	g := p.Graph
	first, other := newPassing(g, walks), newPassing(g, second)
	alone := map[[2]int32]int{} // links by their probes, where they are on one of each cover
	var several []int
	most := 0
	for l := range g.NumLinks() {
		switch a, b := first.throughLink(l), other.throughLink(l); {
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
		for _, k := range first.throughLink(l) {
			for _, i := range walks[k] {
				if m := g.Link(int(i)); seen[m] != l+1 {
					seen[m] = l + 1
					if opt.Subset(first.throughLink(m), first.throughLink(l)) && opt.Subset(other.throughLink(m), other.throughLink(l)) {
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

func newPassing(g *topo.Graph, walks []Walk) *passing {
	at, walk := opt.Passing(walks, g.NumLinks(), func(i int32) int32 { return int32(g.Link(int(i))) })
	return &passing{at, walk}
}

func (p *passing) throughLink(l int) []int32 { return p.walk[p.at[l]:p.at[l+1]] }
