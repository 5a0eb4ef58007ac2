package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/p4/emu/scenario"
)

// gearStories are what happens in a network, by the protocol that its devices send.
var gearStories = map[string]string{
	"sFlow": `a port congests and discards packets, a list of
  rules drops some, a port receives damaged ones, an agent falls silent, and it all
  recovers. There are no paths, and latencies only where samples hold them.`,
	"IPFIX": `a router drops packets, another one does with
  another exception code, one falls silent, and it all recovers. There are no paths,
  no latencies and no use of interfaces.`,
}

// runGear is the demonstration of a network whose devices send no INT.
func runGear(c *cobra.Command, cfg *config, name string, seed uint64, duration time.Duration, format string) error {
	network, err := scenario.NewGear(name, seed)
	if err != nil {
		return err
	}
	cfg.Exporters.Profiles = nil
	log := newLogger(cfg.Log, c.ErrOrStderr())
	defer flushLog(log)
	col, err := openLive(cfg, collector.Options{Log: log, Seed: seed, Hurry: signalsOf(c.Context()).hurry}, nil)
	if err != nil {
		return demoListen(err)
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
  The network:  six devices that send what %s sends, seed %d; %s goes to udp %s
  The files:    %s (Parquet)

  Watch for about three minutes: %s

  Ctrl-C ends it with a summary.

`, col.url(), name, seed, network.Sends(), col.Addrs()[0], cfg.Parquet.Config.Dir, gearStories[network.Sends()])
	played := make(chan struct{})
	go func() {
		if err := network.Play(ctx, col.Addrs()[0], 1); err != nil {
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
	s := col.Summary(10, 10)
	return errors.Join(err, writeSummary(c.OutOrStdout(), &s, format))
}
