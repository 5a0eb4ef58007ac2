//go:build !linux

package cli

// monotonicMicroseconds is 0 where there is no systemd.
func monotonicMicroseconds() int64 { return 0 }
