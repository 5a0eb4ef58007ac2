package fleet

import (
	"testing"
	"time"
)

// The border of the one rule for clocks is a window: at it a clock is right enough, and a nanosecond behind it no more.
func TestClockOff(t *testing.T) {
	const window = 4 * time.Second
	for off, want := range map[time.Duration]bool{0: false, window: false, -window: false, window + 1: true, -window - 1: true} {
		if got := ClockOff(off, window); got != want {
			t.Errorf("off by %v: %t", off, got)
		}
	}
	if Ahead(window, false) != window || Ahead(window, true) != 2*window {
		t.Error("the end of an open window lies one window farther ahead than that of one which is over")
	}
}
