package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/flock"
)

// step is a length of records.
type step struct {
	name   string
	length int64 // ns
	file   int64 // how much time a file holds, ns
}

// steps are the lengths of records, each a multiple of the one before.
var steps = [...]step{
	{"minute", int64(time.Minute), int64(time.Hour)},
	{"tens", int64(10 * time.Minute), int64(24 * time.Hour)},
	{"hour", int64(time.Hour), int64(10 * 24 * time.Hour)},
	{"day", int64(24 * time.Hour), int64(100 * 24 * time.Hour)},
}

// bucketOf is the start of the bucket of a step in which a window ends. Its end belongs to it, and its start does not.
func bucketOf(end int64, s *step) int64 { return (end - 1) / s.length * s.length }

// Options are what a store needs beside its settings.
type Options struct {
	Dir    string
	Hops   int                   // of a window and of a day, at most
	Ledger func() []sink.Balance // nil has none
}

// Stats counts what a store did and has.
type Stats struct {
	Bytes          int64
	Records        [len(steps)]int // by step
	Oldest, Newest int64           // ns since 1970; 0 where there is nothing

	Written      uint64 // records
	WrittenBytes uint64
	LostMinutes  uint64 // that the disk did not take, or that came while it was too slow
	LostWindows  uint64 // in them
	Damaged      uint64 // records and remains of records that could not be read
	DamagedBytes uint64
	Deleted      uint64 // files, by age and by size
	LeftOut      uint64 // findings for which a record had no place

	Failing     string // why the last minute was lost; "" where it was written
	LastDamage  string // "" for none
	LastRemoval string // why a file that is too old could not be deleted, "" where all could
}

// queued is how many minutes may wait for the disk.
const queued = 1

// Store is a history on disk. AddPartial receives windows, Serve writes them, and all other methods may be called at any time.
type Store struct {
	cfg    Config
	opt    Options
	limits window.Limits
	lock   io.Closer
	pack   packer // of the goroutine that writes
	create func(path string) (output, error)
	turns  chan struct{} // queries that run

	opened struct {
		sync.Mutex
		minute *minute
		counts map[string]Account // as the ledger was when the last minute ended
	}
	queue chan *minute

	mu    sync.RWMutex
	kept  [len(steps)]kept
	stats Stats

	pending [len(steps)]map[int64]bool // buckets to be made of finer records; of the goroutine that writes
}

// kept are the files and records of a step.
type kept struct {
	files   []*file  // in the order in which they were begun
	records []record // by bucket; several of a bucket in the order in which they were written
	bytes   int64
}

// record is where a record is.
type record struct {
	head
	step int
	file *file
	at   int64
}

// minute is a minute that is open, or waits to be written.
type minute struct {
	bucket  int64
	partial window.Partial
	windows uint32
	reports uint64
	events  events
}

