package events

import (
	"testing"

	"github.com/hopscope/hopscope/internal/golden"
)

// TestStateOfBefore: only what was written before is held, because what a hop learns is not the same bits on all processors.
func TestStateOfBefore(t *testing.T) {
	cfg := worldConfigs()[1]
	cfg.Warmup = 15
	state := golden.StateFile(t, "version-3", func() []byte { return worldState(cfg, 40) })
	golden.SameState(t, "version-3", state, func(b []byte) ([]byte, error) {
		d := New(cfg)
		err := d.ReadState(b)
		return d.AppendState(nil), err
	})
}
