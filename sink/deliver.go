package sink

import (
	"context"
	"errors"
	"time"

	"github.com/hopscope/hopscope/sink/spool"
)

// spoolRetry is how long a batch that the disk refused waits for the next try.
const spoolRetry = 250 * time.Millisecond

// toSpool carries batches from memory to the spool, until the queue is closed and the memory empty.
func (q *Queue) toSpool(ctx context.Context) {
	defer close(q.spooled)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		it, ok := q.take()
		if ok {
			if !q.spoolOne(ctx, it) {
				return
			}
			continue
		}
		select {
		case <-q.arrived:
		case <-tick.C:
			q.opt.Spool.Sync()
		case <-q.closing:
			if it, ok := q.take(); ok { // it came while the queue was being closed
				if !q.spoolOne(ctx, it) {
					return
				}
				continue
			}
			return
		case <-ctx.Done():
			return
		}
	}
}

// spoolOne finds a place for one batch: the spool, or the store directly. It gives up when ctx ends.
func (q *Queue) spoolOne(ctx context.Context, it item) bool {
	for {
		var err error
		if q.opt.Policy == Drop || q.opt.Spool.Room(len(it.record)) {
			// Moved before the other goroutine can see it.
			q.move(InMemory, OnDisk, it.reports)
			err = q.opt.Spool.Append(it.reports, it.points(), it.record)
			q.countLost()
			if err == nil {
				return true
			}
			q.move(OnDisk, InMemory, it.reports)
		}
		if errors.Is(err, spool.ErrTooLarge) {
			q.dropped(it.points(), DroppedDisk, it.reports)
			return true
		}
		again := time.NewTimer(spoolRetry)
		select {
		case q.direct <- it:
			again.Stop()
			return true
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			q.dropped(it.points(), DroppedDisk, it.reports)
			return false
		}
	}
}

// countLost takes what the spool evicted or could not read out of the account's spool.
func (q *Queue) countLost() {
	q.move(OnDisk, DroppedDisk, q.opt.Spool.TakeLost().Reports)
}

// deliver writes batches until there is none left and the queue is closed.
func (q *Queue) deliver(ctx context.Context) {
	defer close(q.done)
	var buf []byte
	for {
		it, ok := q.next(ctx, buf)
		if !ok {
			break
		}
		if it.onDisk {
			buf = it.record
		}
		if !q.write(ctx, it) {
			break
		}
	}
	if q.stager != nil {
		err := q.stager.Flush(ctx)
		if err != nil {
			q.failed(err)
		}
		q.settle()
		for _, s := range q.staged {
			if !s.onDisk { // what is on disk stays there
				q.dropped(s.points, DroppedMemory, s.reports)
			}
		}
		q.staged = nil
	}
}

// next waits for a batch: from the spool, or from memory where there is none.
func (q *Queue) next(ctx context.Context, buf []byte) (item, bool) {
	var tick <-chan time.Time
	if q.stager != nil {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		tick = ticker.C
	}
	closing := q.closing
	for {
		if ctx.Err() != nil {
			return item{}, false
		}
		if q.opt.Spool == nil {
			if it, ok := q.take(); ok {
				return it, true
			}
			if closing == nil {
				return item{}, false
			}
			select {
			case <-q.arrived:
			case <-tick:
				q.tick(ctx)
			case <-closing:
				closing = nil // what came before it is taken
			case <-ctx.Done():
			}
			continue
		}

		ended := false
		select {
		case <-q.spooled: // nothing more comes; look once more and go
			ended = true
		default:
		}
		rec, err := q.opt.Spool.Read(buf)
		q.countLost()
		if err == nil {
			return item{record: rec.Payload, reports: rec.Reports, end: rec.End, onDisk: true}, true
		}
		if ended {
			return item{}, false
		}
		select {
		case <-q.opt.Spool.Ready():
		case it := <-q.direct:
			return it, true
		case <-q.spooled:
		case <-tick:
			q.tick(ctx)
		case <-ctx.Done():
		}
	}
}

func (q *Queue) tick(ctx context.Context) {
	err := q.stager.Tick(ctx, time.Now())
	if err != nil {
		q.failed(err)
	}
	q.mu.Lock()
	q.tickFailing = err != nil
	q.mu.Unlock()
	q.settle()
}

