//go:build !linux

package foreign

// bound does nothing: only Linux limits another process.
func bound(int, uint64) {}
