package steer

import (
	"fmt"
	"slices"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/topo"
)

// Links are the directions of the links of a graph, numbered by their egress interfaces. A port towards hosts without a
// node in the graph is a direction as well. The control of probes uses the name of the link, from the end that a
// direction leaves: a queue belongs to a direction. It implements [suspicion.Places].
type Links struct {
	graph   *topo.Graph
	ids     []uint32 // of nodes in reports
	nodes   map[uint32]int
	covered []bool // by interface: a probe leaves by it
	byName  map[string]int
}

// NewLinks numbers the links of a graph whose nodes have these ids in reports.
func NewLinks(g *topo.Graph, ids []uint32) *Links {
	d := &Links{graph: g, ids: ids, nodes: make(map[uint32]int, len(ids)), covered: make([]bool, g.NumInterfaces()), byName: map[string]int{}}
	for n, id := range ids {
		d.nodes[id] = n
	}
	for i := range g.NumInterfaces() {
		d.byName[d.Name(i)] = i
	}
	return d
}

// Name is the name of a direction: NODE:PORT--NODE:PORT, and NODE:PORT--host for a port towards hosts.
func (d *Links) Name(i int) string {
	g := d.graph
	p := g.Peer(i)
	if p < 0 {
		return fmt.Sprintf("%s:%d--host", g.NodeName(g.Node(i)), g.Port(i))
	}
	return fmt.Sprintf("%s:%d--%s:%d", g.NodeName(g.Node(i)), g.Port(i), g.NodeName(g.Node(p)), g.Port(p))
}

// Lookup is the number of a direction by its name.
func (d *Links) Lookup(name string) (i int, ok bool) {
	i, ok = d.byName[name]
	return i, ok
}

// End is the node and the port that a direction leaves, by its name.
func (d *Links) End(name string) (node, port uint32, ok bool) {
	i, ok := d.byName[name]
	if !ok {
		return 0, 0, false
	}
	return d.ids[d.graph.Node(i)], uint32(d.graph.Port(i)), true
}

// direction is the number of a direction that two switches reported, or -1. The interface that packets left by must be reported.
func (d *Links) direction(k *inference.LinkKey) int32 {
	n, ok := d.nodes[k.Node]
	peer, there := d.nodes[k.Peer]
	if !ok || !there {
		return -1
	}
	i := d.graph.ByPort(n, int(k.EgressIf))
	if i < 0 || d.graph.Peer(i) < 0 || d.graph.Neighbor(i) != peer {
		return -1
	}
	return int32(i)
}

// Covered counts the directions between nodes that a probe passes, and all of these.
func (d *Links) Covered() (covered, all int) {
	for i, c := range d.covered {
		if d.graph.Peer(i) >= 0 {
			all++
			if c {
				covered++
			}
		}
	}
	return covered, all
}

// passes reports whether a probe of another network can take its way in this one.
func (d *Links) passes(p *planner.Probe) bool {
	return !slices.ContainsFunc(p.Links, func(l string) bool { _, ok := d.byName[l]; return !ok })
}

// Route replaces the links of probes by the directions in which they pass them, including the port of the receiving
// host. It returns these directions, by probe.
func (d *Links) Route(probes []planner.Probe) (passed [][]int32, err error) {
	passed = make([][]int32, len(probes))
	for k := range probes {
		p := &probes[k]
		if len(p.Nodes) != len(p.Ports)+1 {
			return nil, fmt.Errorf("probe %s passes %d nodes by %d ports", p.ID, len(p.Nodes), len(p.Ports))
		}
		links := make([]string, len(p.Ports))
		for h, port := range p.Ports {
			n, ok := d.graph.Lookup(p.Nodes[h])
			if !ok {
				return nil, fmt.Errorf("probe %s: the topology has no node %q", p.ID, p.Nodes[h])
			}
			i := d.graph.ByPort(n, port)
			if i < 0 || d.graph.Peer(i) < 0 || d.graph.NodeName(d.graph.Neighbor(i)) != p.Nodes[h+1] {
				return nil, fmt.Errorf("probe %s: in the topology port %d of %s does not lead to %s", p.ID, port, p.Nodes[h], p.Nodes[h+1])
			}
			links[h], d.covered[i] = d.Name(i), true
			passed[k] = append(passed[k], int32(i))
		}
		if i := d.hostPort(p); i >= 0 {
			links, passed[k] = append(links, d.Name(i)), append(passed[k], int32(i))
			d.covered[i] = true
		}
		p.Links = links
	}
	return passed, nil
}

