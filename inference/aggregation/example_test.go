package aggregation_test

import (
	"fmt"
	"math/bits"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/aggregation"
)

// Three switches take turns in digests of 8 bits; the collector finds each digest's writer and keeps 100 bytes for it.
func Example() {
	scheme, err := pint.New(pint.Config{Bits: 8, Instances: 1, Tau: 1}) // Baseline alone
	if err != nil {
		panic(err)
	}
	code, err := pint.NewCode(pint.CodeConfig{Kind: pint.Multiplicative, Bits: 8, Max: 10_000_000, Unit: 100})
	if err != nil {
		panic(err)
	}
	config := aggregation.DefaultConfig()
	config.Hops = 3
	pool, err := aggregation.NewPool(config, code, 1)
	if err != nil {
		panic(err)
	}
	var flow aggregation.Flow
	for id := range uint32(3000) {
		p := scheme.Packet(id, 0)
		hop := bits.Len64(scheme.Writers(&p, 3))
		nanoseconds := uint64(1000*hop) + uint64(id%100)
		pool.Add(&flow, hop, code.Encode(nanoseconds, id*0x9e3779b9), 0)
	}
	for hop := 1; hop <= 3; hop++ {
		if h, ok := pool.Hop(&flow, hop, 0); ok {
			fmt.Printf("hop %d: median about %.1f µs\n", hop, h.Smooth(.5)/1000)
		}
	}
	// Output:
	// hop 1: median about 1.0 µs
	// hop 2: median about 2.1 µs
	// hop 3: median about 3.0 µs
}
