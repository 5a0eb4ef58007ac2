//go:build !unix

package traffic

import "time"

// CPUTime is 0: unknown on this system.
func CPUTime() time.Duration { return 0 }
