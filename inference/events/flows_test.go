package events

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
)

// traffic makes windows of ten seconds of flows that cross a few hops. The function slow adds the excess of a flow at a
// hop.
type traffic struct {
	rng    *rand.Rand
	window int64
	all    func(hop uint32) float64             // factor of the latencies of a hop
	one    func(flow, hop uint32) float64       // factor of those of one flow there
	path   func(flow uint32) []inference.HopKey // of a flow
	change map[uint32]uint32                    // changes of paths
	busy   func(window int64) (flows []busyNow) // the busiest
}

type busyNow struct {
	flow  uint32
	count uint64
}

func newTraffic(seed uint64, flows ...busyNow) *traffic {
	return &traffic{
		rng: rand.New(rand.NewPCG(seed, 5)),
		all: func(uint32) float64 { return 1 }, one: func(uint32, uint32) float64 { return 1 },
		path:   func(f uint32) []inference.HopKey { return places(10+f%7, 20+f%3, 30) },
		change: map[uint32]uint32{}, busy: func(int64) []busyNow { return flows },
	}
}

// places are hops of nodes that packets leave by their interface 3.
func places(nodes ...uint32) (out []inference.HopKey) {
	for _, n := range nodes {
		out = append(out, inference.HopKey{Node: n, EgressIf: 3})
	}
	return out
}

// values returns the quantiles of a number of values of a lognormal distribution.
func (x *traffic) values(count uint64, median float64) inference.Summary {
	quantile := func(p float64) float64 {
		u := p + math.Sqrt(p*(1-p)/float64(count))*x.rng.NormFloat64()
		return median * math.Exp(.5*math.Sqrt2*math.Erfinv(2*min(max(u, .01), 1-.5/float64(count))-1))
	}
	s := inference.Summary{Count: count, P50: uint64(quantile(.5)), P90: uint64(quantile(.9)), P99: uint64(quantile(.99))}
	s.P90 = max(s.P90, s.P50)
	s.P99 = max(s.P99, s.P90)
	return s
}

func (x *traffic) next() *inference.Window {
	x.window++
	w := &inference.Window{Start: (x.window - 1) * 1e10, End: x.window * 1e10}
	for _, n := range []uint32{10, 11, 12, 13, 14, 15, 16, 20, 21, 22, 30} {
		l := x.values(100_000, 20_000*x.all(n))
		w.Hops = append(w.Hops, inference.HopStats{HopKey: places(n)[0], Count: l.Count, Latency: l})
	}
	for _, b := range x.busy(x.window) {
		f := inference.FlowStats{Key: flow(b.flow), Packets: b.count, Changes: x.change[b.flow]}
		for _, k := range x.path(b.flow) {
			factor := x.all(k.Node) * x.one(b.flow, k.Node)
			f.Hops = append(f.Hops, inference.FlowHop{HopKey: k, Latency: x.values(b.count, 20_000*factor)})
		}
		w.Flows = append(w.Flows, f)
	}
	return w
}

// steady returns flows 1 to n of a number of reports a window.
func steady(n uint32, count uint64) (out []busyNow) {
	for f := uint32(1); f <= n; f++ {
		out = append(out, busyNow{f, count})
	}
	return out
}

// TestFlowSlows: a flow gets slow at the last switch on its way, where it is one packet in 200 and the hop shows
// nothing. That is one finding, which names the flow and the hop and ends, at any fault that is clear enough.
func TestFlowSlows(t *testing.T) {
	for seed := range uint64(20) {
		x := newTraffic(seed, steady(30, 500)...)
		d := New(DefaultConfig())
		const before, lasts, after = 400, 40, 60
		x.one = func(f, hop uint32) float64 {
			if f == 17 && hop == 30 && x.window > before && x.window <= before+lasts {
				return 3
			}
			return 1
		}
		var out []inference.Finding
		for range before + lasts + after {
			out = append(out, beginningsAndEnds(d.Step(x.next()))...)
		}
		if len(out) != 2 || out[0].ID != out[1].ID || out[1].End == 0 || len(d.Open()) != 0 {
			t.Fatalf("seed %d: %+v", seed, out)
		}
		f := &out[0]
		if f.Kind != inference.HighLatency || f.Element != inference.ElementOfFlow(flow(17)) || f.Flow != flow(17) || f.Learning ||
			f.Start > (before+3)*1e10 || out[1].End < (before+lasts)*1e10 || out[1].End > (before+lasts+20)*1e10 ||
			f.Value < 1.4*f.Baseline || !strings.Contains(f.Text, flow(17).String()) || !strings.Contains(f.Text, "most of the difference is at node 30") {
			t.Errorf("seed %d: %+v\n%+v", seed, f, out[1])
		}
	}
}

