package fleet

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/inference"
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

// exporter is what all collectors together know of an exporter.
type exporter struct {
	owner   string // heard it last
	former  string // heard it before the window since, when it was not shared
	since   int64
	last    int64 // label of the window in which it was heard last
	until   int64 // it is shared up to the window with this label
	shared  bool  // in the last window
	streams []*stream
	gone    int64   // missing numbers of sequences that ended
	claimed int64   // of all missing numbers, those that were counted as lost or as missed
	due     int64   // numbers that collectors report as missed, and that are not published yet
	claims  []claim // of the last windows in which it was shared

	// Of the open window.
	copies   uint64
	restarts uint64
}

// claim is what was published of an exporter in a window in place of its collectors' statistics.
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
	epoch   uint32          // how often it began anew
	runs    []inference.Run // ascending, with a gap between any two
	edge    uint64          // missing numbers up to it are not waited for any more
	mark    uint64          // the newest number at markEnd
	markEnd int64
	marked  bool
	before  uint64 // the newest number at the end of the window before
	fresh   bool   // nothing came since it began
	heard   int64  // label of the window in which it was heard last
}

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

// member gives the member that a collector is, or nil.
func (s *stream) member(from string, to uint64) *listener {
	for i := range s.members {
		if m := &s.members[i]; m.from == from && m.to == to {
			return m
		}
	}
	return nil
}

// missing counts the numbers that did not come, and those of them that may yet come.
func (s *stream) missing() (all, waiting int64) {
	for i, r := range s.runs {
		n := int64(r.Last-r.First+1) - int64(r.Count)
		if all += n; r.Last > s.edge {
			waiting += n
		}
		if i == 0 {
			continue
		}
		last := s.runs[i-1].Last
		all += int64(r.First - last - 1)
		if r.First > s.edge+1 {
			waiting += int64(r.First - max(last, s.edge) - 1)
		}
	}
	return all, waiting
}

// near extends a number that is near a reference, and reports whether it is: not farther ahead than what counts as lost, nor
// farther behind than what can come late.
func (s *stream) near(n uint32, ref uint64, l *CrossLimits) (at uint64, ok bool) {
	mask := s.mask()
	if behind := (ref - uint64(n)) & mask; behind <= min(uint64(l.Window), mask>>2) {
		return ref - behind, true
	}
	ahead := (uint64(n) - ref) & mask
	return ref + ahead, ahead <= min(uint64(l.MaxGap), mask>>4)
}

// place extends a number, and reports whether it is near the others of the stream.
func (s *stream) place(n uint32, l *CrossLimits) (at uint64, ok bool) {
	if at, ok = s.near(n, s.before, l); ok || at <= s.head() {
		return at, true
	}
	return s.near(n, s.head(), l)
}

