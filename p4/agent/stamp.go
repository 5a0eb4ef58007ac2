package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/p4/stamp"
)

// stampAgent is the part of an agent that speaks STAMP: a goroutine that sends and one that receives for every session, one for every address of the
// reflector, and one that counts what is lost.
type stampAgent struct {
	agent      *Agent
	began      time.Time
	sessions   []*stampSender
	reflectors []*stampReflector
	clock      atomic.Uint32 // estimate of the host's clock
}

// stampTTL is that of all packets, by which their hops can be counted.
const stampTTL = 255

// stampSender is a session with its socket.
type stampSender struct {
	name  string
	phase time.Duration
	line  *udpLine

	mu       sync.Mutex // what is below
	session  *stamp.Session
	failed   uint64 // requests that the socket did not take
	why      error  // why, the last time
	reported struct{ missed, failed uint64 }
	minute   stamp.Ways // of the last whole minute
	whole    bool       // there was one
	silent   bool       // and the log says so
}

// stampReflector is an address of the reflector.
type stampReflector struct {
	line     *udpLine
	answered atomic.Uint64
	unsent   atomic.Uint64
	open     atomic.Int64
	refused  [stamp.NumReasons]atomic.Uint64
	engine   stamp.Reflector
}

// openSTAMP opens all sockets. Nothing is sent before run.
func openSTAMP(a *Agent) (*stampAgent, error) {
	c := &a.cfg.STAMP
	x := &stampAgent{agent: a, began: time.Now()}
	fail := func(err error) (*stampAgent, error) { return nil, errors.Join(fmt.Errorf("stamp: %w", err), x.close()) }
	keys, err := readKeys(c.Keys)
	if err != nil {
		return fail(err)
	}
	for k := range c.Sessions {
		s := &stampSender{name: c.Sessions[k].name(), phase: c.Interval * time.Duration(k) / time.Duration(len(c.Sessions))}
		plan := c.plan(k, keys)
		if s.session, err = stamp.NewSession(plan); err == nil {
			s.line, err = dialUDP(c.Sessions[k].From, c.Sessions[k].reflector(), plan.DSCP)
		}
		if err != nil {
			return fail(fmt.Errorf("session %s: %w", s.name, err))
		}
		x.sessions = append(x.sessions, s)
	}
	secrets, err := readKeys(c.Reflector.Keys)
	if err != nil {
		return fail(err)
	}
	for _, at := range c.Reflector.Listen {
		address, err := listenAddress(at)
		if err != nil {
			return fail(err)
		}
		r := &stampReflector{engine: stamp.Reflector{Stateful: !c.Reflector.Stateless, Sessions: c.Reflector.Sessions, Rate: c.Reflector.Rate}}
		if secrets != nil {
			r.engine.Keys = stamp.NewKeys(secrets.Secrets())
		}
		for _, p := range c.Reflector.Allow {
			r.engine.Allow = append(r.engine.Allow, netip.MustParsePrefix(p)) // Validate has read it
		}
		if r.line, err = listenUDP(address, a.cfg.ReceiveBufferBytes); err != nil {
			return fail(fmt.Errorf("reflector: %w", err))
		}
		x.reflectors = append(x.reflectors, r)
	}
	x.lookAtClock()
	return x, nil
}

// readKeys reads a file of keys; nil for none.
func readKeys(path string) (*probe.Keys, error) {
	if path == "" {
		return nil, nil
	}
	return probe.ReadKeys(path)
}

func (x *stampAgent) close() error {
	var errs []error
	for _, s := range x.sessions {
		errs = append(errs, s.line.close())
	}
	for _, r := range x.reflectors {
		errs = append(errs, r.line.close())
	}
	return errors.Join(errs...)
}

// run sends, receives and answers until ctx ends.
func (x *stampAgent) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		for _, s := range x.sessions {
			s.line.wake()
		}
		for _, r := range x.reflectors {
			r.line.wake()
		}
	})
	defer stop()
	var loops sync.WaitGroup
	start := func(loop func(context.Context) error) { loops.Go(func() { cancel(loop(ctx)) }) }
	for _, s := range x.sessions {
		start(func(ctx context.Context) error { return x.send(ctx, s) })
		start(func(ctx context.Context) error { return x.receive(ctx, s) })
	}
	for _, r := range x.reflectors {
		start(func(ctx context.Context) error { return x.reflect(ctx, r) })
	}
	start(x.watch)
	loops.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("stamp: %w", err)
	}
	return nil
}

