package pint_test

import (
	"fmt"
	"math/bits"

	"github.com/hopscope/hopscope/decode/pint"
)

// A packet passes three switches, each of which does or does not write. The receiver knows the hops that wrote, and which switches
// they can have been.
func Example() {
	scheme, err := pint.New(pint.Published(8))
	if err != nil {
		fmt.Println(err)
		return
	}
	const id = 1 // of the packet: the same for all switches
	digest := uint64(0)
	for i, node := range []uint32{17, 4, 108} {
		digest = scheme.Write(digest, id, i+1, node)
	}

	packet := scheme.Packet(id, 0)
	writers := scheme.Writers(&packet, 3)
	fmt.Printf("digest %#02x, Baseline: %v\n", digest, packet.Baseline)
	for w := writers; w != 0; w &= w - 1 {
		hop := bits.TrailingZeros64(w) + 1
		fmt.Printf("hop %d wrote, one of", hop)
		for node := range uint32(200) {
			if scheme.Value(&packet, packet.Role(writers, hop), node) == scheme.Part(digest, 0) {
				fmt.Print(" ", node)
			}
		}
		fmt.Println()
	}
	// Output:
	// digest 0xf5, Baseline: true
	// hop 2 wrote, one of 4 80
}

// Half of the packets carry the path, the others the utilisation of the fullest link.
func ExamplePlan() {
	path, err := pint.New(pint.Published(8))
	if err != nil {
		fmt.Println(err)
		return
	}
	code, err := pint.NewHPCC(1.05)
	if err != nil {
		fmt.Println(err)
		return
	}
	plan := &pint.Plan{
		Bits: 8,
		Queries: []pint.Query{
			{Name: "path", Value: pint.NodeValue, Aggregation: pint.Static, Bits: 8, Scheme: path},
			{Name: "bottleneck", Value: pint.UtilizationValue, Aggregation: pint.PerPacket, Bits: 8, Code: code},
		},
		Sets: []pint.Set{
			{Share: .5, Slots: []pint.Slot{{Query: 0}}},
			{Share: .5, Slots: []pint.Slot{{Query: 1}}},
		},
	}
	if err := plan.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	for id := range uint32(4) {
		digest := uint64(0)
		for hop, load := range []uint64{20, 75, 40} {
			v := pint.Values{Node: uint32(hop), Utilization: load * pint.UtilizationUnit / 100}
			digest = plan.Write(digest, id, hop+1, v, 0)
		}
		slot := plan.Sets[plan.Set(id)].Slots[0]
		fmt.Println(plan.Queries[slot.Query].Name, plan.Part(digest, slot))
	}
	// Output:
	// path 207
	// path 226
	// path 0
	// bottleneck 121
}
