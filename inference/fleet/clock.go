package fleet

import (
	"fmt"
	"time"
)

// ClockError is the error of a member whose clock and Kafka's differ by more than a window.
type ClockError struct {
	Off    time.Duration // that the member's is ahead at least; negative is behind
	Window time.Duration
	Costs  string // what comes of that
}

func (e *ClockError) Error() string {
	direction := "ahead of"
	if e.Off < 0 {
		direction = "behind"
	}
	return fmt.Sprintf("the clock of this machine is %v %s Kafka's, which is more than a window of %v: %s; set the clock (NTP)",
		e.Off.Abs().Round(time.Millisecond), direction, e.Window, e.Costs)
}

// ClockOff reports whether a clock that is off Kafka's by at least so much is off too far. It is the one rule for all
// members: within a window nothing is lost, whichever of them is ahead and whichever is behind.
func ClockOff(off, window time.Duration) bool { return off.Abs() > window }

// Ahead returns how far ahead of Kafka's clock the end of a window can be if its sender's clock is right enough.
// Windows are sent when they are over, and single reports while theirs is open.
func Ahead(window time.Duration, open bool) time.Duration {
	if open {
		return 2 * window
	}
	return window
}
