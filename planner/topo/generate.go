package topo

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// Limits of the generators: beyond them a typing error fills the memory.
const (
	MaxFatTree = 128     // 20 480 switches, 1 048 576 links
	MaxNodes   = 1 << 21 // of a leaf-spine or random graph
	MaxLinks   = 1 << 24 // of a leaf-spine or random graph
	maxDense   = 1 << 14 // nodes up to which a dense random graph is drawn by its missing links
)

// FatTree generates the switches of a k-ary fat-tree (Al-Fares et al., SIGCOMM 2008). It has (k/2)² core switches, and
// k pods of k/2 aggregation and k/2 edge switches each, joined by k³/2 links.
//
// Names are core-I, agg-POD-I and edge-POD-I, counted from 0, and nodes are numbered in that order. Ports of a pod's
// switches are 1 to k/2 downwards and k/2+1 to k upwards. The downward ports of an edge switch are left free for hosts.
// Port p+1 of a core switch leads to pod p.
func FatTree(k int) (*Graph, error) {
	if k < 2 || k > MaxFatTree || k%2 != 0 {
		return nil, fmt.Errorf("topology fat-tree:%d: the number of ports must be even and in 2..%d", k, MaxFatTree)
	}
	b, h := NewBuilder("fat-tree:"+strconv.Itoa(k)), k/2
	for i := range h * h {
		b.AddNode("core-"+strconv.Itoa(i), Core)
	}
	agg := h * h
	for i := range k * h {
		b.AddNode(fmt.Sprintf("agg-%d-%d", i/h, i%h), Aggregation)
	}
	edge := agg + k*h
	for i := range k * h {
		b.AddNode(fmt.Sprintf("edge-%d-%d", i/h, i%h), Edge)
	}
	for pod := range k {
		for a := range h {
			for i := range h {
				b.AddLink(LinkEnd{Node: edge + pod*h + i, Port: h + a + 1}, LinkEnd{Node: agg + pod*h + a, Port: i + 1})
			}
			for i := range h {
				b.AddLink(LinkEnd{Node: agg + pod*h + a, Port: h + i + 1}, LinkEnd{Node: a*h + i, Port: pod + 1})
			}
		}
	}
	return b.Build()
}

// LeafSpine generates a complete bipartite fabric of spine and leaf switches. Names are spine-I and leaf-I. Port l+1 of
// a spine leads to leaf l, and port s+1 of a leaf to spine s. Higher ports of a leaf are free for hosts.
func LeafSpine(spines, leaves int) (*Graph, error) {
	name := fmt.Sprintf("leaf-spine:%d,%d", spines, leaves)
	switch {
	case spines < 1 || leaves < 1:
		return nil, fmt.Errorf("topology %s: at least one spine and one leaf are needed", name)
	case spines > MaxNodes || leaves > MaxNodes || spines*leaves > MaxLinks:
		return nil, fmt.Errorf("topology %s: more than %d nodes or %d links", name, MaxNodes, MaxLinks)
	}
	b := NewBuilder(name)
	for i := range spines {
		b.AddNode("spine-"+strconv.Itoa(i), Core)
	}
	for i := range leaves {
		b.AddNode("leaf-"+strconv.Itoa(i), Edge)
	}
	for l := range leaves {
		for s := range spines {
			b.AddLink(LinkEnd{Node: spines + l, Port: s + 1}, LinkEnd{Node: s, Port: l + 1})
		}
	}
	return b.Build()
}

// Random generates a connected graph without parallel links. It joins each node, in random order, to one of those
// before it: a random tree. It then draws further pairs without replacement up to the number of links. The same seed
// gives the same graph. Names are n0, n1 and so on.
func Random(nodes, links int, seed uint64) (*Graph, error) {
	name := fmt.Sprintf("random:%d,%d,%d", nodes, links, seed)
	most := nodes * (nodes - 1) / 2
	switch {
	case nodes < 1 || nodes > MaxNodes:
		return nil, fmt.Errorf("topology %s: the number of nodes must be in 1..%d", name, MaxNodes)
	case links > MaxLinks:
		return nil, fmt.Errorf("topology %s: the number of links must be at most %d", name, MaxLinks)
	case links < nodes-1:
		return nil, fmt.Errorf("topology %s: %d links cannot connect %d nodes; at least %d are needed", name, links, nodes, nodes-1)
	case links > most:
		return nil, fmt.Errorf("topology %s: %d nodes have only %d pairs", name, nodes, most)
	}
	r := rand.New(rand.NewPCG(seed, 0x746f706f))
	b := NewBuilder(name)
	for i := range nodes {
		b.AddNode("n"+strconv.Itoa(i), NoTier)
	}
	has := make(map[[2]int32]bool, links)
	pair := func(x, y int) [2]int32 { return [2]int32{int32(min(x, y)), int32(max(x, y))} }
	add := func(p [2]int32) {
		has[p] = true
		b.AddLink(LinkEnd{Node: int(p[0])}, LinkEnd{Node: int(p[1])})
	}
	order := r.Perm(nodes)
	for i := 1; i < nodes; i++ {
		add(pair(order[i], order[r.IntN(i)]))
	}
	if rest := links - max(nodes-1, 0); rest > (most-links) && nodes <= maxDense {
		var open [][2]int32 // random draws would now mostly hit existing links
		for x := range nodes {
			for y := x + 1; y < nodes; y++ {
				if p := pair(x, y); !has[p] {
					open = append(open, p)
				}
			}
		}
		r.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
		for _, p := range open[:rest] {
			add(p)
		}
		return b.Build()
	}
	for n := nodes - 1; n < links; {
		x, y := r.IntN(nodes), r.IntN(nodes)
		if p := pair(x, y); x != y && !has[p] {
			add(p)
			n++
		}
	}
	return b.Build()
}
