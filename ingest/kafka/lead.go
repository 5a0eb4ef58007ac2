package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/retry"
)

// LeadConfig is the settings of a candidate.
type LeadConfig struct {
	Log     ingest.Log
	Group   ingest.Group // that shares out partition 0 of the topic, and nothing else
	Topic   string
	Name    string        // of the member, for display
	Timeout time.Duration // of one question to the log and the group
	Hold    time.Duration // that a term is kept between two generations of the group, while nothing leaves; 0 for 30 s
	Logger  Logger        // nil for none
}

// complete returns the settings with the missing ones set to defaults.
func (c LeadConfig) complete() *LeadConfig {
	if c.Hold == 0 {
		c.Hold = 30 * time.Second
	}
	c.Logger = orSilent(c.Logger)
	return &c
}

// Lead is a candidate until ctx ends or work returns. It calls work each time that this member comes to be in charge,
// one call at a time. The context of work ends when the member is not in charge any more; nothing may leave after
// that. Lead returns the error of work unless it is due to the end of that context.
//
// The term goes on when members join and leave, as long as the group assigns the partition to the same member again.
func Lead(ctx context.Context, cfg LeadConfig, work func(ctx context.Context, t *Term) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &candidate{ctx: ctx, cfg: cfg.complete(), work: work, end: cancel}
	err := cfg.Group.Run(ctx, m)
	cancel()
	if m.term != nil {
		<-m.term.done
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Join(err, m.err)
}

// candidate receives the calls of the group. But for err it has one user, the group's goroutine.
type candidate struct {
	ctx  context.Context // of Run
	cfg  *LeadConfig
	work func(ctx context.Context, t *Term) error
	end  context.CancelFunc

	term *Term  // the last one; nil before the first
	last int    // the generation in which the member owned it
	stop func() // ends the watch over the generation, or over the time without one

	mu  sync.Mutex
	err error // of work
}

// Assigned begins a term, or continues it.
func (m *candidate) Assigned(g *ingest.Generation) {
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
func (m *candidate) watch(t *Term, g *ingest.Generation) {
	m.last = g.ID
	stop := context.AfterFunc(g.Lost, func() { t.cancel(fmt.Errorf("%w: %w", ErrLost, context.Cause(g.Lost))) })
	m.stop = func() { stop() }
}

// Revoke keeps the term until the next owner of the partition is known. Meanwhile nothing leaves, since the group confirms nothing.
func (m *candidate) Revoke(ctx context.Context, g *ingest.Generation) {
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
func (m *candidate) run(t *Term) {
	failed := func(err error) bool {
		if t.ctx.Err() == nil {
			m.cfg.Logger.Warn("taking over failed, trying again", "topic", m.cfg.Topic, "error", err.Error())
		}
		return false
	}
	wait := retry.Backoff{Min: 100 * time.Millisecond, Max: 2 * time.Second}
	if wait.Do(t.ctx, failed, func(context.Context) error { return t.makeLatest() }) != nil {
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
