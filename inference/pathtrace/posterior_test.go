package pathtrace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/internal/testkit"
)

// oracle weighs every sequence of k nodes by the definition of each prior.
type oracle struct {
	c    prior.Config
	dist [][]int
	next [][]bool
}

func newOracle(c prior.Config) *oracle {
	v := len(c.Nodes)
	o := &oracle{c: c, dist: make([][]int, v), next: make([][]bool, v)}
	for u := range v {
		o.next[u], o.dist[u] = make([]bool, v), make([]int, v)
		for w := range v {
			o.dist[u][w] = 1 << 20
		}
		o.dist[u][u] = 0
	}
	for _, l := range c.Links {
		if l[0] != l[1] {
			o.next[l[0]][l[1]], o.next[l[1]][l[0]] = true, true
			o.dist[l[0]][l[1]], o.dist[l[1]][l[0]] = 1, 1
		}
	}
	for m := range v {
		for u := range v {
			for w := range v {
				o.dist[u][w] = min(o.dist[u][w], o.dist[u][m]+o.dist[m][w])
			}
		}
	}
	return o
}

// weight is proportional to the prior probability of a path.
func (o *oracle) weight(path []int, f *Flow) float64 {
	k := len(path)
	member := func(set uint16, u int) bool {
		return set == 0 || slices.Contains(o.c.Ends[set-1], int32(u))
	}
	if !member(f.Ingress, path[0]) || !member(f.Egress, path[k-1]) {
		return 0
	}
	w := 1.0
	for i, u := range path {
		if !o.c.Loops && slices.Contains(path[:i], u) {
			return 0
		}
		if i > 0 && o.c.Links != nil && !o.next[path[i-1]][u] {
			return 0
		}
	}
	if o.c.Routing != prior.None && o.dist[path[0]][path[k-1]] != k-1 {
		return 0
	}
	if o.c.Routing == prior.ECMP {
		for i, u := range path[:k-1] {
			n := 0
			for x := range o.next {
				if o.next[u][x] && o.dist[x][path[k-1]] == k-2-i {
					n++
				}
			}
			w /= float64(n)
		}
	}
	return w
}

// posterior returns the probability of each node at each hop, the most likely path, and its probability. That is the
// published one if the model has the path.
func (o *oracle) posterior(f *Flow, k int, digests map[uint32]uint64) (hops [][]float64, best []int, share float64) {
	v := len(o.c.Nodes)
	hops = make([][]float64, k)
	for h := range hops {
		hops[h] = make([]float64, v)
	}
	path, ids := make([]int, k), make([]uint32, k)
	sum, top := 0.0, 0.0
	var visit func(h int)
	visit = func(h int) {
		if h < k {
			for u := range v {
				path[h], ids[h] = u, o.c.Nodes[u]
				visit(h + 1)
			}
			return
		}
		w := o.weight(path, f)
		if w == 0 {
			return
		}
		for id, d := range digests {
			if o.c.Scheme.Digest(id, ids) != d {
				return
			}
		}
		sum += w
		if w > top {
			top, best = w, slices.Clone(path)
		}
		for h, u := range path {
			hops[h][u] += w
		}
	}
	visit(0)
	for h := range hops {
		for u := range hops[h] {
			hops[h][u] /= sum
		}
	}
	return hops, best, top / sum
}

