//go:build !unix

package fleet

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
