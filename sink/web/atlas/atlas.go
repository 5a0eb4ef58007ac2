// Package atlas is the network as the page draws it: nodes with their places, and links. It also finds the nodes and
// links that a hop, a finding or a probe is on. It comes from a topology, or else from the order of hops in flows. A [Dashboard] is some links, paths and flows of it beside each other.
package atlas

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"sync"

	"github.com/hopscope/hopscope/inference/names"
)

// Map is the network before any report, as the map on the page draws it.
type Map struct {
	Name  string // of the file or the generator
	Nodes []Node
	Links []Link
}

// Node is a switch or router of it.
type Node struct {
	ID   uint32 // as in reports
	Name string
	Tier string // "edge", "aggregation" or "core" in a fabric, "" elsewhere
	Pod  int    // of an edge or aggregation switch, from 1; 0 where there are no pods
	// Plane is that of a core switch: those with the same neighbours, from 1; 0 where there are none.
	Plane int

	Placed              bool // it is known where the node is
	Longitude, Latitude float64
}

// Link is a link, in both directions.
type Link struct {
	Name  string  // as in plans
	A, B  LinkEnd // its two ends
	Speed float64 // bits a second; 0 where unknown
}

// LinkEnd names a direction of a link: that which leaves a node by a port. Port 0 is an unknown one.
type LinkEnd struct{ Node, Port uint32 }

// Bounds of a map. A browser draws some ten thousand lines; what is far beyond is a typing error.
const (
	maxNodes = 1 << 15
	maxLinks = 1 << 17
)

// How the nodes of a map got their places.
const (
	Tiers  = "tiers"  // rows of a fabric; x and y have units of their own
	places = "places" // as on the earth
	Force  = "force"  // no place is known: the page finds some
)

// nodeDoc is a node of the map.
type nodeDoc struct {
	ID    uint32  `json:"id"`
	Name  string  `json:"name,omitempty"`
	Tier  string  `json:"tier,omitempty"`
	Pod   int     `json:"pod,omitempty"`
	Plane int     `json:"plane,omitempty"`
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
}

// linkDoc is a link of the map, with an interface at each end.
type linkDoc struct {
	A     uint32  `json:"a"`
	AIf   uint32  `json:"a_if,omitempty"`
	B     uint32  `json:"b"`
	BIf   uint32  `json:"b_if,omitempty"`
	Speed float64 `json:"speed,omitempty"`
	Name  string  `json:"name,omitempty"`
}

// Document is the answer. Directions are numbered by links: 2i leaves the end a of link i, and 2i+1 the end b.
type Document struct {
	Version string    `json:"version"` // of the map; "" without one
	Source  string    `json:"source"`  // "topology", "flows", or "" where there is none
	Name    string    `json:"name,omitempty"`
	Layout  string    `json:"layout,omitempty"`
	Problem string    `json:"problem,omitempty"` // why a map that is there is not given
	Nodes   []nodeDoc `json:"nodes"`
	Links   []linkDoc `json:"links"`
}

// Atlas is a map with what finds its parts. It never changes.
type Atlas struct {
	doc    Document
	body   []byte
	nodes  map[uint32]int      // index by id
	exact  map[LinkEnd]int     // direction by the end that it leaves
	toward map[[2]uint32][]int // directions from one node to another
}

// newAtlas lays m out and numbers its parts. Nodes that come twice, and links whose ends are not there, are left out.
func newAtlas(m *Map, source string) *Atlas {
	a := &Atlas{doc: Document{Source: source, Nodes: []nodeDoc{}, Links: []linkDoc{}}, nodes: map[uint32]int{}, exact: map[LinkEnd]int{}, toward: map[[2]uint32][]int{}}
	switch {
	case m == nil || len(m.Nodes) == 0:
		a.doc.Source = ""
	case len(m.Nodes) > maxNodes || len(m.Links) > maxLinks:
		a.doc.Name, a.doc.Problem = names.Clean(m.Name), "The topology is too large to be drawn: more than 32,768 nodes or 131,072 links."
	default:
		a.fill(m)
	}
	a.seal()
	return a
}

