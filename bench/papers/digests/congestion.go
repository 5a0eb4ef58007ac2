package digests

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/hopscope/hopscope/bench/papers/congestion"
)

// hpcc is the setting of figures 7, 8 and 11.
func (b *bench) hpcc(workload string, load float64, sender congestion.Sender, share float64, overhead int) congestion.Setting {
	return congestion.HPCC(workload, load, sender, share, overhead, b.runs(congestionFlows), b.o.Seed)
}

// congestionFlows are measured in a simulation, so that a figure takes a minute or two.
const congestionFlows = 1000

// inf bounds nothing.
var inf = math.Inf(1)

// longFlow is the size above which the paper calls flows long.
const longFlow = 10_000_000

// kept are the simulations of this process: several figures need the same.
var kept = struct {
	sync.Mutex
	by map[congestion.Setting]*congestion.Result
}{by: map[congestion.Setting]*congestion.Result{}}

// simulateAll runs settings side by side, those that have not run yet.
func (b *bench) simulateAll(settings []congestion.Setting) ([]*congestion.Result, error) {
	results := make([]*congestion.Result, len(settings))
	failed := make([]error, len(settings))
	turn := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for i, c := range settings {
		wait.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			kept.Lock()
			r := kept.by[c]
			kept.Unlock()
			if r == nil {
				b.progress(c.String())
				var err error
				if r, err = congestion.Simulate(b.ctx, c); err != nil {
					failed[i] = fmt.Errorf("%v: %w", c, err)
					return
				}
				kept.Lock()
				kept.by[c] = r
				kept.Unlock()
			}
			results[i] = r
		})
	}
	wait.Wait()
	return results, errors.Join(failed...)
}

// pick returns a figure of the flows whose sizes are above low and at most high.
func pick(r *congestion.Result, low, high float64, figure func(congestion.Completion) float64) (list []float64) {
	for _, c := range r.Done {
		if s := float64(c.Size); s > low && s <= high {
			list = append(list, figure(c))
		}
	}
	return list
}

// goodput is in Gb/s.
func goodput(c congestion.Completion) float64 {
	return float64(c.Size) * 8 * 1000 / float64(c.Duration)
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// percentile returns the function that takes a percentile of a list.
func percentile(q float64) func([]float64) float64 {
	return func(v []float64) float64 {
		return rank(slices.Sorted(slices.Values(v)), q)
	}
}

const resamples = 400

// ratios are the quotient of a statistic of two lists about the same flows, and those of resamples of the flows: its
// bootstrap.
func ratios(a, b []float64, statistic func([]float64) float64, r *rand.Rand) (value float64, drawn []float64) {
	value = statistic(a) / statistic(b)
	x, y := make([]float64, len(a)), make([]float64, len(a))
	for range resamples {
		for i := range x {
			k := r.IntN(len(a))
			x[i], y[i] = a[k], b[k]
		}
		drawn = append(drawn, statistic(x)/statistic(y))
	}
	return value, drawn
}

// within is the interval of a figure by its resamples.
func within(value float64, drawn []float64) interval {
	v := slices.Sorted(slices.Values(drawn))
	return interval{Value: value, Low: rank(v, 0.025), High: rank(v, 0.975)}
}

// percent is the change of a quotient in percent.
func percent(x interval) interval {
	return interval{Value: 100 * (x.Value - 1), Low: 100 * (x.Low - 1), High: 100 * (x.High - 1)}
}

func (b *bench) bootstrap(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(b.o.Seed, 0xb007<<32|stream))
}

// renoOverheads are the bytes that two and five values at five hops take, and those without telemetry.
var renoOverheads = []int{0, 48, 108}

var renoLoads = []float64{0.3, 0.7}

// headers makes figures 1 and 2: a statistic of the flows by overhead, over that without.
func (b *bench) headers(title string, low float64, figure func(congestion.Completion) float64, published map[int]string, notes ...string) error {
	var settings []congestion.Setting
	for _, load := range renoLoads {
		for _, o := range renoOverheads {
			settings = append(settings, congestion.TCP(load, o, b.runs(congestionFlows), b.o.Seed))
		}
	}
	results, err := b.simulateAll(settings)
	if err != nil {
		return err
	}
	t := table{
		Title:   title,
		Columns: []string{"overhead, bytes", "of 1500, %", "30 % load: flows", "30 % load", "70 % load: flows", "70 % load", "paper, 70 % load", "capacity left at 70 %", "lost packets at 70 %, %"},
		Notes: append(notes,
			"Over the same flows without telemetry; in brackets: 95 %, by bootstrap over the flows. Capacity left: 1 - 70 % · (1 + overhead), over that without.",
			"64 hosts, 10 Gb/s, a fat-tree of 4 pods of 4 + 4 switches; TCP Reno (NewReno), queues of 100 packets, timeouts of 10 ms at least."),
	}
	for k, o := range renoOverheads {
		row := []any{o, 100 * float64(o) / 1500}
		for l := range renoLoads {
			at := l*len(renoOverheads) + k
			list, base := pick(results[at], low, inf, figure), pick(results[l*len(renoOverheads)], low, inf, figure)
			if len(base) == 0 {
				row = append(row, 0, "")
				continue
			}
			value, drawn := ratios(list, base, mean, b.bootstrap(uint64(at)))
			row = append(row, len(list), within(value, drawn))
		}
		last := results[len(renoOverheads)+k]
		t.Rows = append(t.Rows, append(row, published[o], (1-.7*(1+float64(o)/1500))/(1-.7), 100*float64(last.Dropped)/float64(last.Sent)))
	}
	b.out.Tables = append(b.out.Tables, t)
	return nil
}

