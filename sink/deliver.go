package sink

import (
	"context"
	"errors"
	"time"

	"github.com/hopscope/hopscope/ingest/retry"
	"github.com/hopscope/hopscope/sink/refused"
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
		it, ok := q.dequeue()
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
			if it, ok := q.dequeue(); ok { // it came while the queue was being closed
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
			q.move(InMemory, OnDisk, it.reports, it.head.points)
			err = q.opt.Spool.Append(it.reports, it.head.points, it.record)
			q.countLost()
			if err == nil {
				return true
			}
			q.move(OnDisk, InMemory, it.reports, it.head.points)
		}
		if errors.Is(err, spool.ErrTooLarge) {
			q.dropped(&it, DroppedDisk)
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
			q.dropped(&it, DroppedDisk)
			return false
		}
	}
}

// countLost takes what the spool evicted or could not read out of the account's spool.
func (q *Queue) countLost() {
	lost := q.opt.Spool.TakeLost()
	if lost.Reports|lost.Points == 0 {
		return
	}
	q.move(OnDisk, DroppedDisk, lost.Reports, lost.Points)
	evicted := q.opt.Spool.Stats().EvictedRecords
	q.mu.Lock()
	if evicted > q.evictions {
		q.evictions, q.evicted = evicted, time.Now()
	}
	q.mu.Unlock()
}

// deliver writes batches until there is none left and the queue is closed.
func (q *Queue) deliver(ctx context.Context) {
	defer close(q.done)
	var buf []byte
	all := false // that ever came was written
	for {
		it, ok := q.next(ctx, buf)
		if !ok {
			all = ctx.Err() == nil
			break
		}
		if it.onDisk {
			buf = it.record
		}
		if !q.write(ctx, &it) {
			break
		}
	}
	if q.held != nil {
		q.dropped(q.held, DroppedDisk)
		q.held = nil
	}
	if q.stager != nil {
		err := q.stager.Flush(ctx)
		if err != nil {
			q.failed(err)
		}
		q.settle()
		all = all && len(q.staged) == 0
	}
	// The rest of a batch that has not ended comes no more. Of what is on disk that is left to the next run, unless it
	// is known now.
	q.finish(all)
	for i := range q.staged {
		if s := &q.staged[i]; !s.onDisk { // what is on disk stays there
			q.dropped(&s.item, DroppedMemory)
		}
	}
	q.staged = nil
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
			if it, ok := q.dequeue(); ok {
				return it, true
			}
			if closing == nil {
				return item{}, false
			}
			select {
			case <-q.arrived:
			case <-tick:
				q.tick(ctx)
			case <-q.ask:
				q.flush(ctx)
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
			it := itemOf(rec.Payload)
			it.reports, it.end, it.onDisk = rec.Reports, rec.End, true
			carried := it.head.batch < q.began
			it.extra = it.head.points - min(rec.Points, it.head.points) // version 1 did not say
			if q.opt.Account != nil && carried {
				q.opt.Account.Carry(0, it.extra, it.head.series)
			}
			return it, true
		}
		if q.held != nil {
			it := *q.held
			q.held = nil
			return it, true
		}
		if ended {
			return item{}, false
		}
		select {
		case <-q.opt.Spool.Ready():
		case it := <-q.direct:
			q.held = &it // one that came before it may have gone to the spool in this moment
		case <-q.spooled:
		case <-tick:
			q.tick(ctx)
		case <-ctx.Done():
		}
	}
}

func (q *Queue) tick(ctx context.Context) {
	if q.flushing {
		q.flush(ctx)
		return
	}
	err := q.stager.Tick(ctx, time.Now())
	if err != nil {
		q.failed(err)
	}
	q.mu.Lock()
	q.tickFailing = err != nil
	q.mu.Unlock()
	q.settle()
}

