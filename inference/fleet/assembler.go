package fleet

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// Assembled is a window of all collectors.
type Assembled struct {
	Start, End    int64
	Revision      uint64 // the sum of those of the slices
	Partial       *window.Partial
	Sources       []Source // of all slices, by name and boot, with the greatest number that one of them holds
	Missing, Dead []string
	Absent        []int // slices that have nothing of it
	// Unheard are the exporters whose last collector was missing in the window. Their silence is no evidence.
	Unheard []inference.ExporterKey
	First   int64 // offset of the first record of the window
	Bad     []*recordError
}

// Assembler combines the slices of windows. It reads the records of the one partition of series, in the order of the
// log. A window is whole when each slice has published it or a later one, and windows come in the order of their
// labels. Until then values are kept as they came, compressed, or read again where they have more bytes than MaxHeld. A
// slice may be published again, with a greater revision, after its window was whole. The window is then pending: it can
// be made again from the log.
type Assembler struct {
	cfg      Options
	codec    *Codec
	sentTo   []int64 // by slice: label of the last window that it sent by itself
	appended []int64 // by slice: when its last record was appended; 0 if that is not known
	last     int64   // label of the window that was whole last
	next     int64
	resume   int64
	open     []*slicedWindow
	held     int64 // bytes of records that are kept
	reread   uint64
	past     []*slicedPast
	heard    map[inference.ExporterKey]heardBy
	one      window.Partial
	spare    []*window.Partial
	stats    assemblerStats
}

// assemblerStats counts what was added since the assembler was made.
type assemblerStats struct{ Records, Whole, Late, Duplicates, Unknown, Refused, Forced uint64 }

type heardBy struct {
	from string
	end  int64
}

// sliceKey names a record of a slice of a window.
type sliceKey struct {
	slice, part uint32
	revision    uint64
}

// sliced is a record of a slice of a window.
type sliced struct {
	offset int64
	parts  uint32
	size   int64
	head   *Head  // nil if the record is not kept
	value  []byte // likewise
}

// weight is how many bytes are kept of a record.
func (s *sliced) weight() int64 {
	if s.head == nil {
		return 0
	}
	return weight(s.head, s.value)
}

func weight(h *Head, value []byte) int64 {
	n := len(value) + 4*len(h.Owners) + 64
	for i := range h.Sources {
		n += 32 + len(h.Sources[i].From)
	}
	for _, names := range [][]string{h.Missing, h.Dead} {
		for _, name := range names {
			n += 16 + len(name)
		}
	}
	return int64(n)
}

type slicedWindow struct {
	end     int64
	began   int64 // when its first record was appended; 0 if that is not known
	bytes   int64
	held    int64 // of the records that are kept
	records map[sliceKey]*sliced
}

type slicedPast struct {
	end     int64
	first   int64
	known   map[sliceKey]uint32 // parts of all records that came
	pending bool
}

// NewAssembler makes an assembler that has read nothing yet.
func NewAssembler(o Options) (*Assembler, error) {
	if err := o.complete(64, 256<<20); err != nil {
		return nil, err
	}
	if o.Slices <= 0 || o.Slices > MaxSlices {
		return nil, fmt.Errorf("fleet: %d slices, 1 to %d can be", o.Slices, MaxSlices)
	}
	return &Assembler{
		cfg: o, codec: NewCodec(o.MaxValue, o.Limits), sentTo: make([]int64, o.Slices), appended: make([]int64, o.Slices),
		heard: map[inference.ExporterKey]heardBy{},
	}, nil
}

// Stats returns what was counted.
func (a *Assembler) Stats() assemblerStats { return a.stats }

// Open is the number of windows that wait for slices.
func (a *Assembler) Open() int { return len(a.open) }

// Held is the number of bytes of records in memory.
func (a *Assembler) Held() int64 { return a.held }

// Reread counts the records that were read again because they were not in memory.
func (a *Assembler) Reread() uint64 { return a.reread }

// Last is the label of the window that was whole last, 0 if none was.
func (a *Assembler) Last() int64 { return a.last }

