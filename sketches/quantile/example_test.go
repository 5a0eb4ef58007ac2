package quantile_test

import (
	"fmt"

	"github.com/hopscope/hopscope/sketches/quantile"
)

// Two shards sketch latencies in nanoseconds as 16-bit codes; the merged sketch answers for both, within its error.
func Example_merge() {
	rng := quantile.Rand(1)
	var a, b quantile.Tiny
	for ns := uint64(1000); ns < 1200; ns++ {
		a.Update(quantile.Encode(ns), &rng)
		b.Update(quantile.Encode(ns+200), &rng)
	}
	a.Merge(&b, &rng)
	fmt.Println(a.Count(), "values from", quantile.Decode(a.Min()), "to", quantile.Decode(a.Max()))
	for _, code := range a.Quantiles(nil, 0.1, 0.5, 0.9) {
		fmt.Println(quantile.Decode(code))
	}
	// Output:
	// 400 values from 1000 to 1399
	// 1032
	// 1199
	// 1358
}

// A flow keeps one Tiny a hop and hands over its codes in batches. All share one source of randomness. Up to 50 codes,
// the answers are exact.
func ExampleTiny() {
	rng := quantile.Rand(42)
	var hop quantile.Tiny
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