// hostPort is the direction in which a probe leaves its last switch for the host that receives it, or -1. If the plan
// lacks the port, it is the first one of that switch.
func (d *Links) hostPort(p *planner.Probe) int {
	n, ok := d.graph.Lookup(p.Collector)
	if !ok || d.graph.Host(n) || p.Collector != p.Nodes[len(p.Nodes)-1] {
		return -1
	}
	port := p.CollectorPort
	if port == 0 {
		port = d.graph.HostPort(n)
	}
	i := d.graph.ByPort(n, port)
	if i < 0 || d.graph.Peer(i) >= 0 {
		return -1
	}
	return i
}

// watched is a direction by which a probe could report more of link direction i: itself, or else the other one of the link.
func (d *Links) watched(i int) int {
	if p := d.graph.Peer(i); p >= 0 && !d.covered[i] && d.covered[p] {
		return p
	}
	return i
}

// LeastLatencyFloor is that of times in switches before fast lines, and before those of which the rate is not known, in ns.
const LeastLatencyFloor = 10_000

// PacketTimes returns the transmission time of a packet of 1500 bytes on each direction, in ns. It is least where that
// is more or the rate is unknown. One foreign packet ahead of a probe is no queue.
func (d *Links) PacketTimes(least float64) []float64 {
	list := make([]float64, d.graph.NumInterfaces())
	for i := range list {
		list[i] = least
		if rate := d.graph.Attr(i).Bandwidth; rate > 0 {
			list[i] = max(least, 1500*8e9/rate)
		}
	}
	return list
}

// add appends a direction, unless it is -1.
func (d *Links) add(to []int32, i int) []int32 {
	if i < 0 {
		return to
	}
	return append(to, int32(d.watched(i)))
}

// Links implements [suspicion.Places]. An interface is one direction, a link both, a node all directions that leave or
// enter it. A flow is the directions of its path, as far as the finding has it.
func (d *Links) Links(to []int32, f *inference.Finding) []int32 {
	e := f.Element
	if e.Kind == inference.FlowElement {
		return d.path(to, f.Path)
	}
	n, ok := d.nodes[e.Node]
	if !ok {
		return to
	}
	g := d.graph
	switch e.Kind {
	case inference.InterfaceElement:
		return d.add(to, g.ByPort(n, int(e.EgressIf)))
	case inference.LinkElement:
		return d.link(to, n, &e)
	case inference.NodeElement:
		lo, hi := g.Interfaces(n)
		for i := lo; i < hi; i++ {
			to = d.add(to, i)
			to = d.add(to, g.Peer(i))
		}
	}
	return to
}

// link appends both directions of a link, or of all links between its nodes if it does not name one.
func (d *Links) link(to []int32, n int, e *inference.Element) []int32 {
	g := d.graph
	peer, ok := d.nodes[e.Peer]
	if !ok {
		return to
	}
	lo, hi := g.Interfaces(n)
	for i := lo; i < hi; i++ {
		p := g.Peer(i)
		if p < 0 || g.Node(p) != peer || e.EgressIf != 0 && g.Port(i) != int(e.EgressIf) || e.PeerIf != 0 && g.Port(p) != int(e.PeerIf) {
			continue
		}
		to = d.add(d.add(to, i), p)
	}
	return to
}

// path appends the directions that a path takes: by the interface that it names, or else all from one node to the next.
func (d *Links) path(to []int32, path []inference.HopKey) []int32 {
	g := d.graph
	for k, h := range path {
		n, ok := d.nodes[h.Node]
		if !ok || h.Other {
			continue
		}
		if h.EgressIf != 0 {
			to = d.add(to, g.ByPort(n, int(h.EgressIf)))
			continue
		}
		if k+1 == len(path) {
			break
		}
		next, ok := d.nodes[path[k+1].Node]
		lo, hi := g.Interfaces(n)
		for i := lo; ok && i < hi; i++ {
			if p := g.Peer(i); p >= 0 && g.Node(p) == next {
				to = d.add(to, i)
			}
		}
	}
	return to
}
