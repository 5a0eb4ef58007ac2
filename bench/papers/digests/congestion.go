package digests

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
)

// Bytes of the packets of figures 7, 8 and 11, as in the simulation that PINT's authors published: 1,000 of payload
// behind Ethernet, IP, UDP and a sequence header. HPCC's own INT has 8 for each of five hops and 2 for their number.
const (
	intBytes   = 42
	pintBytes  = 1
	mixedBytes = 2 // the three queries of section 6.4
)

// fabricOfHPCC is a small one like the paper's: 3 pods (paper: 5) of 2 (paper: 4) top-of-rack and aggregation switches,
// with 8 (paper: 16) servers a rack. The lines have the paper's rates and delays. There is as much room towards the
// core as in racks, as in the paper's. 68 % of pairs of servers are in different pods, and 80 % in the paper's.
var fabricOfHPCC = fabric{pods: 3, half: 2, servers: 8, hostRate: 100e9, coreRate: 400e9, delay: microsecond}

// fabricOfReno has the 64 hosts, five switches on a path and 10 Gb/s of figures 1 and 2. The rest is ours: the text has
// neither the other lines nor delays.
var fabricOfReno = fabric{pods: 4, half: 4, servers: 4, hostRate: 10e9, coreRate: 10e9, delay: microsecond}

// hpccSetting is that of section 6.1: W_AI of 80 bytes, maxStage 0, η = 95 %, T = 13 µs. The load is of payload alone.
func (b *bench) hpccSetting(workload string, load float64, sender senderKind, share float64, overhead int) setting {
	flows := b.runs(congestionFlows)
	if workload == "Hadoop" { // whose flows are a thirteenth as long
		flows *= 10
	}
	return setting{
		fabric: fabricOfHPCC, workload: workload, load: load,
		sender: sender, share: share, overhead: overhead, onACK: true,
		payload: 1000, header: 48, ackSize: 46, leastACK: 60,
		rtt: 13 * microsecond, eta: 0.95, increase: 80, measured: flows, seed: b.o.Seed,
	}
}

// renoSetting is that of section 2: packets of 1,500 bytes and as many more as the overhead, the load without it.
// Queues hold 100 packets, as those of ns-3 do, and the retransmission timeout is 10 ms at least.
func (b *bench) renoSetting(load float64, overhead int) setting {
	return setting{
		fabric: fabricOfReno, workload: "web search", load: load, counted: true,
		sender: senderReno, overhead: overhead,
		payload: 1460, header: 40, ackSize: 40, leastACK: 40, limit: 100,
		rtt: 26 * microsecond, timeout: 10 * millisecond, measured: b.runs(congestionFlows), seed: b.o.Seed,
	}
}

// congestionFlows are measured in a simulation, so that a figure takes a minute or two.
const congestionFlows = 1000

// inf bounds nothing.
var inf = math.Inf(1)

// longFlow is the size above which the paper calls flows long.
const longFlow = 10_000_000

// simulated is what figures need of a simulation. Its completions are in the order of the flows' identities, so that
// those of two simulations with the same seed, workload and load are of the same flows.
type simulated struct {
	done          []completion
	sent, dropped int64
	queue         int64 // bytes, the largest
}

// kept are the simulations of this process: several figures need the same.
var kept = struct {
	sync.Mutex
	by map[setting]*simulated
}{by: map[setting]*simulated{}}

