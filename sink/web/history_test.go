package web

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unsafe"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink/web/ask"
)

const second = int64(1e9)

// hopWindow is a window that has nothing but hops, and hopAt one of them.
func hopWindow(end int64, hops ...inference.HopStats) *inference.Window {
	return &inference.Window{End: end, Hops: hops}
}

func hopAt(node, egressIf uint32, p99 uint64) inference.HopStats {
	return inference.HopStats{HopKey: inference.HopKey{Node: node, EgressIf: egressIf}, Count: 1, Latency: inference.Summary{Count: 1, P99: p99}}
}

// flowN is the key of some flow, and flowOf that flow on a path through nodes.
func flowN(n int) decode.FlowKey {
	return mustFlow(fmt.Sprintf("10.0.%d.%d:80 > 10.1.0.1:5001 tcp", n>>8, n&255))
}

func flowOf(n int, packets uint64, nodes ...uint32) inference.FlowStats {
	f := inference.FlowStats{Key: flowN(n), Packets: packets}
	for _, node := range nodes {
		f.Hops = append(f.Hops, inference.FlowHop{HopKey: inference.HopKey{Node: node}})
	}
	return f
}

func exporterN(n int) inference.ExporterKey {
	return inference.ExporterKey{Addr: decode.AddrFrom4([]byte{192, 0, 2, byte(n)}), Node: 1}
}

func small(change func(*Config)) *history {
	c := DefaultConfig()
	c.HistoryWindows = 4
	if change != nil {
		change(&c)
	}
	return newHistory(&c)
}

func ends(h *history) (out []int64) {
	for n := h.oldest(); n <= h.newest; n++ {
		out = append(out, h.window(n).end/second)
	}
	return out
}

func TestWindows(t *testing.T) {
	h := small(nil)
	for _, at := range []int64{10, 11, 12, 12, 13, 14, 11, 14, 12, 30, 5, 29} {
		w := hopWindow(at*second, hopAt(1, 2, uint64(at)))
		w.Reports = 10
		h.add(w)
	}
	if got, want := fmt.Sprint(ends(h)), "[12 13 14 30]"; got != want {
		t.Errorf("windows end at %s, want %s", got, want)
	}
	// 11 was kept when it came again; 5 is older than everything, 29 lies between two windows.
	if h.late != 2 || h.kept != 10 {
		t.Errorf("%d windows, %d late, want 10, 2", h.kept, h.late)
	}
	s, _ := h.hops.get(inference.HopKey{Node: 1, EgressIf: 2})
	for n := h.oldest(); n <= h.newest; n++ {
		if got, want := h.value(s, n, latencyP99), float32(h.window(n).end/second); got != want {
			t.Errorf("window %d holds %v, want %v", n, got, want)
		}
	}
	if got := h.window(h.newest - 1).reports; got != 20 {
		t.Errorf("the window of two parts has %d reports, want 20", got)
	}
}

// A slot that is used again must not show its former content.
func TestWindowsForget(t *testing.T) {
	h := small(nil)
	w := hopWindow(second, hopAt(1, 1, 7))
	w.Flows = []inference.FlowStats{flowOf(1, 9, 1)}
	w.Flows[0].Hops[0].Latency = inference.Summary{Count: 1, P99: 5}
	w.Exporters = []inference.ExporterStats{{ExporterKey: exporterN(1), Reports: 3}}
	h.add(w)
	hop, _ := h.hops.get(inference.HopKey{Node: 1, EgressIf: 1})
	flow, _ := h.flows.get(flowN(1))
	exporter, _ := h.exporters.get(exporterN(1))
	if i := h.slot(1); hop.cells[i].v[latencyP99] != 7 || flow.cells[i].packets != 9 || flow.positions[0].cells[i].p99 != 5 || exporter.cells[i].reports != 3 {
		t.Errorf("the window is kept as %+v, %+v, %+v, %+v", hop.cells[i], flow.cells[i], flow.positions[0].cells[i], exporter.cells[i])
	}
	for at := int64(2); at < 9; at++ {
		h.add(hopWindow(at*second, hopAt(2, 1, 7)))
	}
	for i := range h.cap {
		if hop.cells[i].seen || flow.cells[i].seen || flow.positions[0].cells[i].seen || exporter.cells[i].seen {
			t.Errorf("slot %d still holds a value of a window that is gone", i)
		}
	}
	if got := h.hopRow(hop, latencyP99); got.LastMS != 0 || !math.IsNaN(float64(got.Latency.P99)) {
		t.Errorf("a hop that was not seen in the kept windows shows %+v", got)
	}
}

