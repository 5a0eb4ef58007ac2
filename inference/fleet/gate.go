package fleet

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	maxPast    = 1 << 16 // windows that can be corrected
	maxRuns    = 16      // of a collector that are known at the same time
	ringLen    = 32      // records of a run whose sums are known
	maxGaps    = 32      // ranges of numbers of a run, below those, that have not come
	maxRefused = 256     // records of a window that are left out when it is made again
	maxPseudo  = 512     // records of workers of reports that a window has behind its close
)

// Expected is a collector that the roster names.
type Expected struct {
	Name  string
	Boot  uint64 // its run; 0 if that is not known
	Since int64  // label of the first window that it sends
	// Until is the label of the last window that it sends, 0 as long as it does not leave.
	Until int64
	// Windows and Reports are the reports that Kafka has of its run, by partition of these topics; nil if that is not
	// known.
	Windows, Reports []uint64
}

// Gate closes the windows of a partition of windows or reports. Records are added in the order of the log. Its
// statements about them depend on them alone, so all readers of the log see the same windows close alike, with the same
// records. The clock and the roster only determine when to write the record that closes a window.
//
// Its memory is bounded by its configuration: MaxOpen windows with MaxRecords records, of some 200 bytes each, of which
// those farthest in the future give way to others; MaxMembers collectors with 16 runs each; and a few dozen bytes for
// each window of the time for which there are corrections.
//
// Many windows are open when collectors could not reach the log for long. The records that one of them kept meanwhile
// come before anything of the next one. All these windows are over when their records are appended. So there is room
// for thousands of them. There is room for MaxAhead windows that are not over yet, such as a fast clock would fill.
type Gate struct {
	cfg    Options
	closed int64 // label of the window that closed last; 0 for none
	next   int64 // offset of the next record
	resume int64 // records before it were judged before the state was written
	names  map[string]*collector
	open   []*openWindow // by label
	heads  int           // records of the open windows
	past   []*pastWindow // by label
	roster []Expected
	asked  int64 // label of the close that Due gave last, and when
	when   int64
	stats  gateStats
	values values // of open windows
}

// gateStats counts what was added since the gate was made.
type gateStats struct {
	Records, Closed, Late, Duplicates, Conflicts, Unknown, Refused uint64
	// Evicted are records that were taken, and then left out because their window was too far in the future.
	Evicted uint64
}

// collector is the state of one of them.
type collector struct {
	name     string
	heard    int64 // largest label of a window that it had a part in and that is closed
	missedAt int64 // largest label of a window that it was missing in
	missed   int   // windows in a row
	dead     bool
	runs     []*run
}

type run struct {
	boot uint64
	last uint64
	end  int64 // label of the record with the greatest number
	ring []numbered
	gaps []gap // below a ring that is full, ascending
}

// numbered is a record of a run.
type numbered struct {
	seq, sum uint64
	end      int64
}

// gap is a range of numbers of a run that have not come. All others below the ring have. In the lowest gap of too many
// some may have come: its first number is 0, and which ones came is not known any more.
type gap struct {
	first, last uint64
	end         int64 // label of the record behind it: those in the gap have no later one
}

// entry is a record of an open window.
type entry struct {
	offset int64
	runKey
	seq       uint64
	sum       uint64
	kind      Kind
	part      uint32
	parts     uint32
	reports   uint64
	raw       []uint64
	size      int64
	statedRun runKey // the run of a [Statement]; zero for all other records
}

// own is the number of reports that the record itself stands for: a mark counts those of others.
func (a *entry) own() uint64 {
	if a.kind == Mark {
		return 0
	}
	return a.reports
}

func (a *entry) compare(b *entry) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.boot, b.boot), cmp.Compare(a.seq, b.seq))
}

type runKey struct {
	from string
	boot uint64
}

// delivery counts the records of a window from one run.
type delivery struct {
	last    uint64 // its greatest number
	records uint64
	reports uint64
	want    uint64 // records or reports, as in the marker
	marked  bool
}

