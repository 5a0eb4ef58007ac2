package fleet

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/internal/golden"
)

type keeper interface {
	AppendState([]byte) []byte
	ReadState([]byte) error
}

// TestStatesOfBefore: states of all that is kept in checkpoints stay as they were.
func TestStatesOfBefore(t *testing.T) {
	w := simulate(t, 3, 12, false)
	m, rng := w.owners[0][0], rand.New(rand.NewPCG(1, 1))
	log := series(t, w, rng)
	a := w.assembler()
	for i := range log[:2*len(log)/3] {
		if _, err := a.Add(&log[i]); err != nil {
			t.Fatal(err)
		}
	}
	c := crossed(1)
	for name, tt := range map[string]struct{ from, to keeper }{
		"gate":      {m.Gate, w.merger(0).Gate},
		"merger":    {m, w.merger(0)},
		"assembler": {a, w.assembler()},
		"cross-v2":  {c, newCrossing(c.limits)},
	} {
		golden.SameState(t, name, tt.from.AppendState(nil), func(b []byte) ([]byte, error) {
			err := tt.to.ReadState(b)
			return tt.to.AppendState(nil), err
		})
	}
	// Version 1 has neither gaps nor more than one time in which an exporter was shared.
	former := newCrossing(c.limits)
	if err := former.ReadState(golden.StateFile(t, "cross", func() []byte { return nil })); err != nil {
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
