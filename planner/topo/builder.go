package topo

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// maxErrors bounds how many problems Build lists; a broken file can have one a line.
const maxErrors = 20

// Builder collects nodes and links. Problems are kept, and Build returns them all together.
type Builder struct {
	name   string
	names  []string
	index  map[string]int32
	tiers  []Tier
	places map[int]Place
	hosts  map[int]bool
	agents []Agent
	half   []half // interfaces in the order of addition
	links  int32
	errs   []error
	more   int // problems beyond maxErrors
}

type half struct {
	node, port int32 // port 0: the lowest free one
	link       int32 // -1 for an interface that leads out
	attr       Attr
}

// LinkEnd names one end of a link, and the properties of the direction that leaves from there.
type LinkEnd struct {
	Node int
	Port int  // 0 picks the lowest port of the node that nothing else uses
	Attr Attr // the zero value stands for DefaultAttr
}

// NewBuilder starts an empty graph. The name is its origin.
func NewBuilder(name string) *Builder {
	return &Builder{name: name, index: make(map[string]int32)}
}

// Extend returns a builder that holds all of g, so that nodes, links and interfaces can be added. Nodes and links keep their numbers
// and interfaces their ports.
func (g *Graph) Extend() *Builder {
	b := NewBuilder(g.name)
	for n, name := range g.names {
		b.AddNode(name, g.tiers[n])
	}
	end := func(i int) LinkEnd { return LinkEnd{Node: g.Node(i), Port: g.Port(i), Attr: g.Attr(i)} }
	for l := range g.NumLinks() {
		x, y := g.Ends(l)
		b.AddLink(end(x), end(y))
	}
	for i, l := range g.link {
		if l < 0 {
			b.AddInterface(end(i))
		}
	}
	for n := range g.names {
		if p, ok := g.Place(n); ok {
			b.SetPlace(n, p)
		}
		if g.Host(n) {
			b.SetHost(n)
		}
	}
	b.agents = g.agents
	return b
}

func (b *Builder) fail(format string, args ...any) {
	if len(b.errs) == maxErrors {
		b.more++
		return
	}
	b.errs = append(b.errs, fmt.Errorf("topology %s: "+format, append([]any{b.name}, args...)...))
}

// AddNode adds a node and returns its number. The name must not be empty and not be in use.
func (b *Builder) AddNode(name string, tier Tier) int {
	n := len(b.names)
	switch other, taken := b.index[name]; {
	case name == "":
		b.fail("node %d has no name", n)
	case taken:
		b.fail("node %d: the name %q belongs to node %d already", n, name, other)
	case tier >= numTiers:
		b.fail("node %q: no such tier: %d", name, tier)
	case n == math.MaxInt32/2:
		b.fail("more than %d nodes", n)
	default:
		b.index[name] = int32(n)
	}
	b.names = append(b.names, name)
	b.tiers = append(b.tiers, tier)
	return n
}

// SetPlace sets the place of a node.
func (b *Builder) SetPlace(n int, p Place) {
	switch {
	case n < 0 || n >= len(b.names):
		b.fail("there is no node %d", n)
	case !p.Known():
		b.fail("node %q: longitude %v, latitude %v", b.names[n], p.Longitude, p.Latitude)
	case b.places == nil:
		b.places = map[int]Place{n: p}
	default:
		b.places[n] = p
	}
}

// SetHost makes a node a host, which forwards nothing.
func (b *Builder) SetHost(n int) {
	switch {
	case n < 0 || n >= len(b.names):
		b.fail("there is no node %d", n)
	case b.hosts == nil:
		b.hosts = map[int]bool{n: true}
	default:
		b.hosts[n] = true
	}
}

// AddLink joins two nodes, which may be the same, and returns the link's number.
func (b *Builder) AddLink(x, y LinkEnd) int {
	l := b.links
	if b.add(x, l) && b.add(y, l) {
		b.links++
	}
	return int(l)
}

// AddInterface adds an interface that leads out of the graph.
func (b *Builder) AddInterface(e LinkEnd) { b.add(e, -1) }

