package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Spool is a queue on disk. Append may be called by one goroutine beside Read, Commit and Rewind by another.
type Spool struct {
	conf Config
	disk disk
	lock io.Closer

	mu       sync.Mutex
	segments []segment // in order; the last is the one that Append writes to
	tail     file      // of the last segment; nil when a new segment has to be begun
	reader   file      // of the segment numbered reading
	reading  uint64
	head     Position // everything before it is stored
	cursor   Position // everything before it was read
	taken    []taken  // between head and cursor
	lost     Lost     // since the last TakeLost
	events   []Event
	dirty    bool     // the tail holds bytes that were not forced to the disk
	headFile file
	headSlot int  // that was written last
	headOld  bool // the head on disk is behind
	synced   time.Time
	buf      []byte
	ready    chan struct{}
	stats    Stats
}

type segment struct {
	number  uint64
	size    int64
	records int    // not read yet
	reports uint64 // of these
}

type taken struct {
	end     Position
	reports uint64
	points  uint64
}

// Lost is a number of reports and of the points that stand for them.
type Lost struct{ Reports, Points uint64 }

// Event is something that was found in the directory or that the disk did, for the log.
type Event struct {
	Kind    string // damaged, torn, missing, emptied, quarantine, sync and so on
	Segment string // name of the file, where there is one
	Offset  int64  // of the first byte
	Bytes   int64
	Lost    Lost   // what is known to be gone
	Records uint64 // of these
	Message string
}

// Events gives what was found and what happened since the last call, for the log.
func (s *Spool) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.events
	s.events = nil
	return e
}

// Record is what Append was given. Commit with End once it is stored.
type Record struct {
	Payload []byte
	Reports uint64
	Points  uint64
	End     Position
}

// Stats says what the spool holds and, since it was opened, what it took and what it lost.
type Stats struct {
	Segments int
	Bytes    int64
	Records  uint64 // not stored yet
	Reports  uint64 // of these

	Appended       uint64 // records
	RefusedRecords uint64 // calls of Append that failed
	EvictedRecords uint64 // to stay below Config.MaxBytes
	EvictedReports uint64
	EvictedPoints  uint64
	DamagedRecords uint64 // could not be read back, where the number is known
	DamagedReports uint64
	DamagedPoints  uint64
	DamagedBytes   int64
	TornBytes      int64 // cut from the end of the last segment when the spool was opened

	UnackedBytes    int64     // on disk and not stored yet
	OldestUnacked   time.Time // when the oldest record that is not stored was appended; zero when there is none
	MissingSegments uint64    // gone or emptied
	Quarantined     int64     // bytes that are kept aside

	Syncs        uint64
	SyncFailures uint64
	SyncSeconds  float64

	LastError     string // of the disk
	LastErrorTime time.Time
}

// ErrTooLarge is returned for a record that does not fit into a segment.
var ErrTooLarge = errors.New("record is larger than a segment")

// ErrEmpty is returned by Read when there is no record.
var ErrEmpty = errors.New("spool is empty")

// Open opens the spool in conf.Dir, makes it when it is missing and repairs what a crash left.
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
		s.Close()
		return nil, fmt.Errorf("open spool %s: %w", conf.Dir, err)
	}
	return s, nil
}

// MaxRecord is the largest payload that Append takes.
func (s *Spool) MaxRecord() int { return int(s.conf.SegmentBytes) - len(magic) - headerLen }

// Ready has an element when there may be a record to read. It is for one goroutine.
func (s *Spool) Ready() <-chan struct{} { return s.ready }

func (s *Spool) signal() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Append adds a record. On an error nothing was added.
func (s *Spool) Append(reports, points uint64, payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(payload) > s.MaxRecord() {
		s.stats.RefusedRecords++
		return ErrTooLarge
	}
	if err := s.append(reports, points, payload); err != nil {
		s.stats.RefusedRecords++
		s.failed(err)
		return err
	}
	s.stats.Appended++
	s.signal()
	return nil
}

