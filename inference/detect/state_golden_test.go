package detect

import (
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

// TestStateOfBefore holds only states written before, because the learnt values of a hop are not the same bits on all
// processors. The first two are of before the floor and the tail were compared. Their levels are learnt anew, but not
// their counts of silence and repetition.
func TestStateOfBefore(t *testing.T) {
	for _, name := range []string{"quiet", "moved"} {
		var h, second Hop
		if err := h.ReadState(testkit.StateFile(t, name, nil)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, open := h.Open(); open || h.windows != 1 || h.logCount == 0 || len(h.stats) != statistics {
			t.Errorf("%s: read as %+v", name, h)
		}
		if err := second.ReadState(h.AppendState(nil)); err != nil {
			t.Errorf("%s: what was read and written is refused: %v", name, err)
		}
		s, cfg := newSource(1, 50, .5, .05), Latency(10*time.Second)
		for k := range 100 {
			h.Add(&cfg, cfg.At(int64(k+601)*int64(cfg.Window)), s.window(nil))
		}
		if _, open := h.Open(); open || h.Warming(&cfg) {
			t.Errorf("%s: does not go on: %+v", name, h.open)
		}
	}
	for name, factor := range map[string]float64{"quiet-floor": 1, "moved-floor": 6} {
		state := testkit.StateFile(t, name, func() []byte {
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
		testkit.SameState(t, name, state, func(b []byte) ([]byte, error) {
			var h Hop
			err := h.ReadState(b)
			return h.AppendState(nil), err
		})
	}
}
