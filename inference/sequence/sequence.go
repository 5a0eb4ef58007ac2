package sequence

import "math/bits"

const (
	// confirmations is how many distinct numbers near each other confirm a far jump.
	confirmations = 4
	// duplicateRun is how many duplicates in ascending order, without a new number in between, are a restart inside
	// of the window.
	duplicateRun = 64
	// repeatLimit is how often in a row the same number may come before the exporter is taken not to count.
	repeatLimit = 64
	// pendingDuplicates is how many repetitions of an exporter's very first number are believed to be duplicates once
	// the number changes.
	pendingDuplicates = 8
	// startSlack is how far before the first number that was seen a late one is believed to belong to the same
	// sequence.
	startSlack = 64
)

// counts are the claims about one sequence, since the last cut.
type counts struct {
	lost                            int64
	duplicated, reordered, restarts uint64
}

// sequence is one sequence number space. The bitmap of its window lives beside it, so that it holds no pointer: bit
// n mod window says whether the number n in (head-span, head] was seen.
type sequence struct {
	counts
	head   uint32 // newest number
	span   uint32 // numbers that the window covers, at most its size; less while the sequence is young
	repeat uint32 // how often head came again, in a row

	run     uint32 // duplicates in ascending order, in a row
	runNext uint32

	far     uint64 // bitmap of a far jump, bit i for farHead-i; 0 without one
	farHead uint32
	farSeen counts // what the numbers of the far jump were, should it be confirmed
	farAll  uint64 // how many there were, all counted as reordered until then

	width     uint8 // bits of a number, 1 to 32
	started   bool
	sequenced bool
}

// observe takes the next number. seen is the bitmap of the window, a power of two of bits.
func (s *sequence) observe(seq uint32, seen []uint64, maxGap uint32) {
	mask := ^uint32(0) >> (32 - s.width)
	seq &= mask
	window := uint32(len(seen)) * 64
	ahead := (seq - s.head) & mask
	if ahead == 1 && s.sequenced { // nearly always
		s.head = seq
		seen[seq&(window-1)>>6] |= 1 << (seq & 63)
		if s.span < window {
			s.span++
		}
		s.repeat, s.run, s.far = 0, 0, 0
		return
	}
	behind := (s.head - seq) & mask
	switch {
	case !s.started:
		s.started = true
		s.restartAt(seq, 1, 1, seen)
	case ahead == 0:
		s.same()
	case ahead <= window:
		s.claim()
		forget(seen, s.head+1, ahead-1)
		seen[seq&(window-1)>>6] |= 1 << (seq & 63)
		s.lost += int64(ahead) - 1
		s.head, s.span = seq, min(s.span+ahead, window)
		s.repeat, s.run, s.far = 0, 0, 0
	case behind < s.span:
		s.claim()
		word, bit := &seen[seq&(window-1)>>6], uint64(1)<<(seq&63)
		if *word&bit == 0 {
			*word |= bit
			s.lost--
			s.reordered++
			s.run = 0
			return
		}
		s.duplicate(seq, mask, seen)
	case behind < min(s.span+startSlack, window):
		s.claim()
		forget(seen, s.head-behind+1, behind-s.span)
		seen[seq&(window-1)>>6] |= 1 << (seq & 63)
		s.lost += int64(behind - s.span)
		s.reordered++
		s.span = behind + 1
		s.run = 0
	default:
		s.jump(seq, mask, seen, min(maxGap, mask>>4))
	}
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
		s.sequenced = false
	}
}

func (s *sequence) duplicate(seq, mask uint32, seen []uint64) {
	s.duplicated++
	if s.run == 0 || seq != s.runNext {
		s.run = 0
	}
	s.run++
	s.runNext = (seq + 1) & mask
	if s.run >= duplicateRun {
		s.duplicated -= min(s.duplicated, uint64(s.run))
		s.restarts++
		s.restartAt(seq, ^uint64(0), duplicateRun, seen)
	}
}

// jump handles a number that is far from all others.
func (s *sequence) jump(seq, mask uint32, seen []uint64, maxGap uint32) {
	if s.sequenced {
		s.reordered++
	}
	ahead, behind := (seq-s.farHead)&mask, (s.farHead-seq)&mask
	switch {
	case s.far != 0 && ahead > 0 && ahead < 64:
		s.far = s.far<<ahead | 1
		s.farHead = seq
	case s.far != 0 && behind < 64:
		if s.far&(1<<behind) != 0 {
			s.farSeen.duplicated++
		} else {
			s.farSeen.reordered++
			s.far |= 1 << behind
		}
	default:
		s.far, s.farHead, s.farSeen, s.farAll = 1, seq, counts{}, 0
	}
	if s.sequenced {
		s.farAll++
	}
	n := bits.OnesCount64(s.far)
	if n < confirmations {
		return
	}
	s.sequenced = true
	s.reordered -= min(s.reordered, s.farAll)
	s.reordered += s.farSeen.reordered
	s.duplicated += s.farSeen.duplicated
	span := uint32(bits.Len64(s.far))
	first := (s.farHead - span + 1) & mask
	s.lost += int64(span) - int64(n)
	gap := (first - s.head) & mask
	if s.farAll > 0 && gap <= maxGap {
		s.lost += int64(gap) - 1
		s.restartAt(s.farHead, s.far, uint32(len(seen))*64, seen) // the gap may yet be filled
		return
	}
	if s.farAll > 0 {
		s.restarts++
	}
	s.restartAt(s.farHead, s.far, span, seen)
}

// restartAt makes head the newest number, of which the bits of last (bit i for head-i) were seen.
func (s *sequence) restartAt(head uint32, last uint64, span uint32, seen []uint64) {
	clear(seen)
	window := uint32(len(seen)) * 64
	for ; last != 0; last &= last - 1 {
		n := head - uint32(bits.TrailingZeros64(last))
		seen[n&(window-1)>>6] |= 1 << (n & 63)
	}
	s.head, s.span = head, span
	s.repeat, s.run, s.far = 0, 0, 0
}

// forget clears the bits of n numbers from first on, n at most the window.
func forget(seen []uint64, first, n uint32) {
	words := uint32(len(seen)) - 1
	for n > 0 {
		at := first & 63
		k := min(n, 64-at)
		seen[first>>6&words] &^= ^uint64(0) >> (64 - k) << at
		first, n = first+k, n-k
	}
}