// beginningsAndEnds leaves out that a finding rests.
func beginningsAndEnds(list []inference.Finding) []inference.Finding {
	return slices.DeleteFunc(slices.Clone(list), func(f inference.Finding) bool { return f.Resting && f.End == 0 })
}

// TestFlowEndsWithGaps: a flow that is not there in one window of four is slow once, and is so no more.
func TestFlowEndsWithGaps(t *testing.T) {
	for seed := range uint64(10) {
		x := newTraffic(seed)
		const before, lasts = 500, 40
		x.busy = func(window int64) []busyNow {
			if window%4 == 0 {
				return nil
			}
			return steady(1, 500)
		}
		x.one = func(_, hop uint32) float64 {
			if hop == 30 && x.window > before && x.window <= before+lasts {
				return 4
			}
			return 1
		}
		d := New(DefaultConfig())
		var out []inference.Finding
		for range before + lasts + 40 {
			out = append(out, beginningsAndEnds(d.Step(x.next()))...)
		}
		if len(out) != 2 || out[1].End < (before+lasts)*1e10 {
			t.Errorf("seed %d: %+v", seed, out)
		}
	}
}

// TestFlowsFewReports: with fewer reports than it takes, and on paths that are not known, nothing is judged.
func TestFlowsFewReports(t *testing.T) {
	for name, spoil := range map[string]func(*inference.FlowStats){
		"few":      func(f *inference.FlowStats) { f.Hops[1].Latency.Count = 99 },
		"partial":  func(f *inference.FlowStats) { f.Partial = true },
		"sprayed":  func(f *inference.FlowStats) { f.Share = .5 },
		"inferred": func(f *inference.FlowStats) { f.Hops[0].Inferred = true },
		"changes":  func(f *inference.FlowStats) { f.Changes = f.Hops[0].Node + uint32(f.Hops[0].Latency.P50) },
	} {
		x := newTraffic(1, steady(10, 150)...)
		d := New(DefaultConfig())
		x.one = func(f, _ uint32) float64 { return 1 + 9*float64(x.window/200%2) }
		for range 600 {
			w := x.next()
			for i := range w.Flows {
				spoil(&w.Flows[i])
			}
			if out := d.Step(w); len(out) > 0 {
				t.Errorf("%s: %+v", name, out)
			}
		}
	}
}

// TestFlowsOneCause: a hop gets slow, and 50 flows with it. That is one cause, at the hop.
func TestFlowsOneCause(t *testing.T) {
	for seed := range uint64(10) {
		x := newTraffic(seed, steady(50, 400)...)
		d := New(DefaultConfig())
		const before, lasts, after = 400, 40, 60
		x.all = func(hop uint32) float64 {
			if hop == 21 && x.window > before && x.window <= before+lasts {
				return 5
			}
			return 1
		}
		causes, flows := map[uint64]bool{}, 0
		for range before + lasts {
			d.Step(x.next())
		}
		for _, f := range d.Open() {
			switch {
			case f.Cause != 0:
				causes[f.Cause] = true
				if f.Element.Kind == inference.FlowElement {
					flows++
				}
			case f.Evidence == 0 || f.Element.Node != 21 && f.Element.Peer != 21 || f.Kind != inference.HighLatency:
				t.Errorf("seed %d: %+v", seed, f)
			default:
				causes[f.ID] = true
			}
		}
		if len(causes) != 1 || flows < 10 {
			t.Errorf("seed %d: %d causes of %d flows", seed, len(causes), flows)
		}
		for range after {
			d.Step(x.next())
		}
		if len(d.Open()) > 0 {
			t.Errorf("seed %d: %+v is still open", seed, d.Open()[0])
		}
	}
}

