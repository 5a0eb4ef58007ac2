package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/hopscope/hopscope/ingest/retry"
	"github.com/hopscope/hopscope/p4/emu"
)

// Clock is the time that Play follows.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or with the cause when ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// systemClock is the clock of the machine.
type systemClock struct{}

// Now is time.Now.
func (systemClock) Now() time.Time { return time.Now() }

// Sleep waits.
func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	if retry.Sleep(ctx, d) {
		return nil
	}
	return context.Cause(ctx)
}

// PlayConfig is the destination and the speed of datagrams.
type PlayConfig struct {
	Reports netip.AddrPort // of the collector, on the loopback interface
	Probes  netip.AddrPort // the same for probes; if it is not valid, probes are not sent
	Speed   float64        // virtual seconds in a second; 0 is as fast as possible
	Until   time.Duration  // virtual time to stop at; 0 for when ctx ends
	clock   Clock          // nil is the machine's
	Each    func()         // called before every step, in the goroutine that runs the network; nil for none
}

// playStats counts what was sent.
type playStats struct {
	Datagrams, Bytes uint64
	refused          uint64        // not listened for, as far as the kernel reported
	failed           uint64        // not sent for other reasons
	slipped          time.Duration // real time that was not made up for, because sending fell too far behind
}

// playStep is how long Play sleeps; datagrams of that time leave together.
const playStep = 2 * time.Millisecond

// maxLag is how far the network may fall behind the clock before Play skips that time. A suspended machine must not
// send an hour of reports when it wakes.
const maxLag = time.Second

// Play runs the network by the clock and sends its datagrams over UDP, each from its exporter's own loopback address.
// It returns nil when ctx ends or virtual time reaches Until.
func Play(ctx context.Context, n *emu.Network, c PlayConfig) (playStats, error) {
	if c.clock == nil {
		c.clock = systemClock{}
	}
	s := sender{to: c.Reports, probes: c.Probes, conns: make(map[sourceKey]*net.UDPConn)}
	defer s.close()
	switch {
	case !c.Reports.Addr().IsLoopback() || c.Probes.IsValid() && !c.Probes.Addr().IsLoopback():
		return s.stats, fmt.Errorf("play to %v: emulated exporters have loopback addresses and cannot send elsewhere", c.Reports)
	case !n.Config().Exporters.IsLoopback():
		return s.stats, fmt.Errorf("play: exporters begin at %v; this machine can send from 127.0.0.0/8 only", n.Config().Exporters)
	case c.Speed < 0:
		return s.stats, fmt.Errorf("play at speed %v", c.Speed)
	}
	origin, base := c.clock.Now(), n.Now()
	for ctx.Err() == nil && s.err == nil && (c.Until == 0 || n.Now() < c.Until) {
		next := n.Now() + playStep
		if c.Speed > 0 {
			behind := base + time.Duration(float64(c.clock.Now().Sub(origin))*c.Speed) - n.Now()
			if limit := time.Duration(float64(maxLag) * c.Speed); behind > limit {
				s.stats.slipped += time.Duration(float64(behind-limit) / c.Speed)
				base -= behind - limit
				behind = limit
			}
			next = n.Now() + behind
		}
		if c.Until > 0 {
			next = min(next, c.Until)
		}
		if c.Each != nil {
			c.Each()
		}
		n.Run(next, s.send)
		if c.Speed > 0 && c.clock.Sleep(ctx, playStep) != nil {
			break
		}
	}
	return s.stats, s.err
}

type sourceKey struct {
	from  netip.Addr
	probe bool
}

// sender keeps one connected socket for each source address.
type sender struct {
	to, probes netip.AddrPort
	conns      map[sourceKey]*net.UDPConn
	stats      playStats
	err        error
}

func (s *sender) send(d emu.Datagram) {
	if s.err != nil {
		return
	}
	k, to := sourceKey{d.From.Addr(), d.Probe}, s.to
	if d.Probe {
		if to = s.probes; !to.IsValid() {
			return
		}
	}
	c := s.conns[k]
	if c == nil {
		var err error
		c, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(k.from, 0)), net.UDPAddrFromAddrPort(to))
		if err != nil {
			s.err = fmt.Errorf("send from %v: %w (%d sockets are open; each exporter needs one)", k.from, err, len(s.conns))
			return
		}
		s.conns[k] = c
	}
	_, err := c.Write(d.Payload)
	switch {
	case err == nil:
		s.stats.Datagrams++
		s.stats.Bytes += uint64(len(d.Payload))
	case errors.Is(err, syscall.ECONNREFUSED): // the answer to an earlier datagram
		s.stats.refused++
	default:
		s.stats.failed++
	}
}

func (s *sender) close() {
	for _, c := range s.conns {
		c.Close()
	}
}
