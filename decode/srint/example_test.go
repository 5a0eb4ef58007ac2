package srint_test

import (
	"fmt"

	"github.com/hopscope/hopscope/decode/srint"
)

// The route through ports 2, 4 and 1 ends in the digits 031: entries are ports less 1, the first in the low bits.
func ExampleAppendPath() {
	payload, err := srint.AppendPath(nil, []int{2, 4, 1}, 5)
	fmt.Printf("%d bytes, route ends in %x, action id %x, %v\n", len(payload), payload[60:64], payload[64:], err)
	_, err = srint.AppendPath(nil, []int{2, 17}, 5)
	fmt.Println(err)
	// Output:
	// 68 bytes, route ends in 00000031, action id 00000005, <nil>
	// port out of range: hop 2 leaves by port 17, not 1 to 16
}
