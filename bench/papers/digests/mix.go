package digests

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/hopscope/hopscope/bench/harness"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/p4/pintplan"
	"github.com/hopscope/hopscope/planner/querymix"
	"github.com/hopscope/hopscope/planner/querymix/solve"
	"github.com/hopscope/hopscope/planner/topo"
)

// Figure 11: three queries in 16 bits. The paper gives each 8 bits, and plans by hand. The path is on all packets,
// the latency on 15 of 16, and the utilisation on 1 of 16, because HPCC needs it rarely.
const (
	mixBits       = 16
	mixFrequency  = 1. / 16
	mixPackets    = 500 // of a flow, until the quantiles are compared
	pathQuery     = "path"
	latencyQuery  = "latency"
	utilityQuery  = "utilisation"
	mixUtilError  = 0.025
	mixUtilLow    = pint.UtilizationUnit / 512
	mixUtilMemory = 0.99 // of the utilisation of a link from packet to packet
)

// mixPath is how path digests are coded, for paths of 5 switches.
var mixPath = pint.Config{Tau: 0.75, P: []float64{0.5}}

// mixWidths are ways to use 8 bits for the path.
var mixWidths = []querymix.Width{{Bits: 8, Instances: 1}, {Bits: 4, Instances: 2}, {Bits: 2, Instances: 4}, {Bits: 1, Instances: 8}}

// mixed is the result of a plan in one run.
type mixed struct {
	packets     float64    // until the path is known
	wrong       bool       // the path
	latency     [2]float64 // error of the median and of the tail
	utilisation float64    // error of the bottleneck's, as last published, on average over packets
}

// mixBench is the shared state of all plans.
type mixBench struct {
	*bench
	network *network
	load    latencyLoad
	latency *pint.Levels
	utility *pint.Levels
}

