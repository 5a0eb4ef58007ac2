package web

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

// Map is the network as it is known before any report: what the map on the page draws.
type Map struct {
	Name  string // of the file or the generator
	Nodes []MapNode
	Links []MapLink
}

// MapNode is a switch or router of it.
type MapNode struct {
	ID   uint32 // as in reports
	Name string
	Tier string // "edge", "aggregation" or "core" in a fabric, "" elsewhere
	Pod  int    // of an edge or aggregation switch, from 1; 0 where there are no pods
	// Plane is that of a core switch: those with the same neighbours, from 1; 0 where there are none.
	Plane int

	Placed              bool // it is known where the node is
	Longitude, Latitude float64
}

// MapLink is a link, in both directions.
type MapLink struct {
	Name  string  // as in plans
	A, B  LinkEnd // its two ends
	Speed float64 // bits a second; 0 where unknown
}

// LinkEnd names a direction of a link: that which leaves a node by a port. Port 0 is an unknown one.
type LinkEnd struct{ Node, Port uint32 }

// LoopView is the present state of the control of probes. The giver of one does not change it afterwards.
type LoopView struct {
	Epoch            uint32
	Phase            string // what is under way, in a word or two
	Paused           bool
	DryRun           bool
	AwaitingApproval bool
	Suspects         []LoopSuspect
	Probes           []LoopProbe // of the plan in force
}

// LoopSuspect is a direction of a link that is suspected. Both directions of a link are two suspects.
type LoopSuspect struct {
	LinkEnd
	Weight float64
	Why    string
	Since  int64 // ns since 1970
}

// LoopProbe is a probe and the directions of links that it takes, in its order.
type LoopProbe struct {
	ID       string
	Links    []LinkEnd
	Detailed bool
}

// Bounds of a map. A browser draws some ten thousand lines; what is far beyond is a typing error.
const (
	maxMapNodes = 1 << 15
	maxMapLinks = 1 << 17
)

// How the nodes of a map got their places.
const (
	layoutTiers  = "tiers"  // rows of a fabric; x and y have units of their own
	layoutPlaces = "places" // as on the earth
	layoutNone   = "force"  // no place is known: the page finds some
)

// mapNode and mapLink are as the API has them.
type mapNode struct {
	ID    uint32  `json:"id"`
	Name  string  `json:"name,omitempty"`
	Tier  string  `json:"tier,omitempty"`
	Pod   int     `json:"pod,omitempty"`
	Plane int     `json:"plane,omitempty"`
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
}

type mapLink struct {
	A     uint32  `json:"a"`
	AIf   uint32  `json:"a_if,omitempty"`
	B     uint32  `json:"b"`
	BIf   uint32  `json:"b_if,omitempty"`
	Speed float64 `json:"speed,omitempty"`
	Name  string  `json:"name,omitempty"`
}

// mapDoc is the answer. Directions are numbered by links: 2i leaves the end a of link i, and 2i+1 the end b.
type mapDoc struct {
	Version string    `json:"version"` // of all that follows; "" where there is no map
	Source  string    `json:"source"`  // "topology", "flows", or "" where there is none
	Name    string    `json:"name,omitempty"`
	Layout  string    `json:"layout,omitempty"`
	Problem string    `json:"problem,omitempty"` // why a map that is there is not given
	Nodes   []mapNode `json:"nodes"`
	Links   []mapLink `json:"links"`
}

// atlas is a map with what finds its parts. It never changes.
type atlas struct {
	doc    mapDoc
	body   []byte
	nodes  map[uint32]int      // index by id
	exact  map[LinkEnd]int     // direction by the end that it leaves
	toward map[[2]uint32][]int // directions from one node to another
}

// newAtlas lays m out and numbers its parts. Nodes that come twice, and links whose ends are not there, are left out.
func newAtlas(m *Map, source string) *atlas {
	a := &atlas{doc: mapDoc{Source: source, Nodes: []mapNode{}, Links: []mapLink{}}, nodes: map[uint32]int{}, exact: map[LinkEnd]int{}, toward: map[[2]uint32][]int{}}
	switch {
	case m == nil || len(m.Nodes) == 0:
		a.doc.Source = ""
	case len(m.Nodes) > maxMapNodes || len(m.Links) > maxMapLinks:
		a.doc.Name, a.doc.Problem = names.Clean(m.Name), "The topology is too large to be drawn: more than 32,768 nodes or 131,072 links."
	default:
		a.fill(m)
	}
	a.seal()
	return a
}

