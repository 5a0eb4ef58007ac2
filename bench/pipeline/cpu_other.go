//go:build !linux

package pipeline

import "time"

// cpuClock gives wall time where threads have no clock of their own.
type cpuClock struct {
	cost  time.Duration
	start time.Time
}

func newCPUClock() *cpuClock { return &cpuClock{start: time.Now()} }

func (c *cpuClock) close() {}

func (c *cpuClock) now() time.Duration { return time.Since(c.start) }
