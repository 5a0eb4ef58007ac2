package sequence

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// absent is a number of the record that did not come.
type absent struct {
	provisional bool // it is waited for, and not counted as lost
	missed      bool // no collector ran when it was sent
}

// twin is a sequence with a map of the missing numbers and a set of those that came. It has no ring of bits with an
// edge.
type twin struct {
	width                                  uint8
	longest, maxGap, least, size           uint32
	arrived                                map[uint32]bool
	absent                                 map[uint32]absent
	head, span, origin                     uint32
	time, start                            int64
	started, resumed, sequenced            bool
	repeat, run, runLast                   uint32
	wait, worst                            uint32
	calm                                   int
	gone                                   bool // a missing number has left the record
	far                                    []uint32
	farTime                                int64
	farDup                                 uint64
	replaced                               bool
	oldHead                                uint32
	oldTime                                int64
	marked, settling                       bool
	mark, settledTo, aged, ageHead         uint32
	markTime, ageTime                      int64
	lost, down                             int64
	duplicated, reordered, late, begunAnew uint64
	log                                    *logTwin // nil without one
}

func (w *twin) wrap(n uint32) uint32   { return n & (1<<w.width - 1) }
func (w *twin) behind(n uint32) uint32 { return w.wrap(w.head - n) }
func (w *twin) quarter() uint32        { return uint32(1<<w.width-1) / 4 }

func (w *twin) provisional() (n uint32) {
	for _, a := range w.absent {
		if a.provisional {
			n++
		}
	}
	return n
}

// settle counts the numbers that are waited for and are at least this far behind.
func (w *twin) settle(least uint32) {
	for n, a := range w.absent {
		if a.provisional && w.behind(n) >= least {
			if a.missed {
				w.down++
			} else {
				w.lost++
			}
			w.absent[n] = absent{}
		}
	}
}

// forget drops what is farther behind than the record goes.
func (w *twin) forget() {
	for n := range w.absent {
		if w.behind(n) >= w.span {
			delete(w.absent, n)
			w.gone = true
		}
	}
	for n := range w.arrived {
		if w.behind(n) >= w.span {
			delete(w.arrived, n)
		}
	}
}

func (w *twin) grow() bool {
	if w.size >= min(w.longest, w.quarter()+1) {
		return false
	}
	w.size *= 2
	return true
}

// length is a power of two that holds n numbers.
func (w *twin) length(n uint32) uint32 {
	if n >= w.longest {
		return w.longest
	}
	k := max(w.least, w.wait)
	for p := uint32(1); p < n; {
		p *= 2
		k = max(k, p)
	}
	return k
}

func (w *twin) widen(behind uint32) {
	w.worst = max(w.worst, behind)
	if behind >= w.wait/2 {
		w.wait = w.length(2 * behind)
	}
}

func (w *twin) claim() {
	if !w.sequenced {
		w.sequenced = true
		if w.repeat <= pendingDuplicates {
			w.duplicated += uint64(w.repeat)
		}
		w.repeat = 0
	}
}

func (w *twin) begin(seq uint32, at int64) {
	w.part(seq-1, w.sequenced && w.started)
	w.settle(0)
	w.arrived, w.absent = map[uint32]bool{seq: true}, map[uint32]absent{}
	w.started, w.resumed, w.marked, w.settling, w.gone = true, false, false, false, false
	w.head, w.origin, w.span, w.repeat, w.run = seq, seq, 1, 0, 0
	w.time, w.start = at, at
	w.aged, w.ageHead, w.ageTime = seq, seq, at
	w.wait = max(w.wait, w.least)
	w.note(seq)
}

func (w *twin) observe(seq uint32, at int64) {
	seq = w.wrap(seq)
	ahead, behind := w.wrap(seq-w.head), w.behind(seq)
	if !w.started || w.resumed {
		switch {
		case !w.started:
			w.begin(seq, at)
		case behind < startSlack:
			w.late++
			w.unrecorded(seq)
		case ahead <= min(w.maxGap, (1<<w.width-1)/16):
			w.claim()
			if w.log != nil && ahead > 1 {
				w.log.gaps = append(w.log.gaps, stretch{w.wrap(w.head + 1), ahead - 1})
			}
			w.advance(seq, ahead, at)
			w.start, w.resumed = at, false
		default:
			w.begin(seq, at)
		}
		return
	}
	reach := min(w.longest, w.quarter())
	if !w.sequenced {
		reach = min(w.least, w.quarter())
	}
	whole := w.wrap(w.head-w.origin)+1 == w.span
	_, missing := w.absent[seq]
	switch {
	case ahead == 0:
		w.repeat++
		if w.sequenced {
			w.duplicated++
			if w.repeat >= repeatLimit { // it does not count
				w.duplicated -= min(w.duplicated, uint64(w.repeat))
				w.part(seq-1, false)
				w.note(seq)
				w.sequenced, w.span = false, 1
				w.arrived, w.absent = map[uint32]bool{seq: true}, map[uint32]absent{}
			}
		}
	case ahead <= reach:
		if w.log != nil && ahead == 1 && w.sequenced && len(w.absent) == 0 {
			w.log.slow-- // it is counted as a report
		}
		w.claim()
		w.advance(seq, ahead, at)
	case behind < w.span && missing:
		w.claim()
		if w.absent[seq].provisional {
			w.reordered++
		} else {
			w.lost--
			w.late++
		}
		delete(w.absent, seq)
		w.arrived[seq] = true
		w.note(seq)
		w.run = 0
		w.widen(behind)
	case behind < w.span:
		w.claim()
		w.second(seq, at)
	case whole && (at < w.start && behind < min(w.longest, w.quarter()) || behind < w.span+startSlack):
		w.claim()
		w.before(seq, behind)
	case at < w.time && w.time-at < keptBack && w.sequenced:
		if !w.gone && behind <= w.wrap(w.head-w.origin) {
			w.duplicated++
		} else {
			w.late++
			w.unrecorded(seq)
			w.widen(min(behind, w.longest))
		}
	default:
		w.jump(seq, at)
	}
}

