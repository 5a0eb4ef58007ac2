package cross

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

const (
	// settleAfter is how long a missing number is waited for at least, in ns: as a tracker does at the ends of windows.
	settleAfter = 2e9
	// maxStreams is how many sequences of numbers an exporter has at most, such as one for each collector.
	maxStreams = 16
	// maxMembers is how many collectors hear a sequence at most.
	maxMembers = 64
	// firstEpoch is where the first number of a sequence lies, so that there is room before it. It is a multiple of all
	// ranges of numbers.
	firstEpoch = 1 << 40
)

// exporter is the joint state of all collectors for an exporter.
type exporter struct {
	owner   string // heard it last
	eras    []era  // in which it was shared, ascending
	last    int64  // label of the window in which it was heard last
	base    int64  // label of the last window whose statistics passed as its owner reported them
	shared  bool   // in the last window
	streams []*stream
	gone    int64   // missing numbers of sequences that ended
	goneOut int64   // of these, the ones in gaps
	claimed int64   // of the missing numbers outside of gaps, those that were counted as lost
	missed  int64   // of those in gaps, the ones that were counted as missed
	claims  []claim // of the last windows in which it was shared and something was counted

	// Of the open window.
	copies   uint64
	restarts uint64
}

// era is a time in which an exporter was shared.
type era struct {
	former string // had it alone before
	after  int64  // label of the last window that passed as former reported it
	until  int64  // label of the last window of the era
}

// maxEras is how many of them are known.
const maxEras = 8

// until is the label of the last window in which the exporter is shared. Where it never was, all windows are later.
func (x *exporter) until() int64 {
	if n := len(x.eras); n > 0 {
		return x.eras[n-1].until
	}
	return math.MinInt64
}

// share makes the exporter a shared one from a window on, for the horizon.
func (x *exporter) share(end int64, l *Limits) {
	if len(x.eras) == 0 || !x.shared && end > x.until() {
		if len(x.eras) == maxEras {
			x.eras = slices.Delete(x.eras, 0, 1)
		}
		x.eras = append(x.eras, era{x.owner, x.base, end})
	}
	x.lasts(end + int64(l.Horizon))
}

// lasts makes the present era last to a window at least.
func (x *exporter) lasts(until int64) {
	e := &x.eras[len(x.eras)-1]
	e.until = max(e.until, until)
}

// ownerAt is the run whose statistics of a window pass as it reported them, or "" for none.
func (x *exporter) ownerAt(end int64) string {
	for i := range x.eras {
		switch e := &x.eras[i]; {
		case end <= e.after:
			return e.former
		case end <= e.until:
			return ""
		}
	}
	return x.owner
}

// claim holds the statistics of an exporter that were published in a window in place of those of its collectors.
type claim struct {
	end                         int64
	lost                        int64
	provisional, down, restarts uint64
}

// maxClaims is of how many windows they are kept.
const maxClaims = 32

// stream is one sequence of numbers of an exporter. They are extended to 64 bits, so that they do not wrap.
type stream struct {
	width   uint8
	members []listener
	epoch   uint32       // how often it began anew
	runs    []window.Run // ascending, with a gap between any two
	edge    uint64       // missing numbers up to it are not waited for any more
	mark    uint64       // the newest number at markEnd
	markEnd int64
	marked  bool
	before  uint64 // the newest number at the end of the window before
	fresh   bool   // nothing came since it began
	passed  uint64 // the newest number of the owner in the window base of its exporter
	late    uint64 // the newest one of the owner in a window that is made again
	gaps    []gap  // ascending
	heard   int64  // label of the window in which it was heard last
}

// gap is a stretch of numbers that a run of a collector did not receive because it was not there, see [window.Gap].
type gap struct {
	first, last uint64
	end         int64 // label of the last window when it was opened
}

// maxGaps is how many gaps of a stream are known.
const maxGaps = 64

// listener is a collector that hears a stream, at one of its addresses.
type listener struct {
	from  string
	to    uint64
	epoch uint32
	head  uint64 // newest number
	heard int64
}

func (s *stream) mask() uint64 { return 1<<s.width - 1 }

func (s *stream) head() uint64 { return s.runs[len(s.runs)-1].Last }

