package telemetry_test

import (
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/telemetry"
)

// A switch reports a drop, without the packet, and a collector reads it.
func Example() {
	b := telemetry.AppendGroup(nil, 0, 41, 7)
	b = telemetry.Append20(b, &telemetry.Header{
		Flags: decode.Dropped, Metadata: telemetry.MDInterfaces | telemetry.MDDrop, DropReason: 80,
		Hop: decode.Hop{Has: decode.HopIngressIf | decode.HopEgressIf | decode.HopQueueID, IngressIf: 1, EgressIf: 2},
	}, 0)

	var reader telemetry.Reader
	var r decode.Report
	var inner telemetry.Inner
	reader.Start(&telemetry.Options{Versions: telemetry.V20}, b, 0, len(b))
	more := reader.Next(&r, &inner)
	fmt.Println(r.Kind, "at node", r.NodeID, "interface", r.Hops[0].IngressIf, "reason", r.DropReason, "another:", more)
	// Output: drop at node 7 interface 1 reason 80 another: false
}
