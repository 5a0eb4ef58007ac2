package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// Spool is a queue on disk. Append may be called by one goroutine beside Read and Commit by another.
type Spool struct {
	conf Config
	disk disk
	lock io.Closer

	mu       sync.Mutex
	segments []*segment // in order; the last is the one that Append writes to
	next     uint64     // number of the next segment
	shift    totals     // from totals on disk to those in memory, which count what version 1 left as well
	endV1    totals     // of what version 1 left

	end       totals // of what was appended
	tail      file   // of the last segment; nil when a new segment has to be begun
	unsynced  []byte // what was written to the tail and not forced to the disk, with sync: interval
	syncedEnd totals // where it begins
	synced    time.Time
	dirDirty  bool // files were removed, and the directory was not forced to the disk

	cursor   totals // everything before it was read, or is gone
	reader   file   // of reading
	reading  *segment
	offset   int64 // of the next record in reading
	attempts int   // to open the next segment
	taken    []taken

	head       totals // everything before it was stored, or is gone and counted
	saved      totals // what is written of it
	headOld    bool   // the head on disk is behind
	state      file
	stateDirty bool
	slots      [slotKinds]slot
	headV1     file
	headSlotV1 int

	lost      Lost // since the last DrainLost
	events    []event
	unevented int
	buf       []byte
	ready     chan struct{}
	stats     Stats
}

// taken is a record between head and cursor.
type taken struct {
	before, own totals
	segment     *segment
	offset      int64
	time        time.Time
}

// Record is one record as Append took it. Commit with End once it is stored.
type Record struct {
	Payload []byte
	Reports uint64
	Points  uint64 // 0 in records of version 1
	End     Position
}

// Position is a place between two records.
type Position struct{ records uint64 }

// Lost is a number of reports and of their points.
type Lost struct{ Reports, Points uint64 }

// Stats holds the content of the spool and, since it was opened, what it took and what it lost.
type Stats struct {
	Segments int
	Bytes    int64
	Records  uint64 // not stored yet
	Reports  uint64 // of these
	Points   uint64 // of these

	UnackedBytes  int64     // of the records that are not stored yet
	OldestUnacked time.Time // when the oldest of these was appended; zero when there is none

	Appended        uint64 // records
	RefusedRecords  uint64 // calls of Append that failed
	EvictedRecords  uint64 // to stay below Config.MaxBytes
	EvictedReports  uint64
	EvictedPoints   uint64
	damagedRecords  uint64 // could not be read back, or were missing
	DamagedReports  uint64
	DamagedPoints   uint64
	damagedBytes    int64
	TornBytes       int64  // behind the last record when the spool was opened
	MissingSegments uint64 // gone or emptied
	Quarantined     int64  // bytes of damage that are kept aside in the directory

	Syncs        uint64
	SyncFailures uint64
	SyncSeconds  float64

	LastError     string // of the disk
	lastErrorTime time.Time
}

// ErrTooLarge is returned for a record that does not fit into a segment.
var ErrTooLarge = errors.New("record is larger than a segment")

// errEmpty is returned by Read when there is no record.
var errEmpty = errors.New("spool is empty")

// Open opens the spool in conf.Dir, makes it when it is missing and finds out what a crash left.
func Open(conf Config) (*Spool, error) {
	if err := conf.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(conf.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make spool: %w", err)
	}
	return open(conf, osDisk(conf.Dir))
}

func open(conf Config, d disk) (*Spool, error) {
	lock, err := d.lock()
	if err != nil {
		return nil, err
	}
	s := &Spool{conf: conf, disk: d, lock: lock, ready: make(chan struct{}, 1), synced: time.Now()}
	if err := s.recover(); err != nil {
		s.release() // and writes nothing: what could not be read may be whole
		return nil, fmt.Errorf("open spool %s: %w", conf.Dir, err)
	}
	return s, nil
}

// MaxRecord is the largest payload that Append takes.
func (s *Spool) MaxRecord() int { return int(s.conf.SegmentBytes) - segmentHeaderLen - headerLen }