// addWindow takes what the collectors received in a window, sorted by width, part and collector.
func (x *exporter) addWindow(all []sentNumbers, end int64, l *CrossLimits) {
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

// find gives the stream that a collector hears: the one that it heard before, or one that others hear and that has such
// numbers, or one that is silent, or else a new one.
func (x *exporter) find(n *sentNumbers, end int64, l *CrossLimits) *stream {
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
func (s *stream) begin(first uint64, runs []inference.Run) {
	s.runs = s.runs[:0]
	for _, r := range runs {
		s.runs = append(s.runs, inference.Run{First: first + r.First, Last: first + r.Last, Count: r.Count})
	}
	if len(runs) == 0 {
		s.runs = append(s.runs, inference.Run{First: first, Last: first, Count: 1})
	}
	s.before, s.edge, s.marked, s.fresh = first, first, false, true
}

// join takes what a member received.
func (x *exporter) join(s *stream, m *listener, n *sentNumbers, l *CrossLimits) {
	if s.fresh { // with these numbers
		s.fresh = false
		m.epoch, m.head = s.epoch, s.head()
		return
	}
	at, near := s.place(n.First, l)
	own, follows := s.near(n.First, m.head, l)
	again := n.Unknown
	switch {
	case n.Unknown:
	case m.epoch != s.epoch: // others know already that the exporter began anew
		if !n.Anew && follows && (!near || own == m.head+1) {
			m.head = max(m.head, own+n.Runs[len(n.Runs)-1].Last)
			return // of the sequence before
		}
		again = !near
	case n.Anew: // where it was itself, or else where others are already
		again = !near || at <= m.head && m.head-at <= uint64(l.Window)
	case follows:
		at = own
	default:
		again = !near
	}
	if again {
		all, _ := s.missing() // of it nothing will come
		x.gone += all
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

// extend gives a number behind all others of the stream.
func (s *stream) extend(n uint32) uint64 {
	return (s.head()>>s.width+2)<<s.width + uint64(n)
}

// insert adds numbers that came, and gives how many of them had come before.
func (s *stream) insert(r inference.Run) (copies uint64) {
	// The runs that it touches.
	from, _ := slices.BinarySearchFunc(s.runs, r.First, func(x inference.Run, first uint64) int {
		if x.Last < first {
			return -1
		}
		return 1
	})
	to := from
	exact := r.Count == r.Last-r.First+1
	came, covered := uint64(0), uint64(0)
	hull := r
	for ; to < len(s.runs) && s.runs[to].First <= r.Last; to++ {
		x := s.runs[to]
		exact = exact && x.Count == x.Last-x.First+1
		came += x.Count
		covered += min(x.Last, r.Last) - max(x.First, r.First) + 1
		hull.First, hull.Last = min(hull.First, x.First), max(hull.Last, x.Last)
	}
	if exact {
		copies = covered
		hull.Count = hull.Last - hull.First + 1
	} else {
		hull.Count = min(came+r.Count, hull.Last-hull.First+1)
		copies = came + r.Count - hull.Count
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

func full(r inference.Run) bool { return r.Count == r.Last-r.First+1 }

// trim puts the oldest runs together when there are too many.
func (s *stream) trim(most int) {
	if most = max(most, 2); len(s.runs) <= most {
		return
	}
	n := len(s.runs) - most/2
	first := s.runs[0]
	for _, r := range s.runs[1:n] {
		first.Last, first.Count = r.Last, first.Count+r.Count
	}
	s.runs = slices.Replace(s.runs, 0, n, first)
}

// turn ends a window of a stream.
func (s *stream) turn(end int64, l *CrossLimits) {
	if !s.marked {
		s.mark, s.markEnd, s.marked = s.head(), end, true
	} else if end-s.markEnd >= settleAfter {
		s.edge = max(s.edge, s.mark)
		s.mark, s.markEnd = s.head(), end
	}
	s.trim(l.Runs)
}

// noteHeard notes which collectors heard the exporter in a window.
func (x *exporter) noteHeard(heard []string, end int64, l *CrossLimits) {
	if len(heard) == 0 {
		return
	}
	if len(heard) > 1 || x.owner != "" && x.owner != heard[0] {
		if !x.shared {
			x.former, x.since = x.owner, end
		}
		x.until = end + int64(l.Horizon)
	}
	x.owner, x.last = heard[0], end
}

// correct ends a window and corrects the sum of the exporter's statistics, if there were any.
func (x *exporter) correct(e *inference.ExporterStats, end int64, l *CrossLimits) {
	x.streams = slices.DeleteFunc(x.streams, func(s *stream) bool {
		idle := len(s.members) == 0 || end-s.heard > int64(l.Idle)
		if idle {
			all, _ := s.missing()
			x.gone += all
		}
		return idle
	})
	all, waiting := x.gone, int64(0)
	for _, s := range x.streams {
		s.turn(end, l)
		a, w := s.missing()
		all, waiting = all+a, waiting+w
	}
	copies, restarts := x.copies, x.restarts
	x.copies, x.restarts = 0, 0
	was := x.shared
	if x.shared = end <= x.until; !x.shared {
		if e != nil {
			waiting = int64(min(e.Provisional, uint64(max(all, 0))))
		} else {
			waiting = 0
		}
		if !was {
			x.claimed, x.due = all-waiting, 0
			return
		}
	}
	if e == nil || !e.Sequenced {
		return
	}
	lost := all - waiting - x.claimed
	x.claimed += lost
	x.due += int64(min(e.Down, 1<<40))
	down := min(x.due, max(lost, 0))
	if x.due -= down; waiting == 0 {
		x.due = 0
	}
	e.Lost, e.Down = lost-down, uint64(down)
	if x.shared {
		e.Provisional, e.Restarts = uint64(waiting), restarts
		e.Duplicated += copies
	}
	x.claim(claim{end, e.Lost, e.Provisional, e.Down, e.Restarts})
}

// claim keeps what was claimed in a window. The oldest gives way, and one without Down first: that may be taken back.
func (x *exporter) claim(k claim) {
	if len(x.claims) == maxClaims {
		i := max(slices.IndexFunc(x.claims, func(k claim) bool { return k.down == 0 }), 0)
		x.claims = slices.Delete(x.claims, i, i+1)
	}
	i, _ := slices.BinarySearchFunc(x.claims, k.end, func(k claim, end int64) int { return cmp.Compare(k.end, end) })
	x.claims = slices.Insert(x.claims, i, k)
}
