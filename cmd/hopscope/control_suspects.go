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
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/sink"
)

// suspects turns findings, what probes tell of hops, and which of their rounds got lost, into links that want a closer look, once a cycle of the control of probes.
type suspects struct {
	links  *directions
	state  *suspicion.State // of who asks for suspects
	probes *probeFeed
	rounds *loop.Rounds
	cycle  time.Duration

	mu   sync.Mutex
	open map[uint64]inference.Finding
}

// maxOpen bounds the findings that are kept, since those of a fleet come from whoever may write to its topics.
const maxOpen = 1 << 16

// newSuspects follows a network whose probes pass these directions, once an interval, and are sent in some way.
func newSuspects(cfg suspicion.Config, links *directions, probes []planner.Probe, passed [][]int32, interval time.Duration, sent *loop.Probing) (*suspects, error) {
	in, err := suspicion.NewIncidence(withHosts(links.graph.NumInterfaces(), probes, passed))
	if err != nil {
		return nil, err
	}
	return &suspects{links: links, state: suspicion.New(cfg, in, links), probes: newProbeFeed(links, passed, interval), rounds: loop.NewRounds(probes, sent),
		cycle: cfg.Window, open: map[uint64]inference.Finding{}}, nil
}

// withHosts gives the incidence of probes with the lines of the hosts that send and take them, as links behind those of the network. A host
// that loses what it sends, or what comes, explains that then, and no link of the network is blamed for it.
func withHosts(links int, probes []planner.Probe, passed [][]int32) (int, [][]int32) {
	hosts := map[string]int32{}
	line := func(way []int32, which, name, host string) []int32 {
		key := which + name + " " + host
		l, ok := hosts[key]
		if !ok {
			l = int32(links + len(hosts))
			hosts[key] = l
		}
		return append(way, l)
	}
	all := make([][]int32, len(passed))
	for k := range passed {
		p := &probes[k]
		all[k] = line(line(slices.Clone(passed[k]), "from ", p.Agent, p.AgentHost), "to ", p.Collector, p.CollectorHost)
	}
	return links + len(hosts), all
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
	rounds, ok := s.rounds.Take()
	c.RoundsStand = !ok
	for _, r := range rounds {
		c.Rounds = append(c.Rounds, suspicion.Round{Probe: r.Probe, Sent: r.Sent, Lost: r.Lost})
	}
	var out []control.Suspect
	for _, x := range s.state.Step(&c) {
		if int(x.Link) >= s.links.graph.NumInterfaces() {
			continue // the line of a host, which no probe could look at more closely
		}
		out = append(out, control.Suspect{Link: s.links.name(int(x.Link)), Weight: x.Weight, Why: x.Why, Since: x.Since})
	}
	return out
}
