package traffic

import (
	"testing"
	"time"
)

// A unit takes some time, however short the measurement is to be.
func TestUnit(t *testing.T) {
	d, err := Unit(time.Millisecond)
	if err != nil || d <= 0 {
		t.Errorf("a unit takes %v, %v", d, err)
	}
}
