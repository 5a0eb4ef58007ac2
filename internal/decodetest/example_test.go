package decodetest_test

import (
	"fmt"

	"github.com/hopscope/hopscope/internal/decodetest"
)

// A test of a decoder of one's own reads a worked example.
func ExampleBytes() {
	b, err := decodetest.Bytes("tr10")
	fmt.Printf("%d bytes, version %d, %v\n", len(b), b[0]>>4, err)
	// Output: 28 bytes, version 1, <nil>
}
