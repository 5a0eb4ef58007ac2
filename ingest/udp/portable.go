package udp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/ingest"
)

// portable receives through package net: one socket and worker an address, one datagram a call. It serves the systems
// without recvmmsg, and on Linux it is the twin that the tests compare with. Workers, CPUs, Steering, BatchSize and Nap
// of the configuration mean nothing to it.
type portable struct {
	conns    []*net.UDPConn
	addrs    []netip.AddrPort
	counts   []counters
	prefixes []netip.Prefix
	size     int
	only     []ingest.Kind
	missing  []ingest.Input // spare ports that another program has
	started  atomic.Bool
	stopped  atomic.Bool
	prompt   atomic.Pointer[int64] // the time of the last one
}

var (
	_ ingest.Source   = (*portable)(nil)
	_ ingest.Prompter = (*portable)(nil)
)

const portableNotice = "this system says neither what it dropped nor when a datagram arrived: kernel losses are not counted, and times are those of reading"

// portableDrain is how long a source that was stopped waits for another datagram that its buffer may hold.
const portableDrain = 20 * time.Millisecond

// newPortable opens all sockets, or none.
func newPortable(cfg Config) (*portable, error) {
	if err := errors.Join(cfg.ranges(), cfg.Validate()); err != nil {
		return nil, err
	}
	ports := cfg.ports()
	s := &portable{counts: make([]counters, len(ports)), size: cfg.MaxDatagramBytes}
	s.prefixes, _ = cfg.prefixes()
	var errs, missing []error
	for _, p := range ports {
		a := p.Addr
		network := "udp"
		if a.Addr().Is4() {
			network = "udp4" // 0.0.0.0 would also take IPv6
		}
		c, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(a))
		if err == nil {
			if err = c.SetReadBuffer(cfg.ReceiveBufferBytes); err != nil {
				_ = c.Close()
			}
		}
		if err != nil {
			err = fmt.Errorf("udp: listen on %v: %w", a, err)
			if p.Spare {
				s.missing = append(s.missing, spare(a, err))
				missing = append(missing, err)
			} else {
				errs = append(errs, err)
			}
			continue
		}
		s.only = append(s.only, p.Only)
		s.conns = append(s.conns, c)
		s.addrs = append(s.addrs, netip.AddrPortFrom(a.Addr(), c.LocalAddr().(*net.UDPAddr).AddrPort().Port()))
	}
	if len(s.conns) == 0 {
		errs = append(errs, missing...) // nothing is received without them
	}
	if len(errs) > 0 {
		return nil, errors.Join(append(errs, s.Close())...)
	}
	return s, nil
}

// Addrs returns the addresses at which the source listens.
func (s *portable) Addrs() []netip.AddrPort { return s.addrs }

// Notices returns sentences that the operator should read although the source works.
func (s *portable) Notices() []string {
	return append([]string{portableNotice}, problems(s.missing)...)
}

// Workers is the number of goroutines that call handle.
func (s *portable) Workers() int { return len(s.addrs) }

// Run reads until ctx ends or a socket fails, and closes the sockets.
func (s *portable) Run(ctx context.Context, handle func(worker int, b *ingest.Batch)) error {
	if s.started.Swap(true) {
		return errors.New("udp: a source runs only once")
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(inner, func() {
		s.stopped.Store(true)
		for _, c := range s.conns {
			_ = c.SetReadDeadline(time.Now()) // wakes the reader, which drains
		}
	})
	defer stop()
	var wg sync.WaitGroup
	errs := make([]error, len(s.conns))
	for i := range s.conns {
		wg.Go(func() {
			if errs[i] = s.read(i, handle); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, s.Close())...)
}

// Prompt implements [ingest.Prompter].
func (s *portable) Prompt(before int64) {
	if s.stopped.Load() {
		return
	}
	s.prompt.Store(&before)
	for _, c := range s.conns {
		_ = c.SetReadDeadline(time.Now()) // wakes the reader, which takes it back
	}
}

func (s *portable) read(i int, handle func(int, *ingest.Batch)) error {
	buf := make([]byte, 1<<16) // the largest datagram: some systems make a cut one an error
	batch := ingest.Batch{Frames: make([]ingest.Frame, 1)}
	admit := admission{prefixes: s.prefixes}
	var end time.Time // of draining
	var asked *int64
	for {
		// What is read from now on has a later time.
		if p := s.prompt.Load(); p != asked {
			asked = p
			handle(i, &ingest.Batch{Until: *p})
		}
		if !end.IsZero() {
			_ = s.conns[i].SetReadDeadline(time.Now().Add(portableDrain))
		}
		n, src, err := s.conns[i].ReadFromUDPAddrPort(buf)
		switch now := time.Now(); {
		case errors.Is(err, os.ErrDeadlineExceeded) && !s.stopped.Load(): // a prompt
			_ = s.conns[i].SetReadDeadline(time.Time{})
			if s.stopped.Load() { // meanwhile, and its deadline may be gone
				_ = s.conns[i].SetReadDeadline(now)
			}
			continue
		case errors.Is(err, os.ErrDeadlineExceeded) && end.IsZero():
			end = now.Add(drainTime)
			continue
		case errors.Is(err, os.ErrDeadlineExceeded), !end.IsZero() && now.After(end):
			return nil
		case err != nil:
			return fmt.Errorf("udp: receive on %v: %w", s.addrs[i], err)
		}
		src = netip.AddrPortFrom(src.Addr().Unmap().WithZone(""), src.Port())
		if !admit.admits(src.Addr()) {
			s.counts[i].add(0, 0, 0, 1)
			continue
		}
		cut := max(n-s.size, 0)
		batch.Frames[0] = ingest.Frame{
			Data: buf[:n-cut], Length: n, Time: time.Now().UnixNano(),
			Link: ingest.LinkUDP, Dst: s.addrs[i].Addr(), DstPort: s.addrs[i].Port(), Only: s.only[i], Src: src,
		}
		s.counts[i].add(1, n-cut, min(cut, 1), 0)
		handle(i, &batch)
	}
}

// Close closes the sockets. Run does so itself.
func (s *portable) Close() error {
	var errs []error
	for _, c := range s.conns {
		if err := c.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Stats adds up all sockets.
func (s *portable) Stats() ingest.Stats { return sum(s.Sockets()) }

// Inputs describes every address that datagrams come in at.
func (s *portable) Inputs() []ingest.Input {
	return append(inputs(s.Sockets(), []string{portableNotice}), s.missing...)
}

// Sockets returns the statistics of every socket.
func (s *portable) Sockets() []socketStats {
	out := make([]socketStats, len(s.addrs))
	for i := range out {
		out[i] = socketStats{Stats: s.counts[i].stats(), Addr: s.addrs[i], Worker: i}
	}
	return out
}
