package quantile_test

import (
	"fmt"

	"github.com/hopscope/hopscope/sketches/quantile"
)

// A code of 16 bits stands for all values that are within 0.05 % of its own.
func Example() {
	for _, ns := range []uint64{7, 2047, 123_456, 98_765_432_100} {
		code := quantile.Encode(ns)
		fmt.Println(ns, "has code", code, "and comes back as", quantile.Decode(code))
	}
	// Output:
	// 7 has code 7 and comes back as 7
	// 2047 has code 2047 and comes back as 2047
	// 123456 has code 8073 and comes back as 123487
	// 98765432100 has code 28095 and comes back as 98750693375
}

// The queue depths of a device in one window: all quantiles are within 1.6 %.
func ExampleHistogram() {
	var depths quantile.Histogram
	for bytes := uint64(1); bytes <= 100_000; bytes++ {
		depths.AddValue(bytes)
	}
	fmt.Println(depths.Count(), depths.Quantiles(nil, 0.5, 0.9, 0.99))
	// Output:
	// 100000 [49663 89087 99327]
}
