package sink

import (
	"context"
	"errors"
	"time"

	"github.com/hopscope/hopscope/ingest/retry"
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

// spoolOne puts one batch into the spool, or else into the store directly. It stops when ctx ends.
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
		it.before = q.opt.Spool.End()
		retry := time.NewTimer(spoolRetry)
		select {
		case q.direct <- it:
			retry.Stop()
			return true
		case <-retry.C:
		case <-ctx.Done():
			retry.Stop()
			q.dropped(&it, DroppedDisk)
			return false
		}
	}
}

// countLost takes what the spool evicted or could not read out of the account's spool.
func (q *Queue) countLost() {
	lost := q.opt.Spool.DrainLost()
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
		p, ok := q.next(ctx, buf)
		if !ok {
			all = ctx.Err() == nil
			break
		}
		if p.record != nil {
			buf = p.record
		}
		if !q.write(ctx, p) {
			break
		}
	}
	q.endAsides(ctx)
	if q.held != nil {
		q.dropped(q.held, DroppedDisk)
		q.held = nil
	}
	if q.stager != nil {
		q.flushLast(ctx)
		q.settle()
	}
	all = all && len(q.staged) == 0
	// No further record of an unfinished batch comes. Its records on disk are left to the next run, unless their
	// outcome is known now.
	q.finish(all)
	for _, s := range q.staged {
		switch {
		case s.onDisk: // it stays there
		case q.stager == nil && s.settled(q.stores): // what came before it was not
			q.open = append(q.open[:0], s)
			q.finish(true)
		case s.pending > 0 && q.opt.Spool != nil:
			q.dropped(&s.item, DroppedDisk)
		default:
			q.dropped(&s.item, DroppedMemory)
		}
	}
	q.staged = nil
}

// flushLast makes a Stager store what it gathered, at the end of the queue. Policy Block tries again until ctx ends.
func (q *Queue) flushLast(ctx context.Context) {
	wait := retry.Backoff{Min: q.conf.RetryMin, Max: q.conf.RetryMax, Spread: 1, Rand: q.opt.Rand}
	for {
		err := q.stager.Flush(ctx)
		if err == nil {
			return
		}
		q.failed(err)
		if !q.patient() || !wait.Sleep(ctx) {
			return
		}
	}
}

// next waits for the next piece to write, from the spool, or from memory without one, or set aside and due.
func (q *Queue) next(ctx context.Context, buf []byte) (*piece, bool) {
	var tick <-chan time.Time
	if q.stager != nil {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		tick = ticker.C
	}
	for ctx.Err() == nil {
		if p, ok := q.popFront(); ok {
			if p != nil {
				return p, true
			}
			continue
		}
		due, wait := q.dueAside(time.Now())
		if due != nil && q.credit >= 0 {
			return due, true
		}
		ended := q.ended() // before the last look
		if q.asideFull() && (q.opt.Spool != nil || !ended) {
			switch {
			case due != nil:
				return due, true
			case ended && !q.patient():
				return nil, false // the rest stays in the spool
			}
			q.awaitAside(ctx, wait, ended)
			continue
		}
		if it, ok := q.nextRecord(buf); ok {
			if p := q.admit(&it); p != nil {
				return p, true
			}
			continue
		}
		if due != nil {
			return due, true
		}
		if ended && (wait == 0 || !q.patient()) {
			return nil, false
		}
		q.await(ctx, tick, wait, ended)
	}
	return nil, false
}

// popFront removes the first of the records that came while an earlier one failed, and returns the part of it that may be
// written now; nil if none. It returns false if there is no such record.
func (q *Queue) popFront() (*piece, bool) {
	if len(q.front) == 0 {
		return nil, false
	}
	p := q.front[0]
	q.front = q.front[1:]
	return q.behindAsides(p), true
}

// behindAsides sets aside the part of a piece that has to stay behind others that are, and returns the rest; nil if
// nothing is left.
func (q *Queue) behindAsides(p *piece) *piece {
	return q.behind(p, q.asides, func(late *piece) {
		for _, late := range q.separate(late) {
			q.putAside(late, nil)
		}
	})
}