func (s *Spool) append(reports, points uint64, payload []byte) error {
	n := int64(headerLen + len(payload))
	s.evict(n)
	if s.tail == nil || s.last().size+n > s.conf.SegmentBytes {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	seg := s.last()
	s.buf = appendRecord(s.buf[:0], reports, payload)
	_, err := s.tail.WriteAt(s.buf, seg.size)
	if err == nil && s.conf.Sync == "each" {
		err = s.tail.Sync()
	}
	if err != nil {
		// After a failed write or sync nobody knows what the file holds. If it cannot be cut back, nothing more is
		// written to it, and what was torn looks like damage to whoever reads that far.
		if s.tail.Truncate(seg.size) != nil {
			s.tail.Close()
			s.tail, s.dirty = nil, false
		}
		return err
	}
	seg.size += n
	seg.records++
	seg.reports += reports
	s.dirty = s.conf.Sync == "interval"
	return s.syncIfDue()
}

func (s *Spool) last() *segment { return &s.segments[len(s.segments)-1] }

// rotate begins a new segment.
func (s *Spool) rotate() error {
	if s.tail != nil {
		if s.dirty {
			if err := s.tail.Sync(); err != nil {
				s.failed(err)
			}
			s.dirty = false
		}
		s.tail.Close()
		s.tail = nil
	}
	number := s.head.segment + 1
	if len(s.segments) > 0 {
		number = max(number, s.last().number+1)
	}
	f, err := s.disk.open(segmentName(number), true)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte(magic), 0); err != nil {
		f.Close()
		return errors.Join(err, s.disk.remove(segmentName(number)))
	}
	s.tail = f
	s.segments = append(s.segments, segment{number: number, size: int64(len(magic))})
	return nil
}

// evict makes room for n bytes. The segment that is written to is never evicted; that it fits is what Validate holds.
func (s *Spool) evict(n int64) {
	total := n + int64(len(magic))
	for i := range s.segments {
		total += s.segments[i].size
	}
	for total > s.conf.MaxBytes && len(s.segments) > 1 {
		seg := s.segments[0]
		records, reports := seg.records, seg.reports
		keep := s.taken[:0]
		for _, t := range s.taken {
			if t.end.segment == seg.number {
				records++
				reports += t.reports
			} else {
				keep = append(keep, t)
			}
		}
		s.taken = keep
		s.stats.EvictedRecords += uint64(records)
		s.stats.EvictedReports += reports
		s.lost.Reports += reports
		total -= seg.size
		next := Position{s.segments[1].number, int64(len(magic))}
		if s.cursor.before(next) {
			s.cursor = next
		}
		s.drop()
		if s.head.before(next) {
			s.moveHead(next)
		}
	}
}

// Room reports whether a record of n bytes can be appended without evicting one that is not stored.
func (s *Spool) Room(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := int64(n + headerLen + len(magic))
	for i := range s.segments {
		total += s.segments[i].size
	}
	for i := range s.segments {
		seg := &s.segments[i]
		if total <= s.conf.MaxBytes {
			return true
		}
		if seg.records > 0 || len(s.taken) > 0 && s.taken[0].end.segment <= seg.number {
			return false
		}
		total -= seg.size
	}
	return total <= s.conf.MaxBytes
}

// drop removes the oldest segment.
func (s *Spool) drop() {
	seg := s.segments[0]
	if s.reader != nil && s.reading == seg.number {
		s.reader.Close()
		s.reader = nil
	}
	if err := s.disk.remove(segmentName(seg.number)); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.failed(err)
	}
	s.segments = append(s.segments[:0], s.segments[1:]...)
}

// Read takes the next record, its payload appended to buf[:0]. It returns ErrEmpty when there is none. What is damaged
// is skipped and counted.
func (s *Spool) Read(buf []byte) (Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.segments {
		seg := &s.segments[i]
		if seg.number < s.cursor.segment {
			continue
		}
		if seg.number > s.cursor.segment {
			s.cursor = Position{seg.number, int64(len(magic))}
		}
		for s.cursor.offset < seg.size {
			rec, err := s.read(seg, buf[:0])
			if err == nil {
				s.taken = append(s.taken, taken{rec.End, rec.Reports, rec.Points})
				return rec, nil
			}
		}
	}
	return Record{}, ErrEmpty
}

