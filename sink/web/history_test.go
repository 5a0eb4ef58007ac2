package web

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/hopscope/hopscope/sink"
)

const second = int64(1e9)

func hopPoint(node, egressIf string, at int64, fields ...sink.Field) sink.Point {
	return sink.Point{Measurement: "hop", Time: at, Tags: []sink.Tag{{Key: "egress_if", Value: egressIf}, {Key: "node", Value: node}}, Fields: fields}
}

func flowPoint(flow string, hop int, node string, at int64, fields ...sink.Field) sink.Point {
	return sink.Point{
		Measurement: "flow", Time: at, Tags: []sink.Tag{{Key: "flow", Value: flow}, {Key: "hop", Value: strconv.Itoa(hop)}},
		Fields: append(fields, sink.StringField("node", node)),
	}
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
		h.add(&sink.Batch{Reports: 10, Points: []sink.Point{hopPoint("1", "2", at*second, sink.IntField("latency_p99", at))}})
	}
	if got, want := fmt.Sprint(ends(h)), "[12 13 14 30]"; got != want {
		t.Errorf("windows end at %s, want %s", got, want)
	}
	// 11 was kept when it came again; 5 is older than everything, 29 lies between two windows.
	if h.late != 2 || h.points != 10 {
		t.Errorf("%d points, %d late, want 10, 2", h.points, h.late)
	}
	s, _ := h.hops.get(hopKey{"1", "2"})
	for n := h.oldest(); n <= h.newest; n++ {
		if got, want := h.value(s, n, latencyP99), float32(h.window(n).end/second); got != want {
			t.Errorf("window %d holds %v, want %v", n, got, want)
		}
	}
	if got := h.window(h.newest - 1).reports; got != 20 {
		t.Errorf("the window of two batches has %d reports, want 20", got)
	}
}

// A slot that is used again must not show what was in it.
func TestWindowsForget(t *testing.T) {
	h := small(nil)
	h.add(&sink.Batch{Points: []sink.Point{
		hopPoint("1", "1", second, sink.IntField("latency_p99", 7)), flowPoint("f", 0, "1", second, sink.IntField("packets", 9), sink.IntField("latency_p99", 5)),
		{Measurement: "exporter", Time: second, Tags: []sink.Tag{{Key: "address", Value: "a"}}, Fields: []sink.Field{sink.IntField("reports", 3)}},
	}})
	for at := int64(2); at < 9; at++ {
		h.add(&sink.Batch{Points: []sink.Point{hopPoint("2", "1", at*second)}})
	}
	hop, _ := h.hops.get(hopKey{"1", "1"})
	flow, _ := h.flows.get("f")
	exporter, _ := h.exporters.get(exporterKey{"a", "", ""})
	for i := range h.cap {
		if hop.cells[i].seen || flow.cells[i].seen || flow.positions[0].cells[i].seen || exporter.cells[i].seen {
			t.Errorf("slot %d still holds a value of a window that is gone", i)
		}
	}
	if got := h.hopRow(hop, latencyP99); got.LastMS != 0 || !math.IsNaN(float64(got.Latency.P99)) {
		t.Errorf("a hop that was not seen in the kept windows shows %+v", got)
	}
}

// The settings' reference says what a series costs.
func TestCosts(t *testing.T) {
	for name, c := range map[string]struct{ got, want uintptr }{
		"max_hops": {unsafe.Sizeof(cell{}), 40}, "max_flows": {unsafe.Sizeof(flowCell{}), 8},
		"max_flows, a hop": {unsafe.Sizeof(positionCell{}), 16}, "max_exporters": {unsafe.Sizeof(exporterCell{}), 28},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d bytes a window, but config.go says %d", name, c.got, c.want)
		}
	}
}

func TestAbsentIsNotZero(t *testing.T) {
	h := small(nil)
	h.add(&sink.Batch{Points: []sink.Point{
		hopPoint("1", "0", second, sink.IntField("latency_p99", 0), sink.FloatField("queue_p99", math.NaN()), sink.IntField("queue_max", -4), sink.StringField("latency_p50", "9")),
	}})
	got := string(h.appendMatrix(nil, latencyP99, -1))
	want := `{"metric":"latency_p99","unit":"ns","windows":[1000],"reports":[0],"hops":[{"id":1,"node":"1","egress_if":"0","values":[0]}]}`
	if got != want {
		t.Errorf("matrix:\n%s\nwant\n%s", got, want)
	}
	for _, m := range []metric{queueP99, queueMax, latencyP50, utilizationMax} {
		if got := string(h.appendMatrix(nil, m, -1)); !strings.Contains(got, `"values":[null]`) {
			t.Errorf("%s was not reported, but reads %s", metricNames[m], got)
		}
	}
}

