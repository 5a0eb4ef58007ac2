package kafka

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/hopscope/hopscope/ingest"
)

// ErrLost is the cause of the end of a term: another member is in charge, or may be.
var ErrLost = errors.New("another member of the fleet is in charge, or may be")

// Term is the time in which one member is in charge. Its methods may be called from anywhere.
type Term struct {
	cfg    *LeadConfig
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the work of the term has ended

	turn chan struct{} // one writes at a time
	next int64         // offset up to which the log was read
	log  history
	base uint32     // the highest epoch of the members in charge before
	mine planRecord // what was written last

	mu      sync.Mutex
	gen     *ingest.Generation // nil while the group shares out anew
	changed chan struct{}      // closed when gen changes
}

func newTerm(ctx context.Context, cfg *LeadConfig, g *ingest.Generation) *Term {
	t := &Term{cfg: cfg, done: make(chan struct{}), turn: make(chan struct{}, 1), gen: g, changed: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	t.turn <- struct{}{}
	t.mine.Writer = rand.Text()
	return t
}

// Number is above that of all terms before it. Switches that elect by numbers can be given it.
func (t *Term) Number() uint64 {
	<-t.turn
	defer func() { t.turn <- struct{}{} }()
	return t.mine.Term
}

// Epoch returns the highest epoch that was ever written.
func (t *Term) Epoch() uint32 {
	<-t.turn
	defer func() { t.turn <- struct{}{} }()
	return t.log.epoch
}

// Plan returns the plan that was written last, by the member then in charge; nil for none.
func (t *Term) Plan() []byte {
	<-t.turn
	defer func() { t.turn <- struct{}{} }()
	return bytes.Clone(t.mine.Plan)
}

// set sets the present generation of the same owner, or none while there is none.
func (t *Term) set(g *ingest.Generation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gen = g
	close(t.changed)
	t.changed = make(chan struct{})
}

// generation waits until there is one.
func (t *Term) generation(ctx context.Context) (*ingest.Generation, error) {
	for {
		t.mu.Lock()
		g, changed := t.gen, t.changed
		t.mu.Unlock()
		if g != nil {
			return g, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("the group shares out anew: %w", ctx.Err())
		}
	}
}

// begin takes the lock, with a context that ends with the term and after the time limit.
func (t *Term) begin(ctx context.Context) (context.Context, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
	stop := context.AfterFunc(t.ctx, cancel)
	end := func() { stop(); cancel() }
	select {
	case <-t.turn:
		if t.ctx.Err() == nil {
			return ctx, func() { end(); t.turn <- struct{}{} }, nil
		}
		t.turn <- struct{}{}
	case <-ctx.Done():
	}
	defer end()
	return nil, nil, t.explain(ctx.Err())
}

// explain makes a loss of what ended a call.
func (t *Term) explain(err error) error {
	switch {
	case t.ctx.Err() != nil:
		return errors.Join(context.Cause(t.ctx), err)
	case err != nil && lost(err):
		err = errors.Join(ErrLost, err)
		t.cancel(err)
	}
	return err
}

// Put writes a plan and its epoch to the log. It returns nil when they are there and the member is still in charge.
// Call it before anything of the plan leaves. It refuses an epoch that was used before this term, or that is below the
// last one. After another error the same plan can be put again.
func (t *Term) Put(ctx context.Context, epoch uint32, plan []byte) error {
	if len(plan) > MaxPlan || !json.Valid(plan) {
		return fmt.Errorf("the plan of epoch %d has %d bytes: want up to %d of JSON", epoch, len(plan), MaxPlan)
	}
	ctx, end, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if epoch <= t.base || epoch < t.mine.Epoch || epoch > maxEpoch {
		return fmt.Errorf("epoch %d: want one above %d, which was used, and up to %d", epoch, max(t.base, t.mine.Epoch), uint32(maxEpoch))
	}
	return t.explain(t.put(ctx, epoch, plan))
}

// Holds returns nil if the member is in charge now, by the group. Call it before anything leaves: after a standstill,
// a process does not know how long that was.
func (t *Term) Holds(ctx context.Context) error {
	ctx, end, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return t.explain(t.confirm(ctx))
}

// confirm asks the group: it takes an offset only from the owner of the partition in its present generation.
func (t *Term) confirm(ctx context.Context) error {
	for {
		g, err := t.generation(ctx)
		if err != nil {
			return err
		}
		err = g.Commit(ctx, t.cfg.Topic, 0, t.next)
		if err == nil || !lost(err) || lost(context.Cause(g.Lost)) { // a generation that ended in order has another cause
			return err
		}
		// The group may be rebalancing, and the heartbeat of this member has not seen that yet. The result shows
		// whether the member still owns the partition. If the group has removed this member, the generation is lost.
		if err := t.other(ctx, g, err); err != nil {
			return err
		}
	}
}

// other waits until the member has another generation than g, of which a commit was refused.
func (t *Term) other(ctx context.Context, g *ingest.Generation, refused error) error {
	for {
		t.mu.Lock()
		now, changed := t.gen, t.changed
		t.mu.Unlock()
		if now != g {
			return nil
		}
		select {
		case <-changed:
		case <-g.Lost.Done():
			t.mu.Lock()
			now = t.gen
			t.mu.Unlock()
			if now == g { // otherwise it has just ended in order
				return refused
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// put writes a record, reads the records before it, and asks the group whether it counts.
//
// Records of others since the term began are of members that were in charge before, if the group confirms this one.
// The group had not confirmed those records. Otherwise they would have been there when the term began. Nothing of them
// has therefore left their members. The record is written above theirs all the same, so that a successor finds it.
func (t *Term) put(ctx context.Context, epoch uint32, plan []byte) error {
	for {
		g, err := t.generation(ctx)
		if err != nil {
			return err
		}
		r := planRecord{Version: recordVersion, Term: t.mine.Term, Generation: g.ID, From: t.cfg.Name, Writer: t.mine.Writer, Epoch: epoch, Plan: plan}
		m, err := r.message()
		if err != nil {
			return err
		}
		at, err := t.cfg.Log.Append(ctx, t.cfg.Topic, 0, m)
		if err != nil {
			return err
		}
		t.mine.Epoch = epoch
		if err := t.read(ctx, at+1); err != nil {
			return err
		}
		if err := t.confirm(ctx); err != nil {
			return err
		}
		t.mine = r
		if l := t.log.last; l == nil || l.Writer == r.Writer {
			return t.forget(ctx)
		}
		t.mine.Term = t.log.term + 1 // not before the group has said so: a member that was given up never writes above its successor
	}
}

// forget removes the keys of members that were in charge before. They are of no use, and their number would grow.
func (t *Term) forget(ctx context.Context) error {
	var gone []ingest.Message
	for key := range t.log.keys {
		if key != t.mine.key() {
			gone = append(gone, ingest.Message{Key: []byte(key)})
		}
	}
	if len(gone) == 0 {
		return nil
	}
	_, err := t.cfg.Log.Append(ctx, t.cfg.Topic, 0, gone...)
	if err == nil {
		for _, m := range gone {
			delete(t.log.keys, string(m.Key))
		}
	}
	return err
}

// read takes what the log has below an offset.
func (t *Term) read(ctx context.Context, to int64) (err error) {
	t.next, err = t.cfg.read(ctx, t.next, to, &t.log)
	return err
}

// read adds the records of the log between two offsets, and returns the next offset. After an error that is the first
// offset, and the records read until then come again.
func (c *LeadConfig) read(ctx context.Context, from, to int64, into *history) (next int64, err error) {
	r := c.Log.Reader(c.Topic, 0, from)
	failed := func(err error) {
		c.Logger.Warn("the plans of the fleet cannot be read, trying again", "error", err.Error())
	}
	err = ingest.ReadTo(ctx, r, to, failed, func(m *ingest.Message) {
		x, err := readRecord(m)
		if err != nil {
			c.Logger.Warn("a record of the plans is passed over", "topic", c.Topic, "offset", m.Offset, "error", err.Error())
			return
		}
		into.add(string(m.Key), x)
	})
	if err != nil {
		return from, fmt.Errorf("read the plans: %w", err)
	}
	return max(r.Offset(), to), nil
}

// makeLatest reads the log to its end, and makes the term the latest one there.
func (t *Term) makeLatest() error {
	ctx, end, err := t.begin(t.ctx)
	if err != nil {
		return err
	}
	defer end()
	first, next, err := t.cfg.Log.Bounds(ctx, t.cfg.Topic, 0)
	if err != nil {
		return t.explain(err)
	}
	t.next, t.log = first, history{}
	if err := t.read(ctx, next); err != nil {
		return t.explain(err)
	}
	// A member that was deposed since its term began must not write above its successor. It learns here that it was
	// deposed, or has read no record of its successor.
	if err := t.confirm(ctx); err != nil {
		return t.explain(err)
	}
	t.base = t.log.epoch
	t.mine.Term, t.mine.Epoch = t.log.term+1, t.base
	var plan []byte
	if t.log.last != nil {
		plan = t.log.last.Plan
	}
	return t.explain(t.put(ctx, t.base, plan))
}
