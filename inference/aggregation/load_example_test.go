package aggregation_test

import (
	"fmt"
	"time"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/aggregation"
)

// A port of 100 Gbit/s that is busy three quarters of the time, as its switch computes it and the collector reads it.
func ExampleLoadTracker() {
	code, err := pint.NewCode(aggregation.UtilizationCode())
	if err != nil {
		panic(err)
	}
	line, err := pint.NewLine(12.5e9, 13*time.Microsecond)
	if err != nil {
		panic(err)
	}
	tracker, err := aggregation.NewLoadTracker(aggregation.DefaultLoadConfig(), code)
	if err != nil {
		panic(err)
	}
	var port pint.Meter
	var flow aggregation.FlowLoad
	for n := range int64(5000) {
		now := n * 160 // a packet of 1500 bytes takes 120 ns
		u := line.Step(&port, now, 1500, 0)
		if n > 1000 {
			tracker.Add(&flow, code.Encode(u, uint32(n)*0x9e3779b9), now)
		}
	}
	w, _ := tracker.Window(&flow, 5000*160)
	fmt.Printf("utilisation %.2f\n", w.Mean)
	// Output: utilisation 0.75
}