func (d *delivery) add(e *entry) {
	d.last = max(d.last, e.seq)
	d.records++
	switch {
	case e.kind == Reports:
		d.reports += e.reports
	case e.kind == Mark:
		d.marked, d.want = true, max(d.want, e.reports)
	case e.part == e.parts-1:
		d.marked, d.want = true, max(d.want, uint64(e.parts))
	}
}

func (d *delivery) complete(reports bool) bool {
	if reports {
		return d.marked && d.reports >= d.want
	}
	return d.marked && d.records >= d.want
}

type openWindow struct {
	end     int64
	bytes   int64
	held    int64 // bytes of it that are in memory
	entries []entry
	refused []int64
	runs    map[runKey]*delivery
	raw     []bool // partitions of reports that have some of it
}

func (w *openWindow) add(e entry) {
	w.entries = append(w.entries, e)
	w.bytes += e.size
	if e.statedRun != (runKey{}) {
		return // its sender has its parts beside
	}
	d := w.runs[e.runKey]
	if d == nil {
		d = &delivery{}
		w.runs[e.runKey] = d
	}
	d.add(&e)
	for i, n := range e.raw {
		if n > 0 && i < MaxSlices {
			if i >= len(w.raw) {
				w.raw = append(w.raw, make([]bool, i+1-len(w.raw))...)
			}
			w.raw[i] = true
		}
	}
}

// first is the offset of its first record.
func (w *openWindow) first() int64 {
	first := int64(math.MaxInt64)
	for i := range w.entries {
		first = min(first, w.entries[i].offset)
	}
	return first
}

type pastWindow struct {
	end      int64
	first    int64 // offset of its first record; the largest number if it has none
	closed   int64 // offset of its close, or that of its first record if it has none
	revision uint64
	pending  bool // it is to be made again
	refused  []int64
	pseudo   []pseudo // of collectors with Boot 0
	missing  []string
	dead     []string
}

type pseudo struct {
	from     string
	seq, sum uint64
}

func (p *pseudo) judge(h *Head) EventKind {
	switch {
	case p.from != h.From || p.seq != h.Seq:
		return Nothing
	case p.sum == h.Sum:
		return Duplicate
	}
	return Conflict
}

// Closing holds the records with which a window closed.
type Closing struct {
	Start, End    int64
	Revision      uint64
	First         int64    // offset of the first record of the window; that of the close if there is none
	Sources       []Source // by name and boot
	Missing, Dead []string // by name
	Offsets       []int64  // of its records, by name, boot and number of their senders
	Reports       []uint64 // that they stand for
	Values        [][]byte // theirs, if [Gate.AddRecord] kept them; nil for those of which there is none
	// Unmarked, of the topic reports, are the runs of those records whose run has not marked the end of the window;
	// zero for others.
	Unmarked   []Source
	runs       []runKey // of the records
	statedRuns []runKey // of those that are statements, the run; zero for others
}

// add lists a record, unless it is a statement for a run that has sent all of the window itself. It reports whether it
// did.
func (c *Closing) add(w *openWindow, e *entry, reports bool) bool {
	if d := w.runs[e.statedRun]; d != nil && d.complete(false) {
		return false
	}
	c.Offsets, c.Reports = append(c.Offsets, e.offset), append(c.Reports, e.own())
	c.runs, c.statedRuns = append(c.runs, e.runKey), append(c.statedRuns, e.statedRun)
	unmarked := Source{}
	if reports && !w.runs[e.runKey].marked {
		unmarked = Source{From: e.from, Boot: e.boot}
	}
	c.Unmarked = append(c.Unmarked, unmarked)
	return true
}

// Verdict is the decision of a gate about a record.
type Verdict struct {
	Kind EventKind
	End  int64
	// Repeated is set for a record of an open window that was judged before the state was written that the gate began
	// with. The record counts, and is not a new one.
	Repeated bool
	Taken    bool     // it counts in an open window, now or again
	Closing  *Closing // with Closed
	// Passed are, of the topic reports, earlier windows that were open still and close with it, the earliest first.
	Passed  []*Closing
	Dropped []int64 // offsets of records that were taken before, and do not count any more
	// Evicted are the reports of those of Dropped that gave way to this record, by the label of their window.
	Evicted map[int64]uint64
}

