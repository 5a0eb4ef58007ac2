package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/roster"
)

// books is the account of a partition's reports, over all of its life.
//
// The account rests on the records alone. Each record holds how many reports its run has sent to the partition so far.
// The number of reports between two records is thus known even if none of the records between is readable. Retention
// may have removed them, or they are damaged. An unreadable record proves nothing by itself: it may be a copy, or of
// any writer.
type books struct {
	Taken     uint64            `json:"taken"`             // of records that came for the first time, and of those that retention removed
	Delivered uint64            `json:"told"`              // of these, in windows that were handed to the stores
	Dropped   map[string]uint64 `json:"dropped,omitempty"` // of these, by stage
	Waiting   map[int64]uint64  `json:"waiting,omitempty"` // of these, until their window is published, by label
	Down      uint64            `json:"down,omitempty"`    // beside these, as in roster.Account
	DownTo    int64             `json:"down_to,omitempty"` // label of the last window that it is of
	DownIn    map[int64]uint64  `json:"down_in,omitempty"` // of Down, by label of windows that can be corrected

	// Unread are those of records that their run has numbered and that are not there, by collector. They are not among Taken.
	Unread map[string]uint64 `json:"unread,omitempty"`
	// recovered are those of Taken, of a partition of reports, that a former program found to be among Down as well. Now they are not:
	// see [fleet.Statement].
	Recovered uint64 `json:"recovered,omitempty"`
	// Runs are the last ones of each collector.
	Runs map[string][]*runBook `json:"runs,omitempty"`
	// Forgotten is the label of the last record of the runs that are not in the books any more, by collector.
	Forgotten map[string]int64 `json:"forgotten,omitempty"`
	// Whole is set when all runs are in the books since they began, and not since a program that did not keep them.
	Whole bool  `json:"whole,omitempty"`
	Hole  int64 `json:"hole,omitempty"`  // retention removed what was to be read before this offset; 0 for nothing
	Found int64 `json:"found,omitempty"` // when that was found, ns since 1970

	expected []fleet.Expected // when it was asked before
}

// runBook is the knowledge about a run in the partition.
type runBook struct {
	Boot   uint64 `json:"boot"`
	Total  uint64 `json:"total"`            // reports that it has sent
	Unread uint64 `json:"unread,omitempty"` // of these, as in books
	Gone   uint64 `json:"gone,omitempty"`   // of these, removed by retention
	Offset int64  `json:"offset"`           // of its last record
	End    int64  `json:"end"`              // label of that
}

const (
	// maxReports is the most reports of one record; a record with more is not counted.
	maxReports = 1 << 32
	// maxRuns is how many runs of a collector are in the books, and maxBooked of how many collectors there are any.
	maxRuns   = 16
	maxBooked = 4096
)

func newBooks() books { return books{Whole: true} }

func (b *books) append() []byte {
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // it consists of numbers and texts
	}
	return text
}

func readBooks(text []byte) (b books, err error) {
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fmt.Errorf("%w: %w", errCheckpoint, err)
	}
	b.restored()
	return b, nil
}

// restored leaves out what no books have.
func (b *books) restored() {
	for name, runs := range b.Runs {
		if b.Runs[name] = slices.DeleteFunc(runs, func(r *runBook) bool { return r == nil }); len(b.Runs[name]) == 0 {
			delete(b.Runs, name)
		}
	}
}

func (b *books) drop(stage string, n uint64) { addTo(&b.Dropped, stage, n) }

func addTo[K comparable](m *map[K]uint64, k K, n uint64) {
	if n == 0 {
		return
	}
	if *m == nil {
		*m = map[K]uint64{}
	}
	(*m)[k] += n
}

func subtract[K comparable](m map[K]uint64, k K, n uint64) uint64 {
	if n = min(n, m[k]); n > 0 {
		m[k] -= n
	}
	if m[k] == 0 {
		delete(m, k)
	}
	return n
}

// count counts the reports of a record, whose kind is from the gate.
func (b *books) count(r *fleet.Record, kind fleet.EventKind, err error) {
	h := &r.Head
	n := h.Reports
	switch h.Kind {
	case fleet.Part, fleet.Reports:
	case fleet.Mark:
		n = 0 // it stands for others
	default:
		return
	}
	switch {
	case n > maxReports || h.Total > math.MaxInt64 || h.Total != 0 && h.Total < n:
		return
	case kind == fleet.Duplicate || kind == fleet.Unknown:
		return
	case kind == fleet.Conflict:
		b.Taken += n
		b.drop(roster.DroppedConflict, n)
		return
	case kind == fleet.Refused && !fleet.LeftOut(err):
		return
	case kind == fleet.Refused && b.had(h):
		return
	}
	b.number(r, n)
	b.Taken += n
	switch {
	case kind != fleet.Refused:
		addTo(&b.Waiting, h.End, n)
	case errors.Is(err, fleet.ErrOld):
		b.drop(roster.DroppedLate, n)
	default:
		b.drop(roster.DroppedFull, n)
	}
}

// had reports whether the books have a record already that was refused before it was compared with others.
func (b *books) had(h *fleet.Head) bool {
	r := b.run(h.From, h.Boot)
	return r != nil && h.Total != 0 && h.Total <= r.Total && r.Unread+r.Gone == 0
}

func (b *books) run(name string, boot uint64) *runBook {
	for _, r := range b.Runs[name] {
		if r.Boot == boot {
			return r
		}
	}
	return nil
}

