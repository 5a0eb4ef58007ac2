//go:build !linux

package service

// monotonicMicroseconds is 0 where there is no systemd.
func monotonicMicroseconds() int64 { return 0 }
