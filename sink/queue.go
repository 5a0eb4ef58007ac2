package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hopscope/hopscope/sink/spool"
)

// QueueConfig bounds a queue and its patience.
type QueueConfig struct {
	MaxBytes   int           `yaml:"max_bytes" doc:"Most memory of waiting batches, encoded." range:"65536..17179869184"`
	MaxBatches int           `yaml:"max_batches" doc:"Most waiting batches." range:"1..1000000"`
	RetryMin   time.Duration `yaml:"retry_min" doc:"Bound of the random wait after a failed write; it doubles each time." range:"1ms..1h"`
	RetryMax   time.Duration `yaml:"retry_max" doc:"Where the doubling ends." range:"1ms..1h"`
}

// DefaultQueueConfig holds 64 MiB.
func DefaultQueueConfig() QueueConfig {
	return QueueConfig{MaxBytes: 64 << 20, MaxBatches: 10_000, RetryMin: 500 * time.Millisecond, RetryMax: 30 * time.Second}
}

// Validate returns the errors in c that the ranges of single values do not show.
func (c *QueueConfig) Validate() error {
	if c.RetryMin > c.RetryMax {
		return fmt.Errorf("retry_min: %v is more than retry_max %v", c.RetryMin, c.RetryMax)
	}
	return nil
}

// Policy is a queue's answer to a batch that finds no room.
type Policy uint8

const (
	// Drop evicts the oldest waiting batches and counts them: for live sources, which cannot be slowed down.
	Drop Policy = iota
	// Block lets Put wait: for replays. A spool behind the queue then fills up and never evicts, and Close waits for a store that
	// fails, also with a spool.
	Block
)

// QueueOptions are a queue's surroundings. All of them may be left out.
type QueueOptions struct {
	Policy Policy
	// Spool is put between memory and store: every batch goes through it. The queue closes it.
	Spool *spool.Spool
	// Refused keeps the points that the store refuses. Without it they are counted alone.
	Refused *RefusedFolder
	// Target names where the writer writes, for operators that look at refused points.
	Target string
	// Account receives where the reports and the points are.
	Account Account
	// Observe is called after every write with its duration and its result.
	Observe func(d time.Duration, err error)
	// Rand returns numbers of [0, 1) for the waits between retries.
	Rand func() float64
}

// Queue buffers batches in front of a Writer, so that a slow store never stops capture. It costs memory, then disk, then the
// oldest batches. Batches are encoded when they come, and one goroutine writes them in order. With a spool, a second
// goroutine carries them from memory to disk. They are thus safe from a crash within moments, whatever the store does.
//
// When the disk refuses a batch, the batch waits in memory. It is offered to the store directly once the spool is
// empty, until either takes it.
type Queue struct {
	name   string
	writer Encoder
	stager Stager // nil for writers that store at once
	parter Parter // nil for writers whose records have to stay in order
	places int    // of a Placer; 0 for others
	conf   QueueConfig
	opt    QueueOptions

	mu      sync.Mutex
	waiting []item
	bytes   int
	closed  bool
	space   chan struct{} // closed and replaced when room was made
	stats   QueueStats
	failing bool // the last write
	// tickFailing is the same for a Stager's Tick.
	tickFailing bool

	arrived chan struct{} // something is in waiting
	direct  chan item     // from the spooling goroutine to the delivering one
	closing chan struct{} // closed by Close
	spooled chan struct{} // closed when the spooling goroutine has ended
	done    chan struct{} // closed when the delivering goroutine has ended
	cancel  context.CancelFunc

	turn chan struct{} // holds a token during a Put: the records of a batch follow each other
	ask  chan struct{} // Flush wants a Stager to store everything

	began     uint64    // batches below it are of an earlier run
	batch     uint64    // the last number that was given to one; the holder of turn owns it
	gone      uint64    // the last batch of which a record was dropped before it came to the store
	goneTo    Stage     // and where it went
	evicted   time.Time // when the spool was last full
	evictions uint64
	overflow  time.Time // when a record was dropped from memory
	clean     int       // batches since one of which points were refused

	put, settledOf uint64 // records that came, and those of which it is known what became of them
	lost           bool   // one was dropped
	marks          []mark // in order

	// The delivering goroutine's own.
	held       *item // came past the spool, and waits for what is in there
	track      track
	staged     []*staged
	stores     uint64 // writes that stored something
	passes     uint64 // writes that ended with something stored or refused
	front      []*piece
	asides     []*piece // in the order in which they were set aside
	asideBytes int      // of their payloads
	parts      int      // pieces that were parted since passes was partedAt
	partedAt   uint64
	fresh      int           // halves that were made of what is set aside
	allAway    uint64        // passes after which a place can be away alone; before, all of them were
	credit     time.Duration // how much longer records that come were written than those set aside
	// flushing is set when everything is to be stored, and the last try failed.
	flushing bool
	open     []*staged
}