// TestFlowsQuiet: flows that stay, flows that come and go and flows whose path changes cause no findings while nothing
// happens to them. It uses three times the accepted findings, over 0.35 days of windows. Three false findings of hops
// and flows are expected in these at most.
func TestFlowsQuiet(t *testing.T) {
	testkit.Long(t)
	cfg := DefaultConfig()
	x := newTraffic(9)
	churn := rand.New(rand.NewPCG(9, 6))
	detour := map[uint32]bool{}
	x.path = func(f uint32) []inference.HopKey {
		if detour[f] {
			return places(10+f%7, 20+f%3, 22-f%2, 30)
		}
		return places(10+f%7, 20+f%3, 30)
	}
	x.busy = func(int64) []busyNow {
		out := steady(40, 300)
		for f := uint32(100); f < 140; f++ {
			if churn.IntN(3) > 0 {
				out = append(out, busyNow{f, 20 + churn.Uint64N(300)})
			}
		}
		for range 20 {
			out = append(out, busyNow{1000 + churn.Uint32N(100_000), 100 + churn.Uint64N(5000)})
		}
		if f := 1 + churn.Uint32N(40); churn.IntN(30) == 0 {
			detour[f] = !detour[f]
			x.change[f]++
		}
		return out
	}
	d := New(cfg)
	n := 0
	for range 3000 {
		for _, f := range d.Step(x.next()) {
			if f.Start == x.window*1e10 && f.End == 0 {
				n++
				t.Log(f.Text)
			}
		}
	}
	if n > 3 {
		t.Errorf("%d findings", n)
	}
}

// TestFlowsBounded: flows that come and go take no more places than there are. They take none from flows that stay,
// some of which are at the edge of the busiest.
func TestFlowsBounded(t *testing.T) {
	cfg := DefaultConfig()
	cfg.BusyFlows = 30
	x := newTraffic(3)
	churn := rand.New(rand.NewPCG(3, 6))
	x.busy = func(int64) []busyNow {
		var out []busyNow
		for range 100 {
			out = append(out, busyNow{1000 + churn.Uint32N(1e6), 1000})
		}
		for f := uint32(1); f <= 10; f++ {
			if f <= 5 || churn.IntN(5) > 0 {
				out = append(out, busyNow{f, 200})
			}
		}
		churn.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		return out
	}
	d, idle := New(cfg), New(cfg)
	quiet := newTraffic(3)
	for range 600 {
		d.Step(x.next())
		idle.Step(quiet.next())
		if n := len(detectorOf[*flows](t, d).List); n > cfg.BusyFlows {
			t.Fatalf("%d flows, want %d at most", n, cfg.BusyFlows)
		}
	}
	kept := 0
	for f := uint32(1); f <= 10; f++ {
		if s := detectorOf[*flows](t, d).Index[flow(f)]; s != nil && s.State.stays > 100 {
			kept++
		}
	}
	if kept != 10 {
		t.Errorf("%d of 10 flows that stay have their places", kept)
	}
	const perFlow = 1600
	wires := 100 * 24 * 10 // what the paths show of links
	if n := len(d.AppendState(nil)) - len(idle.AppendState(nil)); n > cfg.BusyFlows*perFlow+wires {
		t.Errorf("%d bytes of state for %d flows", n, cfg.BusyFlows)
	}
}