// write tries until the batch is stored or refused. It returns false when the queue has to end before that.
func (q *Queue) write(ctx context.Context, it item) bool {
	for attempt := 0; ; attempt++ {
		start := time.Now()
		err := q.writer.WriteEncoded(ctx, it.payload())
		if q.opt.Observe != nil {
			q.opt.Observe(time.Since(start), err)
		}
		if err == nil || Permanent(err) {
			q.written(it, err)
			return true
		}
		if ctx.Err() == nil {
			q.failed(err)
			q.setFailing(true)
			if q.wait(ctx, attempt, err) {
				continue
			}
		}
		if !it.onDisk {
			to := DroppedMemory
			if q.opt.Spool != nil {
				to = DroppedDisk
			}
			q.dropped(it.points(), to, it.reports)
		}
		return false
	}
}

// failed remembers an error that may pass.
func (q *Queue) failed(err error) {
	re, ok := errors.AsType[*RetryError](err)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stats.Retries++
	q.stats.Config = ok && re.Config
	q.stats.LastError, q.stats.LastErrorTime = err.Error(), time.Now()
}

func (q *Queue) setFailing(failing bool) {
	q.mu.Lock()
	q.failing = failing
	q.mu.Unlock()
}

// wait waits before the next try: a random time below a bound that doubles, and at least as long as the store asked
// for. Closing the queue ends the wait, and the waits after that are short. It returns false when there is to be no next
// try, which with a closed queue and a spool is at once.
func (q *Queue) wait(ctx context.Context, attempt int, err error) bool {
	closing := q.closing
	select {
	case <-closing:
		closing, attempt = nil, 0
	default:
	}
	bound := q.conf.RetryMax
	if attempt < 30 {
		bound = min(bound, q.conf.RetryMin<<attempt)
	}
	d := time.Duration(q.opt.Rand() * float64(bound))
	if re, ok := errors.AsType[*RetryError](err); ok {
		d = max(d, re.After)
	}
	var ended <-chan struct{}
	if q.opt.Spool != nil {
		ended = q.spooled
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	var tick <-chan time.Time
	if q.stager != nil {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-timer.C:
			return true
		case <-tick:
			q.tick(ctx)
		case <-ended:
			return false
		case <-closing:
			if q.opt.Spool == nil {
				return true
			}
			closing = nil // and ended follows
		case <-ctx.Done():
			return false
		}
	}
}

// written settles a batch that the writer took or refused.
func (q *Queue) written(it item, err error) {
	points := it.points()
	s := staged{item: it, points: points}
	q.mu.Lock()
	q.failing, q.stats.Config = false, false
	if err == nil {
		q.stats.Writes++
	} else {
		rejected := points
		if pe, ok := errors.AsType[*PermanentError](err); ok && pe.Rejected > 0 {
			rejected = min(points, uint64(pe.Rejected))
		}
		s.refused = rejected == points
		s.points -= rejected
		q.stats.PointsRejected += rejected
		q.stats.LastError, q.stats.LastErrorTime = err.Error(), time.Now()
	}
	q.mu.Unlock()
	if q.stager == nil {
		q.settleOne(&s)
		return
	}
	s.record = it.record[:0:0] // the writer has it
	q.staged = append(q.staged, s)
	q.settle()
}

// settle takes from the staged batches those that are stored by now.
func (q *Queue) settle() {
	stored := q.stager.Stored()
	n := 0
	for n < len(q.staged) && (q.staged[n].refused || q.settled < stored) {
		if !q.staged[n].refused {
			q.settled++
		}
		q.settleOne(&q.staged[n])
		n++
	}
	q.staged = append(q.staged[:0], q.staged[n:]...)
}

func (q *Queue) settleOne(s *staged) {
	to := Stored
	if s.refused {
		to = Rejected
	}
	if s.onDisk {
		q.move(OnDisk, to, q.opt.Spool.Commit(s.end).Reports)
		q.countLost()
	} else {
		q.move(InMemory, to, s.reports)
	}
	q.mu.Lock()
	q.stats.PointsWritten += s.points
	q.mu.Unlock()
}
