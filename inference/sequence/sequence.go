package sequence

import (
	"math/bits"
	"slices"
)

const (
	// confirmations is how many distinct numbers near each other confirm that a sequence goes on far from where it was.
	confirmations = 8
	// near is how far apart these may be.
	near = 1024
	// duplicateRun is how many duplicates in ascending order, without a new number in between, are a restart inside
	// of the record.
	duplicateRun = 64
	// repeatLimit is how often in a row the same number may come before the exporter is taken not to count.
	repeatLimit = 64
	// pendingDuplicates is how many repetitions of an exporter's very first number are believed to be duplicates once
	// the number changes.
	pendingDuplicates = 8
	// startSlack is how far before the first seen number a late one is believed to belong to the same sequence. It was
	// received after that one.
	startSlack = 64
	// leastWait is how many numbers a missing one is waited for at least, and the length of the record of a
	// sequence that lacks none.
	leastWait = 1024
	// holdFor is the time for which a missing number is waited for in any case, in ns, as long as it has a record. The
	// worker that has it may take as long.
	holdFor = 5e8
	// settleAfter is the time after which a missing number is no longer waited for, in ns.
	settleAfter = 2e9
	// calmCuts is how many windows without disorder halve the wait, and then the record.
	calmCuts = 8
	// returnWithin is the time in which a sequence may come back that another one seemed to have replaced, in ns.
	returnWithin = 60e9
	// keptBack is for how long a report is believed to have been delayed here, in ns. An older one came before the
	// clock was set back.
	keptBack = 60e9
)

// counts are the claims about one sequence, since the last cut.
type counts struct {
	lost                                        int64
	duplicated, reordered, late, down, restarts uint64
}

// sequence is one sequence number space. Its record holds for each number in (head-span, head] whether it came. The
// missing ones from edge on are provisional, those before it are counted as lost.
//
// The fields that every number touches come first: they share two lines of the CPU cache with the counts of a tracker.
type sequence struct {
	seen      []uint64
	time      int64  // of head
	head      uint32 // newest number
	span      uint32 // numbers that the record covers, at most its length; less while the sequence is young
	open      uint32 // missing numbers in the record
	repeat    uint32 // how often head came again, in a row
	run       uint32 // duplicates in ascending order, in a row
	width     uint8  // bits of a number, 1 to 32
	sequenced bool
	farN      uint8
	started   bool

	resumed  bool // head is from an earlier run, and no number came since
	trusted  bool // may take more than a part of the common memory
	missed   bool // numbers before missedTo are missing because no collector ran
	replaced bool // by a restart, from oldHead at oldTime
	marked   bool
	settling bool
	calm     uint8 // cuts in a row without much disorder

	counts
	provisional uint32 // of the missing numbers, those not counted as lost
	edge        uint32 // first number that may be provisional; without meaning while none is
	wait        uint32 // numbers that a missing one is waited for
	worst       uint32 // farthest behind that a number came since the last cut
	missedTo    uint32
	mark        uint32 // head at the time of a cut
	markTime    int64
	aged        uint32 // head at least holdFor before ageTime
	ageHead     uint32 // head before ageTime
	ageTime     int64
	settledTo   uint32 // numbers up to it are counted because of their age
	runLast     uint32
	gone        uint32 // missing numbers that left the record
	origin      uint32 // first number
	start       int64  // its time, or a later one
	oldHead     uint32
	oldTime     int64

	// Numbers that are far from all others, and how many of them came again.
	far     [confirmations]uint32
	farTime int64 // of the first
	farDup  uint64

	log *numberLog // of the numbers that came; nil unless these are reported
}

// room is the memory that the records of sequences may take, and the bounds that are common to them.
type room struct {
	longest uint32 // bits of the largest record
	maxGap  uint32
	places  *Places
	spare   [][]uint64 // records of the least length that are not in use
}

func (m *room) least() uint32 { return min(leastWait, m.longest) }

// record returns a record of the least length.
func (m *room) record() []uint64 {
	if n := len(m.spare); n > 0 {
		r := m.spare[n-1]
		m.spare = m.spare[:n-1]
		clear(r)
		return r
	}
	return make([]uint64, m.least()/64)
}