func (b *bench) completionTimes() error {
	return b.headers("Figure 1: mean flow completion time by bytes of telemetry in a packet", 0,
		func(c congestion.Completion) float64 { return float64(c.Duration) }, map[int]string{48: "1.10", 108: "1.25"})
}

func (b *bench) longGoodputs() error {
	return b.headers("Figure 2: mean goodput of flows longer than 10 MB by bytes of telemetry in a packet", longFlow,
		goodput, map[int]string{48: "0.90", 108: "0.80"})
}

// hpccNotes are below all tables of HPCC.
var hpccNotes = []string{
	"Slowdown: completion over the least time of the flow alone, without telemetry. In brackets: 95 %, by bootstrap over the same flows in both.",
	"48 servers of 100 Gb/s, 3 pods of 2 + 2 switches with lines of 400 Gb/s; η = 0.95, W_AI = 80 bytes, T = 13 µs.",
}

// variant is a column of a table of slowdowns.
type variant struct {
	name   string
	result *congestion.Result
}

// slowdowns is a table of slowdowns by size, in tenths of the flows, and the quotients of the 95th percentiles to those
// of the first variant.
func (b *bench) slowdowns(title, workload string, variants []variant) table {
	t := table{Title: title, Columns: []string{"shortest flows, %", "up to, bytes", "flows"}, Notes: hpccNotes}
	for _, v := range variants {
		t.Columns = append(t.Columns, v.name+": p50", v.name+": p95", v.name+": p99")
	}
	for _, v := range variants[1:] {
		t.Columns = append(t.Columns, v.name+" over "+variants[0].name+", p95")
	}
	sums := make([]float64, len(variants))
	drawnSums := make([][]float64, len(variants))
	for i := range drawnSums {
		drawnSums[i] = make([]float64, resamples)
	}
	const parts = 10
	for k := range parts {
		low, high := congestion.SizeAt(workload, float64(100*k/parts)), congestion.SizeAt(workload, float64(100*(k+1)/parts))
		first := pick(variants[0].result, low, high, congestion.Completion.Slowdown)
		row := []any{fmt.Sprintf("%d to %d", 100*k/parts, 100*(k+1)/parts), high, len(first)}
		if len(first) == 0 {
			continue
		}
		for _, v := range variants {
			list := pick(v.result, low, high, congestion.Completion.Slowdown)
			row = append(row, percentile(0.5)(list), percentile(0.95)(list), percentile(0.99)(list))
		}
		for i, v := range variants[1:] {
			value, drawn := ratios(pick(v.result, low, high, congestion.Completion.Slowdown), first, percentile(0.95), b.bootstrap(uint64(16*k+i)))
			row = append(row, within(value, drawn))
			sums[i] += value / parts
			for n, x := range drawn {
				drawnSums[i][n] += x / parts
			}
		}
		t.Rows = append(t.Rows, row)
	}
	last := []any{"mean of tenths", "", len(variants[0].result.Done)}
	for range variants {
		last = append(last, "", "", "")
	}
	for i := range variants[1:] {
		last = append(last, within(sums[i], drawnSums[i]))
	}
	t.Rows = append(t.Rows, last)
	return t
}

// hpccLoads are those of figure 7(a).
var hpccLoads = []float64{0.3, 0.5, 0.7}

