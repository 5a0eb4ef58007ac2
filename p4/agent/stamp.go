package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/p4/stamp"
)

// stampAgent is the part of an agent that speaks STAMP. Every session has three goroutines: one sends, one receives,
// and one keeps the socket. There is one more for every address of the reflector, one that counts losses, and one that
// traces the ways of sessions with a port.
type stampAgent struct {
	agent      *Agent
	began      time.Time
	sessions   []*stampSender
	reflectors []*stampReflector
	clock      atomic.Uint32 // estimate of the host's clock

	dial          func(ctx context.Context, c *socketConfig) (*udpLine, error)
	retry, reopen time.Duration // between two tries to open a socket: where there is none, and while one has no answers
}

// stampTTL is that of all packets, by which their hops can be counted.
const stampTTL = 255

// socketConfig is where the socket of a session sends, and what its packets have.
type socketConfig struct {
	from, to    string
	port        uint16 // that requests come from; 0 for any
	dscp        uint8
	hops, route []byte // hop-by-hop header and routing header of IPv6; nil for none
}

// extended reports whether packets have extension headers, which are of IPv6 alone.
func (c *socketConfig) extended() bool { return c.hops != nil || c.route != nil }

// stampSender is a session with its socket.
type stampSender struct {
	socketConfig
	name  string
	path  uint32 // its number at collectors
	phase time.Duration

	mu        sync.Mutex // what is below
	line      *udpLine   // nil until the host has an address and a route for it
	session   *stamp.Session
	sending   bool   // the last request is not taken yet
	failed    uint64 // requests that the socket did not take
	unable    int    // of these in a row, the last ones
	dropped   uint64 // of sockets before
	why       error  // why, the last time
	reported  struct{ missed, failed uint64 }
	minute    stamp.Ways // of the last whole minute
	whole     bool       // there was one
	silent    bool       // and that was logged
	way       stamp.Watch
	wayReport struct { // the last one to collectors
		epoch uint32
		left  int // turns until the next one
	}
}

// wayEvery is the number of turns between two reports of a way, which may be lost.
const wayEvery = 15

// stampReflector is an address of the reflector.
type stampReflector struct {
	line     *udpLine
	answered atomic.Uint64
	unsent   atomic.Uint64
	open     atomic.Int64
	refused  [stamp.NumReasons]atomic.Uint64
	engine   stamp.Reflector

	traces  [stamp.NumOutcomes]atomic.Uint64
	scratch decode.Report // memory of a trace, and of the packet that is reported
	traced  []byte
}

// openSTAMP opens all sockets. A session that cannot have its own at present has it later (connect), and so has one whose reflector is a name. Nothing is
// sent before run.
func openSTAMP(a *Agent) (*stampAgent, error) {
	c := &a.cfg.STAMP
	x := &stampAgent{agent: a, began: time.Now(), dial: dialUDP, retry: time.Second, reopen: time.Minute}
	fail := func(err error) (*stampAgent, error) { return nil, errors.Join(fmt.Errorf("stamp: %w", err), x.close()) }
	keys, err := probe.ReadKeys(c.Keys)
	if err != nil {
		return fail(err)
	}
	all := c.all()
	for k := range all {
		s := &stampSender{name: all[k].name(), phase: c.Interval * time.Duration(k) / time.Duration(len(all))}
		p := c.plan(k, &all[k], keys)
		s.path = all[k].path(&p)
		if s.session, err = stamp.NewSession(p); err != nil {
			return fail(fmt.Errorf("session %s: %w", s.name, err))
		}
		if s.socketConfig, err = c.socket(&all[k], &p); err != nil {
			return fail(fmt.Errorf("session %s: %w", s.name, err))
		}
		if _, err := netip.ParseAddrPort(s.to); err == nil { // a name may take its time
			if s.line, s.why = x.dial(context.Background(), &s.socketConfig); s.why != nil && !passes(s.why) {
				return fail(fmt.Errorf("session %s: %w", s.name, s.why))
			}
		}
		x.sessions = append(x.sessions, s)
	}
	secrets, err := probe.ReadKeys(c.Reflector.Keys)
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
		early := false
		if r.line, early, err = listenUDP(address, a.cfg.ReceiveBufferBytes, c.Reflector.IOAM); err != nil {
			return fail(fmt.Errorf("reflector: %w", err))
		}
		if early {
			a.log.Warn("the host does not have an address of the STAMP reflector; it answers there as soon as it has", "address", at)
		}
		x.reflectors = append(x.reflectors, r)
	}
	x.lookAtClock()
	return x, nil
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
		for _, r := range x.reflectors {
			r.line.wake()
		}
	})
	defer stop()
	var loops sync.WaitGroup
	start := func(loop func(context.Context) error) { loops.Go(func() { cancel(loop(ctx)) }) }
	for _, s := range x.sessions {
		start(func(ctx context.Context) error { return x.send(ctx, s) })
		start(func(ctx context.Context) error { return x.connect(ctx, s) })
	}
	for _, r := range x.reflectors {
		start(func(ctx context.Context) error { return x.reflect(ctx, r) })
	}
	start(x.watch)
	start(x.trace)
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
		buf = x.ask(s, buf[:0])
		if late := time.Since(next); late >= every {
			next = next.Add(late / every * every)
		}
		next = next.Add(every)
		timer.Reset(time.Until(next))
	}
}

