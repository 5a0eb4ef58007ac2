package sketches_test

import (
	"fmt"
	"time"

	"github.com/hopscope/hopscope/sketches"
)

type key struct{ src, dst uint32 }

func (k key) hash() uint64 { return (uint64(k.src)<<32 | uint64(k.dst)) * 0x9e3779b97f4a7c15 }

// Packets are counted by flow; what a flow had when it leaves goes to its evict function.
func ExampleFlowTable() {
	cfg := sketches.FlowTableConfig{MemoryBytes: 1 << 20, IdleTimeout: time.Minute}
	flows, err := sketches.NewFlowTable(cfg, func(_ uint32, e *sketches.FlowEntry[key, int], why sketches.Eviction) {
		fmt.Println(e.Key, "had", e.Value, "packets, left:", why)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	keys := []*key{{1, 2}, {3, 4}, {1, 2}}
	hashes, slots := make([]uint64, len(keys)), make([]uint32, len(keys))
	for i, k := range keys {
		hashes[i] = k.hash()
	}
	now := time.Unix(1000, 0).UnixNano()
	flows.FindAll(hashes, keys, now, slots, nil)
	for _, slot := range slots {
		flows.At(slot).Value++
	}
	flows.Sweep(now+int64(2*time.Minute), flows.Len())
	// Output:
	// {1 2} had 2 packets, left: idle
	// {3 4} had 1 packets, left: idle
}