// Next is the offset behind the last record that was added.
func (a *Assembler) Next() int64 { return a.next }

// Floor is the lowest offset that is still needed to go on from the present state.
func (a *Assembler) Floor() int64 {
	floor := a.next
	for _, w := range a.open {
		floor = min(floor, w.first())
	}
	return floor
}

func (w *slicedWindow) first() int64 {
	first := int64(math.MaxInt64)
	for _, r := range w.records {
		first = min(first, r.offset)
	}
	return first
}

// Pending returns the labels of the windows that are to be made again, see [Assembler.Rebuild], the earliest first.
func (a *Assembler) Pending() (ends []int64) {
	for _, w := range a.past {
		if w.pending {
			ends = append(ends, w.end)
		}
	}
	return ends
}

// Release frees the memory of a window that is not needed any more.
func (a *Assembler) Release(w *Assembled) {
	if w != nil && w.Partial != nil && len(a.spare) < 2 {
		a.spare = append(a.spare, w.Partial)
		w.Partial = nil
	}
}

// Add adds the next record of the log, and keeps nothing of it. Records of other kinds than slices are passed over. The
// error is the reason for which a record was refused; the reader goes on with the next one. After a [*FetchError] the
// assembler is of no use any more, and the reader goes on from a state.
func (a *Assembler) Add(r *Record) (Event, error) {
	h := &r.Head
	e := Event{From: h.From, Boot: h.Boot, End: h.End}
	if r.Offset < a.resume {
		a.restore(r)
		return e, nil
	}
	if r.Offset < a.next {
		return e, nil
	}
	a.next = r.Offset + 1
	if h.Kind != Slice {
		if h.Kind > Chunk {
			e.Kind = Unknown
			a.stats.Unknown++
		}
		return e, nil
	}
	a.stats.Records++
	kind, err := a.accept(r)
	e.Kind = kind
	switch kind {
	case Refused:
		a.stats.Refused++
		return e, &recordError{r.Offset, h.From, h.End, err, 0}
	case Duplicate:
		a.stats.Duplicates++
	case Late:
		a.stats.Late++
	}
	for len(a.open) > 0 {
		w := a.open[0]
		forced := !a.allSent(w.end)
		if forced && len(a.open) <= a.cfg.MaxOpen && !a.allSilent(w, r.Time) {
			break
		}
		if err := a.prepare(); err != nil {
			return e, err
		}
		if forced {
			a.stats.Forced++
		}
		a.open = slices.Delete(a.open, 0, 1)
		a.held -= w.held
		e.Whole = append(e.Whole, a.close(w))
	}
	if len(e.Whole) > 0 && e.Kind == Nothing {
		e.Kind = Closed
	}
	return e, nil
}

// allSent reports whether all slices have published a window or a later one.
func (a *Assembler) allSent(end int64) bool {
	for _, last := range a.sentTo {
		if last < end {
			return false
		}
	}
	return true
}

// allSilent reports whether, at some time, all slices that a window lacks have published nothing for too long.
func (a *Assembler) allSilent(w *slicedWindow, at int64) bool {
	if a.cfg.Silence <= 0 || at <= 0 || w.began <= 0 {
		return false
	}
	for i, last := range a.sentTo {
		if last < w.end && at-max(w.began, a.appended[i]) <= a.cfg.Silence {
			return false
		}
	}
	return true
}

// keep keeps a record if there is room for it, which windows behind its own make, the farthest first.
func (a *Assembler) keep(w *slicedWindow, s *sliced, r *Record) {
	n := weight(&r.Head, r.Value)
	if a.cfg.MaxHeld > 0 && !a.forgetFar(n, w) {
		return
	}
	head := r.Head
	s.head, s.value = &head, bytes.Clone(r.Value)
	w.held += n
	a.held += n
}

func (a *Assembler) forgetFar(n int64, w *slicedWindow) bool {
	for i := len(a.open) - 1; i >= 0 && a.held+n > a.cfg.MaxHeld && a.open[i].end > w.end; i-- {
		far := a.open[i]
		if far.held == 0 {
			continue
		}
		for _, s := range far.records {
			s.head, s.value = nil, nil
		}
		a.held -= far.held
		far.held = 0
	}
	return a.held+n <= a.cfg.MaxHeld
}