// The settings' reference states the memory of a series.
func TestCosts(t *testing.T) {
	for name, c := range map[string]struct{ got, want uintptr }{
		"max_hops": {unsafe.Sizeof(cell{}), 40}, "max_flows": {unsafe.Sizeof(flowCell{}), 12},
		"max_flows, a hop": {unsafe.Sizeof(positionCell{}), 16}, "max_exporters": {unsafe.Sizeof(exporterCell{}), 36},
		"max_hops, an interface": {unsafe.Sizeof(interfaceSeries{}), 696}, "max_hops, a path of probes": {unsafe.Sizeof(probedSeries{}), 728},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d bytes a window, but config.go says %d", name, c.got, c.want)
		}
	}
}

func TestAbsentIsNotZero(t *testing.T) {
	h := small(nil)
	latency, queue := hopAt(1, 0, 0), inference.HopStats{HopKey: inference.HopKey{Other: true}, Queue: inference.Summary{Count: 1}}
	latency.Utilization, latency.HasUtilization = math.NaN(), true
	h.add(hopWindow(second, latency, queue))
	matrix := func(m metric, values string) {
		t.Helper()
		one, two, _ := strings.Cut(values, " ")
		want := `{"metric":"` + metricNames[m] + `","unit":"` + m.unit() + `","windows":[1000],"reports":[0],"hops":[{"id":1,"node":"1","egress_if":"0","values":[` +
			one + `]},{"id":2,"node":"other","egress_if":"other","values":[` + two + `]}]}`
		if got := string(h.appendMatrix(nil, m, -1)); got != want {
			t.Errorf("matrix:\n%s\nwant\n%s", got, want)
		}
	}
	for _, m := range []metric{latencyP50, latencyP90, latencyP99, latencyMax} {
		matrix(m, "0 null")
	}
	for _, m := range []metric{queueP50, queueP99, queueMax} {
		matrix(m, "null 0")
	}
	matrix(utilizationMax, "null null")
	matrix(count, "1 0")
}

// The table of hops must hold its bound against any order of keys and windows.
func TestTableBound(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	h := small(func(c *Config) { c.MaxHops = 16; c.MaxFlows = 16; c.MaxExporters = 16 })
	for i := range 20000 {
		n := rng.IntN(60)
		w := hopWindow(int64(i/40)*second, hopAt(uint32(n), 1, 5))
		w.Flows = []inference.FlowStats{flowOf(n, 1, make([]uint32, 1+rng.IntN(200))...)}
		w.Paths = []inference.PathChange{{Time: w.End, Flow: flowN(rng.IntN(60)), From: make([]inference.HopKey, rng.IntN(200)), To: make([]inference.HopKey, rng.IntN(200)), Changes: 1}}
		w.Exporters = []inference.ExporterStats{{ExporterKey: exporterN(n), Reports: 1}}
		h.add(w)
		if len(h.hops.all) > 16 || len(h.flows.all) > 16 || len(h.exporters.all) > 16 {
			t.Fatalf("seed %d, window %d: %d hops, %d flows, %d exporters, want at most 16", seed, i, len(h.hops.all), len(h.flows.all), len(h.exporters.all))
		}
	}
	if h.hops.refused == 0 || h.hops.evicted == 0 {
		t.Errorf("seed %d: %d refused, %d evicted: the bound was never reached", seed, h.hops.refused, h.hops.evicted)
	}
	for _, f := range h.flows.all {
		if len(f.positions) > maxPositions {
			t.Errorf("seed %d: a flow keeps %d positions, want at most %d", seed, len(f.positions), maxPositions)
		}
		if len(f.history) > maxChanges || len(f.nodes) > maxPositions {
			t.Errorf("seed %d: a flow keeps %d changes and a path of %d nodes, want at most %d and %d", seed, len(f.history), len(f.nodes), maxChanges, maxPositions)
		}
	}
}