// NewGate makes a gate that has read nothing yet.
func NewGate(o Options) (*Gate, error) {
	if err := o.complete(1<<13, 64<<20); err != nil {
		return nil, err
	}
	return &Gate{cfg: o, names: map[string]*collector{}, values: values{held: map[int64][]byte{}}}, nil
}

// Expect sets the collectors of the roster, which are waited for also when nothing was heard of them. It keeps the list.
func (g *Gate) Expect(members []Expected) { g.roster = members }

// Stats returns what was counted.
func (g *Gate) Stats() gateStats { return g.stats }

// Open is the number of windows that are open.
func (g *Gate) Open() int { return len(g.open) }

// Last is the label of the window that closed last, 0 if none did.
func (g *Gate) Last() int64 { return g.closed }

// Next is the offset behind the last record that was added.
func (g *Gate) Next() int64 { return g.next }

// Floor returns the lowest offset that is still needed to go on from the present state. It is that of the first record
// of an open window.
func (g *Gate) Floor() int64 {
	floor := g.next
	for _, w := range g.open {
		for i := range w.entries {
			floor = min(floor, w.entries[i].offset)
		}
	}
	return floor
}

// Pending returns the labels of the windows that are to be made again because records of them came late, the earliest
// first.
func (g *Gate) Pending() (ends []int64) {
	for _, w := range g.past {
		if w.pending {
			ends = append(ends, w.end)
		}
	}
	return ends
}

// Add adds the record at an offset, whose value has size bytes. At is the time at which it was appended to the log, by
// the clock of the brokers; 0 if that is not known. The error is the reason for which it was refused.
func (g *Gate) Add(h *Head, offset int64, size int, at int64) (Verdict, error) {
	v, err := g.add(h, offset, size, at)
	if err != nil {
		err = &recordError{offset, h.From, h.End, err, 0}
	}
	if offset < g.resume {
		return v, err
	}
	g.stats.Records++
	switch v.Kind {
	case Closed:
		g.stats.Closed++
	case Late:
		g.stats.Late++
	case Duplicate:
		g.stats.Duplicates++
	case Conflict:
		g.stats.Conflicts++
	case Unknown:
		g.stats.Unknown++
	case Refused:
		g.stats.Refused++
	}
	return v, err
}

func (g *Gate) add(h *Head, offset int64, size int, at int64) (Verdict, error) {
	if offset < g.resume {
		repeated := g.isOpen(h, offset)
		return Verdict{End: h.End, Repeated: repeated, Taken: repeated}, nil
	}
	if offset < g.next { // read twice
		return Verdict{End: h.End}, nil
	}
	g.next = offset + 1
	switch {
	case h.Kind == Close:
		return g.close(h, offset)
	case g.cfg.Reports && (h.Kind == Reports || h.Kind == Mark) || !g.cfg.Reports && h.Kind == Part:
		return g.accept(h, offset, size, at)
	case h.Kind > Chunk:
		return Verdict{Kind: Unknown, End: h.End}, nil
	}
	return Verdict{End: h.End}, nil
}

// isOpen reports whether a record that was judged before is one of an open window.
func (g *Gate) isOpen(h *Head, offset int64) bool {
	w := g.find(h.End)
	return w != nil && slices.ContainsFunc(w.entries, func(e entry) bool { return e.offset == offset })
}

func (g *Gate) find(end int64) *openWindow {
	if i, ok := g.place(end); ok {
		return g.open[i]
	}
	return nil
}

func (g *Gate) place(end int64) (int, bool) {
	return slices.BinarySearchFunc(g.open, end, func(w *openWindow, end int64) int { return cmp.Compare(w.end, end) })
}

