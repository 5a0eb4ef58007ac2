package pathtrace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/internal/testkit"
)

// lightestPaths lists all paths of k nodes that no other path between their ends is lighter than, by looking at all
// sequences.
func lightestPaths(c *prior.Config, k int) (paths [][]uint16) {
	const none = math.MaxInt
	v := len(c.Nodes)
	link, dist := make([][]int, v), make([][]int, v)
	for u := range v {
		link[u], dist[u] = make([]int, v), make([]int, v)
		for w := range v {
			link[u][w], dist[u][w] = none, none/2
		}
		dist[u][u] = 0
	}
	for i, l := range c.Links {
		if a, b := l[0], l[1]; a != b {
			link[a][b], link[b][a] = min(link[a][b], int(c.Weights[i][0])), min(link[b][a], int(c.Weights[i][1]))
			dist[a][b], dist[b][a] = link[a][b], link[b][a]
		}
	}
	for m := range v {
		for u := range v {
			for w := range v {
				dist[u][w] = min(dist[u][w], dist[u][m]+dist[m][w])
			}
		}
	}
	path := make([]uint16, k)
	var visit func(h, sum int)
	visit = func(h, sum int) {
		if h == k {
			if sum == dist[path[0]][path[k-1]] {
				paths = append(paths, slices.Clone(path))
			}
			return
		}
		for u := range v {
			path[h] = uint16(u)
			if h == 0 {
				visit(1, 0)
			} else if w := link[path[h-1]][u]; w < none {
				visit(h+1, sum+w)
			}
		}
	}
	visit(0, 0)
	return paths
}

func randomWeights(r *rand.Rand) prior.Config {
	var c prior.Config
	v := 2 + r.IntN(6)
	for _, u := range r.Perm(200)[:v] {
		c.Nodes = append(c.Nodes, uint32(u))
	}
	for u := range v {
		for w := range v {
			if r.Float64() < .35 { // also from a node to itself, and several between two nodes
				c.Links = append(c.Links, [2]int32{int32(u), int32(w)})
				c.Weights = append(c.Weights, [2]uint32{1 + r.Uint32N(4), 1 + r.Uint32N(4)})
			}
		}
	}
	if c.Links == nil {
		c.Links, c.Weights = [][2]int32{{0, 1}}, [][2]uint32{{3, prior.MaxWeight}}
	}
	c.Routing, c.Confidence, c.Work = prior.Weights, 0.999, 1e6
	c.Ends = [][]int32{{int32(r.IntN(v))}, {int32(r.IntN(v)), int32(r.IntN(v))}}
	return c
}

// The model's paths of each length, with ends and without, and those that digests leave of them, are those of an
// enumeration of all paths.
func TestWeightsAgainstAllPaths(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 7))
	compared, decoded := 0, 0
	for round := range 400 {
		c, k := randomWeights(r), 1+r.IntN(5)
		c.Scheme = testScheme(t, r, round%numTestSchemes)
		name := fmt.Sprintf("seed %d round %d, %d nodes, %d hops", seed, round, len(c.Nodes), k)
		m, err := prior.NewModel(c)
		if err != nil {
			t.Fatal(name, err)
		}
		paths := lightestPaths(&c, k)
		ends := func(set uint16, u uint16) bool { return set == 0 || slices.Contains(c.Ends[set-1], int32(u)) }
		compareSpace(t, name, m, paths, k, ends)
		f := Flow{Ingress: uint16(r.IntN(3)), Egress: uint16(r.IntN(3))}
		paths = slices.DeleteFunc(paths, func(p []uint16) bool { return !ends(f.Ingress, p[0]) || !ends(f.Egress, p[k-1]) })
		if len(paths) == 0 {
			continue
		}
		path := paths[r.IntN(len(paths))]
		ids := make([]uint32, k)
		for h, u := range path {
			ids[h] = c.Nodes[u]
		}
		tr := New(m)
		for range 60 {
			id := r.Uint32N(60000)
			d := c.Scheme.Digest(id, ids)
			tr.Add(&f, id, k, d)
			paths = slices.DeleteFunc(paths, func(p []uint16) bool { return !tr.agrees(tr.name(p), id, d) })
			if f.Known() {
				if s, _ := tr.Path(&f, 0, nil); !slices.Equal(s.Nodes, ids) {
					t.Fatalf("%s: known path %d, want %d", name, s.Nodes, ids)
				}
				decoded++
				break
			}
			got, exact := tr.Candidates(&f)
			if got == nil {
				continue
			}
			if !exact {
				t.Fatalf("%s: not exact", name)
			}
			for h := range got {
				for _, x := range got[h] {
					n := 0
					for _, p := range paths {
						if c.Nodes[p[h]] == x.Node {
							n++
						}
					}
					if want := float64(n) / float64(len(paths)); math.Abs(x.P-want) > 1e-9 {
						t.Fatalf("%s: hop %d node %d has %v, want %v", name, h+1, x.Node, x.P, want)
					}
				}
			}
			compared++
		}
	}
	if compared < 100 || decoded < 100 {
		t.Errorf("seed %d: %d posteriors compared, %d paths known: too few to say anything", seed, compared, decoded)
	}
}

