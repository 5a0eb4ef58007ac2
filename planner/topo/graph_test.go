package topo

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func mustParse(t testing.TB, spec string) *Graph {
	t.Helper()
	g, err := Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// checkInvariants holds for every graph, however it was made.
func checkInvariants(t *testing.T, g *Graph) {
	t.Helper()
	ends := 0
	for n := range g.NumNodes() {
		if i, ok := g.Lookup(g.NodeName(n)); !ok || i != n {
			t.Fatalf("%s: Lookup(%q) = %d, %v, want %d", g.Name(), g.NodeName(n), i, ok, n)
		}
		lo, hi := g.Interfaces(n)
		degree := 0
		for i := lo; i < hi; i++ {
			if g.Node(i) != n {
				t.Fatalf("%s: interface %d in the row of node %d belongs to %d", g.Name(), i, n, g.Node(i))
			}
			if i > lo && g.Port(i) <= g.Port(i-1) || g.Port(i) < 1 {
				t.Fatalf("%s: node %d: ports %d, %d", g.Name(), n, g.Port(i-1), g.Port(i))
			}
			if g.ByPort(n, g.Port(i)) != i {
				t.Fatalf("%s: ByPort(%d, %d) = %d, want %d", g.Name(), n, g.Port(i), g.ByPort(n, g.Port(i)), i)
			}
			p, l := g.Peer(i), g.Link(i)
			if (p < 0) != (l < 0) || g.Attr(i).Weight < 1 {
				t.Fatalf("%s: interface %d: peer %d, link %d, %+v", g.Name(), i, p, l, g.Attr(i))
			}
			if p < 0 {
				continue
			}
			degree++
			a, b := g.Ends(l)
			if g.Peer(p) != i || p == i || g.Link(p) != l || !(a == i && b == p || a == p && b == i) {
				t.Fatalf("%s: interface %d: peer %d, link %d with ends %d, %d", g.Name(), i, p, l, a, b)
			}
			if g.Neighbor(i) != g.Node(p) {
				t.Fatalf("%s: Neighbor(%d) = %d, want %d", g.Name(), i, g.Neighbor(i), g.Node(p))
			}
		}
		if g.Degree(n) != degree {
			t.Fatalf("%s: Degree(%d) = %d, want %d", g.Name(), n, g.Degree(n), degree)
		}
		ends += degree
	}
	if ends != 2*g.NumLinks() {
		t.Fatalf("%s: %d link ends, %d links", g.Name(), ends, g.NumLinks())
	}
}

func TestBuilderMultigraph(t *testing.T) {
	b := NewBuilder("test")
	x, y := b.AddNode("x", Edge), b.AddNode("y", Core)
	slow := Attr{Weight: 7, Bandwidth: 1e6, Delay: time.Millisecond}
	b.AddLink(LinkEnd{Node: x, Port: 2}, LinkEnd{Node: y})
	b.AddLink(LinkEnd{Node: x}, LinkEnd{Node: y, Port: 1, Attr: slow}) // parallel, with unlike directions
	b.AddLink(LinkEnd{Node: y}, LinkEnd{Node: y})                      // to itself
	b.AddInterface(LinkEnd{Node: x, Port: 9})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, g)
	if g.NumNodes() != 2 || g.NumLinks() != 3 || g.NumInterfaces() != 7 || g.Degree(x) != 2 || g.Degree(y) != 4 {
		t.Fatalf("got %d nodes, %d links, %d interfaces", g.NumNodes(), g.NumLinks(), g.NumInterfaces())
	}
	a, c := g.Ends(0)
	if g.Node(a) != x || g.Port(a) != 2 || g.Node(c) != y || g.Port(c) != 2 {
		t.Errorf("link 0 joins port %d of %d and port %d of %d", g.Port(a), g.Node(a), g.Port(c), g.Node(c))
	}
	a, c = g.Ends(1)
	if g.Port(a) != 1 || g.Port(c) != 1 || g.Attr(a) != DefaultAttr || g.Attr(c) != slow {
		t.Errorf("link 1: ports %d and %d, %+v and %+v", g.Port(a), g.Port(c), g.Attr(a), g.Attr(c))
	}
	if i := g.ByPort(x, 9); i < 0 || g.Peer(i) != -1 || g.Link(i) != -1 || g.Neighbor(i) != -1 {
		t.Errorf("the interface that leads out is %d", i)
	}
	if g.ByPort(x, 3) != -1 || g.Between(x, x) != -1 || g.Port(g.Between(y, y)) != 3 {
		t.Error("ByPort or Between found what is not there")
	}

	second, err := g.Extend().Build()
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, second)
	for i := range g.NumInterfaces() {
		if g.Port(i) != second.Port(i) || g.Peer(i) != second.Peer(i) || g.Link(i) != second.Link(i) || g.Attr(i) != second.Attr(i) {
			t.Errorf("Extend changed interface %d", i)
		}
	}
}

