package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// recover restores the state that an earlier process left. It reads the headers of segments, and whole records of the
// last one only, so that a full spool opens quickly. Other damage is found when its segment is read.
//
// Two things keep a spool from being opened: a directory that cannot be listed, and a disk that shows neither all segments nor the
// state. The number of records is unknown then, and new ones would take the numbers of those that are there.
func (s *Spool) recover() error {
	names, err := s.disk.list("")
	if err != nil {
		return err
	}
	slices.Sort(names)
	aside := s.countQuarantine(names)
	old, segments, emptied, unread := s.loadAll(names)
	st := s.recoverState()

	// What was appended, by the segments and by the state. All of these are totals of the disk, without records of version 1.
	var found totals
	var last uint64
	if n := len(segments); n > 0 {
		last = segments[n-1].number
		if found, err = s.recoverTail(segments[n-1], st.tail.at); err != nil {
			unread = fmt.Errorf("segment %s: %w", segments[n-1].name, err)
		}
	}
	if unread != nil && !st.tailOK {
		return fmt.Errorf("%w, and %s does not give the number of records either: check the disk, or move the directory away", unread, stateName)
	}
	head, end := s.placeHead(&st, segments, found)
	s.missing(segments, emptied, aside, slot{segment: st.head.segment, at: head}, st.tail, found, last, func(i int) bool {
		limit := end
		if i+1 < len(segments) {
			limit = segments[i+1].start
		}
		return limit.records <= head.records
	})

	// Records of version 1 are put before the others that are not stored.
	s.head, s.cursor, s.saved, s.endV1 = head, head, head, head
	s.recoverV1(old)
	s.shift = s.endV1.minus(head)
	for _, g := range segments {
		g.shift, g.start = s.shift, g.start.plus(s.shift)
		if s.shift.records > 0 && g.start.records < s.endV1.records {
			g.start = s.endV1 // what is before it is stored
		}
		s.segments = append(s.segments, g)
	}
	s.end, s.syncedEnd = end.plus(s.shift), end.plus(s.shift)

	if st.absent || !st.whole() || head != st.head.at {
		first := last
		if len(segments) > 0 {
			first = segments[0].number
		}
		s.rewriteState(first, head.plus(s.shift))
	}
	s.dropStored()
	if s.head.records < s.end.records {
		s.findHead()
		s.signal()
	}
	return nil
}

// loadAll loads the segments that are there, in the order of their records. It also returns the numbers of those that hold no
// readable record, and the error of one that the disk does not show.
func (s *Spool) loadAll(names []string) (old, segments []*segment, emptied map[uint64]bool, unread error) {
	emptied = map[uint64]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, suffixMk) { // the segment that it was made from is there
			if err := s.disk.remove(name); err != nil {
				s.failed(err)
			}
			continue
		}
		number, version := parseSegmentName(name)
		if version == 0 {
			continue
		}
		g, err := s.load(name, number, version, emptied)
		if err != nil {
			unread = fmt.Errorf("segment %s: %w", name, err)
		}
		if version == 2 {
			s.next = max(s.next, number+1)
		}
		switch {
		case g == nil:
		case version == 1:
			old = append(old, g)
		default:
			segments = append(segments, g)
		}
	}
	slices.SortFunc(old, func(a, b *segment) int { return cmp.Compare(a.number, b.number) })
	slices.SortFunc(segments, func(a, b *segment) int {
		return cmp.Or(cmp.Compare(a.start.records, b.start.records), cmp.Compare(a.number, b.number))
	})
	return old, s.consistent(segments), emptied, unread
}

// savedState is the content of the file of the state.
type savedState struct {
	absent               bool // there was no such file
	head, tail           slot
	headOK, tailOK       bool // one slot at least is readable
	headWhole, tailWhole bool // both slots are, and none is missing between them
}

func (st *savedState) whole() bool { return st.headWhole && st.tailWhole }

