package topo

import (
	"strconv"
	"time"
)

// Tier is the role of a node in a data centre fabric.
type Tier uint8

// The tiers. A node of a wide area network, or of a random graph, has none.
const (
	NoTier      Tier = iota
	Edge             // top of rack, leaf: hosts are attached here
	Aggregation      // middle of a pod
	Core             // core, spine
	numTiers
)

func (t Tier) String() string {
	if t < numTiers {
		return [...]string{"none", "edge", "aggregation", "core"}[t]
	}
	return "tier(" + strconv.Itoa(int(t)) + ")"
}

// Attr holds the properties of one direction of a link.
type Attr struct {
	Weight    uint32        // for shortest paths, at least 1
	Cost      uint32        // of sending over it, in any unit; 0 if not known
	Bandwidth float64       // bit/s; 0 if not known
	Delay     time.Duration // of propagation; 0 if not known
}

// DefaultAttr holds the attributes of a link without any.
var DefaultAttr = Attr{Weight: 1}

// Graph is an immutable multigraph.
type Graph struct {
	name  string
	names []string
	index map[string]int32
	tiers []Tier

	first []int32 // interfaces of node n: first[n] up to first[n+1]
	node  []int32 // owner of an interface
	port  []int32
	peer  []int32 // interface at the other end of the link, or -1
	link  []int32 // or -1
	ends  []int32 // the two interfaces of link l: ends[2l], ends[2l+1]
	attrs []Attr  // by interface; nil if all are DefaultAttr

	places []Place // by node; nil if no place is known
	hosts  []bool  // by node; nil if all are switches
	agents []Agent
}

// Name returns what the graph was loaded or generated from.
func (g *Graph) Name() string { return g.name }

// NumNodes is the number of nodes.
func (g *Graph) NumNodes() int { return len(g.names) }

// NumLinks is the number of links. A link is counted once, not once for each direction.
func (g *Graph) NumLinks() int { return len(g.ends) / 2 }

// NumInterfaces is twice the number of links plus the number of interfaces that lead out of the graph.
func (g *Graph) NumInterfaces() int { return len(g.node) }

// NodeName is the name of node n.
func (g *Graph) NodeName(n int) string { return g.names[n] }

// Lookup finds a node by its name.
func (g *Graph) Lookup(name string) (n int, ok bool) {
	i, ok := g.index[name]
	return int(i), ok
}

// Tier is the tier of node n.
func (g *Graph) Tier(n int) Tier { return g.tiers[n] }

// Interfaces returns the interfaces of node n, from lo up to and without hi, in the order of their ports.
func (g *Graph) Interfaces(n int) (lo, hi int) { return int(g.first[n]), int(g.first[n+1]) }

// Degree is the number of link ends at node n. A link from n to itself counts twice.
func (g *Graph) Degree(n int) int {
	d := 0
	for _, l := range g.link[g.first[n]:g.first[n+1]] {
		if l >= 0 {
			d++
		}
	}
	return d
}

// Node is the node that interface i belongs to.
func (g *Graph) Node(i int) int { return int(g.node[i]) }

// Port is the number of interface i within its node, from 1.
func (g *Graph) Port(i int) int { return int(g.port[i]) }

// Peer is the interface at the other end of the link of i, or -1 if i leads out of the graph.
func (g *Graph) Peer(i int) int { return int(g.peer[i]) }

// Link is the link of interface i, or -1 if i leads out of the graph.
func (g *Graph) Link(i int) int { return int(g.link[i]) }

// Neighbor is the node at the other end of the link of i, or -1 if i leads out of the graph.
func (g *Graph) Neighbor(i int) int {
	if p := g.peer[i]; p >= 0 {
		return int(g.node[p])
	}
	return -1
}

// Ends returns the two interfaces of link l, in the order in which the link was built.
func (g *Graph) Ends(l int) (a, b int) { return int(g.ends[2*l]), int(g.ends[2*l+1]) }

// Attr returns the properties of the direction that leaves through interface i.
func (g *Graph) Attr(i int) Attr {
	if g.attrs == nil {
		return DefaultAttr
	}
	return g.attrs[i]
}

// Host reports whether node n is a host: packets begin and end there, and it forwards none.
func (g *Graph) Host(n int) bool { return g.hosts != nil && g.hosts[n] }

// Place returns where node n is, if that is known.
func (g *Graph) Place(n int) (p Place, ok bool) {
	if g.places == nil {
		return Place{}, false
	}
	p = g.places[n]
	return p, p.Known()
}

// ByPort returns the interface of node n with the given port number, or -1.
func (g *Graph) ByPort(n, port int) int {
	lo, hi := int(g.first[n]), int(g.first[n+1])
	for lo < hi {
		m := int(uint(lo+hi) / 2)
		switch p := int(g.port[m]); {
		case p == port:
			return m
		case p < port:
			lo = m + 1
		default:
			hi = m
		}
	}
	return -1
}

// Between returns the interface of a by which the first of the links to b (in the order of a's ports) leaves, or -1.
func (g *Graph) Between(a, b int) int {
	for i := g.first[a]; i < g.first[a+1]; i++ {
		if g.Neighbor(int(i)) == b {
			return int(i)
		}
	}
	return -1
}

// Components numbers the connected components from 0, in the order of their lowest node. It returns the component of
// every node.
func (g *Graph) Components() (of []int32, count int) {
	of = make([]int32, g.NumNodes())
	for n := range of {
		of[n] = -1
	}
	var stack []int32
	for n := range of {
		if of[n] >= 0 {
			continue
		}
		of[n] = int32(count)
		stack = append(stack[:0], int32(n))
		for len(stack) > 0 {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for i := g.first[v]; i < g.first[v+1]; i++ {
				if w := g.Neighbor(int(i)); w >= 0 && of[w] < 0 {
					of[w] = int32(count)
					stack = append(stack, int32(w))
				}
			}
		}
		count++
	}
	return of, count
}
