package digests

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/aggregation"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// Figure 9 has paths of a fat-tree, packets by the hundred, and 500 packets for sketches of different sizes.
const (
	latencyHops    = 5
	sketchedAt     = 500
	losslessBytes  = 1024 // a bin for each of 256 codes
	latencyUnit    = 250  // nanoseconds: the smallest level of codes above 0
	latencyMax     = 20_000_000
	latencyMaxText = "20 ms"
)

// latencyLoad draws the latencies of one flow's packets at one hop, in nanoseconds.
type latencyLoad struct {
	name, what string
	draw       func(dst []uint64, r *rand.Rand)
}

// latencyLoads replace the paper's simulations of HPCC with flows of web search and Hadoop: heavy tails without and
// with bursts.
var latencyLoads = []latencyLoad{
	{"lognormal", "1 µs and a lognormal queue, median 2 to 20 µs by hop, σ = 1", func(dst []uint64, r *rand.Rand) {
		median := 2000 * math.Pow(10, r.Float64())
		for i := range dst {
			dst[i] = clampLatency(1000 + median*math.Exp(r.NormFloat64()))
		}
	}},
	{"incast", "1 µs and a lognormal queue (median 1 to 4 µs, σ = 0.6); bursts begin with each 100th packet, last 5 on average and add 100 µs and an exponential of 150 µs", func(dst []uint64, r *rand.Rand) {
		median := 1000 * math.Pow(4, r.Float64())
		burst := false
		for i := range dst {
			if burst {
				burst = r.IntN(5) != 0
			} else {
				burst = r.IntN(100) == 0
			}
			v := 1000 + median*math.Exp(0.6*r.NormFloat64())
			if burst {
				v += 100_000 + 150_000*r.ExpFloat64()
			}
			dst[i] = clampLatency(v)
		}
	}},
}

func clampLatency(v float64) uint64 { return uint64(min(v, latencyMax)) }

// latencyQuantiles are the median and the tail.
var latencyQuantiles = []float64{0.5, 0.99}

// latencyMethod estimates quantiles from the digests of hops.
type latencyMethod interface {
	add(hop int, code uint32)
	quantile(hop int, q float64) float64
}

// latencyVariant is a method with the code that it wants.
type latencyVariant struct {
	name     string
	bits     int
	lossless bool // the reference of the following compared ones
	compared bool
	begin    func(code *pint.Levels, seed uint64) (latencyMethod, error)
}

// pooled keeps the digests as the collector does.
func pooled(bytes int, smooth bool) func(*pint.Levels, uint64) (latencyMethod, error) {
	return func(code *pint.Levels, seed uint64) (latencyMethod, error) {
		p, err := aggregation.NewPool(aggregation.Config{Bytes: bytes, Hops: latencyHops, Panes: 1}, code, seed)
		return &poolMethod{pool: p, smooth: smooth}, err
	}
}

type poolMethod struct {
	pool   *aggregation.Pool
	flow   aggregation.Flow
	smooth bool
}

func (m *poolMethod) add(hop int, code uint32) { m.pool.Add(&m.flow, hop, code, 0) }

func (m *poolMethod) quantile(hop int, q float64) float64 {
	h, ok := m.pool.Hop(&m.flow, hop, 0)
	if !ok {
		return math.NaN()
	}
	if m.smooth {
		return h.Smooth(q)
	}
	return h.Quantile(q)
}

// kllMethod is a KLL sketch of codes for each hop, as in the paper.
type kllMethod struct {
	code *pint.Levels
	rand quantile.Rand
	hops [latencyHops]quantile.Tiny
}

func newKLLMethod(code *pint.Levels, seed uint64) (latencyMethod, error) {
	return &kllMethod{code: code, rand: quantile.Rand(seed)}, nil
}

func (m *kllMethod) add(hop int, code uint32) { m.hops[hop-1].Update(uint16(code), &m.rand) }

func (m *kllMethod) quantile(hop int, q float64) float64 {
	if m.hops[hop-1].Count() == 0 {
		return math.NaN()
	}
	return m.code.Decode(uint32(m.hops[hop-1].Quantile(q)))
}

