package steer

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/control"
)

// Config describes the probes that suspects are found by.
type Config struct {
	Suspicion suspicion.Config
	Links     *Links
	Probes    []planner.Probe
	Passed    [][]int32     // by probe: the directions that it passes, from [Links.Route]
	Interval  time.Duration // of the probe that is sent least often
	Sent      *loop.Probing // nil where Rounds is set
	Rounds    Rounds        // nil for those of surveys of agents
}

// Rounds returns rounds of probes whose fate has become known since the last call. [loop.Rounds] are those of agents.
type Rounds interface {
	Drain() (list []loop.ProbeRounds, ok bool)
}

// Suspects turns findings, reports of probes on hops, and lost rounds of probes into links that need detail. It does so
// once a cycle of the control of probes. It implements [control.Suspects].
type Suspects struct {
	Feed   *feed
	Rounds *loop.Rounds // of agents; nil where the settings have others

	links  *Links
	hosts  map[string]int32 // lines of hosts, by name
	state  *suspicion.State // owned by the caller of Suspects
	rounds Rounds
	cycle  time.Duration

	mu   sync.Mutex
	open map[uint64]inference.Finding
}

// maxOpen bounds the findings that are kept, since those of a fleet come from every writer of its topics.
const maxOpen = 1 << 16

// Clocks of switches differ, unlike those of one emulator. One direction of a line is judged by two clocks, and a step
// of less than clockStep accuses no line. Both directions together are free of steps. But their least times are of
// different moments, and undisciplined clocks drift by up to clockDrift in between.
const (
	clockStep  = 10e6 // ns
	clockDrift = 1e-4
)

// New makes the suspects of a network of which nothing is known yet.
func New(c *Config) (*Suspects, error) {
	lists, back, hosts := withHosts(c.Links, c.Probes, c.Passed)
	in, err := suspicion.NewIncidence(len(back), lists)
	if err != nil {
		return nil, err
	}
	if err := in.Pair(back); err != nil {
		return nil, err
	}
	cfg := c.Suspicion
	span := max(cfg.Window, probeRounds*c.Interval)
	cfg.LineFloor, cfg.PairFloor = max(cfg.LineFloor, clockStep), max(cfg.PairFloor, clockDrift*float64(span))
	s := &Suspects{links: c.Links, hosts: hosts, state: suspicion.New(cfg, in, c.Links), Feed: newFeed(c.Links, c.Passed, c.Interval),
		rounds: c.Rounds, cycle: c.Suspicion.Window, open: map[uint64]inference.Finding{}}
	if s.rounds == nil {
		s.Rounds = loop.NewRounds(c.Probes, c.Sent)
		s.rounds = s.Rounds
	}
	return s, nil
}

// withHosts returns the links of probes with the lines of the sending hosts, as links behind those of the network.
// Hosts that receive behind a port outside the graph are among them. It also returns by link its other direction or -1,
// and the lines of hosts by name. A lossy host then explains its losses, and no link of the network is blamed.
func withHosts(d *Links, probes []planner.Probe, passed [][]int32) (all [][]int32, back []int32, hosts map[string]int32) {
	g := d.graph
	links := g.NumInterfaces()
	hosts = map[string]int32{}
	line := func(way []int32, which, name, host string) []int32 {
		key := which + name + " " + host
		l, ok := hosts[key]
		if !ok {
			l = int32(links + len(hosts))
			hosts[key] = l
		}
		return append(way, l)
	}
	all = make([][]int32, len(passed))
	for k := range passed {
		p := &probes[k]
		all[k] = line(slices.Clone(passed[k]), "from ", p.Agent, p.AgentHost)
		if n := len(passed[k]); n == 0 || g.Peer(int(passed[k][n-1])) >= 0 {
			all[k] = line(all[k], "to ", p.Collector, p.CollectorHost)
		}
	}
	back = slices.Repeat([]int32{-1}, links+len(hosts))
	for i := range links {
		back[i] = int32(g.Peer(i))
	}
	return all, back, hosts
}

