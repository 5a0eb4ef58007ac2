package fleet

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference/window"
)

// outage makes a fleet whose collectors could not reach the log for some windows. Then they send their kept records one
// after the other, while no consumer reads.
func outage(t testing.TB, seed uint64, windows int, change func(*Options)) *world {
	w := newWorld(t, seed)
	base := w.cfg
	w.cfg = func(slice int) Options {
		cfg := base(slice)
		cfg.Corrections = int64(windows+100) * w.window
		change(&cfg)
		if cfg.MaxHeld > 0 {
			cfg.Fetch = w.fetch(slice)
		}
		return cfg
	}
	for p := range w.owners {
		w.owners[p] = []*Merger{w.merger(p)}
	}
	for range windows {
		end := w.now + w.window
		all := &window.Partial{}
		parts := make([]*window.Partial, len(w.members))
		for i := range parts {
			parts[i] = &window.Partial{}
		}
		see(w.rng, w.now, end, all, parts)
		w.truth[end], w.now = all, end
		for i, m := range w.members {
			out, err := m.pub.Window(nil, parts[i], end, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range out {
				m.queue[o.Partition] = append(m.queue[o.Partition], o)
			}
		}
	}
	for _, m := range w.members {
		for p := range m.queue {
			for _, o := range m.queue[p] {
				w.append(p, o.Head, o.Value)
			}
			m.queue[p] = nil
		}
	}
	return w
}

// stamp sets the append times of all records to one at which all windows were over.
func (w *world) stamp() {
	for p := range w.logs {
		for i := range w.logs[p] {
			w.logs[p][i].Time = w.now
		}
	}
}

// fetch reads a log by offsets.
func (w *world) fetch(p int) Fetch {
	return func(offsets []int64, receive func(*Record)) error {
		if !slices.IsSorted(offsets) || len(offsets) == 0 {
			w.t.Fatalf("offsets %v are read again", offsets)
		}
		for _, at := range offsets {
			r := w.logs[p][at]
			r.Value = bytes.Clone(r.Value)
			receive(&r)
			clear(r.Value)
		}
		return nil
	}
}

// TestOutages: after an outage of hundreds of windows all records of one collector come before those of the next. All
// windows close whole and in order. They are bit for bit the same as with all values in memory, however small the
// budget is. A reader that goes on from a state gives the same.
func TestOutages(t *testing.T) {
	read, whole := uint64(0), 0
	for seed := range uint64(5) {
		windows := 60 + int(seed)*60
		var want [][]reported
		for i, budget := range []int64{0, 1, 700, 5000, 100_000} {
			w := outage(t, seed, windows, func(c *Options) { c.MaxHeld = budget })
			w.stamp()
			for p := range w.logs {
				m := w.owners[p][0]
				most := int64(0)
				var largest int64 // window
				for {
					for ; w.read[p][0] < len(w.logs[p]); w.read[p][0]++ {
						for _, o := range m.open {
							largest = max(largest, o.bytes)
						}
						r := &w.logs[p][w.read[p][0]]
						e, err := m.Add(r)
						if err != nil {
							t.Fatalf("seed %d, budget %d: %v", seed, budget, err)
						}
						most = max(most, m.values.bytes)
						if e.Closed != nil {
							w.outputs[p] = append(w.outputs[p], emit(t, e.Closed))
							m.Release(e.Closed)
						}
					}
					h, ok := m.Due(w.now)
					if !ok {
						break
					}
					w.append(p, h, nil)
					if w.rng.IntN(40) == 0 { // another one takes over
						next := w.merger(p)
						if err := next.ReadState(m.AppendState(nil)); err != nil {
							t.Fatal(err)
						}
						read += m.values.repeated
						w.read[p][0], m = int(m.Floor()), next
					}
				}
				read += m.values.repeated
				if budget > 0 && most > max(budget, largest) {
					t.Errorf("seed %d: %d bytes are kept with a budget of %d and windows of up to %d", seed, most, budget, largest)
				}
				if len(w.outputs[p]) != windows || m.heads != 0 || len(m.values.held) != 0 || m.values.bytes != 0 || len(m.Pending()) != 0 {
					t.Fatalf("seed %d, budget %d: %d windows of %d closed, %d records left, %d values", seed, budget, len(w.outputs[p]), windows, m.heads, len(m.values.held))
				}
				for _, out := range w.outputs[p] {
					if len(out.Missing) > 0 || out.Bad > 0 || out.Revision > 0 {
						t.Fatalf("seed %d, budget %d: window to %d without %v, %d bad records", seed, budget, out.End, out.Missing, out.Bad)
					}
				}
			}
			if i == 0 {
				want = w.outputs
				whole += windows
				for end, truth := range w.truth {
					var got window.Partial
					for p := range want {
						i, ok := slices.BinarySearchFunc(want[p], end, func(o reported, end int64) int { return int(o.End/w.window - end/w.window) })
						if !ok {
							t.Fatalf("seed %d: the window to %d did not close", seed, end)
						}
						var q window.Partial
						if err := q.ReadBinary([]byte(want[p][i].Partial), wide); err != nil {
							t.Fatal(err)
						}
						got.Merge(&q)
					}
					if !bytes.Equal(encoded(t, &got), encoded(t, truth)) {
						t.Fatalf("seed %d: the window to %d is not what one process sees", seed, end)
					}
				}
			} else if !reflect.DeepEqual(w.outputs, want) {
				t.Fatalf("seed %d: another result with a budget of %d", seed, budget)
			}
		}
	}
	if read < 3000 || whole < 900 {
		t.Errorf("%d records were read again in outages of %d windows: the simulation does not simulate", read, whole)
	}
}

// TestFetchFails: when the log cannot be read, the record that closes a window is not added, and can be added again.
// Records that are gone from the log, or differ there, are reported.
func TestFetchFails(t *testing.T) {
	w := outage(t, 3, 40, func(c *Options) { c.MaxHeld = 1 })
	away := errors.New("away")
	var fail error
	var change func(r *Record) bool
	cfg := w.cfg(0)
	cfg.Fetch = func(offsets []int64, receive func(*Record)) error {
		if fail != nil {
			return fail
		}
		return w.fetch(0)(offsets, func(r *Record) {
			if change == nil || change(r) {
				receive(r)
				receive(r) // twice is once
			}
		})
	}
	m, err := NewMerger(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.logs[0] {
		if _, err := m.Add(&w.logs[0][i]); err != nil {
			t.Fatal(err)
		}
	}
	closing := func() *Record {
		h, ok := m.Due(w.now)
		if !ok {
			t.Fatal("nothing is due")
		}
		w.append(0, h, nil)
		return &w.logs[0][len(w.logs[0])-1]
	}
	before := m.AppendState(nil)
	r := closing()
	fail = away
	e, err := m.Add(r)
	var fetch *FetchError
	if !errors.As(err, &fetch) || !errors.Is(err, away) || fetch.End != r.Head.End || e.Kind != Nothing || e.Closed != nil || !bytes.Equal(m.AppendState(nil), before) {
		t.Fatalf("while the log is away: %+v, %v", e, err)
	}
	fail = nil
	if e, err = m.Add(r); err != nil || e.Closed == nil || len(e.Closed.Bad) != 0 {
		t.Fatalf("when it is there again: %+v, %v", e, err)
	}
	for what, f := range map[string]func(r *Record) bool{
		"gone":    func(*Record) bool { return false },
		"changed": func(r *Record) bool { r.Value[0] ^= 1; return true },
		"shorter": func(r *Record) bool { r.Value = r.Value[:len(r.Value)-1]; return true },
		"moved":   func(r *Record) bool { r.Offset += 1 << 40; return true },
	} {
		change = f
		e, err := m.Add(closing())
		if err != nil || e.Closed == nil || len(e.Closed.Bad) == 0 || len(e.Closed.Missing) == 0 {
			t.Errorf("%s: %+v, %v", what, e, err)
		}
	}
}

// TestGateHoldsThousands: there is room for thousands of windows that are over, and they take none from windows that
// are to come. Of those ahead of the clock of the log there are few.
func TestGateHoldsThousands(t *testing.T) {
	s := newScript(t, func(c *Options) { c.MaxAhead, c.MaxRecords = 4, 10_100 })
	at := func(h Head, now int64, kind EventKind, reason error) Verdict {
		t.Helper()
		v, err := s.g.Add(&h, s.at, 10, now*tick)
		s.at++
		if v.Kind != kind || !errors.Is(err, reason) {
			t.Fatalf("%+v at %d: %v, %v; want %v, %v", h, now, v.Kind, err, kind, reason)
		}
		return v
	}
	const now = 6000
	for n := range uint64(5000) {
		at(part("a", 1, n+1, int64(n)+1000), now, Nothing, nil)
	}
	for n := range int64(4) { // a fast clock
		at(part("fast", 1, uint64(n+1), 7000+n), now, Nothing, nil)
	}
	at(part("fast", 1, 5, 7004), now, Refused, ErrFuture)
	for n := range uint64(5000) {
		if v := at(part("b", 1, n+1, int64(n)+1000), now, Nothing, nil); len(v.Dropped) > 0 {
			t.Fatalf("window %d drops %v", n, v.Dropped)
		}
	}
	// A window that lies ahead as well, and nearer, takes the place of one of the fast ones; one that is over does not.
	if v := at(part("a", 1, 5001, 6001), now, Nothing, nil); len(v.Dropped) != 1 || s.g.Stats().Evicted != 1 {
		t.Fatalf("%+v, %+v", v, s.g.Stats())
	}
	at(part("a", 1, 5002, 6000), now, Nothing, nil)
	state := s.g.AppendState(nil)
	second := newScript(t, func(c *Options) { c.MaxAhead, c.MaxRecords = 4, 10_100 }).g
	if err := second.ReadState(state); err != nil || !bytes.Equal(second.AppendState(nil), state) || second.heads != s.g.heads || second.Floor() != 0 {
		t.Fatalf("after it was read again: %v, %d records, want %d", err, second.heads, s.g.heads)
	}
	// Where there is no room for the records of all windows, the farthest give way.
	n := uint64(0)
	for ; s.g.heads < 10_100; n++ {
		at(part("c", 1, n+1, int64(n)+1000), now, Nothing, nil)
	}
	if v := at(part("c", 1, n+1, int64(n)+1000), now, Nothing, nil); len(v.Dropped) != 1 || v.Dropped[0] != 5002 {
		t.Errorf("%+v; want the farthest window to give way", v)
	}
	for w := int64(1000); w < 6000; w++ {
		h, ok := s.g.Due(now * tick)
		if !ok || h.End != w*tick {
			t.Fatalf("due: %v, %+v; want window %d", ok, h, w)
		}
		if v := s.want(h, Closed, nil); len(v.Closing.Offsets) != 2+int(min(1, max(0, 1000+int64(n)+1-w))) {
			t.Fatalf("window %d closed with %v", w, v.Closing)
		}
	}
	if s.g.heads != s.g.Open() {
		t.Errorf("%d records of %d windows", s.g.heads, s.g.Open())
	}
}

// TestAssemblerBudget: slices that are published one after the other over hundreds of windows are combined bit for bit
// as with all of them in memory. No window is published without one.
func TestAssemblerBudget(t *testing.T) {
	const windows, count = 200, 4
	rng := rand.New(rand.NewPCG(5, 5))
	codec := NewCodec(0, wide)
	var log []Record
	for slice := range count {
		for n := range windows {
			var p window.Partial
			parts := []*window.Partial{&p}
			end := int64(1000+n) * tick
			see(rng, end-tick, end, &window.Partial{}, parts)
			m := &Merged{Start: end - tick, End: end, Partial: &p, Sources: []Source{{"a", 1, uint64(n)}, {"b", 2, 5}}, Owners: make([]uint32, len(p.Exporters()))}
			out, err := EncodeSlice(nil, codec, "x", slice, m, 300+rng.IntN(2000))
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range out {
				log = append(log, Record{Offset: int64(len(log)), Head: o.Head, Value: o.Value, Time: int64(5000+n/10) * tick})
			}
		}
	}
	var fail error
	fetch := func(offsets []int64, receive func(*Record)) error {
		if fail != nil {
			return fail
		}
		for _, at := range offsets {
			r := log[at]
			r.Value = bytes.Clone(r.Value)
			receive(&r)
			clear(r.Value)
		}
		return nil
	}
	var want []wholeReported
	for _, budget := range []int64{0, 1, 3000, 50_000} {
		change := func(c *Options) {
			c.Slices, c.MaxOpen, c.Silence, c.MaxHeld, c.Fetch = count, 1000, 100*tick, budget, fetch
		}
		a := newAssembler(t, change)
		var got []wholeReported
		most := int64(0)
		cut := rng.IntN(len(log))
		for i := 0; i < len(log); i++ {
			if i == cut {
				next := newAssembler(t, change)
				if err := next.ReadState(a.AppendState(nil)); err != nil {
					t.Fatal(err)
				}
				i, a, cut = int(a.Floor()), next, -1
			}
			e, err := a.Add(&log[i])
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, a.Held())
			for _, x := range e.Whole {
				got = append(got, reportWhole(t, x))
				a.Release(x)
			}
		}
		if len(got) != windows || a.Stats().Forced != 0 || a.Held() != 0 || a.Open() != 0 {
			t.Fatalf("budget %d: %d windows, %+v, %d bytes left", budget, len(got), a.Stats(), a.Held())
		}
		for _, x := range got {
			if len(x.Absent) > 0 {
				t.Fatalf("budget %d: window to %d without slices %v", budget, x.End, x.Absent)
			}
		}
		switch {
		case budget == 0:
			want = got
		case !reflect.DeepEqual(got, want):
			t.Fatalf("another result with a budget of %d", budget)
		case a.Reread() < windows:
			t.Errorf("budget %d: only %d records were read again", budget, a.Reread())
		}
		if budget == 50_000 && most > 60_000 {
			t.Errorf("%d bytes are kept with a budget of %d", most, budget)
		}
	}
	// An error while records are read again is returned.
	a := newAssembler(t, func(c *Options) { c.Slices, c.MaxOpen, c.MaxHeld, c.Fetch = count, 1000, 1, fetch })
	fail = errors.New("away")
	for i := range log {
		if _, err := a.Add(&log[i]); err != nil {
			var at *FetchError
			if !errors.As(err, &at) || !errors.Is(err, fail) || at.End != 1000*tick {
				t.Errorf("while the log is away: %v", err)
			}
			return
		}
	}
	t.Error("no error while the log is away")
}

// TestAssemblerSilence: a slice that publishes nothing for long is not waited for; one that publishes earlier windows is.
func TestAssemblerSilence(t *testing.T) {
	a := newAssembler(t, func(c *Options) { c.MaxOpen, c.Silence = 1000, 20*tick })
	offset := int64(0)
	add := func(slice int, window, at int64) []*Assembled {
		t.Helper()
		r := sliceRecord(t, offset, slice, window, nil)
		r.Offset, r.Time = offset, at*tick
		offset++
		e, err := a.Add(&r)
		if err != nil {
			t.Fatal(err)
		}
		return e.Whole
	}
	for n := range int64(100) { // both are behind; the second one by far more
		if got := add(0, 100+n, 1000+n); len(got) > 0 {
			t.Fatalf("window %d is reported: %+v", 100+n, got[0])
		}
		if n%10 == 0 {
			if got := add(1, 100+n/10, 1000+n); len(got) != 1 || len(got[0].Absent) > 0 {
				t.Fatalf("%+v", got)
			}
		}
	}
	if a.Stats().Forced != 0 || a.Open() != 90 {
		t.Fatalf("%+v, %d open", a.Stats(), a.Open())
	}
	state := a.AppendState(nil)
	a = newAssembler(t, func(c *Options) { c.MaxOpen, c.Silence = 1000, 20*tick })
	if err := a.ReadState(state); err != nil {
		t.Fatal(err)
	}
	if got := add(0, 200, 1110); len(got) != 0 { // it spoke at 1090
		t.Fatalf("%d windows are reported", len(got))
	}
	got := add(0, 201, 1111)
	if len(got) != 81 || !slices.Equal(got[0].Absent, []int{1}) || a.Stats().Forced != 81 {
		t.Fatalf("%d windows are reported, %+v", len(got), a.Stats())
	}
}
