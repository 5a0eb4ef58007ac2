package udp

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
)

// Source receives on all configured addresses. It implements [ingest.Source].
type Source struct {
	crew    *ingest.Crew // which also guards the sockets against being closed while Stats asks them
	workers []*worker
	addrs   []netip.AddrPort
	notices []string
	missing []ingest.Input // spare ports that another program has
}

var (
	_ ingest.Source   = (*Source)(nil)
	_ ingest.Prompter = (*Source)(nil)
)

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
	c, err := ingest.NewCrew("udp", cfg.workers(), cfg.CPUs)
	if err != nil {
		return nil, err
	}
	s := &Source{crew: c}
	var errs, missing []error
	for i := range cfg.workers() {
		s.workers = append(s.workers, newWorker(i, &cfg, prefixes))
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

// Notices returns sentences that the operator should read although the source works.
func (s *Source) Notices() []string { return append(slices.Clip(s.notices), problems(s.missing)...) }

// Workers is the number of goroutines that call handle.
func (s *Source) Workers() int { return len(s.workers) }

// Run reads until ctx ends or a socket fails. It returns after everything that reached the sockets was handed over or
// counted, and they are closed. A source runs once.
func (s *Source) Run(ctx context.Context, handle func(worker int, b *ingest.Batch)) error {
	return s.crew.Run(ctx, func(i int) error { return s.workers[i].run(s.crew, handle) }, s.release)
}

// Prompt implements [ingest.Prompter].
func (s *Source) Prompt(before int64) { s.crew.Prompt(before) }

// Close closes the sockets. Run does so itself.
func (s *Source) Close() error { return s.crew.Close(s.release) }

// release closes the sockets.
func (s *Source) release() error {
	var errs []error
	for _, w := range s.workers {
		for _, k := range w.sockets {
			k.observeDrops()
			errs = append(errs, unix.Close(k.fd))
		}
	}
	return errors.Join(errs...)
}

// Stats adds up all sockets. Kernel drops are current, not those of the last datagram.
func (s *Source) Stats() ingest.Stats { return sum(s.Sockets()) }

// Inputs describes every address that datagrams come in at.
func (s *Source) Inputs() []ingest.Input { return append(inputs(s.Sockets(), s.notices), s.missing...) }

// Sockets returns the statistics of every socket, by worker and address.
func (s *Source) Sockets() (out []socketStats) {
	s.crew.Guard(func(open bool) {
		for _, w := range s.workers {
			for _, k := range w.sockets {
				st := socketStats{Addr: k.addr, Worker: w.id, bufferBytes: k.granted}
				if open {
					st.bufferedBytes = k.observeDrops()
				}
				st.Stats = k.count.stats()
				out = append(out, st)
			}
		}
	})
	return out
}
