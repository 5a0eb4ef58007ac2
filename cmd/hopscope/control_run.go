package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"google.golang.org/grpc"

	"github.com/hopscope/hopscope/inference/suspicion"
	"github.com/hopscope/hopscope/p4/agent/agentpb"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/steer"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// network returns the files of the steered network.
func (c *controlConfig) network() *steer.Files {
	s := suspicion.DefaultConfig()
	s.Window, s.RaiseAfter, s.DoubtAfter, s.ClearAfter = c.Loop.Cycle, c.Loop.RaiseAfter, c.Loop.DoubtAfter, c.Loop.ClearAfter
	s.LatencyFloor, s.QueueFloor = float64(c.Collector.LatencyFloor), float64(c.Collector.QueueFloor)
	return &steer.Files{Topology: c.Topology, FirstNode: c.FirstNode, Plan: c.Files, Agents: c.Agents, Switches: c.Switches, Suspicion: s, Orchestrate: c.Orchestrate, Delivery: c.Delivery}
}

// runControl steers until it is asked to stop. It holds its journal all the time, also while another control of a fleet
// is in charge. Of two controls with the same journal, the second then fails at once, and not only when the first has
// ended.
func runControl(ctx context.Context, files *controlFiles, x *steer.Network, log *slog.Logger) (err error) {
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
func openControlJournal(cfg *steer.JournalConfig, log *slog.Logger) (*loop.Journal, error) {
	if cfg.File == "" {
		log.Warn("no journal: a restart knows what devices have, and not what was in force")
		return nil, nil
	}
	j, err := loop.OpenJournal(cfg.File, cfg.Bytes, cfg.Keep)
	if err == nil {
		for _, d := range j.Damage() {
			log.Error("a line of the journal is damaged, and ignored", "file", d.File, "line", d.Line, "offset", d.Offset, "error", d.Err.Error())
		}
		return j, nil
	}
	err = fmt.Errorf("journal.file: %w", err)
	if _, ok := errors.AsType[*loop.HeldError](err); ok {
		return nil, wrongInput(err)
	}
	return nil, err
}

// runSteering steers until ctx ends; in a fleet, that is the time in which this control is in charge.
func runSteering(ctx context.Context, files *controlFiles, x *steer.Network, fleet *fleetTerm, page *controlPage, log *slog.Logger) error {
	cfg := files.now.Load()
	var charge *steer.Charge
	if fleet != nil {
		charge = fleet.charge
	}
	conf, err := loop.TLS(cfg.Controller.CAFile, cfg.Controller.CertFile, cfg.Controller.KeyFile)
	if err != nil {
		return fmt.Errorf("controller.%w", err)
	}
	late := &steer.LatePost{}
	server := loop.NewServer(x.Control.Agents, late.Post, log)
	installers, err := steer.OpenSwitches(cfg.Switches, steer.SwitchesConfig{TLS: cfg.P4Runtime, Timeout: cfg.Loop.Timeout, Term: charge.Election(), Log: log}, late.Post)
	if err != nil {
		return err
	}
	defer installers.Close()
	seed := charge.Seed(page.journal.Seed(), x.Control.Name, log)
	x.Suspects.Resume(seed.Suspects)
	assigned := x.Assignment()
	l, err := loop.New(loop.Options{Orchestration: assigned.Status, Delivery: assigned.Delivery, Control: cfg.Loop.Control(x.Config.Sent), Network: x.Control, Probing: x.Config.Sent, Agents: server, Switches: installers,
		Journal: page.journal, Seed: seed, Suspects: x.Suspects, Rounds: x.Suspects.Rounds, Fence: charge.Fence(ctx), Log: log})
	if err != nil {
		return err
	}
	late.To(l.Post)
	if fleet != nil && fleet.refused != "" {
		l.RefuseNetwork(fleet.refused)
	}
	listener, err := net.Listen("tcp", cfg.Controller.Listen)
	if err != nil {
		return fmt.Errorf("controller.listen: %w", err)
	}
	g := grpc.NewServer(loop.ServeOptions(conf)...)
	agentpb.RegisterPlansServer(g, server)
	go g.Serve(loop.LimitAgents(listener, func() { page.agentsClosed.Add(1) }))
	defer g.Stop()
	defer page.steered(l)()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go server.FollowRounds(ctx, cfg.Loop.Cycle/2, x.Suspects.Rounds)
	switch {
	case fleet != nil:
		fleet.followFindings(ctx, cfg, x.Suspects, log)
		if cfg.Fleet.Page != "" {
			go x.Suspects.Feed.Poll(ctx, pageOf(cfg.Fleet.Page, cfg.Collector.TokenFile, "fleet.page"), cfg.Loop.Cycle, log)
		}
	case cfg.Collector.URL != "":
		page := pageOf(cfg.Collector.URL, cfg.Collector.TokenFile, "collector.url")
		go x.Suspects.PollFindings(ctx, cfg.Loop.Cycle, ask.Get(page.Get).Open, log)
		if cfg.Collector.Probes {
			go x.Suspects.Feed.Poll(ctx, page, cfg.Loop.Cycle, log)
		}
	default:
		log.Warn("no collector: nothing is ever suspicious (collector.url)")
	}
	hangup := files.hangup
	if fleet != nil {
		hangup = fleet.hangup
	}
	s := &steer.Steering{Settings: files, Hangup: hangup, Cycle: cfg.Loop.Cycle, Network: x, Loop: l, Server: server, Switches: installers, Log: log, Every: cfg.Orchestrate.Every, Assignment: assigned, Approve: cfg.Loop.Approve}
	s.Deliver = cfg.Delivery.Every
	s.Open = func(url string) *steer.Page { return pageOf(url, cfg.Collector.TokenFile, "delivery.servers") }
	if fleet == nil && cfg.Collector.URL != "" {
		s.Page = pageOf(cfg.Collector.URL, cfg.Collector.TokenFile, "collector.url")
	}
	followed := make(chan struct{})
	go func() { defer close(followed); s.Run(ctx) }()
	defer func() { cancel(); <-followed }()
	log.Info("control runs", "agents", len(x.Control.Agents), "switches", len(x.Control.Switches), "probes", len(x.Control.Probes), "listen", listener.Addr().String(), "admin", page.at())
	return charge.Depose(ctx, l, l.Run(ctx))
}

// pageOf is a page that is asked over HTTP, at an address that a key of the settings has.
func pageOf(url, tokenFile, key string) *steer.Page {
	a := asker{URL: url, TokenFile: tokenFile, Setting: key}
	return &steer.Page{URL: url, Get: a.Into}
}
