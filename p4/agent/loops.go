package agent

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/p4/probe"
)

// idle is the longest that the sender sleeps, and so the longest that a new plan waits.
const idle = 20 * time.Millisecond

// sendLoop sends what is due, until ctx ends.
func (a *Agent) sendLoop(ctx context.Context) error {
	runtime.LockOSThread() // it ends with the goroutine, since its timers are more exact than those of others
	sharpenTimers()
	s := sender{agent: a, clock: newClock(), table: probe.NewTimetable(nil, 0), work: &probe.Work{}, batched: make([]int, a.line.tx.slots())}
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
	table   *probe.Timetable
	work    *probe.Work
	batched []int // templates of a batch, by slot
}

// step sends what is due, or sleeps until something is.
func (s *sender) step() error {
	now, stepped := s.clock.now()
	if w := s.agent.pending.Swap(nil); w != nil {
		s.table, s.work = probe.NewTimetable(w.Slots, now), w
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
	if d := s.agent.ends.Digests; d != nil {
		d.Use(s.agent.keys.Load())
	}
	c, tx := &s.agent.count, s.agent.line.tx
	n, skipped := 0, uint64(0)
	for n < tx.slots() {
		due, ok := s.table.Next()
		if !ok || due > now {
			break
		}
		k, due, over := s.table.Pop(now)
		tx.set(n, s.work.Templates[k].AppendFrame(tx.slot(n), now))
		s.batched[n] = k
		c.late.Add(time.Duration(now - due))
		skipped += over
		s.work.Skipped[k].Add(uint32(over))
		n++
	}
	sent, bytes, err := tx.send(n)
	missed, why := tx.missed()
	for _, at := range missed { // its round is sent the next time: a frame that the card refused is not lost on the way
		s.work.Templates[s.batched[at]].Seq--
		s.work.Failed[s.batched[at]].Add(1)
	}
	if why != nil {
		s.agent.unsent.Store(&why)
	}
	for _, k := range s.batched[:n] {
		s.work.Next[k].Store(s.work.Templates[k].Seq)
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

// step is the change of the wall clock above which the schedule begins anew.
const step = 200 * time.Millisecond

// now returns the time in ns since 1970, and whether the wall clock was set since the last call.
func (c *clock) now() (now int64, stepped bool) {
	d := time.Since(c.base)
	now = c.wall + int64(d)
	if d < time.Second {
		return now, false
	}
	stepped = c.set()
	return c.wall, stepped
}

// set begins anew by the wall clock, and reports whether that was set since it did last.
func (c *clock) set() bool {
	old := *c
	*c = newClock()
	off := time.Duration(c.wall-old.wall) - c.base.Sub(old.base)
	return off > step || off < -step
}

// receiveLoop takes what comes, until ctx ends.
func (a *Agent) receiveLoop(ctx context.Context) error {
	r := receiver{agent: a, parser: probe.NewParser(a.ends.Mark), track: probe.NewTrack(a.cfg.MaxProbes), began: time.Now(), clock: newClock()}
	r.track.Count = uint32(r.began.UnixMicro())
	r.parser.Node, r.parser.Lax = a.cfg.reportedNode(), a.cfg.Unsigned
	if a.keys.Load() != nil {
		r.parser.Keys = new(probe.Digester)
	}
	rx := a.line.rx
	for ctx.Err() == nil {
		n, err := rx.receive(100 * time.Millisecond)
		if err != nil {
			return fmt.Errorf("receive on %s: %w", a.cfg.Interface, err)
		}
		r.tick()
		a.reporting.Lock()
		for k := range n {
			r.receive(rx.frame(k))
		}
		for _, g := range a.out {
			g.Flush()
		}
		a.count.kernelDropped.Store(rx.dropped())
		if n < rx.slots() {
			r.turn()
			r.answerRounds()
		}
		a.reporting.Unlock()
	}
	return nil
}

// receiver is the state of the loop that receives.
type receiver struct {
	agent  *Agent
	parser *probe.Parser
	track  *probe.Track
	began  time.Time
	clock  clock
	turned time.Duration // when losses were counted last
	port   port
	silent bool // probes do not come, and that was logged
	shared bool // a switch has the node id of the agent, and that was logged
}

// tick takes over plans and keys, and passes the time on.
func (r *receiver) tick() {
	r.track.Tick(int64(time.Since(r.began)))
	if p := r.agent.expected.Swap(nil); p != nil {
		r.track.Expect(p)
	}
	if d := r.parser.Keys; d != nil {
		d.Use(r.agent.keys.Load())
	}
}

// turn counts what is lost, once in a [Grace], when nothing that came is unread.
func (r *receiver) turn() {
	now := time.Since(r.began)
	if now-r.turned < probe.Grace {
		return
	}
	r.turned = now
	if r.clock.set() { // as after the machine stood still
		r.track.Suspended()
	}
	a := r.agent
	if p := r.track.Plan; p != nil && a.fromFiles.Load() {
		p.Latest = max(p.Epoch, nextEpoch(0)+epochSlack) // each agent has the time of its own start
	}
	l := r.track.Turn()
	a.loss.Store(&l)
	r.track.Report(a.ends.Mark, func(k probe.TrackKey, packet []byte) { a.collector(k).Missing(packet) })
	r.track.ReportUnsent(&a.ends, func(k probe.TrackKey, packet []byte) { a.collector(k).Unsent(packet) })
	r.track.Outcomes(&a.ends, func(k probe.TrackKey, packet []byte, c *decode.ProbeCounts) {
		if k != (probe.TrackKey{}) {
			a.collector(k).Counts(packet, c)
			return
		}
		for _, g := range a.out { // the sender reports to one of them
			g.Counts(packet, c)
		}
	})
	for _, g := range a.out {
		g.Flush()
	}
	a.lineTurn()
	r.port.turn(a, now)
	switch {
	case l.Silent > 0 && !r.silent:
		a.log.Warn("probes do not come back", "probes", l.Silent, "of", l.Awaited, "first", l.First)
	case l.Silent == 0 && r.silent:
		a.log.Info("all probes come back", "probes", l.Awaited)
	}
	r.silent = l.Silent > 0
}

// epochSlack is how many seconds ahead the clock of another agent may be.
const epochSlack = 60

// lineTurn checks whether the agent's own line is up, and logs a change.
func (a *Agent) lineTurn() {
	down := !a.line.up(a.cfg.Interface)
	if a.down.Swap(down) == down {
		return
	}
	if down {
		a.log.Error("the line is down: no probe is sent and none can come (\"ip link\" says why)", "interface", a.cfg.Interface)
	} else {
		a.log.Info("the line is up again", "interface", a.cfg.Interface)
	}
}

// receive reports a frame that came at a time, in ns since 1970.
func (r *receiver) receive(frame []byte, at int64) {
	var x probe.Arrival
	c := &r.agent.count
	c.frames.Add(1)
	if why := r.parser.Parse(&x, frame); why != probe.OK {
		c.malformed[why].Add(1)
		if x.Damaged(frame); why == probe.Corrupt && !r.track.Spoiled(&x) {
			c.stray.Add(1)
		}
		return
	}
	c.received.Add(1)
	if x.Unchecked {
		c.unchecked.Add(1)
	}
	if x.Own && !r.shared {
		r.shared = true
		r.agent.log.Error("a switch has the node id of the agent: its values and the agent's reports cannot be distinguished; set another node_id", "node_id", r.parser.Node)
	}
	if x.Own {
		c.sharedID.Add(1)
	}
	if int32(x.Epoch-r.agent.epoch.Load()) < 0 {
		c.oldEpoch.Add(1)
	}
	if x.Flags != 0 {
		c.limited.Add(1)
	}
	if x.Sent > 0 && at > 0 {
		x.Delay = at - x.Sent
		c.transit.Add(time.Duration(x.Delay))
	}
	s := r.track.See(&x)
	for _, n := range [...]struct {
		is   bool
		many *atomic.Uint64
	}{{s.Unknown, &c.unfollowed}, {s.Twice, &c.twice}, {s.Unplanned, &c.unplanned}, {s.Odd, &c.odd}} {
		if n.is {
			n.many.Add(1)
		}
	}
	r.agent.collector(probe.TrackKey{Source: x.Source, Number: x.Number}).Add(&x)
}

// collector is that of a probe.
func (a *Agent) collector(k probe.TrackKey) *probe.Groups {
	return a.out[(binary.BigEndian.Uint32(k.Source[:])^k.Number*2654435761)%uint32(len(a.out))]
}
