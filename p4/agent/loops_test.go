package agent

import (
	"testing"
	"time"
)

// TestClockSet: a wall clock that was set since the last look is noticed once, however short ago that look was.
func TestClockSet(t *testing.T) {
	c := newClock()
	for _, by := range []time.Duration{0, time.Hour, -time.Hour, 2 * step, -2 * step, step / 2} {
		c.wall -= int64(by)
		if got, want := c.set(), by.Abs() > step; got != want {
			t.Errorf("set by %v: %v", by, got)
		}
		if c.set() {
			t.Errorf("set by %v: noticed again", by)
		}
	}
}
