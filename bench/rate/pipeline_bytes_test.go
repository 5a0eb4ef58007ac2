package rate

import (
	"crypto/sha256"
	"fmt"
	"testing"
)

// TestBytes holds what the generator writes against hashes of what it always wrote: published figures were measured with
// these bytes.
func TestReportBytes(t *testing.T) {
	g, h := newGenerator(1000, 8, 7), sha256.New()
	b := make([]byte, size)
	for range 1000 {
		g.write(b)
		clear(b[ipAt+10 : ipAt+12]) // the checksum of the inner IPv4 header was 0 once
		h.Write(b)
	}
	if got, want := fmt.Sprintf("%x", h.Sum(nil)[:8]), "12131f989f74395f"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