func testScheme(t testing.TB, r *rand.Rand, n int) *pint.Scheme {
	configs := []pint.Config{
		{Bits: 1, Instances: 1, Tau: .5, P: []float64{.3}},
		{Bits: 1, Instances: 3, Tau: 1},
		{Bits: 2, Instances: 1, Tau: 0, P: []float64{.5}},
		{Bits: 4, Instances: 1, Tau: .5, P: []float64{.2}},
		{Hash: pint.HashCRC, Bits: 4, Instances: 2, Tau: .4, P: []float64{.2, .6}},
		{Bits: 8, Instances: 1, Tau: .3, P: []float64{.2, .4}},
		{Bits: 2, Instances: 1, Tau: .5, P: []float64{.3}, ValueBits: 3},
	}
	if n == len(configs) {
		return pint.Mininet()
	}
	c := configs[n]
	c.Seed = r.Uint32()
	s, err := pint.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const numTestSchemes = 8

// unmodelled weighs paths outside the model against one path, for evidence and a sum of weights given as log2.
func unmodelled(bits, total float64) float64 {
	return prior.DefaultUnmodelled / (1 - prior.DefaultUnmodelled) * math.Exp2(total-bits)
}

// randomPath draws a path that the oracle allows, by trying.
func (o *oracle) randomPath(r *rand.Rand, f *Flow, k int) []int {
	path := make([]int, k)
	for range 2000 {
		for h := range path {
			path[h] = r.IntN(len(o.c.Nodes))
		}
		if o.weight(path, f) > 0 {
			return path
		}
	}
	return nil
}

// The probabilities of every hop are those of an enumeration of all paths, for every prior and scheme. A path is known
// exactly when its posterior is above the threshold.
func TestPosterior(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	compared, decoded := 0, 0
	for round := range 1200 {
		scheme := testScheme(t, r, round%numTestSchemes)
		v, k := 2+r.IntN(7), 1+r.IntN(6)
		if v > 6 && round%300 != 0 { // the largest ones take long
			k = min(k, 5)
		}
		c := prior.Config{Scheme: scheme, Confidence: []float64{0.6, 0.9, 1 - 1e-6}[r.IntN(3)], Work: 1e6}
		for _, u := range r.Perm(200)[:v] {
			c.Nodes = append(c.Nodes, uint32(u))
		}
		mode := r.IntN(5)
		if mode > 0 {
			c.Links = [][2]int32{}
			for u := range v {
				for w := range u {
					if r.Float64() < .45 {
						c.Links = append(c.Links, [2]int32{int32(u), int32(w)})
					}
				}
			}
		}
		switch mode {
		case 0, 1:
			c.Loops = r.IntN(2) == 0
		case 3:
			c.Routing = prior.Distance
		case 4:
			c.Routing = prior.ECMP
		}
		c.Ends = [][]int32{{int32(r.IntN(v))}, {int32(r.IntN(v)), int32(r.IntN(v))}}
		var f Flow
		if r.IntN(3) == 0 {
			f.Ingress = uint16(r.IntN(3))
			f.Egress = uint16(r.IntN(3))
		}
		o := newOracle(c)
		path := o.randomPath(r, &f, k)
		if path == nil {
			continue
		}
		m, err := prior.NewModel(c)
		if err != nil {
			t.Fatal(err)
		}
		tr := New(m)
		ids := make([]uint32, k)
		for h, u := range path {
			ids[h] = c.Nodes[u]
		}
		name := fmt.Sprintf("seed %d round %d: scheme %+v, mode %d, loops %v, %d nodes, path %v", seed, round, scheme.Config(), mode, c.Loops, v, path)
		digests := map[uint32]uint64{}
		for range 1 + r.IntN(12) {
			id := r.Uint32N(60000)
			digests[id] = scheme.Digest(id, ids)
			e := tr.Add(&f, id, k, digests[id])
			want, best, share := o.posterior(&f, k, digests)
			if e == Contradiction || e == Untraceable || e >= RejectedHops {
				t.Fatalf("%s: %v", name, e)
			}
			if f.Known() {
				decoded++
				s, _ := tr.Path(&f, 0, nil)
				for h, u := range best {
					if s.Nodes[h] != c.Nodes[u] {
						t.Fatalf("%s: known path %d, want %d", name, s.Nodes, best)
					}
				}
				if share < m.Config.Confidence {
					t.Fatalf("%s: known with posterior %v", name, share)
				}
				break
			}
			// A certain node is known as soon as digests are evidence against paths outside the model.
			state := tr.traces[f.trace-1]
			if want := m.Bits * float64(reported(scheme, k, digests)); state.bits != want {
				t.Fatalf("%s, %d digests: %v bits of evidence, want %v", name, len(digests), state.bits, want)
			}
			other := unmodelled(state.bits, state.total)
			if share == 1 && 1/(1+other/o.weight(best, &f)) >= m.Config.Confidence {
				t.Fatalf("%s: not known with posterior %v", name, share)
			}
			got, exact := tr.Candidates(&f)
			if !exact {
				t.Fatalf("%s: not exact", name)
			}
			for h := range got {
				sum := 0.0
				for _, x := range got[h] {
					u := slices.Index(c.Nodes, x.Node)
					sum += x.P
					if math.Abs(x.P-want[h][u]) > 1e-9 {
						t.Fatalf("%s, %d digests: hop %d node %d has %v, want %v", name, len(digests), h+1, u, x.P, want[h][u])
					}
				}
				if math.Abs(sum-1) > 1e-9 {
					t.Fatalf("%s, %d digests: hop %d: sum %v", name, len(digests), h+1, sum)
				}
			}
			compared++
		}
	}
	t.Logf("%d posteriors compared, %d paths known", compared, decoded)
}

// reported counts the digests that at least one hop wrote into. Only those are evidence against paths outside the
// model.
func reported(scheme *pint.Scheme, k int, digests map[uint32]uint64) (n int) {
	for id := range digests {
		for inst := range scheme.Instances() {
			if p := scheme.Packet(id, inst); scheme.Writers(&p, k) != 0 {
				n++
			}
		}
	}
	return n
}
