package traffic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Datagrams is a source of datagrams for [Send], from a number of exporters. [Generator] is one.
type Datagrams interface {
	Exporters() int
	// Bytes is the length of the longest datagram.
	Bytes() int
	// NextFrom writes the next datagram of an exporter into buf, which has room for it, and returns the part written.
	NextFrom(exporter int, buf []byte) []byte
}

// SendConfig is the destination, rate and duration of sending.
type SendConfig struct {
	To       netip.AddrPort
	Rate     float64       // datagrams a second; 0 sends as fast as the machine can
	Duration time.Duration // 0: no limit
	Count    uint64        // datagrams; 0: no limit
	// sockets is the number of sockets, each with a source port of its own. Exporter e sends from socket e modulo
	// sockets. With 0 every exporter has one, up to 64.
	sockets int
	// burst is the number of datagrams that leave with one system call. 0 sends those due in 100 µs, between 1 and
	// 64. A batch comes from one exporter.
	burst int
	// segment lets the kernel cut one large buffer into datagrams (UDP_SEGMENT). It costs the sender far less, and the
	// receiver too: it is for floods, not for measuring what receiving costs. Linux only, and only for datagrams of one
	// length.
	segment bool
}

const (
	maxSockets = 64
	maxBurst   = 64
	burstTime  = 100 * time.Microsecond
	// maxBehind is how far behind its schedule a sender may be and still catch up. Later datagrams are left out.
	// Otherwise a sender that lacked the CPU would hit the receiver with a burst above the requested rate.
	maxBehind = 5 * time.Millisecond
)

func (c *SendConfig) validate() error {
	var errs []error
	if !c.To.Addr().Unmap().IsLoopback() || c.To.Port() == 0 {
		errs = append(errs, fmt.Errorf("traffic: %v is no loopback address with a port; load is sent to this machine only", c.To))
	}
	if !(c.Rate >= 0 && c.Rate <= 1e9) {
		errs = append(errs, fmt.Errorf("traffic: rate %v is outside 0..1e9", c.Rate))
	}
	if c.sockets < 0 || c.sockets > maxSockets {
		errs = append(errs, fmt.Errorf("traffic: %d sockets are outside 0..%d", c.sockets, maxSockets))
	}
	if c.burst < 0 || c.burst > maxBurst {
		errs = append(errs, fmt.Errorf("traffic: a burst of %d is outside 0..%d", c.burst, maxBurst))
	}
	return errors.Join(errs...)
}

// Result holds the counts of what was sent.
type Result struct {
	Sent    uint64 // datagrams that the kernel took
	Bytes   uint64 // of their payload
	refused uint64 // times that the kernel reported no listener there
	Elapsed time.Duration
}

// Rate is the rate that was reached, in datagrams a second.
func (r Result) Rate() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Sent) / r.Elapsed.Seconds()
}

// Send sends datagrams of g until the count, the duration or ctx ends, whichever is first; none of these is an error.
// It locks a thread while it runs.
func Send(ctx context.Context, cfg SendConfig, g Datagrams) (Result, error) {
	if err := cfg.validate(); err != nil {
		return Result{}, err
	}
	sockets := cfg.sockets
	if sockets == 0 {
		sockets = min(g.Exporters(), maxSockets)
	}
	burst := cfg.burst
	if burst == 0 {
		burst = maxBurst
		if cfg.Rate > 0 {
			burst = int(min(max(cfg.Rate*burstTime.Seconds(), 1), maxBurst))
		}
	}
	if cfg.segment {
		burst = max(1, min(burst, maxBytes/g.Bytes()))
	}
	out, err := newSender(cfg.To, sockets, burst, g.Bytes(), cfg.segment)
	if err != nil {
		return Result{}, fmt.Errorf("traffic: send to %v: %w", cfg.To, err)
	}
	defer out.close()

	var r Result
	start := time.Now()
	origin := start // of the schedule; moves when the sender falls behind
	due := func(n uint64) time.Time { return origin.Add(time.Duration(float64(n) / cfg.Rate * 1e9)) }
	for e := 0; ctx.Err() == nil && (cfg.Count == 0 || r.Sent < cfg.Count); {
		n := burst
		if cfg.Count > 0 {
			n = int(min(uint64(n), cfg.Count-r.Sent))
		}
		if cfg.Rate > 0 {
			t := due(r.Sent)
			if cfg.Duration > 0 && t.Sub(start) >= cfg.Duration {
				sleepUntil(ctx, start.Add(cfg.Duration))
				break
			}
			sleepUntil(ctx, t)
			if late := time.Since(t); late > maxBehind {
				origin = origin.Add(late)
			}
		}
		if ctx.Err() != nil || cfg.Duration > 0 && time.Since(start) >= cfg.Duration {
			break
		}
		for i := range n {
			size := len(g.NextFrom(e, out.slot(i)))
			if cfg.segment && size != g.Bytes() {
				r.Elapsed = time.Since(start)
				return r, fmt.Errorf("traffic: a datagram of %d bytes among segments of %d", size, g.Bytes())
			}
			out.setLen(i, size)
			r.Bytes += uint64(size)
		}
		refused, err := out.send(e%sockets, n)
		r.refused += refused
		if err != nil {
			r.Elapsed = time.Since(start)
			return r, fmt.Errorf("traffic: send to %v: %w", cfg.To, err)
		}
		r.Sent += uint64(n)
		if e++; e == g.Exporters() {
			e = 0
		}
	}
	r.Elapsed = time.Since(start)
	return r, nil
}

// sleepUntil waits for t or the end of ctx, to within some microseconds.
func sleepUntil(ctx context.Context, t time.Time) {
	for {
		d := time.Until(t)
		switch {
		case d <= 0:
			return
		case d > 5*time.Millisecond: // the runtime's timers are exact to a millisecond
			timer := time.NewTimer(d - 2*time.Millisecond)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
		default:
			nap(d)
		}
	}
}