func (w *twin) advance(seq, ahead uint32, at int64) {
	if ahead > w.wait {
		w.wait = w.length(ahead)
	}
	if open := len(w.absent) > 0; open || ahead > 1 {
		w.leave(ahead)
	}
	before := w.head
	w.head, w.time, w.span = seq, at, min(w.span+ahead, w.size)
	w.forget()
	for n := uint32(1); n < ahead; n++ {
		x := w.wrap(before + n)
		switch {
		case w.behind(x) < w.size:
			w.absent[x] = absent{provisional: true, missed: w.resumed}
		case w.resumed:
			w.down++
			w.gone = true
		default:
			w.lost++
			w.gone = true
		}
	}
	w.arrived[seq] = true
	if w.log != nil {
		w.log.slow += uint64(ahead)
		w.log.fresh = append(w.log.fresh, seq)
	}
	if w.provisional() > 0 {
		if at-w.ageTime >= holdFor {
			w.aged, w.ageHead, w.ageTime = w.ageHead, before, at
		}
		if old := w.behind(w.aged); old <= 1<<(w.width-1) { // what came so long ago that it is far behind is not old any more
			w.settle(max(w.wait, old))
		}
	}
	w.repeat, w.run = 0, 0
	w.dismiss(at)
}

// leave makes room for the numbers that the head goes ahead by.
func (w *twin) leave(ahead uint32) {
	for {
		leaving := int64(w.span) + int64(ahead) - int64(w.size)
		if leaving <= 0 {
			return
		}
		first := w.span - min(uint32(leaving), w.span) // behind it all leave
		wanted := false
		for n := range w.absent {
			old := w.settling && w.behind(w.settledTo) < w.span && w.behind(n) >= w.behind(w.settledTo)
			wanted = wanted || w.behind(n) >= first && !old
		}
		if (wanted || ahead > w.size) && w.grow() {
			continue
		}
		w.settle(first)
		w.span = first
		w.forget()
		return
	}
}

func (w *twin) before(seq, behind uint32) {
	for behind >= w.size {
		if !w.grow() {
			w.late++
			return
		}
	}
	counted := int(w.provisional()) < len(w.absent)
	for n := w.span; n < behind; n++ {
		w.absent[w.wrap(w.head-n)] = absent{provisional: !counted}
		if counted {
			w.lost++
		}
	}
	w.arrived[seq] = true
	w.note(seq)
	w.span, w.origin, w.run = behind+1, seq, 0
	w.reordered++
	w.widen(behind)
}

// second takes a number that came before.
func (w *twin) second(seq uint32, at int64) {
	w.duplicated++
	if at < w.time {
		return
	}
	if w.run > 0 && seq == w.wrap(w.runLast+1) {
		w.run++
	} else {
		w.run = 1
	}
	w.runLast = seq
	if w.run < duplicateRun {
		return
	}
	w.duplicated -= min(w.duplicated, uint64(w.run))
	w.begunAnew++
	w.begin(w.wrap(seq-duplicateRun+1), at)
	for n := range uint32(duplicateRun) {
		w.arrived[w.wrap(seq-n)] = true
	}
	w.head, w.span = seq, duplicateRun
	for n := range uint32(duplicateRun - 1) {
		w.note(seq - n)
	}
}

func (w *twin) jump(seq uint32, at int64) {
	if slices.Contains(w.far, seq) {
		w.farDup++
		return
	}
	if n := len(w.far); n > 0 && min(w.wrap(seq-w.far[n-1]), w.wrap(w.far[n-1]-seq)) > near {
		w.drop()
	}
	if len(w.far) == 0 {
		w.farTime = at
	}
	if w.far = append(w.far, seq); len(w.far) == confirmations {
		w.move(at)
	}
}

func (w *twin) dismiss(at int64) {
	if len(w.far) > 0 && at >= w.farTime {
		w.drop()
	}
}

func (w *twin) drop() {
	if w.sequenced {
		for _, n := range w.far {
			w.unrecorded(n)
		}
		w.late += uint64(len(w.far)) + w.farDup
	}
	w.far, w.farDup = nil, 0
}

func (w *twin) move(at int64) {
	far := w.far
	from := func(n uint32) int64 { // the first of them, counted from
		d := int64(w.wrap(n - far[0]))
		if d > 1<<(w.width-1) {
			d -= 1 << w.width
		}
		return d
	}
	for k, n := range far[1:] {
		if slices.ContainsFunc(far[:k+1], func(m uint32) bool { return from(m) > from(n) }) {
			w.reordered++
		}
	}
	w.duplicated += w.farDup
	w.far, w.farDup = nil, 0
	sorted := slices.SortedFunc(slices.Values(far), func(a, b uint32) int { return int(from(a) - from(b)) })
	first := sorted[0]
	if gap := w.wrap(first - w.head); w.sequenced && gap <= min(w.maxGap, (1<<w.width-1)/16) {
		w.advance(first, gap, at)
	} else {
		ahead := w.wrap(first - w.oldHead)
		if returns := w.replaced && at-w.oldTime <= returnWithin && ahead > 0 && ahead <= w.longest; w.sequenced && !returns {
			w.begunAnew++
		}
		w.replaced, w.oldHead, w.oldTime = w.sequenced, w.head, w.time
		w.begin(first, at)
	}
	w.sequenced = true
	for _, n := range sorted[1:] {
		w.advance(n, w.wrap(n-w.head), at)
	}
}

