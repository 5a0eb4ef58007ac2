package web

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// replace passes a window of a fleet to srv, which never refuses it.
func replace(srv *Server, w *inference.Window, missing ...string) {
	if err := srv.ReplaceWindow(context.Background(), sink.NewWindow("fleet", w, nil), missing); err != nil {
		panic(err)
	}
}

// A window that comes again replaces the kept one, also when rows of it are gone.
func TestReplaceWindow(t *testing.T) {
	srv, err := New(DefaultConfig(), sceneDeps(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	ends := [3]int64{10e9, 20e9, 30e9}
	hop := func(node uint32, count uint64) inference.HopStats {
		return inference.HopStats{HopKey: inference.HopKey{Node: node}, Count: count}
	}
	exporter := func(reports uint64) inference.ExporterStats {
		return inference.ExporterStats{ExporterKey: inference.ExporterKey{Addr: decode.AddrFrom4([]byte{192, 0, 2, 1})}, Reports: reports, Lost: 1}
	}
	key := mustFlow("10.0.0.1:1 > 10.0.0.2:2 udp")
	change := func(at int64, to uint32) inference.PathChange {
		return inference.PathChange{Time: at, Flow: key, From: []inference.HopKey{{Node: 1}}, To: []inference.HopKey{{Node: to}}}
	}
	for i, end := range ends {
		replace(srv, &inference.Window{End: end, Reports: 10, Hops: []inference.HopStats{hop(1, 5), hop(2, 5)}, Exporters: []inference.ExporterStats{exporter(10)},
			Paths: []inference.PathChange{change(end-1e6, uint32(7+i))}}, "b")
	}
	replace(srv, &inference.Window{End: ends[1], Reports: 12, Hops: []inference.HopStats{hop(1, 12)}, Exporters: []inference.ExporterStats{exporter(12)},
		Paths: []inference.PathChange{change(ends[1]-2e6, 99), change(ends[1]-1e6, 8)}})
	var m struct {
		Windows  []int64
		Reports  []uint64
		Missing  map[string][]string
		Replaced int
		Hops     []struct{ Values []*float64 }
	}
	get(t, srv, "/api/windows?metric=count", &m)
	if want := []uint64{10, 12, 10}; !reflect.DeepEqual(m.Reports, want) {
		t.Errorf("reports %v, want %v", m.Reports, want)
	}
	if v := m.Hops[0].Values[1]; v == nil || *v != 12 {
		t.Errorf("hop 1 in the window that came again: %v, want 12", v)
	}
	if v := m.Hops[1].Values[1]; v != nil {
		t.Errorf("hop 2 is not in the window that came again: %v, want nothing", *v)
	}
	if want := map[string][]string{"10000": {"b"}, "30000": {"b"}}; !reflect.DeepEqual(m.Missing, want) || m.Replaced != 1 {
		t.Errorf("missing %v, replaced %d; want %v, 1", m.Missing, m.Replaced, want)
	}
	var x struct{ Exporters []struct{ Reports, Lost int } }
	get(t, srv, "/api/exporters", &x)
	if x.Exporters[0].Reports != 32 || x.Exporters[0].Lost != 3 {
		t.Errorf("exporter's sums: %+v, want 32 reports, 3 lost", x.Exporters)
	}
	var f struct {
		Flow    struct{ Changes int }
		Changes []struct {
			MS int64
			To []string
		}
	}
	get(t, srv, "/api/flow?key=10.0.0.1:1+%3E+10.0.0.2:2+udp", &f)
	var to []string
	for _, c := range f.Changes {
		to = append(to, c.To...)
	}
	if got := strings.Join(to, " "); got != "7 99 8 9" {
		t.Errorf("path changes %s, want 7 99 8 9: each once, in order", got)
	}
	// A window in which no collector saw anything is there for the missing collectors, one without either is not.
	replace(srv, &inference.Window{End: 40e9}, "a", "b\x00\u202e")
	replace(srv, &inference.Window{End: 50e9})
	get(t, srv, "/api/windows", &m)
	if len(m.Windows) != 4 || !reflect.DeepEqual(m.Missing["40000"], []string{"a", "b\ufffd\ufffd"}) {
		t.Errorf("windows %v, missing %v", m.Windows, m.Missing)
	}
}

// A collector's answers have nothing of a fleet.
func TestNoFleet(t *testing.T) {
	srv, err := New(DefaultConfig(), sceneDeps(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	newScene(1, 20, 4).fill(srv, 3, time.Now())
	if res := request(srv, http.MethodGet, "/api/fleet"); res.StatusCode != http.StatusNotFound {
		t.Errorf("GET /api/fleet of a collector: %s, want 404", res.Status)
	}
	for path, keys := range map[string][]string{"/api/status": {"fleet"}, "/api/windows": {"missing", "replaced"}} {
		var got map[string]any
		get(t, srv, path, &got)
		for _, k := range keys {
			if _, there := got[k]; there {
				t.Errorf("GET %s of a collector has %q", path, k)
			}
		}
	}
}

func TestFleetAPI(t *testing.T) {
	deps := fleetDeps(time.Now(), fleetScene(time.Now()))
	srv, err := New(DefaultConfig(), deps)
	if err != nil {
		t.Fatal(err)
	}
	replace(srv, &inference.Window{End: 10e9}, "c-3")
	var got struct {
		Name                         string
		Total, Collectors, Consumers int
		States                       map[string]int
		Members                      []roster.Row
		Windows                      []missingWindow
	}
	get(t, srv, "/api/fleet?limit=200", &got)
	var order []string
	for _, m := range got.Members {
		order = append(order, m.Name+" "+m.State)
	}
	if want := "c-4 dead, c-3 missing, c-1 alive, c-2 alive, c-5 left, store-2 missing, store-1 alive"; strings.Join(order, ", ") != want {
		t.Errorf("members %v, want %s", order, want)
	}
	if got.Name != "backbone" || got.Collectors != 5 || got.Consumers != 2 || got.Total != 7 || got.States[roster.Alive] != 3 {
		t.Errorf("summary %+v", got)
	}
	if want := []missingWindow{{10000, []string{"c-3"}}}; !reflect.DeepEqual(got.Windows, want) {
		t.Errorf("windows %+v, want %+v", got.Windows, want)
	}
	get(t, srv, "/api/fleet?limit=2&offset=6", &got)
	if len(got.Members) != 1 || got.Members[0].Name != "store-1" {
		t.Errorf("last page: %+v", got.Members)
	}
	if res := request(srv, http.MethodGet, "/api/fleet?limit=x"); res.StatusCode != http.StatusBadRequest {
		t.Errorf("limit=x: %s", res.Status)
	}
	for page, want := range map[string]string{
		"http://10.0.0.1:8080/": "http://10.0.0.1:8080/", "https://[::1]/x": "https://[::1]/x", "javascript:alert(1)": "", "/relative": "",
		"http://user:word@host/": "", "http://": "", "data:text/html,x": "", "http://a/" + strings.Repeat("x", 2000): "",
	} {
		if got := pageURL(page); got != want {
			t.Errorf("pageURL(%.40q) = %q, want %q", page, got, want)
		}
	}
}

// Which hops of a fleet are learning is said behind their window.
func TestLearningBehind(t *testing.T) {
	srv := serve(t, DefaultConfig(), sceneDeps(sceneTime))
	everybody := func(inference.HopKey) bool { return true }
	srv.Learning(10e9, everybody) // there is nothing yet
	s := inference.Summary{Count: 1, P50: 1, P99: 2}
	window := func(end int64, nodes ...uint32) {
		w := &inference.Window{End: end * 1e9}
		for _, n := range nodes {
			w.Hops = append(w.Hops, inference.HopStats{HopKey: inference.HopKey{Node: n}, Count: 1, Latency: s})
		}
		write(srv, sink.NewWindow("fleet", w, nil))
	}
	learning := func() string {
		var list struct{ Hops []ask.HopRow }
		get(t, srv, "/api/hops?sort=node", &list)
		out := ""
		for _, h := range list.Hops {
			out += fmt.Sprint(h.Node, h.Learning, " ")
		}
		return out
	}
	window(10, 1, 2)
	window(20, 2, 3)
	srv.Learning(20e9, func(k inference.HopKey) bool { return k.Node < 3 })
	if got := learning(); got != "1false 2true 3false " {
		t.Errorf("of the newest window: %s", got)
	}
	srv.Learning(10e9, everybody) // of hops 2 and 3 a later window has said more
	srv.Learning(15e9, func(inference.HopKey) bool { return false })
	if got := learning(); got != "1true 2true 3false " {
		t.Errorf("of an older window: %s", got)
	}
}

// fleetScene is a fleet of which one collector is missing, one dead and one gone.
func fleetScene(now time.Time) *Fleet {
	ms := now.UnixMilli()
	collector := func(i int, state string, faults ...string) roster.Row {
		return roster.Row{Role: "collector", Name: fmt.Sprint("c-", i), State: state, Version: "v0.9.0", Page: fmt.Sprintf("http://10.0.0.%d:8080/", i), Problems: faults,
			StartMS: ms - 3_600_000, UpdatedMS: ms - 2000, WindowMS: ms - 5000, ReportsPerSecond: 40_000, Received: 1_000_000, Stored: 990_000, InFlight: 9_990, Dropped: 10}
	}
	return &Fleet{Name: "backbone", Slices: 16, Members: []roster.Row{
		collector(1, roster.Alive), collector(2, roster.Alive, "clock: set back by 3s"), collector(3, roster.Missing), collector(4, roster.Dead), collector(5, roster.Left),
		{Role: "consumer", Name: "store-1", State: roster.Alive, Version: "v0.9.0", Page: "javascript:window.harm=1", StartMS: ms - 60_000, UpdatedMS: ms, WindowMS: ms - 5000,
			ReportsPerSecond: 80_000, Received: 4_000_000, Stored: 3_900_000, Partitions: 33, Lag: 12, Late: 3, Duplicates: 2, Conflicts: 1, Rebalances: 4},
		{Role: "consumer", Name: "store-2", State: roster.Missing, Version: "v0.8.0", Problems: []string{"influx: connection refused"}, Partitions: 0},
	}}
}

// fleetDeps answer for the console of a fleet.
func fleetDeps(now time.Time, f *Fleet) Deps {
	deps := sceneDeps(now)
	deps.Status = func() Status {
		s := Status{Version: "v0.9.0", Start: now.Add(-time.Minute), Window: 5 * time.Second, ReportsPerSecond: 160_000, Fleet: f}
		for _, m := range f.Members {
			if m.State == roster.Missing || m.State == roster.Dead {
				s.Problems = append(s.Problems, fmt.Sprintf("%s %s: %s", m.Role, m.Name, m.State))
			}
		}
		return s
	}
	deps.Ledger = func() []sink.Balance {
		return []sink.Balance{{Sink: "influx", Received: 5_000_000, Stored: 3_900_000, InFlight: map[string]int64{"window": 49_950, "kafka": 1_000_000, "consumer": 50_000},
			Dropped: map[string]int64{"kernel": 40, "down": 7, "late": 3}}}
	}
	return deps
}