// begin adds a run, or returns nil if there is no place for it.
func (b *books) begin(name string, boot uint64) *runBook {
	if b.Runs == nil {
		b.Runs = map[string][]*runBook{}
	}
	runs := b.Runs[name]
	if runs == nil && len(b.Runs) >= maxBooked {
		return nil
	}
	if len(runs) >= maxRuns {
		oldest := 0
		for i := range runs {
			if runs[i].End < runs[oldest].End {
				oldest = i
			}
		}
		if b.Forgotten == nil {
			b.Forgotten = map[string]int64{}
		}
		b.Forgotten[name] = max(b.Forgotten[name], runs[oldest].End)
		runs = slices.Delete(runs, oldest, oldest+1)
	}
	r := &runBook{Boot: boot, Offset: -1}
	b.Runs[name] = append(runs, r)
	return r
}

// number holds a record of n reports against what its run has sent before.
func (b *books) number(rec *fleet.Record, n uint64) {
	h := &rec.Head
	if h.Boot == 0 || h.Total == 0 {
		return
	}
	r := b.run(h.From, h.Boot)
	if r == nil {
		if r = b.begin(h.From, h.Boot); r == nil {
			return
		}
		// Others may have taken what came before, or these books before they forgot the run.
		if forgotten, some := b.Forgotten[h.From]; !b.Whole || some && h.End <= forgotten {
			r.Total = h.Total - n
		}
	}
	if before := h.Total - n; before > r.Total {
		b.lost(h.From, r, before-r.Total)
	} else if n > 0 && h.Total <= r.Total { // it is there after all
		found := min(n, r.Gone)
		r.Gone -= found
		b.Taken -= subtract(b.Dropped, roster.DroppedRetention, found)
		found = min(n-found, r.Unread)
		r.Unread -= found
		subtract(b.Unread, h.From, found)
	}
	r.Total, r.Offset, r.End = max(r.Total, h.Total), max(r.Offset, rec.Offset), max(r.End, h.End)
}

// lost counts n reports that a run has sent behind its last record, and that are not there.
func (b *books) lost(name string, r *runBook, n uint64) {
	if r.Offset < b.Hole {
		r.Gone += n
		b.Taken += n
		b.drop(roster.DroppedRetention, n)
		return
	}
	r.Unread += n
	addTo(&b.Unread, name, n)
}

// noteHole notes that retention removed unread records before an offset, and when that was found.
func (b *books) noteHole(to, now int64) {
	if to > b.Hole {
		b.Hole, b.Found = to, now
	}
}

// reconcile compares the reports that runs have sent to the partition, by their own count, with those that are there.
// It is called when everything was read that was in the partition at the call before. A report that was confirmed then
// and has not come will not come.
func (b *books) reconcile(partition int, expected []fleet.Expected, sent func(e *fleet.Expected) []uint64) {
	for i := range b.expected {
		e := &b.expected[i]
		list := sent(e)
		if e.Boot == 0 || partition >= len(list) || list[partition] > math.MaxInt64 {
			continue
		}
		r := b.run(e.Name, e.Boot)
		if r == nil {
			if !b.Whole || list[partition] == 0 {
				continue
			}
			if r = b.begin(e.Name, e.Boot); r == nil {
				continue
			}
			r.End = e.Since
		}
		if total := list[partition]; total > r.Total {
			b.lost(e.Name, r, total-r.Total)
			r.Total = total
		}
	}
	b.expected = expected
}

// evict counts reports that gave way to others, by the label of their window.
func (b *books) evict(reports map[int64]uint64) {
	for end, n := range reports {
		b.drop(roster.DroppedFull, subtract(b.Waiting, end, n))
	}
}

// lose counts n reports of a window that were taken, and whose record cannot be read any more or finds no room. It
// returns how many there were.
func (b *books) lose(end int64, n uint64, err error) uint64 {
	n = subtract(b.Waiting, end, n)
	switch {
	case errors.Is(err, fleet.ErrGone):
		b.drop(roster.DroppedRetention, n)
	case fleet.LeftOut(err):
		b.drop(roster.DroppedFull, n)
	default:
		b.drop(roster.DroppedBroken, n)
	}
	return n
}

// expire counts the reports of windows up to old that were not published again in time.
func (b *books) expire(old int64) {
	for end := range b.Waiting {
		if end <= old {
			b.drop(roster.DroppedLate, subtract(b.Waiting, end, math.MaxUint64))
		}
	}
}

// pass counts a window of which n reports could be read. The others were in records that are broken, or too many.
func (b *books) pass(end int64, n uint64) {
	if waiting := b.Waiting[end]; waiting > n {
		b.lose(end, waiting-n, nil)
	}
	b.deliver(end)
}

// missed counts what no collector has of a window, which comes again when it is corrected. Windows up to old are not.
func (b *books) missed(m *fleet.Merged, old int64) {
	var down uint64
	for _, e := range m.Partial.Exporters() {
		if e.Down <= maxReports {
			down += e.Down
		}
	}
	switch before, known := b.DownIn[m.End]; {
	case m.End > b.DownTo:
		b.DownTo = max(b.DownTo, m.End)
	case !known && m.Revision == 0:
		return // it was published before
	default:
		b.Down -= min(before, b.Down)
		delete(b.DownIn, m.End)
	}
	b.Down += down
	addTo(&b.DownIn, m.End, down)
	maps.DeleteFunc(b.DownIn, func(end int64, _ uint64) bool { return end <= old })
}

// deliver counts a window that is handed to the stores.
func (b *books) deliver(end int64) {
	b.Delivered += b.Waiting[end]
	delete(b.Waiting, end)
}

// report fills in what the books have.
func (b *books) report(s *partitionStatus) {
	s.Taken, s.Delivered, s.Dropped, s.Down, s.Unread = b.Taken, b.Delivered, maps.Clone(b.Dropped), b.Down, maps.Clone(b.Unread)
	s.found, s.recovered = b.Found, b.Recovered
}