func (w *twin) cut(end int64) {
	if !w.started || w.resumed {
		return
	}
	for n, a := range w.absent {
		if a.provisional && a.missed {
			w.down++
			w.absent[n] = absent{}
		}
	}
	if !w.marked {
		w.mark, w.markTime, w.marked = w.head, end, true
	} else if end-w.markTime >= settleAfter {
		if w.behind(w.mark) < w.size {
			w.settle(w.behind(w.mark))
		}
		w.settledTo, w.settling = w.mark, true
		w.mark, w.markTime = w.head, end
	}
	if w.calm++; w.worst >= w.wait/4 {
		w.calm = 0
	}
	w.worst = 0
	if w.calm < calmCuts {
		return
	}
	w.calm = 0
	w.wait = max(w.wait/2, w.least)
	if w.size == w.least || w.wait > w.size/2 {
		return
	}
	for n := range w.absent {
		old := w.settling && w.behind(w.settledTo) < w.span && w.behind(n) >= w.behind(w.settledTo)
		if w.behind(n) >= w.size/2 && !old {
			return // it is waited for
		}
	}
	w.size /= 2
	w.span = min(w.span, w.size)
	w.forget()
}

// logTwin is a log of numbers that lists each number that came since the last time.
type logTwin struct {
	most         int
	from         uint32 // what came up to it was reported
	anew, many   bool
	fresh, fills []uint32 // ahead of from, and not
	lates        []uint32 // without a record
	slow         uint64
	parts        []window.Numbers
	gaps         []stretch
}

// note lists a number that came for the first time.
func (w *twin) note(seq uint32) {
	l := w.log
	switch seq = w.wrap(seq); {
	case l == nil:
	case w.behind(seq) < w.behind(l.from):
		l.fresh = append(l.fresh, seq)
	case len(l.fills) == maxFills:
		l.many = true
	default:
		l.fills = append(l.fills, seq)
	}
}

// unrecorded lists a number that may have come before.
func (w *twin) unrecorded(seq uint32) {
	if l := w.log; l != nil && w.behind(seq) < w.longest {
		if len(l.lates) == maxFills {
			l.many = true
			return
		}
		l.lates = append(l.lates, w.wrap(seq))
	}
}

// part ends a part, and begins one behind from.
func (w *twin) part(from uint32, anew bool) {
	if l := w.log; l != nil {
		w.flush()
		l.from, l.anew, l.fresh, l.fills, l.lates = w.wrap(from), anew, nil, nil, nil
	}
}

// ascending sorts numbers by their offsets from a first one, which are the results, each once.
func (w *twin) ascending(list []uint32, first uint32, base uint64) (offsets []uint64) {
	for _, n := range list {
		offsets = append(offsets, base+uint64(w.wrap(n-first)))
	}
	slices.Sort(offsets)
	return slices.Compact(offsets)
}

// runsOf lists offsets as runs; equally many neighbours are one, a power of two that makes them at most so many.
func runsOf(offsets []uint64, most int) (list []window.Run) {
	for _, o := range offsets {
		if n := len(list); n > 0 && list[n-1].Last+1 == o {
			list[n-1].Last++
			list[n-1].Count++
		} else {
			list = append(list, window.Run{First: o, Last: o, Count: 1})
		}
	}
	for each := 1; ; each *= 2 {
		var grouped []window.Run
		for group := range slices.Chunk(list, each) {
			r := window.Run{First: group[0].First, Last: group[len(group)-1].Last}
			for _, x := range group {
				r.Count += x.Count
			}
			grouped = append(grouped, r)
		}
		if len(grouped) <= most {
			return grouped
		}
	}
}

func (w *twin) flush() {
	l := w.log
	if !w.started || w.resumed || !w.sequenced {
		return
	}
	add := func(first uint32, runs []window.Run) {
		if len(l.parts) == maxParts {
			l.many = true
			return
		}
		l.parts = append(l.parts, window.Numbers{Width: w.width, Part: uint32(len(l.parts)), Anew: l.anew, First: first, Runs: runs})
		l.anew = false
	}
	farthest := func(list []uint32, behind uint32) uint32 {
		return slices.MaxFunc(list, func(a, b uint32) int { return cmp.Compare(w.wrap(behind-a), w.wrap(behind-b)) })
	}
	if len(l.fills)+len(l.fresh) > 0 {
		var first uint32
		var runs []window.Run
		base := uint64(0)
		if len(l.fills) > 0 {
			first = farthest(l.fills, l.from)
			base = uint64(w.wrap(l.from - first))
			runs = runsOf(w.ascending(l.fills, first, 0), l.most)
		} else {
			first = farthest(l.fresh, w.head)
			base = -uint64(w.wrap(first - l.from))
		}
		for _, r := range runsOf(w.ascending(l.fresh, l.from, base), l.most) {
			if n := len(runs); n > 0 && runs[n-1].Last+1 == r.First {
				runs[n-1].Last, runs[n-1].Count = r.Last, runs[n-1].Count+r.Count
			} else {
				runs = append(runs, r)
			}
		}
		if add(first, runs); runs[len(runs)-1].Last >= 1<<w.width { // more than there are
			l.many = true
		}
	}
	if len(l.lates) > 0 {
		first := farthest(l.lates, w.head)
		add(first, runsOf(w.ascending(l.lates, first, 0), l.most))
		l.lates = nil
	}
}

