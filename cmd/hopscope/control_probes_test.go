package main

import (
	"context"
	"encoding/json"
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
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/steer"
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

// TestControlProbes: probes of emulated agents report their hops to a collector, and a control without any finding asks
// its page over HTTP. A line that fills is suspected by the measurements of probes, and cleared afterwards. A page that
// is gone changes nothing, and a restarted collector raises nothing.
func TestControlProbes(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
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
	probes := *s.Config
	probes.Suspicion = suspicion.DefaultConfig()
	probes.Suspicion.LatencyFloor, probes.Suspicion.Floors = steer.LeastLatencyFloor, slices.Repeat([]float64{1.2e6}, s.Network.Graph().NumInterfaces()) // a full packet
	x, err := steer.New(&probes)
	if err != nil {
		t.Fatal(err)
	}
	ask := pageOf(server.URL, "", "collector.url")
	var raised, cleared time.Duration
	last := time.Duration(-1)
	s.each = func(at time.Duration) {
		if at/steer.EmulatedCycle == last {
			return
		}
		last = at / steer.EmulatedCycle
		if at > gone && at < back {
			reach = false
		}
		if at > back && !reach {
			page.Store(newPage(t))
			reach = true
		}
		if err := x.Feed.Ask(t.Context(), ask); (err == nil) != reach {
			t.Errorf("at %v: %v, reached %v", at, err, reach)
		}
		if w := page.Load(); at > 10*time.Second && at < gone && at/steer.EmulatedCycle%10 == 0 {
			var got struct {
				Windows []struct {
					Bound  uint64 `json:"flow_bound"`
					Probes []json.RawMessage
				}
			}
			r := httptest.NewRecorder()
			w.Handler().ServeHTTP(r, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/api/probes", nil))
			if err := json.Unmarshal(r.Body.Bytes(), &got); err != nil || len(got.Windows) == 0 {
				t.Fatalf("at %v: %v, %s", at, err, r.Body)
			}
			if x := got.Windows[len(got.Windows)-1]; x.Bound == 0 || len(x.Probes) < len(s.Config.Probes)-1 {
				t.Errorf("at %v: %d of %d probes are listed, and flows up to %d reports left out", at, len(x.Probes), len(s.Config.Probes), x.Bound)
			}
		}
		here := false
		for _, l := range x.Suspects(s.epoch.Add(at).UnixNano()) {
			if at < fault.At || at > fault.At+fault.For+90*steer.EmulatedCycle {
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
	if raised < fault.At || raised > fault.At+10*steer.EmulatedCycle || cleared < fault.At+fault.For {
		t.Errorf("suspected at %v and cleared at %v; the fault is from %v to %v", raised, cleared, fault.At, fault.At+fault.For)
	}
	if n := x.Feed.Unplanned(); n > 0 {
		t.Errorf("%d probes took no way of the plan", n)
	}
}

// writesTo writes to the page of the moment.
type writesTo struct{ page *atomic.Pointer[web.Server] }

func (writesTo) Name() string { return "page" }

func (w writesTo) WriteWindow(ctx context.Context, x *sink.Window) error {
	return w.page.Load().WriteWindow(ctx, x)
}

// TestLatencyFloors: the latency floor of a line is the transmission time of a full packet at its topology's rate. A
// setting for all lines takes precedence.
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
	x, err := steer.ReadNetwork(cfg.network())
	if err != nil {
		t.Fatal(err)
	}
	floors := x.Config.Links.PacketTimes(steer.LeastLatencyFloor)
	for name, want := range map[string]float64{"leaf-1:1--spine-1:1": 1.2e6, "spine-1:1--leaf-1:1": 120e3, "leaf-2:1--spine-1:2": 10e3, "leaf-1:2--spine-2:1": 10e3} {
		if i, ok := x.Config.Links.Lookup(name); !ok || floors[i] != want {
			t.Errorf("%s: %v, floor %v, want %v", name, ok, floors[i], want)
		}
	}
}
