package detect

import (
	"testing"

	"github.com/hopscope/hopscope/internal/golden"
)

// TestStateOfBefore: only what was written before is held, because what a hop learns is not the same bits on all processors.
func TestStateOfBefore(t *testing.T) {
	for name, factor := range map[string]float64{"quiet": 1, "moved": 6} {
		state := golden.StateFile(t, name, func() []byte {
			s, r := newSource(1, 50, .5, .05), newRun()
			for k := range 600 {
				w := s.window(nil)
				if k > 590 {
					w.P50, w.P90, w.P99 = factor*w.P50, factor*w.P90, factor*w.P99
				}
				r.add(w)
			}
			return r.AppendState(nil)
		})
		golden.SameState(t, name, state, func(b []byte) ([]byte, error) {
			var h Hop
			err := h.ReadState(b)
			return h.AppendState(nil), err
		})
	}
}