// emit returns the parts and the gaps since the last time, in which so many reports came.
func (w *twin) emit(reports uint64) (parts []window.Numbers, gaps []stretch) {
	l := w.log
	w.flush()
	parts, gaps = l.parts, l.gaps
	if l.many || reports+l.slow > 1<<w.width-1 {
		parts = []window.Numbers{{Width: w.width, Unknown: true, First: w.head}}
	}
	l.parts, l.gaps, l.many, l.slow = nil, nil, false, 0
	if w.started && w.sequenced && !w.resumed {
		l.from, l.anew, l.fresh, l.fills, l.lates = w.head, false, nil, nil, nil
	}
	return parts, gaps
}

// compareLogs ends a window of both, and returns what they report if it differs, "" otherwise.
func compareLogs(s *sequence, w *twin, p *window.Partial, reports uint64) string {
	sp := newSpace(ptr(addr(1)), 5, 7, 3, w.width)
	p.Reset()
	s.publish(p, &sp, reports)
	parts, gaps := w.emit(reports)
	for i := range parts {
		parts[i].ExporterKey, parts[i].To = sp.key(), 5
	}
	same := slices.EqualFunc(p.Numbers(), parts, func(a, b window.Numbers) bool {
		return a.ExporterKey == b.ExporterKey && a.To == b.To && a.Width == b.Width && a.Part == b.Part && a.Anew == b.Anew && a.Unknown == b.Unknown &&
			a.First == b.First && slices.Equal(a.Runs, b.Runs)
	})
	var wantGaps []window.Gap
	for _, g := range gaps {
		wantGaps = append(wantGaps, window.Gap{ExporterKey: sp.key(), To: 5, Width: w.width, First: g.first, Count: g.count})
	}
	if !same || !slices.Equal(p.Gaps(), wantGaps) {
		return fmt.Sprintf("%v\n%v, want\n%v\n%v", numbers(p.Numbers()), p.Gaps(), numbers(parts), wantGaps)
	}
	b, err := p.AppendBinary(nil)
	if err == nil {
		err = p.ReadBinary(b, window.Limits{Numbers: 1000})
	}
	if err != nil {
		return fmt.Sprintf("%v, of\n%v", err, numbers(p.Numbers()))
	}
	if l := s.log; len(l.fills)+len(l.lates) == 0 && cap(l.fills)+cap(l.lates) > 2*keptFills {
		return fmt.Sprintf("memory for %d and %d numbers is kept", cap(l.fills), cap(l.lates))
	}
	return ""
}

// numbers is all of some lists but their exporter.
func numbers(list []window.Numbers) (s string) {
	for _, n := range list {
		s += fmt.Sprintf("part %d of %d bits, anew %t, unknown %t, from %d: %v\n", n.Part, n.Width, n.Anew, n.Unknown, n.First, n.Runs)
	}
	return s
}

func ptr[T any](x T) *T { return &x }

