//go:build !race

package testkit

// Race reports whether the race detector is built in.
const Race = false