// latencyErrors makes figure 9.
func (b *bench) latencyErrors() error {
	if err := b.codeErrors(); err != nil {
		return err
	}
	variants := []latencyVariant{
		{"b = 8, all codes", 8, true, false, pooled(losslessBytes, false)},
		{"b = 8, 100 bytes", 8, false, true, pooled(100, false)},
		{"b = 8, KLL of 120 bytes", 8, false, false, newKLLMethod},
		{"b = 8, 100 bytes, smooth", 8, false, false, pooled(100, true)},
		{"b = 4, all codes", 4, true, false, pooled(losslessBytes, false)},
		{"b = 4, 100 bytes", 4, false, true, pooled(100, false)},
		{"b = 4, KLL of 120 bytes", 4, false, false, newKLLMethod},
		{"b = 4, 100 bytes, smooth", 4, false, false, pooled(100, true)},
	}
	packets := []int{100, 200, 500, 1000, 2000, 5000, 10000}
	for _, load := range latencyLoads {
		t := b.latencyTable(fmt.Sprintf("Figure 9: error of latency quantiles by hop, %s: by packets", load.name), "packets", variants)
		t.Notes = append(t.Notes, load.what+".")
		charts := b.latencyCharts(load.name+"-packets", load.name+" latencies", "packets", variants)
		for _, n := range packets {
			if err := b.latencyPoint(load, n, variants, float64(n), &t, charts); err != nil {
				return err
			}
		}
		b.out.Tables = append(b.out.Tables, t)
		b.out.Charts = append(b.out.Charts, charts...)
	}
	for _, load := range latencyLoads {
		t := b.latencyTable(fmt.Sprintf("Figure 9: error of latency quantiles by hop, %s: by bytes of a sketch, %d packets", load.name, sketchedAt), "bytes", nil)
		var sized []latencyVariant
		for _, bits := range []int{8, 4} {
			sized = append(sized, latencyVariant{name: fmt.Sprintf("b = %d", bits), bits: bits})
		}
		for _, v := range sized {
			t.Columns = append(t.Columns, v.name)
		}
		charts := b.latencyCharts(load.name+"-bytes", fmt.Sprintf("%s latencies, %d packets", load.name, sketchedAt), "bytes of a sketch", sized)
		for _, bytes := range []int{32, 50, 75, 100, 150, 200, 300, losslessBytes} {
			for i := range sized {
				sized[i].begin = pooled(bytes, false)
			}
			c := charts
			if bytes == losslessBytes {
				c = nil // all codes
			}
			if err := b.latencyPoint(load, sketchedAt, sized, float64(bytes), &t, c); err != nil {
				return err
			}
		}
		t.Notes = append(t.Notes, fmt.Sprintf("With %d bytes nothing is lost.", losslessBytes))
		b.out.Tables = append(b.out.Tables, t)
		b.out.Charts = append(b.out.Charts, charts...)
	}
	return nil
}

func (b *bench) latencyTable(title, x string, variants []latencyVariant) table {
	t := table{
		Title:   title,
		Columns: []string{"quantile", x, "runs", "values, not coded"},
		Notes: []string{
			fmt.Sprintf("Error: mean of |estimate / true - 1| in %% over hops and runs; true is the quantile of all packets of the flow at that hop of %d. In", latencyHops),
			"brackets: 95 % confidence. \"Values, not coded\" have only the error of sampling: a packet tells of one hop. Codes are multiplicative",
			fmt.Sprintf("from %d ns to %s with randomised rounding.", latencyUnit, latencyMaxText),
		},
	}
	for _, v := range variants {
		t.Columns = append(t.Columns, v.name)
		if v.compared {
			t.Columns = append(t.Columns, "vs. all")
		}
	}
	return t
}

func (b *bench) latencyCharts(file, title, x string, variants []latencyVariant) []Chart {
	var charts []Chart
	for _, q := range latencyQuantiles {
		c := Chart{File: fmt.Sprintf("pint-figures-9-%s-p%.0f", file, 100*q), Title: fmt.Sprintf("%s: p%.0f", title, 100*q), X: x, Y: "relative error, %", logX: true}
		c.Series = append(c.Series, Series{Name: "values, not coded", dashed: true})
		for _, v := range variants {
			c.Series = append(c.Series, Series{Name: v.name})
		}
		charts = append(charts, c)
	}
	return charts
}