// TestTwin runs sequences and twins through numbers that come late, twice, from far away and from the beginning. Times
// go back, and there are cuts and several runs. Both count the same, and miss the same numbers.
func TestTwin(t *testing.T) {
	sum, listed, unknown := counts{}, 0, 0
	var p window.Partial
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 9))
		longest := []int{128, 256, 2048}[r.IntN(3)]
		m := testRoom(longest)
		m.maxGap = []uint32{300, 5000}[r.IntN(2)]
		width := []uint8{12, 14, 22, 32}[r.IntN(4)]
		s := follow(width, m)
		w := &twin{width: width, longest: m.longest, maxGap: m.maxGap, least: m.least(), size: m.least(), arrived: map[uint32]bool{}, absent: map[uint32]absent{}}
		next := r.Uint32()
		if r.IntN(2) == 0 { // a saved state
			if r.IntN(3) == 0 {
				next = 1<<width - 1
			}
			s.head, s.started, s.resumed, s.wait = w.wrap(next), true, true, m.least()
			s.aged, s.ageHead = s.head, s.head
			w.head, w.started, w.resumed, w.wait, w.aged, w.ageHead = s.head, true, true, m.least(), s.head, s.head
			next += 1 + r.Uint32N([]uint32{80, 500, 9000}[r.IntN(3)])
			if r.IntN(2) == 0 { // as far as can be for loss, or one more
				next = w.head + min(w.maxGap, (1<<width-1)/16) + r.Uint32N(2)
			}
			if r.IntN(4) == 0 {
				next = w.head + 1
			}
			for k := range r.IntN(3) {
				s.cut(int64(k)*3e9, m)
				w.cut(int64(k) * 3e9)
			}
			for range r.IntN(3) { // what the run before has seen, or has not
				seq := s.head - 56 - r.Uint32N(9)
				s.observe(seq, 1e12, m)
				w.observe(seq, 1e12)
			}
		}
		var observed uint64
		borders := rand.New(rand.NewPCG(seed, 12))
		if l := rand.New(rand.NewPCG(seed, 11)); l.IntN(6) > 0 {
			most := []int{2, 3, 5, 1000}[l.IntN(4)]
			s.log, w.log = newNumberLog(most, w.head, m.longest), &logTwin{most: most, from: w.head}
			if l.IntN(2) == 0 && !s.started {
				s.sequenced, w.sequenced = true, true
				next = l.Uint32N(3)
			}
		}
		at, end := int64(1e12), int64(1e12)
		spread := 1 + r.Uint32N(uint32(longest))
		var recent []uint32
		pace := []int64{1e3, 1e7, 2e8}[r.IntN(3)]
		for step := range 600 {
			at += r.Int64N(pace)
			seq, received := next, at
			switch x := r.IntN(100); {
			case x < 55:
				next++
			case x < 65: // some are lost
				next += 1 + r.Uint32N(1+r.Uint32N(8))
				seq = next
				next++
			case x < 66:
				next += r.Uint32N(2 * spread)
				seq = next
				next++
			case x < 82: // late
				seq = next - r.Uint32N(1+r.Uint32N(spread))
			case x < 88 && len(recent) > 0:
				seq = recent[r.IntN(len(recent))]
			case x < 90: // it was kept back here
				seq, received = next-r.Uint32N(2*spread), at-r.Int64N(2*keptBack)/(1+r.Int64N(1000))
			case x < 92: // a stray
				seq = next + r.Uint32()
			case x < 93: // another beginning, near or far
				next += []uint32{1 << 12, 1 << 20, 1<<32 - 100, 1<<32 - 3000}[r.IntN(4)] * r.Uint32N(3)
				seq = next
				next++
			case x < 94: // constant for a while
				for range r.IntN(80) {
					s.observe(next-1, at, m)
					w.observe(next-1, at)
				}
			case x < 96: // the same again, in order
				n := r.Uint32N(100)
				for k := range n {
					s.observe(next-n+k, at, m)
					w.observe(next-n+k, at)
				}
			}
			if borders.IntN(6) == 0 { // a number or a time at a border
				reach := min(w.longest, w.quarter())
				if !w.sequenced {
					reach = w.least
				}
				times := []int64{at, at, w.start, w.start - 1, w.time, w.time - 1, w.time - keptBack, w.time - keptBack + 1, w.time - keptBack - 1}
				if aged := w.ageTime + holdFor - borders.Int64N(2); aged >= at {
					at = aged
					times[0] = at
				}
				received = times[borders.IntN(len(times))]
				far := w.head
				if n := len(w.far); n > 0 {
					far = w.far[n-1]
				}
				seq = []uint32{
					w.head + reach, w.head + reach + 1, w.head + w.wait, w.head + w.wait + 1, w.head + w.size, w.head + w.size + 1,
					w.head - w.span, w.head - w.span + 1, w.head - w.span - startSlack, w.head - w.span - startSlack + 1, w.head - reach, w.head - reach + 1,
					w.head - w.wait/2, w.head - w.wait/2 + 1, w.head - w.wait/4, w.head - w.wait/4 - 1, w.head - w.longest, w.head - w.longest - 1, w.head - w.longest/2, w.head,
					w.head - w.longest + 1, far + near, far + near + 1, far - near, far - near - 1, w.origin, w.origin + 1, w.origin - 1, w.head - startSlack, w.head - startSlack + 1,
				}[borders.IntN(30)]
				if w.behind(seq) > 1<<(width-1) {
					next = max(next, seq+1)
				}
			}
			if recent = append(recent, seq); len(recent) > 20 {
				recent = recent[1:]
			}
			s.observe(seq, received, m)
			w.observe(seq, received)
			observed++
			if r.IntN(12) == 0 {
				if end += r.Int64N(2e9); borders.IntN(3) == 0 {
					end = max(end, w.markTime+settleAfter-borders.Int64N(2))
				}
				if s.log != nil {
					if mask := uint64(s.mask()); borders.IntN(8) == 0 && w.log.slow < mask { // as many as can be distinguished, or one more
						observed = mask - w.log.slow + borders.Uint64N(2)
					}
					if wrong := compareLogs(s, w, &p, observed); wrong != "" {
						t.Fatalf("seed %d, step %d: %s", seed, step, wrong)
					}
					observed = 0
					for _, n := range p.Numbers() {
						if listed++; n.Unknown {
							unknown++
						}
					}
				}
				s.cut(end, m)
				w.cut(end)
			}
			got := s.counts
			want := counts{lost: w.lost, down: uint64(w.down), duplicated: w.duplicated, reordered: w.reordered, late: w.late, restarts: w.begunAnew}
			if got != want || s.head != w.head || s.sequenced != w.sequenced || s.provisional != w.provisional() || int(s.open) != len(w.absent) || s.span != w.span || s.size() != w.size || s.wait != w.wait {
				t.Fatalf("seed %d, step %d: number %d after %d: %+v\nprovisional %d, missing %d of %d, record %d, wait %d, counts: %v; want %+v\nprovisional %d, missing %d of %d, record %d, wait %d, counts: %v", seed, step, seq, s.head,
					got, s.provisional, s.open, s.span, s.size(), s.wait, s.sequenced, want, w.provisional(), len(w.absent), w.span, w.size, w.wait, w.sequenced)
			}
			check(t, s, m)
			pieces := 0
			missing(s.seen, s.head-s.span+1, s.span, func(first, n uint32) {
				pieces += int(n)
				for k := range n {
					if _, is := w.absent[w.wrap(first+k)]; !is {
						t.Fatalf("seed %d, step %d: %d is missing, and came", seed, step, w.wrap(first+k))
					}
				}
			})
			if pieces != len(w.absent) {
				t.Fatalf("seed %d, step %d: %d numbers are missing, want %d", seed, step, pieces, len(w.absent))
			}
		}
		s.settle()
		w.settle(0)
		w.drop()
		if s.lost != w.lost || s.late != w.late || s.provisional != 0 {
			t.Fatalf("seed %d: %d lost, %d late and %d provisional in the end, want %d, %d and none", seed, s.lost, s.late, s.provisional, w.lost, w.late)
		}
		sum.lost, sum.duplicated, sum.reordered = sum.lost+s.lost, sum.duplicated+s.duplicated, sum.reordered+s.reordered
		sum.late, sum.down, sum.restarts = sum.late+s.late, sum.down+s.down, sum.restarts+s.restarts
	}
	if listed < 500 || unknown < 20 {
		t.Errorf("only %d lists of numbers, %d of them of too many", listed, unknown)
	}
	if sum.lost < 500 || sum.duplicated < 500 || sum.reordered < 500 || sum.late < 500 || sum.down < 500 || sum.restarts < 40 {
		t.Errorf("in all only %+v", sum)
	}
}

