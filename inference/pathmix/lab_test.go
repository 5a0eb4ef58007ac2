package pathmix

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
)

// net is a network with its shortest paths.
type net struct {
	name  string
	nodes []uint32
	links [][2]int32
	next  [][]int32
	edges []int
}

func newNet(name string, g *topo.Graph) *net {
	n := &net{name: name, next: make([][]int32, g.NumNodes())}
	for v := range g.NumNodes() {
		n.nodes = append(n.nodes, uint32(v))
		if g.Tier(v) == topo.Edge {
			n.edges = append(n.edges, v)
		}
	}
	if n.edges == nil {
		for v := range g.NumNodes() {
			n.edges = append(n.edges, v)
		}
	}
	for l := range g.NumLinks() {
		i, j := g.Ends(l)
		a, b := int32(g.Node(i)), int32(g.Node(j))
		n.links = append(n.links, [2]int32{a, b})
		n.next[a], n.next[b] = append(n.next[a], b), append(n.next[b], a)
	}
	return n
}

func (n *net) distances(to int) []int {
	d := make([]int, len(n.nodes))
	for i := range d {
		d[i] = -1
	}
	d[to] = 0
	queue := []int32{int32(to)}
	for i := 0; i < len(queue); i++ {
		for _, x := range n.next[queue[i]] {
			if d[x] < 0 {
				d[x] = d[queue[i]] + 1
				queue = append(queue, x)
			}
		}
	}
	return d
}

// shortest lists the shortest paths between two nodes, most at most.
func (n *net) shortest(from, to, most int) (list [][]uint32) {
	d := n.distances(to)
	var visit func(path []uint32)
	visit = func(path []uint32) {
		u := path[len(path)-1]
		if len(list) >= most {
			return
		}
		if int(u) == to {
			list = append(list, slices.Clone(path))
			return
		}
		for _, x := range n.next[u] {
			if d[x] == d[u]-1 && (len(path) < 2 || true) && !slices.Contains(path, uint32(x)) {
				visit(append(path, uint32(x)))
			}
		}
	}
	if d[from] > 0 {
		visit([]uint32{uint32(from)})
	}
	return list
}

// spray draws a pair with enough shortest paths, and that many of these.
func (n *net) spray(r *rand.Rand, paths int) (used, all [][]uint32) {
	for {
		all = n.shortest(n.edges[r.IntN(len(n.edges))], n.edges[r.IntN(len(n.edges))], 5000)
		if len(all) >= paths {
			break
		}
	}
	for _, i := range r.Perm(len(all))[:paths] {
		used = append(used, all[i])
	}
	return used, all
}

func scheme(t testing.TB, bits, instances int, seed uint32) *pint.Scheme {
	t.Helper()
	c := pint.Published(bits)
	c.Instances, c.Seed = instances, seed
	s, err := pint.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shares returns equal shares, or ones of which the smallest is least and the others grow.
func shares(n int, least float64) []float64 {
	s := make([]float64, n)
	sum := 0.0
	for i := range s {
		s[i] = 1
		if least > 0 {
			s[i] = float64(i)
			sum += s[i]
		}
	}
	for i := range s {
		if least > 0 {
			s[i] = least + s[i]/sum*(1-float64(n)*least)
		} else {
			s[i] = 1 / float64(n)
		}
	}
	return s
}

func draw(r *rand.Rand, shares []float64) int {
	x := r.Float64()
	for i, s := range shares {
		if x -= s; x < 0 {
			return i
		}
	}
	return len(shares) - 1
}

// score is how many runs were found exactly, and what share was found for paths that are not used.
type score struct {
	runs, exact, missing, ghosts, sets int
	ghost                              float64
	took                               time.Duration
}

func (s *score) add(used [][]uint32, r Result) {
	s.runs++
	found, ghosts := 0, 0
	for _, p := range r.Paths {
		if slices.ContainsFunc(used, func(q []uint32) bool { return slices.Equal(p.Nodes, q) }) {
			found++
		} else {
			ghosts++
			s.ghost += p.Share
		}
	}
	if found == len(used) && ghosts == 0 {
		s.exact++
	}
	if found < len(used) {
		s.missing++
	}
	if ghosts > 0 {
		s.ghosts++
	}
	if len(r.Inseparable) > 0 {
		s.sets++
	}
}

func (s *score) String() string {
	return fmt.Sprintf("%d runs: %.1f %% exact, %.1f %% with one missing, %.1f %% with inseparable ones, %.1f %% with ghosts, whose share is %.2e; %v each",
		s.runs, 100*float64(s.exact)/float64(s.runs), 100*float64(s.missing)/float64(s.runs), 100*float64(s.sets)/float64(s.runs),
		100*float64(s.ghosts)/float64(s.runs), s.ghost/float64(s.runs), s.took/time.Duration(s.runs))
}

// fabrics are two fat-trees and a network of leaves and spines.
func fabrics(t testing.TB) (list []*net) {
	t.Helper()
	for _, k := range []int{8, 16} {
		g, err := topo.FatTree(k)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, newNet(fmt.Sprintf("fat-tree:%d", k), g))
	}
	g, err := topo.LeafSpine(32, 24)
	if err != nil {
		t.Fatal(err)
	}
	return append(list, newNet("leaf-spine:32,24", g))
}

// wide is a real network with paths of equal cost.
func wide(t testing.TB, name string) *net {
	t.Helper()
	f, err := os.Open("../../bench/papers/digests/networks/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, err := load.Read(name+".txt", f)
	if err != nil {
		t.Fatal(err)
	}
	return newNet(name, g)
}
