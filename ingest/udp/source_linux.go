package udp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
)

// Source receives on all configured addresses. It implements [ingest.Source].
type Source struct {
	workers []*worker
	addrs   []netip.AddrPort
	notices []string
	missing []ingest.Input // spare ports that another program has
	stop    int            // eventfd, readable once the source is to stop
	started atomic.Bool    // Run was called
	stopped atomic.Bool
	prompt  atomic.Pointer[prompt] // the last one

	mu     sync.Mutex // guards the sockets against being closed while Stats asks them
	closed bool
}

var (
	_ ingest.Source   = (*Source)(nil)
	_ ingest.Prompter = (*Source)(nil)
)

// prompt is a question whether everything was handed over that arrived before a time.
type prompt struct{ before int64 }

// New opens all sockets, or none when one of them fails; the error then names every address that failed, and why.
// Nothing is read, and no goroutine runs, before Run. A source that will not run needs Close.
func New(cfg Config) (*Source, error) {
	if err := errors.Join(cfg.ranges(), cfg.Validate()); err != nil {
		return nil, err
	}
	ports := cfg.ports()
	var addrs []netip.AddrPort
	for _, p := range ports {
		addrs = append(addrs, p.Addr)
	}
	prefixes, _ := cfg.prefixes()
	stop, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("udp: eventfd: %w", err)
	}
	s := &Source{stop: stop}
	var errs, missing []error
	for i := range cfg.workers() {
		w := newWorker(i, &cfg, prefixes)
		if w.wake, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
			errs = append(errs, fmt.Errorf("udp: eventfd: %w", err))
			break
		}
		s.workers = append(s.workers, w)
	}
	if len(errs) > 0 {
		return nil, errors.Join(append(errs, s.Close())...)
	}
	for _, p := range ports {
		group, err := openGroup(p.Addr, addrs, len(s.workers), &cfg)
		if err != nil && p.Spare {
			s.missing = append(s.missing, spare(p.Addr, err))
			missing = append(missing, err)
			continue
		} else if err != nil {
			errs = append(errs, err)
			continue
		}
		s.addrs = append(s.addrs, group[0].addr)
		for i, k := range group {
			k.only = p.Only
			s.workers[i].sockets = append(s.workers[i].sockets, k)
		}
		if n := bufferNotice(group[0], cfg.ReceiveBufferBytes); n != "" {
			s.notices = append(s.notices, n)
		}
	}
	if len(s.addrs) == 0 {
		errs = append(errs, missing...) // nothing is received without them
	}
	if len(errs) > 0 {
		s.Close()
		return nil, errors.Join(errs...)
	}
	return s, nil
}

// Addrs returns the addresses at which the source listens, with the ports that the kernel picked for port 0.
func (s *Source) Addrs() []netip.AddrPort { return s.addrs }

// Notices returns what the operator should know although it works, one sentence each.
func (s *Source) Notices() []string { return append(slices.Clip(s.notices), problems(s.missing)...) }

// Workers is the number of goroutines that call handle.
func (s *Source) Workers() int { return len(s.workers) }

// Run reads until ctx ends or a socket fails. It returns after everything that reached the sockets was handed over or
// counted, and they are closed. A source runs once.
func (s *Source) Run(ctx context.Context, handle func(worker int, b *ingest.Batch)) error {
	if s.started.Swap(true) {
		return errors.New("udp: a source runs only once")
	}
	woken := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() { s.wake(); close(woken) })
	var wg sync.WaitGroup
	errs := make([]error, len(s.workers))
	for i, w := range s.workers {
		wg.Go(func() {
			if errs[i] = w.run(s, handle); errs[i] != nil {
				s.wake() // one deaf worker among others would be a silent loss
			}
		})
	}
	wg.Wait()
	if !cancel() {
		<-woken // it writes to the eventfd that Close gives back
	}
	return errors.Join(append(errs, s.Close())...)
}

func (s *Source) wake() {
	s.stopped.Store(true)
	signal(s.stop)
}

// Prompt implements [ingest.Prompter].
func (s *Source) Prompt(before int64) {
	s.prompt.Store(&prompt{before})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for _, w := range s.workers {
		signal(w.wake)
	}
}

// signal makes an eventfd readable.
func signal(fd int) {
	one := [8]byte{0: 1, 7: 1} // not zero in either byte order
	// A full counter is readable as well, so there is no error that matters.
	_, _ = unix.Write(fd, one[:])
}

// Close gives the sockets back. Run does so itself.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for _, w := range s.workers {
		for _, k := range w.sockets {
			k.observeDrops()
			errs = append(errs, unix.Close(k.fd))
		}
		errs = append(errs, unix.Close(w.wake))
	}
	errs = append(errs, unix.Close(s.stop))
	return errors.Join(errs...)
}

// Stats adds up all sockets. Kernel drops are current, not those of the last datagram.
func (s *Source) Stats() ingest.Stats { return sum(s.Sockets()) }

// Inputs describes every address that datagrams come in at.
func (s *Source) Inputs() []ingest.Input { return append(inputs(s.Sockets(), s.notices), s.missing...) }

// Sockets returns the statistics of every socket, by worker and address.
func (s *Source) Sockets() []socketStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []socketStats
	for _, w := range s.workers {
		for _, k := range w.sockets {
			st := socketStats{Addr: k.addr, Worker: w.id, BufferBytes: k.granted}
			if !s.closed {
				st.BufferedBytes = k.observeDrops()
			}
			st.Stats = k.count.stats()
			out = append(out, st)
		}
	}
	return out
}