// TestTrackerTwin compares a tracker with a map of sequences by the identity in reports. Exporters have several widths,
// no node, no numbers, and are silent for a while or for good.
func TestTrackerTwin(t *testing.T) {
	type name struct {
		from, node uint32
		hwID       uint8
		nameless   bool
		bits       uint8 // 0 for reports without a number
	}
	type exporter struct {
		*sequence
		reports, events, malformed uint64
		last                       int64
	}
	forgotten := uint64(0)
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 10))
		cfg := testConfig()
		cfg.MaxExporters, cfg.MaxGap, cfg.ForgetAfter = 4096, testGap, 4*time.Second
		tr, m := New(cfg, seed), testRoom(testWindow)
		twins, gone := map[name]*exporter{}, uint64(0)
		end := int64(1e12)
		for range 40 {
			speaks := 1 + r.IntN(40)
			for step := range 300 {
				k := name{r.Uint32N(6), r.Uint32N(3), uint8(r.IntN(2)), r.IntN(4) == 0, []uint8{0, 22, 32}[r.IntN(3)]}
				if int(k.from*7+k.node)%40 >= speaks {
					continue
				}
				if k.nameless {
					k.node = 0
				}
				x := report20(k.from, k.node, 0, end+int64(step)*1e6)
				x.HWID, x.SeqBits = k.hwID, k.bits
				if k.nameless {
					x.Has &^= decode.HasNodeID
				}
				if k.bits == 0 {
					x.Has &^= decode.HasSeq
				}
				w := twins[k]
				if w == nil {
					w = &exporter{sequence: follow(max(k.bits, 1), m)}
					twins[k] = w
				}
				x.Seq = w.head + []uint32{1, 1, 1, 1, 2, 3, 0, 1<<32 - 1, 1<<32 - 2, 40}[r.IntN(10)]
				x.FirstOfGroup = r.IntN(5) > 0
				x.Kind = []decode.Kind{0, decode.KindDrop, decode.KindQueue}[r.IntN(3)]
				if w.last = x.Time; r.IntN(9) == 0 {
					x.Err.Reason = 1
					w.malformed++
				} else if w.reports++; x.Kind != 0 {
					w.events++
				}
				if k.bits > 0 && x.FirstOfGroup {
					w.observe(x.Seq, x.Time, m)
				}
				tr.Observe(x)
			}
			end += 1e9
			var want []inference.ExporterStats
			for k, w := range twins {
				if w.reports+w.malformed == 0 && end-w.last > int64(cfg.ForgetAfter) {
					delete(twins, k)
					gone++
					continue
				}
				w.cut(end, m)
				want = append(want, inference.ExporterStats{
					ExporterKey: inference.ExporterKey{Addr: addr(k.from), Node: k.node, HWID: k.hwID, Nameless: k.nameless},
					Reports:     w.reports, Events: w.events, Malformed: w.malformed, Last: w.last, Sequenced: w.sequenced,
					Lost: w.lost, Provisional: uint64(w.provisional), Duplicated: w.duplicated, Reordered: w.reordered, Late: w.late, Restarts: w.restarts,
				})
				w.counts, w.reports, w.events, w.malformed = counts{}, 0, 0, 0
			}
			got := tr.Cut(nil, end)
			if want = Merge(want); !slices.Equal(got, want) {
				t.Fatalf("seed %d: %+v\nwant %+v", seed, got, want)
			}
			if s := tr.Stats(); s.Exporters != len(twins) || s.forgotten != gone || s.Refused+s.displaced != 0 {
				t.Fatalf("seed %d: %+v, want %d exporters, and %d forgotten", seed, s, len(twins), gone)
			}
		}
		forgotten += gone
	}
	if forgotten < 20 {
		t.Errorf("only %d exporters were forgotten", forgotten)
	}
}

// trackerTwin is a tracker with lists and maps instead of an index, a sketch of those that knock, and places that are
// counted.
type trackerTwin struct {
	cfg       Config
	places    *placesTwin
	entries   []*placed
	names     map[named]*placed
	guests    []*placed
	cursor    int
	own       int
	knocked   map[named]uint32
	turned    int64
	watched   map[named]bool // of those without a place
	stats     Stats
	more      bool // in this window
	outermost int
}

type placesTwin struct{ all, reserve, left int }

func (p *placesTwin) receive() bool {
	if p.left == 0 {
		return false
	}
	p.left--
	return true
}

// named is the identity in a report.
type named struct {
	from, node                     uint32
	hwID, width                    uint8
	to                             uint64
	unnamed, anonymous, mayBeNamed bool
}

