package sink

import (
	"context"
	"errors"
)

// mark is a point up to which a caller asks what became of the records.
type mark struct {
	after uint64 // as many records
	f     func(ok bool)
	ok    bool
}

// ErrSpooled is returned by a queue with a spool. The spool survives the end of the process, so no caller has to wait
// for the store.
var ErrSpooled = errors.New("sink: a queue with a spool does not report when the store has everything")

// Settled calls f once the outcome of everything put before is known. With ok, the store has it, or refused it for
// good, which is counted. A [Stager] has then written its files. Without ok, something was dropped, now or earlier;
// what Put returned an error for does not count. A reader of a log need not read again what it put before the last
// Settled with ok. A goroutine of the queue calls f in the order of the calls of Settled, perhaps before Settled
// returns. It must not be blocked.
//
// It is for queues without a spool; the others return [ErrSpooled].
func (q *Queue) Settled(f func(ok bool)) error {
	if q.opt.Spool != nil {
		return ErrSpooled
	}
	q.mu.Lock()
	q.marks = append(q.marks, mark{after: q.put, f: f})
	fire := q.settleLocked(0, true)
	q.mu.Unlock()
	reportMarks(fire)
	return nil
}

// Flush waits until the outcome of everything put before is known. It makes a [Stager] store what it gathered at once
// rather than when due. It returns [ErrDropped] if anything was ever dropped, and [ErrSpooled] for a queue with a
// spool.
func (q *Queue) Flush(ctx context.Context) error {
	done := make(chan bool, 1)
	if err := q.Settled(func(ok bool) { done <- ok }); err != nil {
		return err
	}
	if q.stager != nil {
		select {
		case q.ask <- struct{}{}:
		default: // another caller has asked, and is not answered yet
		}
	}
	select {
	case ok := <-done:
		if !ok {
			return ErrDropped
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ErrDropped is returned when a record was dropped that the store does not have.
var ErrDropped = errors.New("sink: something was dropped before the store had it")

// flush stores what a Stager gathered. Nothing waits in memory. What fails is tried again at the next tick.
func (q *Queue) flush(ctx context.Context) {
	err := q.stager.Flush(ctx)
	if err != nil {
		q.failed(err)
	}
	q.flushing = err != nil
	q.mu.Lock()
	q.tickFailing = err != nil
	q.mu.Unlock()
	q.settle()
}

// settleRecords notes that n more records are stored or refused.
func (q *Queue) settleRecords(n uint64) {
	if n == 0 {
		return
	}
	q.mu.Lock()
	fire := q.settleLocked(n, true)
	q.mu.Unlock()
	reportMarks(fire)
}

// settleLocked notes the outcome of n more records, and returns the marks that are due, for reportMarks. Records that
// are not dropped are settled in the order in which they came.
func (q *Queue) settleLocked(n uint64, ok bool) (due []mark) {
	q.settledOf += n
	q.lost = q.lost || !ok
	for len(q.marks) > 0 && q.marks[0].after <= q.settledOf {
		m := q.marks[0]
		m.ok = !q.lost
		due = append(due, m)
		q.marks = q.marks[1:]
	}
	return due
}

// reportMarks is called without locks.
func reportMarks(due []mark) {
	for _, m := range due {
		m.f(m.ok)
	}
}
