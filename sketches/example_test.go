package sketches_test

import (
	"fmt"

	"github.com/hopscope/hopscope/sketches"
)

// A rank is the share of values that are not larger; a quantile is always one of the values.
func Example() {
	var latencies sketches.Exact[int]
	latencies.Update(30, 10, 40, 20)
	fmt.Println(latencies.Quantile(0.5), latencies.Quantile(0.99), latencies.Rank(25))
	// Output: 20 40 0.5
}