// patient reports whether Close waits for what the store fails for.
func (q *Queue) patient() bool { return q.opt.Policy == Block }

// noMore returns a channel that is closed when no further record comes beyond those that are there.
func (q *Queue) noMore() <-chan struct{} {
	if q.opt.Spool != nil {
		return q.spooled
	}
	return q.closing
}

// ended reports whether no further record comes beyond those that are there.
func (q *Queue) ended() bool {
	select {
	case <-q.noMore():
		return true
	default:
		return false
	}
}

// nextRecord returns the next record, if there is one.
func (q *Queue) nextRecord(buf []byte) (item, bool) {
	if q.opt.Spool == nil {
		return q.dequeue()
	}
	if q.held == nil || q.opt.Spool.Passed() < q.held.before {
		rec, err := q.opt.Spool.Read(buf)
		q.countLost()
		if err == nil {
			it := itemOf(rec.Payload)
			if it.unknown {
				it.head.points = rec.Points
			}
			it.reports, it.end, it.onDisk = rec.Reports, rec.End, true
			it.extra = it.head.points - min(rec.Points, it.head.points) // version 1 did not say
			if q.opt.Account != nil && it.head.batch < q.began {
				q.opt.Account.Carry(0, it.extra, it.head.series)
			}
			return it, true
		}
	}
	if q.held != nil {
		it := *q.held
		q.held = nil
		return it, true
	}
	return item{}, false
}

// await waits until there may be something to write, at most for limit; 0 sets no limit. ended is the state that next
// saw.
func (q *Queue) await(ctx context.Context, tick <-chan time.Time, limit time.Duration, ended bool) {
	var due <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		due = timer.C
	}
	var news <-chan struct{} = q.arrived
	end, ask := q.noMore(), q.ask
	if q.opt.Spool != nil {
		news, ask = q.opt.Spool.Ready(), nil
	}
	if ended {
		end = nil
	}
	select {
	case <-news:
	case it := <-q.direct:
		q.held = &it // one that came before it may have gone to the spool in this moment
	case <-tick:
		q.tick(ctx)
	case <-ask:
		q.flush(ctx)
	case <-due:
	case <-end:
	case <-ctx.Done():
	}
}

