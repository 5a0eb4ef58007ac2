package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web"
)

// newPage is the page of a collector, without a socket.
func newPage(t *testing.T) *web.Server {
	t.Helper()
	p, err := web.New(web.DefaultConfig(), web.Deps{Status: func() web.Status { return web.Status{} }, Ledger: func() []sink.Balance { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestControlProbes: probes of emulated agents tell a collector of their hops, and a control without any finding asks its page over
// HTTP. A line that fills is suspected for what probes met there, and cleared afterwards; a page that is gone changes nothing, and a
// collector that begins anew raises nothing.
func TestControlProbes(t *testing.T) {
	const faulty = "agg-0-0:3--core-0:1"
	fault := emu.Fault{Kind: emu.CrossTraffic, At: 280 * time.Second, For: 12 * time.Second, Node: "agg-0-0", Peer: "core-0", Value: 0.95}
	const gone, back, until = 390 * time.Second, 400 * time.Second, 440 * time.Second
	s, c, _ := newSteered(t, func(cfg *emu.Config) { cfg.Script, cfg.Repeat = []emu.Fault{fault}, 0 }, until, func(c *config) { c.Flows.TopFlows = 60 }) // of more flows, and busier ones
	var page atomic.Pointer[web.Server]
	page.Store(newPage(t))
	c.AddWriter(writesTo{&page})
	reach := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !reach {
			http.Error(w, "gone", http.StatusServiceUnavailable)
			return
		}
		r.Host = "127.0.0.1"
		page.Load().Handler().ServeHTTP(w, r)
	}))
	defer server.Close()
	cfg := suspicion.DefaultConfig()
	cfg.LatencyFloor, cfg.Floors = leastLatencyFloor, slices.Repeat([]float64{1.2e6}, s.links.graph.NumInterfaces()) // a full packet
	x, err := newSuspects(cfg, s.links, s.probes, s.suspects.probes.passed, 200*time.Millisecond, s.probing)
	if err != nil {
		t.Fatal(err)
	}
	ask := asker{url: server.URL, format: "table"}
	var raised, cleared time.Duration
	last := time.Duration(-1)
	s.each = func(at time.Duration) {
		if at/demoCycle == last {
			return
		}
		last = at / demoCycle
		if at > gone && at < back {
			reach = false
		}
		if at > back && !reach {
			page.Store(newPage(t))
			reach = true
		}
		if err := x.probes.ask(t.Context(), &ask); (err == nil) != reach {
			t.Errorf("at %v: %v, reached %v", at, err, reach)
		}
		if w := page.Load(); at > 10*time.Second && at < gone && at/demoCycle%10 == 0 {
			var got probesAnswer
			r := httptest.NewRecorder()
			w.Handler().ServeHTTP(r, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/api/probes", nil))
			if err := json.Unmarshal(r.Body.Bytes(), &got); err != nil || len(got.Windows) == 0 {
				t.Fatalf("at %v: %v, %s", at, err, r.Body)
			}
			if x := got.Windows[len(got.Windows)-1]; x.Bound == 0 || len(x.Probes) < len(s.probes)-1 {
				t.Errorf("at %v: %d of %d probes are listed, and flows up to %d reports left out", at, len(x.Probes), len(s.probes), x.Bound)
			}
		}
		here := false
		for _, l := range x.Suspects(s.epoch.Add(at).UnixNano()) {
			if at < fault.At || at > fault.At+fault.For+90*demoCycle {
				t.Errorf("suspected at %v: %s, %s", at, l.Link, l.Why)
			}
			if l.Link == faulty {
				here = true
				if raised == 0 {
					raised = at
					t.Logf("suspected at %v: %s", at, l.Why)
					if !strings.Contains(l.Why, "its queue rose") && !strings.Contains(l.Why, "the time in the switch before it rose") {
						t.Errorf("why: %s", l.Why)
					}
				}
			}
		}
		if raised > 0 && !here && cleared == 0 {
			cleared = at
			t.Logf("cleared at %v", at)
		}
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if raised < fault.At || raised > fault.At+10*demoCycle || cleared < fault.At+fault.For {
		t.Errorf("suspected at %v and cleared at %v; the fault is from %v to %v", raised, cleared, fault.At, fault.At+fault.For)
	}
	if n := x.probes.strange; n > 0 {
		t.Errorf("%d probes took no way of the plan", n)
	}
}

// writesTo writes to the page of the moment.
type writesTo struct{ page *atomic.Pointer[web.Server] }

func (writesTo) Name() string { return "page" }

func (w writesTo) WriteWindow(ctx context.Context, x *sink.Window) error {
	return w.page.Load().WriteWindow(ctx, x)
}

// TestProbesAnswers: an answer that cannot be is refused whole, with the reason, and what came before stands.
func TestProbesAnswers(t *testing.T) {
	s, _, _ := newSteered(t, func(*emu.Config) {}, 0)
	f := s.suspects.probes
	f.least = 0 // every window is judged
	var way []string
	for _, i := range f.passed[0] {
		way = append(way, fmt.Sprintf(`{"node": %d, "egress_if": %d, "latency_ns": {"count": 5, "p50": 10, "p90": 20, "p99": 30}}`, s.links.ids[s.links.graph.Node(int(i))], s.links.graph.Port(int(i))))
	}
	const flow = "10.0.0.1:49152 > 10.0.0.2:17769 udp"
	answer := func(start, end, flow, reports, hops string) string {
		return fmt.Sprintf(`{"windows": [{"start_ms": %s, "end_ms": %s, "probes": [{"flow": %q, "reports": %s, "hops": [%s]}]}]}`, start, end, flow, reports, hops)
	}
	good := answer("1000", "2000", flow, "5", strings.Join(way, ","))
	body := good
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }))
	defer server.Close()
	ask := asker{url: server.URL, format: "table"}
	if err := f.ask(t.Context(), &ask); err != nil {
		t.Fatal(err)
	}
	var c suspicion.Cycle
	if f.cycle(&c, demoCycle); c.Stands || len(c.Hops) != len(way) || c.Hops[0].Latency.Count != 5 || c.Hops[0].Latency.P90 != 20 || c.Window != demoCycle || f.newest() != 2000 {
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
		{`{"windows": [` + strings.Repeat(`{},`, 100) + `{}]}`, "101 windows"},
		{`[]`, "json"},
	} {
		body = x.body
		if err := f.ask(t.Context(), &ask); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%.200s: %v, want %q", x.body, err, x.want)
		}
		var c suspicion.Cycle
		if f.cycle(&c, demoCycle); !c.Stands {
			t.Errorf("%.200s: taken: %+v", x.body, c)
		}
	}
	// What no probe of the plan can have passed is left out, and said; windows that were there before are not taken again.
	for _, x := range []struct {
		body string
		hops int
	}{{answer("2000", "3000", flow, "5", hop("null")), 0}, {answer("3000", "4000", "10.0.0.1:1 > 10.0.0.2:2 tcp", "5", way[0]), 0}} {
		body = x.body
		if err := f.ask(t.Context(), &ask); err != nil {
			t.Error(err)
		}
		var c suspicion.Cycle
		if f.cycle(&c, demoCycle); c.Stands || len(c.Hops) != x.hops {
			t.Errorf("%.200s: %+v", x.body, c)
		}
	}
	if f.strange != 1 || f.stray {
		t.Errorf("%d probes of no way, want 1; in the last window: %t", f.strange, f.stray)
	}
	body = strings.Replace(answer("4000", "5000", "10.0.0.1:1 > 10.0.0.2:2 tcp", "5", way[0]), `"end_ms"`, `"flow_bound": 7, "end_ms"`, 1)
	if err := f.ask(t.Context(), &ask); err != nil || !f.hidden {
		t.Errorf("a window that left flows out and has no probe: %v, hidden %v", err, f.hidden)
	}
	f.cycle(&suspicion.Cycle{}, demoCycle)
	body = good
	if err := f.ask(t.Context(), &ask); err != nil {
		t.Error(err)
	}
	// A page whose clock was set back has nothing newer.
	for n := 1; n < 62; n++ {
		if f.quiet != n || f.silent(time.Second) != (n > 60) {
			t.Fatalf("after %d answers without a new window: %d, silent %t", n, f.quiet, f.silent(time.Second))
		}
		if err := f.ask(t.Context(), &ask); err != nil {
			t.Fatal(err)
		}
	}
	body = answer("5000", "6000", flow, "5", strings.Join(way, ","))
	if err := f.ask(t.Context(), &ask); err != nil || f.silent(time.Second) {
		t.Errorf("with a new window: %v, silent %t", err, f.silent(time.Second))
	}
	f.cycle(&suspicion.Cycle{}, demoCycle)
	body = good
	var again suspicion.Cycle
	if f.cycle(&again, demoCycle); !again.Stands {
		t.Errorf("taken again: %+v", again)
	}
}

