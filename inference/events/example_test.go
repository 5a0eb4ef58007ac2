package events_test

import (
	"fmt"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
)

// A hop is watched for forty windows until its baseline is known. Then its latency rises to nine times what is usual
// for five windows. In the middle of that another detector goes on from the state of the first.
func Example() {
	window := func(n int, latency time.Duration) *inference.Window {
		return &inference.Window{
			End: int64(n) * int64(10*time.Second),
			Hops: []inference.HopStats{{
				HopKey:  inference.HopKey{Node: 7, EgressIf: 3},
				Latency: inference.Summary{Count: 500, P99: uint64(latency)},
			}},
		}
	}
	detector := events.New(events.DefaultConfig())
	for n := range 55 {
		latency := 12 * time.Microsecond
		if n >= 40 && n < 45 {
			latency *= 9
		}
		for _, f := range detector.Step(window(n, latency)) {
			fmt.Printf("window %d: %s %s: %s\n", n, f.Severity, f.Kind, f.Text)
		}
		if n == 43 {
			state := detector.AppendState(nil)
			detector = events.New(events.DefaultConfig())
			if err := detector.ReadState(state); err != nil {
				fmt.Println(err)
			}
		}
	}
	// Output:
	// window 41: critical high-latency: latency of node 7 interface 3: p99 108µs over 500 packets, usually 12µs, limit 18µs
	// window 47: critical high-latency: latency of node 7 interface 3 was up to p99 108µs and is back to 12µs, usually 12µs
}