func (a *atlas) fill(m *Map) {
	a.doc.Name = names.Clean(m.Name)
	var kept []MapNode
	for _, n := range m.Nodes {
		if _, twice := a.nodes[n.ID]; twice {
			continue
		}
		a.nodes[n.ID] = len(kept)
		kept = append(kept, n)
		a.doc.Nodes = append(a.doc.Nodes, mapNode{ID: n.ID, Name: names.Clean(n.Name), Tier: names.Clean(n.Tier), Pod: n.Pod, Plane: n.Plane})
	}
	for _, l := range m.Links {
		_, hasA := a.nodes[l.A.Node]
		_, hasB := a.nodes[l.B.Node]
		if !hasA || !hasB || l.A.Node == l.B.Node {
			continue
		}
		d := 2 * len(a.doc.Links)
		a.doc.Links = append(a.doc.Links, mapLink{l.A.Node, l.A.Port, l.B.Node, l.B.Port, finite(l.Speed), names.Clean(l.Name)})
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
func (a *atlas) seal() {
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

// directions is how many there are.
func (a *atlas) directions() int { return 2 * len(a.doc.Links) }

// peer is the node that direction d leads to.
func (a *atlas) peer(d int) uint32 {
	if l := &a.doc.Links[d/2]; d%2 == 0 {
		return l.B
	}
	return a.doc.Links[d/2].A
}

// direction finds that of an end in the numbering of the map, or gives -1.
func (a *atlas) direction(e LinkEnd) int {
	if d, ok := a.exact[e]; ok {
		return d
	}
	return -1
}

// between are all directions from a node to another, or back as well.
func (a *atlas) between(node, peer uint32) []int {
	return append(slices.Clone(a.toward[[2]uint32{node, peer}]), a.toward[[2]uint32{peer, node}]...)
}

// placing finds the directions of hops. The numbers of interfaces in reports need not be those of the topology: where flows
// showed which node follows a hop, that goes before the numbers.
type placing struct {
	*atlas
	next   map[inference.HopKey]uint32 // the one node that follows a hop
	rank   map[inference.HopKey]int    // of a hop among those of its node that the same node follows
	belied map[uint32]bool             // nodes whose interfaces are not those of the topology
}

// place prepares the search for hops of which some are known to be followed by a node.
func (a *atlas) place(seen []neighbour) *placing {
	p := &placing{a, map[inference.HopKey]uint32{}, map[inference.HopKey]int{}, map[uint32]bool{}}
	several := map[inference.HopKey]bool{}
	for _, n := range seen {
		if before, ok := p.next[n.hop]; ok && before != n.peer {
			several[n.hop] = true
		}
		p.next[n.hop] = n.peer
	}
	for h := range several {
		delete(p.next, h)
	}
	count := map[[2]uint32]int{}
	for _, n := range seen { // by hop, so that ranks follow the numbers of interfaces
		if several[n.hop] || n.hop.EgressIf == 0 {
			continue
		}
		pair := [2]uint32{n.hop.Node, n.peer}
		p.rank[n.hop] = count[pair]
		count[pair]++
		if d := p.direction(LinkEnd{n.hop.Node, n.hop.EgressIf}); len(p.toward[pair]) > 0 && (d < 0 || p.peer(d) != n.peer) {
			p.belied[n.hop.Node] = true
		}
	}
	return p
}

// of gives the direction that packets take behind a hop, or -1 where the map has none or it is not known.
func (p *placing) of(h inference.HopKey) int {
	if h.Other {
		return -1
	}
	d := p.direction(LinkEnd{h.Node, h.EgressIf})
	peer, known := p.next[h]
	if !known {
		if p.belied[h.Node] {
			return -1
		}
		return d
	}
	to := p.toward[[2]uint32{h.Node, peer}]
	switch {
	case len(to) == 0:
		return -1
	case d >= 0 && p.peer(d) == peer && !p.belied[h.Node]:
		return d
	case h.EgressIf == 0 && len(to) > 1:
		return -1
	}
	return to[p.rank[h]%len(to)]
}

// neighbour says that packets came to peer right after hop.
type neighbour struct {
	hop  inference.HopKey
	peer uint32
}

func (n neighbour) compare(o neighbour) int {
	return cmp.Or(n.hop.Compare(o.hop), cmp.Compare(n.peer, o.peer))
}
