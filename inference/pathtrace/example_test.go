package pathtrace_test

import (
	"fmt"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
)

// Six switches, of which some are linked, and a flow that enters at 11, with a digest of 4 bits in each packet.
func Example() {
	scheme, err := pint.New(pint.Published(4))
	if err != nil {
		panic(err)
	}
	model, err := prior.NewModel(prior.Config{
		Scheme: scheme,
		Nodes:  []uint32{11, 12, 13, 14, 15, 16},
		Links:  [][2]int32{{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}, {3, 5}},
		Ends:   [][]int32{{0}},
	})
	if err != nil {
		panic(err)
	}
	tracer := pathtrace.New(model)
	flow := pathtrace.Flow{Ingress: 1}
	path := []uint32{11, 13, 14, 16}
	for id := uint32(1); ; id++ {
		event := tracer.Add(&flow, id, len(path), scheme.Digest(id, path))
		fmt.Println("packet", id, event)
		if event == pathtrace.Decoded {
			break
		}
		candidates, _ := tracer.Candidates(&flow)
		fmt.Println("  last hop:", candidates[3])
	}
	status, _ := tracer.Path(&flow, 0, nil)
	fmt.Printf("%d, marked hops %04b\n", status.Nodes, status.Marked)
	// Output:
	// packet 1 pending
	//   last hop: [{12 0.3333333333333333} {15 0.3333333333333333} {16 0.3333333333333333}]
	// packet 2 pending
	//   last hop: [{12 0.3333333333333333} {15 0.3333333333333333} {16 0.3333333333333333}]
	// packet 3 pending
	//   last hop: [{12 0.3333333333333333} {15 0.3333333333333333} {16 0.3333333333333333}]
	// packet 4 pending
	//   last hop: [{16 1}]
	// packet 5 decoded
	// [11 13 14 16], marked hops 1111
}
