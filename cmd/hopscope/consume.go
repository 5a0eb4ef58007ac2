package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/collector"
	consumers "github.com/hopscope/hopscope/collector/fleet"
	"github.com/hopscope/hopscope/sink/web"
)

func consumeCommand() *cobra.Command {
	var o struct {
		config, from, format string
	}
	c := &cobra.Command{
		Use:   "consume",
		Short: "Merge what the collectors of a fleet publish, and write it to the stores",
		Long: `Read from Kafka what all collectors of a fleet saw of each window, merge it, and write
series and findings to the stores that the settings name. Consumers share the work:
start as many as are needed, up to one a slice, with the same settings, and each under
an instance of its own. Where one ends or is killed, the others go on with its part.

Of the settings it takes kafka, consume, window, seed_file, flows, events, the stores,
web and log. Stores need no spool: Kafka has everything until they do.

--from writes the windows that end after a time again, for a store that was lost: a
time as 2026-11-22T08:00:00Z, or how long ago it is, as 90m. Findings stay as they
were published then. Stop all other consumers of the fleet before.

SIGINT or SIGTERM ends it: what was merged is written, and its part goes to others.`,
		Example: `  hopscope config check hopscope.yaml
  hopscope consume --config hopscope.yaml
  hopscope consume --config hopscope.yaml --from 2h`,
		Args: exactArgs(0),
	}
	c.Flags().StringVar(&o.config, "config", "", "settings file (default: all defaults, see \"hopscope config print\")")
	c.Flags().StringVar(&o.from, "from", "", "write again the windows that end after this time: RFC 3339, or how long ago")
	c.Flags().StringVar(&o.format, "format", "table", "of the summary at the end: table or json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkFormat(o.format); err != nil {
			return err
		}
		from, err := parseFrom(o.from, time.Now())
		if err != nil {
			return err
		}
		cfg, err := readConfig(o.config)
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
		con, err := openConsumer(c.Context(), &cfg, consumers.Options{Log: log, Hurry: signals.hurry, From: from, Version: version()})
		if err != nil {
			if c.Context().Err() != nil {
				return nil // it was stopped while it waited for Kafka
			}
			return err
		}
		signals.markOrderly()
		err = con.run(c.Context())
		s := con.Summary()
		if werr := writeSummary(summaryOut(c, &cfg), &s, o.format); err == nil {
			err = werr
		}
		return err
	}
	return c
}

// parseFrom reads a time, or how long ago it is. No text is no time.
func parseFrom(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(s); err == nil {
		if ago <= 0 {
			return time.Time{}, usagef("--from %s: is not in the past", s)
		}
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, s)
	switch {
	case err != nil:
		return time.Time{}, usagef("--from %s: neither a time as 2026-11-22T08:00:00Z nor how long ago it is, as 90m", s)
	case at.After(now):
		return time.Time{}, usagef("--from %s: is not in the past", s)
	case at.Unix() < 0:
		return time.Time{}, usagef("--from %s: is before 1970", s)
	}
	return at, nil
}

// status is the consumer's status on the page.
func (c *consumer) status() web.Status {
	label, reports, _ := c.Last()
	s := web.Status{Version: version(), Start: c.member.Start(), Window: c.params.Window, Problems: c.problems(), LeftOut: c.LeftOut()}
	if label != 0 {
		s.ReportsPerSecond = float64(reports) / c.params.Window.Seconds()
	}
	add := func(name, value string) { s.Settings = append(s.Settings, web.Setting{Name: name, Value: value}) }
	kafka := c.client.Config()
	add("consumer", c.id)
	add("fleet", c.params.Name)
	add("kafka", kafka.Target())
	for _, st := range c.stores {
		if st.Alerts {
			add("alerts to "+st.Name, st.Target)
			continue
		}
		add("store "+st.Name, st.Target)
	}
	return s
}

// problems are those that do not keep the consumer from being ready, too.
func (c *consumer) problems() []string {
	out := c.NotReady()
	if p := c.naming.Problem(); p != "" {
		out = append(out, p)
	}
	if p := c.client.Problem(); p != "" {
		out = append(out, p)
	}
	if p := c.member.Trouble(); p != "" {
		out = append(out, p)
	}
	return out
}

// closeStores closes opened stores, for a consumer that does not run.
func closeStores(stores []collector.Store) (err error) {
	for _, s := range stores {
		err = errors.Join(err, s.Writer.Close())
	}
	return err
}

// supervised reports the consumer's status to the service manager.
func (c *consumer) supervised(ctx context.Context) *cli.Manager {
	return cli.Supervise(ctx, c.log, 10*time.Second, c.member.Beats, func() string {
		label, reports, missing := c.Last()
		text := "no window yet"
		if label != 0 {
			text = fmt.Sprintf("window %s: %d reports, %d collectors missing", time.Unix(0, label).UTC().Format(time.RFC3339), reports, len(missing))
		}
		if p := c.problems(); len(p) > 0 {
			text += "; " + p[0]
		}
		return text
	})
}
