package sequence

import "github.com/hopscope/hopscope/decode"

// A copy is a report whose number and whose bytes came a moment before: one datagram that was captured twice, or that
// the network doubled. Two things prove it. One is a new number that follows, since an exporter that does not count, or
// that counts in a circle, repeats both too. The other is the time in its report, if that differs from report to
// report. Until then it waits. If 64 of them come and nothing new, or if the window ends, those that wait count, and
// are alike. An exporter that was proven to be doubled waits no more. Copies of messages of IPFIX are detected by its
// decoder.

const (
	// copyWithin is how soon a copy comes, in ns: as long as a missing number is waited for.
	copyWithin = settleAfter
	// momentShift makes a moment of 1 ms of a time in ns.
	momentShift = 20
	// mostWaiting is how many copies of an exporter wait for a new number.
	mostWaiting = duplicateRun - 1
	// mostCopies is how many copies come without a new number of an exporter that is doubled, before it is one that
	// repeats.
	mostCopies = remembered
	// remembered is how many of the newest numbers of an exporter are remembered with their bytes. Memory that is
	// written again and again stays in the cache.
	remembered = 256
	// mostStamps is how many times must differ from each other until they prove copies of an exporter that does not
	// count.
	mostStamps = 3
	// sumsEach is how many sums are kept for each exporter that there is a place for. They share the memory.
	sumsEach = 16
)

// trait is the kind of an exporter by its copies.
type trait uint8

const (
	untried   trait = iota
	doubled         // new numbers followed on copies
	repeating       // no new numbers followed
)

// verdict is the treatment of a report.
type verdict uint8

const (
	counted verdict = iota // counts
	isCopy                 // does not
	isAlike                // counts, and may be a copy
	waits                  // is not decided
)

// fingerprint is the remembered part of a datagram.
type fingerprint struct{ bytes, moment uint32 }

// copying is the knowledge about the copies of an exporter.
type copying struct {
	index   uint32 // of the entry
	copies  uint16 // since the last new number
	trait   trait
	verdict verdict // of the datagram that came last
	stamps  uint8   // times of reports that differed under numbers that came before, and since when none was the same of two reports
	stamp   uint32  // the last one
}

// waiter is a report that waits to be decided.
type waiter struct {
	entry  uint32
	report *decode.Lazy
}

// copyRoom holds the reports of a tracker that wait.
type copyRoom struct {
	sums    []fingerprint
	most    int
	waiting []waiter
	decided []*decode.Lazy // of these, those that are
	spare   []*decode.Lazy
}

func newCopyRoom(cfg *Config, trackers int) copyRoom {
	return copyRoom{sums: make([]fingerprint, cfg.sums(trackers)), most: cfg.waiting(trackers)}
}

// number follows the number of a datagram and returns the verdict on its reports. The sum of the datagram is 0 if it is
// not known. So is the time that its exporter gave the first report.
func (t *Tracker) number(e *entry, seq uint32, at int64, bytes, stamp uint32) verdict {
	mask := e.mask()
	seq &= mask
	now := fingerprint{bytes, uint32(at >> momentShift)}
	before := &t.copies.sums[(e.index*remembered+seq%remembered)&uint32(len(t.copies.sums)-1)]
	if (seq-e.head)&mask == 1 && e.sequenced && e.copies == 0 { // nearly always
		*before = now
		e.observe(seq, at, &t.room)
		return counted
	}
	switch {
	case !e.received(seq):
		*before = now
		e.observe(seq, at, &t.room)
		if e.copies > 0 && e.sequenced && e.received(seq) {
			t.goesOn(e)
		}
	case bytes == 0 || before.bytes != bytes || now.moment-before.moment > copyWithin>>momentShift && before.moment-now.moment > copyWithin>>momentShift:
		*before = now
		e.observe(seq, at, &t.room)
		t.stampOf(e, stamp)
	default:
		return t.repeated(e, seq, at)
	}
	return counted
}

// stampOf follows the times of an exporter whose numbers came before.
func (t *Tracker) stampOf(e *entry, stamp uint32) {
	if stamp == e.stamp { // it is set now and then, or never
		e.stamps = 0
		return
	}
	if e.stamp = stamp; e.stamps < mostStamps {
		if e.stamps++; e.stamps == mostStamps {
			t.decide(e, true)
		}
	}
	if e.stamps == mostStamps {
		e.copies = 0
	}
}

// received reports whether a number is in the record.
func (s *sequence) received(seq uint32) bool {
	if (s.head-seq)&s.mask() >= s.span {
		return false
	}
	word, bit := place(s.seen, seq)
	return *word&bit != 0
}

// repeated takes a number that came before, with the same bytes.
func (t *Tracker) repeated(e *entry, seq uint32, at int64) verdict {
	e.copies++
	switch {
	case (e.trait == doubled || e.stamps == mostStamps) && e.copies <= mostCopies:
		e.duplicated++
		return isCopy
	case e.trait == untried && e.copies <= mostWaiting:
		e.observe(seq, at, &t.room)
		return waits
	}
	e.copies = mostCopies // no overflow
	e.trait = repeating
	t.decide(e, false)
	e.observe(seq, at, &t.room)
	return isAlike
}

// goesOn notes that a new number came behind copies.
func (t *Tracker) goesOn(e *entry) {
	e.copies = 0
	switch e.trait {
	case untried:
		e.trait = doubled
		t.decide(e, true)
	case repeating:
		e.trait = untried
	}
}

// wait lets a report wait, and sets r to other memory. Where there is no room, it counts.
func (t *Tracker) wait(e *entry, r *decode.Lazy) {
	w := &t.copies
	if len(w.waiting) >= w.most {
		return
	}
	var mine *decode.Lazy
	if n := len(w.spare); n > 0 {
		mine, w.spare = w.spare[n-1], w.spare[:n-1]
	} else {
		mine = new(decode.Lazy)
	}
	*mine, *r = *r, *mine
	r.Waits = true
	w.waiting = append(w.waiting, waiter{e.index, mine})
	e.waiting++
}

// decide ends the wait of the reports of an exporter.
func (t *Tracker) decide(e *entry, copies bool) {
	if e.waiting == 0 {
		return
	}
	e.waiting = 0
	w, i, kept := &t.copies, e.index, 0
	for _, x := range w.waiting {
		if x.entry != i {
			w.waiting[kept] = x
			kept++
			continue
		}
		x.report.Copy, x.report.Alike = copies, !copies
		w.decided = append(w.decided, x.report)
	}
	w.waiting = w.waiting[:kept]
}

// DecideAll lets all reports count that wait: nothing proves them to be copies. It is called before a cut.
func (t *Tracker) DecideAll() {
	for _, x := range t.copies.waiting {
		t.entries[x.entry].waiting = 0
		x.report.Copy, x.report.Alike = false, true
		t.copies.decided = append(t.copies.decided, x.report)
	}
	t.copies.waiting = t.copies.waiting[:0]
}

// Decided appends to b the reports that had waited and wait no more, once.
func (t *Tracker) Decided(b *decode.LazyBatch) {
	w := &t.copies
	for _, r := range w.decided {
		to := b.Next()
		*to, *r = *r, *to
		w.spare = append(w.spare, r)
	}
	w.decided = w.decided[:0]
}