// End is the number of records that were ever appended. It grows with every record that is taken, over restarts.
func (s *Spool) End() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end.records
}

// Passed is the number of records, of those that End counts, that were read or are gone.
func (s *Spool) Passed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursor.records
}

// Ready has an element when there may be a record to read. It is for one goroutine.
func (s *Spool) Ready() <-chan struct{} { return s.ready }

func (s *Spool) signal() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Append adds a record with its numbers of reports and points. On an error nothing was added.
func (s *Spool) Append(reports, points uint64, payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(payload) > s.MaxRecord() {
		s.stats.RefusedRecords++
		return ErrTooLarge
	}
	if err := s.append(totals{1, reports, points}, payload); err != nil {
		s.stats.RefusedRecords++
		s.failed(err)
		return err
	}
	s.stats.Appended++
	s.signal()
	return nil
}

func (s *Spool) append(own totals, payload []byte) error {
	n := int64(headerLen + len(payload))
	if err := s.settleMemory(); err != nil {
		return err
	}
	if err := s.evict(n); err != nil {
		return err
	}
	for s.tail == nil || s.last().size+n > s.conf.SegmentBytes {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	g := s.last()
	s.buf = appendRecord(s.buf[:0], s.end.minus(s.shift), own.reports, own.points, time.Now(), payload)
	if _, err := s.tail.WriteAt(s.buf, g.size); err != nil {
		// It is unknown which bytes were written. If they cannot be cut off, nothing more is written after them.
		if s.tail.Truncate(g.size) != nil {
			err = errors.Join(err, s.seal())
		}
		return err
	}
	if s.conf.Sync == "each" {
		if err := s.syncFile(s.tail, g.name); err != nil {
			s.tail.Truncate(g.size)
			if err := errors.Join(err, s.rewrite(s.end, slices.Clone(s.buf))); s.last().mem != nil {
				s.segments = s.segments[:len(s.segments)-1]
				return err
			}
			s.end = s.end.plus(own)
			s.writeTail()
			return nil
		}
	}
	g.size += n
	s.end = s.end.plus(own)
	if s.conf.Sync == "interval" {
		s.unsynced = append(s.unsynced, s.buf...)
	}
	s.writeTail()
	s.syncIfDue()
	return nil
}

func (s *Spool) last() *segment { return s.segments[len(s.segments)-1] }

// limit is where the records of the segment at i end: what lies behind that was written again elsewhere.
func (s *Spool) limit(i int) totals {
	if i+1 < len(s.segments) {
		return s.segments[i+1].start
	}
	return s.end
}

// seal ends the segment that is written to.
func (s *Spool) seal() error {
	if s.tail == nil {
		return nil
	}
	if len(s.unsynced) > 0 {
		if err := s.syncTail(); err != nil {
			return s.resave()
		}
		s.unsynced = s.unsynced[:0]
	}
	s.tail.Close()
	s.tail = nil
	return nil
}

// syncTail forces what sync: interval put off to the disk, the name of the segment first.
func (s *Spool) syncTail() error {
	if s.dirDirty {
		if err := s.syncDir(""); err != nil {
			return err
		}
		s.dirDirty = false
	}
	return s.syncFile(s.tail, s.last().name)
}

// resave writes the records that may not have reached the disk to a new segment, after a failed sync. The old segment
// ends at the last good sync, and is never synced again: the kernel may have marked the lost pages clean.
func (s *Spool) resave() error {
	content := s.unsynced
	s.unsynced = nil
	s.last().size -= int64(len(content))
	return s.rewrite(s.syncedEnd, content)
}

// rewrite closes the segment that is written to and puts content, which begins at start, into a new one.
func (s *Spool) rewrite(start totals, content []byte) error {
	s.logEvent(event{Kind: "sync", Segment: s.last().name, Offset: s.last().size, Bytes: int64(len(content)),
		Message: "the disk did not confirm what was written; the segment is written to no more and its last records are written again"})
	s.tail.Close()
	s.tail = nil
	if s.reading == s.last() {
		s.stopReading()
	}
	s.segments = append(s.segments, &segment{version: 2, shift: s.shift, name: "memory", start: start, mem: content, size: int64(len(content))})
	return s.settleMemory()
}

// settleMemory finds a file for the records that are only in memory.
func (s *Spool) settleMemory() error {
	if len(s.segments) == 0 || s.last().mem == nil {
		return nil
	}
	m := s.last()
	made, err := s.freeNumber()
	if err != nil {
		return err
	}
	temporary := fmt.Sprintf("%020d%s", made, suffixMk)
	if err := s.disk.remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := s.disk.open(temporary, true)
	if err != nil {
		return err
	}
	b := append(appendSegmentHeader(nil, made, m.start.minus(s.shift)), m.mem...)
	name := temporary
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = s.syncFile(f, temporary)
	}
	if err == nil {
		if err = s.disk.rename(temporary, segmentName(made)); err == nil {
			name = segmentName(made)
			err = s.syncDir("")
		}
	}
	if err != nil {
		f.Close()
		if s.disk.remove(name) != nil {
			s.next = made + 1
		}
		return err
	}
	s.next = made + 1
	if s.reading == m {
		s.stopReading()
	}
	s.segments[len(s.segments)-1] = &segment{number: made, name: name, version: 2, shift: s.shift, start: m.start, from: segmentHeaderLen, size: int64(len(b)), changed: time.Now()}
	for i := range s.taken {
		if s.taken[i].segment == m {
			s.taken[i].segment, s.taken[i].offset = s.last(), s.taken[i].offset+segmentHeaderLen
		}
	}
	s.tail, s.syncedEnd = f, s.end
	return nil
}

