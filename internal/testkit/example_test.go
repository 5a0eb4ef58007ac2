package testkit_test

import (
	"fmt"

	"github.com/hopscope/hopscope/internal/testkit"
)

// A test of a decoder of one's own reads a worked example.
func ExampleVector() {
	b, err := testkit.Vector("tr10")
	fmt.Printf("%d bytes, version %d, %v\n", len(b), b[0]>>4, err)
	// Output: 28 bytes, version 1, <nil>
}
