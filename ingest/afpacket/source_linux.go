package afpacket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
)

// Source reads the configured interfaces. It implements [ingest.Source].
type Source struct {
	cfg     Config
	groups  []*group
	workers []*worker
	notices []string
	stop    int // eventfd, readable once the source is to stop
	started atomic.Bool
	stopped atomic.Bool
	prompt  atomic.Pointer[prompt] // the last one

	mu     sync.Mutex // guards the eventfds against being closed while Prompt writes to them
	closed bool
}

var (
	_ ingest.Source    = (*Source)(nil)
	_ ingest.Prompter  = (*Source)(nil)
	_ ingest.Notifier  = (*Source)(nil)
	_ ingest.Describer = (*Source)(nil)
)

// prompt is a question whether everything was handed over that arrived before a time.
type prompt struct{ before int64 }

// group is an interface, with the rings that share its packets.
type group struct {
	name  string
	slots []*slot // by worker

	mu        sync.Mutex
	index, id int // of the device that the rings are open on, and of the kernel's group
}

// New opens the rings of all interfaces, or none where one of them fails; the error then names every interface that failed,
// and why. An interface that is down is read once it is up. Nothing is read, and no goroutine runs, before Run. A source that
// will not run needs Close.
func New(cfg Config) (*Source, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	stop, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("afpacket: eventfd: %w", err)
	}
	s := &Source{cfg: cfg, stop: stop}
	var errs []error
	for range cfg.workers() {
		w, err := newWorker(len(s.workers), &s.cfg)
		if err != nil {
			errs = append(errs, err)
			break
		}
		s.workers = append(s.workers, w)
	}
	for _, name := range cfg.Interfaces {
		g := &group{name: name}
		s.groups = append(s.groups, g)
		for _, w := range s.workers {
			k := &slot{group: g, cfg: &s.cfg}
			g.slots, w.slots = append(g.slots, k), append(w.slots, k)
		}
		if err := g.start(&s.cfg); err != nil {
			errs = append(errs, fmt.Errorf("afpacket: %w", err))
		} else if problem := g.problem(); problem != "" {
			s.notices = append(s.notices, problem)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(append(errs, s.Close())...)
	}
	return s, nil
}

// start opens the rings of an interface for the first time.
func (g *group) start(cfg *Config) error {
	d, err := lookUp(g.name)
	if err != nil {
		return err
	}
	for _, k := range g.slots {
		if !d.up {
			k.down(g.name + " is down, and is read once it is up (ip link set " + g.name + " up)")
			continue
		}
		r, err := g.open(d, cfg)
		if err != nil {
			return fmt.Errorf("interface %s: %w", g.name, err)
		}
		k.up(r, d.index)
	}
	return nil
}

// problem is why nothing is read from the interface, or from a part of its rings; empty if all is read.
func (g *group) problem() string {
	for _, k := range g.slots {
		k.mu.Lock()
		problem := k.problem
		k.mu.Unlock()
		if problem != "" {
			return problem
		}
	}
	return ""
}

// Notices returns what the operator should know although it works, one sentence each.
func (s *Source) Notices() []string { return s.notices }

// Workers is the number of goroutines that call handle.
func (s *Source) Workers() int { return len(s.workers) }

// Run reads until ctx ends or a ring fails. It returns after everything that the filter took was handed over or counted, and the
// rings are closed. A source runs once.
func (s *Source) Run(ctx context.Context, handle func(worker int, b *ingest.Batch)) error {
	if s.started.Swap(true) {
		return errors.New("afpacket: a source runs only once")
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

// Close gives the rings back. Run does so itself.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for _, w := range s.workers {
		for _, k := range w.slots {
			errs = append(errs, k.close())
		}
		errs = append(errs, unix.Close(w.wake))
	}
	return errors.Join(append(errs, unix.Close(s.stop))...)
}

// Stats adds up all rings. Kernel drops are current.
func (s *Source) Stats() (sum ingest.Stats) {
	for _, g := range s.groups {
		for _, k := range g.slots {
			st := k.stats()
			sum.Frames += st.Frames
			sum.Bytes += st.Bytes
			sum.Truncated += st.Truncated
			sum.KernelDropped += st.KernelDropped
		}
	}
	return sum
}

// Inputs describes every interface.
func (s *Source) Inputs() (list []ingest.Input) {
	for _, g := range s.groups {
		in := ingest.Input{Name: g.name, Problem: g.problem()}
		for _, k := range g.slots {
			in.Frames += k.frames.Load()
		}
		list = append(list, in)
	}
	return list
}