func (g *Gate) pastOf(end int64) (int, bool) {
	return slices.BinarySearchFunc(g.past, end, func(w *pastWindow, end int64) int { return cmp.Compare(w.end, end) })
}

// check returns the error of a head that is impossible.
func (g *Gate) check(h *Head) error {
	switch {
	case h.End <= 0 || h.End%g.cfg.Window != 0 || h.End > math.MaxInt64/2:
		return errLabel
	case int(h.Slice) != g.cfg.Slice:
		return errSlice
	}
	return nil
}

// accept takes a record of a collector.
func (g *Gate) accept(h *Head, offset int64, size int, at int64) (Verdict, error) {
	refused := func(err error) (Verdict, error) {
		g.leaveOut(h.End, offset)
		return Verdict{Kind: Refused, End: h.End}, err
	}
	if err := g.check(h); err != nil {
		return refused(err)
	}
	switch {
	case h.From == "" || len(h.From) > MaxName:
		return refused(errName)
	case h.Kind == Part && (h.Parts == 0 || h.Parts > maxParts || h.Part >= h.Parts) || h.Seq == 0:
		return refused(errPart)
	case g.closed != 0 && h.End <= g.closed-g.cfg.Corrections:
		return refused(ErrOld)
	}
	if isPseudo(h.From) != (h.Boot == 0) {
		return refused(errName)
	}
	of, ok := h.statedFor()
	if !ok {
		return refused(errName)
	}
	late := g.closed != 0 && h.End <= g.closed
	kind := Nothing
	var c *collector
	if h.Boot == 0 {
		kind = g.judgePseudo(h, late)
	} else {
		if c = g.collector(h.From); c == nil {
			return refused(errMembers)
		}
		kind = g.run(c, h.Boot).judge(h)
	}
	switch {
	case kind == Refused:
		return refused(errBehind)
	case kind == Conflict:
		g.leaveOut(h.End, offset)
		fallthrough
	case kind == Duplicate:
		return Verdict{Kind: kind, End: h.End}, nil
	case late:
		return g.acceptLate(h, c, offset)
	}
	dropped, evicted, ok := g.makeRoom(h.End, at)
	if !ok {
		v, err := refused(ErrFuture)
		v.Dropped, v.Evicted = dropped, evicted
		return v, err
	}
	w := g.find(h.End)
	if w == nil {
		w = &openWindow{end: h.End, runs: map[runKey]*delivery{}}
		i, _ := g.place(h.End)
		g.open = slices.Insert(g.open, i, w)
	}
	key := runKey{strings.Clone(h.From), h.Boot}
	if c != nil {
		key.from = c.name
	}
	var err error
	switch {
	case w.bytes+int64(size) > g.cfg.MaxBytes:
		err = ErrFull
	case of == (runKey{}) && w.runs[key] == nil && len(w.runs) >= MaxMembers:
		err = errMembers
	}
	if err != nil {
		v, err := refused(err)
		v.Dropped, v.Evicted = dropped, evicted
		return v, err
	}
	w.add(entry{
		offset: offset, runKey: key, seq: h.Seq, sum: h.Sum, kind: h.Kind, part: h.Part, parts: h.Parts, reports: h.Reports,
		raw: slices.Clone(h.Raw), size: int64(size), statedRun: of,
	})
	g.heads++
	return Verdict{End: h.End, Taken: true, Dropped: dropped, Evicted: evicted}, nil
}