// Series of the newest window stay; the longest silent ones make room.
func TestTableEvictsSilent(t *testing.T) {
	h := small(func(c *Config) { c.MaxHops = 3 })
	at := func(s int64, nodes ...uint32) {
		for _, n := range nodes {
			h.add(hopWindow(s*second, hopAt(n, 1, 5)))
		}
	}
	at(1, 1, 2, 3)
	at(2, 2, 3, 4) // 1 makes room
	at(2, 5)       // all three are of window 2
	if _, ok := h.hops.get(inference.HopKey{Node: 1, EgressIf: 1}); ok {
		t.Error("the silent hop stayed")
	}
	if _, ok := h.hops.get(inference.HopKey{Node: 4, EgressIf: 1}); !ok {
		t.Error("the new hop found no room")
	}
	if h.hops.refused != 1 || h.hops.evicted != 1 {
		t.Errorf("%d refused, %d evicted, want 1, 1", h.hops.refused, h.hops.evicted)
	}
}

// A window without hops, flows and exporters opens no column, whatever else is in it.
func TestEmptyWindows(t *testing.T) {
	h := small(nil)
	h.add(hopWindow(second, hopAt(1, 1, 5)))
	for _, w := range []*inference.Window{
		{End: 2 * second, Reports: 5},
		{End: 3 * second, Reports: 5, Flows: []inference.FlowStats{flowOf(1, 9)}}, // without a hop
		{End: 4 * second, Drops: []inference.DropStats{{Node: 1, Count: 1}}, Digests: []inference.DigestFault{{Node: 1, Count: 1}}},
		{End: 5 * second, Paths: []inference.PathChange{{Time: second, Flow: flowN(2)}, {Time: second - 2*maxWindow, Flow: flowN(3)}}},
	} {
		h.add(w)
	}
	if got := fmt.Sprint(ends(h)); got != "[1]" || h.window(1).reports != 0 || h.kept != 1 || h.late != 1 {
		t.Errorf("windows %s, %d reports, %d kept, %d late; want [1], 0, 1, 1", got, h.window(1).reports, h.kept, h.late)
	}
	if len(h.hops.all) != 1 || len(h.flows.all) != 1 || len(h.exporters.all) != 0 {
		t.Errorf("%d hops, %d flows, %d exporters; want 1, 1, 0", len(h.hops.all), len(h.flows.all), len(h.exporters.all))
	}
	if rows, _ := h.listFlows(names.NewSearch(""), nil, ask.Page{Limit: 10}); len(rows) != 1 || rows[0].Key != flowN(2).String() || len(rows[0].Path) != 0 || rows[0].Changes != 1 {
		t.Errorf("flows %+v, want the one of which a change is known", rows)
	}
}

// Values beyond what a cell holds are kept as the nearest that it holds, or as not reported.
func TestOddValues(t *testing.T) {
	h := small(nil)
	for i, u := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -0.5, 0.5} {
		hop := hopAt(uint32(i), 1, 1<<64-1)
		hop.Utilization, hop.HasUtilization = u, true
		h.add(hopWindow(second, hop))
	}
	rows, _ := h.listHops(names.Search{}, nil, utilizationMax, true, ask.Page{Limit: 10})
	for i, r := range rows {
		if absent := math.IsNaN(float64(r.Utilization)); absent != (i < 4) || r.Latency.P99 != 1<<64 {
			t.Errorf("hop %d: utilisation %v, latency %v", i, r.Utilization, r.Latency.P99)
		}
	}
	if got := string(ask.Value(rows[0].Latency.P99).Append(nil)); got != "18446744073709552000" {
		t.Errorf("the largest latency is written %s", got)
	}
	h.add(&inference.Window{End: second, Exporters: []inference.ExporterStats{{ExporterKey: exporterN(1), Reports: 1 << 40, Lost: -1 << 40, Restarts: 1 << 40}}})
	if e := h.listExporters(names.Search{}, nil, nil, ask.Page{Limit: 1}).Exporters[0]; e.Reports != math.MaxUint32 || e.Lost != math.MinInt32 || e.Restarts != math.MaxUint32 {
		t.Errorf("exporter: %+v", e)
	}
}