func (n named) nameless() named {
	return named{from: n.from, hwID: n.hwID, width: n.width, to: n.to, unnamed: true, anonymous: true}
}

func (n named) exporter() named { return named{from: n.from, node: n.node, hwID: n.hwID} }

type placed struct {
	named
	alias, proven                       bool
	reports, malformed, events, numbers uint64
	number                              uint32
	recent                              uint32
	times, windows                      int
	since, last                         int64
}

func (p *placed) strength() uint32 { return p.recent + uint32(p.reports+p.malformed) }

func newTrackerTwin(cfg Config, places *placesTwin, outermost int) *trackerTwin {
	return &trackerTwin{cfg: cfg, places: places, names: map[named]*placed{}, knocked: map[named]uint32{}, watched: map[named]bool{}, outermost: outermost}
}

func (t *trackerTwin) proven() (n int) {
	for _, e := range t.entries {
		if e.proven {
			n++
		}
	}
	return n
}

func (t *trackerTwin) unwatched(n named) {
	if len(t.watched) >= t.outermost {
		t.more = true
		return
	}
	t.watched[n.exporter()] = true
}

// of returns what a report counts in, nil if there is no place.
func (t *trackerTwin) of(n named, at int64) *placed {
	optional := n.mayBeNamed
	n.mayBeNamed = false
	e := t.names[n]
	if e == nil {
		alias := n.anonymous
		if optional && !n.unnamed && n.width != 0 {
			shared := t.names[n.nameless()]
			if alias = shared == nil; !alias && shared.anonymous {
				shared.named, t.names[n] = n, shared
				e = shared
			}
		}
		if e == nil {
			if e = t.admit(n); e == nil {
				t.stats.Refused++
				t.unwatched(n)
				return nil
			}
			delete(t.watched, n.exporter())
			*e = placed{named: n, alias: alias, since: at, recent: e.recent, number: e.number}
			if t.names[n] = e; alias {
				t.names[n.nameless()] = e
			}
		}
	}
	e.times++
	e.last = at
	return e
}

// admit returns the place of a newcomer, with its earlier count.
func (t *trackerTwin) admit(n named) *placed {
	if t.own < t.places.reserve || t.places.left > 0 {
		if !t.places.receive() {
			t.own++
		}
		e := &placed{}
		t.entries, t.guests = append(t.entries, e), append(t.guests, e)
		return e
	}
	if len(t.guests) == 0 {
		return nil
	}
	t.knocked[n] = min(t.knocked[n]+1, 255)
	var weakest *placed
	for k := range min(sample, len(t.guests)) {
		if g := t.guests[(t.cursor+k)%len(t.guests)]; g.strength() < t.knocked[n] && (weakest == nil || g.strength() < weakest.strength()) {
			weakest = g
		}
	}
	if t.cursor = (t.cursor + sample) % len(t.guests); weakest == nil {
		return nil
	}
	t.stats.Refused += weakest.reports + weakest.malformed
	t.stats.forgotten++
	t.stats.displaced++
	t.unwatched(weakest.named)
	for name, e := range t.names {
		if e == weakest {
			delete(t.names, name)
		}
	}
	weakest.recent = t.knocked[n] - 1
	return weakest
}

func (t *trackerTwin) cut(end int64) (list []inference.ExporterStats) {
	crowded, full, forgotten, all := t.places.left <= t.places.all/4, t.places.left == 0, 0, len(t.entries)
	proven := t.proven()
	var kept []*placed
	for _, e := range t.entries {
		if e.reports+e.malformed == 0 && (end-e.last > int64(t.cfg.ForgetAfter) || crowded && e.times < 2) {
			forgotten++
			if e.proven {
				proven--
			}
			continue
		}
		kept = append(kept, e)
		list = append(list, inference.ExporterStats{
			ExporterKey: inference.ExporterKey{Addr: addr(e.from), Node: e.node, HWID: e.hwID, Nameless: e.unnamed},
			Reports:     e.reports, Events: e.events, Malformed: e.malformed, Last: e.last, Sequenced: e.numbers > 1,
		})
		if e.reports > 0 {
			e.windows++
		}
		switch {
		case e.proven:
			if full && end-e.last > max(int64(t.cfg.ForgetAfter)/32, 60e9) {
				e.proven, e.windows = false, 0
				proven--
			}
		case e.windows < provenWindows || e.last-e.since < provenAfter:
		case proven < all-t.own:
			e.proven = true
			proven++
		case t.own > 0 && t.places.receive():
			t.own--
			e.proven = true
			proven++
		}
		e.recent = e.strength() / 2
		e.reports, e.malformed, e.events = 0, 0, 0
	}
	t.entries = kept
	t.stats.forgotten += uint64(forgotten)
	back := min(t.own, forgotten)
	t.own -= back
	t.places.left += forgotten - back
	t.names, t.guests, t.cursor = map[named]*placed{}, nil, 0
	for _, e := range t.entries {
		if t.names[e.named] = e; e.alias {
			t.names[e.nameless()] = e
		}
		if !e.proven {
			t.guests = append(t.guests, e)
		}
	}
	if len(t.knocked) > 0 && end-t.turned >= doorTurn {
		t.turned = end
		for n := range t.knocked {
			t.knocked[n] /= 2
		}
	}
	if len(t.watched) > 0 {
		t.stats.Unwatched, t.stats.More = len(t.watched), t.more
	}
	clear(t.watched)
	t.more = false
	return Merge(list)
}

