package fleet

import (
	"fmt"
	"testing"

	"github.com/hopscope/hopscope/inference/window"
)

// rebuilt makes the window to 100 ticks again of a log.
func rebuilt(t *testing.T, m *Merger, log []Record) *Merged {
	t.Helper()
	r := m.Rebuild(100 * tick)
	for i := range log {
		if err := r.Add(&log[i]); err != nil {
			t.Fatal(err)
		}
	}
	w, err := r.Merged()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestRebuildRefused: records that found no room in their window are not in it when it is made again, however many they
// are.
func TestRebuildRefused(t *testing.T) {
	p := &window.Partial{}
	p.Reports = 5
	size := int64(len(windowRecord(t, publisher("a", 1), p, 100*tick).Value))
	m := newMerger(t, func(c *Options) { c.MaxBytes = 3*size + size/2 })
	pub, refused := publisher("a", 1), 0
	var log []Record
	add := func(r Record) {
		r.Offset = int64(len(log))
		log = append(log, r)
		if e, _ := m.Add(&r); e.Kind == Refused {
			refused++
		}
	}
	for range maxRefused + 10 {
		add(windowRecord(t, pub, p, 100*tick))
	}
	add(Record{Head: Head{Kind: Close, End: 100 * tick}})
	add(windowRecord(t, pub, p, 100*tick))
	w := rebuilt(t, m, log)
	if refused != maxRefused+7 || w.Partial.Reports != 4*5 {
		t.Errorf("%d are refused, and the window has %d reports, want 20", refused, w.Partial.Reports)
	}
}

// TestRebuildBad: a record that cannot be read is reported once, however often its window is made again. Its sender
// stays missing.
func TestRebuildBad(t *testing.T) {
	m := newMerger(t, nil)
	p := &window.Partial{}
	p.Reports = 5
	var log []Record
	add := func(r Record) Event {
		t.Helper()
		r.Offset = int64(len(log))
		log = append(log, r)
		e, err := m.Add(&r)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	bad := func(from string) Record {
		r := windowRecord(t, publisher(from, 1), p, 100*tick)
		r.Value = []byte("of another version")
		r.Head.Sum = Sum(r.Value)
		return r
	}
	check := func(w *Merged, reports uint64, bad int, missing ...string) {
		t.Helper()
		if w.Partial.Reports != reports || len(w.Bad) != bad || fmt.Sprint(w.Missing) != fmt.Sprint(missing) {
			t.Errorf("%d reports, %d bad, %v missing, want %d, %d, %v", w.Partial.Reports, len(w.Bad), w.Missing, reports, bad, missing)
		}
	}
	add(bad("a")) // the first record of the window
	add(windowRecord(t, publisher("b", 1), p, 100*tick))
	check(add(Record{Head: Head{Kind: Close, End: 100 * tick}}).Closed, 5, 1, "a")
	add(bad("c"))
	check(rebuilt(t, m, log), 5, 1, "a", "c")
	add(windowRecord(t, publisher("d", 1), p, 100*tick))
	check(rebuilt(t, m, log), 10, 0, "a", "c")
}
