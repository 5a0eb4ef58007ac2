package pipeline

import (
	"encoding/binary"
	"math/bits"
	"sync"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/inference/state"
	"github.com/hopscope/hopscope/inference/window"
)

// MaxGroups bounds the number of groups of exporters.
const MaxGroups = 16

// PublishedRuns is the number of runs of an exporter's numbers that a collector of a fleet publishes with a window.
const PublishedRuns = 64

// sequences tracks the sequence numbers of all exporters, in groups. An exporter belongs to one group by its address,
// whichever workers its datagrams reach, so that one tracker sees its numbers. Workers wait for each other only where
// their exporters share a group.
type sequences struct {
	// Saving keeps the numbers that are reached at each cut. It is set before the first report.
	Saving bool
	// Saved are those that were reached at the last cut, for Restore of a later run.
	Saved []byte

	listing bool // list the numbers that came at each cut
	groups  []exporterGroup
	key     decode.HashKey
	shift   uint // of the hash, to its group
}

type exporterGroup struct {
	mu      sync.Mutex
	tracker *sequence.Tracker
	_       [40]byte // the next group's lock belongs to another CPU
}

// newSequences makes two groups for every worker, and one for a single one. They share the places that cfg has, so that
// one address may take all of them, as with a single group.
func newSequences(cfg sequence.Config, seed uint64, workers int) *sequences {
	n := 1
	for workers > 1 && n < min(2*workers, MaxGroups) {
		n *= 2
	}
	e := &sequences{groups: make([]exporterGroup, n), key: decode.NewHashKey(seed), shift: uint(64 - bits.TrailingZeros(uint(n)))}
	places := sequence.NewPlaces(cfg, n)
	for i := range e.groups {
		e.groups[i].tracker = sequence.NewShared(cfg, seed, places)
	}
	return e
}

// group of the exporter at an address.
func (e *sequences) group(a *decode.Addr) uint8 {
	le := binary.LittleEndian
	return uint8(e.key.Words(le.Uint64(a[:]), le.Uint64(a[8:]), 0, 0) >> e.shift)
}

// observe counts reports. It takes the lock of each group of the reports once. A report that has to wait leaves an
// empty place, and reports whose wait is over are appended. The argument groups is memory for the groups of the
// reports; observe returns it.
func (e *sequences) observe(in *decode.LazyBatch, groups []uint8) []uint8 {
	reports := in.List
	if len(e.groups) == 1 {
		g := &e.groups[0]
		g.mu.Lock()
		for _, r := range reports {
			g.tracker.ObserveLazy(r)
		}
		g.tracker.Decided(in)
		g.mu.Unlock()
		return groups
	}
	groups = groups[:0]
	var present uint32
	var last decode.Addr // reports of one exporter often come together
	i := e.group(&last)
	for _, r := range reports {
		if r.Exporter != last {
			last = r.Exporter
			i = e.group(&last)
		}
		groups = append(groups, i)
		present |= 1 << i
	}
	for ; present != 0; present &= present - 1 {
		i := uint8(bits.TrailingZeros32(present))
		g := &e.groups[i]
		g.mu.Lock()
		for k, r := range reports {
			if groups[k] == i {
				g.tracker.ObserveLazy(r)
			}
		}
		g.tracker.Decided(in)
		g.mu.Unlock()
	}
	return groups
}

// decide appends the reports that wait: at the end of a window, they count.
func (e *sequences) decide(b *decode.LazyBatch) {
	e.each(func(t *sequence.Tracker) {
		t.DecideAll()
		t.Decided(b)
	})
}

// listNumbers makes cut list which numbers came. It is called before Restore.
func (e *sequences) listNumbers() {
	e.listing = true
	e.each(func(t *sequence.Tracker) { t.ReportNumbers(PublishedRuns) })
}

// cut returns the counts of the window that ends now, ordered by address, node and hardware id. After listNumbers, it
// also lists in p which numbers came.
func (e *sequences) cut(end int64, p *window.Partial) []inference.ExporterStats {
	var all []inference.ExporterStats
	var saved [][]byte
	e.each(func(t *sequence.Tracker) {
		all = t.Cut(all, end)
		if e.listing {
			t.Numbers(p)
		}
		if e.Saving {
			saved = append(saved, t.AppendState(nil))
		}
	})
	e.Saved = state.Append(nil, groupStates(&saved))
	return sequence.Merge(all)
}

// Refused returns the number of reports from exporters for which there was no place.
func (e *sequences) Refused() (n uint64) {
	e.each(func(t *sequence.Tracker) { n += t.Stats().Refused })
	return n
}

// Unwatched returns how many exporters had no place in the last window with such exporters. If more is set, there were
// at least so many.
func (e *sequences) Unwatched() (n int, more bool) {
	e.each(func(t *sequence.Tracker) {
		s := t.Stats()
		n, more = n+s.Unwatched, more || s.More
	})
	return n, more
}

// each calls f for the tracker of every group, which no other goroutine uses meanwhile.
func (e *sequences) each(f func(*sequence.Tracker)) {
	for i := range e.groups {
		g := &e.groups[i]
		g.mu.Lock()
		f(g.tracker)
		g.mu.Unlock()
	}
}

// Settle counts missing numbers as lost at the next cut. It is called when no report can come any more.
func (e *sequences) Settle() {
	e.each((*sequence.Tracker).Settle)
}

// groupStates codes the states of groups.
func groupStates(groups *[][]byte) func(*state.Coder) {
	return func(c *state.Coder) {
		state.List(c, "groups", MaxGroups, 1, groups, func(p *[]byte, c *state.Coder) { c.Blob("group", p) })
	}
}

// Restore restores the exporters and the numbers that an earlier run had reached, whatever its number of groups. It is
// called before the first report. It refuses bytes that were not saved by cut.
func (e *sequences) Restore(b []byte) error {
	var saved [][]byte
	if err := state.Read("state of exporters", b, groupStates(&saved)); err != nil {
		return err
	}
	for _, part := range saved {
		for i := range e.groups {
			mine := func(a *decode.Addr) bool { return e.group(a) == uint8(i) }
			if err := e.groups[i].tracker.ReadState(part, mine); err != nil {
				return err
			}
		}
	}
	return nil
}
