package survey

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/pathtrace"
)

// network is the true network: nodes, which are their ids, links, and nodes that hosts are attached to.
type network struct {
	nodes []uint32
	links [][2]int32
	edges []int32
	next  [][]int32
}

func newNetwork(v int, links [][2]int32, edges []int32) *network {
	n := &network{links: links, edges: edges, next: make([][]int32, v)}
	for u := range v {
		n.nodes = append(n.nodes, uint32(u+1))
	}
	for _, l := range links {
		n.next[l[0]] = append(n.next[l[0]], l[1])
		n.next[l[1]] = append(n.next[l[1]], l[0])
	}
	return n
}

// fatTree has k pods: first the edge switches, then the aggregation switches, then the cores.
func fatTree(k int) *network {
	half := k / 2
	var links [][2]int32
	var edges []int32
	for p := range k {
		for e := range half {
			edges = append(edges, int32(p*half+e))
			for a := range half {
				links = append(links, [2]int32{int32(p*half + e), int32(k*half + p*half + a)})
			}
		}
		for a := range half {
			for c := range half {
				links = append(links, [2]int32{int32(k*half + p*half + a), int32(2*k*half + a*half + c)})
			}
		}
	}
	return newNetwork(2*k*half+half*half, links, edges)
}

// kdl is Kentucky Datalink; hosts are everywhere.
func kdl(t testing.TB) *network {
	text, err := os.ReadFile("../../bench/papers/digests/networks/kdl.txt")
	if err != nil {
		t.Fatal(err)
	}
	var links [][2]int32
	index := map[string]int32{}
	at := func(name string) int32 {
		if _, ok := index[name]; !ok {
			index[name] = int32(len(index))
		}
		return index[name]
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && !strings.HasPrefix(line, "#") {
			if _, err := strconv.Atoi(f[0]); err == nil {
				links = append(links, [2]int32{at(f[0]), at(f[1])})
			}
		}
	}
	edges := make([]int32, len(index))
	for i := range edges {
		edges[i] = int32(i)
	}
	return newNetwork(len(index), links, edges)
}

// path draws a shortest path between two nodes.
func (n *network) path(r *rand.Rand, from, to int32) []int32 {
	dist := make([]int, len(n.next))
	dist[to] = 1
	for queue := []int32{to}; len(queue) > 0 && dist[from] == 0; queue = queue[1:] {
		for _, u := range n.next[queue[0]] {
			if dist[u] == 0 {
				dist[u] = dist[queue[0]] + 1
				queue = append(queue, u)
			}
		}
	}
	path := []int32{from}
	for u := from; u != to; path = append(path, u) {
		for {
			if v := n.next[u][r.IntN(len(n.next[u]))]; dist[v] == dist[u]-1 {
				u = v
				break
			}
		}
	}
	return path
}

// flow is one that packets are sent on.
type flow struct {
	key     decode.FlowKey
	paths   [][]uint32 // ids that the switches have; more than one are used in turn
	shift   int        // of hop numbers
	forged  bool
	changes int // packets after which the next path is taken; 0 draws one for each packet
}

func (f *flow) hops() int { return len(f.paths[0]) + f.shift }

// digest returns the digest of the n-th packet of the flow.
func (f *flow) digest(r *rand.Rand, s *pint.Scheme, id uint32, n int) (d uint64) {
	path := f.paths[0]
	switch {
	case f.forged:
		return r.Uint64() & (1<<(s.Width()*s.Instances()) - 1)
	case f.changes > 0:
		path = f.paths[n/f.changes%len(f.paths)]
	case len(f.paths) > 1:
		path = f.paths[r.IntN(len(f.paths))]
	}
	for i, u := range path {
		d = s.Write(d, id, i+1+f.shift, u)
	}
	return d
}

func testScheme(t testing.TB, hops int) *pint.Scheme { return testWidth(t, hops, 8, 2) }

func testWidth(t testing.TB, hops, bits, instances int) *pint.Scheme {
	t.Helper()
	layers := pint.MultiLayerRevised(1, hops)
	s, err := pint.New(pint.Config{Seed: 7, Bits: bits, Instances: instances, Tau: layers.Tau, P: layers.P})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// flows draws flows between hosts. The address of a host encodes its switch: 10.1.0.0/16 is the first one.
func (n *network) flows(r *rand.Rand, count, least, most int) (flows []flow) {
	for len(flows) < count {
		a, b := r.IntN(len(n.edges)), r.IntN(len(n.edges))
		if a == b {
			continue
		}
		path := n.path(r, n.edges[a], n.edges[b])
		if len(path) < least || len(path) > most {
			continue
		}
		ids := make([]uint32, len(path))
		for h, u := range path {
			ids[h] = n.nodes[u]
		}
		flows = append(flows, flow{key: key(a, r.IntN(200), b, r.IntN(200), len(flows)), paths: [][]uint32{ids}})
	}
	return flows
}

func key(a, i, b, j, n int) decode.FlowKey {
	return decode.FlowKey{
		Src: decode.AddrFrom4([]byte{10 + byte(a>>8), byte(a), 0, byte(i)}), Dst: decode.AddrFrom4([]byte{10 + byte(b>>8), byte(b), 0, byte(j)}),
		SrcPort: uint16(n), DstPort: 80, Proto: 17, IPVersion: 4,
	}
}

// rename gives nodes other ids, on all paths.
func rename(flows []flow, ids map[uint32]uint32) {
	for i := range flows {
		for _, p := range flows[i].paths {
			for h, u := range p {
				if v, ok := ids[u]; ok {
					p[h] = v
				}
			}
		}
	}
}

// deviations explains flows after so many digests each.
func deviations(m *Map, r *rand.Rand, flows []flow, digests int) (all []inference.Deviation) {
	w := NewWatch(DefaultIDs)
	for i := range flows {
		f := &flows[i]
		ref := w.Begin(m, &f.key, 0)
		for n := range digests {
			id := r.Uint32()
			w.Add(ref, f.hops(), pathtrace.Packet{ID: id, Digest: f.digest(r, m.scheme, id, n)}, int64(n))
		}
		ended := false
		w.Survey(func(d *inference.Deviation) {
			d.Errors = append([]inference.MapError(nil), d.Errors...)
			all = append(all, *d)
		}, func(uint32) { ended = true })
		if !ended {
			w.End(ref)
		}
	}
	return all
}

func names(errors []Error) (all []string) {
	for i := range errors {
		all = append(all, errors[i].String())
	}
	return all
}
