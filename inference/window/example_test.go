package window_test

import (
	"fmt"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// Two collectors saw the same switch port in one window. One of them sends what it saw as bytes.
func ExamplePartial() {
	port := inference.HopKey{Node: 7, EgressIf: 2}
	var here, there window.Partial
	for _, p := range []*window.Partial{&here, &there} {
		p.Span(10e9, 20e9) // ns since 1970
	}
	for i := range uint64(900) {
		here.Hop(port).Latency.AddValue(1000 + i) // ns
	}
	for i := range uint64(100) {
		there.Hop(port).Latency.AddValue(90_000 + i)
	}
	sent, err := there.AppendBinary(nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	limits := window.Limits{Hops: 1000, Flows: 10, Paths: 10, Drops: 10, Faults: 10, Exporters: 10}
	var received window.Partial
	if err := received.ReadBinary(sent, limits); err != nil {
		fmt.Println(err)
		return
	}
	here.Merge(&received)
	for _, h := range here.Window(limits).Hops {
		fmt.Printf("node %d: %d values, p50 %d ns, p99 %d ns\n", h.Node, h.Latency.Count, h.Latency.P50, h.Latency.P99)
	}
	// Output:
	// node 7: 1000 values, p50 1487 ns, p99 89087 ns
}
