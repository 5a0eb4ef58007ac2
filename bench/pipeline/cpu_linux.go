package pipeline

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// cpuClock gives the processor time of the calling thread, which does not run while others use the core.
type cpuClock struct{ cost time.Duration }

// newCPUClock locks the goroutine to its thread and measures what reading the clock costs.
func newCPUClock() *cpuClock {
	runtime.LockOSThread()
	c := &cpuClock{}
	const n = 1000
	t := c.now()
	for range n {
		c.now()
	}
	c.cost = (c.now() - t) / (n + 1)
	return c
}

func (c *cpuClock) close() { runtime.UnlockOSThread() }

func (c *cpuClock) now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
