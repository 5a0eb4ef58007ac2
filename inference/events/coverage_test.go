package events

import (
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
)

// TestCoverage holds that a window marks every hop as judged or not, and the others with the reason.
func TestCoverage(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MinRecords = 5
	d := New(cfg)
	records := []uint64{100, 4, 1, 1, 1} // by node
	var w inference.Window
	step := func(n int64) inference.Coverage {
		w = inference.Window{Start: n * 1e9, End: (n + 1) * 1e9}
		for node, count := range records {
			v := 1000 + uint64(n*37%100)
			w.Hops = append(w.Hops, inference.HopStats{HopKey: inference.HopKey{Node: uint32(node)}, Count: count, Latency: inference.Summary{Count: count, P50: v, P90: 2 * v, P99: 3 * v}})
		}
		w.Hops = append(w.Hops, inference.HopStats{HopKey: inference.HopKey{Other: true}, Count: 7})
		d.Step(&w)
		d.Mark(&w)
		return d.Coverage()
	}
	want := inference.Coverage{Seen: 5, Young: 1, Few: 4, MinRecords: 5, Warmup: 60, Window: time.Second, Times: 10}
	for n := range int64(60) {
		if n == 59 {
			want.Judged, want.Young = 1, 0
		}
		if got := step(n); got != want {
			t.Fatalf("window %d: %+v, want %+v", n, got, want)
		}
	}
	for i, want := range []inference.Judgement{inference.Judged, inference.TooFew, inference.TooFew, inference.TooFew, inference.TooFew, inference.NotKnown} {
		if w.Hops[i].Judgement != want {
			t.Errorf("hop %v: %q, want %q", w.Hops[i].HopKey, w.Hops[i].Judgement, want)
		}
	}
	// One value of utilisation a window judges no latency.
	for n := range int64(70) {
		w := inference.Window{Start: (60 + n) * 1e9, End: (61 + n) * 1e9}
		few := inference.Summary{Count: 1, P50: 1000, P90: 1000, P99: 1000}
		w.Hops = []inference.HopStats{
			{HopKey: inference.HopKey{Node: 50}, Count: 1, Latency: few, Utilization: .3 + float64(n%7)/100, HasUtilization: true},
			{HopKey: inference.HopKey{Node: 51}, Count: 1, Utilization: .3 + float64(n%5)/100, HasUtilization: true},
			{HopKey: inference.HopKey{Node: 52}, Count: 100},
		}
		d.Step(&w)
		if got := d.Coverage(); got.Seen != 3 || got.Few != 2 || n >= 60 && (got.Judged != 1 || got.NoLatency != 1) {
			t.Fatalf("window %d with utilisation: %+v", n, got)
		}
	}
	records = []uint64{100, 100}
	if got := step(131); got.Seen != 2 || got.Judged != 1 || got.Young != 1 || got.Few != 0 || got.Times != 0 {
		t.Errorf("with enough records: %+v", got)
	}
	records = nil
	if got := step(132); got.Text() != "" {
		t.Errorf("without hops: %+v", got)
	}
}