// recoverState opens the file of the state and reads it. A copy of a damaged one is kept aside.
func (s *Spool) recoverState() (st savedState) {
	in, err := s.disk.stat(stateName)
	st.absent = errors.Is(err, os.ErrNotExist)
	if err == nil && in.dir {
		s.setAside(stateName, 0)
		st.absent = true
	}
	if !st.absent && s.openState() {
		st.head, st.headOK, st.headWhole = readSlots(s.state, slotHead)
		st.tail, st.tailOK, st.tailWhole = readSlots(s.state, slotTail)
	}
	s.slots = [slotKinds]slot{st.head, st.tail}
	s.next = max(s.next, st.tail.segment+1)
	if !st.absent && !st.whole() {
		if in, err := s.disk.stat(stateName); err == nil && s.state != nil && in.size > 0 {
			s.copyAside(stateName, s.state, 0, in.size)
		}
		s.logEvent(event{Kind: "state", Segment: stateName, Message: "the file of the state is damaged; records that were stored may be read again, none is passed over"})
	}
	return st
}

// placeHead returns where reading goes on, and where the records end, by the state and by the end that the segments show. Where both
// contradict each other, records are read again.
func (s *Spool) placeHead(st *savedState, segments []*segment, found totals) (head, end totals) {
	head, end = st.head.at, found
	if st.tailOK && end.notAfter(st.tail.at) {
		end = st.tail.at
	}
	var first totals
	if len(segments) > 0 {
		first = segments[0].start
	}
	switch {
	case !st.headOK && len(segments) > 0:
		if st.absent {
			s.logEvent(event{Kind: "state", Segment: stateName, Message: "there is no file of the state; records that were stored may be read again"})
		}
		return first, end
	case !st.headOK:
		return end, end
	case len(segments) == 0 && end.records < head.records:
		return head, head
	case !head.notAfter(end):
		s.logEvent(event{Kind: "state", Segment: stateName, Message: "the head is behind the last record; everything is read again"})
		return first, end
	case len(segments) > 0 && !st.headWhole && head.records < first.records:
		return first, end // an older head: what is not there was stored and removed
	}
	return head, end
}

// rewriteState writes both slots of each kind, so that an older one is known for what it is.
func (s *Spool) rewriteState(segment uint64, head totals) {
	for range 2 {
		s.writeSlot(slotHead, segment, head)
		s.writeTail()
	}
	if s.conf.Sync != "never" {
		s.syncState()
		s.syncDir("")
	}
}

// load finds where the records of a segment begin. It returns nil for a file without any, and an error for one that the disk does not
// show.
func (s *Spool) load(name string, number uint64, version int, emptied map[uint64]bool) (*segment, error) {
	in, err := s.disk.stat(name)
	if err != nil {
		s.failed(err)
		s.logEvent(event{Kind: "damaged", Segment: name, Message: "cannot be looked at: " + err.Error()})
		return nil, err
	}
	if in.dir {
		s.logEvent(event{Kind: "damaged", Segment: name, Message: "is no file; it is left where it is"})
		return nil, nil
	}
	g := &segment{number: number, name: name, version: version, size: in.size, changed: in.changed}
	f, err := s.disk.open(name, false)
	if err != nil {
		s.failed(err)
		s.logEvent(event{Kind: "damaged", Segment: name, Bytes: in.size, Message: "cannot be opened; it is left where it is: " + err.Error()})
		return nil, err
	}
	defer f.Close()
	if version == 1 {
		g.from = int64(len(magicV1))
		var b [len(magicV1)]byte
		if _, err := f.ReadAt(b[:], 0); in.size >= g.from && (err != nil || string(b[:]) != magicV1) {
			s.damagedAt(g, f, 0, g.from)
			s.logEvent(event{Kind: "damaged", Segment: name, Bytes: g.from, Message: "damaged magic, which costs no record"})
		}
		return g, nil
	}
	var b [segmentHeaderLen]byte
	n, err := f.ReadAt(b[:], 0)
	if n == len(b) {
		err = nil
	}
	written, start, ok := parseSegmentHeader(b[:n])
	if ok {
		g.start, g.from = start, segmentHeaderLen
		if written != number {
			if in, err := s.disk.stat(segmentName(written)); err == nil && in.size == g.size {
				if h, err := s.disk.open(segmentName(written), false); err == nil {
					var c [segmentHeaderLen]byte
					h.ReadAt(c[:], 0)
					h.Close()
					if c == b {
						s.logEvent(event{Kind: "duplicate", Segment: name, Bytes: g.size, Message: "is a copy of " + segmentName(written) + " and is kept aside"})
						s.setAside(name, g.size)
						return nil, nil
					}
				}
			}
			s.logEvent(event{Kind: "duplicate", Segment: name, Message: fmt.Sprintf("holds the records of segment %d, and is read in its place", written)})
			g.number = written
		}
		return g, nil
	}
	if off, found := g.scan(f, 0); found {
		h, _ := g.header(f, off)
		g.start, g.from = h.before, min(off, segmentHeaderLen)
		s.damagedAt(g, f, 0, g.from)
		s.logEvent(event{Kind: "damaged", Segment: name, Bytes: g.from, Message: "damaged header of the segment, which costs no record"})
		return g, nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.logEvent(event{Kind: "damaged", Segment: name, Bytes: g.size, Message: "cannot be read; it is left where it is: " + err.Error()})
		return nil, err
	}
	emptied[number] = true
	if g.size > 0 {
		s.stats.damagedBytes += g.size
	}
	s.logEvent(event{Kind: "damaged", Segment: name, Bytes: g.size, Message: "holds no record that is readable, and is kept aside"})
	s.setAside(name, g.size)
	return nil, nil
}