// simulateAll runs settings side by side, those that have not run yet.
func (b *bench) simulateAll(settings []setting) ([]*simulated, error) {
	results := make([]*simulated, len(settings))
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
				s, err := simulate(b.ctx, c)
				if err != nil {
					failed[i] = fmt.Errorf("%v: %w", c, err)
					return
				}
				r = &simulated{done: s.done, sent: s.sent, dropped: s.dropped, queue: s.mostQueue()}
				slices.SortFunc(r.done, func(a, b completion) int { return cmp.Compare(a.id, b.id) })
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

func (c setting) String() string {
	kind := "PINT"
	switch c.sender {
	case senderReno:
		kind = "Reno"
	case senderINT:
		kind = "INT"
	}
	return fmt.Sprintf("%s, %s at %g %% load, %d bytes, share %g", kind, c.workload, 100*c.load, c.overhead, c.share)
}

// pick returns a figure of the flows whose sizes are above low and at most high.
func (r *simulated) pick(low, high float64, figure func(completion) float64) (list []float64) {
	for _, c := range r.done {
		if s := float64(c.size); s > low && s <= high {
			list = append(list, figure(c))
		}
	}
	return list
}

// goodput is in Gb/s.
func goodput(c completion) float64 { return float64(c.size) * 8 * 1000 / float64(c.duration) }

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
func (b *bench) headers(title string, low float64, figure func(completion) float64, published map[int]string, notes ...string) error {
	var settings []setting
	for _, load := range renoLoads {
		for _, o := range renoOverheads {
			settings = append(settings, b.renoSetting(load, o))
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
			list, base := results[at].pick(low, inf, figure), results[l*len(renoOverheads)].pick(low, inf, figure)
			if len(base) == 0 {
				row = append(row, 0, "")
				continue
			}
			value, drawn := ratios(list, base, mean, b.bootstrap(uint64(at)))
			row = append(row, len(list), within(value, drawn))
		}
		last := results[len(renoOverheads)+k]
		t.Rows = append(t.Rows, append(row, published[o], (1-.7*(1+float64(o)/1500))/(1-.7), 100*float64(last.dropped)/float64(last.sent)))
	}
	b.out.Tables = append(b.out.Tables, t)
	return nil
}

func (b *bench) completionTimes() error {
	return b.headers("Figure 1: mean flow completion time by bytes of telemetry in a packet", 0,
		func(c completion) float64 { return float64(c.duration) }, map[int]string{48: "1.10", 108: "1.25"})
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
	name string
	of   *simulated
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
	curve := flowSizes[workload]
	sums := make([]float64, len(variants))
	drawnSums := make([][]float64, len(variants))
	for i := range drawnSums {
		drawnSums[i] = make([]float64, resamples)
	}
	const parts = 10
	for k := range parts {
		low, high := curve.at(float64(100*k/parts)), curve.at(float64(100*(k+1)/parts))
		first := variants[0].of.pick(low, high, completion.slowdown)
		row := []any{fmt.Sprintf("%d to %d", 100*k/parts, 100*(k+1)/parts), high, len(first)}
		if len(first) == 0 {
			continue
		}
		for _, v := range variants {
			list := v.of.pick(low, high, completion.slowdown)
			row = append(row, percentile(0.5)(list), percentile(0.95)(list), percentile(0.99)(list))
		}
		for i, v := range variants[1:] {
			value, drawn := ratios(v.of.pick(low, high, completion.slowdown), first, percentile(0.95), b.bootstrap(uint64(16*k+i)))
			row = append(row, within(value, drawn))
			sums[i] += value / parts
			for n, x := range drawn {
				drawnSums[i][n] += x / parts
			}
		}
		t.Rows = append(t.Rows, row)
	}
	last := []any{"mean of tenths", "", len(variants[0].of.done)}
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
	var settings []setting
	for _, load := range hpccLoads {
		settings = append(settings, b.hpccSetting("web search", load, senderINT, 1, intBytes), b.hpccSetting("web search", load, senderPINT, 1, pintBytes))
	}
	settings = append(settings, b.hpccSetting("Hadoop", 0.5, senderINT, 1, intBytes), b.hpccSetting("Hadoop", 0.5, senderPINT, 1, pintBytes))
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
		a, c := x.pick(longFlow, inf, goodput), y.pick(longFlow, inf, goodput)
		if len(a) == 0 {
			continue
		}
		value, drawn := ratios(c, a, mean, b.bootstrap(uint64(k)))
		paper := any("")
		if load == 0.7 {
			paper = 71.0
		}
		t.Rows = append(t.Rows, []any{100 * load, len(a), mean(a), mean(c), percent(within(value, drawn)), paper,
			100 * (settings[2*k+1].left()/settings[2*k].left() - 1), float64(x.queue) / 1000, float64(y.queue) / 1000})
	}
	b.out.Tables = append(b.out.Tables, t,
		b.slowdowns("Figure 7(b): slowdown, web search, 50 % load", "web search", []variant{{"INT", results[2]}, {"PINT", results[3]}}),
		b.slowdowns("Figure 7(c): slowdown, Hadoop, 50 % load", "Hadoop", []variant{{"INT", results[6]}, {"PINT", results[7]}}))
	return nil
}

// left is the share of a host's line that is left for more flows, in the mean.
func (c setting) left() float64 {
	ack := max(c.ackSize+c.overhead, c.leastACK)
	return c.eta - c.load*float64(c.payload+c.header+c.overhead+ack)/float64(c.payload)
}

// hpccShares makes figure 8.
func (b *bench) hpccShares() error {
	shares := []struct {
		name string
		p    float64
	}{{"p = 1", 1}, {"p = 1/16", 1. / 16}, {"p = 1/256", 1. / 256}}
	workloads := []string{"web search", "Hadoop"}
	var settings []setting
	for _, w := range workloads {
		for _, s := range shares {
			settings = append(settings, b.hpccSetting(w, 0.5, senderPINT, s.p, pintBytes))
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
	results, err := b.simulateAll([]setting{
		b.hpccSetting("Hadoop", 0.5, senderPINT, 1, mixedBytes), b.hpccSetting("Hadoop", 0.5, senderPINT, 1./16, mixedBytes)})
	if err != nil {
		return err
	}
	t := table{
		Title:   "Figure 11, HPCC: slowdown among three queries in 16 bits, and alone, Hadoop, 50 % load",
		Columns: []string{"flows", "number", "alone: mean", "p95", "three queries: mean", "p95", "slower, mean, %", "slower, p95, %", "paper, %"},
		Notes:   hpccNotes,
	}
	curve := flowSizes["Hadoop"]
	for k, part := range []struct {
		name      string
		low, high float64
		paper     string
	}{
		{"shorter half", 0, curve.at(50), "6.6"},
		{"longest tenth", curve.at(90), inf, "not slower"},
		{"all", 0, inf, ""},
	} {
		a, c := results[0].pick(part.low, part.high, completion.slowdown), results[1].pick(part.low, part.high, completion.slowdown)
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
