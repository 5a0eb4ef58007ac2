package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/agent/agentpb"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/p4/steer"
	"github.com/hopscope/hopscope/planner"
	"github.com/hopscope/hopscope/planner/control"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/topo"
	"github.com/hopscope/hopscope/planner/topo/load"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// controlled is the network of a control of probes, as its files say.
type controlled struct {
	network  *control.Network
	probes   *steer.Config
	suspects *steer.Suspects
	fixed    map[string][]control.Entry // by switch
}

// anew is the same network with nothing known of its links, for a loop of its own.
func (x *controlled) anew() (*controlled, error) {
	y, n := *x, *x.network
	n.Check = nil // it is of the loop before
	y.network = &n
	var err error
	y.suspects, err = steer.New(x.probes)
	return &y, err
}

// readControlled reads everything that the settings name, and finds what does not go together.
func readControlled(cfg *controlConfig) (*controlled, error) {
	g, err := load.Topology(cfg.Topology)
	if err != nil {
		return nil, err
	}
	ids, numbers := g.IDs()
	for i := 0; i < len(ids) && !numbers; i++ {
		ids[i] += uint32(cfg.FirstNode)
	}
	plan, err := cfg.Files.Read(1) // checked here; the epochs of plans are the controller's
	if err != nil {
		return nil, err
	}
	if err := checkDetail(plan); err != nil {
		return nil, err
	}
	probes, err := readProbes(cfg.Files.Probes)
	if err != nil {
		return nil, err
	}
	sent := make(map[string]bool, len(plan.Probes))
	probing := &loop.Probing{Dialect: plan.Dialect, Basic: plan.Basic, Detailed: plan.Detailed, Interval: cfg.Files.Interval,
		Slots: map[string]agent.Slot{}, Addresses: map[string]netip.Addr{}}
	agents := map[string]bool{}
	for k := range plan.Probes {
		p := &plan.Probes[k]
		sent[p.ID], agents[p.Agent], agents[p.Collector] = true, true, true
		probing.Slots[p.ID] = agent.Slot{Interval: p.Interval, Phase: p.Phase}
	}
	probes = slices.DeleteFunc(probes, func(p planner.Probe) bool { return !sent[p.ID] })
	for i, a := range cfg.Agents {
		if !agents[a.Name] {
			return nil, fmt.Errorf("agents[%d]: no probe of the plan begins or ends at %q", i, a.Name)
		}
		probing.Addresses[a.Name] = netip.MustParseAddr(a.Address) // Validate has read it
	}
	links := steer.NewLinks(g, ids)
	passed, err := links.Route(probes)
	if err != nil {
		return nil, err
	}
	sc := suspicion.DefaultConfig()
	sc.Window, sc.RaiseAfter, sc.DoubtAfter, sc.ClearAfter = cfg.Loop.Cycle, cfg.Loop.RaiseAfter, cfg.Loop.DoubtAfter, cfg.Loop.ClearAfter
	sc.QueueFloor = float64(cfg.Collector.QueueFloor)
	if sc.LatencyFloor = float64(cfg.Collector.LatencyFloor); sc.LatencyFloor == 0 {
		sc.LatencyFloor, sc.Floors = steer.LeastLatencyFloor, links.PacketTimes(steer.LeastLatencyFloor)
	}
	x := &controlled{fixed: map[string][]control.Entry{}, probes: &steer.Config{Suspicion: sc, Links: links, Probes: probes, Passed: passed, Interval: longest(plan), Sent: probing}}
	if x.suspects, err = steer.New(x.probes); err != nil {
		return nil, err
	}
	x.network = &control.Network{Name: g.Name(), Probes: probes}
	for name := range agents {
		x.network.Agents = append(x.network.Agents, name)
	}
	slices.Sort(x.network.Agents)
	return x, x.readSwitches(cfg, g)
}

// longest is the interval of the probe that is sent least often.
func longest(p *agent.Plan) (d time.Duration) {
	for k := range p.Probes {
		d = max(d, p.Probes[k].Interval)
	}
	return d
}

// checkDetail says which probes could not be sent if they looked closer: any of them may be asked to. What single agents may send is
// theirs to say, when they follow.
func checkDetail(p *agent.Plan) error {
	all := *p
	all.Probes = slices.Clone(p.Probes)
	for k := range all.Probes {
		all.Probes[k].Detailed = true
	}
	if _, err := all.Check(&agent.Limits{MTU: agent.DefaultConfig().MTU}); err != nil {
		return fmt.Errorf("the plan would be refused with all probes in detail:\n%w", err)
	}
	return nil
}

