package topo

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

func TestFatTree(t *testing.T) {
	for _, k := range []int{2, 4, 6, 8, 16, 30} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			g, h := mustParse(t, fmt.Sprintf("fat-tree:%d", k)), k/2
			checkInvariants(t, g)
			if g.NumNodes() != h*h+k*k || g.NumLinks() != k*k*k/2 {
				t.Fatalf("%d switches and %d links, want %d and %d", g.NumNodes(), g.NumLinks(), h*h+k*k, k*k*k/2)
			}
			if _, n := g.Components(); n != 1 {
				t.Fatalf("%d components", n)
			}
			count := map[Tier]int{}
			for n := range g.NumNodes() {
				count[g.Tier(n)]++
				want := k
				if g.Tier(n) == Edge {
					want = h
				}
				if g.Degree(n) != want {
					t.Errorf("%s has degree %d, want %d", g.NodeName(n), g.Degree(n), want)
				}
			}
			if count[Core] != h*h || count[Aggregation] != k*h || count[Edge] != k*h {
				t.Errorf("tiers: %v", count)
			}
			// Between edge switches: 2 links and k/2 ways in the pod, 4 links and (k/2)² ways across pods.
			first, _ := g.Lookup("edge-0-0")
			tree := g.ShortestPaths(nil, first, nil)
			for pod := range k {
				for i := range h {
					n, ok := g.Lookup(fmt.Sprintf("edge-%d-%d", pod, i))
					dist, ways := int64(4), h*h
					switch {
					case n == first:
						dist, ways = 0, 1
					case pod == 0:
						dist, ways = 2, h
					}
					if !ok || tree.Distance(n) != dist || countPaths(g, tree, n) != ways {
						t.Errorf("%s: distance %d on %d ways, want %d on %d", g.NodeName(n), tree.Distance(n), countPaths(g, tree, n), dist, ways)
					}
					if lo, _ := g.Interfaces(n); g.Port(lo) != h+1 {
						t.Errorf("%s: first uplink at port %d, want %d", g.NodeName(n), g.Port(lo), h+1)
					}
				}
			}
		})
	}
}

func countPaths(g *Graph, tree *Tree, n int) int {
	if n == tree.Dst {
		return 1
	}
	c := 0
	for _, i := range tree.NextHops(n) {
		c += countPaths(g, tree, g.Neighbor(int(i)))
	}
	return c
}

func TestLeafSpine(t *testing.T) {
	for _, c := range [][2]int{{1, 1}, {2, 4}, {4, 16}, {3, 7}} {
		g := mustParse(t, fmt.Sprintf("leaf-spine:%d,%d", c[0], c[1]))
		checkInvariants(t, g)
		if g.NumNodes() != c[0]+c[1] || g.NumLinks() != c[0]*c[1] {
			t.Errorf("%s: %d nodes, %d links", g.Name(), g.NumNodes(), g.NumLinks())
		}
		for n := range g.NumNodes() {
			want, tier := c[1], Core
			if n >= c[0] {
				want, tier = c[0], Edge
			}
			if g.Degree(n) != want || g.Tier(n) != tier {
				t.Errorf("%s: %s has degree %d and tier %v", g.Name(), g.NodeName(n), g.Degree(n), g.Tier(n))
			}
		}
	}
}

func TestGridAndTorus(t *testing.T) {
	for _, c := range [][2]int{{1, 1}, {1, 5}, {2, 2}, {3, 4}, {7, 2}, {30, 31}} {
		rows, columns := c[0], c[1]
		g := mustParse(t, fmt.Sprintf("grid:%d,%d", rows, columns))
		checkInvariants(t, g)
		if want := rows*(columns-1) + (rows-1)*columns; g.NumNodes() != rows*columns || g.NumLinks() != want {
			t.Errorf("%s: %d nodes, %d links, want %d", g.Name(), g.NumNodes(), g.NumLinks(), want)
		}
		if _, n := g.Components(); n != 1 {
			t.Errorf("%s: %d components", g.Name(), n)
		}
		last, ok := g.Lookup(fmt.Sprintf("n-%d-%d", rows-1, columns-1))
		if first, _ := g.Lookup("n-0-0"); !ok || g.ShortestPaths(nil, first, nil).Distance(last) != int64(rows+columns-2) {
			t.Errorf("%s: %d links from corner to corner, want %d", g.Name(), g.ShortestPaths(nil, first, nil).Distance(last), rows+columns-2)
		}
		g = mustParse(t, fmt.Sprintf("torus:%d,%d", rows, columns))
		checkInvariants(t, g)
		for n := range g.NumNodes() {
			if g.Degree(n) != 4 {
				t.Errorf("%s: %s has degree %d, want 4", g.Name(), g.NodeName(n), g.Degree(n))
			}
		}
	}
}

