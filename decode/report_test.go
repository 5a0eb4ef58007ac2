package decode

import "testing"

// TestWholePath: a stack that was cut inside its last block still names every hop.
func TestWholePath(t *testing.T) {
	named, nameless := Hop{Has: HopNodeID}, Hop{Has: HopIngressIf}
	for _, tt := range []struct {
		r    Report
		want bool
	}{
		{Report{}, false},
		{Report{Hops: []Hop{named}}, true},
		{Report{Hops: []Hop{named}, Flags: HopLimit}, false},
		{Report{Hops: []Hop{named}, Flags: MTU}, false},
		{Report{Hops: []Hop{named}, Flags: Truncated}, false},
		{Report{Hops: []Hop{named, named}, Flags: Truncated, Announced: 2}, true},
		{Report{Hops: []Hop{named}, Flags: Truncated, Announced: 2}, false},
		{Report{Hops: []Hop{nameless, named}, Flags: Truncated, Announced: 2}, false},
	} {
		if got := tt.r.WholePath(); got != tt.want {
			t.Errorf("WholePath(%+v) = %v", tt.r, got)
		}
	}
}