// read reads the record at the cursor and moves the cursor behind it, or behind the damage.
func (s *Spool) read(seg *segment, buf []byte) (Record, error) {
	if s.reader == nil || s.reading != seg.number {
		if s.reader != nil {
			s.reader.Close()
			s.reader = nil
		}
		f, err := s.disk.open(segmentName(seg.number), false)
		if err != nil {
			s.failed(err)
			return Record{}, s.damaged(seg, seg.size, seg.records, seg.reports)
		}
		s.reader, s.reading = f, seg.number
	}
	off := s.cursor.offset
	h, err := readHeader(s.reader, off, seg.size)
	if err != nil {
		return Record{}, s.damaged(seg, seg.size, seg.records, seg.reports)
	}
	end := off + headerLen + h.length
	payload, err := readPayload(buf, s.reader, off, h)
	if err != nil {
		return Record{}, s.damaged(seg, end, min(1, seg.records), min(h.reports, seg.reports))
	}
	s.cursor.offset = end
	seg.records--
	seg.reports -= h.reports
	return Record{Payload: payload, Reports: h.reports, End: s.cursor}, nil
}

var errDamaged = errors.New("damaged")

// damaged counts what lies between the cursor and end and moves the cursor there.
func (s *Spool) damaged(seg *segment, end int64, records int, reports uint64) error {
	s.stats.DamagedRecords += uint64(records)
	s.stats.DamagedReports += reports
	s.stats.DamagedBytes += end - s.cursor.offset
	s.lost.Reports += reports
	seg.records -= records
	seg.reports -= reports
	s.cursor.offset = end
	s.failed(fmt.Errorf("%s is damaged at byte %d", segmentName(seg.number), end))
	return errDamaged
}

// Commit says that everything up to p is stored. It returns what that is news for: those of
// records that were evicted in the meantime are counted as lost already.
func (s *Spool) Commit(p Position) (stored Lost) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.taken) > 0 && !p.before(s.taken[0].end) {
		stored.Reports += s.taken[0].reports
		s.taken = append(s.taken[:0], s.taken[1:]...)
	}
	if s.head.before(p) {
		for len(s.segments) > 1 && s.segments[0].number < p.segment {
			s.drop()
		}
		s.moveHead(p)
	}
	return stored
}

// moveHead remembers p on disk. If that fails it is tried again by the next Commit and Sync; all that is at stake is
// that records are read twice after a crash.
func (s *Spool) moveHead(p Position) {
	s.head = p
	s.headOld = true
	s.writeHead()
}

func (s *Spool) writeHead() {
	if !s.headOld || s.headFile == nil {
		return
	}
	slot := 1 - s.headSlot
	_, err := s.headFile.WriteAt([]byte(s.head.String()), int64(slot)*headSlot)
	if err == nil && s.conf.Sync == "each" {
		err = s.headFile.Sync()
	}
	if err != nil {
		s.failed(err)
		return
	}
	s.headSlot = slot
	s.headOld = false
}

// TakeLost gives the number of reports that were evicted or damaged since the last call.
func (s *Spool) TakeLost() Lost {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.lost
	s.lost = Lost{}
	return n
}

// Sync forces to the disk what is due by Config.SyncInterval. It is to be called now and then, for the records after
// which no other came.
func (s *Spool) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeHead()
	return s.syncIfDue()
}

func (s *Spool) syncIfDue() error {
	if !s.dirty || time.Since(s.synced) < s.conf.SyncInterval {
		return nil
	}
	// The record is in the file, so a disk that cannot force it now has not refused it.
	if err := s.tail.Sync(); err != nil {
		s.failed(err)
	}
	s.dirty, s.synced = false, time.Now()
	return nil
}

func (s *Spool) failed(err error) {
	s.stats.LastError, s.stats.LastErrorTime = err.Error(), time.Now()
}

// Stats may be called at any time.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Segments = len(s.segments)
	for _, seg := range s.segments {
		st.Bytes += seg.size
		st.Records += uint64(seg.records)
		st.Reports += seg.reports
	}
	st.Records += uint64(len(s.taken))
	for _, t := range s.taken {
		st.Reports += t.reports
	}
	return st
}

// Close forces everything to the disk and gives up the lock. What was not committed is there when the spool is opened
// again.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	s.writeHead()
	if s.tail != nil {
		if s.dirty {
			errs = append(errs, s.tail.Sync())
		}
		errs = append(errs, s.tail.Close())
		s.tail = nil
	}
	for _, f := range []*file{&s.reader, &s.headFile} {
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
