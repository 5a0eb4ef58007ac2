package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/state"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/retry"
)

// task processes the records of a partition. One goroutine calls its methods.
type task interface {
	// add takes the next record. Before it returns, it hands the results to the stores and to Kafka. An error means
	// that this failed, and ends the worker.
	add(ctx context.Context, r *fleet.Record) error
	// due does what is due at a time. It is called again and again while there is nothing to read.
	due(ctx context.Context, now time.Time) error
	// floor returns the lowest offset that is needed to go on from the present state.
	floor() int64
	// gone notes that retention removed unread records before an offset.
	noteHole(to int64)
	// label is that of the last window that was published, 0 if there is none.
	label() int64
	// appendState and readState are for checkpoints.
	appendState(b []byte) []byte
	readState(b []byte) error
	// report fills in the values that only this task has.
	report(s *partitionStatus)
}

// keeper is a task that keeps a state beside its checkpoints, for its return after a program of another version.
type keeper interface {
	// asideName is the name of the format that this version can read. The state to keep is asideState. The kept one
	// goes to readAside, and readState may use it.
	asideName() string
	asideState() []byte
	readAside(b []byte)
}

// asideEvery is how often that state is kept, beside the end of each tenure.
const asideEvery = 5 * time.Minute

// tenure is the time for which the consumer owns the partitions of a generation.
type tenure struct {
	*ingest.Generation
	ctx    context.Context    // ends when the partitions are lost, or draining has taken too long
	cancel context.CancelFunc // ends it
	read   context.Context    // ends when there is to be no more reading
	stop   context.CancelFunc // ends it
	limit  context.Context    // of draining; set before read ends
}

// worker reads one partition for as long as the consumer owns it.
type worker struct {
	*tenure
	c          *Consumer
	topic      string // with the prefix
	kind       string // without
	partition  int
	store      int // partition of topic state
	task       task
	keep       *checkpoints
	reader     ingest.LogReader
	done       chan struct{}
	next       time.Time // checkpoint
	setAside   time.Time // when what is kept beside checkpoints was written last
	saving     chan error
	rewriteTo  int64 // windows up to this label are written again, as --from asks for
	status     *shared[partitionStatus]
	errorLimit limiter
}

// errDropped is returned when a store lost points that it had taken, because the process is ending.
var errDropped = errors.New("a store did not confirm what was written")

// run works until there is to be no more reading. Then it drains, unless the partition was lost.
func (w *worker) run() {
	defer close(w.done)
	wait := retry.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	for w.read.Err() == nil {
		err := w.work()
		if err == nil || w.read.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				w.noteError(err)
			}
			break
		}
		// What was done is done again, from the last checkpoint.
		w.noteError(err)
		w.status.change(func(s *partitionStatus) { s.restarts++ })
		wait.Sleep(w.read)
	}
	w.status.change(func(s *partitionStatus) { s.held = false })
}

func (w *worker) noteError(err error) {
	w.status.change(func(s *partitionStatus) { s.lastError = err.Error() })
	if w.errorLimit.allow(w.c.opt.Now()) {
		w.c.log.Warn("a partition fails", "topic", w.topic, "partition", w.partition, "error", err.Error())
	}
}

