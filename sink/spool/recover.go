package spool

import (
	"errors"
	"slices"
)

// recover finds out what an earlier process left.
func (s *Spool) recover() error {
	names, err := s.disk.list()
	if err != nil {
		return err
	}
	if s.headFile, err = s.disk.open("head", !slices.Contains(names, "head")); err != nil {
		return err
	}
	s.head, s.headSlot = readHead(s.headFile)
	numbers := segmentNumbers(names)
	for len(numbers) > 0 && numbers[0] < s.head.segment { // stored, but not removed in time
		if err := s.disk.remove(segmentName(numbers[0])); err != nil {
			return err
		}
		numbers = numbers[1:]
	}
	for i, n := range numbers {
		if err := s.recoverSegment(n, i == len(numbers)-1); err != nil {
			return err
		}
	}
	s.cursor = s.head
	if len(s.segments) > 0 {
		s.signal()
	}
	return nil
}

// recoverSegment counts the records of a segment that are not stored yet. Of all but the last only headers are read, so
// that a full spool opens quickly; damaged payloads are found when their turn comes.
func (s *Spool) recoverSegment(number uint64, last bool) (err error) {
	name := segmentName(number)
	size, err := s.disk.size(name)
	if err != nil {
		return err
	}
	f, err := s.disk.open(name, false)
	if err != nil {
		return err
	}
	defer func() {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	var m [len(magic)]byte
	if _, err := f.ReadAt(m[:], 0); err != nil || string(m[:]) != magic {
		if last {
			s.stats.TornBytes += size
		} else {
			s.stats.DamagedBytes += size
		}
		return s.disk.remove(name)
	}
	start := int64(len(magic)) // of what is not stored yet
	if number == s.head.segment {
		if at := min(s.head.offset, size); isBoundary(f, at, size) {
			start = at
		}
		s.head.offset = start
	}
	seg := segment{number: number, size: size}
	w := walk(f, start, size, last)
	seg.records, seg.reports = w.records, w.reports
	if last {
		s.stats.TornBytes += size - w.end
		if w.end < size {
			if err := f.Truncate(w.end); err != nil {
				return err
			}
			seg.size = w.end
		}
		s.tail, f = f, nil
	}
	s.segments = append(s.segments, seg)
	return nil
}

// isBoundary reports whether a record begins or ends at off: the head file may be of another time than the segment.
func isBoundary(f file, off, size int64) bool {
	if off < int64(len(magic)) {
		return false
	}
	if _, err := readHeader(f, off, size); err == nil {
		return true
	}
	return walk(f, int64(len(magic)), off, false).end == off
}

type walked struct {
	end     int64 // of the last good record
	records int   // up to end
	reports uint64
}

// walk goes from record to record. Without verify a record is good when its header is; with verify the walk ends
// behind the last record whose payload is good too.
func walk(f file, off, size int64, verify bool) walked {
	good := walked{end: off}
	at := good
	var payload []byte
	for at.end < size {
		h, err := readHeader(f, at.end, size)
		if err != nil {
			break
		}
		if verify {
			payload, err = readPayload(payload[:0], f, at.end, h)
		}
		at = walked{at.end + headerLen + h.length, at.records + 1, at.reports + h.reports}
		if err == nil {
			good = at
		}
	}
	return good
}