// freeNumber returns a number that no file has.
func (s *Spool) freeNumber() (uint64, error) {
	for range 1000 {
		_, err := s.disk.stat(segmentName(s.next))
		if errors.Is(err, os.ErrNotExist) {
			return s.next, nil
		}
		if err != nil {
			return 0, err
		}
		s.next++
	}
	return 0, fmt.Errorf("%s and a thousand names behind it are taken", segmentName(s.next-1000))
}

// rotate begins a new segment.
func (s *Spool) rotate() error {
	if s.tail != nil {
		if err := s.seal(); err != nil || s.tail != nil {
			return err
		}
	}
	number, err := s.freeNumber()
	if err != nil {
		return err
	}
	name := segmentName(number)
	f, err := s.disk.open(name, true)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(appendSegmentHeader(nil, number, s.end.minus(s.shift)), 0)
	if err == nil && s.conf.Sync == "each" {
		if err = s.syncFile(f, name); err == nil {
			err = s.syncDir("")
		}
	}
	if err != nil {
		f.Close()
		if s.disk.remove(name) != nil {
			s.next = number + 1
		}
		return err
	}
	s.dirDirty = s.dirDirty || s.conf.Sync == "interval"
	s.next = number + 1
	s.tail, s.syncedEnd = f, s.end
	s.segments = append(s.segments, &segment{number: number, name: name, version: 2, shift: s.shift, start: s.end, from: segmentHeaderLen, size: segmentHeaderLen, changed: time.Now()})
	return nil
}

// syncFile forces a file to the disk.
func (s *Spool) syncFile(f file, name string) error {
	return s.timed(name, f.Sync)
}

// syncDir forces the entries of a folder to the disk.
func (s *Spool) syncDir(dir string) error {
	return s.timed("the directory "+dir, func() error { return s.disk.sync(dir) })
}

func (s *Spool) timed(what string, sync func() error) error {
	start := time.Now()
	err := sync()
	s.stats.Syncs++
	s.stats.SyncSeconds += time.Since(start).Seconds()
	if err == nil {
		return nil
	}
	s.stats.SyncFailures++
	err = fmt.Errorf("force %s to the disk: %w", what, err)
	s.failed(err)
	return err
}

// onDisk is the number of bytes of all segments.
func (s *Spool) onDisk() (n int64) {
	for _, g := range s.segments {
		if g.mem == nil {
			n += g.size
		}
	}
	return n
}

