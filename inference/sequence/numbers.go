package sequence

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/inference/window"
)

const (
	// maxParts is how many parts of a window are listed of a sequence that begins anew.
	maxParts = 8
	// maxFills is how many numbers of a window are listed that fill gaps of earlier ones.
	maxFills = 1024
	// keptFills is how many numbers the memory is kept of.
	keptFills = 64
)

// numberLog lists the numbers that came since they were read last. Numbers in order are not noted one by one: they are
// read from the record at the end of a window. Only gaps that leave the record before that are noted, and numbers that
// fill gaps of an earlier window.
type numberLog struct {
	longest uint32 // how far behind the newest one a number may be to be one that is late
	most    int    // runs of a part
	from    uint32 // numbers up to it were listed, or came before the first one
	next    uint64 // offset from it that is not decided yet
	slow    uint64 // how far the newest number jumped, in all
	anew    bool   // the part begins anew
	many    bool   // more than can be listed
	runs    runList
	fills   []uint32         // numbers before from that came since
	lates   []uint32         // numbers of which there was no record any more
	parts   []window.Numbers // of the window, done
	memory  []window.Run     // of parts
	all     runList
	gaps    []stretch // of the window, two at most
}

// stretch is a stretch of numbers that the run before did not account for.
type stretch struct{ first, count uint32 }

// newNumberLog lists what comes behind from.
func newNumberLog(most int, from, longest uint32) *numberLog {
	return &numberLog{most: most, from: from, next: 1, longest: longest}
}

// runList lists runs with offsets from a number. If there are too many, neighbours are put together.
type runList struct {
	list  []window.Run
	group int // how many runs one of the list stands for
	last  int // how many the last one does
}

func (l *runList) reset() { *l = runList{list: l.list[:0]} }

// add lists a run behind all others.
func (l *runList) add(r window.Run, most int) {
	if n := len(l.list); n > 0 && (l.last < l.group || l.list[n-1].Last+1 == r.First) {
		if l.list[n-1].Last+1 != r.First {
			l.last++
		}
		l.list[n-1].Last = r.Last
		l.list[n-1].Count += r.Count
		return
	}
	if len(l.list) >= most {
		k := 0
		for i := 0; i < len(l.list); i += 2 {
			x := l.list[i]
			if i+1 < len(l.list) {
				x.Last, x.Count = l.list[i+1].Last, x.Count+l.list[i+1].Count
			}
			l.list[k] = x
			k++
		}
		odd := len(l.list)%2 != 0
		l.list = l.list[:k]
		if l.group = 2 * max(l.group, 1); odd {
			l.add(r, most)
			return
		}
	}
	l.list = append(l.list, r)
	l.last = 1
}

// begin goes on with numbers behind from.
func (t *numberLog) begin(from uint32, anew bool) {
	t.from, t.next, t.anew = from, 1, anew
	t.runs.reset()
	t.fills, t.lates = t.fills[:0], t.lates[:0]
}

// gap notes n numbers from an offset on that did not come.
func (t *numberLog) gap(at, n uint64) {
	if at > t.next {
		t.runs.add(window.Run{First: t.next, Last: at - 1, Count: at - t.next}, t.most)
	}
	t.next = at + n
}

// gaps notes those of n numbers of the record from first on that did not come. They are not behind the newest one.
func (s *sequence) gaps(first, n uint32) {
	t, mask := s.log, s.mask()
	reached := (s.head - t.from) & mask // its offset
	missing(s.seen, first, n, func(first, n uint32) {
		behind := (s.head - first) & mask
		if behind >= reached { // all of them were listed, since the one that came last then is among those that came
			return
		}
		if at := uint64(reached - behind); at >= t.next {
			t.gap(at, uint64(n))
		}
	})
}

// skipped notes n numbers ahead of the newest one for which the record has no room.
func (s *sequence) skipped(n uint32) {
	if at := uint64((s.head-s.log.from)&s.mask()) + 1; at >= s.log.next {
		s.log.gap(at, uint64(n))
	}
}

// filled notes a number that fills a gap. The record has those behind from.
func (s *sequence) filled(seq uint32) {
	t, mask := s.log, s.mask()
	if (s.head-seq)&mask < (s.head-t.from)&mask {
		return
	}
	if len(t.fills) == maxFills {
		t.many = true
		return
	}
	t.fills = append(t.fills, seq)
}

