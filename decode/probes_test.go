package decode

import "testing"

// TestPathText names the class of sessions that have one, the least and the greatest.
func TestPathText(t *testing.T) {
	for _, c := range []struct {
		path uint32
		want string
	}{
		{0, "0"}, {65535, "65535"}, {ClassPath(5, 46), "5 with DSCP 46"}, {ClassPath(65535, 63), "65535 with DSCP 63"}, {ClassPath(0, 0), "0 with DSCP 0"},
		{65 << 16, "4259840"}, {1<<32 - 1, "4294967295"},
	} {
		if got := PathText(c.path); got != c.want {
			t.Errorf("PathText(%d) = %q, want %q", c.path, got, c.want)
		}
	}
	if ClassPath(5, 46) == ClassPath(5, 10) || ClassPath(5, 0) == 5 {
		t.Error("two classes have one number")
	}
}

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
