package digests

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/aggregation"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/planner/topo"
)

// costFlows is how many flows the memory table holds, unless runs are asked for that are fewer than a hundredth of it.
const costFlows = 1_000_000

// costScheme is the scheme of the cost tables: two digests of 8 bits.
func (b *bench) costScheme(d int) (*pint.Scheme, error) {
	c := pint.Hybrid(8, d)
	c.Seed, c.Instances = uint32(b.o.Seed), 2
	return pint.New(c)
}

// cost measures time and memory of decoding.
func (b *bench) cost() error {
	kdl, err := readNetwork("Kentucky Datalink", "kdl.txt")
	if err != nil {
		return err
	}
	if err := b.decodedCost(kdl); err != nil {
		return err
	}
	if err := b.undecidedCost(kdl); err != nil {
		return err
	}
	return b.memoryCost()
}

// traceOf is a flow with digests that were made beforehand, so that they do not count.
type traceOf struct {
	flow    pathtrace.Flow
	hops    int
	ids     []uint32
	digests []uint64
}

func makeTrace(s *pint.Scheme, path []uint32, packets int, r *rand.Rand) *traceOf {
	t := &traceOf{hops: len(path)}
	for range packets {
		id := r.Uint32()
		t.ids = append(t.ids, id)
		t.digests = append(t.digests, s.Digest(id, path))
	}
	return t
}

// decodedCost times digests of flows whose path is known.
func (b *bench) decodedCost(n *network) error {
	t := table{
		Title:   "Cost of a digest once the path is known, " + n.name,
		Columns: []string{"coding", "digest", "hops", "ns a digest: least of 15", "median"},
		Notes:   []string{"1000 flows in turn, or as many as runs are asked for; times of this machine, whose other work makes medians larger."},
	}
	for _, coding := range []struct {
		name   string
		config pint.Config
	}{{"Algorithm 1", pint.MultiLayer(8, 10)}, {"hybrid", pint.Hybrid(8, 10)}} {
		for _, instances := range []int{1, 2} {
			c := coding.config
			c.Seed, c.Instances = uint32(b.o.Seed), instances
			scheme, err := pint.New(c)
			if err != nil {
				return err
			}
			for _, hops := range []int{5, 12, 24, 36, 48, 59} {
				b.progress(fmt.Sprintf("decoded flows of %d hops", hops))
				least, median, err := b.verify(n, scheme, hops)
				if err != nil {
					return err
				}
				t.Rows = append(t.Rows, []any{coding.name, fmt.Sprintf("%d × 8 bits", instances), hops, least, median})
			}
		}
	}
	b.out.Tables = append(b.out.Tables, t)
	return nil
}

// verify returns the nanoseconds that a digest takes.
func (b *bench) verify(n *network, scheme *pint.Scheme, hops int) (least, median float64, err error) {
	our, err := newOurTracer(n, scheme, knowledge{links: true, routing: prior.Distance})
	if err != nil {
		return 0, 0, err
	}
	r := rand.New(rand.NewPCG(b.o.Seed, uint64(hops)))
	const packets = 64
	flows := min(b.runs(1000), 1000)
	var traces []*traceOf
	for range flows {
		path := n.path(hops, r)
		flow := makeTrace(scheme, path, packets, r)
		for !flow.flow.Known() {
			id := r.Uint32()
			our.tracer.Add(&flow.flow, id, hops, scheme.Digest(id, path))
		}
		traces = append(traces, flow)
	}
	var times []float64
	for range 15 {
		start := time.Now()
		for p := range packets {
			for _, f := range traces {
				our.tracer.Add(&f.flow, f.ids[p], hops, f.digests[p])
			}
		}
		times = append(times, float64(time.Since(start).Nanoseconds())/float64(flows*packets))
	}
	least, median, _ = spread(times)
	return least, median, b.ctx.Err()
}