// giveBack takes the record of a sequence that is no longer followed.
func (m *room) giveBack(seen []uint64) {
	if uint32(len(seen)) == m.least()/64 {
		m.spare = append(m.spare, seen)
		return
	}
	m.places.words.Add(int64(len(seen)))
}

func (s *sequence) mask() uint32 { return ^uint32(0) >> (32 - s.width) }

// size is the length of the record.
func (s *sequence) size() uint32 { return uint32(len(s.seen)) * 64 }

// observe takes the next number, of a report that was received at a time.
func (s *sequence) observe(seq uint32, at int64, m *room) {
	mask := s.mask()
	seq &= mask
	ahead := (seq - s.head) & mask
	if ahead == 1 && s.started && s.sequenced && s.open == 0 { // nearly always
		word, bit := place(s.seen, seq)
		*word |= bit
		s.head, s.time = seq, at
		if s.span < s.size() {
			s.span++
		}
		s.repeat, s.run = 0, 0
		if s.farN != 0 {
			s.dismiss(at)
		}
		return
	}
	if !s.started || s.resumed {
		s.first(seq, at, mask, m)
		return
	}
	reach := m.longest
	if !s.sequenced { // a random number must not be taken for one that follows
		reach = m.least()
	}
	reach = min(reach, mask>>2)
	behind := (s.head - seq) & mask
	switch {
	case ahead == 0:
		s.same()
	case ahead <= reach:
		s.claim()
		s.advance(seq, ahead, at, m)
	case behind < s.span:
		s.fill(seq, behind, at, m)
	case s.whole() && (at < s.start && behind < min(m.longest, mask>>2) || behind < s.span+startSlack):
		s.claim()
		s.before(seq, behind, m)
	case at < s.time && s.time-at < keptBack && s.sequenced: // it was only kept back here
		s.stale(behind, m)
	default:
		s.jump(seq, at, m)
	}
}

// first takes the first number of all, or of those that follow a saved state.
func (s *sequence) first(seq uint32, at int64, mask uint32, m *room) {
	ahead, behind := (seq-s.head)&mask, (s.head-seq)&mask
	switch {
	case !s.started:
		s.begin(seq, at, m)
	case behind < startSlack: // the earlier run has seen it, or counted it
		s.late++
		if s.log != nil {
			s.unrecorded(seq)
		}
	case ahead <= m.gap(mask):
		s.claim()
		if s.log != nil && ahead > 1 {
			s.log.gaps = append(s.log.gaps, stretch{(s.head + 1) & mask, ahead - 1})
		}
		s.missed, s.missedTo = true, seq
		s.advance(seq, ahead, at, m)
		s.start, s.resumed = at, false
	default: // what became of it is not known
		s.begin(seq, at, m)
	}
}

// gap is the largest one that is taken for loss.
func (m *room) gap(mask uint32) uint32 { return min(m.maxGap, mask>>4) }

// begin makes seq the first number of the sequence.
func (s *sequence) begin(seq uint32, at int64, m *room) {
	if s.log != nil {
		s.resume(seq - 1)
	}
	s.settleNext(s.provisionalSpan())
	clear(s.seen)
	word, bit := place(s.seen, seq)
	*word |= bit
	s.started, s.resumed, s.missed, s.marked, s.settling = true, false, false, false, false
	s.origin, s.head, s.span, s.open, s.provisional, s.gone = seq, seq, 1, 0, 0, 0
	s.repeat, s.run = 0, 0
	s.time, s.start = at, at
	s.aged, s.ageHead, s.ageTime = seq, seq, at
	s.wait = max(s.wait, m.least())
}

