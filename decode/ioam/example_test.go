package ioam_test

import (
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/ioam"
)

// A sender leaves room for two nodes, and three routers want to use it.
func ExampleAddNode() {
	option, err := ioam.AppendTrace(nil, &ioam.Trace{Namespace: 123, Type: ioam.BitNodeID, Words: 2})
	if err != nil {
		panic(err)
	}
	for node := range 3 {
		h := decode.Hop{Has: decode.HopNodeID, NodeID: uint32(node + 1)}
		x := decode.IOAMNode{Has: decode.IOAMHopLimit, HopLimit: uint8(63 - node)}
		if err := ioam.AddNode(option, 123, &h, &x); err != nil {
			panic(err)
		}
	}
	var r decode.Report
	ioam.DecodeOption(&r, option, len(option), 0)
	fmt.Println(r.Hops[0].NodeID, r.Hops[1].NodeID, len(r.Hops), r.Flags.AppendNames(nil))
	// Output: 1 2 2 [overflow]
}
