package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/p4/emu/scenario"
)

// playable is a network of the demonstration whose switches send no INT.
type playable struct {
	network interface {
		Play(ctx context.Context, to netip.AddrPort, speed int) error
	}
	what      string // it is, and what it sends
	story     string // what happens
	look      string // a command that shows it
	inventory string // the names of its nodes and hosts; "" where its devices send names
}

// newPlayable makes the network of a kind of gear, or of agents alone for "".
func newPlayable(gear string, seed uint64) (*playable, error) {
	if gear == "" {
		n, err := scenario.NewPlain(seed, time.Now(), false)
		if err != nil {
			return nil, err
		}
		return &playable{n, fmt.Sprintf("fat-tree of %d switches that send nothing, and %d STAMP sessions of agents, seed %d; counts of probes go", n.Graph().NumNodes(), n.Sessions(), seed), scenario.PlainStory, "top --probes", n.Inventory()}, nil
	}
	n, err := scenario.NewGear(gear, seed)
	if err != nil {
		return nil, err
	}
	return &playable{n, fmt.Sprintf("six devices that send what %s sends, seed %d; %s goes", gear, seed, n.Sends()), scenario.GearStories[n.Sends()], scenario.GearLooks[n.Sends()], ""}, nil
}

// runPlayable is the demonstration of a network whose switches send no INT.
func runPlayable(c *cobra.Command, cfg *config, data, gear string, seed uint64, duration time.Duration, format string) error {
	s, err := newPlayable(gear, seed)
	if err != nil {
		return err
	}
	cfg.Exporters.Profiles = nil
	if s.inventory != "" {
		cfg.Inventory = filepath.Join(data, "inventory.yaml")
		if err := os.WriteFile(cfg.Inventory, []byte(s.inventory), 0o644); err != nil {
			return err
		}
	}
	log := newLogger(cfg.Log, c.ErrOrStderr())
	defer flushLog(log)
	col, err := openLive(cfg, collector.Options{Log: log, Seed: seed, Hurry: signalsOf(c.Context()).hurry}, nil)
	if err != nil {
		return demoListen(err, "listen")
	}
	signalsOf(c.Context()).markOrderly()
	ctx, cancel := context.WithCancelCause(c.Context())
	defer cancel(nil)
	if duration > 0 {
		time.AfterFunc(duration, func() { cancel(nil) })
	}
	defer col.supervised(ctx, log).Close()
	w := c.OutOrStdout()
	if format == "json" {
		w = c.ErrOrStderr()
	}
	fmt.Fprintf(w, `
  The page:     %s
  The network:  %s to udp %s
  The files:    %s

  Watch for about three minutes: %s

  Try next, in another terminal:
    bin/hopscope %s%s
    bin/hopscope findings%[7]s

  Ctrl-C ends it with a summary.

`, col.url(), s.what, col.Addrs()[0], demoFiles(c, cfg.Parquet.Config.Dir), s.story, s.look, demoFlag(col.url()))
	played := make(chan struct{})
	go func() {
		if err := s.network.Play(ctx, col.Addrs()[0], 1); err != nil {
			cancel(fmt.Errorf("emulated network: %w", err))
		}
		close(played)
	}()
	err = col.Run(ctx)
	cancel(nil)
	<-played
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	sum := col.Summary(10, 10)
	return errors.Join(err, writeSummary(c.OutOrStdout(), &sum, format))
}