// estimate is that of the host's clock.
func (x *stampAgent) estimate() stamp.ErrorEstimate { return stamp.ErrorEstimate(x.clock.Load()) }

func (x *stampAgent) lookAtClock() {
	follows, bound := clockState()
	x.clock.Store(uint32(stamp.NewErrorEstimate(follows, false, bound)))
}

// mono is the time by a clock that is never set.
func (x *stampAgent) mono() int64 { return int64(time.Since(x.began)) }

// now is the same moment by the clock that can be set and by the one that cannot.
func (x *stampAgent) now() (wall, mono int64) {
	t := time.Now()
	return t.UnixNano(), int64(t.Sub(x.began))
}

// send sends the requests of a session. One whose time is over when the turn comes is left out, as [Agent.sendLoop] does.
func (x *stampAgent) send(ctx context.Context, s *stampSender) error {
	every := s.session.Interval
	next := time.Now().Add(s.phase)
	timer := time.NewTimer(s.phase)
	defer timer.Stop()
	buf := make([]byte, 0, stamp.MostLen)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		s.mu.Lock()
		now, mono := x.now()
		buf = s.session.Append(buf[:0], now, mono, x.estimate())
		s.mu.Unlock()
		if err := s.line.send(buf); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			s.mu.Lock()
			s.session.Unsent()
			s.failed++
			s.why = err
			s.mu.Unlock()
		}
		if late := time.Since(next); late >= every {
			next = next.Add(late / every * every)
		}
		next = next.Add(every)
		timer.Reset(time.Until(next))
	}
}

// receive takes the answers of a session.
func (x *stampAgent) receive(ctx context.Context, s *stampSender) error {
	buf := make([]byte, stamp.MostLen+1)
	for ctx.Err() == nil {
		n, a, err := s.line.receive(buf)
		if err != nil {
			if ctx.Err() == nil && !passes(err) {
				return fmt.Errorf("session %s: %w", s.name, err)
			}
			s.mu.Lock()
			s.why = err
			s.mu.Unlock()
			continue
		}
		s.mu.Lock()
		s.why = nil
		s.session.Look(x.now())
		_ = s.session.Take(buf[:n], a.At) // it is counted
		s.mu.Unlock()
	}
	return nil
}

// reflect answers at one address.
func (x *stampAgent) reflect(ctx context.Context, r *stampReflector) error {
	buf, out := make([]byte, stamp.MostLen+1), make([]byte, 0, stamp.MostLen)
	for ctx.Err() == nil {
		n, a, err := r.line.receive(buf)
		if err != nil {
			if ctx.Err() == nil && !passes(err) {
				return fmt.Errorf("reflector: %w", err)
			}
			continue
		}
		a.Steady = x.mono()
		answer, tos, err := r.engine.Reply(out, buf[:n], &a, time.Now().UnixNano(), x.estimate())
		if e, ok := errors.AsType[*stamp.Error](err); ok {
			r.refused[e.Reason].Add(1)
			continue
		}
		r.open.Store(int64(r.engine.Open()))
		if err := r.line.answer(answer, &a, tos); err != nil {
			r.unsent.Add(1)
			continue
		}
		r.answered.Add(1)
	}
	return nil
}

// watch counts what is lost, once in a [probe.Grace], and reports it to collectors.
func (x *stampAgent) watch(ctx context.Context) error {
	tick := time.NewTicker(probe.Grace / 4)
	defer tick.Stop()
	minute := time.Now()
	for turn := 1; ; turn++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if x.agent.line == nil {
			x.agent.beats.Add(1)
		}
		if turn%4 > 0 {
			continue
		}
		x.lookAtClock()
		over := time.Since(minute) >= time.Minute
		if over {
			minute = time.Now()
		}
		for _, s := range x.sessions {
			s.turn(x, over)
		}
	}
}