// mix makes figure 11.
func (b *bench) mix() error {
	tree, err := topo.FatTree(8)
	if err != nil {
		return err
	}
	m := &mixBench{bench: b, network: newNetwork("Fat-tree k = 8", tree), load: latencyLoads[0]}
	if m.latency, err = latencyCode(8); err != nil {
		return err
	}
	if m.utility, err = pint.NewCode(pint.CodeConfig{Bits: 8, Unit: mixUtilLow, Epsilon: mixUtilError}); err != nil {
		return err
	}
	measured, many, err := m.measureWidths()
	if err != nil {
		return err
	}
	t := table{
		Title: fmt.Sprintf("Figure 11: three queries in %d bits, %s, paths of %d switches", mixBits, m.network.name, latencyHops),
		Columns: []string{"plan", "path in", "shares: path", "latency", "utilisation", "runs", "packets until the path is known", "vs. alone",
			"latency error, %: median", "vs. alone", "tail", "vs. alone", "utilisation error, %", "vs. alone"},
		Notes: []string{
			fmt.Sprintf("Latency error as in figure 9, %s, after %d packets of the flow. Utilisation: mean of |last told / true - 1| of the bottleneck, whose", m.load.name, mixPackets),
			"links change by 1 % a packet. Alone: each query in packets of its own, utilisation on 1 of 16. In brackets: 95 % confidence.",
			"The paper: median latency error +0.7 %, packets until the path is known +0.5 %.",
		},
	}
	plans, err := m.plans(measured, many)
	if err != nil {
		return err
	}
	var base [4]float64
	for _, c := range plans {
		results, err := sample(b, "three queries, "+c.name, "three queries", b.runs(10_000), func() (func(*rand.Rand) (mixed, error), error) { return m.begin(c.plans) })
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		row := []any{c.name}
		row = append(row, describePlans(c.plans)...)
		row = append(row, len(results))
		row = append(row, compareMixed(results, &base)...)
		for i := range results {
			if results[i].wrong {
				return fmt.Errorf("%s: run %d: a wrong path", c.name, i)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	b.out.Tables = append(b.out.Tables, t)
	return nil
}

// measureWidths traces the path with each use of 8 bits. It returns these uses with their numbers of packets, and the
// best one.
func (m *mixBench) measureWidths() (measured []querymix.Width, best querymix.Width, err error) {
	best = mixWidths[0]
	t := table{
		Title:   "Figure 11: packets until the path is known, by ways to use 8 bits",
		Columns: []string{"instances × bits", "runs", "mean", "p99"},
		Notes:   []string{"Links and distances are known, and every packet carries the query. In brackets: 95 % confidence. The planner is told the means."},
	}
	for _, w := range mixWidths {
		scheme, err := m.pathScheme(w)
		if err != nil {
			return nil, best, err
		}
		s, _, err := m.trace(m.network, latencyHops, "path in "+w.String(), func() (tracer, error) {
			return newOurTracer(m.network, scheme, knowledge{links: true, routing: prior.Distance})
		})
		if err != nil {
			return nil, best, err
		}
		w.Packets = s.mean.Value
		if measured = append(measured, w); s.mean.Value < best.Packets || best.Packets == 0 {
			best = w
		}
		t.Rows = append(t.Rows, []any{fmt.Sprintf("%d × %d", w.Instances, w.Bits), s.runs, s.mean, s.tail})
	}
	m.out.Tables = append(m.out.Tables, t)
	return measured, best, nil
}

// mixPlans is a row of figure 11.
type mixPlans struct {
	name  string
	plans []*pint.Plan // each for its queries
}

// plans makes the plans that figure 11 compares.
func (m *mixBench) plans(measured []querymix.Width, best querymix.Width) ([]mixPlans, error) {
	alone, err := m.alone(mixWidths[0])
	if err != nil {
		return nil, err
	}
	rows := []mixPlans{{"each query alone", alone}}
	for _, c := range []struct {
		name string
		make func() (*pint.Plan, error)
	}{
		{"the paper's, by hand", func() (*pint.Plan, error) { return m.byHand(mixWidths[0]) }},
		{"by hand, path in the best width", func() (*pint.Plan, error) { return m.byHand(best) }},
		{"automatic", func() (*pint.Plan, error) { return m.automatic(measured, 0) }},
		{"automatic, path within what it takes alone", func() (*pint.Plan, error) { return m.automatic(measured, measured[0].Packets) }},
	} {
		plan, err := c.make()
		if err != nil {
			return nil, err
		}
		rows = append(rows, mixPlans{c.name, []*pint.Plan{plan}})
	}
	return rows, nil
}

// compareMixed returns the figures of a row, each beside the difference to the first row, which base keeps.
func compareMixed(results []mixed, base *[4]float64) (cells []any) {
	for k, pick := range []func(*mixed) float64{
		func(r *mixed) float64 { return r.packets },
		func(r *mixed) float64 { return 100 * r.latency[0] },
		func(r *mixed) float64 { return 100 * r.latency[1] },
		func(r *mixed) float64 { return 100 * r.utilisation },
	} {
		var v []float64
		for i := range results {
			if x := pick(&results[i]); !math.IsNaN(x) {
				v = append(v, x)
			}
		}
		e := meanInterval(v)
		if base[k] == 0 {
			base[k] = e.Value
		}
		cells = append(cells, e, fmt.Sprintf("%+.1f %%", 100*(e.Value/base[k]-1)))
	}
	return cells
}

func (m *mixBench) pathScheme(w querymix.Width) (*pint.Scheme, error) {
	c := mixPath
	c.Seed, c.Bits, c.Instances = uint32(m.o.Seed), w.Bits, w.Instances
	return pint.New(c)
}

// queries are the three, with the path in some width.
func (m *mixBench) queries(w querymix.Width) ([]pint.Query, error) {
	path, err := m.pathScheme(w)
	if err != nil {
		return nil, err
	}
	hops := pint.Baseline(8)
	hops.Seed = uint32(m.o.Seed) + 1
	scheme, err := pint.New(hops)
	if err != nil {
		return nil, err
	}
	return []pint.Query{
		{Name: pathQuery, Value: pint.NodeValue, Aggregation: pint.Static, Bits: w.Total(), Scheme: path},
		{Name: latencyQuery, Value: pint.LatencyValue, Aggregation: pint.Dynamic, Bits: 8, Scheme: scheme, Code: m.latency},
		{Name: utilityQuery, Value: pint.UtilizationValue, Aggregation: pint.PerPacket, Bits: 8, Code: m.utility},
	}, nil
}

// alone makes a plan for each query that has packets for itself.
func (m *mixBench) alone(w querymix.Width) ([]*pint.Plan, error) {
	queries, err := m.queries(w)
	if err != nil {
		return nil, err
	}
	var plans []*pint.Plan
	for i := range queries {
		p := &pint.Plan{Seed: uint32(m.o.Seed), Bits: mixBits, Queries: queries[i : i+1], Sets: []pint.Set{{Share: 1, Slots: []pint.Slot{{}}}}}
		if queries[i].Aggregation == pint.PerPacket {
			p.Sets[0].Share = mixFrequency
			p.Sets = append(p.Sets, pint.Set{Share: 1 - mixFrequency})
		}
		if err := p.Validate(); err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	return plans, nil
}

// byHand is the plan of the paper.
func (m *mixBench) byHand(w querymix.Width) (*pint.Plan, error) {
	queries, err := m.queries(w)
	if err != nil {
		return nil, err
	}
	p := &pint.Plan{Seed: uint32(m.o.Seed), Bits: mixBits, Queries: queries, Sets: []pint.Set{
		{Share: 1 - mixFrequency, Slots: []pint.Slot{{Query: 0}, {Query: 1, Shift: 8}}},
		{Share: mixFrequency, Slots: []pint.Slot{{Query: 0}, {Query: 2, Shift: 8}}},
	}}
	return p, p.Validate()
}

// automatic is the plan of planner/querymix, which chooses among widths. The path is wanted within a number of
// packets, or as soon as possible if that is 0.
func (m *mixBench) automatic(widths []querymix.Width, within float64) (*pint.Plan, error) {
	problem := &querymix.Problem{Bits: mixBits, Seed: uint32(m.o.Seed), Queries: []querymix.Query{
		{Name: pathQuery, Value: "node", Aggregation: querymix.Static, Hops: latencyHops, Nodes: m.network.graph.NumNodes(),
			Within: within, Widths: widths, Tau: mixPath.Tau, XOR: mixPath.P},
		{Name: latencyQuery, Value: "latency", Aggregation: querymix.Dynamic, Hops: latencyHops, Samples: mixPackets / latencyHops,
			MinValue: latencyUnit, MaxValue: latencyMax, Widths: []querymix.Width{{Bits: 8, Instances: 1}}},
		{Name: utilityQuery, Value: "utilization", Aggregation: querymix.PerPacket, Frequency: mixFrequency,
			MinValue: mixUtilLow, MaxValue: 4 * pint.UtilizationUnit, Widths: []querymix.Width{{Bits: 8, Instances: 1}}},
	}}
	found, err := solve.Plan(problem, solve.Options{Seed: m.o.Seed})
	if err != nil {
		return nil, err
	}
	if err := querymix.Check(problem, found); err != nil {
		return nil, err
	}
	width := querymix.Width{Bits: found.Queries[0].Bits, Instances: found.Queries[0].Instances}
	queries, err := m.queries(width)
	if err != nil {
		return nil, err
	}
	return pintplan.With(found, queries)
}

// describePlans returns the width of the path and the shares of the queries.
func describePlans(plans []*pint.Plan) []any {
	width, shares := "", map[string]float64{}
	for _, p := range plans {
		for _, s := range p.Sets {
			for _, slot := range s.Slots {
				q := &p.Queries[slot.Query]
				shares[q.Name] += s.Share
				if q.Aggregation == pint.Static {
					width = fmt.Sprintf("%d × %d", q.Scheme.Instances(), q.Scheme.Width())
				}
			}
		}
	}
	return []any{width, harness.Number(shares[pathQuery]), harness.Number(shares[latencyQuery]), harness.Number(shares[utilityQuery])}
}

// begin makes a worker's runs: one flow, its packets with the plans' digests.
func (m *mixBench) begin(plans []*pint.Plan) (func(*rand.Rand) (mixed, error), error) {
	tracers := make([][]*pathtrace.Tracer, len(plans))
	for i, p := range plans {
		for _, q := range p.Queries {
			var t *pathtrace.Tracer
			if q.Aggregation == pint.Static {
				our, err := newOurTracer(m.network, q.Scheme, knowledge{links: true, routing: prior.Distance})
				if err != nil {
					return nil, err
				}
				t = our.tracer
			}
			tracers[i] = append(tracers[i], t)
		}
	}
	return func(r *rand.Rand) (mixed, error) {
		f, err := m.newFlow(plans, tracers, r)
		if err != nil {
			return mixed{}, err
		}
		for n := 0; n < mixPackets || f.decoded.packets == 0; n++ {
			f.packet(n, r)
		}
		return f.result(), nil
	}, nil
}

// mixFlow is a flow whose packets carry the three queries.
type mixFlow struct {
	*mixBench
	plans   []*pint.Plan
	tracers [][]*pathtrace.Tracer
	path    []uint32
	values  [latencyHops][]uint64
	links   [latencyHops]float64 // logarithm of the utilisation, without its mean
	pool    latencyMethod

	flow        pathtrace.Flow
	decoded     mixed
	utilization float64
	sum         float64
	count       int
}

func (m *mixBench) newFlow(plans []*pint.Plan, tracers [][]*pathtrace.Tracer, r *rand.Rand) (*mixFlow, error) {
	f := &mixFlow{mixBench: m, plans: plans, tracers: tracers, path: m.network.path(latencyHops, r)}
	var err error
	if f.pool, err = pooled(100, false)(m.latency, r.Uint64()); err != nil {
		return nil, err
	}
	for i := range f.values {
		f.values[i] = make([]uint64, mixPackets)
		m.load.draw(f.values[i], r)
		f.links[i] = 0.3 * r.NormFloat64()
	}
	return f, nil
}

// packet sends the n-th packet, and reads its digest.
func (f *mixFlow) packet(n int, r *rand.Rand) {
	id, rnd := r.Uint32(), r.Uint32()
	var most float64
	hops := make([]pint.Values, len(f.path))
	for i, node := range f.path {
		f.links[i] = mixUtilMemory*f.links[i] + math.Sqrt(1-mixUtilMemory*mixUtilMemory)*0.3*r.NormFloat64()
		u := 0.5 * math.Exp(f.links[i]) * pint.UtilizationUnit
		most = max(most, u)
		hops[i] = pint.Values{Node: node, Latency: f.values[i][n%mixPackets], Utilization: uint64(u)}
	}
	for i, p := range f.plans {
		var digest uint64
		for hop, v := range hops {
			digest = p.Write(digest, id, hop+1, v, rnd)
		}
		for _, slot := range p.Sets[p.Set(id)].Slots {
			f.read(&p.Queries[slot.Query], f.tracers[i][slot.Query], id, p.Part(digest, slot), n)
		}
	}
	if f.utilization > 0 && n < mixPackets {
		f.sum += math.Abs(f.utilization/most - 1)
		f.count++
	}
}

// read is the collector's part.
func (f *mixFlow) read(q *pint.Query, tracer *pathtrace.Tracer, id uint32, part uint64, n int) {
	switch q.Aggregation {
	case pint.Static:
		if f.decoded.packets > 0 || tracer.Add(&f.flow, id, len(f.path), part) != pathtrace.Decoded {
			return
		}
		f.decoded.packets = float64(n + 1)
		s, _ := tracer.Path(&f.flow, 0, nil)
		for i, node := range s.Nodes {
			f.decoded.wrong = f.decoded.wrong || node != f.path[i]
		}
		tracer.Release(&f.flow)
	case pint.Dynamic:
		if n < mixPackets {
			p := q.Scheme.Packet(id, 0)
			f.pool.add(bits.TrailingZeros64(q.Scheme.Writers(&p, len(f.path)))+1, uint32(part))
		}
	case pint.PerPacket:
		f.utilization = q.Code.Decode(uint32(part))
	}
}

// result compares the answers with the sent values.
func (f *mixFlow) result() mixed {
	for qi, q := range latencyQuantiles {
		f.decoded.latency[qi] = quantileError(f.values[:], q, f.pool)
	}
	f.decoded.utilisation = math.NaN()
	if f.count > 0 {
		f.decoded.utilisation = f.sum / float64(f.count)
	}
	return f.decoded
}
