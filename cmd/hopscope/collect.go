package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/settings"
)

func collectCommand() *cobra.Command {
	var o struct {
		config, format string
	}
	c := &cobra.Command{
		Use:   "collect",
		Short: "Collect reports from the network until told to stop",
		Long: `Receive report datagrams, decode them, keep statistics per flow and per hop, watch
them, and write series to the stores that the settings name.

SIGINT or SIGTERM ends it: sockets close, what was received is worked off in order
and written, within drain_timeout. SIGHUP reads the settings again and applies what
can change while running: dialects of exporters and thresholds of findings.`,
		Example: `  hopscope config print > hopscope.yaml
  hopscope config check hopscope.yaml
  hopscope collect --config hopscope.yaml`,
		Args: exactArgs(0),
	}
	c.Flags().StringVar(&o.config, "config", "", "settings file (default: all defaults, see \"hopscope config print\")")
	c.Flags().StringVar(&o.format, "format", "table", "of the summary at the end: table or json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkFormat(o.format); err != nil {
			return err
		}
		cfg, err := readConfig(o.config)
		warnings, err := examine(&cfg, err, false)
		if err != nil {
			return err
		}
		log := newLogger(cfg.Log, c.ErrOrStderr())
		for _, w := range warnings {
			log.Warn("settings", "problem", w.String())
		}
		col, err := openLive(&cfg, collector.Options{Log: log, Seed: randomSeed()})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(c.Context())
		defer cancel()
		go reloadOnHangup(ctx, col, &cfg, o.config, log)
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
func reloadOnHangup(ctx context.Context, col *running, old *config, path string, log *slog.Logger) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
		}
		if path == "" {
			log.Warn("nothing to reload: started without --config")
			continue
		}
		cfg, err := loadConfig(path)
		if err != nil {
			log.Error("settings not reloaded", "error", err.Error())
			continue
		}
		if err := col.Reload(cfg.Config, cfg.Analysis); err != nil {
			log.Error("settings not reloaded", "error", err.Error())
			continue
		}
		log.Info("settings reloaded", "file", path)
		if keys := needRestart(old, &cfg); len(keys) > 0 {
			log.Warn("changed settings that need a restart", "keys", strings.Join(keys, ", "))
		}
	}
}

// needRestart gives the changed settings that a running collector cannot take over.
func needRestart(old, new *config) []string {
	return slices.DeleteFunc(settings.Diff(old, new), func(path string) bool {
		return settings.Below(path, collector.Reloadable...)
	})
}