// TestFlowMoves: a flow that takes a longer path is not slow, and is judged anew there. One that is back at once, or
// whose path is not known for a while, is judged as before.
func TestFlowMoves(t *testing.T) {
	for _, away := range []int64{1, 2, 400} {
		x := newTraffic(4, steady(5, 500)...)
		const before = 400
		x.path = func(f uint32) []inference.HopKey {
			if f == 2 && x.window > before && x.window <= before+away {
				return places(12, 20, 21, 22, 30)
			}
			return places(10+f%7, 20+f%3, 30)
		}
		x.one = func(f, hop uint32) float64 {
			if f == 2 && hop == 30 && (x.window > before+away && x.window < before+away+20 || x.window > before+200 && x.window < before+220) {
				return 4
			}
			return 1
		}
		d := New(DefaultConfig())
		var out []inference.Finding
		for range before + 450 {
			out = append(out, beginningsAndEnds(d.Step(x.next()))...)
		}
		starts := 0
		for _, f := range out {
			if f.End == 0 {
				starts++
				if at := f.Start/1e10 - before; f.Flow != flow(2) || away < 3 && at > 205 || away > 3 && (at < 200 || at > 205) || away < 3 && at > away+3 && at < 200 {
					t.Errorf("away for %d: %+v", away, f)
				}
			}
		}
		if want := map[bool]int{true: 2, false: 1}[away < 3]; starts != want {
			t.Errorf("away for %d: %d findings, want %d: %+v", away, starts, want, out)
		}
	}
}

// TestFlowsRestart stops the detector in every window and goes on from its bytes. Its flows are slow at times, change
// their paths, come and go. It finds the same as one that never stopped.
func TestFlowsRestart(t *testing.T) {
	x := newTraffic(7)
	churn := rand.New(rand.NewPCG(7, 6))
	x.one = func(f, hop uint32) float64 {
		if hop == 30 && f%4 == uint32(x.window/30%9) {
			return 6
		}
		return 1
	}
	x.path = func(f uint32) []inference.HopKey { return places(10+(f+uint32(x.window/97))%7, 20+f%3, 30) }
	x.busy = func(int64) (out []busyNow) {
		for f := uint32(1); f <= 20; f++ {
			if churn.IntN(8) > 0 {
				out = append(out, busyNow{f, 80 + churn.Uint64N(300)})
			}
		}
		return out
	}
	cfg := DefaultConfig()
	cfg.Warmup, cfg.BusyFlows = 30, 15
	a, b := New(cfg), New(cfg)
	reported := 0
	for range 400 {
		w := x.next()
		state := b.AppendState(nil)
		b = New(cfg)
		if err := b.ReadState(state); err != nil {
			t.Fatal(err)
		}
		findings := a.Step(w)
		reported += len(findings)
		if want, got := fmt.Sprint(findings), fmt.Sprint(b.Step(w)); got != want {
			t.Fatalf("window %d:\n%s, want\n%s", x.window, got, want)
		}
	}
	if reported < 20 || !bytes.Equal(a.AppendState(nil), b.AppendState(nil)) || a.Stats() != b.Stats() {
		t.Errorf("%d findings, %+v, want %+v", reported, b.Stats(), a.Stats())
	}
}

// TestFlowBornInFault: a flow that begins while a hop of its way is slow learns nothing of that. The end of the fault
// is no finding of the flow.
func TestFlowBornInFault(t *testing.T) {
	for seed := range uint64(10) {
		x := newTraffic(seed)
		const before, born, lasts = 500, 520, 100
		x.busy = func(window int64) []busyNow {
			if window > born {
				return steady(20, 400)
			}
			return nil
		}
		x.all = func(hop uint32) float64 {
			if hop == 30 && x.window > before && x.window <= before+lasts {
				return 20
			}
			return 1
		}
		d := New(DefaultConfig())
		for range before + lasts + 200 {
			for _, f := range d.Step(x.next()) {
				if f.Element.Kind == inference.FlowElement {
					t.Errorf("seed %d, window %d: %+v", seed, x.window, f)
				}
			}
		}
		if n := d.journal.Judged(); n != 20 {
			t.Errorf("seed %d: %d of 20 flows are judged in the end", seed, n)
		}
	}
}