// The table of hops must hold its bound against any order of keys and windows.
func TestTableBound(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	h := small(func(c *Config) { c.MaxHops = 16; c.MaxFlows = 16; c.MaxExporters = 16 })
	for i := range 20000 {
		name := strconv.Itoa(rng.IntN(60))
		at := int64(i/40) * second
		h.add(&sink.Batch{Points: []sink.Point{hopPoint(name, "1", at), flowPoint(name, rng.IntN(200), "9", at, sink.IntField("packets", 1)), {
			Measurement: "exporter", Time: at, Tags: []sink.Tag{{Key: "address", Value: name}}, Fields: []sink.Field{sink.IntField("reports", 1)},
		}}})
		if len(h.hops.all) > 16 || len(h.flows.all) > 16 || len(h.exporters.all) > 16 {
			t.Fatalf("seed %d, point %d: %d hops, %d flows, %d exporters, want at most 16", seed, i, len(h.hops.all), len(h.flows.all), len(h.exporters.all))
		}
	}
	if h.hops.refused == 0 || h.hops.evicted == 0 {
		t.Errorf("seed %d: %d refused, %d evicted: the bound was never reached", seed, h.hops.refused, h.hops.evicted)
	}
	for _, f := range h.flows.all {
		if len(f.positions) > maxPositions {
			t.Errorf("seed %d: a flow keeps %d positions, want at most %d", seed, len(f.positions), maxPositions)
		}
	}
}

// Series of the newest window stay; the longest silent ones make room.
func TestTableEvictsSilent(t *testing.T) {
	h := small(func(c *Config) { c.MaxHops = 3 })
	at := func(s int64, nodes ...string) {
		for _, n := range nodes {
			h.add(&sink.Batch{Points: []sink.Point{hopPoint(n, "1", s*second)}})
		}
	}
	at(1, "a", "b", "c")
	at(2, "b", "c", "d") // a makes room
	at(2, "e")           // all three are of window 2
	if _, ok := h.hops.get(hopKey{"a", "1"}); ok {
		t.Error("the silent hop stayed")
	}
	if _, ok := h.hops.get(hopKey{"d", "1"}); !ok {
		t.Error("the new hop found no room")
	}
	if h.hops.refused != 1 || h.hops.evicted != 1 {
		t.Errorf("%d refused, %d evicted, want 1, 1", h.hops.refused, h.hops.evicted)
	}
}

func TestInvalidPoints(t *testing.T) {
	h := small(nil)
	long := strings.Repeat("x", maxName+1)
	h.add(&sink.Batch{Points: []sink.Point{
		{Measurement: "hop", Time: second},
		hopPoint(long, "1", second), hopPoint("1", long, second),
		flowPoint("", 0, "1", second), flowPoint(long, 0, "1", second),
		{Measurement: "flow", Time: second, Tags: []sink.Tag{{Key: "flow", Value: "f"}, {Key: "hop", Value: "-1"}}},
		{Measurement: "exporter", Time: second},
		{Measurement: "path", Time: second},
		{Measurement: "weather", Time: second},
		{Measurement: "event", Time: 99 * second},
	}})
	if h.invalid != 8 || h.unknown != 1 {
		t.Errorf("%d invalid, %d unknown, want 8, 1", h.invalid, h.unknown)
	}
	if n := len(h.hops.all) + len(h.flows.all) + len(h.exporters.all); n != 0 {
		t.Errorf("%d series were made of invalid points", n)
	}
	if got := fmt.Sprint(ends(h)); got != "[1]" {
		t.Errorf("windows %s, want [1]: an event opens none", got)
	}
}

