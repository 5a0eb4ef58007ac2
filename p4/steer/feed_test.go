package steer

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/planner/control"
)

// TestProbesAnswers: an answer that cannot be is refused whole, with the reason, and what came before stands.
func TestProbesAnswers(t *testing.T) {
	emulated, err := scenario.PINTDemo()
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewEmulated(emulated, 1, nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	f := s.Suspects.Feed
	f.least = 0 // every window is judged
	var way []string
	for _, i := range f.passed[0] {
		way = append(way, fmt.Sprintf(`{"node": %d, "egress_if": %d, "latency_ns": {"count": 5, "p50": 10, "p90": 20, "p99": 30}}`, s.Links.ids[s.Links.graph.Node(int(i))], s.Links.graph.Port(int(i))))
	}
	const flow = "10.0.0.1:49152 > 10.0.0.2:17769 udp"
	answer := func(start, end, flow, reports, hops string) string {
		return fmt.Sprintf(`{"windows": [{"start_ms": %s, "end_ms": %s, "probes": [{"flow": %q, "reports": %s, "hops": [%s]}]}]}`, start, end, flow, reports, hops)
	}
	good := answer("1000", "2000", flow, "5", strings.Join(way, ","))
	body := good
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
	defer server.Close()
	page := &Page{URL: server.URL, Get: func(_ context.Context, path string, into any) error {
		r, err := http.Get(server.URL + path)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		return json.NewDecoder(r.Body).Decode(into)
	}}
	if err := f.Ask(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	var c suspicion.Cycle
	if f.cycle(&c, EmulatedCycle); c.NoNewWindow || len(c.Hops) != len(way) || c.Hops[0].Latency.Count != 5 || c.Hops[0].Latency.P90 != 20 || c.Window != EmulatedCycle || f.newest() != 2000 {
		t.Fatalf("cycle %+v, newest %d", c, f.newest())
	}
	hop := func(text string) string { return `{"node": 1, "egress_if": 1, "latency_ns": ` + text + `}` }
	for _, x := range []struct{ body, want string }{
		{answer("2000", "3000", flow, "5", hop(`{"count": 5, "p50": -1, "p90": 2, "p99": 3}`)), "json"},
		{answer("2000", "3000", flow, "5", hop(`{"count": 5, "p50": NaN, "p90": 2, "p99": 3}`)), "invalid character"},
		{answer("2000", "3000", flow, "5", hop(`{"count": 5, "p50": 1e99, "p90": 2, "p99": 3}`)), "json"},
		{answer("2000", "3000", flow, "5", hop(`{"count": 5, "p50": 3, "p90": 2, "p99": 3}`)), "are no quantiles"},
		{answer("2000", "3000", flow, "5", hop(`{"count": 5, "p50": 3, "p90": 3, "p99": 18446744073709551615}`)), "are no quantiles"},
		{answer("2000", "3000", flow, "5", hop(`{"count": 6, "p50": 1, "p90": 2, "p99": 3}`)), "6 values of 5 reports"},
		{answer("2000", "3000", flow, "18446744073709551615", ""), "reports of 0 hops"},
		{answer("2000", "3000", "nonsense", "5", ""), "is no flow"},
		{answer("3000", "2000", flow, "5", ""), "is no window"},
		{answer("-1", "3000", flow, "5", ""), "is no window"},
		{answer("9000000000000000", "9000000000001000", flow, "5", ""), "ahead of the clock"},
		{answer("2000", "3000", flow, "5", strings.Repeat(hop("null")+",", 100)+hop("null")), "of 101 hops"},
		{strings.Replace(answer("2000", "3000", flow, "5", ""), `"probes"`, `"links": [{"node": 1, "packets": 0}], "probes"`, 1), "0 ns of 0 packets"},
		{strings.Replace(answer("2000", "3000", flow, "5", ""), `"probes"`, `"links": [{"node": 1, "packets": 1, "least_ns": -9000000000000000000}], "probes"`, 1), "ns of 1 packets"},
		{strings.Replace(answer("2000", "3000", flow, "5", ""), `"probes"`, `"links": [{"node": 1, "packets": 1, "least_ns": 1e99}], "probes"`, 1), "json"},
		{`{"windows": [` + strings.Repeat(`{},`, 100) + `{}]}`, "101 windows"},
		{`[]`, "json"},
	} {
		body = x.body
		if err := f.Ask(t.Context(), page); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%.200s: %v, want %q", x.body, err, x.want)
		}
		var c suspicion.Cycle
		if f.cycle(&c, EmulatedCycle); !c.NoNewWindow {
			t.Errorf("%.200s: taken: %+v", x.body, c)
		}
	}
	// What no probe of the plan can have passed is left out, and said; windows that were there before are not taken again.
	for _, x := range []struct {
		body string
		hops int
	}{{answer("2000", "3000", flow, "5", hop("null")), 0}, {answer("3000", "4000", "10.0.0.1:1 > 10.0.0.2:2 tcp", "5", way[0]), 0}} {
		body = x.body
		if err := f.Ask(t.Context(), page); err != nil {
			t.Error(err)
		}
		var c suspicion.Cycle
		if f.cycle(&c, EmulatedCycle); c.NoNewWindow || len(c.Hops) != x.hops {
			t.Errorf("%.200s: %+v", x.body, c)
		}
	}
	if f.unplanned != 1 || f.foreign {
		t.Errorf("%d probes of no way, want 1; in the last window: %t", f.unplanned, f.foreign)
	}
	body = strings.Replace(answer("4000", "5000", "10.0.0.1:1 > 10.0.0.2:2 tcp", "5", way[0]), `"end_ms"`, `"flow_bound": 7, "end_ms"`, 1)
	if err := f.Ask(t.Context(), page); err != nil || !f.unlisted {
		t.Errorf("a window that left flows out and has no probe: %v, hidden %v", err, f.unlisted)
	}
	f.cycle(&suspicion.Cycle{}, EmulatedCycle)
	body = good
	if err := f.Ask(t.Context(), page); err != nil {
		t.Error(err)
	}
	// A page whose clock was set back has nothing newer.
	for n := 1; n < 62; n++ {
		if f.unchanged != n || f.stale(time.Second) != (n > 60) {
			t.Fatalf("after %d answers without a new window: %d, silent %t", n, f.unchanged, f.stale(time.Second))
		}
		if err := f.Ask(t.Context(), page); err != nil {
			t.Fatal(err)
		}
	}
	body = answer("5000", "6000", flow, "5", strings.Join(way, ","))
	if err := f.Ask(t.Context(), page); err != nil || f.stale(time.Second) {
		t.Errorf("with a new window: %v, silent %t", err, f.stale(time.Second))
	}
	f.cycle(&suspicion.Cycle{}, EmulatedCycle)
	body = good
	var second suspicion.Cycle
	if f.cycle(&second, EmulatedCycle); !second.NoNewWindow {
		t.Errorf("taken again: %+v", second)
	}
}

// TestProbesFollow: what probes reported of a network is not judged by the links of another one.
func TestProbesFollow(t *testing.T) {
	f := newFeed(&Links{}, [][]int32{{0, 1}}, time.Millisecond)
	f.span, f.sums[1] = 10*f.least, &hopSum{latency: quantileSum{count: 20, p50: 1, p90: 1, p99: 1}}
	next := newFeed(&Links{}, [][]int32{{1, 0}}, time.Second)
	f.replace(next)
	var c suspicion.Cycle
	if f.cycle(&c, time.Second); !c.NoNewWindow || len(c.Hops) > 0 {
		t.Errorf("%+v is judged", c)
	}
	if f.links != next.links || f.least != next.least || len(f.ways) != 1 || f.ways[string(appendWay(nil, []int32{1, 0}))] != 0 {
		t.Errorf("it follows %+v", f)
	}
}

// TestLineTimes: a direction whose packets take longer than before is suspected by the windows of a collector alone.
// Differences and resets of its two clocks do not matter. Another pair of clocks on the same direction is not mixed
// with the first. Links outside the network are ignored.
func TestLineTimes(t *testing.T) {
	emulated, err := scenario.PINTDemo()
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewEmulated(emulated, 1, nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	const faulty, period = "agg-0-0:3--core-0:1", 1000 << 32
	i, ok := s.Links.Lookup(faulty)
	if !ok {
		t.Fatal("no direction " + faulty)
	}
	g := s.Network.Graph()
	key := func(i int) inference.LinkKey {
		p := g.Peer(i)
		return inference.LinkKey{Node: s.Links.ids[g.Node(i)], EgressIf: uint32(g.Port(i)), Peer: s.Links.ids[g.Node(p)], PeerIf: uint32(g.Port(p)), Period: period}
	}
	rounds := *s.Config
	rounds.Rounds, rounds.Interval = noRounds{}, 50*time.Millisecond
	x, err := New(&rounds)
	if err != nil {
		t.Fatal(err)
	}
	from := int64(0)
	for n := int64(1); n <= 130; n++ {
		w := inference.Window{Start: (n - 1) * 1e9, End: n * 1e9}
		for l := range g.NumInterfaces() {
			if g.Peer(l) < 0 {
				continue
			}
			v := int64(period/2-60e3) + n*1000 // the clocks run apart, and wrap around
			if l > g.Peer(l) {
				v = -v
			}
			if l == i && n > 100 {
				v += 1_000_000
			}
			v += 5000
			if v > period/2 {
				v -= period
			} else if v < -period/2 {
				v += period
			}
			other := key(l)
			other.PeerIf = 0
			w.Links = append(w.Links, inference.LinkStats{LinkKey: key(l), Count: 9, Least: v}, inference.LinkStats{LinkKey: other, Count: 9, Least: 40 * n * n * 1000})
		}
		w.Links = append(w.Links, inference.LinkStats{LinkKey: inference.LinkKey{Node: 4_000_000, Peer: 1}, Count: 1, Least: n})
		x.Observe(&w, nil)
		for _, l := range x.Suspects(w.End) {
			if l.Link != faulty || n <= 100 {
				t.Fatalf("in window %d %s is suspected: %s", n, l.Link, l.Why)
			}
			if from == 0 {
				from = n
				t.Logf("in window %d: %s", n, l.Why)
			}
		}
	}
	if from == 0 || from > 102 {
		t.Errorf("suspected from window %d on, want 101 or 102", from)
	}
}

// TestTransits: a direction with waiting probes is suspected by the times in switches that agents report, without a
// collector. Nothing is where agents report none.
func TestTransits(t *testing.T) {
	emulated, err := scenario.PINTDemo()
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewEmulated(emulated, 1, nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range []bool{true, false} {
		faulty, n := s.Config.Passed[0][0], 0
		c := *s.Config
		c.Rounds = drainRounds(func() (list []loop.ProbeRounds) {
			for k, way := range c.Passed {
				r := loop.ProbeRounds{Probe: int32(k), Sent: 10}
				if known {
					r.Transit = 1e6 + float64(n*7919%1000)
				}
				if known && n > 100 && slices.Contains(way, faulty) {
					r.Transit += 50e6
				}
				list = append(list, r)
			}
			return list
		})
		x, err := New(&c)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for n = 1; n <= 105; n++ {
			list := x.Suspects(int64(n) * 1e9)
			if len(list) > 0 && (!known || n <= 100) {
				t.Fatalf("in cycle %d, with times %t: %+v", n, known, list)
			}
			found = found || slices.ContainsFunc(list, func(l control.Suspect) bool { return l.Link == s.Links.Name(int(faulty)) })
		}
		if found != known {
			t.Errorf("with times %t, suspected %t", known, found)
		}
	}
}

type drainRounds func() []loop.ProbeRounds

func (f drainRounds) Drain() ([]loop.ProbeRounds, bool) { return f(), true }

type noRounds struct{}

func (noRounds) Drain() ([]loop.ProbeRounds, bool) { return nil, false }
