package fleet

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet/cross"
	"github.com/hopscope/hopscope/inference/window"
)

// crosser corrects what collectors have in common: exporters that several of them heard, and flows that move from one
// to the other. Windows come in the order of their labels.
type crosser interface {
	Begin(end int64)                    // a window
	Add(from string, q *window.Partial) // what a collector, or one of its runs, saw of it, but for hops and flows; q is only read
	// AddStatement adds the statistics that a [Statement] gives for a run. They do not cover missing numbers.
	AddStatement(from string, q *window.Partial)
	Finish(p *window.Partial)    // p is the merged partial of all, and is corrected
	Taken() []int64              // labels of other windows that have to be made again for it
	AppendState(b []byte) []byte // of the memory between windows
	ReadState(b []byte) error    // what AppendState wrote
}

// Merged is a slice of a window, merged over all collectors.
type Merged struct {
	Start, End int64
	Revision   uint64 // records that came after the window had closed, and are in it all the same
	Partial    *window.Partial
	Sources    []Source // by name and boot
	Missing    []string // collectors that were waited for in vain, by name
	Dead       []string // of these, the ones that are not waited for any more
	// Owners are, for each exporter of Partial in the order of their keys, the index in Sources of the one that heard it
	// last. For exporters of which that is not known it is len(Sources).
	Owners []uint32
	First  int64 // offset of the first record of the window
	// Bad are the records that could not be read. Their senders are among the missing.
	Bad []*recordError
}

// Merger merges the records of a slice: those of the partition of windows that has it, in the order of the log. It
// keeps the values of open windows as they came, compressed, until a window closes. Then it merges them in the order of
// their senders' names, runs and numbers. So the result does not depend on the order in which records came. Its memory
// is that of its [Gate], MaxHeld for the values of open windows, and MaxBytes for the one that is being merged.
//
// Counts are added up, and the rest of a window is merged as by [window.Partial.Merge], except for the bound of flows
// that are not listed. Any of the collectors may have seen that many reports of a flow without listing it. So their
// bounds add up, as in merges of Space-Saving. Below the limits of tables they are all 0.
type Merger struct {
	*Gate
	codec   *Codec
	cross   crosser
	recross func() crosser // makes what corrects a window that is made again; nil for nothing
	spare   []*window.Partial
	one     window.Partial
}

// NewMerger makes a merger that has read nothing yet.
func NewMerger(o Options) (*Merger, error) {
	o.Reports = false
	g, err := NewGate(o)
	if err != nil {
		return nil, err
	}
	m := &Merger{Gate: g, codec: NewCodec(o.MaxValue, o.Limits)}
	if o.Cross != nil {
		x := cross.New(*o.Cross)
		m.cross, m.recross = x, func() crosser { return x.Recross() }
	}
	return m, nil
}

// Release frees the memory of a window that is not needed any more.
func (m *Merger) Release(w *Merged) {
	if w != nil && w.Partial != nil && len(m.spare) < 2 {
		m.spare = append(m.spare, w.Partial)
		w.Partial = nil
	}
}

// Add adds the next record of the log, and keeps nothing of it. The error is the reason for which a record was refused;
// the reader of the log goes on with the next one. After a [*FetchError] nothing has changed, and the record was not
// added.
func (m *Merger) Add(r *Record) (Event, error) {
	v, err := m.AddRecord(r)
	e := Event{Kind: v.Kind, From: r.Head.From, Boot: r.Head.Boot, End: r.Head.End}
	if v.Closing != nil {
		s := sum{cross: m.cross, adder: adder{codec: m.codec, one: &m.one, sum: m.partial()}}
		e.Closed = s.merge(v.Closing)
		m.noteBad(e.Closed)
		m.remakeTaken(m.cross)
	}
	return e, err
}

// noteBad leaves the records of a window that cannot be read out when it is made again. Their senders stay missing.
func (m *Merger) noteBad(w *Merged) {
	for _, bad := range w.Bad {
		m.leaveOut(w.End, bad.Offset)
		i, ok := m.pastOf(w.End)
		if !ok {
			continue
		}
		p := m.past[i]
		if j, known := slices.BinarySearch(p.missing, bad.From); !known && len(p.missing) < MaxMembers {
			p.missing = slices.Insert(slices.Clone(p.missing), j, bad.From)
		}
	}
}

// remakeTaken marks the windows whose claims a correction changed.
func (m *Merger) remakeTaken(c crosser) {
	if c == nil {
		return
	}
	for _, end := range c.Taken() {
		m.remake(end)
	}
}

func (m *Merger) partial() *window.Partial {
	if n := len(m.spare); n > 0 {
		p := m.spare[n-1]
		m.spare = m.spare[:n-1]
		p.Reset()
		return p
	}
	return &window.Partial{}
}

// sum merges the records of a window.
type sum struct {
	adder
	cross crosser
}

