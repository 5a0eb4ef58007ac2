package fleet

import (
	"errors"
	"maps"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/inference/window"
)

// record is the record number seq of a run of a collector, of which each has 10 reports.
func numbered(seq uint64) *fleet.Record {
	return &fleet.Record{Offset: int64(seq), Head: fleet.Head{Kind: fleet.Part, From: "a", Boot: 7, Seq: seq, End: int64(seq), Parts: 1, Reports: 10, Total: 10 * seq}}
}

// books rest on what records say of those before them.
func TestBooks(t *testing.T) {
	type want struct {
		taken, waiting, unread uint64
		dropped                map[string]uint64
	}
	check := func(name string, b *books, w want) {
		t.Helper()
		waiting := uint64(0)
		for _, n := range b.Waiting {
			waiting += n
		}
		if b.Taken != w.taken || waiting != w.waiting || b.Unread["a"] != w.unread || !maps.Equal(b.Dropped, w.dropped) {
			t.Errorf("%s: taken %d, waiting %d, unread %v, dropped %v; want %+v", name, b.Taken, waiting, b.Unread, b.Dropped, w)
		}
	}
	damaged := errors.New("damaged")
	b := newBooks()
	b.count(numbered(1), fleet.Nothing, nil)
	b.count(numbered(1), fleet.Duplicate, nil)
	b.count(numbered(1), fleet.Refused, damaged)
	check("a copy that is damaged", &b, want{taken: 10, waiting: 10})
	b.count(numbered(2), fleet.Refused, damaged)
	b.count(numbered(3), fleet.Late, nil)
	check("a record that is damaged", &b, want{taken: 20, waiting: 20, unread: 10})
	b.count(numbered(2), fleet.Late, nil)
	check("it comes once more, as it was", &b, want{taken: 30, waiting: 30})
	b.count(numbered(4), fleet.Refused, fleet.ErrOld)
	b.count(numbered(1), fleet.Refused, fleet.ErrOld)
	check("one that is too old, and one that was there before", &b, want{taken: 40, waiting: 30, dropped: map[string]uint64{"late": 10}})
	b.evict(map[int64]uint64{3: 10})
	check("one gave way", &b, want{taken: 40, waiting: 20, dropped: map[string]uint64{"late": 10, "full": 10}})

	second, err := readBooks(b.append())
	if err != nil {
		t.Fatal(err)
	}
	b = second
	b.noteHole(9, 1) // records 5 to 8
	b.count(numbered(9), fleet.Nothing, nil)
	check("retention", &b, want{taken: 90, waiting: 30, dropped: map[string]uint64{"late": 10, "full": 10, "retention": 40}})

	sent := func(e *fleet.Expected) []uint64 { return e.Windows }
	end := []fleet.Expected{{Name: "a", Boot: 7, Windows: []uint64{0, 120}}}
	b.noteHole(12, 2)
	b.reconcile(1, end, sent)
	check("what was not there when it was asked", &b, want{taken: 90, waiting: 30, dropped: map[string]uint64{"late": 10, "full": 10, "retention": 40}})
	b.reconcile(1, end, sent)
	b.reconcile(1, end, sent)
	check("retention, and nothing behind it", &b, want{taken: 120, waiting: 30, dropped: map[string]uint64{"late": 10, "full": 10, "retention": 70}})

	// A program that kept no runs had taken what came before.
	old, err := readBooks([]byte(`{"taken":50}`))
	if err != nil {
		t.Fatal(err)
	}
	old.count(numbered(6), fleet.Nothing, nil)
	old.count(numbered(8), fleet.Nothing, nil)
	check("after an upgrade", &old, want{taken: 70, waiting: 20, unread: 10})
	mark := numbered(9)
	mark.Head.Total = 0 // by a collector that does not count
	old.count(mark, fleet.Nothing, nil)
	check("of an old collector", &old, want{taken: 80, waiting: 30, unread: 10})
}

// A run that is not in the books any more may come again. What it sent before is not missing for that.
func TestBooksForgotten(t *testing.T) {
	b := newBooks()
	add := func(boot, seq uint64, end int64) {
		r := numbered(seq)
		r.Head.Boot, r.Head.End = boot, end
		b.count(r, fleet.Nothing, nil)
	}
	for boot := uint64(1); boot <= maxRuns+1; boot++ {
		add(boot, 1, int64(100+boot))
		add(boot, 2, int64(100+boot))
	}
	add(1, 3, 101)
	if b.Taken != 10*(2*(maxRuns+1)+1) || len(b.Unread) != 0 || len(b.Dropped) != 0 {
		t.Errorf("taken %d, unread %v, dropped %v", b.Taken, b.Unread, b.Dropped)
	}
	add(maxRuns+2, 2, 200)
	if n := b.Unread["a"] + b.Dropped[roster.DroppedRetention]; n != 10 {
		t.Errorf("of a new run, %d reports are missing, want 10", n)
	}
}

// What a former program found among Down stays known.
func TestBooksRecovered(t *testing.T) {
	b, err := readBooks([]byte(`{"taken":12,"recovered":3,"runs":{"a":[{"boot":1,"total":8,"open":{"20":3}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	b.count(&fleet.Record{Head: fleet.Head{Kind: fleet.Reports, From: "a", Boot: 2, End: 20, Reports: 4, Total: 4}}, fleet.Nothing, nil)
	var s partitionStatus
	if b.report(&s); s.recovered != 3 || s.Taken != 16 {
		t.Errorf("%d of %d, want 3 of 16", s.recovered, s.Taken)
	}
}

// What no collector took of a window is counted once, also when the window comes again.
func TestBooksDown(t *testing.T) {
	b := newBooks()
	merged := func(end int64, revision, down uint64) {
		m := &fleet.Merged{End: end, Revision: revision, Partial: &window.Partial{}}
		m.Partial.AddExporters([]inference.ExporterStats{{ExporterKey: inference.ExporterKey{Node: 1}, Down: down}})
		b.missed(m, end-100)
	}
	for _, step := range []struct {
		end            int64
		revision, down uint64
		want           uint64
	}{{10, 0, 0, 0}, {20, 0, 7, 7}, {10, 1, 5, 12}, {20, 1, 7, 12}, {20, 2, 4, 9}, {20, 0, 7, 12}, {10, 0, 5, 12}} {
		merged(step.end, step.revision, step.down)
		if b.Down != step.want {
			t.Errorf("after %+v: %d", step, b.Down)
		}
	}
}
