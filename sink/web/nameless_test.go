package web

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
)

// Hops without a node id are listed by exporter and position while their window is recent. A value that was not
// reported is null, and no hop of node 0 stands for them.
func TestNamelessHops(t *testing.T) {
	srv, err := New(DefaultConfig(), Deps{Status: func() Status { return Status{} }, Ledger: func() []sink.Balance { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	w := inference.Window{End: 1e9, Nameless: []inference.NamelessStats{
		{NamelessKey: inference.NamelessKey{Position: 2}, Count: 9, Queue: inference.Summary{Count: 9, P50: 10, P99: 30}},
		{NamelessKey: inference.NamelessKey{Exporter: decode.Addr{10: 255, 11: 255, 12: 192, 14: 2, 15: 1}, Position: 1}, Count: 5, Latency: inference.Summary{Count: 5, P50: 7, P99: 8}},
		{Count: 3},
	}}
	srv.history.add(&w)
	var got struct {
		Total int
		Rows  []map[string]any `json:"hops_without_node_id"`
	}
	get(t, srv, "/api/exporters", &got)
	row := func(exporter, position string, count int, values ...any) map[string]any {
		return map[string]any{"exporter": exporter, "position": position, "count": float64(count),
			"latency_p50": values[0], "latency_p99": values[1], "queue_p50": values[2], "queue_p99": values[3]}
	}
	want := []map[string]any{row("", "2", 9, nil, nil, 10., 30.), row("192.0.2.1", "1", 5, 7., 8., nil, nil), row("", "other", 3, nil, nil, nil, nil)}
	if fmt.Sprint(got.Rows) != fmt.Sprint(want) || !reflect.DeepEqual(got.Rows, want) || got.Total != 0 {
		t.Errorf("%v, want %v", got.Rows, want)
	}
	var hops struct{ Total int }
	if get(t, srv, "/api/hops", &hops); hops.Total != 0 {
		t.Errorf("%d hops, want none", hops.Total)
	}
	for i := range int64(recentWindows) {
		srv.history.add(&inference.Window{End: (2 + i) * 1e9, Hops: []inference.HopStats{{HopKey: inference.HopKey{Node: 1}, Count: 1}}})
	}
	got.Rows = nil
	if get(t, srv, "/api/exporters", &got); len(got.Rows) != 0 {
		t.Errorf("%v is listed after %d windows without", got.Rows, recentWindows)
	}
}