// makeRoom makes room for a record of a window that was appended at a time. Windows that are farther in the future are
// evicted for it. It returns the offsets of their records, and their reports by window. It reports false if there is no
// such window.
func (g *Gate) makeRoom(end, at int64) (dropped []int64, evicted map[int64]uint64, ok bool) {
	for {
		full := g.heads >= g.cfg.MaxRecords
		if _, known := g.place(end); !known {
			full = full || len(g.open) >= g.cfg.MaxOpen
			if at > 0 && end > at { // how many are open that end after at
				over, _ := g.place(at + 1)
				full = full || len(g.open)-over >= g.cfg.MaxAhead
			}
		}
		if !full {
			return dropped, evicted, true
		}
		if len(g.open) == 0 || end >= g.open[len(g.open)-1].end {
			return dropped, evicted, false
		}
		last := g.open[len(g.open)-1]
		dropped = append(dropped, last.offsets()...)
		if evicted == nil {
			evicted = map[int64]uint64{}
		}
		for i := range last.entries {
			evicted[last.end] += last.entries[i].own()
		}
		g.stats.Evicted += uint64(len(last.entries))
		g.heads -= len(last.entries)
		g.open = g.open[:len(g.open)-1]
	}
}

func (w *openWindow) offsets() (out []int64) {
	for i := range w.entries {
		out = append(out, w.entries[i].offset)
	}
	return out
}

// PseudoName is the name under which the worker of a partition of reports sends what it made of them. It has Boot 0.
func PseudoName(partition int) string { return pseudoPrefix + strconv.Itoa(partition) }

const pseudoPrefix = "reports-"

func isPseudo(name string) bool {
	n, ok := strings.CutPrefix(name, pseudoPrefix)
	i, err := strconv.Atoi(n)
	return ok && err == nil && i >= 0 && i < MaxSlices && n == strconv.Itoa(i)
}

// remake has a window that is closed made again, though nothing of it came late.
func (g *Gate) remake(end int64) {
	if i, ok := g.pastOf(end); ok {
		g.past[i].revision++
		g.past[i].pending = true
	}
}

// refuse counts a record as refused because of its value.
func (g *Gate) refuse(h *Head, offset int64) {
	if offset < g.next {
		return
	}
	g.next = offset + 1
	g.stats.Records++
	g.stats.Refused++
	g.leaveOut(h.End, offset)
}

// leaveOut notes that a record of a window is not to be merged when the window is made again.
func (g *Gate) leaveOut(end, offset int64) {
	if w := g.find(end); w != nil {
		if len(w.refused) < maxRefused {
			w.refused = append(w.refused, offset)
		}
	} else if i, ok := g.pastOf(end); ok && len(g.past[i].refused) < maxRefused {
		g.past[i].refused = append(g.past[i].refused, offset)
	}
}

// acceptLate takes a record of a window that is closed.
func (g *Gate) acceptLate(h *Head, c *collector, offset int64) (Verdict, error) {
	i, ok := g.pastOf(h.End)
	if !ok { // it was passed over, because no collector was in it
		if len(g.past) >= maxPast {
			return Verdict{Kind: Refused, End: h.End}, ErrOld
		}
		g.past = slices.Insert(g.past, i, &pastWindow{end: h.End, first: offset, closed: offset})
	}
	w := g.past[i]
	if c == nil && len(w.pseudo) >= maxPseudo {
		g.leaveOut(h.End, offset)
		return Verdict{Kind: Refused, End: h.End}, errMembers
	}
	w.first = min(w.first, offset)
	w.revision++
	w.pending = true
	if c == nil {
		w.pseudo = append(w.pseudo, pseudo{strings.Clone(h.From), h.Seq, h.Sum})
	} else {
		c.noteHeard(h.End)
	}
	return Verdict{Kind: Late, End: h.End}, nil
}

// collector returns the state of a collector, or nil if there is no room for another one.
func (g *Gate) collector(name string) *collector {
	c := g.names[name]
	if c == nil {
		if len(g.names) >= g.cfg.maxMembers {
			return nil
		}
		c = &collector{name: strings.Clone(name)}
		g.names[c.name] = c
	}
	return c
}

// noteHeard notes that a collector had a part in a window.
func (c *collector) noteHeard(end int64) { c.heard = max(c.heard, end) }