// begin restores the task and finds out where to read.
func (w *worker) begin(ctx context.Context) error {
	task, err := w.c.newTask(w)
	if err != nil {
		return err
	}
	w.task = task
	k, keeps := task.(keeper)
	if keeps {
		w.keep.aside = k.asideName()
	}
	first, next, err := w.c.opt.Kafka.Bounds(ctx, w.topic, w.partition)
	if err != nil {
		return err
	}
	last, err := w.keep.read(ctx, w.noteError)
	if err != nil {
		return err
	}
	offset := first
	restart := w.c.from(w.topic, w.partition)
	if restart {
		if offset, err = w.c.offsetFrom(ctx, w.topic, w.partition); err != nil {
			return err
		}
		// What no checkpoint has yet is to be published anyway.
		restart = last == nil || last.offset > offset
	}
	w.rewriteTo = 0
	if restart {
		if r, ok := w.task.(rewriter); ok {
			if err := r.rewrite(w.c.opt.From.UnixNano(), last); err != nil {
				w.noteError(fmt.Errorf("checkpoint of generation %d is not used: %w", last.generation, err))
			}
		}
	} else if offset = first; last != nil {
		if keeps {
			k.readAside(last.aside)
		}
		if err := w.task.readState(last.state); err != nil {
			// What was published before is published again, which changes nothing as long as the log has it all.
			w.noteError(fmt.Errorf("checkpoint of generation %d is not used, and the partition is read from its oldest record: %w", last.generation, err))
			if w.task, err = w.c.newTask(w); err != nil {
				return err
			}
		} else if offset = last.offset; offset < first {
			w.noteError(fmt.Errorf("records from offset %d, where the last checkpoint goes on, to %d are gone: topic %s keeps its records for too short a time; raise its retention.ms (hopscope kafka topics)", offset, first-1, w.topic))
			w.status.change(func(s *partitionStatus) { s.Gone += uint64(first - offset) })
			w.task.noteHole(first)
			offset = first
		}
	}
	if offset > next { // another topic of the same name
		w.noteError(fmt.Errorf("the last checkpoint goes on at offset %d, and the partition ends at %d: it was made anew, and is read from its oldest record", offset, next))
		if w.task, err = w.c.newTask(w); err != nil {
			return err
		}
		offset = first
	}
	if last == nil && first > 0 {
		w.task.noteHole(first)
	}
	w.reader = w.c.opt.Kafka.Reader(w.topic, w.partition, offset)
	w.next = w.c.opt.Now().Add(w.c.cfg.Checkpoint)
	w.saving = nil
	w.status.change(func(s *partitionStatus) {
		w.task.report(s)
		s.held, s.Offset, s.Generation, s.confirmed = true, offset, w.ID, s.Delivered
	})
	return nil
}

// rewriter is a task that can publish windows again.
type rewriter interface {
	// rewrite begins a run that publishes windows from a time on again. last is the former checkpoint, or nil. The
	// error names the part of it that is of no use.
	rewrite(from int64, last *checkpoint) error
}

// work reads until read ends, or something fails.
func (w *worker) work() error {
	if err := w.begin(w.read); err != nil {
		return err
	}
	for w.read.Err() == nil {
		messages, err := w.reader.Next(w.read)
		if w.read.Err() != nil {
			break
		}
		if err != nil {
			w.status.change(func(s *partitionStatus) { s.readErrors++ })
			w.noteError(err)
			w.passedOver(err)
			retry.Sleep(w.read, 50*time.Millisecond)
			continue
		}
		// What was read is finished even if reading ends meanwhile: w.ctx ends it where it has to end at once.
		for i := range messages {
			if err := w.handle(w.ctx, &messages[i]); err != nil {
				return err
			}
		}
		now := w.c.opt.Now()
		if caughtUp := w.reader.Offset() >= w.reader.High(); caughtUp {
			if err := w.task.due(w.ctx, now); err != nil {
				return err
			}
		}
		w.c.beats.Add(1)
		w.report(now)
		if err := w.save(now); err != nil {
			return err
		}
	}
	if w.ctx.Err() != nil {
		return nil
	}
	return w.drain(w.limit)
}

// passedOver notes what the reader went on behind.
func (w *worker) passedOver(err error) {
	var gap interface{ Removed() (from, to int64) }
	if !errors.As(err, &gap) {
		return
	}
	if from, to := gap.Removed(); to > from {
		w.status.change(func(s *partitionStatus) { s.Gone += uint64(to - from) })
		w.task.noteHole(to)
	}
}

// handle parses one record and passes it to the task.
func (w *worker) handle(ctx context.Context, m *ingest.Message) error {
	w.status.change(func(s *partitionStatus) { s.records++; s.Bytes += uint64(len(m.Value)) })
	h, err := fleet.ReadHead(m.Head)
	if err != nil {
		unknown := errors.Is(err, state.ErrVersion)
		w.status.change(func(s *partitionStatus) {
			if unknown {
				s.Unknown++
			} else {
				s.refused++
			}
		})
		w.noteError(fmt.Errorf("record at offset %d is passed over: %w", m.Offset, err))
		return nil
	}
	if ahead := time.Duration(h.End - w.c.opt.Now().UnixNano()); ahead > w.c.farAhead() {
		w.status.change(func(s *partitionStatus) { s.refused++ })
		w.noteError(fmt.Errorf("record of %q at offset %d is passed over: its window, to %s, lies %v ahead of this machine's clock", h.From, m.Offset, windowName(h.End), ahead.Round(time.Second)))
		return nil
	}
	return w.task.add(ctx, &fleet.Record{Offset: m.Offset, Head: h, Value: m.Value, Time: m.Time})
}