// awaitAside waits for limit for a piece that was set aside, and takes nothing else. ended is the state that next saw.
func (q *Queue) awaitAside(ctx context.Context, limit time.Duration, ended bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	end := q.noMore()
	if ended {
		end = nil
	}
	select {
	case <-timer.C:
	case <-end:
	case <-ctx.Done():
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

// write tries until a record is stored, refused or set aside. It returns false when the queue has to end before that.
func (q *Queue) write(ctx context.Context, p *piece) bool {
	err := q.try(ctx, p)
	if err == nil || Permanent(err) {
		q.written(p, err)
		return true
	}
	switch {
	case ctx.Err() != nil:
		return false
	case p.aside:
		q.noteFailure(p, err)
		return true
	case othersPassed(err), doubtful(err) && p.err != nil && p.passes != q.passes: // it failed, another passed, and it fails again
		q.setAside(p, err)
		return true
	}
	return q.persist(ctx, p, err)
}

// try writes a record once. After an error p holds only the part that is left.
func (q *Queue) try(ctx context.Context, p *piece) (err error) {
	start := time.Now()
	if p.s.unknown {
		err = &PermanentError{Err: errors.New("the spool holds a record that this version of the program cannot read")}
	} else {
		err = q.writer.WriteEncoded(ctx, p.payload)
	}
	q.spend(p, time.Since(start))
	if errors.Is(err, ErrNothing) {
		p.nothing = true
		return nil
	}
	if q.opt.Observe != nil {
		q.opt.Observe(time.Since(start), err)
	}
	if re, ok := errors.AsType[*RetryError](err); ok && re.Rest != nil {
		if len(re.Refused) > 0 {
			q.refuse(p, &PermanentError{Err: errors.New(re.Refused[0].Reason), Refused: re.Refused})
		}
		p.payload, p.points, p.series, p.apart = re.Rest.Payload, re.Rest.Points, re.Rest.Series, true
		if q.places > 0 {
			if p.keys = nil; p.aside {
				q.learnKeys(p) // others stay behind it
			}
		}
		if re.Progress {
			q.passes++
		}
	}
	return err
}

// othersPassed reports whether a store failed for a part of a record and took another part.
func othersPassed(err error) bool {
	re, ok := errors.AsType[*RetryError](err)
	return ok && re.Rest != nil && re.Doubt && re.Progress
}

// persist tries a record again until it is stored or refused, or another one passes. A pass shows that the store is
// there, and the failed record is set aside. As long as nothing passes, records keep their order.
func (q *Queue) persist(ctx context.Context, p *piece, err error) bool {
	wait := retry.Backoff{Min: q.conf.RetryMin, Max: q.conf.RetryMax, Spread: 1, Rand: q.opt.Rand}
	suspects := suspects{list: []*piece{p}}
	p.err, p.passes = err, q.passes
	for ctx.Err() == nil {
		q.failed(err)
		re, _ := errors.AsType[*RetryError](err)
		if re != nil && re.Progress {
			q.setFailing(false)
			wait.Reset()
		} else {
			q.setFailing(true)
		}
		suspects.probes = 0
		suspects.doubt = q.parter != nil && doubtful(err)
		passed, on := q.pause(ctx, &wait, err, &suspects)
		if passed {
			for _, s := range suspects.list {
				q.setAside(s, err)
			}
			return true
		}
		if !on {
			break
		}
		err = q.try(ctx, p)
		if othersPassed(err) {
			q.setFailing(false)
			q.setAside(p, err)
		} else if err != nil && !Permanent(err) {
			continue
		} else {
			q.written(p, err)
		}
		q.front = append(suspects.list[1:], q.front...)
		return true
	}
	return false
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

// pause waits before the next try: a random time below a bound that doubles, and at least as long as the store asked
// for. If the last record is in doubt, it meanwhile probes with other records, and passed reports whether one passed.
// Closing the queue ends the wait and shortens later ones. On is false when there is to be no next try. A closed queue
// with a spool makes none, unless it is patient.
func (q *Queue) pause(ctx context.Context, backoff *retry.Backoff, err error, s *suspects) (passed, on bool) {
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
	var ended, news <-chan struct{} = nil, q.arrived
	if q.opt.Spool != nil {
		news = q.opt.Spool.Ready()
		if !q.patient() {
			ended = q.spooled
		}
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
		if q.probe(ctx, s) {
			return true, true
		}
		if !s.doubt || s.probes >= maxProbes {
			news = nil
		}
		select {
		case <-news:
		case <-timer.C:
			return false, true
		case <-tick:
			q.tick(ctx)
		case <-ended:
			return false, false
		case <-closing:
			if ended == nil {
				return false, true
			}
			closing = nil // and ended follows
		case <-ctx.Done():
			return false, false
		}
	}
}

// admit adds a record to those that have come, and returns the part that may be written now; nil if none.
func (q *Queue) admit(it *item) *piece {
	s := &staged{item: *it, to: Stored}
	q.trackBatch(&it.head)
	if it.head.last {
		s.to = q.track.spoiled
	}
	p := q.pieceOf(s, it.payload, it.head.points, it.head.series)
	p.record = it.record
	s.record, s.payload = nil, nil // the piece has it
	q.staged = append(q.staged, s)
	return q.behindAsides(p)
}

// written notes that the writer took or refused a record, or the part of it that was left.
func (q *Queue) written(p *piece, err error) {
	if !p.nothing {
		q.mu.Lock()
		q.failing, q.stats.Config = false, false
		if err == nil {
			q.stats.Writes++
		}
		q.mu.Unlock()
		q.passes++
	}
	none := false
	if err != nil {
		none = q.refuse(p, err) >= p.points
	}
	if !none {
		q.stores++
	}
	if next := q.nextOf(p); next != nil && p.aside { // its place is there: it has not failed yet
		next.last, next.began = time.Now(), time.Time{}
	}
	q.endPiece(p)
	q.settle()
}

// endPiece takes a piece off its record.
func (q *Queue) endPiece(p *piece) {
	s := p.s
	s.pending--
	s.write = q.stores
	q.unset(p)
	if s.pending == 0 && s.head.last && !q.track.rejected {
		q.mu.Lock()
		q.clean = min(q.clean+1, cleanBatches)
		q.mu.Unlock()
	}
}

// trackBatch notes whether a record of the batch was lost before this one.
func (q *Queue) trackBatch(h *recordHead) {
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

// refuse counts the points of a record that the store refused, and keeps them. It returns their number.
func (q *Queue) refuse(p *piece, err error) uint64 {
	pe, _ := errors.AsType[*PermanentError](err)
	groups := pe.Refused
	if len(groups) == 0 { // all, or it is unknown which
		groups = []Refusal{{Payload: p.payload, Points: p.points, Series: p.series, Reason: err.Error()}}
		if n := uint64(max(pe.Rejected, 0)); n > 0 && n < p.points {
			groups[0].Points, groups[0].Series = n, nil
		}
	}
	s := p.s
	now := time.Now()
	entry := RefusedEntry{Time: now, Sink: q.name, Target: q.opt.Target, Batch: s.head.batch, Part: s.head.part, Groups: groups}
	if entry.Batch == 0 {
		entry.Batch = uint64(now.UnixNano())
	}
	n := uint64(0)
	for _, g := range groups {
		n += g.Points
		for _, c := range g.Series {
			s.refused = AddSeries(s.refused, c.Series, c.Points)
		}
	}
	n = min(n, p.points)
	s.refusals++
	s.rejected = min(s.rejected+n, s.head.points)
	if s.head.batch == q.track.batch {
		q.track.rejected = true
	}
	q.mu.Lock()
	q.clean = 0
	q.stats.PointsRejected += n
	q.stats.LastError, q.stats.LastErrorTime = err.Error(), now
	q.stats.LastRefusal = Refused{Time: now, Points: n, Of: s.head.points, Reason: groups[0].Reason}
	q.mu.Unlock()
	if q.opt.Refused != nil {
		_ = q.opt.Refused.Put(&entry) // which counts what it could not keep
	}
	return n
}

// settle takes from the staged records those that are stored by now. The records of a batch leave the spool together,
// with the last of them. After a crash, all records that decide the stage of its reports are thus read again.
func (q *Queue) settle() {
	stored := q.stores
	if q.stager != nil {
		stored = q.stager.Stored()
	}
	n := 0
	for ; n < len(q.staged) && q.staged[n].settled(stored); n++ {
		s := q.staged[n]
		if len(q.open) > 0 && q.open[0].head.batch != s.head.batch {
			q.finish(true) // its last record was lost
		}
		if q.open = append(q.open, s); s.head.last {
			q.finish(true)
		}
	}
	clear(q.staged[:n])
	q.staged = append(q.staged[:0], q.staged[n:]...)
}

// finish settles the records of a batch. Without all, those that are on disk stay there.
func (q *Queue) finish(all bool) {
	var reports, known, extra, rejected uint64 // of those on disk
	var end spool.Position
	to, onDisk := q.reportsTo(), false
	inMemory := uint64(0)
	for _, s := range q.open {
		if s.onDisk && !all {
			continue
		}
		q.account(s)
		if !s.onDisk {
			inMemory++
			q.move(InMemory, to, s.reports, 0)
			q.move(InMemory, Stored, 0, s.head.points-s.rejected)
			q.move(InMemory, Rejected, 0, s.rejected)
			continue
		}
		reports += s.reports
		known, extra, rejected = known+s.head.points-s.extra, extra+s.extra, rejected+s.rejected
		end, onDisk = s.end, true
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

// reportsTo is where the reports of the open batch end.
func (q *Queue) reportsTo() Stage {
	to := Stored
	for _, s := range q.open {
		if s.refusals > 0 && to == Stored {
			to = Rejected
		}
		if s.head.last && s.to != Stored {
			to = s.to
		}
	}
	return to
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