// What is kept of a window must not change when its maker uses its memory again.
func TestKeepsNothingOfWindow(t *testing.T) {
	srv := newSceneServer(t)
	s := newScene(11, 20, 4)
	w := s.window(sceneChangeAt, sceneTime.Add(s.length))
	write(srv, w)
	all := func() (text string) {
		for _, path := range []string{"/api/hops?limit=200", "/api/flows?limit=200", "/api/flow?key=" + url.QueryEscape(s.flows[1].key.String()), "/api/exporters?limit=200"} {
			body, _ := io.ReadAll(request(srv, http.MethodGet, path).Body) // of a recorder
			text += string(body)
		}
		return text
	}
	before := all()
	for i := range w.Flows {
		clear(w.Flows[i].Hops)
	}
	for i := range w.Paths {
		clear(w.Paths[i].From)
		clear(w.Paths[i].To)
	}
	clear(w.Hops)
	clear(w.Flows)
	clear(w.Paths)
	clear(w.Exporters)
	if after := all(); after != before {
		t.Errorf("with the window's memory cleared the page says\n%s\nwant\n%s", after, before)
	}
}

func TestFlowPath(t *testing.T) {
	h := small(nil)
	first, g := flowOf(1, 100, 1, 5, 3), flowN(2).String()
	first.Hops[0].EgressIf, first.Hops[0].Latency = 7, inference.Summary{Count: 1, P99: 10}
	h.add(&inference.Window{End: second, Flows: []inference.FlowStats{flowOf(2, 500, 1), first}})
	// The new path is shorter, and the change is reported with a time inside the window.
	change := inference.PathChange{
		Time: 2*second - 5e8, Flow: first.Key, From: []inference.HopKey{{Node: 1, EgressIf: 7}, {Node: 5}, {Node: 3}}, To: []inference.HopKey{{Node: 1}, {Node: 4}},
		Changes: 3, Packets: 100,
	}
	h.add(&inference.Window{End: 2 * second, Flows: []inference.FlowStats{flowOf(1, 40, 1, 4)}, Paths: []inference.PathChange{change}})
	h.add(&inference.Window{End: 2 * second, Paths: []inference.PathChange{change}}) // the same again changes nothing
	rows, total := h.listFlows(names.NewSearch(""), nil, ask.Page{Limit: 10})
	if total != 2 || rows[0].Key != g || rows[1].Key != first.Key.String() {
		t.Fatalf("flows %+v, want %s before %s", rows, g, first.Key)
	}
	f := rows[1]
	if len(f.Path) != 2 || f.Path[0].Node != "1" || f.Path[1].Node != "4" {
		t.Errorf("path %+v, want 1, 4", f.Path)
	}
	if f.Packets != 140 || f.Changes != 3 || f.ChangedMS != 1500 || strings.Join(f.Before, ">") != "1>5>3" {
		t.Errorf("%v packets, %d changes, last at %d from %v; want 140, 3, 1500, [1 5 3]", f.Packets, f.Changes, f.ChangedMS, f.Before)
	}
	if s, _ := h.flows.get(first.Key); len(s.history) != 1 || !s.cells[h.slot(2)].changed || s.cells[h.slot(1)].changed {
		t.Errorf("%d changes in %+v, want one in window 2", len(s.history), s.cells)
	}
	if rows, total := h.listFlows(names.NewSearch("4"), nil, ask.Page{Limit: 10}); total != 1 || rows[0].Key != first.Key.String() {
		t.Errorf("flows through node 4: %+v", rows)
	}
	if rows, total := h.listFlows(names.NewSearch("node 4"), nil, ask.Page{Limit: 10}); total != 1 || rows[0].Key != first.Key.String() {
		t.Errorf("flows through node 4, by another form: %+v", rows)
	}
	if rows, total := h.listFlows(names.NewSearch("4:1"), nil, ask.Page{Limit: 10}); total != 0 {
		t.Errorf("flows through a hop that no flow takes: %+v", rows)
	}
}