// resume makes known what another one saved.
func (t *trackerTwin) resume(saved []*placed) {
	for _, x := range saved {
		if x.numbers < 2 || t.names[x.named] != nil || x.alias && t.names[x.nameless()] != nil || !t.places.receive() {
			continue
		}
		e := &placed{named: x.named, alias: x.alias, proven: x.proven, numbers: 2, number: x.number, times: 2, since: x.since, last: x.last}
		t.entries = append(t.entries, e)
		if t.names[e.named] = e; e.alias {
			t.names[e.nameless()] = e
		}
		if e.proven {
			e.windows = provenWindows
		} else {
			t.guests = append(t.guests, e)
		}
	}
}

// TestTwinOfPlaces compares trackers that share few places with twins. They must agree on the exporters with a place,
// on those that have proven themselves, and on the counts of refused, forgotten and displaced ones. There are more
// exporters than places, some that show their node late, silence, and states that are read anew.
func TestTwinOfPlaces(t *testing.T) {
	sum := Stats{}
	resumed, demoted := 0, 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 14))
		cfg := testConfig()
		cfg.MaxExporters = []int{16, 32, 64}[r.IntN(3)]
		cfg.ForgetAfter = []time.Duration{5 * time.Second, 100 * time.Second, 3200 * time.Second}[r.IntN(3)]
		trackers := 1 + r.IntN(2)
		outermost := 1 + r.IntN(12)
		var real []*Tracker
		var twins []*trackerTwin
		begin := func() {
			places := NewPlaces(cfg, trackers)
			reserve := cfg.MaxExporters / 16 / trackers
			other := &placesTwin{cfg.MaxExporters, reserve, cfg.MaxExporters - reserve*trackers}
			real, twins = nil, nil
			for k := range trackers {
				real, twins = append(real, NewShared(cfg, seed+uint64(k), places)), append(twins, newTrackerTwin(cfg, other, outermost))
				real[k].outside.most = outermost
			}
		}
		begin()
		end := int64(1e12)
		for window := range 60 {
			crowd := 1 + r.Uint32N(uint32(cfg.MaxExporters))
			silent := r.IntN(4) == 0
			for step := range 250 {
				n := named{from: r.Uint32N(crowd), node: r.Uint32N(2), hwID: uint8(r.IntN(2)), width: []uint8{0, 22, 32}[r.IntN(3)], to: r.Uint64N(2)}
				if silent && n.from > 3 || n.from > 20 && r.IntN(3) > 0 {
					continue
				}
				at := end + int64(step)*3e6
				x := report20(n.from, n.node, 0, at)
				x.HWID, x.SeqBits, x.To = n.hwID, n.width, n.to
				if n.width == 0 {
					x.Has &^= decode.HasSeq
				}
				if r.IntN(3) == 0 {
					x.Version, n.mayBeNamed = decode.V05, true
				}
				if r.IntN(3) == 0 {
					x.Has &^= decode.HasNodeID
					n.node, n.unnamed = 0, true
					n.anonymous = n.mayBeNamed && n.width > 0
				}
				k := int(n.from) % trackers
				if w := twins[k].of(n, at); w != nil {
					if n.width > 0 {
						w.numbers++
						w.number++
						x.Seq = w.number
					}
					x.Kind = []decode.Kind{0, decode.KindDrop, decode.KindQueue}[r.IntN(3)]
					if r.IntN(5) == 0 {
						x.Err.Reason = 1
						w.malformed++
					} else if w.reports++; x.Kind != 0 {
						w.events++
					}
				}
				real[k].Observe(x)
				got, want := real[k].Stats(), twins[k].stats
				if want.Exporters = len(twins[k].entries); got != want {
					t.Fatalf("seed %d, window %d, step %d: %+v, want %+v", seed, window, step, got, want)
				}
			}
			end += []int64{1e9, 2e9, 30e9}[r.IntN(3)]
			for k, tr := range real {
				w := twins[k]
				before := w.proven()
				got, want := tr.Cut(nil, end), w.cut(end)
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, window %d: %+v, want %+v", seed, window, got, want)
				}
				if int(tr.proven) != w.proven() || len(tr.guests) != len(w.guests) || int(tr.own) != w.own || int(tr.places.left.Load()) != w.places.left {
					t.Fatalf("seed %d, window %d: %d proven and %d guests, %d places of its own, %d left; want %d, %d, %d, %d", seed, window,
						tr.proven, len(tr.guests), tr.own, tr.places.left.Load(), w.proven(), len(w.guests), w.own, w.places.left)
				}
				if w.proven() < before {
					demoted++
				}
			}
			if r.IntN(20) > 0 {
				continue
			}
			var states [][]byte
			var saved [][]*placed
			for k, tr := range real {
				states, saved = append(states, tr.AppendState(nil)), append(saved, twins[k].entries)
				s := tr.Stats()
				sum.Refused, sum.forgotten, sum.displaced = sum.Refused+s.Refused, sum.forgotten+s.forgotten, sum.displaced+s.displaced
			}
			begin()
			for k := range real {
				for from := range states {
					if err := real[k].ReadState(states[from], func(a *decode.Addr) bool { return int(a[15])%trackers == k }); err != nil {
						t.Fatal(err)
					}
					if from == k {
						twins[k].resume(saved[from])
					}
				}
				resumed += len(twins[k].entries)
			}
		}
	}
	if sum.Refused < 5000 || sum.forgotten < 500 || sum.displaced < 200 || resumed < 200 || demoted < 10 {
		t.Errorf("only %+v, %d resumed, %d times some were no longer proven", sum, resumed, demoted)
	}
}