// prepare reads what is not kept of the first window, and as much as fits of those behind it.
func (a *Assembler) prepare() error {
	if a.cfg.MaxHeld <= 0 {
		return nil
	}
	type expected struct {
		w *slicedWindow
		k sliceKey
		s *sliced
	}
	expect := map[int64]expected{}
	left := a.cfg.MaxHeld - a.held
	for i, w := range a.open {
		n := int64(0)
		for _, s := range w.records {
			if s.head == nil {
				n += s.size
			}
		}
		if i > 0 && (n > left || len(expect) == 0) {
			break
		}
		left -= n
		for k, s := range w.records {
			if s.head == nil {
				expect[s.offset] = expected{w, k, s}
			}
		}
	}
	if len(expect) == 0 {
		return nil
	}
	first := a.open[0]
	err := a.cfg.Fetch(slices.Sorted(maps.Keys(expect)), func(r *Record) {
		x, ok := expect[r.Offset]
		h := &r.Head
		if !ok || x.s.head != nil || h.Kind != Slice || h.End != x.w.end || x.k != (sliceKey{h.Slice, h.Part, h.Revision}) || h.Parts != x.s.parts || Sum(r.Value) != h.Sum {
			return
		}
		a.reread++
		if a.keep(x.w, x.s, r); x.s.head == nil && x.w == first { // this one is there as a whole
			head := *h
			x.s.head, x.s.value = &head, bytes.Clone(r.Value)
			n := x.s.weight()
			first.held += n
			a.held += n
		}
	})
	if err != nil {
		return &FetchError{first.end, err}
	}
	return nil
}

// check returns the error of a record that is impossible.
func (a *Assembler) check(r *Record) error {
	h := &r.Head
	switch {
	case h.End <= 0 || h.End%a.cfg.Window != 0 || h.End > math.MaxInt64/2:
		return errLabel
	case int(h.Slice) >= a.cfg.Slices:
		return errSlice
	case h.Parts == 0 || h.Parts > maxParts || h.Part >= h.Parts:
		return errPart
	case Sum(r.Value) != h.Sum:
		return &valueError{"record", ErrSum}
	case h.End <= a.last-a.cfg.Corrections:
		return ErrOld
	}
	return nil
}

func (a *Assembler) accept(r *Record) (EventKind, error) {
	h := &r.Head
	if err := a.check(r); err != nil {
		return Refused, err
	}
	key := sliceKey{h.Slice, h.Part, h.Revision}
	if h.End <= a.last {
		i, ok := slices.BinarySearchFunc(a.past, h.End, func(w *slicedPast, end int64) int { return cmp.Compare(w.end, end) })
		if !ok {
			if len(a.past) >= maxPast {
				return Refused, ErrOld
			}
			a.past = slices.Insert(a.past, i, &slicedPast{end: h.End, first: r.Offset, known: map[sliceKey]uint32{}})
		}
		p := a.past[i]
		if _, known := p.known[key]; known {
			return Duplicate, nil
		}
		if len(p.known) >= maxParts*4 {
			return Refused, ErrFull
		}
		p.known[key] = h.Parts
		p.pending = true
		return Late, nil
	}
	i, ok := slices.BinarySearchFunc(a.open, h.End, func(w *slicedWindow, end int64) int { return cmp.Compare(w.end, end) })
	if !ok {
		if n := len(a.open); n > a.cfg.MaxOpen && h.End > a.open[n-1].end {
			return Refused, ErrFuture
		}
		a.open = slices.Insert(a.open, i, &slicedWindow{end: h.End, began: max(0, r.Time), records: map[sliceKey]*sliced{}})
	}
	w := a.open[i]
	if w.records[key] != nil {
		return Duplicate, nil
	}
	size := int64(len(r.Value))
	if w.bytes+size > a.cfg.MaxBytes {
		return Refused, ErrFull
	}
	w.bytes += size
	s := &sliced{offset: r.Offset, parts: h.Parts, size: size}
	w.records[key] = s
	a.keep(w, s, r)
	a.appended[h.Slice] = max(a.appended[h.Slice], r.Time)
	if h.Revision == 0 && h.Part == h.Parts-1 {
		a.sentTo[h.Slice] = max(a.sentTo[h.Slice], h.End)
	}
	return Nothing, nil
}