// evict makes room for n bytes. The segment that is written to is never evicted; Validate ensures that it fits.
func (s *Spool) evict(n int64) error {
	for s.onDisk()+n+segmentHeaderLen > s.conf.MaxBytes && len(s.segments) > 1 {
		g, to := s.segments[0], s.segments[1].start
		if s.head.records < to.records {
			// The head goes first: a segment that is gone without it would be missed at the next start.
			before := s.head
			s.head, s.headOld = to, true
			if s.writeHead(); s.headOld {
				s.head = before
				return fmt.Errorf("evict %s: the head cannot be moved: %s", g.name, s.stats.LastError)
			}
			gone := to.minus(before)
			s.stats.EvictedRecords += gone.records
			s.stats.EvictedReports += gone.reports
			s.stats.EvictedPoints += gone.points
			s.lose(gone)
			for len(s.taken) > 0 && s.taken[0].before.records < to.records {
				s.taken = s.taken[1:]
			}
			if s.cursor.records < to.records {
				s.cursor = to
				s.stopReading()
			}
		} else if s.writeHead(); s.headOld { // stored records go when the disk has confirmed the state
			return fmt.Errorf("evict %s: the head cannot be moved: %s", g.name, s.stats.LastError)
		}
		if !s.dropStored() {
			return fmt.Errorf("evict %s: %s", g.name, s.stats.LastError)
		}
	}
	return nil
}

func (s *Spool) lose(gone totals) {
	s.lost.Reports += gone.reports
	s.lost.Points += gone.points
}

// Room reports whether a record of n bytes can be appended without evicting one that is not stored.
func (s *Spool) Room(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := int64(n+headerLen+segmentHeaderLen) + s.onDisk()
	for i, g := range s.segments {
		if total <= s.conf.MaxBytes {
			return true
		}
		if s.limit(i).records > s.head.records {
			return false
		}
		total -= g.size
	}
	return total <= s.conf.MaxBytes
}

// dropStored removes the segments that are stored completely by the head on disk. It reports whether the first one was
// removed, or none had to be.
func (s *Spool) dropStored() bool {
	for len(s.segments) > 0 && s.limit(0).records <= s.saved.records && (len(s.segments) > 1 || s.segments[0].version == 1) {
		if s.stateDirty && s.conf.Sync != "never" && !s.syncState() {
			return false
		}
		g := s.segments[0]
		if s.reading == g {
			s.stopReading()
		}
		var err error
		if g.keep {
			err = s.disk.rename(g.name, g.name+".bad")
			s.logEvent(event{Kind: "quarantine", Segment: g.name, Bytes: g.size, Message: "damage could not be copied; the whole segment is kept as " + g.name + ".bad"})
			s.stats.Quarantined += g.size
		} else {
			err = s.disk.remove(g.name)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			s.failed(err)
			if g.keep {
				s.stats.Quarantined -= g.size
			}
			return false
		}
		s.segments = slices.Delete(s.segments, 0, 1)
		s.dirDirty = s.conf.Sync != "never"
	}
	if s.headV1 != nil && (len(s.segments) == 0 || s.segments[0].version != 1) {
		s.headV1.Close()
		s.headV1 = nil
		if err := s.disk.remove(headNameV1); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.failed(err)
		}
	}
	if s.dirDirty && s.conf.Sync == "each" && s.syncDir("") == nil {
		s.dirDirty = false
	}
	return true
}

func (s *Spool) stopReading() {
	if s.reader != nil {
		s.reader.Close()
	}
	s.reader, s.reading, s.offset = nil, nil, 0
}

// Read takes the next record, its payload appended to buf[:0]. It returns ErrEmpty when there is none. What is damaged
// is skipped, and counted as lost as soon as everything before it is stored.
func (s *Spool) Read(buf []byte) (Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		g, limit, err := s.locate()
		if err != nil {
			return Record{}, err
		}
		rec, ok := s.read(g, limit, buf[:0])
		if ok {
			return rec, nil
		}
	}
}

// openAttempts is how often Read fails to open a segment before it passes over it.
const openAttempts = 10