// advance makes a number the newest that is ahead of the newest one.
func (s *sequence) advance(seq, ahead uint32, at int64, m *room) {
	mask := s.mask()
	if s.provisional == 0 {
		s.edge = (s.head + 1) & mask
		s.missed = s.missed && s.resumed
	}
	if ahead > s.wait {
		s.wait = s.length(ahead, m)
	}
	if leaving := int64(s.span) + int64(ahead) - int64(s.size()); leaving > 0 {
		s.leave(ahead, uint32(leaving), m)
	}
	size, before := s.size(), s.head
	if s.log != nil {
		s.log.slow += uint64(ahead)
	}
	if ahead > 1 {
		missing := ahead - 1
		kept := min(missing, size-1)
		if missing > kept && s.log != nil {
			s.skipped(missing - kept)
		}
		forget(s.seen, seq-kept, kept)
		s.open += kept
		s.provisional += kept
		if missing > kept { // more than the record can hold
			s.countMissing(int64(missing-kept), s.resumed)
			s.gone |= missing - kept
			s.edge = (seq - kept) & mask
		}
	}
	word, bit := place(s.seen, seq)
	*word |= bit
	s.head, s.time, s.span = seq, at, min(s.span+ahead, size)
	if s.provisional > 0 {
		if at-s.ageTime >= holdFor {
			s.aged, s.ageHead, s.ageTime = s.ageHead, before, at
		}
		if n := s.provisionalSpan(); n > s.wait {
			if old := (s.aged-s.edge)&mask + 1; old <= n { // else nothing is so old
				s.settleNext(min(n-s.wait, old))
			}
		}
	}
	s.repeat, s.run = 0, 0
	if s.farN != 0 {
		s.dismiss(at)
	}
}

// provisionalSpan is how many numbers are not before the edge.
func (s *sequence) provisionalSpan() uint32 {
	if s.provisional == 0 {
		return 0
	}
	return (s.head-s.edge)&s.mask() + 1
}

// leave makes room for the numbers that the head is about to go ahead by: the oldest leave the record. If one of them
// is still waited for, the record grows instead, as long as it may.
func (s *sequence) leave(ahead, leaving uint32, m *room) {
	mask := s.mask()
	for first := (s.head - s.span + 1) & mask; leaving > 0; {
		n := min(leaving, s.span)
		missing := uint32(0)
		if s.open > 0 {
			missing = zeros(s.seen, first, n)
		}
		if (missing > s.settled(first, n) || ahead > s.size()) && s.grow(m) {
			leaving = uint32(max(int64(s.span)+int64(ahead)-int64(s.size()), 0))
			continue
		}
		if s.provisional > 0 {
			// Those before the edge are counted; count those behind it that leave.
			if before := s.span - s.provisionalSpan(); n > before {
				s.settleNext(n - before)
			}
		}
		if missing > 0 && s.log != nil {
			s.gaps(first, n)
		}
		s.open -= missing
		s.gone |= missing
		return
	}
}

// settled counts the missing ones among n numbers from first on that no longer need a record, because they have been
// missing for so long.
func (s *sequence) settled(first, n uint32) uint32 {
	if !s.settling {
		return 0
	}
	if k := (s.settledTo-first)&s.mask() + 1; k <= s.span { // else it has left the record
		return zeros(s.seen, first, min(n, k))
	}
	return 0
}

// grow doubles the record, if there is memory for it.
func (s *sequence) grow(m *room) bool {
	words := int64(len(s.seen))
	if s.size() >= min(m.longest, s.mask()>>2+1) {
		return false
	}
	need := 2 * words
	if s.size() > m.least() {
		need = words // beside what it has
	}
	if !m.places.claimWords(need, s.trusted) {
		return false
	}
	seen := make([]uint64, 2*words)
	carry(seen, s.seen, s.head-s.span+1, s.span)
	if s.size() == m.least() {
		m.spare = append(m.spare, s.seen)
	}
	s.seen = seen
	return true
}

// shrink halves the record.
func (s *sequence) shrink(m *room) {
	words := len(s.seen) / 2
	half := uint32(words) * 64
	missing := zeros(s.seen, s.head-s.span+1, s.span-min(s.span, half))
	s.open -= missing
	s.gone |= missing
	s.span = min(s.span, half)
	var seen []uint64
	if half == m.least() {
		seen = m.record()
		m.places.words.Add(int64(2 * words))
	} else {
		seen = make([]uint64, words)
		m.places.words.Add(int64(words))
	}
	carry(seen, s.seen, s.head-s.span+1, s.span)
	s.seen = seen
}

// settleNext counts the missing ones among the next n numbers from the edge on as lost.
func (s *sequence) settleNext(n uint32) {
	mask := s.mask()
	if s.missed { // up to missedTo, they were missed
		if k := (s.missedTo - s.edge) & mask; k > 0 && k <= s.provisionalSpan() {
			k = min(k, n)
			z := zeros(s.seen, s.edge, k)
			s.countMissing(int64(z), true)
			s.provisional -= z
			s.edge = (s.edge + k) & mask
			if n -= k; n == 0 {
				return
			}
		}
		s.missed = false
	}
	z := zeros(s.seen, s.edge, n)
	s.countMissing(int64(z), false)
	s.provisional -= z
	s.edge = (s.edge + n) & mask
}