// item is one record with its state.
type item struct {
	record  []byte
	head    recordHead
	payload []byte // of record
	reports uint64
	extra   uint64 // points that the spool does not know of
	end     spool.Position
	before  uint64 // records that the spool had taken when this one came past it
	onDisk  bool
	unknown bool // the record is of a version that is not known
}

// staged is a record that has reached the writer.
type staged struct {
	item
	pending  int    // pieces that are not written yet
	write    uint64 // the last write that held some of it, counted from 1
	refused  []SeriesCount
	refusals int
	rejected uint64 // points
	to       Stage  // where its reports go, unless some of its points were refused
}

// settled reports whether the outcome of a record is known when as many writes are stored.
func (s *staged) settled(stored uint64) bool {
	all := s.refusals > 0 && s.rejected == s.head.points
	return s.pending == 0 && (all || s.write <= stored)
}

// track follows the records of a batch on their way to the store.
type track struct {
	batch   uint64
	next    uint64 // part
	spoiled Stage  // where the first record ended that did not come here; Stored as long as all came
	// rejected is set when the store refused some points.
	rejected bool
}

// QueueStats is the state of a queue.
type QueueStats struct {
	Batches, Bytes int // waiting in memory

	Writes         uint64 // requests to the writer that ended well
	Retries        uint64 // writes that failed and were tried again
	PointsWritten  uint64
	PointsRejected uint64
	PointsDropped  uint64 // in memory, for want of room or time
	BatchesDropped uint64

	Failing       bool   // the last write failed and is being tried again
	Config        bool   // and an operator has to mend the settings
	LastError     string // of a write
	LastErrorTime time.Time

	Aside Aside // what the store fails for while it takes others

	Rejecting   bool    // the store refused points of one of the last batches
	LastRefusal Refused // zero before the first
	Evicting    bool    // the spool was full within the last minute
	Dropping    bool    // the queue was full within the last minute

	Spool   *spool.Stats  // nil without one
	Refused *RefusedStats // nil without a folder
}

// Refused is the part of one record that a store refused.
type Refused struct {
	Time   time.Time
	Points uint64
	Of     uint64
	Reason string // the first, in the store's words
}

const (
	// cleanBatches is the number of batches without a refused point after which a store counts as mended.
	cleanBatches = 3
	// recent is how long a queue or a spool that was full counts as full.
	recent = time.Minute
)

// NewQueue prepares a queue. Nothing runs before Start.
func NewQueue(w Writer, conf QueueConfig, opt QueueOptions) *Queue {
	q := &Queue{
		name: w.Name(), conf: conf, opt: opt,
		space: make(chan struct{}), arrived: make(chan struct{}, 1), direct: make(chan item),
		closing: make(chan struct{}), spooled: make(chan struct{}), done: make(chan struct{}),
		turn: make(chan struct{}, 1), ask: make(chan struct{}, 1),
	}
	q.stager, _ = w.(Stager)
	q.began = uint64(time.Now().UnixNano())
	q.clean = cleanBatches
	q.writer = AsEncoder(w)
	q.parter, _ = q.writer.(Parter)
	if p, ok := q.parter.(Placer); ok {
		q.places = p.Places()
	}
	return q
}

// Name is the writer's.
func (q *Queue) Name() string { return q.name }

// Start begins to write, first what an earlier process left in the spool. Close ends it.
func (q *Queue) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	q.cancel = cancel
	if q.opt.Spool == nil {
		close(q.spooled)
	} else {
		// What the spool found to be gone when it was opened was held by an earlier run: it is carried, and lost.
		lost := q.opt.Spool.DrainLost()
		if st := q.opt.Spool.Stats(); q.opt.Account != nil && st.Reports+st.Points+lost.Reports+lost.Points > 0 {
			q.opt.Account.Carry(st.Reports+lost.Reports, st.Points+lost.Points, nil)
			q.move(OnDisk, DroppedDisk, lost.Reports, lost.Points)
		}
		go q.toSpool(ctx)
	}
	go q.deliver(ctx)
}

