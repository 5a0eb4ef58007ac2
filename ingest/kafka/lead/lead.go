// Package lead elects one of several members, and keeps the plan in force where the next one finds it: in a compacted topic of
// one partition. The owner of the partition in a group of consumers is in charge.
//
// The group decides, and no clock does. Before anything leaves a member it writes the plan and its epoch to the log
// ([Term.Put]), or asks ([Term.Holds]), and both set the group's offset, which the group takes from the owner of the partition
// alone. A member that stood still, and does not know yet that it was given up, is refused. What it had asked for before it
// stood still may leave it later; it has an epoch below those of its successor, which began above all that stand in the log, and
// devices refuse it.
package lead

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/retry"
)

// Config says what a member needs.
type Config struct {
	Log     ingest.Log
	Group   ingest.Group // that shares out partition 0 of the topic, and nothing else
	Topic   string
	Name    string        // of the member, for display
	Timeout time.Duration // of one question to the log and the group
	Hold    time.Duration // that a term is kept between two generations of the group, while nothing leaves; 0 for 30 s
	Logger  *slog.Logger  // nil for none
}

// complete gives settings that leave nothing out.
func (c Config) complete() *Config {
	if c.Hold == 0 {
		c.Hold = 30 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &c
}

// Run is a member until ctx ends or work returns: work is called each time that this member comes to be in charge, one call at a
// time. Its context ends when the member is not in charge any more, and nothing may leave then. An error of work that is not of
// the end of its context is that of Run.
//
// The term goes on when others come and go, as long as the group gives the partition to the same member again.
func Run(ctx context.Context, cfg Config, work func(ctx context.Context, t *Term) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &member{ctx: ctx, cfg: cfg.complete(), work: work, end: cancel}
	err := cfg.Group.Run(ctx, m)
	cancel()
	if m.term != nil {
		<-m.term.done
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Join(err, m.err)
}

// member receives the calls of the group. But for err it has one user, the group's goroutine.
type member struct {
	ctx  context.Context // of Run
	cfg  *Config
	work func(ctx context.Context, t *Term) error
	end  context.CancelFunc

	term *Term  // the last one; nil before the first
	last int    // the generation in which the member owned it
	stop func() // ends the watch over the generation, or over the time without one

	mu  sync.Mutex
	err error // of work
}

// Assigned begins a term, or goes on with it.
func (m *member) Assigned(g *ingest.Generation) {
	ours := len(g.Partitions[m.cfg.Topic]) > 0
	if m.stop != nil {
		m.stop()
	}
	// No other member had the partition between two generations that follow each other.
	if t := m.term; t != nil && t.ctx.Err() == nil && ours && g.ID == m.last+1 {
		m.watch(t, g)
		t.set(g)
		return
	}
	if m.term != nil {
		m.term.cancel(ErrLost)
	}
	if !ours {
		m.cfg.Logger.Info("standing by: another member of the fleet is in charge", "topic", m.cfg.Topic, "generation", g.ID)
		return
	}
	before := m.term
	t := newTerm(m.ctx, m.cfg, g)
	m.term = t
	m.watch(t, g)
	go func() {
		defer close(t.done)
		if before != nil {
			<-before.done
		}
		m.run(t)
	}()
}

// watch ends the term with its generation.
func (m *member) watch(t *Term, g *ingest.Generation) {
	m.last = g.ID
	stop := context.AfterFunc(g.Lost, func() { t.cancel(fmt.Errorf("%w: %w", ErrLost, context.Cause(g.Lost))) })
	m.stop = func() { stop() }
}

// Revoke keeps the term until the next owner of the partition is known. Meanwhile nothing leaves, since the group confirms nothing.
func (m *member) Revoke(ctx context.Context, g *ingest.Generation) {
	t := m.term
	if t == nil || len(g.Partitions[m.cfg.Topic]) == 0 {
		return
	}
	m.stop()
	if g.Lost.Err() != nil {
		t.cancel(fmt.Errorf("%w: %w", ErrLost, context.Cause(g.Lost)))
	}
	t.set(nil)
	// A member that does not hear from the group again must not act as being in charge, although nothing could leave.
	late := time.AfterFunc(m.cfg.Hold, func() { t.cancel(fmt.Errorf("%w: nothing was heard from the group for %v", ErrLost, m.cfg.Hold)) })
	m.stop = func() { late.Stop() }
	if m.ctx.Err() != nil { // the member leaves, and another one can begin at once
		select {
		case <-t.done:
		case <-ctx.Done():
		}
	}
}

// run takes over and works.
func (m *member) run(t *Term) {
	failed := func(err error) bool {
		if t.ctx.Err() == nil {
			m.cfg.Logger.Warn("taking over failed, trying again", "topic", m.cfg.Topic, "error", err.Error())
		}
		return false
	}
	wait := retry.Backoff{Min: 100 * time.Millisecond, Max: 2 * time.Second}
	if wait.Do(t.ctx, failed, func(context.Context) error { return t.takeOver() }) != nil {
		return
	}
	m.cfg.Logger.Info("in charge", "topic", m.cfg.Topic, "term", t.Number(), "epoch", t.Epoch())
	err := m.work(t.ctx, t)
	if t.ctx.Err() == nil { // it has ended by itself
		m.mu.Lock()
		m.err = err
		m.mu.Unlock()
		t.cancel(context.Canceled)
		m.end()
		return
	}
	m.cfg.Logger.Info("not in charge any more", "topic", m.cfg.Topic, "why", context.Cause(t.ctx).Error())
}
