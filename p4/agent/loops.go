package agent

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// idle is the longest that the sender sleeps, and so the longest that a new plan waits.
const idle = 20 * time.Millisecond

// sendLoop sends what is due, until ctx ends.
func (a *Agent) sendLoop(ctx context.Context) error {
	runtime.LockOSThread() // it ends with the goroutine, since its timers are more exact than those of others
	sharpenTimers()
	s := sender{agent: a, clock: newClock(), table: NewTimetable(nil, 0), work: &Work{}, batched: make([]int, a.line.tx.slots())}
	for ctx.Err() == nil {
		a.beats.Add(1)
		if err := s.step(); err != nil {
			return err
		}
	}
	return nil
}

// sender is the state of the loop that sends.
type sender struct {
	agent   *Agent
	clock   clock
	table   *Timetable
	work    *Work
	batched []int // templates of a batch, by slot
}

// step sends what is due, or sleeps until something is.
func (s *sender) step() error {
	now, stepped := s.clock.now()
	if w := s.agent.pending.Swap(nil); w != nil {
		s.table, s.work = NewTimetable(w.Slots, now), w
		s.agent.work.Store(w)
	}
	if stepped {
		s.agent.count.clockSteps.Add(1)
		s.table.Restart(now)
	}
	wait := idle
	if due, ok := s.table.Next(); ok {
		wait = min(time.Duration(due-now), idle)
	}
	if wait > 0 {
		sleep(wait)
		return nil
	}
	return s.batch(now)
}

// batch sends what is due now, as much as one system call takes.
func (s *sender) batch(now int64) error {
	c, tx := &s.agent.count, s.agent.line.tx
	n, skipped := 0, uint64(0)
	for n < tx.slots() {
		due, ok := s.table.Next()
		if !ok || due > now {
			break
		}
		k, due, over := s.table.Take(now)
		tx.set(n, s.work.Templates[k].AppendFrame(tx.slot(n), now))
		s.batched[n] = k
		c.late.add(time.Duration(now - due))
		skipped += over
		n++
	}
	sent, bytes, err := tx.send(n)
	for _, at := range tx.missed() { // its round is sent the next time: what the card did not take is not lost on the way
		s.work.Templates[s.batched[at]].seq--
	}
	for _, k := range s.batched[:n] {
		s.work.next[k].Store(s.work.Templates[k].seq)
	}
	c.sent.Add(uint64(sent))
	c.sentBytes.Add(uint64(bytes))
	c.sendErrors.Add(uint64(n - sent))
	c.skipped.Add(skipped)
	if err != nil {
		return fmt.Errorf("send on %s: %w", s.agent.cfg.Interface, err)
	}
	return nil
}

// clock is wall time that does not jump within a second: it goes on by the monotonic clock, and is set by the wall clock.
type clock struct {
	base time.Time
	wall int64
}

func newClock() clock {
	t := time.Now()
	return clock{t, t.UnixNano()}
}

// step is what the wall clock may differ by before the schedule begins anew.
const step = 200 * time.Millisecond

// now gives the time in ns since 1970, and says whether the wall clock was set since the last call.
func (c *clock) now() (now int64, stepped bool) {
	d := time.Since(c.base)
	now = c.wall + int64(d)
	if d < time.Second {
		return now, false
	}
	old := now
	*c = newClock()
	off := time.Duration(c.wall - old)
	return c.wall, off > step || off < -step
}

// receiveLoop takes what comes, until ctx ends.
func (a *Agent) receiveLoop(ctx context.Context) error {
	r := receiver{agent: a, parser: NewParser(a.ends.Mark), track: NewTrack(a.cfg.MaxProbes)}
	rx := a.line.rx
	for ctx.Err() == nil {
		n, err := rx.receive(100 * time.Millisecond)
		if err != nil {
			return fmt.Errorf("receive on %s: %w", a.cfg.Interface, err)
		}
		for k := range n {
			r.take(rx.frame(k))
		}
		for _, g := range a.out {
			g.Flush()
		}
		a.count.kernelDropped.Store(rx.dropped())
		if n < rx.slots() {
			r.tell()
		}
	}
	return nil
}

// receiver is the state of the loop that receives.
type receiver struct {
	agent  *Agent
	parser *Parser
	track  *Track
}

// take reports a frame that came at a time, in ns since 1970.
func (r *receiver) take(frame []byte, at int64) {
	var x Arrival
	c := &r.agent.count
	c.frames.Add(1)
	if why := r.parser.Parse(&x, frame); why != OK {
		c.malformed[why].Add(1)
		return
	}
	c.received.Add(1)
	if int32(x.Epoch-r.agent.epoch.Load()) < 0 {
		c.oldEpoch.Add(1)
	}
	if x.Flags != 0 {
		c.limited.Add(1)
	}
	if x.Sent > 0 && at > 0 {
		c.transit.add(time.Duration(at - x.Sent))
	}
	switch s := r.track.see(&x); {
	case s.unknown:
		c.unfollowed.Add(1)
	case s.twice:
		c.twice.Add(1)
	default:
		c.lost.Add(s.lost)
	}
	key := uint32(x.Source[0])<<24 | uint32(x.Source[1])<<16 | uint32(x.Source[2])<<8 | uint32(x.Source[3])
	r.agent.out[(key^x.Number*2654435761)%uint32(len(r.agent.out))].Add(&x)
}