const (
	// recordPoints is the number of points at which a batch is cut into records. A retry repeats one record.
	recordPoints = 4096
	// recordBytes is about the most bytes of a record, unless the spool has a lower limit.
	recordBytes = 4 << 20
)

// ErrClosed is returned by Put after Close.
var ErrClosed = errors.New("sink: queue is closed")

// Put hands over a batch, which may be reused afterwards. With policy Drop it does not wait for anything. Several
// goroutines may put; what one of them puts stays in its order.
func (q *Queue) Put(ctx context.Context, b *Batch) error {
	if err := q.begin(ctx); err != nil {
		q.made(b.Points)
		q.reject(b.Reports, uint64(len(b.Points)))
		return err
	}
	defer q.end()
	limit := recordBytes
	if q.opt.Spool != nil {
		limit = min(limit, q.opt.Spool.MaxRecord())
	}
	head := q.nextBatch()
	rest := b.Points
	for first := true; first || len(rest) > 0; first = false {
		part := rest[:min(len(rest), recordPoints)]
		it, left := q.encode(head, part, len(part) == len(rest))
		for len(it.record) > limit && len(part) > 1 {
			part = part[:len(part)/2]
			it, left = q.encode(head, part, len(part) == len(rest))
		}
		rest = rest[len(part):]
		q.made(part)
		if left > 0 {
			q.move(InMemory, DroppedEncoding, 0, left)
			q.mu.Lock()
			q.stats.PointsDropped += left
			q.mu.Unlock()
			head.spoiled = DroppedEncoding
		}
		if it.head.last {
			it.reports = b.Reports
		}
		if err := q.push(ctx, it); err != nil {
			q.made(rest)
			q.reject(b.Reports, it.head.points+uint64(len(rest)))
			return err
		}
		head.part++
	}
	return nil
}

// PutEncoded hands over a record as it is to be written, which may be reused afterwards. It is a batch of its own, and
// otherwise as one that Put takes: its reports are stored when it is.
func (q *Queue) PutEncoded(ctx context.Context, e Encoded) error {
	points := uint64(0)
	for _, c := range e.Series {
		points += c.Points
	}
	if q.opt.Account != nil {
		q.opt.Account.Make(e.Series)
	}
	if err := q.begin(ctx); err != nil {
		q.reject(e.Reports, points)
		return err
	}
	defer q.end()
	head := q.nextBatch()
	head.last, head.series, head.points = true, slices.Clone(e.Series), points
	record := appendRecordHead(nil, &head)
	start := len(record)
	record = append(record, e.Payload...)
	if err := q.push(ctx, item{record: record, head: head, payload: record[start:], reports: e.Reports}); err != nil {
		q.reject(e.Reports, points)
		return err
	}
	return nil
}