// Open opens the history of a directory, which it makes if it is missing.
func Open(cfg Config, opt Options) (_ *Store, err error) {
	if opt.Hops < 1 {
		return nil, errors.New("history: no hops are allowed")
	}
	if err := os.MkdirAll(opt.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(opt.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if err := flock.Lock(f); err != nil {
		return nil, fmt.Errorf("history: %s: %w", opt.Dir, err)
	}
	const twice = 2 // windows at the border of two days have the hops of both
	s := &Store{
		cfg: cfg, opt: opt, lock: f, create: openOutput, queue: make(chan *minute, queued), turns: make(chan struct{}, mostQueries),
		// Flows, paths and what collectors have in common are not kept.
		limits: window.Limits{Hops: twice * opt.Hops, Exporters: twice * opt.Hops, Drops: twice * opt.Hops},
	}
	s.opened.counts = map[string]Account{}
	for t := range s.pending {
		s.pending[t] = map[int64]bool{}
	}
	if s.pack, err = newPacker(); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	return s, nil
}

// Name implements [sink.PartialWriter].
func (s *Store) Name() string { return "history" }

// WriteWindow implements [sink.PartialWriter], whose other method takes the windows.
func (*Store) WriteWindow(context.Context, *sink.Window) error {
	return errors.New("history: a window comes without the partial window that it was made of")
}

// AddPartial adds a window to its minute, and hands minutes that ended to Serve. It waits for no disk.
func (s *Store) AddPartial(_ context.Context, w *sink.Window) error {
	if w.End <= 0 || w.Start > w.End {
		return nil // of no time
	}
	o := &s.opened
	o.Lock()
	defer o.Unlock()
	bucket := bucketOf(w.End, &steps[0])
	if o.minute != nil && o.minute.bucket != bucket {
		s.endMinute()
	}
	if o.minute == nil {
		o.minute = &minute{bucket: bucket}
	}
	m := o.minute
	m.partial.MergeWithin(w.Partial, s.limits)
	m.partial.Span(w.Start, w.End)
	m.windows++
	m.reports += w.Reports
	for i := range w.Findings {
		m.events.put(newFinding(&w.Findings[i]))
	}
	if w.End == bucket+steps[0].length {
		s.endMinute()
	}
	return nil
}

// endMinute hands the open minute over. The caller holds the lock of what is open.
func (s *Store) endMinute() {
	m := s.opened.minute
	s.opened.minute = nil
	if m == nil {
		return
	}
	if s.opt.Ledger != nil {
		for name, a := range since(s.opened.counts, s.opt.Ledger()) {
			m.events.account(name, a)
		}
	}
	select {
	case s.queue <- m:
	default:
		s.lose(m, errors.New("the disk is too slow"))
	}
}

// lose counts a minute that is not written.
func (s *Store) lose(m *minute, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.LostMinutes++
	s.stats.LostWindows += uint64(m.windows)
	s.stats.Failing = why.Error()
}

// Serve writes minutes until ctx ends. Then it writes the open one and closes the store.
func (s *Store) Serve(ctx context.Context) error {
	s.rollUp()
	for {
		select {
		case m := <-s.queue:
			s.write(m)
			continue
		case <-ctx.Done():
		}
		s.opened.Lock()
		s.endMinute()
		s.opened.Unlock()
		for {
			select {
			case m := <-s.queue:
				s.write(m)
			default:
				return s.lock.Close()
			}
		}
	}
}

// Close ends a store that is not served.
func (s *Store) Close() error { return s.lock.Close() }

// Problem returns what is wrong with the history and what to do, or "".
func (s *Store) Problem() string {
	st := s.Stats()
	switch {
	case st.Failing != "":
		return fmt.Sprintf("history: the last minute was not written (%d minutes lost so far): %s; free some disk at %s", st.LostMinutes, st.Failing, s.opt.Dir)
	case st.LastRemoval != "":
		return "history: an old file cannot be deleted: " + st.LastRemoval
	}
	return ""
}

// Stats is a snapshot of the counters.
func (s *Store) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := s.stats
	for t := range s.kept {
		k := &s.kept[t]
		st.Bytes += k.bytes
		st.Records[t] = len(k.records)
		if n := len(k.records); n > 0 {
			if first := max(k.records[0].start, 1); st.Oldest == 0 || first < st.Oldest {
				st.Oldest = first
			}
			st.Newest = max(st.Newest, k.records[n-1].end)
		}
	}
	return st
}

// write writes a minute, makes coarser records that are complete with it, and deletes what is too old or too much.
func (s *Store) write(m *minute) {
	h := head{bucket: m.bucket, windows: m.windows, reports: m.reports}
	if err := s.put(0, h, &m.partial, &m.events); err != nil {
		s.lose(m, err)
		s.evict() // which may be what makes room
		return
	}
	s.mu.Lock()
	s.stats.Failing = ""
	s.stats.LeftOut += m.events.LeftOut
	s.mu.Unlock()
	s.pending[1][m.bucket/steps[1].length*steps[1].length] = true
	s.rollUp()
	s.evict()
}

// put writes a record.
func (s *Store) put(t int, h head, p *window.Partial, e *events) error {
	b, err := s.encode(&h, p, e)
	if err != nil {
		return err
	}
	return s.append(t, &h, b)
}

// rollUp makes the records of longer steps whose time has passed, where finer ones have more windows.
func (s *Store) rollUp() {
	until := s.until()
	for t := 1; t < len(steps); t++ {
		for _, bucket := range slices.Sorted(mapKeys(s.pending[t])) {
			if bucket+steps[t].length > until {
				continue
			}
			delete(s.pending[t], bucket)
			if err := s.roll(t, bucket); err != nil {
				s.mu.Lock()
				s.stats.Failing = err.Error()
				s.mu.Unlock()
				s.pending[t][bucket] = true // with the next minute
				return
			}
		}
	}
}

// roll makes one record of finer ones.
func (s *Store) roll(t int, bucket int64) error {
	st := &steps[t]
	s.mu.RLock()
	finer, have := s.span(t-1, bucket, bucket+st.length), uint32(0)
	if i := s.kept[t].find(bucket); i < len(s.kept[t].records) && s.kept[t].records[i].bucket == bucket {
		have = s.kept[t].records[i].windows
	}
	s.mu.RUnlock()
	if windowsOf(finer) <= have {
		return nil
	}
	r := s.reader(&s.pack)
	defer r.close()
	var sum window.Partial
	got, err := r.merge(finer, &sum)
	if err != nil {
		return err
	}
	all, err := r.events(got, nil)
	if err != nil {
		return err
	}
	if windowsOf(got) <= have {
		return nil // what could be read is no more than there is
	}
	h := head{bucket: bucket, windows: windowsOf(got)}
	for i := range got {
		h.reports += got[i].reports
	}
	if err := s.put(t, h, &sum, &all); err != nil {
		return err
	}
	if t+1 < len(steps) {
		s.pending[t+1][bucket/steps[t+1].length*steps[t+1].length] = true
	}
	return nil
}

// until is the end of the newest minute.
func (s *Store) until() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if l := s.kept[0].records; len(l) > 0 {
		return l[len(l)-1].bucket + steps[0].length
	}
	return 0
}

func windowsOf(list []record) (n uint32) {
	for i := range list {
		n += list[i].windows
	}
	return n
}

// encode makes the bytes of a record and completes its head.
func (s *Store) encode(h *head, p *window.Partial, e *events) ([]byte, error) {
	var table []byte
	for x := range p.AllHops() {
		stats := x.Stats()
		f := FiguresOf(&stats)
		table = appendRow(table, x.HopKey, &f)
	}
	happened, err := jsonOf(e)
	if err != nil {
		return nil, err
	}
	sketches, err := p.AppendBinary(nil)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	h.start, h.end = p.Start, p.End
	b := make([]byte, recordHead, recordHead+len(table)/2+len(happened)/2+len(sketches))
	for i, part := range [numParts][]byte{table, happened, sketches} {
		from := len(b)
		if len(part) > 0 {
			b = s.pack.out.EncodeAll(part, b)
		}
		if len(b)-from > maxPart || len(part) > maxPart {
			return nil, fmt.Errorf("history: the %s of a record take %d bytes, more than %d", partNames[i], len(part), maxPart)
		}
		h.length[i], h.sum[i] = uint32(len(b)-from), checksum(b[from:])
	}
	h.append(b[:0])
	return b, nil
}
