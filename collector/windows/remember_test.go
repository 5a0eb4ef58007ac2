package windows

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/sink/spool"
)

// TestRemember lets a run go on from what the detectors of another one knew: its open findings are published with the first window.
// What is damaged, old or of another version is left alone, and the collector runs.
func TestRemember(t *testing.T) {
	d := events.New(events.DefaultConfig())
	d.Step(&inference.Window{End: 1, Drops: []inference.DropStats{{Node: 4, Reason: 80, Count: 3}}})
	good := d.AppendState(nil)
	older := append([]byte{1}, good[1:]...)
	now := time.Now().UnixNano()
	for _, tt := range []struct {
		name string
		file []byte
		open int
	}{
		{"whole", encodeRemembered(now, good), 1},
		{"old", encodeRemembered(now-int64(2*rememberFor), good), 0},
		{"of the future", encodeRemembered(now+int64(2*rememberFor), good), 0},
		{"of version 1", encodeRemembered(now, older), 0},
		{"cut", encodeRemembered(now, good)[:40], 0},
		{"empty", nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conf := spool.DefaultConfig()
			conf.Dir = filepath.Join(t.TempDir(), "spool")
			state := StatePath("", []stores.Store{{Spool: &conf}})
			path := rememberPath(state)
			if err := os.MkdirAll(conf.Dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, tt.file, 0o600); err != nil {
				t.Fatal(err)
			}
			e := testEnds(t, state, &conf)
			defer e.Stores.Discard()
			defer e.State.Discard()
			x := e.Detectors
			if len(x.open) != tt.open || x.events.Stats().Open != tt.open {
				t.Errorf("%d findings are open, want %d", x.events.Stats().Open, tt.open)
			}
			x.all = nil // they find nothing more
			var w inference.Window
			if found := x.step(&w); len(found) != tt.open || len(x.step(&w)) != 0 {
				t.Errorf("%d findings come again, want %d, once", len(found), tt.open)
			}
			e.State.rememberNow(now)
			e.State.remembering.Lock()
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			end, written, err := decodeRemembered(b)
			if err != nil || end != now || events.New(events.DefaultConfig()).ReadState(written) != nil {
				t.Errorf("what was written cannot be read: %v", err)
			}
		})
	}
}
