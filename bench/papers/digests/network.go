package digests

import (
	"embed"
	"math/rand/v2"
	"slices"

	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

//go:embed networks/*.txt
var networkFiles embed.FS

// network is a topology with its shortest paths.
type network struct {
	name  string
	graph *topo.Graph
	trees []*topo.Tree // by destination
	pairs [][][2]int32 // by number of switches: source and destination of paths that long
}

func readNetwork(name, file string) (*network, error) {
	f, err := networkFiles.Open("networks/" + file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	g, err := load.Read(file, f)
	if err != nil {
		return nil, err
	}
	return newNetwork(name, g), nil
}

// newNetwork finds all shortest paths, in hops. Paths begin and end at edge switches if the topology has any.
func newNetwork(name string, g *topo.Graph) *network {
	n := &network{name: name, graph: g}
	ends := n.ends()
	for dst := range g.NumNodes() {
		t := g.ShortestPaths(nil, dst, nil)
		n.trees = append(n.trees, t)
		if !slices.Contains(ends, int32(dst)) {
			continue
		}
		for _, src := range ends {
			if d := t.Distance(int(src)); d != topo.Unreachable {
				for len(n.pairs) <= int(d)+1 {
					n.pairs = append(n.pairs, nil)
				}
				n.pairs[d+1] = append(n.pairs[d+1], [2]int32{src, int32(dst)})
			}
		}
	}
	return n
}

// ends are the nodes where paths begin and end.
func (n *network) ends() (edge []int32) {
	all := make([]int32, n.graph.NumNodes())
	for v := range all {
		all[v] = int32(v)
		if n.graph.Tier(v) == topo.Edge {
			edge = append(edge, int32(v))
		}
	}
	if edge == nil {
		return all
	}
	return edge
}

// path draws a shortest path of that many switches, first the pair, then at each switch the next.
func (n *network) path(length int, r *rand.Rand) []uint32 {
	return n.between(n.pairs[length][r.IntN(len(n.pairs[length]))], r)
}

// between draws a shortest path between two ends.
func (n *network) between(pair [2]int32, r *rand.Rand) []uint32 {
	tree := n.trees[pair[1]]
	var path []uint32
	for v := int(pair[0]); ; {
		path = append(path, uint32(v))
		if v == int(pair[1]) {
			return path
		}
		next := tree.NextHops(v)
		v = n.graph.Neighbor(int(next[r.IntN(len(next))]))
	}
}

// longest is the number of switches of the longest shortest path.
func (n *network) longest() int { return len(n.pairs) - 1 }

// nodes are all node ids.
func (n *network) nodes() []uint32 {
	v := make([]uint32, n.graph.NumNodes())
	for i := range v {
		v[i] = uint32(i)
	}
	return v
}

// links are pairs of nodes.
func (n *network) links() [][2]int32 {
	var links [][2]int32
	for l := range n.graph.NumLinks() {
		i, j := n.graph.Ends(l)
		links = append(links, [2]int32{int32(n.graph.Node(i)), int32(n.graph.Node(j))})
	}
	return links
}

// beside has, by two nodes, whether a link joins them.
func (n *network) beside() [][]bool {
	at := make([][]bool, n.graph.NumNodes())
	for v := range at {
		at[v] = make([]bool, len(at))
	}
	for _, l := range n.links() {
		at[l[0]][l[1]], at[l[1]][l[0]] = true, true
	}
	return at
}