// member returns the member of a collector, or nil.
func (s *stream) member(from string, to uint64) *listener {
	for i := range s.members {
		if m := &s.members[i]; m.from == from && m.to == to {
			return m
		}
	}
	return nil
}

// lack is a count of missing numbers.
type lack struct {
	all     int64
	waiting int64 // of these, those that may yet come
	out     int64 // of these, those in gaps; none of them is waited for
}

// settled are those that are not waited for, outside of gaps.
func (n lack) settled() int64 { return n.all - n.waiting - n.out }

// missing counts the numbers up to a bound that did not come.
func (s *stream) missing(most uint64) (n lack) {
	next := 0                                    // gap
	count := func(first, last, arrived uint64) { // of a stretch
		if last = min(last, most); first > last {
			return
		}
		missing := int64(last - first + 1 - min(arrived, last-first+1))
		out := int64(0)
		for next < len(s.gaps) && s.gaps[next].last < first {
			next++
		}
		for i := next; i < len(s.gaps) && s.gaps[i].first <= last; i++ {
			out += int64(min(s.gaps[i].last, last) - max(s.gaps[i].first, first) + 1)
		}
		out = min(out, missing)
		n.all, n.out = n.all+missing, n.out+out
		switch {
		case last <= s.edge:
		case first > s.edge || arrived > 0:
			n.waiting += missing - out
		default:
			at := stretch(first, s.edge, s.gaps[next:])
			n.waiting += missing - out - int64(s.edge-first+1) + at
		}
	}
	for i, r := range s.runs {
		if i > 0 && s.runs[i-1].Last+1 < r.First {
			count(s.runs[i-1].Last+1, r.First-1, 0)
		}
		if !full(r) {
			count(r.First, r.Last, r.Count)
		}
	}
	return n
}

// stretch counts the numbers of a stretch that are in gaps.
func stretch(first, last uint64, gaps []gap) (n int64) {
	for i := 0; i < len(gaps) && gaps[i].first <= last; i++ {
		if gaps[i].last >= first {
			n += int64(min(gaps[i].last, last) - max(gaps[i].first, first) + 1)
		}
	}
	return n
}

// open adds a gap, as far as it is known of each of its numbers whether it came. Where there are too many, the oldest
// are put together with what is between them.
func (s *stream) open(g gap) {
	for _, r := range s.runs {
		if !full(r) && r.First <= g.last && g.first <= r.Last {
			g.first = r.Last + 1
		}
	}
	g.first = max(g.first, s.runs[0].First)
	for i := 0; g.first <= g.last; i++ {
		part := g
		if i < len(s.gaps) {
			if s.gaps[i].last < g.first {
				continue
			}
			part.last = min(g.last, s.gaps[i].first-1)
			g.first = s.gaps[i].last + 1
		} else {
			g.first = g.last + 1
		}
		if part.first <= part.last {
			s.gaps = slices.Insert(s.gaps, i, part)
			i++
		}
	}
	for len(s.gaps) > maxGaps {
		s.gaps[1].first = s.gaps[0].first
		s.gaps = slices.Delete(s.gaps, 0, 1)
	}
}

// openGaps adds the gaps that runs reported, behind their numbers, after the window that ends at end.
func (x *exporter) openGaps(all []sentGap, end int64, l *Limits) {
	for i := range all {
		g := &all[i]
		var of *stream
		var last uint64
		for _, s := range x.streams {
			if s.width != g.Width {
				continue
			}
			at, near := s.near((g.First+g.Count-1)&uint32(s.mask()), s.head(), l)
			heard := s.member(g.from, g.To) != nil
			if near && (of == nil || heard) {
				of, last = s, at
			}
			if near && heard {
				break
			}
		}
		if of != nil && last+1 > uint64(g.Count) {
			of.open(gap{last + 1 - uint64(g.Count), last, end})
		}
	}
}

// near extends a number that is near a reference, and reports whether it is. It must be no farther ahead than numbers
// that count as lost, nor farther behind than late ones.
func (s *stream) near(n uint32, ref uint64, l *Limits) (at uint64, ok bool) {
	mask := s.mask()
	if behind := (ref - uint64(n)) & mask; behind <= min(uint64(l.Window), mask>>2) {
		return ref - behind, true
	}
	ahead := (uint64(n) - ref) & mask
	return ref + ahead, ahead <= min(uint64(l.MaxGap), mask>>4)
}

