package cross

import (
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// TestStatesOfBefore: the state of a crossing stays as it was.
func TestStatesOfBefore(t *testing.T) {
	c := crossed(1)
	testkit.SameState(t, "cross-v2", c.AppendState(nil), func(b []byte) ([]byte, error) {
		other := New(c.limits)
		err := other.ReadState(b)
		return other.AppendState(nil), err
	})
	// Version 1 has neither gaps nor more than one time in which an exporter was shared.
	former := New(c.limits)
	if err := former.ReadState(testkit.StateFile(t, "cross", func() []byte { return nil })); err != nil {
		t.Fatal(err)
	}
	x, y := former.Stats(), c.Stats()
	if x != y || x.Shared == 0 {
		t.Errorf("version 1 is read as %+v, want %+v", x, y)
	}
	for k, e := range former.exporters {
		if until := c.exporters[k].until(); e.until() != until || e.claimed != c.exporters[k].claimed || len(e.claims) == 0 {
			t.Errorf("%v of version 1 is shared until %d, want %d; %d claims", k, e.until(), until, len(e.claims))
		}
	}
}
