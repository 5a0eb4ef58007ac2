//go:build !unix

package loop

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