// Observe takes the findings of a collector in a window, and the reports of probes. The window may be nil.
func (s *Suspects) Observe(w *inference.Window, found []inference.Finding) {
	if w != nil {
		s.Feed.Observe(w)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range found {
		if f.End != 0 {
			delete(s.open, f.ID)
		} else if _, known := s.open[f.ID]; known || len(s.open) < maxOpen {
			s.open[f.ID] = f
		}
	}
}

// SetFindings replaces the findings that are open.
func (s *Suspects) SetFindings(open []inference.Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.open)
	for _, f := range open {
		s.open[f.ID] = f
	}
}

// Suspects implements [control.Suspects].
func (s *Suspects) Suspects(now int64) []control.Suspect {
	s.mu.Lock()
	open := slices.SortedFunc(maps.Values(s.open), func(a, b inference.Finding) int { return cmp.Compare(a.ID, b.ID) })
	s.mu.Unlock()
	c := suspicion.Cycle{Now: now, Findings: open}
	s.Feed.cycle(&c, s.cycle)
	rounds, ok := s.rounds.Drain()
	c.NoNewRounds = !ok
	for _, r := range rounds {
		c.Rounds = append(c.Rounds, suspicion.Round{Probe: r.Probe, Sent: r.Sent, Lost: r.Lost, Transit: r.Transit})
	}
	var out []control.Suspect
	for _, x := range s.state.Step(&c) {
		if int(x.Link) >= s.links.graph.NumInterfaces() {
			continue // the line of a host, which no probe could look at more closely
		}
		out = append(out, control.Suspect{Link: s.links.Name(int(x.Link)), Weight: x.Weight, Why: x.Why, Since: x.Since})
	}
	return out
}

// Resume suspects links that a control before this one suspected, as its journal has them. It is called before the first cycle.
func (s *Suspects) Resume(list []control.Suspect) {
	for _, x := range list {
		if i, ok := s.links.Lookup(x.Link); ok {
			s.state.Resume(int32(i), x.Since, x.Why)
		}
	}
}

// replace takes over another network, with what is known of the links that both have. It is called by the owner of Suspects.
func (s *Suspects) replace(next *Suspects) {
	was := slices.Repeat([]int32{-1}, next.links.graph.NumInterfaces()+len(next.hosts))
	for i := range next.links.graph.NumInterfaces() {
		if old, ok := s.links.byName[next.links.Name(i)]; ok {
			was[i] = int32(old)
		}
	}
	for name, l := range next.hosts {
		if old, ok := s.hosts[name]; ok {
			was[l] = old
		}
	}
	next.state.Inherit(s.state, was)
	s.links, s.hosts, s.state = next.links, next.hosts, next.state
	s.Feed.replace(next.Feed)
	s.Rounds.Adopt(next.Rounds)
}

// PollFindings asks for open findings, twice a cycle, until ctx ends. While there is no answer, those of the last one
// stay open.
func (s *Suspects) PollFindings(ctx context.Context, cycle time.Duration, get func(context.Context) ([]inference.Finding, error), log *slog.Logger) {
	logged := ""
	poll(ctx, cycle, func(time.Duration) {
		open, err := get(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			if logged != err.Error() {
				logged = err.Error()
				log.Error("findings cannot be read; suspects stay", "error", logged)
			}
		default:
			if logged != "" {
				logged = ""
				log.Info("findings can be read again")
			}
			s.SetFindings(open)
		}
	})
}

// poll calls ask twice a cycle until ctx ends.
func poll(ctx context.Context, cycle time.Duration, ask func(every time.Duration)) {
	every := max(cycle/2, 100*time.Millisecond)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		ask(every)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// alike are the directions that the same probes cross as one, itself among them.
func (s *Suspects) alike(link int32) []int32 { return s.state.Alike(link) }