// unrecorded notes a number that came when there was no record of it any more: it may be the first time.
func (s *sequence) unrecorded(seq uint32) {
	if t := s.log; (s.head-seq)&s.mask() < t.longest {
		if len(t.lates) == maxFills {
			t.many = true
			return
		}
		t.lates = append(t.lates, seq)
	}
}

// flush ends a part.
func (s *sequence) flush() {
	if s.resumed || !s.sequenced {
		return
	}
	t := s.log
	s.flushNew()
	if len(t.lates) > 0 {
		t.all.reset()
		s.flushPart(t.addSorted(t.lates, s.head, s.mask()))
	}
}

// addSorted lists numbers that are not ahead of a reference, and returns the first of them.
func (t *numberLog) addSorted(list []uint32, ref, mask uint32) (first uint32) {
	behind := func(n uint32) uint32 { return (ref - n) & mask }
	slices.SortFunc(list, func(a, b uint32) int { return cmp.Compare(behind(b), behind(a)) })
	first = list[0]
	for i, n := range list {
		if at := uint64((n - first) & mask); i == 0 || n != list[i-1] {
			t.all.add(window.Run{First: at, Last: at, Count: 1}, t.most)
		}
	}
	return first
}

// flushPart ends a part that has the runs in t.all.
func (s *sequence) flushPart(first uint32) {
	t := s.log
	if len(t.parts) == maxParts {
		t.many = true
		return
	}
	part := window.Numbers{Width: s.width, Part: uint32(len(t.parts)), Anew: t.anew, First: first & s.mask()}
	n := len(t.memory)
	t.memory = append(t.memory, t.all.list...)
	part.Runs = t.memory[n:len(t.memory):len(t.memory)]
	t.parts = append(t.parts, part)
	t.anew = false
}

func (s *sequence) flushNew() {
	t, mask := s.log, s.mask()
	reached := (s.head - t.from) & mask
	if s.open > 0 {
		n := min(s.span, reached)
		s.gaps(s.head-n+1, n)
	}
	t.gap(uint64(reached)+1, 0)
	if len(t.fills) == 0 && len(t.runs.list) == 0 {
		return
	}
	// Offsets of runs count from t.from, and those of fills are below it; in the part, they count from its first number.
	t.all.reset()
	first, base := uint32(0), uint64(0)
	if len(t.fills) > 0 {
		first = t.addSorted(t.fills, t.from, mask)
		base = uint64((t.from - first) & mask)
		t.all.group = 0
	} else {
		base = -t.runs.list[0].First // modulo 2⁶⁴
		first = t.from + uint32(t.runs.list[0].First)
	}
	for _, r := range t.runs.list {
		t.all.add(window.Run{First: r.First + base, Last: r.Last + base, Count: r.Count}, 2*t.most)
	}
	if uint64(reached)+base > uint64(mask) { // round, to those that it begins with
		t.many = true
	}
	s.flushPart(first)
}

// resume goes on behind from, after a restart.
func (s *sequence) resume(from uint32) {
	anew := s.sequenced && s.started
	s.flush()
	s.log.begin(from&s.mask(), anew)
}

// publish hands over what came since the last time, with so many reports.
func (s *sequence) publish(p *window.Partial, sp *space, reports uint64) {
	t := s.log
	s.flush()
	if reports+t.slow > uint64(s.mask()) { // it may have gone round
		t.many = true
	}
	if t.many {
		t.parts = append(t.parts[:0], window.Numbers{Width: s.width, Unknown: true, First: s.head})
	}
	for i := range t.parts {
		n := &t.parts[i]
		n.ExporterKey, n.To = sp.key(), sp.to
		p.AddNumbers(n)
	}
	for _, g := range t.gaps {
		p.AddGap(&window.Gap{ExporterKey: sp.key(), To: sp.to, Width: s.width, First: g.first, Count: g.count})
	}
	t.gaps = nil
	clear(t.parts)
	t.parts, t.memory, t.many, t.slow = t.parts[:0], t.memory[:0], false, 0
	if s.sequenced && !s.resumed {
		t.begin(s.head, false)
	}
	if cap(t.fills)+cap(t.lates) > 2*keptFills {
		t.fills, t.lates = slices.Clone(t.fills), slices.Clone(t.lates)
	}
}