func TestRandom(t *testing.T) {
	for _, c := range [][2]int{{1, 0}, {2, 1}, {10, 9}, {10, 45}, {100, 250}, {100, 4000}, {2000, 6000}} {
		for seed := range uint64(5) {
			g := mustParse(t, fmt.Sprintf("random:%d,%d,%d", c[0], c[1], seed))
			checkInvariants(t, g)
			if g.NumNodes() != c[0] || g.NumLinks() != c[1] {
				t.Fatalf("%s: %d nodes, %d links", g.Name(), g.NumNodes(), g.NumLinks())
			}
			if _, n := g.Components(); n != 1 {
				t.Fatalf("%s: %d components", g.Name(), n)
			}
			pairs := map[[2]int]bool{}
			for l := range g.NumLinks() {
				a, b := g.Ends(l)
				p := [2]int{min(g.Node(a), g.Node(b)), max(g.Node(a), g.Node(b))}
				if p[0] == p[1] || pairs[p] {
					t.Fatalf("%s: link %d joins %v again, or a node with itself", g.Name(), l, p)
				}
				pairs[p] = true
			}
			second := mustParse(t, g.Name())
			for l := range g.NumLinks() {
				a, b := g.Ends(l)
				if x, y := second.Ends(l); x != a || y != b {
					t.Fatalf("%s: link %d differs on the second run", g.Name(), l)
				}
			}
		}
	}
}

func TestParseErrors(t *testing.T) {
	for spec, want := range map[string]string{
		"":                                "not one of fat-tree:K",
		"fat-tree":                        "not one of",
		"ring:4":                          "not one of",
		"fat-tree:":                       `"" is no number`,
		"fat-tree:5":                      "must be even and in 2..128",
		"fat-tree:0":                      "must be even and in 2..128",
		"fat-tree:130":                    "must be even and in 2..128",
		"fat-tree:-4":                     `"-4" is no number`,
		"fat-tree:4,4":                    "2 numbers after the colon, want 1",
		"leaf-spine:4":                    "1 numbers after the colon, want 2",
		"leaf-spine:0,4":                  "at least one spine and one leaf",
		"grid:3":                          "1 numbers after the colon, want 2",
		"grid:3,0":                        "at least one row and one column",
		"torus:2000,2000":                 "more than 2097152 nodes",
		"leaf-spine:2000000,2000000":      "more than",
		"random:0,0,1":                    "must be in 1..",
		"random:5,3,1":                    "3 links cannot connect 5 nodes; at least 4 are needed",
		"random:5,11,1":                   "5 nodes have only 10 pairs",
		"random:2147483647,1,1":           "must be in 1..",
		"random:9,2000000000,1":           "at most",
		"random:5,4,x":                    `"x" is no number`,
		"random:5,4,18446744073709551616": "is no number from 0 to 2^64-1",
		"fat-tree:99999999999999999999":   "is no number from 0 to 2^31-1",
	} {
		if g, err := Parse(spec); err == nil || g != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, %v, want an error with %q", spec, g, err, want)
		}
	}
	if !IsGenerator("fat-tree:9") || IsGenerator("fat-tree.graphml") || IsGenerator("c:/x.gml") {
		t.Error("IsGenerator takes a file for a generator, or the reverse")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"fat-tree:4", "leaf-spine:2,3", "random:5,7,1", "random:, ,", "fat-tree:4:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		if len(strings.TrimLeft(spec, "abcdefghijklmnopqrstuvwxyz-:0")) > 8 {
			return // a large graph shows nothing that a small one does not
		}
		g, err := Parse(spec)
		if (g == nil) == (err == nil) {
			t.Fatalf("Parse(%q) = %v, %v", spec, g, err)
		}
	})
}

// The graph is the leaf of the planner: everything stands on it, so it stands on planner/opt and the
// standard library alone.
func TestDeps(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range strings.Fields(string(out)) {
		if strings.Contains(dep, ".") && !strings.HasSuffix(dep, "/planner/topo") && !strings.HasSuffix(dep, "/planner/opt") && !strings.HasPrefix(dep, "vendor/") {
			t.Errorf("planner/topo imports %s; the graph is shared by algorithms that must stay pure", dep)
		}
	}
}

func BenchmarkFatTree30(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := FatTree(30); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkShortestPathsFatTree30(b *testing.B) {
	g, tree, dst := mustParse(b, "fat-tree:30"), new(Tree), 0
	b.ReportAllocs()
	for b.Loop() {
		g.ShortestPaths(tree, dst, nil)
		dst = (dst + 1) % g.NumNodes()
	}
}