// ask sends the next request of a session, if it has a socket.
func (x *stampAgent) ask(s *stampSender, buf []byte) []byte {
	s.mu.Lock()
	line := s.line
	if line == nil {
		s.mu.Unlock()
		return buf
	}
	now, mono := x.now()
	buf = s.session.Append(buf, now, mono, x.estimate())
	s.sending = true
	s.mu.Unlock()
	err := line.send(buf) // which may have to wait
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending = false
	if err == nil {
		s.unable = 0
		return buf
	}
	s.session.Unsent()
	s.failed++
	s.unable++
	s.why = err
	return buf
}

// connect opens the socket of a session and retries until it has one. While the session has no answers, connect checks
// now and then whether a new socket would have other addresses. The host, its routes or the name of the reflector may
// have changed. The session then continues with the new socket.
func (x *stampAgent) connect(ctx context.Context, s *stampSender) error {
	var hearing sync.WaitGroup
	defer hearing.Wait()
	drain := func(line *udpLine) {
		hearing.Go(func() {
			defer context.AfterFunc(ctx, line.wake)()
			x.receive(ctx, s, line)
		})
	}
	if s.line != nil { // nothing else sets it
		drain(s.line)
	}
	tick := time.NewTicker(x.retry)
	defer tick.Stop()
	for tried := time.Now(); ; {
		s.mu.Lock()
		silent := s.silent
		s.mu.Unlock()
		if s.line == nil || silent && time.Since(tried) >= x.reopen {
			line, err := x.dial(ctx, &s.socketConfig)
			switch {
			case ctx.Err() != nil:
				_ = line.close() // nothing has used it
				return nil
			case err != nil && !passes(err):
				return fmt.Errorf("session %s: %w", s.name, err)
			case err != nil:
				s.mu.Lock()
				s.why = err
				s.mu.Unlock()
			case s.line != nil && line.local().Addr() == s.line.local().Addr() && line.remote() == s.line.remote():
				_ = line.close()
			default:
				old := s.line
				s.mu.Lock()
				if s.line = line; old != nil {
					s.dropped += old.dropped()
				}
				s.mu.Unlock()
				drain(line)
				_ = old.close() // its answers are over
			}
			tried = time.Now()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// receive takes the answers of a session, until ctx ends or the socket is closed.
func (x *stampAgent) receive(ctx context.Context, s *stampSender, line *udpLine) {
	buf := make([]byte, stamp.MostLen+1)
	for ctx.Err() == nil {
		n, a, err := line.receive(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		s.mu.Lock()
		if s.port == 0 || err == nil || !expired(err) { // a router's answer to a packet of a trace is no error of the session
			s.why = err
		}
		if err == nil {
			s.session.Look(x.now())
			_ = s.session.Receive(buf[:n], a.At) // it is counted
		}
		s.mu.Unlock()
	}
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
		} else {
			r.answered.Add(1)
		}
		x.reportTrace(r, buf[:n], &a)
	}
	return nil
}

// reportTrace reports the trace of a request, if it has one, to the collector of its session.
func (x *stampAgent) reportTrace(r *stampReflector, request []byte, a *stamp.Arrival) {
	option, outcome := stamp.ReadIOAM(r.line.header(), &r.scratch)
	if option == nil {
		return
	}
	r.traces[outcome].Add(1)
	if outcome == stamp.Empty || outcome == stamp.Malformed {
		return
	}
	var err error
	if r.traced, err = stamp.AppendTraced(r.traced[:0], a, option); err != nil {
		return // no option of a header is too long for one
	}
	var q stamp.Request
	if q.Decode(request, stamp.Mode(r.engine.Keys != nil)) != nil {
		return // it has an answer, and is none of these
	}
	out := x.agent.out
	x.agent.reporting.Lock()
	defer x.agent.reporting.Unlock()
	out[int(q.SSID)%len(out)].Packet(r.traced)
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
		x.agent.flush()
	}
}

// turn counts the losses of a session. It reports them and the outcomes of requests since the last turn.
func (s *stampSender) turn(x *stampAgent, minute bool) {
	s.mu.Lock()
	s.session.Turn(x.mono())
	if minute {
		s.minute, s.whole = s.session.DrainWays(), true
	}
	missed, failed := s.session.Missed-s.reported.missed, s.failed-s.reported.failed
	var counts decode.ProbeCounts
	if !s.sending { // the socket may not take the last request
		counts = s.session.Since()
	}
	counts.Path, counts.Epoch = s.path, s.way.Epoch
	last := &s.wayReport
	last.left--
	due := s.way.Epoch > 0 && (last.epoch != s.way.Epoch || last.left <= 0)
	var routers []netip.Addr
	if due {
		last.epoch, last.left = s.way.Epoch, wayEvery
		routers = slices.Clone(s.way.Hops)
	}
	s.reported.missed, s.reported.failed = s.session.Missed, s.failed
	was, why, line := s.silent, s.why, s.line
	s.silent = s.session.Silence() >= 2 || s.unable >= 2 || line == nil && why != nil
	silent := s.silent
	s.mu.Unlock()
	a := x.agent
	switch {
	case silent && !was:
		args := []any{"session", s.name, "reflector", s.reflector(line)}
		if why != nil {
			args = append(args, "error", why.Error())
		}
		a.log.Warn("answers of a STAMP session do not come", args...)
	case !silent && was:
		a.log.Info("answers of a STAMP session come again", "session", s.name)
	}
	some := counts.Sent|counts.Received|counts.Missed|counts.Late|counts.Twice|counts.Corrupt|uint32(counts.Forward|counts.Back) != 0
	if missed == 0 && failed == 0 && !some && !due {
		return
	}
	packet := s.packet(line) // without a socket nothing was sent
	g := a.out[int(s.session.SSID)%len(a.out)]
	a.reporting.Lock()
	defer a.reporting.Unlock()
	for range min(missed, probe.MostReports) {
		g.Missing(packet)
	}
	for range min(failed, probe.MostReports) {
		g.Unsent(packet)
	}
	if due { // before counts of the same epoch
		g.Way(packet, counts.Path, counts.Epoch, routers)
	}
	if some {
		g.Counts(packet, &counts)
	}
}

// reflector is the address of the reflector from the socket, or from the settings.
func (s *stampSender) reflector(line *udpLine) string {
	if line == nil {
		return s.to
	}
	return line.remote().String()
}

// packet is the beginning of a request of the session. It has the standard port of STAMP, by which collectors recognise
// it, whatever the reflector's is.
func (s *stampSender) packet(line *udpLine) (b []byte) {
	from, to := line.local(), line.remote()
	src, dst := from.Addr().Unmap(), to.Addr().Unmap()
	tos := s.session.DSCP << 2
	if dst.Is6() {
		b = packet.AppendIPv6(nil, &packet.IPv6{TrafficClass: tos, HopLimit: stampTTL, Proto: packet.ProtoUDP, Src: src.As16(), Dst: dst.As16()}, packet.UDPLen)
	} else {
		b = packet.AppendIPv4(nil, &packet.IPv4{TOS: tos, TTL: stampTTL, Proto: packet.ProtoUDP, Src: src.As4(), Dst: dst.As4()}, packet.UDPLen)
	}
	return packet.AppendUDP(b, from.Port(), stamp.Port, 0)
}

// passes reports whether an error of a socket may be temporary. At present nothing listens at the other end, or the
// network, an address or a name is missing.
func passes(err error) bool {
	_, socket := errors.AsType[*net.OpError](err)
	_, name := errors.AsType[*net.DNSError](err)
	return (socket || name) && !errors.Is(err, net.ErrClosed)
}

// stampStatus is the state of a session.
type stampStatus struct {
	Name, Reflector string
	Silent          bool
	Failed          uint64 // requests that the socket did not take
	Dropped         uint64 // packets for which the receive buffer had no room: they are no loss of the network
	Why             string // the last error of the socket, or ""
	From            netip.Addr
	Port            uint16      // that requests come from, of a session with one; else 0
	Way             stamp.Watch // its routers, as far as they answer
	stamp.Counts                // its delays are those of the last whole minute, where there is one
}

// stampAnswers is the state of the reflector.
type stampAnswers struct {
	Listen   []string
	Answered uint64
	Unsent   uint64 // answers that the socket did not take
	Dropped  uint64 // requests for which the receive buffer had no room
	Sessions int    // that are remembered
	Refused  [stamp.NumReasons]uint64
	Traces   [stamp.NumOutcomes]uint64 // of IOAM, in requests with an answer
}

// STAMP returns all sessions and the sums over all addresses of the reflector. It may be called at any time.
func (a *Agent) STAMP() (list []stampStatus, answers stampAnswers) {
	if a.stamp == nil {
		return nil, answers
	}
	for _, s := range a.stamp.sessions {
		s.mu.Lock()
		x := stampStatus{Name: s.name, Reflector: s.reflector(s.line), Silent: s.silent, Failed: s.failed, Dropped: s.dropped, Counts: s.session.Counts}
		if s.line != nil {
			x.Dropped += s.line.dropped()
			x.From = s.line.local().Addr().Unmap()
		}
		x.Port, x.Way = s.port, stamp.Watch{Epoch: s.way.Epoch, Hops: slices.Clone(s.way.Hops)}
		if s.sending { // the socket may not take it
			x.Sent--
		}
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
		for k := range r.traces {
			answers.Traces[k] += r.traces[k].Load()
		}
	}
	return list, answers
}
