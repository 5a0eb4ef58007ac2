package cli

import "golang.org/x/sys/unix"

// monotonicMicroseconds is the clock by which systemd orders reloads.
func monotonicMicroseconds() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return t.Nano() / 1000
}
