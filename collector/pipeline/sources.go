package pipeline

import (
	"context"
	"log/slog"
	"math"
	"net/netip"
	"sync"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/ingest"
)

// source is a source with its workers, and the problems logged about it.
type source struct {
	Source
	workers  []*Worker
	dropped  uint64            // by the kernel, as far as the ledger knows
	problems map[string]string // of inputs, as they were logged last
	opened   map[string]string // as they were when the source was opened: what does not change is a notice
}

// addSources makes the workers of sources. A worker waits for full queues if its source can wait, or if block is set.
func (p *Pipeline) addSources(list []Source, block bool, shards int, sites *exporters.Sites, router func() *demux.Router) {
	for _, s := range list {
		waits, ok := s.Source.(ingest.Waiter)
		from := len(p.workers)
		for range s.Workers() {
			w := &Worker{id: len(p.workers), block: block || ok && waits.Waits(), out: make([]*work, shards), sites: sites.Placer()}
			w.decoder.Store(router())
			p.workers = append(p.workers, w)
		}
		src := &source{Source: s, workers: p.workers[from:len(p.workers):len(p.workers)]}
		if d, ok := s.Source.(ingest.Describer); ok {
			src.opened = problems(d.Inputs())
		}
		p.sources = append(p.sources, src)
	}
}

// kinds are what decoders call the kinds of ports.
var kinds = [...]demux.Kind{ingest.Anything: demux.Anything, ingest.Reports: demux.ReportsOnly, ingest.SFlow: demux.SFlowOnly, ingest.IPFIX: demux.IPFIXOnly}

// KindOf returns the decoders' name of a kind of port.
func KindOf(k ingest.Kind) demux.Kind { return kinds[k] }

// Addrs are the addresses that frames are received on.
func (p *Pipeline) Addrs() (addrs []netip.AddrPort) {
	for _, s := range p.sources {
		if l, ok := s.Source.Source.(ingest.Listener); ok {
			addrs = append(addrs, l.Addrs()...)
		}
	}
	return addrs
}

// Input is one place that frames come from.
type Input struct {
	Source string // "udp"
	ingest.Input
}

// Inputs are the places that frames come from.
func (p *Pipeline) Inputs() (list []Input) {
	for _, src := range p.sources {
		inputs := []ingest.Input{{Name: src.Name}}
		if d, ok := src.Source.Source.(ingest.Describer); ok {
			inputs = d.Inputs()
		} else {
			inputs[0].Frames = src.Stats().Frames
		}
		for _, in := range inputs {
			list = append(list, Input{src.Name, in})
		}
	}
	return list
}

// InputProblems returns, for each input with a problem that began after its source was opened, why not everything is
// read from it.
func (p *Pipeline) InputProblems() (list []string) {
	for _, s := range p.sources {
		if d, ok := s.Source.Source.(ingest.Describer); ok {
			for _, in := range d.Inputs() {
				if in.Problem != "" && in.Problem != s.opened[in.Name] {
					list = append(list, s.Name+": "+in.Problem)
				}
			}
		}
	}
	return list
}

// problems are those of inputs, by their names.
func problems(inputs []ingest.Input) map[string]string {
	m := map[string]string{}
	for _, in := range inputs {
		m[in.Name] = in.Problem
	}
	return m
}

// Introduce logs where frames come from.
func (p *Pipeline) Introduce() {
	for _, s := range p.sources {
		if n, ok := s.Source.Source.(ingest.Notifier); ok {
			for _, text := range n.Notices() {
				p.log.Warn(text)
			}
			if d, ok := n.(ingest.Describer); ok {
				s.problems = problems(d.Inputs())
			}
		}
		switch in := s.Source.Source.(type) {
		case ingest.Listener:
			for _, a := range in.Addrs() {
				p.log.Info("receiving reports", "address", a.String(), "workers", s.Workers())
			}
		case ingest.Describer:
			for _, i := range in.Inputs() {
				p.log.Info("reading frames", "source", s.Name, "input", i.Name)
			}
		default:
			p.log.Info("reading frames", "source", s.Name)
		}
	}
}

// RunSources starts all sources, whose frames go to handle. Frames have the time of their receipt, or with captured
// that of a capture. The channel is closed when the last source has ended.
func (p *Pipeline) RunSources(ctx context.Context, handle func(*Worker, []ingest.Frame), captured bool, failed chan<- error) <-chan struct{} {
	ended := make(chan struct{})
	var running sync.WaitGroup
	for _, s := range p.sources {
		_, receives := s.Source.Source.(ingest.Prompter)
		for _, w := range s.workers {
			w.receipt.on = receives && !captured
		}
		running.Go(func() {
			err := s.Run(ctx, func(worker int, b *ingest.Batch) {
				handle(s.workers[worker], b.Frames)
				if b.Until != 0 {
					p.answered(s.workers[worker], b.Until)
				}
			})
			for _, w := range s.workers {
				p.answered(w, math.MaxInt64)
			}
			if err != nil {
				failed <- err
			}
		})
	}
	go func() {
		running.Wait()
		close(ended)
	}()
	return ended
}

// LookAtSources puts what the kernel dropped since the last call into the ledger, and logs inputs that no longer work.
func (p *Pipeline) LookAtSources() {
	for _, s := range p.sources {
		if n := s.Stats().KernelDropped; n > s.dropped {
			p.ledger.Receive(ledger.DroppedKernel, n-s.dropped)
			p.log.Warn("the kernel dropped datagrams: the buffer of the source was full", "source", s.Name, "count", n-s.dropped)
			s.dropped = n
		}
		if d, ok := s.Source.Source.(ingest.Describer); ok {
			s.logProblems(p.log, d.Inputs())
		}
	}
}

// logProblems logs the problem of an input once, and its end. A problem known before the start is a notice, and was
// logged as one.
func (s *source) logProblems(log *slog.Logger, inputs []ingest.Input) {
	if s.problems == nil {
		s.problems = map[string]string{}
	}
	for _, in := range inputs {
		if in.Problem == s.problems[in.Name] {
			continue
		}
		s.problems[in.Name] = in.Problem
		if in.Problem == "" {
			log.Info("reading again", "source", s.Name, "input", in.Name)
		} else {
			log.Warn("not everything is read", "source", s.Name, "input", in.Name, "problem", in.Problem)
		}
	}
}