// place extends a number, and reports whether it is near the others of the stream.
func (s *stream) place(n uint32, l *Limits) (at uint64, ok bool) {
	if at, ok = s.near(n, s.before, l); ok || at <= s.head() {
		return at, true
	}
	return s.near(n, s.head(), l)
}

// addWindow takes what the collectors received in a window, sorted by width, part and collector.
func (x *exporter) addWindow(all []sentNumbers, end int64, l *Limits) {
	for _, s := range x.streams {
		s.before = s.head()
		for i := range all {
			if n := &all[i]; s.width == n.Width && s.member(n.from, n.To) != nil {
				s.heard = end
			}
		}
	}
	for i := range all {
		n := &all[i]
		s := x.find(n, end, l)
		if s == nil {
			continue
		}
		m := s.member(n.from, n.To)
		if m == nil {
			if len(s.members) >= maxMembers {
				s.members = slices.DeleteFunc(s.members, func(m listener) bool { return m.heard != end })
			}
			if len(s.members) >= maxMembers {
				continue
			}
			s.members = append(s.members, listener{from: n.from, to: n.To, epoch: s.epoch, head: s.before})
			m = &s.members[len(s.members)-1]
		}
		m.heard, s.heard = end, end
		x.join(s, m, n, l)
	}
}

// find returns the stream that a collector hears. In order of preference, it is the one that it heard before, one of
// others with such numbers, a silent one, or a new one.
func (x *exporter) find(n *sentNumbers, end int64, l *Limits) *stream {
	var own, near, alike, silent *stream
	for _, s := range x.streams {
		if s.width != n.Width {
			continue
		}
		_, ok := s.place(n.First, l)
		if s.member(n.from, n.To) != nil {
			if own = s; ok || !n.Anew {
				return s
			}
			continue
		}
		if slices.ContainsFunc(s.members, func(m listener) bool { return m.from == n.from && end-m.heard <= int64(l.Horizon) }) {
			continue // the collector hears that one at another address
		}
		if ok && near == nil {
			near = s
		}
		if ok && alike == nil && slices.ContainsFunc(s.members, func(m listener) bool { return m.to == n.To }) {
			alike = s
		}
		if s.heard != end && (silent == nil || s.heard > silent.heard) {
			silent = s
		}
	}
	if alike != nil {
		near = alike
	}
	switch {
	case own != nil && near != nil: // where the exporter began anew, others are already
		own.members = slices.DeleteFunc(own.members, func(m listener) bool { return m.from == n.from && m.to == n.To })
		x.restarts++
		return near
	case own != nil:
		return own
	case near != nil:
		return near
	case silent != nil:
		return silent
	case len(x.streams) == maxStreams:
		return nil
	}
	s := &stream{width: n.Width, heard: end}
	s.begin(uint64(n.First)+firstEpoch, n.Runs)
	x.streams = append(x.streams, s)
	return s
}

// begin makes runs with offsets from a number the first ones, or the number itself.
func (s *stream) begin(first uint64, runs []window.Run) {
	s.runs = s.runs[:0]
	for _, r := range runs {
		s.runs = append(s.runs, window.Run{First: first + r.First, Last: first + r.Last, Count: r.Count})
	}
	if len(runs) == 0 {
		s.runs = append(s.runs, window.Run{First: first, Last: first, Count: 1})
	}
	s.before, s.edge, s.marked, s.fresh = first, first, false, true
	s.gaps, s.passed = s.gaps[:0], 0
}

// join takes what a member received.
func (x *exporter) join(s *stream, m *listener, n *sentNumbers, l *Limits) {
	if s.fresh { // with these numbers
		s.fresh = false
		m.epoch, m.head = s.epoch, s.head()
		return
	}
	at, near := s.place(n.First, l)
	own, follows := s.near(n.First, m.head, l)
	restarted := n.Unknown
	switch {
	case n.Unknown:
	case m.epoch != s.epoch: // others have seen already that the exporter restarted
		if !n.Anew && follows && (!near || own == m.head+1) {
			m.head = max(m.head, own+n.Runs[len(n.Runs)-1].Last)
			return // of the sequence before
		}
		restarted = !near
	case n.Anew: // where it was itself, or else where others are already
		restarted = !near || at <= m.head && m.head-at <= uint64(l.Window)
	case follows:
		at = own
	default:
		restarted = !near
	}
	if restarted {
		x.end(s) // of it nothing will come
		if !n.Unknown {
			x.restarts++
		}
		s.epoch++
		s.begin(s.extend(n.First), n.Runs)
		s.fresh = false
		m.epoch, m.head = s.epoch, s.head()
		return
	}
	last := at
	for _, r := range n.Runs {
		r.First, r.Last = at+r.First, at+r.Last
		last = r.Last
		if r.Last+uint64(l.Window) >= s.before { // else it is late
			x.copies += s.insert(r)
		}
	}
	m.epoch, m.head = s.epoch, max(m.head, last)
}