func (s *Spool) damagedAt(g *segment, f io.ReaderAt, off, n int64) {
	s.stats.damagedBytes += n
	s.quarantine(g, f, off, n)
}

// consistent leaves out segments whose totals contradict those of the ones before.
func (s *Spool) consistent(segments []*segment) []*segment {
	var good []*segment
	for _, g := range segments {
		if len(good) > 0 && !good[len(good)-1].start.notAfter(g.start) {
			s.logEvent(event{Kind: "damaged", Segment: g.name, Bytes: g.size, Message: "contradicts the segments before it, and is kept aside"})
			s.setAside(g.name, g.size)
			continue
		}
		good = append(good, g)
	}
	return good
}

// recoverTail finds the end of the last segment and cuts off what a crash tore. appended is the total that the state
// confirms as appended. If records up to there are missing, that is damage, and the bytes stay in place for Read.
func (s *Spool) recoverTail(g *segment, appended totals) (totals, error) {
	f, err := s.disk.open(g.name, false)
	if err != nil {
		s.failed(err)
		return g.start, err
	}
	defer f.Close()
	w := g.walk(f, g.from, g.start, true)
	if w.end == g.size || w.after.records < appended.records {
		return w.after, nil
	}
	torn := g.size - w.end
	s.stats.TornBytes += torn
	s.logEvent(event{Kind: "torn", Segment: g.name, Offset: w.end, Bytes: torn, Message: "a write was cut off here; nothing that was appended is missing"})
	if s.quarantine(g, f, w.end, torn) {
		if err := f.Truncate(w.end); err != nil {
			s.failed(err)
		} else if s.conf.Sync != "never" {
			s.syncFile(f, g.name)
		}
	}
	g.size = w.end
	return w.after, nil
}