// farAhead is the distance ahead of the clock from which on nothing of windows is taken. Members whose clock is off by more than a
// window do not work, so no honest member is in one. If such a window closed, all that come before it would be late, or too old to be
// corrected.
func (c *Consumer) farAhead() time.Duration {
	return time.Minute + time.Duration(c.cfg.Patience+2)*c.opt.Params.Window
}

func (w *worker) report(now time.Time) {
	w.status.change(func(s *partitionStatus) {
		s.Offset, s.lag = w.reader.Offset(), max(0, w.reader.High()-w.reader.Offset())
		s.Label = max(s.Label, w.task.label())
		s.Updated = now
		w.task.report(s)
	})
}

// save makes a checkpoint when it is time for one. It does not wait: a snapshot is taken now, and written once everything
// that came before was confirmed.
func (w *worker) save(now time.Time) error {
	if w.saving != nil {
		select {
		case err := <-w.saving:
			w.saving = nil
			if err != nil {
				return err
			}
		default:
			return nil
		}
	}
	if now.Before(w.next) || w.rewriting() {
		return nil
	}
	w.next = now.Add(w.c.cfg.Checkpoint)
	p := w.snapshot(now.Sub(w.setAside) >= asideEvery)
	if p.aside != nil {
		w.setAside = now
	}
	saving := make(chan error, 1)
	w.saving = saving
	settled := make(chan bool, 1)
	if err := w.c.settled(func(ok bool) { settled <- ok }); err != nil {
		return err
	}
	go func() {
		select {
		case ok := <-settled:
			if !ok {
				saving <- errDropped
				return
			}
			saving <- w.commit(w.ctx, p)
		case <-w.ctx.Done():
			saving <- w.ctx.Err()
		}
	}()
	return nil
}

// snapshot returns the present state, with aside that kept beside it.
func (w *worker) snapshot(aside bool) *checkpoint {
	var s partitionStatus
	w.task.report(&s)
	p := &checkpoint{generation: int64(w.ID), offset: w.task.floor(), label: w.task.label(), state: w.task.appendState(nil), delivered: s.Delivered}
	if k, ok := w.task.(keeper); ok && aside {
		p.aside = k.asideState()
	}
	return p
}

// commit writes a checkpoint of the confirmed state, then commits the offset to the group.
func (w *worker) commit(ctx context.Context, p *checkpoint) error {
	if err := w.keep.write(ctx, p); err != nil {
		return err
	}
	w.status.change(func(s *partitionStatus) {
		s.checkpoints++
		s.committed = p.offset
		s.stateBytes = len(p.state)
		s.confirmed = p.delivered
	})
	w.c.fromDone(w.topic, w.partition)
	if err := w.Commit(ctx, w.topic, w.partition, p.offset); err != nil {
		if w.ctx.Err() == nil {
			w.noteError(err) // the checkpoint counts; the group's offset is for observers
		}
	}
	return nil
}

// drain waits until all that was published is confirmed, and keeps a last checkpoint.
func (w *worker) drain(ctx context.Context) error {
	if w.saving != nil {
		select {
		case err := <-w.saving:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("draining: %w", context.Cause(ctx))
		}
	}
	p := w.snapshot(true)
	if err := w.c.series.Flush(ctx); err != nil {
		return fmt.Errorf("draining: %w", err)
	}
	if w.rewriting() {
		return nil // the checkpoint that is there is ahead of this
	}
	return w.commit(ctx, p)
}

// rewriting reports whether windows are published again that a checkpoint is ahead of.
func (w *worker) rewriting() bool {
	return w.c.from(w.topic, w.partition) && w.task.label() < w.rewriteTo
}
