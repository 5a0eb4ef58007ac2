package fleet

import (
	"fmt"
	"maps"
	"slices"
)

// Fetch reads records of the log again, at the given ascending offsets. It passes the records that are still in the log
// to handle, which may not keep them. An error means that the log cannot be read at present.
type Fetch func(offsets []int64, handle func(*Record)) error

// FetchError is the error of records of a window that could not be read again. The reader of the log goes on from an
// earlier state.
type FetchError struct {
	End int64
	Err error
}

func (e *FetchError) Error() string {
	return fmt.Sprintf("records of the window to %d cannot be read again: %v", e.End, e.Err)
}

// Unwrap returns the reason.
func (e *FetchError) Unwrap() error { return e.Err }

// values are those of records of the open windows of a gate, within MaxHeld bytes for all of them together. Values that
// do not fit are left out, those of windows farthest in the future first. They are read from the log again when their
// window closes, with as many of the next windows as fit. A window that closes is there as a whole, whatever the budget
// is.
type values struct {
	bytes    int64
	held     map[int64][]byte // by offset
	repeated uint64           // records that were read again
}

// expectedValue is one that is to be read again.
type expectedValue struct {
	w *openWindow
	e *entry
}

// Held is the number of bytes of values in memory.
func (g *Gate) Held() int64 { return g.values.bytes }

// Reread counts the records that were read again.
func (g *Gate) Reread() uint64 { return g.values.repeated }

// AddRecord adds a record like [Gate.Add], and keeps its value until its window closes. A record whose checksum differs
// from that in its head is refused. After a [*FetchError] nothing has changed, and the record was not added.
func (g *Gate) AddRecord(r *Record) (Verdict, error) {
	h := &r.Head
	kind := Part
	if g.cfg.Reports {
		kind = Reports
	}
	if h.Kind == kind && Sum(r.Value) != h.Sum {
		g.refuse(h, r.Offset)
		return Verdict{Kind: Refused, End: h.End}, &recordError{r.Offset, h.From, h.End, &valueError{"record", ErrSum}, 0}
	}
	if err := g.prepare(r); err != nil {
		return Verdict{End: h.End}, err
	}
	v, err := g.Add(h, r.Offset, len(r.Value), r.Time)
	g.forgetValues(v.Dropped)
	if v.Taken && h.Kind == kind {
		if w := g.find(h.End); g.cfg.MaxHeld <= 0 || g.roomForValue(int64(len(r.Value)), w) {
			g.put(w, r)
		}
	}
	for _, c := range append(v.Passed, v.Closing) {
		if c == nil {
			continue
		}
		for _, at := range c.Offsets {
			c.Values = append(c.Values, g.values.held[at])
		}
		g.forgetValues(c.Offsets)
	}
	return v, err
}

// prepare reads all of a window again that a record is about to close. The error is a [*FetchError], and then nothing has
// changed.
func (g *Gate) prepare(r *Record) error {
	h := &r.Head
	if g.cfg.MaxHeld <= 0 || h.Kind != Close || r.Offset < g.next || g.check(h) != nil {
		return nil
	}
	from, ok := g.place(h.End)
	to := from
	if ok {
		to++
	}
	if g.cfg.Reports { // earlier ones close with it
		from = 0
	}
	closing := g.open[from:to]
	need, expect := int64(0), map[int64]expectedValue{}
	for _, w := range closing {
		need += w.lacks()
		g.want(w, expect)
	}
	if need == 0 {
		return nil
	}
	g.roomForValue(need, closing[len(closing)-1])
	left := g.cfg.MaxHeld - g.values.bytes - need
	for _, next := range g.open[to:] {
		n := next.lacks()
		if n > left {
			break
		}
		left -= n
		g.want(next, expect)
	}
	err := g.cfg.Fetch(slices.Sorted(maps.Keys(expect)), func(r *Record) {
		x, ok := expect[r.Offset]
		if _, twice := g.values.held[r.Offset]; !ok || twice || int64(len(r.Value)) != x.e.size || Sum(r.Value) != x.e.sum {
			return
		}
		g.values.repeated++
		g.put(x.w, r)
	})
	if err != nil {
		return &FetchError{h.End, err}
	}
	return nil
}

// lacks is how many bytes of a window are not in memory.
func (w *openWindow) lacks() int64 { return w.bytes - w.held }

// want notes which values of a window are not in memory.
func (g *Gate) want(w *openWindow, expect map[int64]expectedValue) {
	for i := range w.entries {
		e := &w.entries[i]
		if _, held := g.values.held[e.offset]; !held && e.size > 0 {
			expect[e.offset] = expectedValue{w, e}
		}
	}
}

func (g *Gate) put(w *openWindow, r *Record) {
	g.values.held[r.Offset] = append([]byte{}, r.Value...)
	g.values.bytes += int64(len(r.Value))
	w.held += int64(len(r.Value))
}

// roomForValue forgets windows behind w, the farthest first, until there is room for n more bytes, and reports whether
// there is.
func (g *Gate) roomForValue(n int64, w *openWindow) bool {
	for i := len(g.open) - 1; i >= 0 && g.values.bytes+n > g.cfg.MaxHeld && g.open[i].end > w.end; i-- {
		if far := g.open[i]; far.held > 0 {
			g.forgetValues(far.offsets())
			far.held = 0
		}
	}
	return g.values.bytes+n <= g.cfg.MaxHeld
}

// forgetValues forgets the values of records whose windows are not open any more.
func (g *Gate) forgetValues(offsets []int64) {
	for _, at := range offsets {
		g.values.bytes -= int64(len(g.values.held[at]))
		delete(g.values.held, at)
	}
}