func (s *sequence) countMissing(n int64, missed bool) {
	if missed {
		s.down += uint64(n)
	} else {
		s.lost += n
	}
}

// fill takes a number inside the record.
func (s *sequence) fill(seq, behind uint32, at int64, m *room) {
	word, bit := place(s.seen, seq)
	if *word&bit != 0 {
		s.duplicate(seq, at, m)
		return
	}
	*word |= bit
	if s.log != nil {
		s.filled(seq)
	}
	s.open--
	s.run = 0
	if behind < s.provisionalSpan() {
		s.provisional--
		s.reordered++
	} else {
		s.lost--
		s.late++
	}
	s.widen(behind, m)
}

// widen makes the wait longer than numbers come late.
func (s *sequence) widen(behind uint32, m *room) {
	s.worst = max(s.worst, behind)
	if behind >= s.wait/2 {
		s.wait = s.length(2*behind, m)
	}
}

// length is a power of two of at least n, within the bounds of a record.
func (s *sequence) length(n uint32, m *room) uint32 {
	if n >= m.longest {
		return m.longest
	}
	return max(1<<bits.Len32(n-1), m.least(), s.wait)
}

// whole reports whether the record goes back to the first number.
func (s *sequence) whole() bool { return (s.head-s.origin)&s.mask()+1 == s.span }

// before takes a number before the first one of a young sequence.
func (s *sequence) before(seq, behind uint32, m *room) {
	for behind >= s.size() {
		if !s.grow(m) {
			s.late++
			return
		}
	}
	n := behind - s.span // between it and the first
	word, bit := place(s.seen, seq)
	*word |= bit
	if s.log != nil {
		s.filled(seq)
	}
	if s.open == s.provisional { // nothing of the record is counted
		s.provisional += n
		s.edge = seq
	} else {
		s.lost += int64(n)
	}
	s.open += n
	s.span = behind + 1
	s.reordered++
	s.run = 0
	s.origin = seq
	s.widen(behind, m)
}

// stale takes a number of which there is no record, and which was received before the newest one.
func (s *sequence) stale(behind uint32, m *room) {
	if s.gone == 0 && behind <= (s.head-s.origin)&s.mask() {
		s.duplicated++ // all numbers that the record has left came
		return
	}
	s.late++
	if s.log != nil {
		s.unrecorded((s.head - behind) & s.mask())
	}
	s.widen(min(behind, m.longest), m)
}

// claim notes that the numbers change.
func (s *sequence) claim() {
	if s.sequenced {
		return
	}
	s.sequenced = true
	if s.repeat <= pendingDuplicates {
		s.duplicated += uint64(s.repeat)
	}
	s.repeat = 0
}

// same handles the newest number coming again.
func (s *sequence) same() {
	if s.repeat < ^uint32(0) {
		s.repeat++
	}
	if !s.sequenced {
		return
	}
	s.duplicated++
	if s.repeat >= repeatLimit {
		s.duplicated -= min(s.duplicated, uint64(s.repeat))
		if s.log != nil {
			s.flush()
			s.log.begin((s.head-1)&s.mask(), false)
		}
		s.sequenced = false
		s.span, s.open, s.provisional = 1, 0, 0
	}
}

// duplicate handles a number of the record that has come already. A sequence that begins anew inside of its own record
// looks like this, too.
func (s *sequence) duplicate(seq uint32, at int64, m *room) {
	s.duplicated++
	if at < s.time { // received before the newest one: a copy
		return
	}
	if s.run == 0 || seq != (s.runLast+1)&s.mask() {
		s.run = 0
	}
	s.run++
	s.runLast = seq
	if s.run < duplicateRun {
		return
	}
	s.duplicated -= min(s.duplicated, uint64(s.run))
	s.restarts++
	s.begin(seq-duplicateRun+1, at, m)
	for k := range uint32(duplicateRun) {
		word, bit := place(s.seen, seq-k)
		*word |= bit
	}
	s.head, s.span = seq, duplicateRun
}