// begin waits until no other Put runs.
func (q *Queue) begin(ctx context.Context) error {
	select {
	case q.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case q.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (q *Queue) end() { <-q.turn }

// nextBatch returns the head of the first record of a batch.
func (q *Queue) nextBatch() recordHead {
	q.batch = max(q.batch+1, uint64(time.Now().UnixNano()))
	return recordHead{batch: q.batch, spoiled: Stored}
}

// made counts points that come.
func (q *Queue) made(points []Point) {
	if q.opt.Account != nil {
		q.opt.Account.Make(countSeries(points))
	}
}

// reject counts what came and found no way in.
func (q *Queue) reject(reports, points uint64) {
	q.mu.Lock()
	q.stats.PointsDropped += points
	q.mu.Unlock()
	q.move(InMemory, DroppedMemory, reports, points)
}

// encode makes a record of points. left counts those that have no form in the writer's encoding.
func (q *Queue) encode(head recordHead, points []Point, last bool) (it item, left uint64) {
	head.last = last
	head.series = countSeries(points)
	head.points = uint64(len(points))
	record := appendRecordHead(nil, &head)
	start := len(record)
	record, left = q.writer.Encode(record, &Batch{Points: points})
	if left > 0 { // which should not be: find out which series they are of
		kept := head.series[:0:0]
		for i := range points {
			if _, n := q.writer.Encode(nil, &Batch{Points: points[i : i+1]}); n == 0 {
				kept = AddSeries(kept, points[i].Measurement, 1)
			}
		}
		payload := append([]byte{}, record[start:]...)
		head.series, head.points, head.spoiled = kept, head.points-left, DroppedEncoding
		record = appendRecordHead(record[:0], &head)
		start = len(record)
		record = append(record, payload...)
	}
	return item{record: record, head: head, payload: record[start:]}, left
}

// itemOf reads a record.
func itemOf(record []byte) item {
	h, payload, ok := parseRecord(record)
	return item{record: record, head: h, payload: payload, unknown: !ok}
}

func (q *Queue) push(ctx context.Context, it item) error {
	var fire []mark
	defer func() { reportMarks(fire) }() // when the lock is free
	q.mu.Lock()
	for !q.closed && len(q.waiting) > 0 && (len(q.waiting) >= q.conf.MaxBatches || q.bytes+len(it.record) > q.conf.MaxBytes) {
		if q.opt.Policy == Drop {
			old := q.dequeueLocked()
			q.stats.BatchesDropped++
			q.stats.PointsDropped += old.head.points
			q.gone, q.goneTo, q.overflow = old.head.batch, DroppedMemory, time.Now()
			q.move(InMemory, DroppedMemory, old.reports, old.head.points)
			fire = append(fire, q.settleLocked(1, false)...)
			continue
		}
		space := q.space
		q.mu.Unlock()
		select {
		case <-space:
		case <-q.closing:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		q.mu.Lock()
	}
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	q.waiting = append(q.waiting, it)
	q.put++
	q.bytes += len(it.record)
	select {
	case q.arrived <- struct{}{}:
	default:
	}
	return nil
}

// dequeueLocked removes the oldest waiting item, which has to be there.
func (q *Queue) dequeueLocked() item {
	it := q.waiting[0]
	q.waiting[0] = item{}
	q.waiting = q.waiting[1:]
	q.bytes -= len(it.record)
	close(q.space)
	q.space = make(chan struct{})
	return it
}

func (q *Queue) dequeue() (it item, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return item{}, false
	}
	it = q.dequeueLocked()
	if it.head.batch == q.gone && it.head.spoiled == Stored {
		// An earlier record was lost. The writer that stores this one needs to know, because the reports may be with
		// it.
		it.head.spoiled = q.goneTo
		it.record[flagsAt] = it.head.flags()
	}
	return it, true
}

// move moves reports and points in the account.
func (q *Queue) move(from, to Stage, reports, points uint64) {
	if q.opt.Account != nil && reports|points > 0 {
		q.opt.Account.Move(from, to, reports, points)
	}
}

// Stats may be called at any time.
func (q *Queue) Stats() QueueStats {
	q.mu.Lock()
	s := q.stats
	s.Batches, s.Bytes, s.Failing = len(q.waiting), q.bytes, q.failing || q.tickFailing
	s.Rejecting = q.clean < cleanBatches
	s.Evicting = !q.evicted.IsZero() && time.Since(q.evicted) < recent
	s.Dropping = !q.overflow.IsZero() && time.Since(q.overflow) < recent
	q.mu.Unlock()
	if q.opt.Spool != nil {
		st := q.opt.Spool.Stats()
		s.Spool = &st
	}
	if q.opt.Refused != nil {
		st := q.opt.Refused.Stats()
		s.Refused = &st
	}
	return s
}

// Close takes no more batches and writes those that wait, until ctx ends. What is not stored by then stays in the spool;
// without one it is dropped and counted. With policy Drop a store that fails is not waited for when there is a spool. Close ends
// what Start began and closes writer and spool.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	q.closed = true
	q.mu.Unlock()
	close(q.closing)
	if q.cancel != nil {
		stop := context.AfterFunc(ctx, q.cancel)
		<-q.spooled
		<-q.done
		stop()
		q.cancel()
	}
	to := DroppedMemory
	if q.opt.Spool != nil {
		to = DroppedDisk
	}
	for it, ok := q.dequeue(); ok; it, ok = q.dequeue() {
		q.dropped(&it, to)
	}
	var err error
	if q.opt.Spool != nil {
		err = q.opt.Spool.Close()
	}
	return errors.Join(q.writer.Close(), err)
}

// dropped counts a record that was in memory.
func (q *Queue) dropped(it *item, to Stage) {
	q.mu.Lock()
	q.stats.BatchesDropped++
	q.stats.PointsDropped += it.head.points
	q.gone, q.goneTo = it.head.batch, to
	fire := q.settleLocked(1, false)
	q.mu.Unlock()
	q.move(InMemory, to, it.reports, it.head.points)
	reportMarks(fire)
}
