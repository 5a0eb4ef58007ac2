package afpacket

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hopscope/hopscope/ingest"
)

// Source reads the configured interfaces. It implements [ingest.Source].
type Source struct {
	crew    *ingest.Crew
	cfg     Config
	groups  []*group
	workers []*worker
	notices []string
}

var (
	_ ingest.Source    = (*Source)(nil)
	_ ingest.Prompter  = (*Source)(nil)
	_ ingest.Notifier  = (*Source)(nil)
	_ ingest.Describer = (*Source)(nil)
)

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
	c, err := ingest.NewCrew(cfg.Section, cfg.workers(), cfg.CPUs)
	if err != nil {
		return nil, err
	}
	s := &Source{crew: c, cfg: cfg}
	var errs []error
	for i := range cfg.workers() {
		s.workers = append(s.workers, newWorker(i, &s.cfg))
	}
	for _, name := range cfg.Interfaces {
		g := &group{name: name}
		s.groups = append(s.groups, g)
		for _, w := range s.workers {
			k := &slot{group: g, cfg: &s.cfg}
			g.slots, w.slots = append(g.slots, k), append(w.slots, k)
		}
		if err := g.start(&s.cfg, c.On); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", cfg.Section, err))
		} else if problem := g.problem(); problem != "" {
			s.notices = append(s.notices, problem)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(append(errs, s.Close())...)
	}
	return s, nil
}

// start opens the rings of an interface for the first time, each by on, on the CPU of its worker.
func (g *group) start(cfg *Config, on func(worker int, f func() error) error) error {
	d, err := LookUp(g.name)
	if err != nil {
		return err
	}
	for i, k := range g.slots {
		if !d.Up {
			k.down(g.name + " is down, and is read once it is up (ip link set " + g.name + " up)")
			continue
		}
		var r *ring
		err := on(i, func() (err error) { r, err = g.open(d, cfg); return err })
		if err != nil {
			return fmt.Errorf("interface %s: %w", g.name, err)
		}
		k.up(r, d.Index)
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

// Notices returns sentences that the operator should read although the source works.
func (s *Source) Notices() []string { return s.notices }

// Workers is the number of goroutines that call handle.
func (s *Source) Workers() int { return len(s.workers) }

// Run reads until ctx ends or a ring fails. It returns after everything that the filter took was handed over or counted, and the
// rings are closed. A source runs once.
func (s *Source) Run(ctx context.Context, handle func(worker int, b *ingest.Batch)) error {
	return s.crew.Run(ctx, func(i int) error { return s.workers[i].run(s.crew, handle) }, s.release)
}

// Prompt implements [ingest.Prompter].
func (s *Source) Prompt(before int64) { s.crew.Prompt(before) }

// Close releases the rings. Run does so itself.
func (s *Source) Close() error { return s.crew.Close(s.release) }

// release closes the rings.
func (s *Source) release() error {
	var errs []error
	for _, w := range s.workers {
		for _, k := range w.slots {
			errs = append(errs, k.close())
		}
	}
	return errors.Join(errs...)
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