func TestBuilderErrors(t *testing.T) {
	tests := []struct {
		name string
		do   func(b *Builder)
		want string
	}{
		{"empty", func(*Builder) {}, "topology bad: no nodes"},
		{"no name", func(b *Builder) { b.AddNode("", Edge) }, "node 0 has no name"},
		{"same name", func(b *Builder) { b.AddNode("a", Edge); b.AddNode("a", Edge) }, `node 1: the name "a" belongs to node 0 already`},
		{"tier", func(b *Builder) { b.AddNode("a", numTiers) }, `node "a": no such tier: 4`},
		{"node", func(b *Builder) { b.AddNode("a", Edge); b.AddLink(LinkEnd{}, LinkEnd{Node: 1}) }, "link 0: there is no node 1"},
		{"negative node", func(b *Builder) { b.AddNode("a", Edge); b.AddInterface(LinkEnd{Node: -1}) }, "interface: there is no node -1"},
		{"port", func(b *Builder) { b.AddNode("a", Edge); b.AddInterface(LinkEnd{Port: -3}) }, `port -3 of "a" is outside 1..2147483647`},
		{"port twice", func(b *Builder) {
			b.AddNode("a", Edge)
			b.AddInterface(LinkEnd{Port: 3})
			b.AddLink(LinkEnd{Port: 3}, LinkEnd{Port: 4})
		}, `node "a": port 3 is used twice`},
		{"weight", func(b *Builder) { b.AddNode("a", Edge); b.AddInterface(LinkEnd{Attr: Attr{Delay: 1}}) }, `weight 0 at "a"`},
		{"bandwidth", func(b *Builder) {
			b.AddNode("a", Edge)
			b.AddInterface(LinkEnd{Attr: Attr{Weight: 1, Bandwidth: math.NaN()}})
		}, `bandwidth of NaN bit/s at "a"`},
		{"delay", func(b *Builder) { b.AddNode("a", Edge); b.AddInterface(LinkEnd{Attr: Attr{Weight: 1, Delay: -1}}) }, `delay of -1ns at "a"`},
		{"many", func(b *Builder) {
			for range 2 * maxErrors {
				b.AddNode("", Edge)
			}
		}, "20 further problems"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := NewBuilder("bad")
			tt.do(b)
			if g, err := b.Build(); err == nil || g != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Build() = %v, %v, want an error with %q", g, err, tt.want)
			}
		})
	}
}

func TestComponents(t *testing.T) {
	b := NewBuilder("test")
	for _, n := range []string{"a", "b", "c", "d", "e"} {
		b.AddNode(n, NoTier)
	}
	b.AddLink(LinkEnd{Node: 0}, LinkEnd{Node: 3})
	b.AddLink(LinkEnd{Node: 4}, LinkEnd{Node: 1})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	of, count := g.Components()
	want := []int32{0, 1, 2, 0, 1}
	for n := range want {
		if of[n] != want[n] || count != 3 {
			t.Fatalf("Components() = %v, %d, want %v, 3", of, count, want)
		}
	}
}

