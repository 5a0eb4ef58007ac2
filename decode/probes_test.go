package decode

import "testing"

// TestKeptDelays holds that one report with many delays does not keep its memory for good, and that one with few does.
func TestKeptDelays(t *testing.T) {
	for _, c := range [][2]int{{KeptDelays, KeptDelays}, {KeptDelays + 1, 0}} {
		var r Report
		r.AddProbes().Delays = make([]DelayCount, 0, c[0])
		r.Reset()
		if got := cap(r.AddProbes().Delays); got != c[1] {
			t.Errorf("of %d delays %d are kept, want %d", c[0], got, c[1])
		}
	}
}