// run returns the state of a run of a collector. A run that is not known begins with its records in open windows: it
// may have been forgotten.
func (g *Gate) run(c *collector, boot uint64) *run {
	for _, known := range c.runs {
		if known.boot == boot {
			return known
		}
	}
	if len(c.runs) >= maxRuns { // the one that was heard least lately is over
		oldest := 0
		for i := range c.runs {
			if c.runs[i].end < c.runs[oldest].end {
				oldest = i
			}
		}
		c.runs = slices.Delete(c.runs, oldest, oldest+1)
	}
	r := &run{boot: boot}
	c.runs = append(c.runs, r)
	var known []Head
	for _, w := range g.open {
		if w.runs[runKey{c.name, boot}] == nil {
			continue
		}
		for i := range w.entries {
			if e := &w.entries[i]; e.boot == boot && e.from == c.name {
				known = append(known, Head{Seq: e.seq, Sum: e.sum, End: w.end})
			}
		}
	}
	slices.SortFunc(known, func(a, b Head) int { return cmp.Compare(a.Seq, b.Seq) })
	for i := range known {
		r.judge(&known[i])
	}
	return r
}

// judge reports whether a record is a new one of its run, and remembers it. Refused means that this is not known.
func (r *run) judge(h *Head) EventKind {
	n := numbered{h.Seq, h.Sum, h.End}
	i, known := slices.BinarySearchFunc(r.ring, n, func(a, b numbered) int { return cmp.Compare(a.seq, b.seq) })
	switch {
	case known && r.ring[i] == n:
		return Duplicate
	case known:
		return Conflict
	case i == 0 && len(r.ring) == ringLen:
		return r.judgeBelow(h)
	}
	below := uint64(0) // the greatest number that has left the ring
	if len(r.ring) == ringLen {
		below = r.ring[0].seq
		copy(r.ring, r.ring[1:i])
		i--
		r.ring[i] = n
	} else {
		r.ring = slices.Insert(r.ring, i, n)
	}
	if first := r.ring[0]; len(r.ring) == ringLen {
		r.leave(len(r.gaps), gap{below + 1, first.seq - 1, first.end})
	}
	if h.Seq > r.last {
		r.last, r.end = h.Seq, h.End
	}
	return Nothing
}

// judgeBelow is judge for a number below those of the ring, whose sum is not known any more.
func (r *run) judgeBelow(h *Head) EventKind {
	i, _ := slices.BinarySearchFunc(r.gaps, h.Seq, func(g gap, seq uint64) int { return cmp.Compare(g.last, seq) })
	if i == len(r.gaps) || h.Seq < r.gaps[i].first {
		// Windows ascend with the numbers of a run, so a later one was not sent under it.
		if h.End > r.ring[0].end {
			return Conflict
		}
		return Duplicate
	}
	g := r.gaps[i]
	if g.first == 0 {
		return Refused
	}
	r.gaps = slices.Delete(r.gaps, i, i+1)
	r.leave(i, gap{h.Seq + 1, g.last, g.end})
	r.leave(i, gap{g.first, h.Seq - 1, min(g.end, h.End)})
	return Nothing
}

// leave inserts a gap, unless it is empty. Of too many the lowest two become one.
func (r *run) leave(i int, g gap) {
	if g.first > g.last {
		return
	}
	if r.gaps = slices.Insert(r.gaps, i, g); len(r.gaps) > maxGaps {
		r.gaps = slices.Delete(r.gaps, 0, 1)
		r.gaps[0].first = 0
	}
}

// judgePseudo is judge for collectors with Boot 0, whose numbers belong to windows.
func (g *Gate) judgePseudo(h *Head, late bool) EventKind {
	if late {
		if i, ok := g.pastOf(h.End); ok {
			for _, p := range g.past[i].pseudo {
				if k := p.judge(h); k != Nothing {
					return k
				}
			}
		}
		return Nothing
	}
	if w := g.find(h.End); w != nil {
		for i := range w.entries {
			e := &w.entries[i]
			if e.boot != 0 {
				continue
			}
			if k := (&pseudo{e.from, e.seq, e.sum}).judge(h); k != Nothing {
				return k
			}
		}
	}
	return Nothing
}