// locate opens the segment in which the next record is.
func (s *Spool) locate() (*segment, totals, error) {
	for i := 0; i < len(s.segments); i++ {
		g, limit := s.segments[i], s.limit(i)
		if limit.records <= s.cursor.records {
			continue
		}
		if g == s.reading {
			return g, limit, nil
		}
		s.stopReading()
		if g.start.records > s.cursor.records {
			s.skip(g.start, event{Kind: "missing", Segment: g.name, Message: "records before this segment are missing"})
		}
		if g.mem != nil {
			s.reader = memory(g.mem)
		} else {
			f, err := s.disk.open(g.name, false)
			if err != nil {
				s.failed(err)
				if s.attempts++; s.attempts < openAttempts && !errors.Is(err, os.ErrNotExist) {
					return nil, limit, err
				}
				g.keep = !errors.Is(err, os.ErrNotExist)
				s.skip(limit, event{Kind: "missing", Segment: g.name, Bytes: g.size, Message: "cannot be opened: " + err.Error()})
				i = -1
				continue
			}
			s.reader = f
		}
		s.attempts = 0
		s.reading, s.offset = g, g.from
		return g, limit, nil
	}
	if s.cursor.records < s.end.records {
		s.skip(s.end, event{Kind: "missing", Message: "the last records are missing"})
	}
	return nil, totals{}, errEmpty
}

// read reads the record at the offset, or skips bytes that are no readable record.
func (s *Spool) read(g *segment, limit totals, buf []byte) (Record, bool) {
	off := s.offset
	if off >= g.size {
		s.skip(limit, event{Kind: "damaged", Segment: g.name, Offset: off, Message: "the segment ends before its last record"})
		return Record{}, false
	}
	h, err := g.header(s.reader, off)
	if err == nil && g.version == 1 {
		h.before = s.cursor
	}
	if err == nil && h.before.records < s.cursor.records { // stored, or read from elsewhere
		s.offset += h.size()
		return Record{}, false
	}
	if err != nil || !s.cursor.notAfter(h.before) || !h.after().notAfter(limit) {
		next, found := g.scan(s.reader, off+1)
		s.damaged(g, off, next-off)
		s.offset = next
		switch {
		case !found:
			s.skip(limit, event{Kind: "damaged", Segment: g.name, Offset: off, Bytes: next - off, Message: "no record is readable up to the end of the segment"})
		case g.version == 1:
			s.skip(s.cursor.plus(totals{records: 1}), event{Kind: "damaged", Segment: g.name, Offset: off, Bytes: next - off,
				Message: "damaged header; how many reports it stood for is not known"})
		default:
			if h, err := g.header(s.reader, next); err == nil && s.cursor.notAfter(h.before) && h.after().notAfter(limit) {
				s.skip(h.before, event{Kind: "damaged", Segment: g.name, Offset: off, Bytes: next - off, Message: "damaged header"})
			} else {
				s.logEvent(event{Kind: "damaged", Segment: g.name, Offset: off, Bytes: next - off, Message: "damaged bytes"})
			}
		}
		return Record{}, false
	}
	if h.before != s.cursor {
		s.skip(h.before, event{Kind: "missing", Segment: g.name, Offset: off, Message: "records before this one are missing"})
	}
	payload, err := h.payload(buf, s.reader, off)
	s.offset += h.size()
	if err != nil {
		s.damaged(g, off, h.size())
		s.skip(h.after(), event{Kind: "damaged", Segment: g.name, Offset: off, Bytes: h.size(), Message: "damaged payload"})
		return Record{}, false
	}
	s.taken = append(s.taken, taken{h.before, h.own, g, off, h.time})
	s.cursor = h.after()
	return Record{Payload: payload, Reports: h.own.reports, Points: h.own.points, End: Position{s.cursor.records}}, true
}

// damaged counts bytes that are no record and keeps them aside.
func (s *Spool) damaged(g *segment, off, n int64) {
	s.stats.damagedBytes += n
	s.failed(fmt.Errorf("%s is damaged at byte %d", g.name, off))
	s.quarantine(g, s.reader, off, n)
}