// turn counts and reports what is lost of a session.
func (s *stampSender) turn(x *stampAgent, minute bool) {
	s.mu.Lock()
	s.session.Turn(x.mono())
	if minute {
		s.minute, s.whole = s.session.TakeWays(), true
	}
	missed, failed := s.session.Missed-s.reported.missed, s.failed-s.reported.failed
	s.reported.missed, s.reported.failed = s.session.Missed, s.failed
	silence, was, why := s.session.Silence(), s.silent, s.why
	s.silent = silence >= 2
	s.mu.Unlock()
	a := x.agent
	switch {
	case silence >= 2 && !was:
		args := []any{"session", s.name, "reflector", s.line.remote().String()}
		if why != nil {
			args = append(args, "error", why.Error())
		}
		a.log.Warn("answers of a STAMP session do not come", args...)
	case silence == 0 && was:
		a.log.Info("answers of a STAMP session come again", "session", s.name)
	}
	if missed == 0 && failed == 0 {
		return
	}
	packet := s.packet()
	g := a.out[int(s.session.SSID)%len(a.out)]
	a.reporting.Lock()
	defer a.reporting.Unlock()
	for range min(missed, probe.MostReports) {
		g.Missing(packet)
	}
	for range min(failed, probe.MostReports) {
		g.Unsent(packet)
	}
	g.Flush()
}

// packet is how a request of the session begins, to the port that collectors know STAMP by, whatever the reflector's is.
func (s *stampSender) packet() (b []byte) {
	from, to := s.line.local(), s.line.remote()
	src, dst := from.Addr().Unmap(), to.Addr().Unmap()
	tos := s.session.DSCP << 2
	if dst.Is6() {
		b = packet.AppendIPv6(nil, &packet.IPv6{TrafficClass: tos, HopLimit: stampTTL, Proto: packet.ProtoUDP, Src: src.As16(), Dst: dst.As16()}, packet.UDPLen)
	} else {
		b = packet.AppendIPv4(nil, &packet.IPv4{TOS: tos, TTL: stampTTL, Proto: packet.ProtoUDP, Src: src.As4(), Dst: dst.As4()}, packet.UDPLen)
	}
	return packet.AppendUDP(b, from.Port(), stamp.Port, 0)
}

// passes reports whether a socket goes on after an error: nothing listens at the other end, or the network is not there at present.
func passes(err error) bool {
	_, ok := errors.AsType[*net.OpError](err)
	return ok && !errors.Is(err, net.ErrClosed)
}

// STAMPStatus is what an agent knows of a session.
type STAMPStatus struct {
	Name, Reflector string
	Silent          bool
	Failed          uint64 // requests that the socket did not take
	Dropped         uint64 // packets for which the receive buffer had no room: they are no loss of the network
	Why             string // the last error of the socket, or ""
	stamp.Counts           // its delays are those of the last whole minute, where there is one
}

// STAMPAnswers is what an agent knows of its reflector.
type STAMPAnswers struct {
	Listen   []string
	Answered uint64
	Unsent   uint64 // answers that the socket did not take
	Dropped  uint64 // requests for which the receive buffer had no room
	Sessions int    // that are remembered
	Refused  [stamp.NumReasons]uint64
}

// STAMP gives all sessions and the sums over all addresses of the reflector. It may be called at any time.
func (a *Agent) STAMP() (list []STAMPStatus, answers STAMPAnswers) {
	if a.stamp == nil {
		return nil, answers
	}
	for _, s := range a.stamp.sessions {
		s.mu.Lock()
		x := STAMPStatus{Name: s.name, Reflector: s.line.remote().String(), Silent: s.silent, Failed: s.failed, Dropped: s.line.dropped(), Counts: s.session.Counts}
		if s.whole {
			x.Ways = s.minute
		}
		if s.why != nil && s.silent {
			x.Why = s.why.Error()
		}
		s.mu.Unlock()
		list = append(list, x)
	}
	for _, r := range a.stamp.reflectors {
		answers.Listen = append(answers.Listen, r.line.local().String())
		answers.Answered += r.answered.Load()
		answers.Unsent += r.unsent.Load()
		answers.Dropped += r.line.dropped()
		answers.Sessions += int(r.open.Load())
		for k := range r.refused {
			answers.Refused[k] += r.refused[k].Load()
		}
	}
	return list, answers
}