// randomGraph makes a multigraph of all that is allowed.
func randomGraph(t *testing.T, r *rand.Rand, weights bool) *Graph {
	b := NewBuilder("random multigraph")
	n := 1 + r.IntN(12)
	for i := range n {
		b.AddNode(string(rune('a'+i)), NoTier)
	}
	end := func() LinkEnd {
		e := LinkEnd{Node: r.IntN(n)}
		if weights {
			e.Attr = Attr{Weight: 1 + r.Uint32N(5)}
		}
		return e
	}
	for range r.IntN(4 * n) {
		if r.IntN(8) == 0 {
			b.AddInterface(end())
		} else {
			b.AddLink(end(), end())
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The oracle is Floyd and Warshall's algorithm, and for the ECMP sets the definition of a shortest path.
func TestShortestPathsAgainstFloydWarshall(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	var tree *Tree
	for round := range 300 {
		g := randomGraph(t, r, round%2 == 0)
		checkInvariants(t, g)
		down := make([]bool, g.NumInterfaces())
		for i := range down {
			down[i] = r.IntN(6) == 0
		}
		up := func(i int) bool { return !down[i] }
		n := g.NumNodes()
		d := make([][]int64, n)
		for x := range d {
			d[x] = make([]int64, n)
			for y := range d[x] {
				d[x][y] = Unreachable
			}
			d[x][x] = 0
		}
		for i := range down {
			if w := g.Neighbor(i); w >= 0 && up(i) {
				d[g.Node(i)][w] = min(d[g.Node(i)][w], int64(g.Attr(i).Weight))
			}
		}
		for k := range n {
			for x := range n {
				for y := range n {
					if d[x][k] != Unreachable && d[k][y] != Unreachable {
						d[x][y] = min(d[x][y], d[x][k]+d[k][y])
					}
				}
			}
		}
		for x := range n {
			d[x][x] = 0
		}
		for dst := range n {
			tree = g.ShortestPaths(tree, dst, up)
			for v := range n {
				if tree.Distance(v) != d[v][dst] {
					t.Fatalf("seed %d round %d: distance %d to %d = %d, want %d", seed, round, v, dst, tree.Distance(v), d[v][dst])
				}
				var want []int32
				lo, hi := g.Interfaces(v)
				for i := lo; i < hi && v != dst && d[v][dst] != Unreachable; i++ {
					if w := g.Neighbor(i); w >= 0 && up(i) && d[w][dst] != Unreachable && d[w][dst]+int64(g.Attr(i).Weight) == d[v][dst] {
						want = append(want, int32(i))
					}
				}
				got := tree.NextHops(v)
				if len(got) != len(want) {
					t.Fatalf("seed %d round %d: NextHops(%d) to %d = %v, want %v", seed, round, v, dst, got, want)
				}
				for k := range want {
					if got[k] != want[k] {
						t.Fatalf("seed %d round %d: NextHops(%d) to %d = %v, want %v", seed, round, v, dst, got, want)
					}
				}
			}
		}
	}
}

func TestNodePairs(t *testing.T) {
	b := NewBuilder("pairs")
	x, y, z := b.AddNode("x", NoTier), b.AddNode("y", NoTier), b.AddNode("z", NoTier)
	b.AddLink(LinkEnd{Node: z}, LinkEnd{Node: y})
	b.AddLink(LinkEnd{Node: y}, LinkEnd{Node: z}) // the same pair, the other way round
	b.AddLink(LinkEnd{Node: y}, LinkEnd{Node: y})
	b.AddLink(LinkEnd{Node: z}, LinkEnd{Node: x})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := g.NodePairs(), [][2]int32{{0, 2}, {1, 2}}; !slices.Equal(got, want) {
		t.Errorf("NodePairs() = %v, want %v", got, want)
	}
}

func TestPairWeights(t *testing.T) {
	b := NewBuilder("pairs")
	x, y, z := b.AddNode("x", NoTier), b.AddNode("y", NoTier), b.AddNode("z", NoTier)
	b.AddLink(LinkEnd{Node: z, Attr: Attr{Weight: 7}}, LinkEnd{Node: y, Attr: Attr{Weight: 3}})
	b.AddLink(LinkEnd{Node: y, Attr: Attr{Weight: 4}}, LinkEnd{Node: z, Attr: Attr{Weight: 5}}) // the same pair, the other way round
	b.AddLink(LinkEnd{Node: y, Attr: Attr{Weight: 1}}, LinkEnd{Node: y, Attr: Attr{Weight: 1}})
	b.AddLink(LinkEnd{Node: z}, LinkEnd{Node: x, Attr: Attr{Weight: 9}})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := g.PairWeights(), [][2]uint32{{9, 1}, {3, 5}}; !slices.Equal(got, want) {
		t.Errorf("PairWeights() of %v = %v, want %v", g.NodePairs(), got, want)
	}
}