type owner struct {
	last    int64
	reports uint64
	source  uint32
}

// merge merges the records of a window.
func (s *sum) merge(c *Closing) *Merged {
	w := &Merged{Start: c.Start, End: c.End, Revision: c.Revision, Partial: s.sum, Sources: c.Sources, Missing: c.Missing, Dead: c.Dead, First: c.First}
	if s.cross != nil {
		s.cross.Begin(c.End)
	}
	owners := map[inference.ExporterKey]owner{}
	stated := map[runKey]map[inference.ExporterKey]bool{} // of runs with statements, the exporters in their own records
	for _, of := range c.statedRuns {
		if of != (runKey{}) {
			stated[of] = map[inference.ExporterKey]bool{}
		}
	}
	var bound, own uint64 // of flows that are not listed: of all senders, and of the present one
	from := ""
	for _, i := range c.order() {
		at, k := c.Offsets[i], c.runs[i]
		err := error(ErrGone)
		if value := c.Values[i]; value != nil && c.statedRuns[i] != (runKey{}) {
			err = s.addStatement(value, c.statedRuns[i], stated)
		} else if value != nil {
			err = s.add(value)
		}
		if err != nil {
			w.Bad = append(w.Bad, &recordError{at, k.from, c.End, err, c.Reports[i]})
			if j, ok := slices.BinarySearch(w.Missing, k.from); !ok {
				w.Missing = slices.Insert(slices.Clone(w.Missing), j, k.from)
			}
			continue
		}
		if c.statedRuns[i] != (runKey{}) {
			k = c.statedRuns[i]
		}
		if k.from != from {
			bound, own, from = add(bound, own), 0, k.from
		}
		own = max(own, s.one.FlowBound)
		source, _ := slices.BinarySearchFunc(c.Sources, Source{From: k.from, Boot: k.boot}, compareSources)
		for _, e := range s.one.Exporters() {
			o := owner{e.Last, e.Reports, uint32(source)}
			if p, ok := owners[e.ExporterKey]; !ok || cmp.Or(cmp.Compare(p.last, o.last), cmp.Compare(p.reports, o.reports)) < 0 {
				owners[e.ExporterKey] = o
			}
			if has := stated[k]; has != nil && c.statedRuns[i] == (runKey{}) {
				has[e.ExporterKey] = true
			}
		}
		switch {
		case s.cross == nil:
		case c.statedRuns[i] != (runKey{}):
			s.cross.AddStatement(k.name(), s.one)
		default:
			s.cross.Add(k.name(), s.one)
		}
	}
	s.sum.FlowBound = add(bound, own)
	if s.cross != nil {
		s.cross.Finish(s.sum)
	}
	for _, k := range exporterKeys(s.sum) {
		o, ok := owners[k]
		if !ok {
			o.source = uint32(len(c.Sources))
		}
		w.Owners = append(w.Owners, o.source)
	}
	return w
}

// order is that in which the records are merged: statements come last.
func (c *Closing) order() []int {
	list := make([]int, len(c.Offsets))
	for i := range list {
		list[i] = i
	}
	slices.SortStableFunc(list, func(i, j int) int {
		a, b := c.statedRuns[i] != (runKey{}), c.statedRuns[j] != (runKey{})
		switch {
		case a == b:
			return 0
		case b:
			return -1
		}
		return 1
	})
	return list
}

// add adds counts that stop at the largest number.
func add(a, b uint64) uint64 {
	s, carry := bits.Add64(a, b, 0)
	return s | -carry
}

// exporterKeys returns the keys of the exporters of p, in order.
func exporterKeys(p *window.Partial) []inference.ExporterKey {
	all := p.Exporters()
	keys := make([]inference.ExporterKey, len(all))
	for i := range all {
		keys[i] = all[i].ExporterKey
	}
	slices.SortFunc(keys, inference.ExporterKey.Compare)
	return keys
}

// Rebuild is a window that closed and is made again of the log, because records of it came late.
type Rebuild struct {
	m       *Merger
	past    pastWindow
	next    int64 // records from here on are not part of it
	values  map[int64][]byte
	entries []entry
	seen    map[[2]uint64]map[string]bool
	bytes   int64
	begun   bool // its first record is in the log still
}

// Rebuild begins to make the window that ends at end again. It returns nil if it is too old or did not close. It is fed
// with the records of the log from [Rebuild.From] up to [Rebuild.To]. The merger can be added to meanwhile.
func (m *Merger) Rebuild(end int64) *Rebuild {
	i, ok := m.pastOf(end)
	if !ok {
		return nil
	}
	past := *m.past[i]
	past.refused = slices.Clone(past.refused)
	return &Rebuild{m: m, past: past, next: m.next, values: map[int64][]byte{}, seen: map[[2]uint64]map[string]bool{}}
}

