package cover

import (
	"errors"
	"fmt"

	"github.com/hopscope/hopscope/planner/topo"
)

// Problem holds what the probes of a cover must pass, and their limits.
type Problem struct {
	Graph     *topo.Graph
	Directed  bool   // both directions of every link, for a queue belongs to a direction; else every link in one of them
	Skip      []bool // by link: must not be probed or passed; nil for none
	SkipNode  []bool // by node: no link there must be probed or passed; nil for none
	MaxPort   int    // directions that leave by a higher port cannot be addressed; 0 for no limit
	MaxHops   int    // most links of a probe; 0 for no limit
	MaxDelay  int64  // longest delay of a probe, in nanoseconds; 0 for no limit
	Depots    []int  // nodes where probes may start and end; nil for all
	Redundant bool   // two covers, which together pass both directions of every link; not with Directed

	Minimise Measure      // unit of traversals between depots; Links if empty
	Size     Size         // of a probe, for Bytes
	Hosts    []bool       // by node: probes begin and end there, and none passes; nil for none
	Agents   []topo.Agent // senders and receivers at the depots; nil where they do not matter

	Attention *Attention // loop of detail whose bytes are minimised; nil for none
}

// Skipped reports whether link l must not be probed or passed.
func (p *Problem) Skipped(l int) bool {
	if p.SkipNode != nil {
		x, y := p.Graph.Ends(l)
		if p.SkipNode[p.Graph.Node(x)] || p.SkipNode[p.Graph.Node(y)] {
			return true
		}
	}
	return p.Skip != nil && p.Skip[l]
}

// Usable reports whether a probe may leave by interface i.
func (p *Problem) Usable(i int) bool {
	l := p.Graph.Link(i)
	return l >= 0 && !p.Skipped(l) && (p.MaxPort == 0 || p.Graph.Port(i) <= p.MaxPort)
}

// Wanted reports whether link l, or in a directed problem the direction that leaves by its first or second end, has to
// be covered. An undirected cover may walk a link either way, so both ways must be usable.
func (p *Problem) Wanted(l int) (first, second bool) {
	x, y := p.Graph.Ends(l)
	first, second = p.Usable(x), p.Usable(y)
	if !p.Directed {
		first = first && second
		second = first
	}
	return first, second
}

// Validate returns what is wrong with the problem itself.
func (p *Problem) Validate() error {
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
	if p.SkipNode != nil && len(p.SkipNode) != g.NumNodes() {
		fail("cover: nodes to skip are given for %d nodes, the topology has %d", len(p.SkipNode), g.NumNodes())
	}
	if p.Hosts != nil && len(p.Hosts) != g.NumNodes() {
		fail("cover: hosts are given for %d nodes, the topology has %d", len(p.Hosts), g.NumNodes())
	}
	if errs != nil {
		return errors.Join(errs...)
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
		case p.SkipNode != nil && p.SkipNode[d]:
			fail("cover: depot %q is one of the nodes to skip", g.NodeName(d))
		}
		seen[d] = true
	}
	if p.Redundant && p.Directed {
		fail("cover: two covers take the two directions of every link, which a directed cover takes both of")
	}
	if a := p.Attention; a != nil && (!(a.Share > 0 && a.Share < 1) || a.Basic < 0 || a.Detailed < a.Basic || p.Redundant) {
		fail("cover: attention of %v, from %d to %d bytes: the share lies between 0 and 1, detailed metrics are no fewer, and a cover is one", a.Share, a.Basic, a.Detailed)
	}
	p.validateMeasure(fail)
	p.validateAgents(fail)
	return errors.Join(errs...)
}
