package events

import (
	"os"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/internal/testkit"
)

// TestStateOfBefore: only what was written before is held, because what a hop learns is not the same bits on all
// processors.
func TestStateOfBefore(t *testing.T) {
	cfg := worldConfigs()[1]
	cfg.Warmup = 15
	state := testkit.StateFile(t, "version-16", func() []byte { return worldState(cfg, 40) })
	testkit.SameState(t, "version-16", state, func(b []byte) ([]byte, error) {
		d := New(cfg)
		err := d.ReadState(b)
		return d.AppendState(nil), err
	})
}

// States of earlier versions are read, and open findings stay so under their ids.
func TestStateOfEarlierVersions(t *testing.T) {
	for version, file := range map[byte]string{3: "version-3", 4: "version-4", 5: "version-5", 6: "version-6", 7: "version-7", 8: "version-8", 9: "version-9", 10: "version-10", 11: "version-11", 12: "version-12", 13: "version-13", 14: "version-14", 15: "version-15"} {
		d := New(DefaultConfig())
		old, err := os.ReadFile("testdata/" + file + ".state")
		if err == nil {
			err = d.ReadState(old)
		}
		if err != nil || old[0] != version {
			t.Fatal(file, err)
		}
		second := New(DefaultConfig())
		if err := second.ReadState(d.AppendState(nil)); err != nil || len(d.Open()) == 0 || !reflect.DeepEqual(second.Open(), d.Open()) {
			t.Errorf("%s: %d findings are open, and %d of what is written of them: %v", file, len(d.Open()), len(second.Open()), err)
		}
	}
}
