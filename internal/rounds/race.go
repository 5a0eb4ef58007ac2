//go:build race

package rounds

// Race reports whether the race detector is built in.
const Race = true
