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
// last one only, so that a full spool opens quickly. Other damage is found when its segment is read. Only a directory
// that cannot be listed keeps a spool from being opened.
func (s *Spool) recover() error {
	names, err := s.disk.list("")
	if err != nil {
		return err
	}
	slices.Sort(names)
	aside := s.countQuarantine(names)
	var old, segments []*segment
	emptied := map[uint64]bool{}
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
		g := s.load(name, number, version, emptied)
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
	segments = s.consistent(segments)

	// The state, in the totals of the disk.
	_, serr := s.disk.stat(stateName)
	fresh := errors.Is(serr, os.ErrNotExist)
	var head, tail slot
	headOK, tailOK, headWhole, tailWhole := false, false, false, false
	if !fresh {
		if in, err := s.disk.stat(stateName); err == nil && in.dir {
			s.setAside(stateName, 0)
			fresh = true
		}
	}
	if !fresh && s.openState() {
		head, headOK, headWhole = readSlots(s.state, slotHead)
		tail, tailOK, tailWhole = readSlots(s.state, slotTail)
	}
	s.slots = [slotKinds]slot{head, tail}
	s.next = max(s.next, tail.segment+1)
	if !fresh && (!headWhole || !tailWhole) {
		if in, err := s.disk.stat(stateName); err == nil && s.state != nil && in.size > 0 {
			s.copyAside(stateName, s.state, 0, in.size)
		}
		s.logEvent(event{Kind: "state", Segment: stateName, Message: "the file of the state is damaged; records that were stored may be read again, none is passed over"})
	}
	// What was appended, by the segments and by the state.
	var first, end totals
	var lastNumber uint64
	if n := len(segments); n > 0 {
		first, lastNumber = segments[0].start, segments[n-1].number
		end = s.recoverTail(segments[n-1], tail.at)
	}
	found := end
	if tailOK && end.notAfter(tail.at) {
		end = tail.at
	}
	switch {
	case !headOK && len(segments) > 0:
		head.at = first
		if fresh {
			s.logEvent(event{Kind: "state", Segment: stateName, Message: "there is no file of the state; records that were stored may be read again"})
		}
	case !headOK:
		head.at = end
	case len(segments) == 0 && end.records < head.at.records:
		end = head.at
	case !head.at.notAfter(end):
		s.logEvent(event{Kind: "state", Segment: stateName, Message: "the head is behind the last record; everything is read again"})
		head.at = first
	case len(segments) > 0 && !headWhole && head.at.records < first.records:
		head.at = first // an older head: what is not there was stored and removed
	}
	stored := func(i int) bool {
		limit := end
		if i+1 < len(segments) {
			limit = segments[i+1].start
		}
		return limit.records <= head.at.records
	}
	s.missing(segments, emptied, aside, head, tail, found, lastNumber, stored)

	// Records of version 1 are put before the others that are not stored.
	s.head, s.cursor, s.saved, s.endV1 = head.at, head.at, head.at, head.at
	s.recoverV1(old)
	s.shift = s.endV1.minus(head.at)
	for _, g := range segments {
		g.shift, g.start = s.shift, g.start.plus(s.shift)
		if s.shift.records > 0 && g.start.records < s.endV1.records {
			g.start = s.endV1 // what is before it is stored
		}
		s.segments = append(s.segments, g)
	}
	s.end, s.syncedEnd = end.plus(s.shift), end.plus(s.shift)

	if fresh || !headWhole || !tailWhole || head.at != s.slots[slotHead].at {
		at := slot{segment: lastNumber, at: head.at}
		if len(segments) > 0 {
			at.segment = segments[0].number
		}
		for range 2 { // both slots, so that an older one is known for what it is
			s.writeSlot(slotHead, at.segment, at.at.plus(s.shift))
			s.writeTail()
		}
		if s.conf.Sync != "never" {
			s.syncState()
			s.syncDir("")
		}
	}
	s.dropStored()
	if s.head.records < s.end.records {
		s.findHead()
		s.signal()
	}
	return nil
}

// load finds where the records of a segment begin. It returns nil for a file without any.
func (s *Spool) load(name string, number uint64, version int, emptied map[uint64]bool) *segment {
	in, err := s.disk.stat(name)
	if err != nil {
		s.failed(err)
		s.logEvent(event{Kind: "damaged", Segment: name, Message: "cannot be looked at: " + err.Error()})
		return nil
	}
	if in.dir {
		s.logEvent(event{Kind: "damaged", Segment: name, Message: "is no file; it is left where it is"})
		return nil
	}
	g := &segment{number: number, name: name, version: version, size: in.size, changed: in.changed}
	f, err := s.disk.open(name, false)
	if err != nil {
		s.failed(err)
		s.logEvent(event{Kind: "damaged", Segment: name, Bytes: in.size, Message: "cannot be opened; it is left where it is: " + err.Error()})
		return nil
	}
	defer f.Close()
	if version == 1 {
		g.from = int64(len(magicV1))
		var b [len(magicV1)]byte
		if _, err := f.ReadAt(b[:], 0); in.size >= g.from && (err != nil || string(b[:]) != magicV1) {
			s.damagedAt(g, f, 0, g.from)
			s.logEvent(event{Kind: "damaged", Segment: name, Bytes: g.from, Message: "damaged magic, which costs no record"})
		}
		return g
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
						return nil
					}
				}
			}
			s.logEvent(event{Kind: "duplicate", Segment: name, Message: fmt.Sprintf("holds the records of segment %d, and is read in its place", written)})
			g.number = written
		}
		return g
	}
	if off, found := g.scan(f, 0); found {
		h, _ := g.header(f, off)
		g.start, g.from = h.before, min(off, segmentHeaderLen)
		s.damagedAt(g, f, 0, g.from)
		s.logEvent(event{Kind: "damaged", Segment: name, Bytes: g.from, Message: "damaged header of the segment, which costs no record"})
		return g
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.logEvent(event{Kind: "damaged", Segment: name, Bytes: g.size, Message: "cannot be read; it is left where it is: " + err.Error()})
		return nil
	}
	emptied[number] = true
	if g.size > 0 {
		s.stats.damagedBytes += g.size
	}
	s.logEvent(event{Kind: "damaged", Segment: name, Bytes: g.size, Message: "holds no record that is readable, and is kept aside"})
	s.setAside(name, g.size)
	return nil
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
func (s *Spool) recoverTail(g *segment, appended totals) totals {
	f, err := s.disk.open(g.name, false)
	if err != nil {
		s.failed(err)
		return g.start
	}
	defer f.Close()
	w := g.walk(f, g.from, g.start, true)
	if w.end == g.size || w.after.records < appended.records {
		return w.after
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
	return w.after
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
