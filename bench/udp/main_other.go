//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench/udp: needs Linux (network namespaces, receive packet steering, recvmmsg)")
	os.Exit(1)
}