// hpccOverINT makes figure 7.
func (b *bench) hpccOverINT() error {
	var settings []congestion.Setting
	for _, load := range hpccLoads {
		settings = append(settings, b.hpcc("web search", load, congestion.INT, 1, congestion.INTBytes), b.hpcc("web search", load, congestion.PINT, 1, congestion.PINTBytes))
	}
	settings = append(settings, b.hpcc("Hadoop", 0.5, congestion.INT, 1, congestion.INTBytes), b.hpcc("Hadoop", 0.5, congestion.PINT, 1, congestion.PINTBytes))
	results, err := b.simulateAll(settings)
	if err != nil {
		return err
	}
	t := table{
		Title:   "Figure 7(a): mean goodput of flows longer than 10 MB, web search, Gb/s",
		Columns: []string{"load, %", "flows", "INT", "PINT", "gain, %", "paper, %", "gain of capacity left, %", "largest queue with INT, KB", "with PINT, KB"},
		Notes: append([]string{
			"Capacity left: η less the load with headers, telemetry and acknowledgements, which take it back."}, hpccNotes[1:]...),
	}
	for k, load := range hpccLoads {
		x, y := results[2*k], results[2*k+1]
		a, c := pick(x, longFlow, inf, goodput), pick(y, longFlow, inf, goodput)
		if len(a) == 0 {
			continue
		}
		value, drawn := ratios(c, a, mean, b.bootstrap(uint64(k)))
		paper := any("")
		if load == 0.7 {
			paper = 71.0
		}
		t.Rows = append(t.Rows, []any{100 * load, len(a), mean(a), mean(c), percent(within(value, drawn)), paper,
			100 * (settings[2*k+1].Left()/settings[2*k].Left() - 1), float64(x.Queue) / 1000, float64(y.Queue) / 1000})
	}
	b.out.Tables = append(b.out.Tables, t,
		b.slowdowns("Figure 7(b): slowdown, web search, 50 % load", "web search", []variant{{"INT", results[2]}, {"PINT", results[3]}}),
		b.slowdowns("Figure 7(c): slowdown, Hadoop, 50 % load", "Hadoop", []variant{{"INT", results[6]}, {"PINT", results[7]}}))
	return nil
}

// hpccShares makes figure 8.
func (b *bench) hpccShares() error {
	shares := []struct {
		name string
		p    float64
	}{{"p = 1", 1}, {"p = 1/16", 1. / 16}, {"p = 1/256", 1. / 256}}
	workloads := []string{"web search", "Hadoop"}
	var settings []congestion.Setting
	for _, w := range workloads {
		for _, s := range shares {
			settings = append(settings, b.hpcc(w, 0.5, congestion.PINT, s.p, congestion.PINTBytes))
		}
	}
	results, err := b.simulateAll(settings)
	if err != nil {
		return err
	}
	for k, w := range workloads {
		var variants []variant
		for i, s := range shares {
			variants = append(variants, variant{s.name, results[k*len(shares)+i]})
		}
		b.out.Tables = append(b.out.Tables, b.slowdowns(fmt.Sprintf("Figure 8(%c): slowdown by share of packets with the digest, %s, 50 %% load", 'a'+k, w), w, variants))
	}
	return nil
}

// hpccAmongQueries makes HPCC's part of figure 11: alone, with all 16 bits of every packet, and with 8 bits of one packet
// in 16 beside two other queries.
func (b *bench) hpccAmongQueries() error {
	results, err := b.simulateAll([]congestion.Setting{
		b.hpcc("Hadoop", 0.5, congestion.PINT, 1, congestion.MixedBytes), b.hpcc("Hadoop", 0.5, congestion.PINT, 1./16, congestion.MixedBytes)})
	if err != nil {
		return err
	}
	t := table{
		Title:   "Figure 11, HPCC: slowdown among three queries in 16 bits, and alone, Hadoop, 50 % load",
		Columns: []string{"flows", "number", "alone: mean", "p95", "three queries: mean", "p95", "slower, mean, %", "slower, p95, %", "paper, %"},
		Notes:   hpccNotes,
	}
	for k, part := range []struct {
		name      string
		low, high float64
		paper     string
	}{
		{"shorter half", 0, congestion.SizeAt("Hadoop", 50), "6.6"},
		{"longest tenth", congestion.SizeAt("Hadoop", 90), inf, "not slower"},
		{"all", 0, inf, ""},
	} {
		a, c := pick(results[0], part.low, part.high, congestion.Completion.Slowdown), pick(results[1], part.low, part.high, congestion.Completion.Slowdown)
		if len(a) == 0 {
			continue
		}
		p95 := percentile(0.95)
		average, drawnAverage := ratios(c, a, mean, b.bootstrap(uint64(2*k)))
		tail, drawnTail := ratios(c, a, p95, b.bootstrap(uint64(2*k+1)))
		t.Rows = append(t.Rows, []any{part.name, len(a), mean(a), p95(a), mean(c), p95(c),
			percent(within(average, drawnAverage)), percent(within(tail, drawnTail)), part.paper})
	}
	b.out.Tables = append(b.out.Tables, t)
	return nil
}