// end counts what is missing of a sequence that goes on no more.
func (x *exporter) end(s *stream) {
	n := s.missing(furthest)
	x.gone, x.goneOut = x.gone+n.all, x.goneOut+n.out
}

// missing counts what is missing of all sequences.
func (x *exporter) missing() lack {
	n := lack{all: x.gone, out: x.goneOut}
	for _, s := range x.streams {
		m := s.missing(furthest)
		n.all, n.waiting, n.out = n.all+m.all, n.waiting+m.waiting, n.out+m.out
	}
	return n
}

// extend extends a number that is behind all others of the stream.
func (s *stream) extend(n uint32) uint64 {
	return (s.head()>>s.width+2)<<s.width + uint64(n)
}

// insert adds numbers that came, and returns how many of them had come before.
func (s *stream) insert(r window.Run) (copies uint64) {
	// The runs that it touches.
	from, _ := slices.BinarySearchFunc(s.runs, r.First, func(x window.Run, first uint64) int {
		if x.Last < first {
			return -1
		}
		return 1
	})
	to := from
	exact := r.Count == r.Last-r.First+1
	arrived, covered := uint64(0), uint64(0)
	hull := r
	for ; to < len(s.runs) && s.runs[to].First <= r.Last; to++ {
		x := s.runs[to]
		exact = exact && x.Count == x.Last-x.First+1
		arrived += x.Count
		covered += min(x.Last, r.Last) - max(x.First, r.First) + 1
		hull.First, hull.Last = min(hull.First, x.First), max(hull.Last, x.Last)
	}
	if exact {
		copies = covered
		hull.Count = hull.Last - hull.First + 1
	} else {
		hull.Count = min(arrived+r.Count, hull.Last-hull.First+1)
		copies = arrived + r.Count - hull.Count
	}
	if hull.Count == hull.Last-hull.First+1 { // what follows without a gap becomes one run
		for from > 0 && s.runs[from-1].Last+1 == hull.First && full(s.runs[from-1]) {
			from--
			hull.First, hull.Count = s.runs[from].First, hull.Count+s.runs[from].Count
		}
		for to < len(s.runs) && s.runs[to].First == hull.Last+1 && full(s.runs[to]) {
			hull.Last, hull.Count = s.runs[to].Last, hull.Count+s.runs[to].Count
			to++
		}
	}
	s.runs = slices.Replace(s.runs, from, to, hull)
	return copies
}

func full(r window.Run) bool { return r.Count == r.Last-r.First+1 }

// trim puts the oldest runs together when there are too many.
func (s *stream) trim(most int) {
	if most = max(most, 2); len(s.runs) <= most {
		return
	}
	n := len(s.runs) - most/2
	first, last := s.runs[0], s.runs[n-1].Last
	if len(s.gaps) > 0 { // which of its numbers came is not known from here on
		out := uint64(s.missing(last).out)
		gaps := s.gaps
		s.gaps = nil
		for _, g := range gaps {
			if g.first = max(g.first, last+1); g.first <= g.last {
				s.gaps = append(s.gaps, g)
			}
		}
		if out > 0 {
			s.gaps = slices.Insert(s.gaps, 0, gap{first: last + 1 - out, last: last})
		}
	}
	for _, r := range s.runs[1:n] {
		first.Last, first.Count = r.Last, first.Count+r.Count
	}
	s.runs = slices.Replace(s.runs, 0, n, first)
}

// turn ends a window of a stream.
func (s *stream) turn(end int64, l *Limits) {
	if !s.marked {
		s.mark, s.markEnd, s.marked = s.head(), end, true
	} else if end-s.markEnd >= settleAfter {
		s.edge = max(s.edge, s.mark)
		s.mark, s.markEnd = s.head(), end
	}
	s.trim(l.Runs)
}

