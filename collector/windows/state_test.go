package windows

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/collector/metrics"
	"github.com/hopscope/hopscope/collector/pipeline"
	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/spool"
)

// A state is read as it was written, and nothing else is taken for one.
func TestStateFile(t *testing.T) {
	want := savedState{Runs: 3, Since: 5, Filled: 7, After: snapshot{End: 9, Exporters: []byte{1, 2},
		Sinks: map[string]sinkTotals{"influx": {Received: 8, Dropped: map[string]int64{"down": 2}}}}}
	path := filepath.Join(t.TempDir(), "state")
	// A write that a crash cut leaves the file beside it, which the next one replaces.
	if err := os.WriteFile(path+".new", []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := stores.ReplaceFile(path, encodeState(&want)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := readState(path); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v", got, err)
	}
	good := encodeState(&want)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		if _, err := decodeState(bad); !errors.Is(err, errState) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if _, err := decodeState(good[:i]); !errors.Is(err, errState) {
			t.Errorf("the first %d bytes: %v", i, err)
		}
	}
	if _, err := decodeState(append(good, 0)); !errors.Is(err, errState) {
		t.Errorf("a byte more: %v", err)
	}
}

// discard is a store that takes everything.
type discard struct{}

func (discard) Name() string                             { return "discard" }
func (discard) Write(context.Context, *sink.Batch) error { return nil }
func (discard) Close() error                             { return nil }

// TestStateAtEveryStep ends a run at every step between two windows. These are before and after the state file is
// replaced, and after the window reached the spool. The next run goes on with the window in the spool, and puts a
// damaged file aside.
func TestStateAtEveryStep(t *testing.T) {
	for _, step := range []string{"before the state", "behind the state", "behind the spool", "damaged"} {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			conf := spool.DefaultConfig()
			conf.Dir = filepath.Join(dir, "spool")
			sp, err := spool.Open(conf)
			if err != nil {
				t.Fatal(err)
			}
			if err := sp.Append(10, 1, []byte("the window before")); err != nil {
				t.Fatal(err)
			}
			path := StatePath("", []stores.Store{{}, {Spool: &conf}})
			totals := func(n uint64) map[string]sinkTotals { return map[string]sinkTotals{"discard": {Received: n}} }
			s := savedState{Runs: 1, Since: 1, Before: snapshot{End: 1, Sinks: totals(0)}, After: snapshot{End: 2, Sinks: totals(10)}}
			save := func() {
				if err := stores.ReplaceFile(path, encodeState(&s)); err != nil {
					t.Fatal(err)
				}
			}
			save() // of the window before, with the spool empty
			want := int64(2)
			if step != "before the state" {
				s.Filled, s.Before, s.After = sp.End(), s.After, snapshot{End: 3, Sinks: totals(30)}
				save()
			}
			if step == "behind the spool" {
				if err := sp.Append(20, 1, []byte("the window")); err != nil {
					t.Fatal(err)
				}
				want = 3
			}
			if step == "damaged" {
				if err := os.WriteFile(path, []byte("hopstat1 and no more"), 0o600); err != nil {
					t.Fatal(err)
				}
				want = 0
			}
			if err := sp.Close(); err != nil {
				t.Fatal(err)
			}
			e := testEnds(t, path, &conf)
			defer e.Stores.Discard()
			defer e.State.Discard()
			if got := e.State.state.After.End; got != want {
				t.Errorf("goes on behind window %d, want %d", got, want)
			}
			if n := e.Ledger.Snapshot()[0].Dropped["down"]; n != 0 {
				t.Errorf("%d reports were in no window", n)
			}
			if _, err := os.Stat(path + ".bad"); (err == nil) != (step == "damaged") {
				t.Errorf("a file is put aside: %v", err)
			}
			e.account(&inference.Window{End: time.Now().UnixNano(), Exporters: []inference.ExporterStats{{Down: 3}}})
			if b := e.Ledger.Snapshot()[0]; b.Unsettled != 0 || b.Dropped["down"] < 3 {
				t.Errorf("%+v", b)
			}
			if got, err := readState(path); err != nil || got.Clean || got.Runs < 1 || got.Before.End != want {
				t.Errorf("saved %+v, %v", got, err)
			}
		})
	}
}

// testEnds is what ends windows of a run that writes to a store with a spool, and keeps its state in a file.
func testEnds(t *testing.T, path string, conf *spool.Config) *Ends {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	l := ledger.New("discard")
	set, err := stores.NewSet([]stores.Store{{Name: "discard", Writer: discard{}, Queue: sink.DefaultQueueConfig(), Spool: conf}}, stores.SetOptions{
		Ledger: l, Log: log, Write: metrics.NewDurations(metrics.Metric{Name: "write", Labels: []string{"sink", "ok"}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	p := pipeline.New(pipeline.Config{Window: time.Second, Tracking: sequence.DefaultConfig(), Ledger: l, Log: log})
	d := NewDetectors(events.DefaultConfig(), true)
	state, err := OpenState(path, set, l, p, d, log)
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Pipeline: p, Ledger: l, Detectors: d, Stores: set, State: state, Log: log})
}