// skip moves the cursor over lost records.
func (s *Spool) skip(to totals, e event) {
	gone := to.minus(s.cursor)
	e.Records, e.Lost = gone.records, gone.lost()
	s.logEvent(e)
	s.cursor = to
	if len(s.taken) == 0 {
		s.advance(to, totals{})
	}
}

// Commit marks everything up to p as stored. It returns the counts that this newly marks: records that were evicted in
// the meantime are counted as lost already.
func (s *Spool) Commit(p Position) Lost {
	s.mu.Lock()
	defer s.mu.Unlock()
	var stored totals
	for len(s.taken) > 0 && s.taken[0].before.records < p.records {
		stored = stored.plus(s.taken[0].own)
		s.taken = s.taken[1:]
	}
	if stored.records == 0 {
		return Lost{}
	}
	to := s.cursor
	if len(s.taken) > 0 {
		to = s.taken[0].before
	} else {
		s.taken = nil
	}
	s.advance(to, stored)
	return stored.lost()
}

// advance moves the head. What it passes over and was not stored is lost.
func (s *Spool) advance(to, stored totals) {
	gone := to.minus(s.head).minus(stored)
	s.stats.damagedRecords += gone.records
	s.stats.DamagedReports += gone.reports
	s.stats.DamagedPoints += gone.points
	s.lose(gone)
	s.head, s.headOld = to, true
	s.writeHead()
	s.dropStored()
}

// headPlace is where the first record is that is not stored.
func (s *Spool) headPlace() (*segment, int64) {
	if len(s.taken) > 0 {
		return s.taken[0].segment, s.taken[0].offset
	}
	return s.reading, s.offset
}

// writeHead writes the head to the disk. If that fails, the next Commit and Sync try it again. Until then a crash only
// makes the spool read records twice.
func (s *Spool) writeHead() {
	if !s.headOld {
		return
	}
	if s.head.records < s.endV1.records {
		g, off := s.headPlace()
		for i, h := range s.segments {
			if h.start.records == s.head.records && s.limit(i).records > s.head.records {
				g, off = h, h.from
			}
		}
		if g != nil && g.version == 1 && s.headV1 != nil {
			s.writeHeadV1(placeV1{g.number, off})
		}
		return
	}
	var number uint64
	for i, g := range s.segments {
		if number = g.number; s.limit(i).records > s.head.records {
			break
		}
	}
	if s.writeSlot(slotHead, number, s.head) && (s.conf.Sync != "each" || s.syncState()) {
		s.headOld, s.saved = false, s.head
	}
}

func (s *Spool) writeHeadV1(p placeV1) {
	i := 1 - s.headSlotV1
	_, err := s.headV1.WriteAt([]byte(p.String()), int64(i)*headSlotV1)
	if err == nil && s.conf.Sync != "never" {
		err = s.syncFile(s.headV1, headNameV1)
	}
	if err != nil {
		s.failed(err)
		return
	}
	s.headSlotV1, s.headOld, s.saved = i, false, s.head
}

// writeTail writes how much was appended, which shows the loss when a segment is missing. It is not forced to the disk
// with the record. After a crash of the machine it is at most the end of the segments.
func (s *Spool) writeTail() {
	var number uint64
	if len(s.segments) > 0 {
		number = s.last().number
	}
	s.writeSlot(slotTail, number, s.end)
}

func (s *Spool) writeSlot(kind int, number uint64, at totals) bool {
	if !s.openState() {
		return false
	}
	next := slot{s.slots[kind].generation + 1, number, at.minus(s.shift)}
	s.stateDirty = true
	if _, err := s.state.WriteAt(next.encode(kind), slotAt(kind, next.generation)); err != nil {
		s.failed(err)
		return false
	}
	s.slots[kind] = next
	return true
}

// openState opens the file of the state, or makes it.
func (s *Spool) openState() bool {
	if s.state != nil {
		return true
	}
	f, err := s.disk.open(stateName, false)
	if errors.Is(err, os.ErrNotExist) {
		f, err = s.disk.open(stateName, true)
		s.dirDirty = s.conf.Sync != "never"
	}
	if err != nil {
		s.failed(err)
		return false
	}
	s.state = f
	return true
}

