package fleet

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// Fetch reads records of the log again, those at some offsets, which ascend, and gives those that the log still has to take.
// What take is given it may not keep. An error says that the log cannot be read at present.
type Fetch func(offsets []int64, take func(*Record)) error

// FetchError says that records of a window could not be read again. Whoever was told it goes on from a state that was
// written before.
type FetchError struct {
	End int64
	Err error
}

func (e *FetchError) Error() string {
	return fmt.Sprintf("records of the window to %d cannot be read again: %v", e.End, e.Err)
}

// Unwrap gives the reason.
func (e *FetchError) Unwrap() error { return e.Err }

// Values keeps the values of records of the open windows of a [Gate], within a budget for all of them together. What does
// not fit is left out, the windows farthest in the future first. It is read from the log again when its window closes, and
// with it as much as fits of the windows that are next. A window that closes is there as a whole, whatever the budget is.
type Values struct {
	gate  *Gate
	most  int64 // 0 for all
	fetch Fetch
	bytes int64
	held  map[int64][]byte // by offset
	again uint64
}

// expectedValue is one that is to be read again.
type expectedValue struct {
	w *openWindow
	e *entry
}

// NewValues keeps at most most bytes, or all if most is 0 or nothing can be read again.
func NewValues(g *Gate, most int64, fetch Fetch) *Values {
	if fetch == nil {
		most = 0
	}
	return &Values{gate: g, most: most, fetch: fetch, held: map[int64][]byte{}}
}

// Bytes is how much is kept.
func (v *Values) Bytes() int64 { return v.bytes }

// Again counts the records that were read again.
func (v *Values) Again() uint64 { return v.again }

// Get gives the value of the record at an offset, if it is kept.
func (v *Values) Get(offset int64) ([]byte, bool) {
	value, ok := v.held[offset]
	return value, ok
}

// Prepare is called before a record is added to the gate: if it closes a window, all of that window is read. The error is a
// [*FetchError], and then nothing has changed.
func (v *Values) Prepare(r *Record) error {
	h := &r.Head
	if v.most <= 0 || h.Kind != Close || r.Offset < v.gate.next || v.gate.check(h) != nil {
		return nil
	}
	i, ok := v.gate.place(h.End)
	if !ok {
		return nil
	}
	w := v.gate.open[i]
	need := w.lacks()
	if need == 0 {
		return nil
	}
	expect := map[int64]expectedValue{}
	v.want(w, expect)
	v.makeRoom(need, w)
	left := v.most - v.bytes - need
	for _, next := range v.gate.open[i+1:] {
		n := next.lacks()
		if n > left {
			break
		}
		left -= n
		v.want(next, expect)
	}
	err := v.fetch(slices.Sorted(maps.Keys(expect)), func(r *Record) {
		x, ok := expect[r.Offset]
		if _, twice := v.held[r.Offset]; !ok || twice || int64(len(r.Value)) != x.e.size || Sum(r.Value) != x.e.sum {
			return
		}
		v.again++
		v.put(x.w, r)
	})
	if err != nil {
		return &FetchError{h.End, err}
	}
	return nil
}

// lacks is how many bytes of a window are not kept.
func (w *openWindow) lacks() int64 { return w.bytes - w.held }

// want notes which values of a window are not kept.
func (v *Values) want(w *openWindow, expect map[int64]expectedValue) {
	for i := range w.entries {
		e := &w.entries[i]
		if _, held := v.held[e.offset]; !held && e.size > 0 {
			expect[e.offset] = expectedValue{w, e}
		}
	}
}

func (v *Values) put(w *openWindow, r *Record) {
	v.held[r.Offset] = bytes.Clone(r.Value)
	v.bytes += int64(len(r.Value))
	w.held += int64(len(r.Value))
}

// makeRoom forgets windows behind w, the farthest first, until there is room for n more bytes, and reports whether there is.
func (v *Values) makeRoom(n int64, w *openWindow) bool {
	for i := len(v.gate.open) - 1; i >= 0 && v.bytes+n > v.most && v.gate.open[i].end > w.end; i-- {
		far := v.gate.open[i]
		if far.held == 0 {
			continue
		}
		for j := range far.entries {
			v.drop(far.entries[j].offset)
		}
		far.held = 0
	}
	return v.bytes+n <= v.most
}

func (v *Values) drop(offset int64) {
	v.bytes -= int64(len(v.held[offset]))
	delete(v.held, offset)
}

// Keep is called with what the gate said of a record: it keeps the value if it is of an open window, and forgets those of
// windows that are not open any more.
func (v *Values) Keep(r *Record, said *Verdict) {
	v.Forget(said.Dropped)
	if !said.Taken {
		return
	}
	if w := v.gate.find(r.Head.End); v.most <= 0 || v.makeRoom(int64(len(r.Value)), w) {
		v.put(w, r)
	}
}

// Forget forgets the values of records whose windows are not open any more.
func (v *Values) Forget(offsets []int64) {
	for _, at := range offsets {
		v.drop(at)
	}
}

func (v *Values) clear() {
	clear(v.held)
	v.bytes = 0
}
