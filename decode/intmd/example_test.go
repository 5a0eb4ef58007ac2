package intmd_test

import (
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
)

// A packet's stack of two hops is written, and read back with the first hop of the path first.
func Example() {
	const node, latency = 0x8000, 0x2000
	hop := func(id, nanoseconds uint32) decode.Hop {
		return decode.Hop{Has: decode.HopNodeID | decode.HopLatency, NodeID: id, Latency: nanoseconds}
	}
	h := intmd.Header{Version: decode.V21, Instructions: node | latency, RemainingHops: 6}
	b := intmd.Append(nil, &h, []decode.Hop{hop(101, 1200), hop(7, 950)})

	var r decode.Report
	place := intmd.Place{IPEnd: len(b), End: len(b)} // a demultiplexer finds it behind the UDP header
	version := intmd.New(intmd.Options{Versions: intmd.AllVersions}).Decode(&r, b, &place)
	for _, h := range r.Hops {
		fmt.Println("INT", version, "node", h.NodeID, "latency", h.Latency)
	}
	// Output:
	// INT 2.1 node 101 latency 1200
	// INT 2.1 node 7 latency 950
}
