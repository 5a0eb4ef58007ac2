package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/p4/steer"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/sink"
)

// steered is a source of the reports of an emulated network whose probes a loop controls, all on one virtual time.
type steered struct {
	*steer.Emulated
	now   time.Duration
	epoch time.Time
	until time.Duration
	each  func(at time.Duration) // after every step
}

func (s *steered) Workers() int        { return 1 }
func (s *steered) Waits() bool         { return true }
func (s *steered) Stats() ingest.Stats { return ingest.Stats{} }

func (s *steered) Run(ctx context.Context, handle func(worker int, b *ingest.Batch)) error {
	for ; s.now < s.until && ctx.Err() == nil; s.now += 20 * time.Millisecond {
		s.Loop.Step(s.epoch.Add(s.now).UnixNano())
		s.Deliver()
		var b ingest.Batch
		s.Network.Run(s.now, func(d emu.Datagram) {
			data := append([]byte(nil), d.Payload...)
			b.Frames = append(b.Frames, ingest.Frame{Data: data, Length: len(data), Link: ingest.LinkUDP, Src: d.From, Time: s.epoch.Add(d.At).UnixNano()})
		})
		handle(0, &b)
		s.each(s.now)
	}
	return nil
}

// reported is the list of findings with their virtual times.
type reported struct {
	s     *steered
	first map[uint64]time.Duration
	last  map[uint64]inference.Finding
}

func (*reported) Name() string { return "told" }

func (x *reported) WriteWindow(_ context.Context, w *sink.Window) error {
	for _, f := range w.Findings {
		if _, ok := x.first[f.ID]; !ok {
			x.first[f.ID] = x.s.now
		}
		x.last[f.ID] = f
	}
	return nil
}

// newSteered is the demonstration with its loop and collector on virtual time.
func newSteered(t *testing.T, edit func(*emu.Config), until time.Duration, more ...func(*config)) (*steered, *collector.Collector, *reported) {
	t.Helper()
	emulated, err := scenario.PINTDemo()
	if err != nil {
		t.Fatal(err)
	}
	s := &steered{epoch: time.Unix(1_700_000_000, 0), until: until, each: func(time.Duration) {}}
	emulated.Epoch = s.epoch
	edit(&emulated)
	if s.Emulated, err = steer.NewEmulated(emulated, 1, nil, slog.New(slog.DiscardHandler), func() int64 { return s.epoch.Add(s.now).UnixNano() }); err != nil {
		t.Fatal(err)
	}
	cfg := demoConfig("", t.TempDir())
	for _, f := range more {
		f(&cfg)
	}
	c, err := collector.New(cfg.Config, cfg.Analysis, collector.Options{
		Sources: []collector.Source{{Name: "emulation", Source: s}}, Policy: collector.Replay, Log: slog.New(slog.DiscardHandler),
		Network: networkOf(s.Network.Graph(), nodeIDs(s.Network)), Plans: []*pint.Plan{emulated.Plan},
	})
	if err != nil {
		t.Fatal(err)
	}
	found := &reported{s, map[uint64]time.Duration{}, map[uint64]inference.Finding{}}
	c.AddWriter(suspectWriter{s.Suspects})
	c.AddWriter(found)
	return s, c, found
}

