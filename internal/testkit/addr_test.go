package testkit

import (
	"net"
	"testing"
)

// No address is given twice, also when it was free again in between.
func TestFreeAddr(t *testing.T) {
	seen := map[string]bool{}
	for range 300 {
		addr := FreeAddr(t)
		if seen[addr] {
			t.Fatalf("%s was given twice", addr)
		}
		seen[addr] = true
		l, err := net.Listen("tcp4", addr)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
}