// write tries until the record is stored or refused. It returns false when the queue has to end before that.
func (q *Queue) write(ctx context.Context, it *item) bool {
	wait := retry.Backoff{Min: q.conf.RetryMin, Max: q.conf.RetryMax, Spread: 1, Rand: q.opt.Rand}
	for {
		start := time.Now()
		var err error
		if it.unknown {
			err = &PermanentError{Err: errors.New("the spool holds a record that this version of the program cannot read")}
		} else {
			err = q.writer.WriteEncoded(ctx, it.payload)
		}
		if q.opt.Observe != nil {
			q.opt.Observe(time.Since(start), err)
		}
		if err == nil || Permanent(err) {
			q.written(it, err)
			return true
		}
		if ctx.Err() == nil {
			q.failed(err)
			if re, ok := errors.AsType[*RetryError](err); ok && re.Progress {
				q.setFailing(false)
				wait.Reset()
			} else {
				q.setFailing(true)
			}
			if q.wait(ctx, &wait, err) {
				continue
			}
		}
		if !it.onDisk {
			to := DroppedMemory
			if q.opt.Spool != nil {
				to = DroppedDisk
			}
			q.dropped(it, to)
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
func (q *Queue) wait(ctx context.Context, backoff *retry.Backoff, err error) bool {
	closing := q.closing
	select {
	case <-closing:
		closing = nil
		backoff.Reset()
	default:
	}
	d := backoff.Next()
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

// written notes that the writer took or refused a record.
func (q *Queue) written(it *item, err error) {
	s := staged{item: *it, to: Stored}
	s.record, s.payload = nil, nil // the writer has it
	q.follow(&it.head)
	q.mu.Lock()
	q.failing, q.stats.Config = false, false
	if err == nil {
		q.stats.Writes++
	}
	q.mu.Unlock()
	if err != nil {
		q.refuse(it, &s, err)
	}
	if it.head.last {
		s.to = q.track.spoiled
		q.mu.Lock()
		if q.track.spoiled != Rejected {
			q.clean = min(q.clean+1, cleanBatches)
		}
		q.mu.Unlock()
	}
	q.staged = append(q.staged, s)
	q.settle()
}

// follow notes whether a record of the batch was lost before this one.
func (q *Queue) follow(h *recordHead) {
	if h.batch != q.track.batch || h.batch == 0 {
		q.track = track{batch: h.batch, spoiled: Stored}
	}
	t := &q.track
	if t.spoiled == Stored {
		if t.spoiled = h.spoiled; t.spoiled == Stored && h.part != t.next {
			t.spoiled = DroppedDisk
		}
	}
	t.next = h.part + 1
}

// refuse counts the points of a record that the store refused, and keeps them.
func (q *Queue) refuse(it *item, s *staged, err error) {
	pe, _ := errors.AsType[*PermanentError](err)
	groups := pe.Refused
	if len(groups) == 0 { // all, or nobody knows which
		groups = []Refusal{{Payload: it.payload, Points: it.head.points, Series: it.head.series, Reason: err.Error()}}
		if n := uint64(max(pe.Rejected, 0)); n > 0 && n < it.head.points {
			groups[0].Points, groups[0].Series = n, nil
		}
	}
	now := time.Now()
	entry := refused.Entry{Time: now, Sink: q.name, Target: q.opt.Target, Batch: it.head.batch, Part: it.head.part}
	if entry.Batch == 0 {
		entry.Batch = uint64(now.UnixNano())
	}
	n := uint64(0)
	for _, g := range groups {
		n += g.Points
		group := refused.Group{Points: g.Points, Reason: g.Reason, Payload: g.Payload}
		for _, c := range g.Series {
			s.refused = AddSeries(s.refused, c.Series, c.Points)
			group.Series = append(group.Series, refused.Series{Name: c.Series, Points: c.Points})
		}
		entry.Groups = append(entry.Groups, group)
	}
	n = min(n, it.head.points)
	s.rejected, s.none = n, n == it.head.points
	if q.track.spoiled == Stored {
		q.track.spoiled = Rejected
	}
	q.mu.Lock()
	q.clean = 0
	q.stats.PointsRejected += n
	q.stats.LastError, q.stats.LastErrorTime = err.Error(), now
	q.stats.LastRefusal = Refused{Time: now, Points: n, Of: it.head.points, Reason: groups[0].Reason}
	q.mu.Unlock()
	if q.opt.Refused != nil {
		_ = q.opt.Refused.Put(&entry) // which counts what it could not keep
	}
}

// settle takes from the staged records those that are stored by now. They leave the spool together with the last of
// their batch: what has to be said about its reports is then found again after a crash.
func (q *Queue) settle() {
	n := len(q.staged)
	if q.stager != nil {
		stored := q.stager.Stored()
		for n = 0; n < len(q.staged) && (q.staged[n].none || q.settled < stored); n++ {
			if !q.staged[n].none {
				q.settled++
			}
		}
	}
	for i := range q.staged[:n] {
		s := &q.staged[i]
		if len(q.open) > 0 && q.open[0].head.batch != s.head.batch {
			q.finish(true) // its last record was lost
		}
		if q.open = append(q.open, *s); s.head.last {
			q.finish(true)
		}
	}
	q.staged = append(q.staged[:0], q.staged[n:]...)
}

// finish settles the records of a batch. Without all, those that are on disk stay there.
func (q *Queue) finish(all bool) {
	var reports, known, extra, rejected uint64 // of those on disk
	var end spool.Position
	to, onDisk := Stored, false
	inMemory := uint64(0)
	for i := range q.open {
		s := &q.open[i]
		if s.onDisk && !all {
			continue
		}
		q.account(s)
		if !s.onDisk {
			inMemory++
			q.move(InMemory, s.to, s.reports, 0)
			q.move(InMemory, Stored, 0, s.head.points-s.rejected)
			q.move(InMemory, Rejected, 0, s.rejected)
			continue
		}
		reports += s.reports
		known, extra, rejected = known+s.head.points-s.extra, extra+s.extra, rejected+s.rejected
		end, onDisk = s.end, true
		if s.head.last {
			to = s.to
		}
	}
	q.open = q.open[:0]
	q.settleRecords(inMemory)
	if !onDisk {
		return
	}
	done := q.opt.Spool.Commit(end)
	q.countLost()
	// What was evicted after it was read was counted as lost, and is not.
	q.move(DroppedDisk, OnDisk, reports-min(done.Reports, reports), known-min(done.Points, known))
	points := known + extra
	rejected = min(rejected, points)
	q.move(OnDisk, to, reports, 0)
	q.move(OnDisk, Rejected, 0, rejected)
	q.move(OnDisk, Stored, 0, points-rejected)
}

// account counts the points of a record by series.
func (q *Queue) account(s *staged) {
	q.mu.Lock()
	q.stats.PointsWritten += s.head.points - s.rejected
	q.mu.Unlock()
	if q.opt.Account == nil {
		return
	}
	stored := make([]SeriesCount, 0, len(s.head.series))
	for _, c := range s.head.series {
		for _, r := range s.refused {
			if r.Series == c.Series {
				c.Points -= min(r.Points, c.Points)
			}
		}
		stored = append(stored, c)
	}
	q.opt.Account.End(Stored, stored)
	q.opt.Account.End(Rejected, s.refused)
}