func TestExporterTotals(t *testing.T) {
	h := small(nil)
	report := func(at, reports, lost int64) {
		h.add(&inference.Window{End: at * second, Exporters: []inference.ExporterStats{{ExporterKey: exporterN(1), Reports: uint64(reports), Lost: lost}}})
	}
	report(1, 100, 10)
	report(1, 100, 10) // the same row
	report(2, 100, -4) // late reports filled a gap
	l := h.listExporters(names.Search{}, nil, nil, ask.Page{Limit: 10})
	if e := l.Exporters[0]; e.Reports != 200 || e.Lost != 6 || e.Idle || e.LastMS != 2000 {
		t.Errorf("%+v, want 200 reports, 6 lost, last at 2000", e)
	}
	for at := int64(3); at < 3+idleWindows; at++ {
		report(at, 0, 0)
	}
	if e := h.listExporters(names.Search{}, nil, nil, ask.Page{Limit: 10}).Exporters[0]; !e.Idle || e.Silent || e.LastMS != 2000 || e.Reports != 200 {
		t.Errorf("after %d windows without a report: %+v", idleWindows, e)
	}
}

func TestWorst(t *testing.T) {
	h := small(func(c *Config) { c.HistoryWindows = 40 })
	for at := int64(1); at <= 40; at++ {
		v := uint64(10)
		if at == 40-recentWindows {
			v = 1000 // just not recent any more
		}
		queue := inference.HopStats{HopKey: inference.HopKey{Node: 3, EgressIf: 1}, Queue: inference.Summary{Count: 1, P99: 5}}
		h.add(hopWindow(at*second, hopAt(1, 1, v), hopAt(2, 1, 11), queue))
	}
	rows, total := h.listHops(names.Search{}, nil, latencyP99, false, ask.Page{Limit: 10})
	if total != 3 || rows[0].Node != "2" || rows[0].Worst != 11 || rows[1].Worst != 10 || rows[2].Node != "3" {
		t.Errorf("hops %+v, want 2, 1, 3", rows)
	}
	rows, _ = h.listHops(names.Search{}, nil, latencyP99, true, ask.Page{Offset: 1, Limit: 1})
	if len(rows) != 1 || rows[0].Node != "2" {
		t.Errorf("second hop by name: %+v", rows)
	}
}

// Hops and exporters stand in the order of their numbers, not of their texts.
func TestOrder(t *testing.T) {
	h := small(nil)
	w := &inference.Window{End: second}
	for _, k := range []inference.HopKey{{Other: true}, {Node: 1<<32 - 1}, {Node: 10}, {Node: 2, EgressIf: 10}, {Node: 2, EgressIf: 9}, {}} {
		w.Hops = append(w.Hops, inference.HopStats{HopKey: k, Count: 1})
		w.Exporters = append(w.Exporters, inference.ExporterStats{ExporterKey: inference.ExporterKey{Addr: exporterN(1).Addr, Node: k.Node, HWID: uint8(k.EgressIf)}, Reports: 1})
	}
	h.add(w)
	var hops, exporters []string
	rows, _ := h.listHops(names.Search{}, nil, latencyP99, true, ask.Page{Limit: 10})
	for _, r := range rows {
		hops = append(hops, r.Node+":"+r.EgressIf)
	}
	for _, e := range h.listExporters(names.Search{}, nil, nil, ask.Page{Limit: 10}).Exporters {
		exporters = append(exporters, e.Node+":"+e.HWID)
	}
	if got, want := strings.Join(hops, " "), "0:0 2:9 2:10 10:0 4294967295:0 other:other"; got != want {
		t.Errorf("hops %s, want %s", got, want)
	}
	if got, want := strings.Join(exporters, " "), "0:0 2:9 2:10 10:0 4294967295:0"; got != want {
		t.Errorf("exporters %s, want %s", got, want)
	}
}

func BenchmarkWrite(b *testing.B) {
	s := newScene(1, 512, 8)
	srv, err := New(DefaultConfig(), sceneDeps(sceneTime))
	if err != nil {
		b.Fatal(err)
	}
	w := s.window(0, sceneTime)
	rows := len(w.Hops) + len(w.Exporters)
	for i := range w.Flows {
		rows += len(w.Flows[i].Hops)
	}
	b.ReportAllocs()
	for b.Loop() {
		srv.history.add(w.Window)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
}

func BenchmarkMatrix(b *testing.B) {
	srv, err := New(DefaultConfig(), sceneDeps(sceneTime))
	if err != nil {
		b.Fatal(err)
	}
	newScene(1, 512, 8).fill(srv, sceneWindows, sceneTime)
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = srv.history.appendMatrix(out[:0], latencyP99, -1)
	}
	b.SetBytes(int64(len(out)))
}