// TestProbesFollow: what probes told of a network is not judged by the links of another one.
func TestProbesFollow(t *testing.T) {
	f := newProbeFeed(&directions{}, [][]int32{{0, 1}}, time.Millisecond)
	f.span, f.sums[1] = 10*f.least, &hopSum{latency: quantileSum{count: 20, p50: 1, p90: 1, p99: 1}}
	next := newProbeFeed(&directions{}, [][]int32{{1, 0}}, time.Second)
	f.follow(next)
	var c suspicion.Cycle
	if f.cycle(&c, time.Second); !c.Stands || len(c.Hops) > 0 {
		t.Errorf("%+v is judged", c)
	}
	if f.links != next.links || f.least != next.least || len(f.ways) != 1 || f.ways[string(appendWay(nil, []int32{1, 0}))] != 0 {
		t.Errorf("it follows %+v", f)
	}
}

// TestLatencyFloors: what a full packet takes on a line that the topology knows is the floor of that line, unless the settings have one for all.
func TestLatencyFloors(t *testing.T) {
	dir, config, _, _ := controlSettings(t, "http://127.0.0.1:1")
	lab := filepath.Join(dir, "lab.yaml")
	text := strings.NewReplacer("links: [[leaf-1, spine-1], ", "links: [{a: leaf-1, b: spine-1, bandwidth_gbps: 0.01, reverse: {bandwidth_gbps: 0.1}}, ",
		"[leaf-2, spine-1]", "{a: leaf-2, b: spine-1, bandwidth_gbps: 100}").Replace(string(mustRead(t, lab)))
	if err := os.WriteFile(lab, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := readControlConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	x, err := readControlled(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	floors := x.links.packetTimes(leastLatencyFloor)
	for name, want := range map[string]float64{"leaf-1:1--spine-1:1": 1.2e6, "spine-1:1--leaf-1:1": 120e3, "leaf-2:1--spine-1:2": 10e3, "leaf-1:2--spine-2:1": 10e3} {
		if i, ok := x.links.byName[name]; !ok || floors[i] != want {
			t.Errorf("%s: %v, floor %v, want %v", name, ok, floors[i], want)
		}
	}
}