// latencyPoint measures all variants on the same packets.
func (b *bench) latencyPoint(load latencyLoad, packets int, variants []latencyVariant, x float64, t *table, charts []Chart) error {
	codes := map[int]*pint.Levels{}
	for _, v := range variants {
		if codes[v.bits] == nil {
			code, err := latencyCode(v.bits)
			if err != nil {
				return err
			}
			codes[v.bits] = code
		}
	}
	scheme, err := pint.New(pint.Config{Seed: uint32(b.o.Seed), Bits: 8, Instances: 1, Tau: 1})
	if err != nil {
		return err
	}
	runs := max(1, min(b.runs(10_000), 10_000_000/packets))
	if b.o.Runs > 0 {
		runs = b.o.Runs
	}
	results, err := sample(b, fmt.Sprintf("%s latencies, %d packets, %v", load.name, packets, x), load.name, runs, func() (func(*rand.Rand) ([][]float64, error), error) {
		e := latencyRun{load: load, scheme: scheme, packets: packets, variants: variants, codes: codes}
		return e.run, nil
	})
	if err != nil {
		return err
	}
	for qi, q := range latencyQuantiles {
		row := []any{q, x, runs}
		var lossless float64
		for m := range 1 + len(variants) {
			var v []float64
			for _, r := range results {
				if e := r[qi][m]; !math.IsNaN(e) {
					v = append(v, 100*e)
				}
			}
			e := meanInterval(v)
			row = append(row, e)
			if m > 0 && variants[m-1].lossless {
				lossless = e.Value
			} else if m > 0 && variants[m-1].compared {
				row = append(row, fmt.Sprintf("%+.1f %%", 100*(e.Value/lossless-1)))
			}
			if charts != nil {
				s := &charts[qi].Series[m]
				s.X, s.Y = append(s.X, x), append(s.Y, e.Value)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return nil
}

// latencyCode is the code of latencies.
func latencyCode(bits int) (*pint.Levels, error) {
	return pint.NewCode(pint.CodeConfig{Bits: bits, Unit: latencyUnit, Max: latencyMax})
}

// latencyRun is the shared state of one worker's runs.
type latencyRun struct {
	load     latencyLoad
	scheme   *pint.Scheme
	packets  int
	variants []latencyVariant
	codes    map[int]*pint.Levels
	values   [latencyHops][]uint64
	seen     [latencyHops][]uint64
}

// run returns the error of each quantile with values that are not coded, and then with each variant.
func (e *latencyRun) run(r *rand.Rand) ([][]float64, error) {
	methods := make([]latencyMethod, len(e.variants))
	for i, v := range e.variants {
		m, err := v.begin(e.codes[v.bits], r.Uint64())
		if err != nil {
			return nil, err
		}
		methods[i] = m
	}
	for i := range latencyHops {
		e.values[i] = slices.Grow(e.values[i][:0], e.packets)[:e.packets]
		e.load.draw(e.values[i], r)
		e.seen[i] = e.seen[i][:0]
	}
	for n := range e.packets {
		p := e.scheme.Packet(r.Uint32(), 0)
		w := e.scheme.Writers(&p, latencyHops)
		hop := 1
		for w>>hop != 0 {
			hop++
		}
		v, rnd := e.values[hop-1][n], r.Uint32()
		e.seen[hop-1] = append(e.seen[hop-1], v)
		for i, m := range methods {
			m.add(hop, e.codes[e.variants[i].bits].Encode(v, rnd))
		}
	}
	result := make([][]float64, len(latencyQuantiles))
	for qi, q := range latencyQuantiles {
		sum := make([]float64, 1+len(methods))
		for i := range latencyHops {
			slices.Sort(e.values[i])
			slices.Sort(e.seen[i])
			sum[0] += math.Abs(rank(e.seen[i], q)/rank(e.values[i], q)-1) / latencyHops
		}
		for k, m := range methods {
			sum[1+k] = quantileError(e.values[:], q, m)
		}
		result[qi] = sum
	}
	return result, nil
}

// quantileError is the mean error over hops.
func quantileError(values [][]uint64, q float64, m latencyMethod) (sum float64) {
	for i, v := range values {
		slices.Sort(v)
		sum += math.Abs(m.quantile(i+1, q)/rank(v, q)-1) / float64(len(values))
	}
	return sum
}

// rank is the smallest value that at least the share q does not exceed; NaN if there are none.
func rank[T uint64 | float64](sorted []T, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return float64(sorted[max(int(math.Ceil(q*float64(len(sorted)))), 1)-1])
}

// codeErrors measures the errors of compressed values. Randomised rounding keeps their mean, rounding to the nearest
// does not.
func (b *bench) codeErrors() error {
	t := table{
		Title:   "Figure 9: codes of latencies, error of one value",
		Columns: []string{"load", "bits", "values", "bias, %", "mean error, %", "bias of the nearest code, %"},
		Notes:   []string{"Bias: mean of decoded / value - 1. In brackets: 95 % confidence."},
	}
	const batch = 1000
	for _, load := range latencyLoads {
		for _, bits := range []int{4, 8} {
			code, err := latencyCode(bits)
			if err != nil {
				return err
			}
			results, err := sample(b, fmt.Sprintf("codes, %s, %d bits", load.name, bits), load.name, b.runs(2000), counting(func(r *rand.Rand) (mean [3]float64) {
				values := make([]uint64, batch)
				load.draw(values, r)
				for _, v := range values {
					e := code.Decode(code.Encode(v, r.Uint32()))/float64(v) - 1
					nearest := code.Decode(code.Encode(v, pint.Nearest))/float64(v) - 1
					mean[0] += 100 * e / batch
					mean[1] += 100 * math.Abs(e) / batch
					mean[2] += 100 * nearest / batch
				}
				return mean
			}))
			if err != nil {
				return err
			}
			row := []any{load.name, bits, len(results) * batch}
			for k := range 3 {
				var v []float64
				for _, r := range results {
					v = append(v, r[k])
				}
				row = append(row, meanInterval(v))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	b.out.Tables = append(b.out.Tables, t)
	return nil
}
