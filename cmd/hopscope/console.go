package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/sink/web"
)

func consoleCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "console",
		Short: "Serve the page of a fleet: what all its collectors see, from Kafka",
		Long: `Read the roster and the merged windows of a fleet from Kafka, and serve the page of
a collector for all of them together, with who is in the fleet and what became of
every report. It keeps nothing but what the page shows, so that any number of
consoles can run beside each other and each can be killed at any time. It begins
with the windows that the page has room for, and then follows.

Of the settings it takes kafka, web and log. SIGINT or SIGTERM ends it.`,
		Example: `  hopscope console --config hopscope.yaml
  hopscope top --url http://127.0.0.1:8080`,
		Args: exactArgs(0),
	}
	c.Flags().StringVar(&file, "config", "", "settings file (default: all defaults, see \"hopscope config print\")")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := readConfig(file)
		if err != nil {
			return wrongInput(err)
		}
		if err := settings.Check(&cfg); err != nil {
			return wrongInput(err)
		}
		if cfg.Web.Listen == "" {
			return usagef("web.listen is empty: a console is nothing but the page")
		}
		outliveReaders()
		log := newLogger(cfg.Log, c.ErrOrStderr())
		defer flushLog(log)
		for _, w := range consoleWarnings(&cfg) {
			log.Warn("settings", "problem", w.String())
		}
		con, err := openConsole(&cfg, log)
		if err != nil {
			return err
		}
		signalsOf(c.Context()).mayTakeTime()
		kafka := con.client.Config()
		log.Info("serving the page of a fleet", "url", con.page.URL(), "kafka", kafka.Target())
		return con.run(c.Context())
	}
	return c
}

// consoleWarnings are what is doubtful about the settings that a console takes: a part of what [examine] says to a collector.
func consoleWarnings(cfg *config) []settings.Problem {
	v := verdict{file: cfg.file}
	if cfg.file != nil {
		v.warnings = cfg.file.Warnings
	}
	checkSecrets(cfg, &v)
	checkExposure(cfg, &v)
	return v.warnings
}

// openConsole binds the address of the page. Kafka is connected to when it is needed, and need not be there yet.
func openConsole(cfg *config, log logger) (*console, error) {
	conf := kafkaOf(cfg)
	if err := conf.Validate(); err != nil { // which nobody asks of a store that is not enabled
		return nil, wrongInput(fmt.Errorf("kafka: %w", err))
	}
	client, err := conf.Dial("hopscope-console")
	if err != nil {
		return nil, wrongInput(err)
	}
	con := newConsole(client, &cfg.Web, log)
	if err := collector.OpenNames(&con.naming, &cfg.Config, &cfg.Analysis, &collector.Options{LoadNetwork: loadNetwork}); err != nil {
		client.Close()
		return nil, wrongInput(err)
	}
	network, err := pageMap(cfg)
	if err != nil {
		client.Close()
		return nil, wrongInput(err)
	}
	con.page, err = web.New(cfg.Web, web.Deps{
		Names:   con.naming.Names,
		Map:     mapOnPage(network),
		Status:  con.status,
		Ledger:  con.balances,
		Metrics: promhttp.HandlerFor(con.registry(), promhttp.HandlerOpts{}),
		Health:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }),
		Ready: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if why := con.notReady(); why != "" {
				http.Error(w, why, http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, strings.Join(append([]string{"ready"}, con.status().Problems...), "\n"))
		}),
	})
	if err == nil {
		err = con.page.Listen()
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return con, nil
}

// run serves until ctx ends.
func (c *console) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	followed := make(chan struct{})
	go c.naming.Watch(ctx, c.log)
	go func() {
		defer close(followed)
		c.follow(ctx)
	}()
	supervise(ctx, c.log, 3*c.client.Config().Timeout+mostWait, c.beats.Load, c.inOneLine)
	err := c.page.Serve(ctx)
	cancel()
	<-followed
	c.client.Close()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