// missing reports and counts the segments that are gone.
func (s *Spool) missing(segments []*segment, emptied, aside map[uint64]bool, head, tail slot, found totals, last uint64, stored func(int) bool) {
	gap := func(from, to uint64, gone totals) {
		var n uint64
		for i := from + 1; i < to && i-from < 1<<16; i++ {
			if !aside[i] || emptied[i] {
				n++
			}
		}
		if n == 0 {
			return
		}
		s.stats.MissingSegments += n
		s.logEvent(event{Kind: "missing", Segment: segmentName(from + 1), Records: gone.records, Lost: gone.lost(),
			Message: fmt.Sprintf("%d segments from here on are missing or empty", n)})
	}
	for i, g := range segments {
		if i == 0 {
			if head.at.records < g.start.records && head.at.notAfter(g.start) {
				gap(max(head.segment, 1)-1, g.number, g.start.minus(head.at))
			}
			continue
		}
		p := segments[i-1]
		if g.number <= p.number+1 || stored(i-1) {
			continue
		}
		f, err := s.disk.open(p.name, false)
		if err != nil {
			s.failed(err)
			continue
		}
		if w := p.walk(f, p.from, p.start, false); w.after.records < g.start.records && w.after.notAfter(g.start) {
			gap(p.number, g.number, g.start.minus(w.after))
		}
		f.Close()
	}
	if tail.segment > last && found.records < tail.at.records && found.notAfter(tail.at) {
		gone := tail.at.minus(found)
		if len(segments) == 0 {
			last = max(head.segment, 1) - 1
			gone = tail.at.minus(head.at)
		}
		if gone.records > 0 {
			gap(last, tail.segment+1, gone)
		}
	}
}

// findHead goes to the first record that is not stored.
func (s *Spool) findHead() {
	g, limit, err := s.locate()
	for err == nil && g.version != 1 && s.offset < g.size {
		h, herr := g.header(s.reader, s.offset)
		if herr != nil || h.before.records >= s.cursor.records || limit.records <= s.cursor.records {
			return
		}
		s.offset += h.size()
	}
}

// recoverV1 takes over what a version before this one left. The place up to which it was stored stays in that
// version's file.
func (s *Spool) recoverV1(old []*segment) {
	f, err := s.disk.open(headNameV1, false)
	if len(old) == 0 {
		if err == nil {
			f.Close()
			if err := s.disk.remove(headNameV1); err != nil {
				s.failed(err)
			}
		}
		return
	}
	if errors.Is(err, os.ErrNotExist) {
		f, err = s.disk.open(headNameV1, true)
	}
	var head placeV1
	if err != nil {
		s.failed(err)
	} else {
		s.headV1 = f
		head, s.headSlotV1 = readHeadV1(f)
	}
	var previous uint64
	for i, g := range old {
		if g.number < head.segment { // stored, but not removed in time
			if err := s.disk.remove(g.name); err != nil {
				s.failed(err)
			}
			continue
		}
		if previous > 0 && g.number > previous+1 {
			n := g.number - previous - 1
			s.stats.MissingSegments += n
			s.logEvent(event{Kind: "missing", Segment: segmentNameV1(previous + 1), Message: fmt.Sprintf("%d segments from here on are missing; version 1 does not say how many reports they held", n)})
		}
		previous = g.number
		if g.size < int64(len(magicV1)) {
			s.logEvent(event{Kind: "damaged", Segment: g.name, Bytes: g.size, Message: "is empty; version 1 does not say how many reports it held"})
			if i < len(old)-1 {
				s.stats.MissingSegments++
			}
			s.setAside(g.name, g.size)
			continue
		}
		r, err := s.disk.open(g.name, false)
		if err != nil {
			s.failed(err)
			continue
		}
		if at := head.offset; g.number == head.segment && at > g.from && at <= g.size {
			if _, err := g.header(r, at); err == nil || at == g.size || g.walk(r, g.from, totals{}, false).end == at {
				g.from = at
			}
		}
		g.start = s.endV1
		w := g.walk(r, g.from, g.start, i == len(old)-1)
		if w.end < g.size {
			if i == len(old)-1 {
				s.stats.TornBytes += g.size - w.end
				s.logEvent(event{Kind: "torn", Segment: g.name, Offset: w.end, Bytes: g.size - w.end, Message: "a write was cut off here"})
			} else {
				s.stats.damagedBytes += g.size - w.end
				s.logEvent(event{Kind: "damaged", Segment: g.name, Offset: w.end, Bytes: g.size - w.end, Message: "no record is readable up to the end; version 1 does not say how many reports are gone"})
			}
			s.quarantine(g, r, w.end, g.size-w.end)
			g.size = w.end
			w = g.walk(r, g.from, g.start, false)
		}
		r.Close()
		s.endV1 = w.after
		s.segments = append(s.segments, g)
	}
}