// restore takes a record of an open window that was judged before the state was written.
func (a *Assembler) restore(r *Record) {
	h := &r.Head
	i, ok := slices.BinarySearchFunc(a.open, h.End, func(w *slicedWindow, end int64) int { return cmp.Compare(w.end, end) })
	if h.Kind != Slice || !ok {
		return
	}
	if s := a.open[i].records[sliceKey{h.Slice, h.Part, h.Revision}]; s != nil && s.offset == r.Offset && s.head == nil {
		a.keep(a.open[i], s, r)
	}
}

// close puts a window together.
func (a *Assembler) close(w *slicedWindow) *Assembled {
	a.stats.Whole++
	a.last = w.end
	known := make(map[sliceKey]uint32, len(w.records))
	for k, s := range w.records {
		known[k] = s.parts
	}
	a.past = append(a.past, &slicedPast{end: w.end, first: w.first(), known: known})
	n := 0
	for n < len(a.past) && a.past[n].end <= a.last-a.cfg.Corrections {
		n++
	}
	a.past = slices.Delete(a.past, 0, n)
	return a.assemble(w, true)
}

// assemble merges the slices of a window, each in its latest revision that is there with all its parts.
func (a *Assembler) assemble(w *slicedWindow, inOrder bool) *Assembled {
	out := &Assembled{Start: w.end - a.cfg.Window, End: w.end, First: w.first()}
	if n := len(a.spare); n > 0 {
		out.Partial, a.spare = a.spare[n-1], a.spare[:n-1]
		out.Partial.Reset()
	} else {
		out.Partial = &window.Partial{}
	}
	latest := make([][]sliceKey, a.cfg.Slices)
	keys := sortedKeys(w.records)
	for from := 0; from < len(keys); {
		to := from + 1
		for to < len(keys) && keys[to].slice == keys[from].slice && keys[to].revision == keys[from].revision {
			to++
		}
		if uint32(to-from) == w.records[keys[from]].parts {
			latest[keys[from].slice] = keys[from:to]
		}
		from = to
	}
	runs := map[Source]uint64{}
	missing, dead := map[string]bool{}, map[string]bool{}
	heard := map[inference.ExporterKey]bool{}
	sum := adder{codec: a.codec, one: &a.one, sum: out.Partial}
	for i, parts := range latest {
		if parts == nil {
			out.Absent = append(out.Absent, i)
			continue
		}
		var h *Head
		for _, k := range parts {
			s := w.records[k]
			err := error(ErrGone)
			if s.head != nil {
				err = sum.add(s.value)
			}
			if err != nil {
				out.Bad = append(out.Bad, &recordError{s.offset, "", w.end, err, 0})
				continue
			}
			h = s.head
			keys := exporterKeys(&a.one)
			for j, e := range keys {
				heard[e] = true
				if j < len(h.Owners) && int(h.Owners[j]) < len(h.Sources) && inOrder {
					a.noteHeard(e, h.Sources[h.Owners[j]].From, w.end)
				}
			}
		}
		if h == nil {
			continue
		}
		out.Revision += h.Revision
		for _, s := range h.Sources {
			k := Source{From: s.From, Boot: s.Boot}
			runs[k] = max(runs[k], s.Seq)
		}
		for _, name := range h.Missing {
			missing[name] = true
		}
		for _, name := range h.Dead {
			dead[name] = true
		}
	}
	for k, seq := range runs {
		k.Seq = seq
		out.Sources = append(out.Sources, k)
	}
	slices.SortFunc(out.Sources, compareSources)
	out.Missing, out.Dead = sortedNames(missing), sortedNames(dead)
	for k, by := range a.heard {
		if (missing[by.from] || dead[by.from]) && !heard[k] {
			out.Unheard = append(out.Unheard, k)
		}
	}
	slices.SortFunc(out.Unheard, inference.ExporterKey.Compare)
	return out
}

