package topo_test

import (
	"fmt"

	"github.com/hopscope/hopscope/planner/topo"
)

// A graph is built once and then only read. Ports count from 1 where nothing else is said.
func ExampleBuilder() {
	b := topo.NewBuilder("lab")
	leaf, spine := b.AddNode("leaf-1", topo.Edge), b.AddNode("spine-1", topo.Core)
	b.AddLink(topo.LinkEnd{Node: leaf, Port: 3}, topo.LinkEnd{Node: spine})
	g, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	x, y := g.Ends(0)
	fmt.Printf("%s: %d nodes, %d link\n", g.Name(), g.NumNodes(), g.NumLinks())
	fmt.Printf("%s leaves %s by port %d and %s by port %d\n", g.LinkName(0), g.NodeName(g.Node(x)), g.Port(x), g.NodeName(g.Node(y)), g.Port(y))
	// Output:
	// lab: 2 nodes, 1 link
	// leaf-1:3--spine-1:1 leaves leaf-1 by port 3 and spine-1 by port 1
}

// Shortest paths lead to one destination, with all next hops of equal length at every node.
func ExampleGraph_ShortestPaths() {
	g, err := topo.Parse("leaf-spine:2,3")
	if err != nil {
		fmt.Println(err)
		return
	}
	from, _ := g.Lookup("leaf-0")
	to, _ := g.Lookup("leaf-2")
	tree := g.ShortestPaths(nil, to, nil)
	fmt.Println("distance", tree.Distance(from))
	for _, i := range tree.NextHops(from) {
		fmt.Println("next hop", g.NodeName(g.Neighbor(int(i))))
	}
	// Output:
	// distance 2
	// next hop spine-0
	// next hop spine-1
}