// jump handles a number that is far from all others. It changes nothing before others confirm it, and only as long as
// the sequence itself is silent.
func (s *sequence) jump(seq uint32, at int64, m *room) {
	mask := s.mask()
	if s.farN > 0 {
		if slices.Contains(s.far[:s.farN], seq) {
			s.farDup++
			return
		}
		if last := s.far[s.farN-1]; min((seq-last)&mask, (last-seq)&mask) > near {
			s.drop()
		}
	}
	if s.farN == 0 {
		s.farTime = at
	}
	s.far[s.farN] = seq
	if s.farN++; s.farN == confirmations {
		s.move(at, m)
	}
}

// dismiss forgets far numbers when the sequence goes on that they seemed to replace. Numbers received before them were
// only delayed here.
func (s *sequence) dismiss(at int64) {
	if at >= s.farTime {
		s.drop()
	}
}

// drop takes the far numbers for strays.
func (s *sequence) drop() {
	if s.sequenced {
		for _, n := range s.far[:s.farN] {
			if s.log != nil {
				s.unrecorded(n)
			}
		}
		s.late += uint64(s.farN) + s.farDup
	}
	s.farN, s.farDup = 0, 0
}

// move makes the far numbers the newest ones.
func (s *sequence) move(at int64, m *room) {
	mask := s.mask()
	far := s.far
	base := far[0] - mask>>1
	offset := func(n uint32) uint32 { return (n - base) & mask }
	newest := offset(far[0])
	for _, n := range far[1:] {
		if k := offset(n); k < newest {
			s.reordered++
		} else {
			newest = k
		}
	}
	slices.SortFunc(far[:], func(a, b uint32) int { return int(int64(offset(a)) - int64(offset(b))) })
	s.duplicated += s.farDup
	s.farN, s.farDup = 0, 0
	first := far[0] & mask
	if gap := (first - s.head) & mask; s.sequenced && gap <= m.gap(mask) {
		s.advance(first, gap, at, m)
	} else {
		if s.sequenced && !s.returns(first, at, m) {
			s.restarts++
		}
		s.replaced, s.oldHead, s.oldTime = s.sequenced, s.head, s.time
		s.begin(first, at, m)
	}
	s.sequenced = true
	for _, n := range far[1:] {
		s.advance(n, (n-s.head)&mask, at, m)
	}
}

// returns reports whether a sequence goes on that another one seemed to have replaced.
func (s *sequence) returns(first uint32, at int64, m *room) bool {
	ahead := (first - s.oldHead) & s.mask()
	return s.replaced && at-s.oldTime <= returnWithin && ahead > 0 && ahead <= m.longest
}

// cut ends a window of time at end. It publishes the numbers that were missing for too long, and adapts the wait and
// the record to the disorder that is seen.
func (s *sequence) cut(end int64, m *room) {
	if !s.started || s.resumed {
		return
	}
	// Numbers missed between two runs are counted with the first window. No collector ran when they were sent, so none
	// of them can be on its way for long. A run that ends soon would never count them.
	if k := (s.missedTo - s.edge) & s.mask(); s.missed && k > 0 && k <= s.provisionalSpan() {
		s.settleNext(k)
	}
	if !s.marked {
		s.mark, s.markTime, s.marked = s.head, end, true
	} else if end-s.markTime >= settleAfter {
		if n := (s.mark-s.edge)&s.mask() + 1; n <= s.provisionalSpan() {
			s.settleNext(n)
		}
		s.settledTo, s.settling = s.mark, true
		s.mark, s.markTime = s.head, end
	}
	if s.worst >= s.wait/4 {
		s.calm = 0
	} else {
		s.calm++
	}
	s.worst = 0
	if s.calm < calmCuts {
		return
	}
	s.calm = 0
	s.wait = max(s.wait/2, m.least())
	if size := s.size(); size > m.least() && s.wait <= size/2 {
		first, n := s.head-s.span+1, s.span-min(s.span, size/2)
		if s.open == 0 || zeros(s.seen, first, n) == s.settled(first&s.mask(), n) {
			s.shrink(m)
		}
	}
}

// settle publishes all that is still provisional, when nothing can come any more.
func (s *sequence) settle() {
	s.settleNext(s.provisionalSpan())
	s.drop()
}
