package collector

import (
	"context"
	"math"
	"sync"

	"github.com/hopscope/hopscope/ingest"
)

// source is a source of a collector and what was told about it.
type source struct {
	Source
	first    int    // of its workers, among those of the pipeline
	dropped  uint64 // by the kernel, as far as the ledger knows
	problems map[string]string
}

// introduce tells the log where frames come from, where series go, and where people can look.
func (c *Collector) introduce() {
	for _, s := range c.sources {
		if n, ok := s.Source.Source.(ingest.Notifier); ok {
			for _, text := range n.Notices() {
				c.log.Warn(text)
			}
		}
		switch in := s.Source.Source.(type) {
		case ingest.Listener:
			for _, a := range in.Addrs() {
				c.log.Info("receiving reports", "address", a.String(), "workers", s.Workers())
			}
		case ingest.Describer:
			for _, i := range in.Inputs() {
				c.log.Info("reading frames", "source", s.Name, "input", i.Name)
			}
		default:
			c.log.Info("reading frames", "source", s.Name)
		}
	}
	for _, s := range c.stores.All() {
		what := "writing series"
		if s.Alerts {
			what = "sending alerts"
		}
		c.log.Info(what, "sink", s.Name(), "target", s.Target)
	}
	for _, w := range c.writers {
		if page, ok := w.(interface{ URL() string }); ok {
			c.log.Info("serving the page", "url", page.URL())
		}
	}
}

// runSources starts all sources. The channel is closed when the last of them has ended.
func (c *Collector) runSources(ctx context.Context, handle func(*worker, []ingest.Frame), failed chan<- error) <-chan struct{} {
	ended := make(chan struct{})
	var running sync.WaitGroup
	for _, s := range c.sources {
		workers := c.pipeline.workers[s.first:][:s.Workers()]
		_, receives := s.Source.Source.(ingest.Prompter)
		for _, w := range workers {
			w.receipt.on = receives && !c.opt.Policy.CaptureTime
		}
		running.Go(func() {
			err := s.Run(ctx, func(worker int, b *ingest.Batch) {
				handle(workers[worker], b.Frames)
				if b.Until != 0 {
					c.pipeline.answered(workers[worker], b.Until)
				}
			})
			for _, w := range workers {
				c.pipeline.answered(w, math.MaxInt64)
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

// lookAtSources puts what the kernel dropped since the last call into the ledger, and tells the log of inputs that no
// longer work.
func (c *Collector) lookAtSources() {
	for _, s := range c.sources {
		if n := s.Stats().KernelDropped; n > s.dropped {
			c.ledger.Receive(DroppedKernel, n-s.dropped)
			c.log.Warn("the kernel dropped report datagrams: the socket buffer was full", "count", n-s.dropped)
			s.dropped = n
		}
		if d, ok := s.Source.Source.(ingest.Describer); ok {
			s.tellProblems(c, d.Inputs())
		}
	}
}

// tellProblems logs the problem of an input once, and its end. What was known before the start is a notice, and was told
// as one.
func (s *source) tellProblems(c *Collector, inputs []ingest.Input) {
	if s.problems == nil {
		s.problems = map[string]string{}
		if _, ok := s.Source.Source.(ingest.Notifier); ok {
			for _, in := range inputs {
				s.problems[in.Name] = in.Problem
			}
		}
	}
	for _, in := range inputs {
		if in.Problem == s.problems[in.Name] {
			continue
		}
		s.problems[in.Name] = in.Problem
		if in.Problem == "" {
			c.log.Info("reading again", "source", s.Name, "input", in.Name)
		} else {
			c.log.Warn("not everything is read", "source", s.Name, "input", in.Name, "problem", in.Problem)
		}
	}
}
