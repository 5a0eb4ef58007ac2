package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/segmentio/kafka-go"
	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/fleet/console"
	"github.com/hopscope/hopscope/collector/inventory"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/inference/fleet"
	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/sink/web"
)

func consoleCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "console",
		Short: "Serve the page of a fleet: what all its collectors see, from Kafka",
		Long: `Read the roster and the merged windows of a fleet from Kafka, and serve the page of
a collector for all of them together, with the members of the fleet and what became
of every report. It keeps nothing but what the page shows, so that any number of
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
		signalsOf(c.Context()).markOrderly()
		kafka := con.client.Config()
		log.Info("serving the page of a fleet", "url", con.page.URL(), "kafka", kafka.Target())
		return con.run(c.Context())
	}
	return c
}

// consoleWarnings are warnings about the settings that a console uses: a part of those of [examine] for a collector.
func consoleWarnings(cfg *config) []settings.Problem {
	v := verdict{file: cfg.file}
	if cfg.file != nil {
		v.warnings = cfg.file.Warnings
	}
	checkSecrets(cfg, &v)
	checkExposure(cfg, &v)
	return v.warnings
}

// consolePage is a console of the settings, with its page.
type consolePage struct {
	*console.Console
	client *brokers.Client
	log    *slog.Logger
	page   *web.Server
	naming inventory.Keeper
}

// openConsole binds the address of the page. Kafka is connected to when it is needed, and need not be there yet.
func openConsole(cfg *config, log *slog.Logger) (*consolePage, error) {
	conf := kafkaOf(cfg)
	if err := conf.Validate(); err != nil { // which skips a store that is not enabled
		return nil, wrongInput(fmt.Errorf("kafka: %w", err))
	}
	client, err := conf.Dial("hopscope-console")
	if err != nil {
		return nil, wrongInput(err)
	}
	con := &consolePage{client: client, log: log}
	if err := collector.OpenNames(&con.naming, &cfg.Config, &cfg.Analysis, &collector.Options{LoadNetwork: loadNetwork}); err != nil {
		client.Close()
		return nil, wrongInput(err)
	}
	network, err := pageMap(cfg)
	if err != nil {
		client.Close()
		return nil, wrongInput(err)
	}
	con.naming.Draw(namesOf(network))
	series := brokers.DefaultLogConfig()
	series.HeaderKey, series.Timeout = fleet.HeaderKey, client.Config().Timeout
	topic, roster := client.Topic(brokers.Series), client.Topic(brokers.Roster)
	con.Console = console.New(console.Options{
		Log: log, Roster: client.NewTable(roster, rosterBounds), Series: brokers.NewLog(client.Client, series), Topic: topic,
		Missing: func(ctx context.Context) []string { return missingTopics(ctx, client, roster, topic) },
		Explain: func(err error) error { return client.Explain(err, brokers.ToRead(topic)) },
		Windows: cfg.Web.HistoryWindows, Flows: cfg.Web.MaxFlows,
	})
	unready := func() []string {
		if why := con.NotReady(); why != "" {
			return []string{why}
		}
		return nil
	}
	con.page, err = openPage(cfg.Web, web.Deps{Names: con.naming.Names, Status: con.status, Ledger: con.Balances, Warn: warner(log)}, network, con.Registry(), unready,
		func() []string { return con.Status().Problems })
	if err != nil {
		client.Close()
		return nil, err
	}
	return con, nil
}

// missingTopics returns those of topics that the brokers do not have, as far as they answer.
func missingTopics(ctx context.Context, client *brokers.Client, topics ...string) []string {
	m, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		return nil
	}
	there := map[string]bool{}
	for _, t := range m.Topics {
		there[t.Name] = t.Error == nil && len(t.Partitions) > 0
	}
	return slices.DeleteFunc(topics, func(name string) bool { return there[name] })
}

// status is the fleet's status on the page.
func (c *consolePage) status() web.Status {
	s := c.Status()
	conf := c.client.Config()
	f := &web.Fleet{Problem: s.Problem, MissingTopics: s.MissingTopics, Behind: s.Behind, Ahead: s.Ahead}
	out := web.Status{Version: version(), Start: s.Start, Fleet: f, ReportsPerSecond: s.ReportsPerSecond, Problems: s.Problems,
		Sources: []web.Source{{Kind: "kafka", Address: conf.Target(), Problem: s.Problem, Frames: s.Records}}}
	if p := s.Params; p != nil {
		f.Name, f.Slices, out.Window = p.Name, p.Slices, p.Window
		out.Settings = []web.Setting{{Name: "fleet", Value: p.Name}, {Name: "window", Value: p.Window.String()}, {Name: "slices", Value: fmt.Sprint(p.Slices)}}
	}
	for _, m := range s.Members {
		f.Members = append(f.Members, m.Row(m.State))
	}
	return out
}

// run serves until ctx ends.
func (c *consolePage) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	followed := make(chan struct{})
	go c.naming.Watch(ctx, c.log)
	go func() {
		defer close(followed)
		c.Console.Run(ctx, c.page)
	}()
	defer cli.Supervise(ctx, c.log, 3*c.client.Config().Timeout+console.MostWait, c.Beats, c.Line).Close()
	err := c.page.Serve(ctx)
	cancel()
	<-followed
	c.client.Close()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