// TestLoopDemo follows one fault through the loop, on the emulated fat-tree and virtual time. A link congests, and a
// finding names it. Within two cycles, an agent sends a probe over it in detail. After the fault attention goes back.
// The plan's own change-overs are no finding.
func TestLoopDemo(t *testing.T) {
	t.Parallel()
	const faulty = "agg-0-0:3--core-0:1"
	fault := emu.Fault{Kind: emu.CrossTraffic, At: 20 * time.Second, For: 14 * time.Second, Node: "agg-0-0", Peer: "core-0", Value: 0.95}
	s, c, found := newSteered(t, func(cfg *emu.Config) { cfg.Script, cfg.Repeat = []emu.Fault{fault}, 0 }, 70*time.Second)
	var suspected, detailed, back time.Duration
	var probes []string
	s.each = func(at time.Duration) {
		x := s.Loop.StatusNow().Links[faulty]
		if x != nil && x.Suspect && suspected == 0 {
			suspected = at
		}
		closer := s.detailedAtAgents(faulty)
		if len(closer) > 0 && detailed == 0 {
			detailed, probes = at, closer
		}
		if len(closer) > 0 {
			back = 0
		} else if detailed > 0 && back == 0 {
			back = at
		}
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := time.Duration(0)
	for id, f := range found.last {
		if f.Element.String() == "interface 5:3" && f.Cause == 0 && (first == 0 || found.first[id] < first) {
			first = found.first[id]
		}
		if f.End == 0 {
			t.Errorf("open at the end: %s %s", f.Kind, f.Text)
		}
		if at := time.Duration(f.Start - s.epoch.UnixNano()); at < fault.At || at > fault.At+fault.For+5*time.Second {
			t.Errorf("found beside the fault, at %v: %s %s", at, f.Kind, f.Text)
		}
	}
	end := fault.At + fault.For
	switch {
	case first < fault.At || first > end:
		t.Errorf("the finding that names the interface was reported at %v", first)
	case suspected < first || suspected > first+steer.EmulatedCycle+20*time.Millisecond:
		t.Errorf("found at %v and suspected at %v", first, suspected)
	case detailed < suspected || detailed > first+2*steer.EmulatedCycle:
		t.Errorf("found at %v, suspected at %v and looked at closer at %v", first, suspected, detailed)
	case back < end || back > end+30*time.Second:
		t.Errorf("the fault ends at %v, and attention goes back at %v", end, back)
	}
	st := s.Loop.StatusNow()
	if st.Phase != control.Steady || st.Detailed != 0 || len(st.Suspects) != 0 || st.Counts.Refused+st.Counts.TimedOut > 0 {
		t.Errorf("at the end: %+v", st)
	}
	t.Logf("found at %v, suspected at %v, closer at %v (%s), back at %v; epoch %d", first, suspected, detailed, strings.Join(probes, ", "), back, st.Epoch)
}

// detailedAtAgents are the probes on a direction that look closer by the plans that the agents hold.
func (s *steered) detailedAtAgents(direction string) (ids []string) {
	p := s.Loop.Controller().Target()
	if p == nil {
		return nil
	}
	for k := range p.Probes {
		x := &p.Probes[k]
		held := s.Network.AgentPlan(x.Agent)
		if held == nil || !slices.Contains(x.Links, direction) {
			continue
		}
		for i := range held.Probes {
			if held.Probes[i].ID == x.ID && held.Probes[i].Detailed {
				ids = append(ids, x.ID)
			}
		}
	}
	return ids
}

// TestLoopDemoRecovers is the whole demonstration with its loop. Every fault is published at its element as without a
// loop, and no healthy exporter is. At the end nothing is open, and no probe measures in detail.
func TestLoopDemoRecovers(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	var script []emu.Fault
	until, plans := 230*time.Second, uint64(6)
	s, c, found := newSteered(t, func(cfg *emu.Config) {
		if testkit.Race { // the first two faults
			cfg.Script, cfg.Repeat, until, plans = cfg.Script[:2], 0, 110*time.Second, 2
		}
		script = cfg.Script
	}, 0)
	s.until = until
	changes := uint64(0)
	s.each = func(time.Duration) { changes = s.Loop.Controller().Status().Counts.Plans }
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	elements := []string{ // of the faults, in the order of the script; a switch that diverts flows, or the link to which
		"interface 5:3", "link 7–15", "node 10", "node 4", "exporter 127.16.0.19 node 19 hardware 0", "exporter 127.16.0.18 node 18 hardware 0", "node 14", "link 2–11 or node 11",
	}
	for i, f := range script {
		from := s.epoch.Add(f.At).UnixNano()
		until, n := from+int64(f.For)+5e9, 0
		for _, x := range found.last {
			if x.Cause == 0 && x.Start >= from && x.Start <= until && (x.Severity > inference.Info || f.Kind == emu.DivertFlows) && slices.Contains(strings.Split(elements[i], " or "), x.Element.String()) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%v is reported %d times at %s, want once", f, n, elements[i])
		}
	}
	for _, f := range found.last {
		if f.End == 0 {
			t.Errorf("open at the end: %s %s %s", f.Kind, f.Severity, f.Text)
		}
		if f.Kind == inference.ExporterLoss && f.Node != 19 || f.Kind == inference.ExporterSilence && f.Severity == inference.Critical && f.Node != 18 {
			t.Errorf("a healthy exporter is reported: %s %s", f.Severity, f.Text)
		}
	}
	st := s.Loop.StatusNow()
	if st.Detailed != 0 || st.Phase != control.Steady || changes < plans {
		t.Errorf("at the end: %d plans, %s", changes, fmt.Sprintf("%+v", st))
	}
	t.Logf("%d plans, %d findings", changes, len(found.last))
}