// readProbes reads the plans that cover the network, with ids as agent.Files gives them.
func readProbes(files []string) (all []planner.Probe, err error) {
	for i, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		var c cover.Plan
		err = planner.ReadPlan(f, "cover", &c)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("plan %s: %w", path, err)
		}
		for _, p := range append(c.Probes, c.Second...) {
			if len(files) > 1 {
				p.ID = fmt.Sprintf("%d/%s", i+1, p.ID)
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// readSwitches reads the entries that switches are to hold, whatever the plan.
func (x *controlled) readSwitches(cfg *controlConfig, g *topo.Graph) error {
	for i := range cfg.Switches {
		s := &cfg.Switches[i]
		if _, ok := g.Lookup(s.Name); !ok {
			return fmt.Errorf("switches[%d].name: the topology has no node %q", i, s.Name)
		}
		x.network.Switches = append(x.network.Switches, s.Name)
		if s.Entries == "" {
			continue
		}
		b, err := readFile(s.Entries, 64<<20)
		if err != nil {
			return fmt.Errorf("switches[%d].entries: %w", i, err)
		}
		list, err := p4rt.ReadJSON(b)
		if err != nil {
			return fmt.Errorf("switches[%d].entries: %s: %w", i, s.Entries, err)
		}
		pipeline, err := p4rt.BMv2(s.Program)
		if err != nil {
			return fmt.Errorf("switches[%d].program: %w", i, err)
		}
		if err := loop.Fits(pipeline.Info.Tables(), list); err != nil {
			return fmt.Errorf("switches[%d].entries: %s: %w", i, s.Entries, err)
		}
		for k := range list {
			x.fixed[s.Name] = append(x.fixed[s.Name], loop.EntryOf(&list[k], 0))
		}
	}
	if len(x.fixed) > 0 {
		x.network.Entries = func(_ *control.Plan, sw string) []control.Entry { return x.fixed[sw] }
	}
	return nil
}

// steerConfig is what the controller is told.
func (c *controlLoop) steerConfig(p *loop.Probing) control.Config {
	basic, detailed := p.HopBytes()
	return control.Config{Cycle: int64(c.Cycle), Timeout: int64(c.Timeout), Grace: int64(c.Grace), Budget: c.Budget, MaxChanges: c.MaxChanges, SwitchCost: c.SwitchCost,
		RetryAfter: c.RetryAfter, Audit: c.Audit, Approve: c.Approve, DryRun: c.DryRun, BasicBytes: basic, DetailedBytes: detailed}
}

// runControl steers until it is told to stop. It has its journal for as long, also while another control of a fleet is in charge: of two
// that were told of the same one the second is to say so at once, and not when the first is gone.
func runControl(ctx context.Context, files *controlFiles, x *controlled, log *slog.Logger) (err error) {
	cfg := files.now.Load()
	j, err := openControlJournal(&cfg.Journal, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if cfg.Fleet.Enabled {
		return runControlFleet(ctx, files, x, j, log)
	}
	page, err := serveControl(cfg.Admin.Listen, j, notYet)
	if err != nil {
		return err
	}
	defer page.Close()
	return runSteering(ctx, files, x, nil, page, log)
}

// openControlJournal opens the journal of the settings, nil if they name none.
func openControlJournal(cfg *controlJournal, log *slog.Logger) (*loop.Journal, error) {
	if cfg.File == "" {
		log.Warn("no journal: a restart knows what devices have, and not what was in force")
		return nil, nil
	}
	j, err := loop.OpenJournal(cfg.File, cfg.Bytes, cfg.Keep)
	if err == nil {
		return j, nil
	}
	err = fmt.Errorf("journal.file: %w", err)
	if _, ok := errors.AsType[*loop.HeldError](err); ok {
		return nil, wrongInput(err)
	}
	return nil, err
}

// runSteering steers until ctx ends; in a fleet, that is the time in which this control is in charge.
func runSteering(ctx context.Context, files *controlFiles, x *controlled, fleet *charge, page *controlPage, log *slog.Logger) error {
	cfg := files.now.Load()
	conf, err := loop.TLS(cfg.Controller.CAFile, cfg.Controller.CertFile, cfg.Controller.KeyFile)
	if err != nil {
		return fmt.Errorf("controller.%w", err)
	}
	late := &latePost{}
	server := loop.NewServer(x.network.Agents, late.post, log)
	installers, err := openSwitches(cfg, fleet.election(), late.post, log)
	if err != nil {
		return err
	}
	defer installers.Close()
	l, err := loop.New(loop.Options{Control: cfg.Loop.steerConfig(x.probes.Sent), Network: x.network, Probing: x.probes.Sent, Agents: server, Switches: installers,
		Journal: page.journal, Seed: fleet.seed(page.journal.Seed(), x.network.Name, log), Suspects: x.suspects, Rounds: x.suspects.Rounds, Fence: fleet.fence(ctx), Log: log})
	if err != nil {
		return err
	}
	late.to(l.Post)
	if fleet != nil && fleet.refused != "" {
		l.RefuseNetwork(fleet.refused)
	}
	listener, err := net.Listen("tcp", cfg.Controller.Listen)
	if err != nil {
		return fmt.Errorf("controller.listen: %w", err)
	}
	g := grpc.NewServer(append(agent.ServerOptions(conf), grpc.MaxRecvMsgSize(1<<20), grpc.MaxConcurrentStreams(4))...)
	agentpb.RegisterPlansServer(g, server)
	go g.Serve(listener)
	defer g.Stop()
	defer page.steered(l)()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go server.FollowRounds(ctx, cfg.Loop.Cycle/2, x.suspects.Rounds)
	switch {
	case fleet != nil:
		fleet.followFindings(ctx, cfg, x.suspects, log)
		if cfg.Fleet.Page != "" {
			go x.suspects.Feed.Poll(ctx, pageOf(cfg.Fleet.Page, cfg.Collector.TokenFile), cfg.Loop.Cycle, log)
		}
	case cfg.Collector.URL != "":
		page := pageOf(cfg.Collector.URL, cfg.Collector.TokenFile)
		go x.suspects.PollFindings(ctx, cfg.Loop.Cycle, openFindingsOf(page), log)
		if cfg.Collector.Probes {
			go x.suspects.Feed.Poll(ctx, page, cfg.Loop.Cycle, log)
		}
	default:
		log.Warn("no collector: nothing is ever suspicious (collector.url)")
	}
	hangup := files.hangup
	if fleet != nil {
		hangup = fleet.hangup
	}
	s := &steering{files: files, hangup: hangup, x: x, loop: l, server: server, switches: installers, term: fleet.election(), log: log}
	followed := make(chan struct{})
	go func() { defer close(followed); s.follow(ctx) }()
	defer func() { cancel(); <-followed }()
	log.Info("control runs", "agents", len(x.network.Agents), "switches", len(x.network.Switches), "probes", len(x.network.Probes), "listen", listener.Addr().String(), "admin", page.at())
	return fleet.standDown(ctx, l, l.Run(ctx))
}

// pageOf is a page that is asked over HTTP.
func pageOf(url, tokenFile string) *steer.Page {
	a := asker{url: url, tokenFile: tokenFile, format: "table"}
	return &steer.Page{URL: url, Get: func(ctx context.Context, path string, into any) error { return a.get(ctx, path, into, io.Discard) }}
}

// openFindingsOf asks a page for its open findings.
func openFindingsOf(page *steer.Page) func(context.Context) ([]inference.Finding, error) {
	return func(ctx context.Context) ([]inference.Finding, error) {
		var got struct{ Open []ask.Finding }
		if err := page.Get(ctx, "/api/findings", &got); err != nil {
			return nil, err
		}
		return openFindings(got.Open), nil
	}
}

// openFindings are those that a page answers with, as far as they name an element.
func openFindings(list []ask.Finding) (out []inference.Finding) {
	for i := range list {
		x := &list[i]
		f, err := x.Finding()
		if err != nil || x.EndMS != 0 {
			continue
		}
		if f.Severity, err = inference.ParseSeverity(x.Severity); err != nil {
			continue
		}
		if f.ID, err = inference.ParseID(x.ID); err != nil {
			continue
		}
		if x.Cause != "" {
			if f.Cause, err = inference.ParseID(x.Cause); err != nil {
				continue
			}
		}
		f.Text, f.Start = x.Text, x.StartMS*1e6
		out = append(out, f)
	}
	return out
}