func sortedNames(set map[string]bool) (names []string) {
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// noteHeard notes which collector heard an exporter. When there is no room, the one that was heard least lately makes it.
func (a *Assembler) noteHeard(k inference.ExporterKey, from string, end int64) {
	if _, known := a.heard[k]; !known && len(a.heard) >= a.cfg.MaxExporters {
		a.makeRoom(end)
		if len(a.heard) >= a.cfg.MaxExporters {
			return
		}
	}
	if old, known := a.heard[k]; known && old.from == from {
		from = old.from // one text for all
	}
	a.heard[k] = heardBy{from, end}
}

// makeRoom forgets the exporters that were heard least lately, a sixteenth of them at once, and none of the window
// itself.
func (a *Assembler) makeRoom(end int64) {
	type item struct {
		key inference.ExporterKey
		end int64
	}
	all := make([]item, 0, len(a.heard))
	for k, by := range a.heard {
		if by.end < end {
			all = append(all, item{k, by.end})
		}
	}
	slices.SortFunc(all, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.end, b.end), a.key.Compare(b.key))
	})
	for _, it := range all[:min(len(all), 1+a.cfg.MaxExporters/16)] {
		delete(a.heard, it.key)
	}
}

// reassembly is a window that was whole and is made again from the log, because a slice of it was published again.
type reassembly struct {
	a      *Assembler
	past   slicedPast
	next   int64
	window slicedWindow
}

// Rebuild begins to make the window that ends at end again. It returns nil if it is too old or was not whole yet. It is
// fed with the records of the log from [Reassembly.From] up to [Reassembly.To]. The assembler can be added to
// meanwhile.
func (a *Assembler) Rebuild(end int64) *reassembly {
	i, ok := slices.BinarySearchFunc(a.past, end, func(w *slicedPast, end int64) int { return cmp.Compare(w.end, end) })
	if !ok {
		return nil
	}
	past := *a.past[i]
	past.known = maps.Clone(past.known)
	return &reassembly{a: a, past: past, next: a.next, window: slicedWindow{end: end, records: map[sliceKey]*sliced{}}}
}

// End is the label of the window.
func (r *reassembly) End() int64 { return r.past.end }

// From is the offset of the first record that can be part of it.
func (r *reassembly) From() int64 { return r.past.first }

// To is the offset of the first record that is not part of it any more.
func (r *reassembly) To() int64 { return r.next }

// Add adds a record of the log. Those of other windows are passed over.
func (r *reassembly) Add(rec *Record) {
	h := &rec.Head
	key := sliceKey{h.Slice, h.Part, h.Revision}
	parts, known := r.past.known[key]
	if h.Kind != Slice || h.End != r.past.end || rec.Offset < r.past.first || rec.Offset >= r.next || !known || parts != h.Parts ||
		r.window.records[key] != nil || Sum(rec.Value) != h.Sum {
		return
	}
	head := *h
	r.window.records[key] = &sliced{offset: rec.Offset, parts: parts, head: &head, value: bytes.Clone(rec.Value)}
}

// Whole returns the window as it is with all records up to To, once they were added. Then it is not pending any more,
// unless more came meanwhile. It fails if the log did not have the records any more; the window stays as it was then.
func (r *reassembly) Whole() (*Assembled, error) {
	i, ok := slices.BinarySearchFunc(r.a.past, r.past.end, func(w *slicedPast, end int64) int { return cmp.Compare(w.end, end) })
	if ok && len(r.a.past[i].known) == len(r.past.known) {
		r.a.past[i].pending = false
	}
	if len(r.window.records) < len(r.past.known) {
		return nil, fmt.Errorf("window to %d, which began at offset %d of the log: %w", r.past.end, r.past.first, ErrGone)
	}
	return r.a.assemble(&r.window, false), nil
}
