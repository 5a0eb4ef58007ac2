//go:build unix

package traffic

import (
	"syscall"
	"time"
)

// CPUTime is the processor time of the process so far.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
