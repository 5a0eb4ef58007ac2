package kll_test

import (
	"fmt"

	"github.com/hopscope/hopscope/sketches/kll"
	"github.com/hopscope/hopscope/sketches/logcode"
)

// Two shards sketch latencies in nanoseconds as 16-bit codes; the merged sketch answers for both.
func Example() {
	a, b := kll.New[uint16](200, 1), kll.New[uint16](200, 2)
	for ns := uint64(1000); ns < 1200; ns++ {
		a.Update(logcode.Encode(ns))
		b.Update(logcode.Encode(ns + 200))
	}
	a.Merge(b)
	for _, c := range a.Quantiles(nil, 0.5, 0.9, 1) {
		fmt.Println(logcode.Decode(c))
	}
	// Output:
	// 1199
	// 1359
	// 1399
}

// A flow keeps one Tiny a hop and hands over its codes in batches. All share one source of randomness.
func ExampleTiny() {
	rng := kll.Rand(42)
	var hop kll.Tiny
	batch := make([]uint16, 0, 16)
	for i := range uint16(48) {
		if batch = append(batch, 100+i); len(batch) == cap(batch) {
			hop.Add(batch, &rng)
			batch = batch[:0]
		}
	}
	fmt.Println(hop.Count(), hop.Min(), hop.Quantile(0.5), hop.Max())
	// Output: 48 100 123 147
}