func TestFlowPath(t *testing.T) {
	h := small(nil)
	h.add(&sink.Batch{Points: []sink.Point{
		flowPoint("f", 0, "1", second, sink.IntField("packets", 100), sink.IntField("latency_p99", 10), sink.IntField("egress_if", 7)),
		flowPoint("f", 1, "5", second, sink.IntField("packets", 100)),
		flowPoint("f", 2, "3", second, sink.IntField("packets", 100)),
		flowPoint("g", 0, "1", second, sink.IntField("packets", 500)),
	}})
	// The new path is shorter, and the change is told in the same batch with a time inside the window.
	change := sink.Point{Measurement: "path", Time: 2*second - 5e8, Tags: []sink.Tag{{Key: "flow", Value: "f"}}, Fields: []sink.Field{
		sink.StringField("before", "1 > 5 > 3"), sink.StringField("nodes", "1 > 4"), sink.IntField("changes", 3), sink.IntField("packets", 100),
	}}
	b := &sink.Batch{Points: []sink.Point{change,
		flowPoint("f", 0, "1", 2*second, sink.IntField("packets", 40)), flowPoint("f", 1, "4", 2*second, sink.IntField("packets", 40)),
	}}
	h.add(b)
	h.add(&sink.Batch{Points: []sink.Point{change}}) // the same again changes nothing
	rows, total := h.listFlows("", 0, 10)
	if total != 2 || rows[0].Key != "g" || rows[1].Key != "f" {
		t.Fatalf("flows %+v, want g before f", rows)
	}
	f := rows[1]
	if len(f.Path) != 2 || f.Path[0].Node != "1" || f.Path[1].Node != "4" {
		t.Errorf("path %+v, want 1, 4", f.Path)
	}
	if f.Packets != 140 || f.Changes != 3 || f.ChangedMS != 1500 || strings.Join(f.Before, ">") != "1>5>3" {
		t.Errorf("%v packets, %d changes, last at %d from %v; want 140, 3, 1500, [1 5 3]", f.Packets, f.Changes, f.ChangedMS, f.Before)
	}
	if s, _ := h.flows.get("f"); len(s.history) != 1 || !s.cells[h.slot(2)].changed || s.cells[h.slot(1)].changed {
		t.Errorf("%d changes in %+v, want one in window 2", len(s.history), s.cells)
	}
	if rows, total := h.listFlows("4", 0, 10); total != 1 || rows[0].Key != "f" {
		t.Errorf("flows through node 4: %+v", rows)
	}
}

func TestExporterTotals(t *testing.T) {
	h := small(nil)
	report := func(at, reports, lost int64) {
		h.add(&sink.Batch{Points: []sink.Point{{
			Measurement: "exporter", Time: at * second, Tags: []sink.Tag{{Key: "address", Value: "a"}, {Key: "hw_id", Value: "0"}, {Key: "node", Value: "1"}},
			Fields: []sink.Field{sink.IntField("reports", reports), sink.IntField("lost", lost)},
		}}})
	}
	report(1, 100, 10)
	report(1, 100, 10) // the same point
	report(2, 100, -4) // late reports filled a gap
	l := h.listExporters(nil, 0, 10)
	if e := l.Exporters[0]; e.Reports != 200 || e.Lost != 6 || e.Idle || e.LastMS != 2000 {
		t.Errorf("%+v, want 200 reports, 6 lost, last at 2000", e)
	}
	for at := int64(3); at < 3+idleWindows; at++ {
		report(at, 0, 0)
	}
	if e := h.listExporters(nil, 0, 10).Exporters[0]; !e.Idle || e.Silent || e.LastMS != 2000 || e.Reports != 200 {
		t.Errorf("after %d windows without a report: %+v", idleWindows, e)
	}
}

func TestWorst(t *testing.T) {
	h := small(func(c *Config) { c.HistoryWindows = 40 })
	for at := int64(1); at <= 40; at++ {
		v := int64(10)
		if at == 40-recentWindows {
			v = 1000 // just not recent any more
		}
		h.add(&sink.Batch{Points: []sink.Point{hopPoint("1", "1", at*second, sink.IntField("latency_p99", v)), hopPoint("2", "1", at*second, sink.IntField("latency_p99", 11)),
			hopPoint("3", "1", at*second, sink.IntField("queue_p99", 5))}})
	}
	rows, total := h.listHops(latencyP99, false, 0, 10)
	if total != 3 || rows[0].Node != "2" || rows[0].Worst != 11 || rows[1].Worst != 10 || rows[2].Node != "3" {
		t.Errorf("hops %+v, want 2, 1, 3", rows)
	}
	rows, _ = h.listHops(latencyP99, true, 1, 1)
	if len(rows) != 1 || rows[0].Node != "2" {
		t.Errorf("second hop by name: %+v", rows)
	}
}

func TestCompareNames(t *testing.T) {
	sorted := []string{"0", "2", "10", "18446744073709551615", "leaf-1", "other", "~"}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := compareNames(a, b); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("compareNames(%q, %q) = %d", a, b, got)
			}
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	s := newScene(1, 512, 8)
	srv, err := New(DefaultConfig(), sceneDeps(sceneTime))
	if err != nil {
		b.Fatal(err)
	}
	batch := s.batch(0, sceneTime)
	b.ReportAllocs()
	for b.Loop() {
		srv.history.add(batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(batch.Points)), "ns/point")
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
