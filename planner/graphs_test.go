package planner_test

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/hopscope/hopscope/planner/topo"
)

// testGraph is a small named graph, and what is known of it. Every family solves problems made of it, in families_test.go.
type testGraph struct {
	name  string
	nodes int
	links [][2]int

	trails     int // fewest that pass every link once
	postman    int // length of the shortest closed walk from node 0 over all links; 0 where they are not connected to it
	vertices   int // of a smallest vertex cover
	edges      int // of a smallest edge cover; 0 where a node has no link
	components int // that have links
}

// testGraphs are paths, trees, circles, dense and regular graphs, and pathological ones. The latter have parallel
// links, several components, nodes without links, bridges, or no circle through their leaves.
var testGraphs = []testGraph{
	{"one link", 2, [][2]int{{0, 1}}, 1, 2, 1, 1, 1},
	{"path of three", 3, [][2]int{{0, 1}, {1, 2}}, 1, 4, 1, 2, 1},
	{"path of four", 4, [][2]int{{0, 1}, {1, 2}, {2, 3}}, 1, 6, 2, 2, 1},
	{"two parallel links", 2, [][2]int{{0, 1}, {0, 1}}, 1, 2, 1, 1, 1},
	{"three parallel links", 2, [][2]int{{0, 1}, {1, 0}, {0, 1}}, 1, 4, 1, 1, 1},
	{"triangle", 3, [][2]int{{0, 1}, {1, 2}, {2, 0}}, 1, 3, 2, 2, 1},
	{"circle of four", 4, [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}}, 1, 4, 2, 2, 1},
	{"circle of five", 5, [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}}, 1, 5, 3, 3, 1},
	{"star of three", 4, [][2]int{{0, 1}, {0, 2}, {0, 3}}, 2, 6, 1, 3, 1},
	{"star from a leaf", 5, [][2]int{{4, 0}, {4, 1}, {4, 2}, {4, 3}}, 2, 8, 1, 4, 1},
	{"complete, four", 4, [][2]int{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}, 2, 8, 3, 2, 1},
	{"complete, five", 5, [][2]int{{0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 2}, {1, 3}, {1, 4}, {2, 3}, {2, 4}, {3, 4}}, 1, 10, 4, 3, 1},
	{"bipartite, two by three", 5, [][2]int{{0, 2}, {0, 3}, {0, 4}, {1, 2}, {1, 3}, {1, 4}}, 1, 8, 2, 3, 1},
	{"bowtie", 5, [][2]int{{0, 1}, {1, 2}, {2, 0}, {2, 3}, {3, 4}, {4, 2}}, 1, 6, 3, 3, 1},
	{"barbell with a bridge", 6, [][2]int{{0, 1}, {1, 2}, {2, 0}, {2, 3}, {3, 4}, {4, 5}, {5, 3}}, 1, 8, 4, 3, 1},
	{"grid of three by three", 9, [][2]int{{0, 1}, {1, 2}, {3, 4}, {4, 5}, {6, 7}, {7, 8}, {0, 3}, {3, 6}, {1, 4}, {4, 7}, {2, 5}, {5, 8}}, 2, 16, 4, 5, 1},
	{"cube", 8, [][2]int{{0, 1}, {1, 3}, {3, 2}, {2, 0}, {4, 5}, {5, 7}, {7, 6}, {6, 4}, {0, 4}, {1, 5}, {2, 6}, {3, 7}}, 4, 16, 4, 4, 1},
	{"Petersen", 10, [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}, {0, 5}, {1, 6}, {2, 7}, {3, 8}, {4, 9}, {5, 7}, {7, 9}, {9, 6}, {6, 8}, {8, 5}}, 5, 20, 6, 5, 1},
	{"caterpillar", 7, [][2]int{{0, 1}, {1, 2}, {0, 3}, {1, 4}, {1, 5}, {2, 6}}, 2, 12, 3, 4, 1},
	{"two triangles", 6, [][2]int{{0, 1}, {1, 2}, {2, 0}, {3, 4}, {4, 5}, {5, 3}}, 2, 0, 4, 4, 2},
	{"a node apart", 4, [][2]int{{0, 1}, {1, 2}}, 1, 4, 1, 0, 1},
	{"the first node apart", 4, [][2]int{{1, 2}, {2, 3}}, 1, 0, 1, 0, 1},
}

// topology builds the graph with weights, costs and delays of 1.
func (x *testGraph) topology(t *testing.T) *topo.Graph {
	t.Helper()
	b := topo.NewBuilder(x.name)
	for v := range x.nodes {
		b.AddNode(fmt.Sprint("n", v), 0)
	}
	attr := topo.Attr{Weight: 1, Cost: 1, Delay: 1}
	for _, l := range x.links {
		b.AddLink(topo.LinkEnd{Node: l[0], Attr: attr}, topo.LinkEnd{Node: l[1], Attr: attr})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestGraphs checks the figures of the table by enumeration of sets of nodes, sets of links, and sets of doubled links.
func TestGraphs(t *testing.T) {
	for _, x := range testGraphs {
		at := func(v int) (list []int) { // links
			for l, e := range x.links {
				if e[0] == v || e[1] == v {
					list = append(list, l)
				}
			}
			return list
		}
		vertices := x.nodes
		for set := range 1 << x.nodes {
			all := true
			for _, e := range x.links {
				all = all && (set>>e[0]|set>>e[1])&1 != 0
			}
			if all {
				vertices = min(vertices, bits.OnesCount(uint(set)))
			}
		}
		edges, doubled := 0, len(x.links)+1
		for set := range 1 << len(x.links) {
			all, even := true, true
			for v := range x.nodes {
				n, degree := 0, 0
				for _, l := range at(v) {
					n += set >> l & 1
					degree += 1 + set>>l&1
				}
				all, even = all && n > 0, even && degree%2 == 0
			}
			if size := bits.OnesCount(uint(set)); all && (edges == 0 || size < edges) {
				edges = size
			}
			if even {
				doubled = min(doubled, bits.OnesCount(uint(set)))
			}
		}
		part := make([]int, x.nodes) // least node that can be reached
		for v := range part {
			part[v] = v
		}
		for range x.nodes {
			for _, e := range x.links {
				part[e[0]] = min(part[e[0]], part[e[1]])
				part[e[1]] = part[e[0]]
			}
		}
		odd, links := map[int]int{}, map[int]bool{}
		for v, p := range part {
			odd[p] += len(at(v)) % 2
			links[p] = links[p] || len(at(v)) > 0
		}
		trails, components := 0, 0
		for p, some := range links {
			if some {
				components++
				trails += max(1, odd[p]/2)
			}
		}
		postman := 0
		if components == 1 && links[0] {
			postman = len(x.links) + doubled
		}
		got := testGraph{x.name, x.nodes, x.links, trails, postman, vertices, edges, components}
		if fmt.Sprint(got) != fmt.Sprint(x) {
			t.Errorf("%s is %v, the table says %v", x.name, got, x)
		}
	}
}