// undecidedCost times digests until the path is known.
func (b *bench) undecidedCost(n *network) error {
	t := table{
		Title:   fmt.Sprintf("Cost of a digest until the path is known, 2 × 8 bits, %s, paths of %d", n.name, n.longest()),
		Columns: []string{"known", "flows", "packets a flow", "µs a digest: mean", "p99", "most"},
		Notes:   []string{"Each flow is traced five times, and the least time of each digest counts; times of this machine."},
	}
	scheme, err := b.costScheme(10)
	if err != nil {
		return err
	}
	for _, k := range knowledges {
		if k.own {
			continue
		}
		our, err := newOurTracer(n, scheme, k)
		if err != nil {
			return err
		}
		b.progress("undecided flows, " + k.name)
		r := rand.New(rand.NewPCG(b.o.Seed, 1))
		flows := b.runs(1000)
		var each []float64
		sum := 0.0
		for range flows {
			if b.ctx.Err() != nil {
				return b.ctx.Err()
			}
			path := n.path(n.longest(), r)
			for _, v := range our.times(makeTrace(scheme, path, undecidedMost, r)) {
				each = append(each, v)
				sum += v
			}
		}
		_, _, most := spread(each)
		count := float64(len(each))
		t.Rows = append(t.Rows, []any{k.name, flows, count / float64(flows), sum / count, each[len(each)*99/100], most})
	}
	b.out.Tables = append(b.out.Tables, t)
	return nil
}

// undecidedMost is how many digests a flow may take.
const undecidedMost = 1000

// times traces a flow several times and returns the least microseconds of every digest until the path is known.
func (t *ourTracer) times(flow *traceOf) []float64 {
	var least []float64
	for n := range 5 {
		t.tracer.Release(&flow.flow)
		for i, id := range flow.ids {
			start := time.Now()
			t.tracer.Add(&flow.flow, id, flow.hops, flow.digests[i])
			took := time.Since(start).Seconds() * 1e6
			if n == 0 {
				least = append(least, took)
			}
			least[i] = min(least[i], took)
			if flow.flow.Known() {
				break
			}
		}
	}
	t.tracer.Release(&flow.flow)
	return least
}

// memoryCost fills a tracer, and a pool of latency sketches, with flows.
func (b *bench) memoryCost() error {
	tree, err := topo.FatTree(8)
	if err != nil {
		return err
	}
	n := newNetwork("fat-tree k = 8", tree)
	scheme, err := b.costScheme(5)
	if err != nil {
		return err
	}
	code, err := latencyCode(8)
	if err != nil {
		return err
	}
	flows := costFlows
	if b.o.Runs > 0 {
		flows = min(100*b.o.Runs, costFlows)
	}
	b.progress(fmt.Sprintf("%d flows", flows))
	t := table{
		Title:   fmt.Sprintf("Memory of %d flows at once with paths of 5 switches, %s", flows, n.name),
		Columns: []string{"what", "bytes a flow", "MB"},
	}
	c := prior.Config{Scheme: scheme, Nodes: n.nodes(), Links: n.links(), Routing: prior.Distance, MemoryBytes: 1 << 31}
	m, err := prior.NewModel(c)
	if err != nil {
		return err
	}
	add := func(what string, bytes float64) {
		t.Rows = append(t.Rows, []any{what, bytes / float64(flows), bytes / 1e6})
	}
	before := heapBytes()
	tracer := pathtrace.New(m)
	state := make([]pathtrace.Flow, flows)
	r := rand.New(rand.NewPCG(b.o.Seed, 2))
	for i := range state {
		path := n.path(5, r)
		for !state[i].Known() {
			id := r.Uint32()
			tracer.Add(&state[i], id, len(path), scheme.Digest(id, path))
		}
		if b.ctx.Err() != nil {
			return b.ctx.Err()
		}
	}
	traced := heapBytes()
	add(fmt.Sprintf("paths, all known; %d of these in the flow table", unsafe.Sizeof(state[0])), traced-before)
	pool, err := aggregation.NewPool(aggregation.Config{Bytes: 100, Hops: latencyHops * flows, Panes: 1}, code, b.o.Seed)
	if err != nil {
		return err
	}
	sketched := make([]aggregation.Flow, flows)
	for i := range sketched {
		for hop := 1; hop <= latencyHops; hop++ {
			if !pool.Add(&sketched[i], hop, r.Uint32N(256), 0) {
				return fmt.Errorf("no room for latencies of flow %d", i)
			}
		}
	}
	all := heapBytes()
	add("latency sketches of 100 bytes for each of 5 hops", all-traced)
	add("both", all-before)
	runtime.KeepAlive(tracer)
	runtime.KeepAlive(pool)
	b.out.Tables = append(b.out.Tables, t)
	return nil
}

// heapBytes is the memory that live objects hold.
func heapBytes() float64 {
	runtime.GC()
	runtime.GC() // what pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// spread sorts.
func spread(v []float64) (least, median, most float64) {
	slices.Sort(v)
	return v[0], v[len(v)/2], v[len(v)-1]
}
