//go:build !unix

package rate

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