func (b *Builder) add(e LinkEnd, link int32) bool {
	if e.Attr == (Attr{}) {
		e.Attr = DefaultAttr
	}
	var problem string
	switch {
	case e.Node < 0 || e.Node >= len(b.names):
		problem = fmt.Sprintf("there is no node %d", e.Node)
	case e.Port < 0 || e.Port > math.MaxInt32:
		problem = fmt.Sprintf("port %d of %q is outside 1..%d", e.Port, b.names[e.Node], math.MaxInt32)
	case e.Attr.Weight == 0:
		problem = fmt.Sprintf("weight 0 at %q; weights start at 1", b.names[e.Node])
	case e.Attr.Bandwidth < 0 || math.IsNaN(e.Attr.Bandwidth) || math.IsInf(e.Attr.Bandwidth, 0):
		problem = fmt.Sprintf("bandwidth of %v bit/s at %q", e.Attr.Bandwidth, b.names[e.Node])
	case e.Attr.Delay < 0:
		problem = fmt.Sprintf("delay of %v at %q", e.Attr.Delay, b.names[e.Node])
	case len(b.half) >= math.MaxInt32-1:
		problem = fmt.Sprintf("more than %d interfaces", len(b.half))
	default:
		b.half = append(b.half, half{node: int32(e.Node), port: int32(e.Port), link: link, attr: e.Attr})
		return true
	}
	if link < 0 {
		b.fail("interface: %s", problem)
	} else {
		b.fail("link %d: %s", link, problem)
	}
	return false
}

// Build returns the graph, or everything that is wrong with it. The builder must not be used afterwards.
func (b *Builder) Build() (*Graph, error) {
	if len(b.names) == 0 {
		b.fail("no nodes")
	}
	if len(b.errs) > 0 {
		return nil, b.problems()
	}
	g := &Graph{
		name: b.name, names: b.names, index: b.index, tiers: b.tiers,
		first: make([]int32, len(b.names)+1), ends: make([]int32, 2*b.links),
	}
	order := b.rows(g.first)
	for n := range b.names {
		b.assignPorts(n, order[g.first[n]:g.first[n+1]])
	}
	if len(b.errs) > 0 {
		return nil, b.problems()
	}
	b.fill(g, order)
	b.properties(g)
	if len(b.agents) > 0 {
		return g.WithAgents(b.agents)
	}
	return g, nil
}

// properties copies what is known of nodes.
func (b *Builder) properties(g *Graph) {
	if b.places != nil {
		g.places = make([]Place, len(b.names))
		for n := range g.places {
			g.places[n] = nowhere
		}
		for n, p := range b.places {
			g.places[n] = p
		}
	}
	if b.hosts != nil {
		g.hosts = make([]bool, len(b.names))
		for n := range b.hosts {
			g.hosts[n] = true
		}
	}
}

func (b *Builder) problems() error {
	if b.more > 0 {
		b.errs = append(b.errs, fmt.Errorf("topology %s: %d further problems", b.name, b.more))
	}
	return errors.Join(b.errs...)
}

// rows sorts the interfaces by node (counting sort, stable) and fills first.
func (b *Builder) rows(first []int32) (order []int32) {
	nodes := make([]int32, len(b.half))
	for i, h := range b.half {
		nodes[i] = h.node
	}
	start, order := opt.Group(nodes, len(b.names))
	copy(first, start)
	return order
}

// assignPorts assigns port numbers to the interfaces of node n that have none, and sorts the row by port.
func (b *Builder) assignPorts(n int, row []int32) {
	byPort := func(x, y int32) int { return cmp.Compare(b.half[x].port, b.half[y].port) }
	slices.SortStableFunc(row, byPort)
	free := 0
	for free < len(row) && b.half[row[free]].port == 0 {
		free++
	}
	for i := free + 1; i < len(row); i++ {
		if p := b.half[row[i]].port; p == b.half[row[i-1]].port {
			b.fail("node %q: port %d is used twice", b.names[n], p)
		}
	}
	port, used := int32(0), row[free:]
	for _, i := range row[:free] {
		port++
		for len(used) > 0 && b.half[used[0]].port == port {
			port++
			used = used[1:]
		}
		b.half[i].port = port
	}
	slices.SortFunc(row, byPort)
}

func (b *Builder) fill(g *Graph, order []int32) {
	n := len(order)
	backing := make([]int32, 4*n)
	g.node, g.port, g.peer, g.link = backing[:n:n], backing[n:2*n:2*n], backing[2*n:3*n:3*n], backing[3*n:]
	place := make([]int32, n) // of an interface in the order of addition
	uniform := true
	for i, o := range order {
		h := b.half[o]
		g.node[i], g.port[i], g.link[i], g.peer[i] = h.node, h.port, h.link, -1
		place[o] = int32(i)
		uniform = uniform && h.attr == DefaultAttr
	}
	last := int32(-1)
	for o, h := range b.half {
		switch {
		case h.link < 0:
		case h.link != last:
			g.ends[2*h.link], last = place[o], h.link
		default:
			g.ends[2*h.link+1] = place[o]
		}
	}
	for l := range b.links {
		x, y := g.ends[2*l], g.ends[2*l+1]
		g.peer[x], g.peer[y] = y, x
	}
	if uniform {
		return
	}
	g.attrs = make([]Attr, n)
	for i, o := range order {
		g.attrs[i] = b.half[o].attr
	}
}