func (a *Atlas) fill(m *Map) {
	a.doc.Name = names.Clean(m.Name)
	var kept []Node
	for _, n := range m.Nodes {
		if _, twice := a.nodes[n.ID]; twice {
			continue
		}
		a.nodes[n.ID] = len(kept)
		kept = append(kept, n)
		a.doc.Nodes = append(a.doc.Nodes, nodeDoc{ID: n.ID, Name: names.Clean(n.Name), Tier: names.Clean(n.Tier), Pod: n.Pod, Plane: n.Plane})
	}
	for _, l := range m.Links {
		_, hasA := a.nodes[l.A.Node]
		_, hasB := a.nodes[l.B.Node]
		if !hasA || !hasB || l.A.Node == l.B.Node {
			continue
		}
		d := 2 * len(a.doc.Links)
		a.doc.Links = append(a.doc.Links, linkDoc{l.A.Node, l.A.Port, l.B.Node, l.B.Port, Finite(l.Speed), names.Clean(l.Name)})
		for k, end := range [2]LinkEnd{l.A, l.B} {
			if _, twice := a.exact[end]; end.Port != 0 && !twice {
				a.exact[end] = d + k
			}
			other := [2]LinkEnd{l.B, l.A}[k]
			pair := [2]uint32{end.Node, other.Node}
			a.toward[pair] = append(a.toward[pair], d+k)
		}
	}
	a.doc.Layout = layOut(kept, a.doc.Nodes, a.doc.Links, a.nodes)
}

// seal writes the answer. Its version is a digest of the rest.
func (a *Atlas) seal() {
	body, err := json.Marshal(&a.doc)
	if err == nil && len(a.doc.Nodes) > 0 {
		sum := sha256.Sum256(body)
		a.doc.Version = hex.EncodeToString(sum[:8])
		body, err = json.Marshal(&a.doc)
	}
	if err != nil { // texts and finite numbers can always be written
		body = []byte(`{"version":"","source":"","nodes":[],"links":[]}`)
	}
	a.body = body
}

// Directions is how many there are.
func (a *Atlas) Directions() int { return 2 * len(a.doc.Links) }

// peer is the node that direction d leads to.
func (a *Atlas) peer(d int) uint32 {
	if l := &a.doc.Links[d/2]; d%2 == 0 {
		return l.B
	}
	return a.doc.Links[d/2].A
}

// direction finds that of an end in the numbering of the map, or returns -1.
func (a *Atlas) direction(e LinkEnd) int {
	if d, ok := a.exact[e]; ok {
		return d
	}
	return -1
}

// between are all directions from a node to another, or back as well.
func (a *Atlas) between(node, peer uint32) []int {
	return append(slices.Clone(a.toward[[2]uint32{node, peer}]), a.toward[[2]uint32{peer, node}]...)
}

// End is the end that direction d leaves.
func (a *Atlas) End(d int) LinkEnd {
	if l := &a.doc.Links[d/2]; d%2 == 0 {
		return LinkEnd{l.A, l.AIf}
	}
	l := &a.doc.Links[d/2]
	return LinkEnd{l.B, l.BIf}
}

// Version is that of the document; "" where there is no map.
func (a *Atlas) Version() string { return a.doc.Version }

// Document is what the map shows. It must not be changed.
func (a *Atlas) Document() *Document { return &a.doc }

// Body is the document as JSON. It must not be changed.
func (a *Atlas) Body() []byte { return a.body }

// Nodes is how many nodes there are.
func (a *Atlas) Nodes() int { return len(a.doc.Nodes) }

// Node finds the index of a node by its id.
func (a *Atlas) Node(id uint32) (index int, ok bool) {
	index, ok = a.nodes[id]
	return index, ok
}

// Cache keeps the atlases of the last maps. It may be used by several goroutines.
type Cache struct {
	mu     sync.Mutex
	source *Map   // of which known is
	known  *Atlas // of the topology
	grew   uint64 // of which flows is
	flows  *Atlas // of what flows showed
}

// Place returns the atlas of a topology, or where m is nil or empty of what flows showed, with what places hops on it. Grew is the number
// that [Adjacency.Neighbours] gave with seen.
func (c *Cache) Place(m *Map, seen []Neighbour, grew uint64) *Placing {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m != nil && len(m.Nodes) > 0 {
		if c.known == nil || c.source != m {
			c.source, c.known = m, newAtlas(m, "topology")
		}
		return c.known.Place(seen)
	}
	if c.flows == nil || c.grew != grew {
		c.grew, c.flows = grew, newAtlas(learned(seen), "flows")
	}
	return c.flows.Place(seen)
}

// Finite is f, or 0 for what JSON cannot hold.
func Finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}
