package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/settings"
)

func collectCommand() *cobra.Command {
	var o struct {
		config, format string
		dashboards     []string
	}
	c := &cobra.Command{
		Use:   "collect",
		Short: "Collect reports from the network until stopped",
		Long: `Receive datagrams and metrics at the ports that the settings list (ports; loopback
unless they say otherwise), decode them, keep statistics per flow and per hop, watch
them, and write series to the stores that the settings name.

SIGINT or SIGTERM ends it: sockets close, what was received is worked off in order
and written, within drain_timeout; a second one ends the writing too, and what is
not written stays in the spool, or is lost and counted. SIGHUP reads the settings again and applies what
can change while running: dialects of exporters and thresholds of findings.`,
		Example: `  hopscope config print > hopscope.yaml
  hopscope config check hopscope.yaml
  hopscope collect --config hopscope.yaml`,
		Args:        exactArgs(0),
		Annotations: map[string]string{"hangup": "reload"},
	}
	c.Flags().StringVar(&o.config, "config", "", "settings file (default: all defaults, see \"hopscope config print\")")
	c.Flags().StringVar(&o.format, "format", "table", "of the summary at the end: table or json")
	c.Flags().StringArrayVar(&o.dashboards, "dashboard", nil, "file of a dashboard for the page, beside web.dashboards (repeatable)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkFormat(o.format); err != nil {
			return err
		}
		cfg, err := readConfig(o.config)
		cfg.Web.Dashboards = append(cfg.Web.Dashboards, o.dashboards...)
		warnings, err := examine(&cfg, err, false)
		if err != nil {
			return err
		}
		outliveReaders()
		signals := signalsOf(c.Context())
		log := newLogger(cfg.Log, c.ErrOrStderr())
		defer flushLog(log)
		for _, w := range warnings {
			log.Warn("settings", "problem", w.String())
		}
		limitMemory(&cfg)
		seed, err := cfg.Seed()
		if err != nil {
			return err
		}
		opt := collector.Options{Log: log, Seed: seed, Hurry: signals.hurry, Now: machineClock, Ports: cfg.kinds()}
		if cfg.Exporters.Adopts() && len(cfg.PCAP.Files) > 0 {
			router, err := cfg.Exporters.Router()
			if err != nil {
				return err
			}
			if opt.Looked, err = lookAhead(c.Context(), cfg.PCAP.Files, router.ShareIPFIX(cfg.IPFIX.Store()).Ports(opt.Ports), &cfg.Exporters); err != nil {
				return err
			}
		}
		col, err := openLive(&cfg, opt, nil)
		if err != nil {
			return err
		}
		collectSoon(&cfg)
		signalsOf(c.Context()).markOrderly()
		ctx, cancel := context.WithCancel(c.Context())
		defer cancel()
		manager := col.supervised(ctx, log)
		defer manager.Close()
		go reloadOnHangup(ctx, signals.hangup, col, &cfg, log, manager)
		err = col.Run(ctx)
		s := col.Summary(10, 10)
		if werr := writeSummary(summaryOut(c, &cfg), &s, o.format); err == nil {
			err = werr
		}
		return err
	}
	return c
}

// reloadOnHangup reads the settings again at every SIGHUP.
func reloadOnHangup(ctx context.Context, hangup <-chan struct{}, col *running, old *config, log *slog.Logger, manager *cli.Manager) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
		}
		manager.Reloading()
		reload(col, old, log)
		manager.Ready() // with the old settings, if the new ones are wrong
	}
}

func reload(col *running, old *config, log *slog.Logger) {
	if old.file == nil {
		log.Warn("nothing to reload: started without --config")
		return
	}
	path := old.file.Name
	cfg, err := rereadConfig(path)
	if err != nil {
		log.Error("settings not reloaded", "error", err.Error())
		return
	}
	if err := col.Reload(cfg.Config, cfg.Analysis); err != nil {
		log.Error("settings not reloaded", "error", err.Error())
		return
	}
	next := *col.cfg
	next.Events = cfg.Events
	col.inForce.Store(&next)
	for _, w := range cfg.file.Warnings {
		log.Warn("settings", "problem", w.String())
	}
	log.Info("settings reloaded", "file", path)
	if keys := needRestart(old, &cfg); len(keys) > 0 {
		log.Warn("changed settings that need a restart", "keys", strings.Join(keys, ", "))
	}
}

// needRestart returns the changed settings that a running collector cannot adopt.
func needRestart(old, new *config) []string {
	return slices.DeleteFunc(settings.Diff(old, new), func(path string) bool {
		return settings.Below(path, collector.Reloadable...)
	})
}
