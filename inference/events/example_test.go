package events_test

import (
	"fmt"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
)

// A hop is watched for four hundred windows until its usual latency is known. Then it rises to nine times that for five
// windows. In the middle of that another detector goes on from the state of the first.
func Example() {
	window := func(n int, latency time.Duration) *inference.Window {
		return &inference.Window{
			End: int64(n) * int64(10*time.Second),
			Hops: []inference.HopStats{{
				HopKey:  inference.HopKey{Node: 7, EgressIf: 3},
				Latency: inference.Summary{Count: 500, P50: uint64(latency), P90: uint64(latency), P99: uint64(latency)},
			}},
		}
	}
	detector := events.New(events.DefaultConfig())
	for n := range 420 {
		latency := 12 * time.Microsecond
		if n >= 400 && n < 405 {
			latency *= 9
		}
		for _, f := range detector.Step(window(n, latency)) {
			fmt.Printf("window %d: %s %s: %s\n", n, f.Severity, f.Kind, f.Text)
		}
		if n == 403 {
			state := detector.AppendState(nil)
			detector = events.New(events.DefaultConfig())
			if err := detector.ReadState(state); err != nil {
				fmt.Println(err)
			}
		}
	}
	// Output:
	// window 400: critical high-latency: latency of node 7 interface 3: p50 108µs over 500 packets, usually 12µs
	// window 407: critical high-latency: latency of node 7 interface 3: p50 reached 108µs, usually 12µs; it is 12µs over 500 packets now
	// window 414: critical high-latency: latency of node 7 interface 3 reached p50 108µs and is 12µs now, usually 12µs
}