func (s *Spool) syncState() bool {
	if !s.stateDirty {
		return true
	}
	if s.state == nil || s.syncFile(s.state, stateName) != nil {
		return false
	}
	s.stateDirty = false
	return true
}

// DrainLost returns the reports and points that were evicted or damaged since the last call.
func (s *Spool) DrainLost() Lost {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.lost
	s.lost = Lost{}
	return n
}

// Sync forces the records to the disk that are due by Config.SyncInterval. Call it now and then, for records after
// which no other came.
func (s *Spool) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeHead()
	if err := s.settleMemory(); err != nil {
		s.failed(err)
	}
	s.dropStored()
	s.syncIfDue()
	return nil
}

// syncIfDue forces to the disk what was written in the last interval. The records are in the file, so a disk that
// cannot sync them now has not refused them. They stay in memory until it has.
func (s *Spool) syncIfDue() {
	if s.conf.Sync != "interval" || time.Since(s.synced) < s.conf.SyncInterval {
		return
	}
	s.synced = time.Now()
	if len(s.unsynced) > 0 && s.tail != nil {
		if err := s.syncTail(); err == nil {
			s.unsynced, s.syncedEnd = s.unsynced[:0], s.end
		} else if err := s.resave(); err != nil {
			s.failed(err)
		}
	}
	s.syncState()
	if s.dirDirty && s.syncDir("") == nil {
		s.dirDirty = false
	}
}

func (s *Spool) failed(err error) {
	s.stats.LastError, s.stats.lastErrorTime = err.Error(), time.Now()
}

// Stats may be called at any time.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Segments = len(s.segments)
	st.Bytes = s.onDisk()
	held := s.end.minus(s.head)
	st.Records, st.Reports, st.Points = held.records, held.reports, held.points
	if held.records == 0 {
		return st
	}
	g, off := s.headPlace()
	for i, h := range s.segments {
		switch {
		case h == g:
			st.UnackedBytes += max(0, h.size-off)
		case s.limit(i).records > s.head.records:
			st.UnackedBytes += h.size - h.from
		}
	}
	st.OldestUnacked = s.oldest(g, off)
	return st
}

// oldest returns the time of the record at off of g, or the best known estimate.
func (s *Spool) oldest(g *segment, off int64) time.Time {
	if len(s.taken) > 0 && !s.taken[0].time.IsZero() {
		return s.taken[0].time
	}
	if g == nil {
		for i, h := range s.segments {
			if s.limit(i).records > s.head.records {
				g, off = h, h.from
				break
			}
		}
	}
	if g == nil {
		return s.synced
	}
	var f io.ReaderAt = s.reader
	if g != s.reading {
		if g.mem != nil {
			f = memory(g.mem)
		} else if o, err := s.disk.open(g.name, false); err == nil {
			defer o.Close()
			f = o
		} else {
			return g.changed
		}
	}
	if h, err := g.header(f, off); err == nil && !h.time.IsZero() {
		return h.time
	}
	return g.changed
}

// Close forces everything to the disk and unlocks the spool. Uncommitted records are there when the spool is opened
// again.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if s.lock != nil {
		s.writeHead()
		errs = append(errs, s.settleMemory(), s.seal())
		if s.conf.Sync != "never" && s.stateDirty && !s.syncState() {
			errs = append(errs, errors.New(s.stats.LastError))
		}
		if s.dirDirty {
			errs = append(errs, s.syncDir(""))
		}
	}
	return errors.Join(append(errs, s.release())...)
}

// release closes the files and gives the directory free.
func (s *Spool) release() error {
	var errs []error
	s.stopReading()
	for _, f := range []*file{&s.tail, &s.state, &s.headV1} {
		if *f != nil {
			errs = append(errs, (*f).Close())
			*f = nil
		}
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
		s.lock = nil
	}
	return errors.Join(errs...)
}
