package fleet

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
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
	for name, tt := range map[string]struct{ from, to keeper }{
		"gate":      {m.Gate, w.merger(0).Gate},
		"merger":    {m, w.merger(0)},
		"assembler": {a, w.assembler()},
	} {
		testkit.SameState(t, name, tt.from.AppendState(nil), func(b []byte) ([]byte, error) {
			err := tt.to.ReadState(b)
			return tt.to.AppendState(nil), err
		})
	}
}