// End is the label of the window.
func (r *Rebuild) End() int64 { return r.past.end }

// From is the offset of the first record that can be part of it.
func (r *Rebuild) From() int64 { return r.past.first }

// To is the offset of the first record that is not part of it any more.
func (r *Rebuild) To() int64 { return r.next }

// Held is the number of bytes of records in memory.
func (r *Rebuild) Held() int64 { return r.bytes }

// Add adds a record of the log. Those of other windows are passed over, and so are those that were refused at the time.
// A record that finds no room is left out from now on, also when the window is made again once more.
func (r *Rebuild) Add(rec *Record) error {
	h := &rec.Head
	r.begun = r.begun || rec.Offset == r.past.first
	if h.Kind != Part || h.End != r.past.end || rec.Offset < r.past.first || rec.Offset >= r.next || slices.Contains(r.past.refused, rec.Offset) {
		return nil
	}
	if _, twice := r.values[rec.Offset]; twice || Sum(rec.Value) != h.Sum {
		return nil
	}
	of, ok := h.statedFor()
	if !ok {
		return nil
	}
	number := [2]uint64{h.Boot, h.Seq}
	if r.seen[number][h.From] {
		return nil
	}
	fail := func(err error) error {
		r.m.leaveOut(h.End, rec.Offset)
		return &recordError{rec.Offset, h.From, h.End, err, h.Reports}
	}
	switch {
	case r.m.check(h) != nil || isPseudo(h.From) != (h.Boot == 0) || h.From == "" || h.Seq == 0 || h.Parts == 0 || h.Parts > maxParts || h.Part >= h.Parts:
		return nil
	case rec.Offset < r.past.closed && r.bytes+int64(len(rec.Value)) > r.m.cfg.MaxBytes:
		return nil // it was refused at the time; not all of these are listed
	case r.bytes+int64(len(rec.Value)) > 2*r.m.cfg.MaxBytes:
		return fail(ErrFull)
	case len(r.entries) >= MaxMembers*maxRuns:
		return fail(errMembers)
	}
	if r.seen[number] == nil {
		r.seen[number] = map[string]bool{}
	}
	r.seen[number][h.From] = true
	r.bytes += int64(len(rec.Value))
	r.values[rec.Offset] = append([]byte{}, rec.Value...)
	r.entries = append(r.entries, entry{
		offset: rec.Offset, runKey: runKey{h.From, h.Boot}, seq: h.Seq, kind: h.Kind, part: h.Part, parts: h.Parts, reports: h.Reports, size: int64(len(rec.Value)),
		statedRun: of,
	})
	return nil
}

// Merged returns the window as it is with all records up to To, once they were added. Then it is not pending any more,
// unless more came late meanwhile. It fails if the log did not have the records any more; the window stays as it was
// then.
func (r *Rebuild) Merged() (*Merged, error) {
	slices.SortFunc(r.entries, func(a, b entry) int { return a.compare(&b) })
	w := &openWindow{end: r.past.end, runs: map[runKey]*delivery{}}
	for i := range r.entries {
		w.add(r.entries[i])
	}
	c := &Closing{Start: r.past.end - r.m.cfg.Window, End: r.past.end, Revision: r.past.revision, First: r.past.first}
	first := int64(math.MaxInt64)
	for i := range r.entries {
		e := &r.entries[i]
		if c.add(w, e, false) {
			c.Values = append(c.Values, r.values[e.offset])
		}
		first = min(first, e.offset)
	}
	r.done()
	// A window that closed without any record has the offset of its close for that of its first one.
	if empty := r.past.first == r.past.closed && first != math.MaxInt64; first != r.past.first && !r.begun && !empty {
		return nil, fmt.Errorf("window to %d, which began at offset %d of the log: %w", r.past.end, r.past.first, ErrGone)
	}
	c.Sources = w.sources(c.statedRuns)
	late := map[string]bool{}
	for i := range r.entries {
		if e := &r.entries[i]; e.offset >= r.past.closed {
			late[e.from] = true
		}
	}
	for _, name := range r.past.missing {
		if !late[name] || !w.completes(name, 0, false) {
			c.Missing = append(c.Missing, name)
		}
	}
	for _, name := range r.past.dead {
		if !w.includes(name) {
			c.Dead = append(c.Dead, name)
		}
	}
	s := sum{adder: adder{codec: r.m.codec, one: &r.m.one, sum: r.m.partial()}}
	if r.m.recross != nil {
		s.cross = r.m.recross()
	}
	merged := s.merge(c)
	r.m.noteBad(merged)
	r.m.remakeTaken(s.cross)
	return merged, nil
}

// done marks the window as made again.
func (r *Rebuild) done() {
	if i, ok := r.m.pastOf(r.past.end); ok && r.m.past[i].revision == r.past.revision {
		r.m.past[i].pending = false
	}
}