// noteHeard notes which collectors heard the exporter in a window.
func (x *exporter) noteHeard(heard []string, end int64, l *Limits) {
	if len(heard) == 0 {
		return
	}
	if len(heard) > 1 || x.owner != "" && x.owner != heard[0] {
		x.share(end, l)
	}
	x.owner, x.last = heard[0], end
}

// correct ends a window and corrects the sum of the exporter's statistics, if there were any. The argument present is
// true if they include those of its owner. It returns the labels of windows that count numbers of this one as missed.
func (x *exporter) correct(e *inference.ExporterStats, present bool, end int64, l *Limits) (taken []int64) {
	x.streams = slices.DeleteFunc(x.streams, func(s *stream) bool {
		idle := len(s.members) == 0 || end-s.heard > int64(l.Idle)
		if idle {
			x.end(s)
		}
		return idle
	})
	for _, s := range x.streams {
		s.turn(end, l)
	}
	n := x.missing()
	copies, restarts := x.copies, x.restarts
	x.copies, x.restarts = 0, 0
	was := x.shared
	x.shared = end <= x.until() || was && !present
	if was {
		x.lasts(end)
	}
	if e == nil {
		return nil
	}
	if !x.shared {
		if !present {
			return nil
		}
		for _, s := range x.streams {
			if s.passed = s.head(); slices.ContainsFunc(s.members, func(m listener) bool { return m.from == x.owner }) {
				s.passed = 0
				for i := range s.members {
					if m := &s.members[i]; m.from == x.owner && m.epoch == s.epoch {
						s.passed = max(s.passed, m.head)
					}
				}
			}
		}
		if !was {
			x.pass(end, e.Provisional)
			return nil
		}
		x.base = end
		n.waiting = int64(min(e.Provisional, uint64(max(n.all-n.out, 0))))
	}
	if !e.Sequenced {
		return nil
	}
	lost, down := n.settled()-x.claimed, n.out-x.missed
	x.claimed, x.missed = n.settled(), n.out
	if down < 0 {
		down, taken = x.correctMissed(-down)
		lost, down = lost-down, 0
	}
	e.Lost, e.Down = lost, uint64(down)
	if x.shared {
		e.Provisional, e.Restarts = uint64(n.waiting), restarts
		e.Duplicated += copies
	}
	x.claim(claim{end, e.Lost, e.Provisional, e.Down, e.Restarts})
	return taken
}

// pass notes that the statistics of a window passed as the owner reported them, with so many numbers that may yet come.
// Up to the newest of its numbers, it has counted what is missing.
func (x *exporter) pass(end int64, waiting uint64) {
	x.base = end
	n := lack{all: x.gone, out: x.goneOut}
	for _, s := range x.streams {
		m := s.missing(s.passed)
		n.all, n.out = n.all+m.all, n.out+m.out
	}
	n.waiting = int64(min(waiting, uint64(max(n.all-n.out, 0))))
	x.claimed, x.missed = n.settled(), n.out
}

// correctMissed takes n numbers that came after all out of the missed ones of windows, the latest first. It returns how
// many of them are in no window that is still known.
func (x *exporter) correctMissed(n int64) (left int64, taken []int64) {
	for i := len(x.claims) - 1; i >= 0 && n > 0; i-- {
		k := &x.claims[i]
		if part := min(n, int64(k.down)); part > 0 {
			k.down -= uint64(part)
			n -= part
			taken = append(taken, k.end)
		}
	}
	return n, taken
}

// claim keeps a claim of a window, if it is not empty. The oldest is evicted, and one without Down first, since Down
// may be taken back.
func (x *exporter) claim(k claim) {
	if k.lost == 0 && k.provisional|k.down|k.restarts == 0 {
		return
	}
	if len(x.claims) == maxClaims {
		i := max(slices.IndexFunc(x.claims, func(k claim) bool { return k.down == 0 }), 0)
		x.claims = slices.Delete(x.claims, i, i+1)
	}
	i, _ := slices.BinarySearchFunc(x.claims, k.end, func(k claim, end int64) int { return cmp.Compare(k.end, end) })
	x.claims = slices.Insert(x.claims, i, k)
}
