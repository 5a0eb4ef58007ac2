package events

import (
	"errors"
	"os"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/state"
)

// TestUpgrade lets a detector go on from a state of version 2, as a member of a fleet does when it replaces an older
// program. Open findings stay open under their ids. Findings of hops and of paths end with the next window, as the
// detectors that found them are gone. All others go on as they would have. The older program refuses the new state by
// its first byte, and begins anew.
func TestUpgrade(t *testing.T) {
	old, err := os.ReadFile("testdata/state-version-2.bin")
	if err != nil {
		t.Fatal(err)
	}
	if old[0] != 2 {
		t.Fatalf("the state has version %d", old[0])
	}
	d := New(DefaultConfig())
	if err := d.ReadState(old); err != nil {
		t.Fatal(err)
	}
	gone := func(k inference.Kind) bool {
		return k == inference.HighLatency || k == inference.HighQueue || k == inference.PathChanged
	}
	open := map[uint64]inference.Kind{}
	hops, last := 0, uint64(0)
	for _, f := range d.Open() {
		open[f.ID] = f.Kind
		last = max(last, f.ID)
		if gone(f.Kind) {
			hops++
		}
	}
	if hops < 2 || len(open) <= hops {
		t.Fatalf("%d findings are open, %d of hops: too few to prove anything", len(open), hops)
	}
	second := New(DefaultConfig())
	if err := second.ReadState(d.AppendState(nil)); err != nil { // what was read can be written
		t.Fatal(err)
	}
	for _, f := range second.Step(&inference.Window{Start: 71e10, End: 72e10, Hops: []inference.HopStats{{HopKey: inference.HopKey{Node: 900}}}}) {
		kind, known := open[f.ID]
		switch {
		case known && gone(f.Kind):
			if f.End == 0 {
				t.Errorf("%+v does not end what was open", f)
			}
			hops--
		case known && kind != f.Kind:
			t.Errorf("finding %d was %v and is %v", f.ID, kind, f.Kind)
		case !known && f.ID <= last:
			t.Errorf("finding %d takes an id that was given", f.ID)
		}
	}
	if hops != 0 {
		t.Errorf("%d findings of hops and paths did not end", hops)
	}
	for cut := range len(old) {
		if cut%97 != 0 {
			continue
		}
		if err := New(DefaultConfig()).ReadState(old[:cut]); !errors.Is(err, state.ErrShort) {
			t.Fatalf("cut at byte %d: %v", cut, err)
		}
	}
}