func compareSpace(t *testing.T, name string, m *prior.Model, paths [][]uint16, k int, ends func(set, u uint16) bool) {
	t.Helper()
	s := m.Space(k)
	for h := range k {
		for u := range m.Nodes {
			want := slices.ContainsFunc(paths, func(p []uint16) bool { return int(p[h]) == u })
			if has(s.Domain[h*m.Words:][:m.Words], uint16(u)) != want {
				t.Fatalf("%s: node index %d at hop %d: %v, want %v", name, u, h+1, !want, want)
			}
		}
	}
	for set := range uint16(3) {
		from, into := 0, 0
		for _, p := range paths {
			if ends(set, p[0]) {
				from++
			}
			if ends(set, p[k-1]) {
				into++
			}
		}
		if f, i := math.Exp2(m.TotalOf(s, s.From, set)), math.Exp2(m.TotalOf(s, s.Into, set)); math.Abs(f-float64(from)) > 1e-6 || math.Abs(i-float64(into)) > 1e-6 {
			t.Fatalf("%s: %v paths begin in set %d and %v end there, want %d and %d", name, f, set, i, from, into)
		}
	}
}

// Links of the same weight leave the shortest paths in hops, which fewer digests distinguish than all walks.
func TestWeightsOfOneAreDistances(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 50 {
		c := randomWeights(r)
		c.Scheme = testScheme(t, r, 5)
		for i := range c.Weights {
			c.Weights[i] = [2]uint32{7, 7}
		}
		byWeight, err := prior.NewModel(c)
		if err != nil {
			t.Fatal(err)
		}
		c.Routing, c.Weights = prior.Distance, nil
		byHops, err := prior.NewModel(c)
		if err != nil {
			t.Fatal(err)
		}
		for k := 1; k < 6; k++ {
			a, b := byWeight.Space(k), byHops.Space(k)
			if !slices.Equal(a.Domain, b.Domain) || !slices.Equal(a.From, b.From) || a.Weight != b.Weight {
				t.Fatalf("%d nodes, links %v: paths of %d hops are not the same", len(c.Nodes), c.Links, k)
			}
		}
	}
}

func TestWeightsThatCannotBe(t *testing.T) {
	good := prior.Config{Scheme: testScheme(t, rand.New(rand.NewPCG(1, 1)), 5), Nodes: []uint32{4, 9}, Links: [][2]int32{{0, 1}}, Routing: prior.Weights, Weights: [][2]uint32{{1, prior.MaxWeight}}}
	if _, err := prior.NewModel(good); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*prior.Config){
		"0 weights for 1 links":                func(c *prior.Config) { c.Weights = nil },
		"link 0 has the weights 0 and 1":       func(c *prior.Config) { c.Weights = [][2]uint32{{0, 1}} },
		"link 0 has the weights 1 and 1677721": func(c *prior.Config) { c.Weights = [][2]uint32{{1, prior.MaxWeight + 1}} },
		"weights of links with routing ecmp":   func(c *prior.Config) { c.Routing = prior.ECMP },
		"routing weights without links":        func(c *prior.Config) { c.Links, c.Weights = nil, nil },
		"routing weights and loops":            func(c *prior.Config) { c.Loops = true },
		"routing weights of 4097 nodes": func(c *prior.Config) {
			c.Nodes = make([]uint32, 4097)
			for i := range c.Nodes {
				c.Nodes[i] = uint32(i)
			}
		},
	} {
		c := good
		change(&c)
		if _, err := prior.NewModel(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
