package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/sink"
)

// suspects turns findings, and what probes tell of hops, into links that want a closer look, once a cycle of the control of probes.
type suspects struct {
	links  *directions
	state  *suspicion.State // of who asks for suspects
	probes *probeFeed
	cycle  time.Duration

	mu   sync.Mutex
	open map[uint64]inference.Finding
}

// maxOpen bounds the findings that are kept, since those of a fleet come from whoever may write to its topics.
const maxOpen = 1 << 16

// newSuspects follows a network whose probes pass these directions, once an interval.
func newSuspects(cfg suspicion.Config, links *directions, passed [][]int32, interval time.Duration) (*suspects, error) {
	in, err := suspicion.NewIncidence(links.graph.NumInterfaces(), passed)
	if err != nil {
		return nil, err
	}
	return &suspects{links: links, state: suspicion.New(cfg, in, links), probes: newProbeFeed(links, passed, interval), cycle: cfg.Window, open: map[uint64]inference.Finding{}}, nil
}

// Name implements [sink.WindowWriter].
func (*suspects) Name() string { return "control" }

// WriteWindow keeps what a collector of this process finds, and what probes told it.
func (s *suspects) WriteWindow(_ context.Context, w *sink.Window) error {
	if w.Window != nil && w.Revision == 0 {
		s.probes.take(w.Window)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range w.Findings {
		if f.End != 0 {
			delete(s.open, f.ID)
		} else if _, known := s.open[f.ID]; known || len(s.open) < maxOpen {
			s.open[f.ID] = f
		}
	}
	return nil
}

// replace takes the findings that are open at another collector.
func (s *suspects) replace(open []inference.Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.open)
	for _, f := range open {
		s.open[f.ID] = f
	}
}

// Suspects implements [control.Suspects].
func (s *suspects) Suspects(now int64) []control.Suspect {
	s.mu.Lock()
	open := slices.SortedFunc(maps.Values(s.open), func(a, b inference.Finding) int { return cmp.Compare(a.ID, b.ID) })
	s.mu.Unlock()
	c := suspicion.Cycle{Now: now, Findings: open}
	s.probes.cycle(&c, s.cycle)
	var out []control.Suspect
	for _, x := range s.state.Step(&c) {
		out = append(out, control.Suspect{Link: s.links.name(int(x.Link)), Weight: x.Weight, Why: x.Why, Since: x.Since})
	}
	return out
}
