package afxdp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/afpacket"
)

// lookEvery is the interval at which interfaces are looked at, which may come and go.
const lookEvery = time.Second

// Source reads the configured interfaces. It implements [ingest.Source].
type Source struct {
	crew    *ingest.Crew
	cfg     Config
	beside  *afpacket.Source // has what is not steered
	ports   []*port
	workers []*worker
	names   []string // of the inputs
	notices []string
}

var (
	_ ingest.Source    = (*Source)(nil)
	_ ingest.Prompter  = (*Source)(nil)
	_ ingest.Notifier  = (*Source)(nil)
	_ ingest.Describer = (*Source)(nil)
)

// New opens the sockets of all interfaces, and the rings beside. An interface without AF_XDP is a notice; only one that AF_PACKET
// cannot read is an error. Nothing is read, and no goroutine runs, before Run. A source that will not run needs Close.
func New(cfg Config) (*Source, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	beside, err := afpacket.New(cfg.Config)
	if err != nil {
		return nil, err
	}
	n, _ := cfg.Config.Readers()
	c, err := ingest.NewCrew(cfg.Section, n, cfg.CPUs)
	if err != nil {
		return nil, errors.Join(err, beside.Close())
	}
	s := &Source{crew: c, cfg: cfg, beside: beside, notices: beside.Notices()}
	base, err := newBase()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for i := range n {
		s.workers = append(s.workers, newWorker(i, &s.cfg, base))
	}
	for _, name := range cfg.Interfaces {
		p := &port{name: name, cfg: &s.cfg, on: c.On}
		for _, w := range s.workers {
			k := &slot{port: p}
			p.slots, w.slots = append(p.slots, k), append(w.slots, k)
		}
		s.ports = append(s.ports, p)
		s.names = append(s.names, s.start(p))
	}
	return s, nil
}

// start opens an interface for the first time, and returns the name of its input.
func (s *Source) start(p *port) string {
	d, err := afpacket.LookUp(p.name)
	if err != nil || !d.Up {
		return p.name // it is looked at again
	}
	if err := p.open(d); err != nil {
		s.notices = append(s.notices, alone(p.name, err))
		return p.name + " (AF_PACKET)"
	}
	return p.name + " (" + p.text + ")"
}

// Notices returns sentences that the operator should read although the source works.
func (s *Source) Notices() []string { return s.notices }

// Workers is the number of goroutines that call handle.
func (s *Source) Workers() int { return len(s.workers) + s.beside.Workers() }

// Run reads until ctx ends or a ring fails. It returns after everything that was steered, and everything that the filters of the
// rings beside took, was handed over or counted, and all is closed. A source runs once.
func (s *Source) Run(ctx context.Context, handle func(worker int, b *ingest.Batch)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var beside error
	var running sync.WaitGroup
	running.Go(func() {
		defer stop() // one deaf part among others would be a silent loss
		beside = s.beside.Run(ctx, func(worker int, b *ingest.Batch) { handle(len(s.workers)+worker, b) })
	})
	running.Go(func() { s.watch(ctx) })
	err := s.crew.Run(ctx, func(i int) error { return s.workers[i].run(s.crew, handle) }, s.release)
	stop()
	running.Wait()
	return errors.Join(err, beside, s.release()) // of what came up while the workers ended
}

// watch follows interfaces that come and go.
func (s *Source) watch(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		for _, p := range s.ports {
			if p.look() {
				s.crew.Wake()
			}
		}
	}
}

// Prompt implements [ingest.Prompter].
func (s *Source) Prompt(before int64) {
	s.crew.Prompt(before)
	s.beside.Prompt(before)
}

// Close releases everything. Run does so itself.
func (s *Source) Close() error { return errors.Join(s.crew.Close(s.release), s.beside.Close()) }

// release detaches the programs and closes the sockets.
func (s *Source) release() error {
	var errs []error
	for _, p := range s.ports {
		errs = append(errs, p.detach())
		for _, k := range p.slots {
			if k.changed.Load() {
				errs = append(errs, k.replace())
			}
			errs = append(errs, k.replace())
		}
	}
	return errors.Join(errs...)
}

// Stats adds up all rings. Kernel drops are current.
func (s *Source) Stats() ingest.Stats {
	sum := s.beside.Stats()
	for _, p := range s.ports {
		for _, k := range p.slots {
			st := k.stats()
			sum.Frames += st.Frames
			sum.Bytes += st.Bytes
			sum.Truncated += st.Truncated
			sum.KernelDropped += st.KernelDropped
			sum.Steered += st.Steered
			sum.RingDropped += st.RingDropped
			sum.RingFull += st.RingFull
			sum.FillEmpty += st.FillEmpty
			sum.InvalidDescriptors += st.InvalidDescriptors
		}
	}
	return sum
}

// Inputs describes every interface.
func (s *Source) Inputs() []ingest.Input {
	list := s.beside.Inputs()
	for i, p := range s.ports {
		list[i].Name = s.names[i]
		for _, k := range p.slots {
			list[i].Frames += k.frames.Load()
		}
		p.mu.Lock()
		if list[i].Problem == "" {
			list[i].Problem = p.problem
		}
		p.mu.Unlock()
	}
	return list
}
