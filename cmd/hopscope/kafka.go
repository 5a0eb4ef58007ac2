package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/sink/kafka"
)

func kafkaCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "kafka",
		Short: "Make and check the topics of a fleet",
		Args:  exactArgs(0),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	topics := &cobra.Command{
		Use:   "topics",
		Short: "Make and check the topics of a fleet",
		Long: `A fleet has six topics in Kafka, whose names begin with kafka.prefix:

  windows   what collectors saw, a partition for each slice of the network
  reports   single reports, and likewise
  series    merged windows, one partition; pages and others read it
  state     where consumers can go on, compacted
  roster    what all members have in common, and their names, compacted
  plans     the plan of probes that is in force, compacted; for hopscope control alone`,
		Args: exactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	topics.AddCommand(topicsCreateCommand(), topicsCheckCommand())
	c.AddCommand(topics)
	return c
}

// topicsAt selects the fleet.
type topicsAt struct {
	config, format string
	timeout        time.Duration
}

func (o *topicsAt) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.config, "config", "", "settings file of a member of the fleet (kafka, window, seed_file)")
	c.Flags().StringVar(&o.format, "format", "table", "table or json")
	c.Flags().DurationVar(&o.timeout, "timeout", time.Minute, "longest wait for Kafka")
}

// fleetCorrections is for how long late parts of windows are merged.
const fleetCorrections = 2 * time.Hour

// admin connects with the settings, once set has changed them.
func (o *topicsAt) admin(c *cobra.Command, set func(*kafka.Config)) (*kafka.Admin, context.Context, context.CancelFunc, error) {
	fail := func(err error) (*kafka.Admin, context.Context, context.CancelFunc, error) { return nil, nil, nil, err }
	if err := checkFormat(o.format); err != nil {
		return fail(err)
	}
	if o.timeout <= 0 {
		return fail(usagef("--timeout %v is no time", o.timeout))
	}
	if o.config == "" {
		return fail(usagef("say which fleet is meant: --config FILE"))
	}
	cfg, err := readConfig(o.config)
	if err == nil {
		cfg.Kafka.Enabled = true // so that its settings are looked at
		if set != nil {
			set(&cfg.Kafka.Config)
		}
	}
	warnings, err := examineFleet(&cfg, err)
	if err != nil {
		return fail(err)
	}
	for _, w := range warnings {
		fmt.Fprintf(c.ErrOrStderr(), "warning: %s\n", w)
	}
	seed, err := cfg.Seed()
	if err != nil {
		return fail(wrongInput(err))
	}
	a, err := kafka.NewAdmin(cfg.Kafka.Config, fleetParams(&cfg, seed), max(fleetCorrections, cfg.Consume.Needs(cfg.Window)))
	if err != nil {
		return fail(wrongInput(err))
	}
	ctx, cancel := context.WithTimeout(c.Context(), o.timeout)
	return a, ctx, func() { cancel(); a.Close() }, nil
}

// examineFleet is examine for commands that need the fleet's part of the settings alone, and run no collector.
func examineFleet(cfg *config, err error) (warnings []string, _ error) {
	v := verdict{file: cfg.file, dry: true}
	if err != nil {
		return nil, wrongInput(err)
	}
	if err := cfg.Kafka.Validate(); err != nil {
		return nil, usageError{Err: fmt.Errorf("kafka: %w", err)}
	}
	if err := cfg.Kafka.CheckFiles(); err != nil {
		return nil, usageError{Err: fmt.Errorf("kafka: %w", err)}
	}
	checkFleet(cfg, &v)
	checkFleetExposure(cfg, &v)
	for _, p := range v.problems {
		return nil, usageError{Err: errors.New(p.String())}
	}
	for _, w := range v.warnings {
		warnings = append(warnings, w.String())
	}
	return warnings, nil
}

func topicsCreateCommand() *cobra.Command {
	var o topicsAt
	var replace bool
	var replication int
	var retention time.Duration
	c := &cobra.Command{
		Use:   "create",
		Short: "Make the topics that are not there, and write what the members have in common",
		Long: `Make the topics of the fleet that are not there, with the partitions, the retention
and the largest record that the settings ask for, and write to the roster what all
members have in common: the name of the fleet, slices, the length of windows, a mark of
the seed (never the seed itself), and the versions of what is sent. A collector that
differs refuses to start.

Topics that are there are left as they are; "hopscope kafka topics check" shows what is
wrong with them. It may run again at any time. It needs the ACLs Create on the topics,
and Read and Write on the roster. Exit status 64 where the fleet has other parameters.`,
		Example: `  hopscope kafka topics create --config hopscope.yaml
  hopscope kafka topics create --config hopscope.yaml --replication 3 --retention 48h`,
		Args: exactArgs(0),
	}
	o.flags(c)
	c.Flags().IntVar(&replication, "replication", 0, "copies of each record (default: kafka.topics.replication)")
	c.Flags().DurationVar(&retention, "retention", 0, "how long windows are kept (default: kafka.topics.windows_retention)")
	c.Flags().BoolVar(&replace, "replace", false, "write the parameters over other ones; stop all members first")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if replication < 0 || replication > 16 {
			return usagef("--replication %d is outside 0..16", replication)
		}
		if retention != 0 && (retention < time.Hour || retention > 8760*time.Hour) {
			return usagef("--retention %v is outside 1h..8760h", retention)
		}
		a, ctx, done, err := o.admin(c, func(k *kafka.Config) {
			if replication > 0 {
				k.Topics.Replication = replication
			}
			if retention > 0 {
				k.Topics.WindowsRetention = retention
			}
		})
		if err != nil {
			return err
		}
		defer done()
		made, err := a.Create(ctx, replace)
		if o.format == "json" {
			if made == nil {
				made = []kafka.Created{}
			}
			if werr := writeIndented(c.OutOrStdout(), made); err == nil {
				err = werr
			}
			return wrongFleet(err)
		}
		for _, m := range made {
			what := "was there"
			if m.Created {
				what = "created"
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", m.Name, what)
		}
		return wrongFleet(err)
	}
	return c
}

func topicsCheckCommand() *cobra.Command {
	var o topicsAt
	c := &cobra.Command{
		Use:   "check",
		Short: "List everything about the topics that is not as the fleet wants it",
		Long: `List every deviation of the topics from what the settings ask for, with what to do about
it: partitions, copies, cleanup policy, retention, the largest record, whose clock is
written, records that were thrown away before consumers had read them, and parameters
of the fleet that are not those of these settings. Nothing is changed. It needs the ACLs
Describe and DescribeConfigs on the topics, Read on the roster, and Describe on the group.

Exit status 1 with problems, 0 with warnings alone.`,
		Example: `  hopscope kafka topics check --config hopscope.yaml
  hopscope kafka topics check --config hopscope.yaml --format json`,
		Args: exactArgs(0),
	}
	o.flags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		a, ctx, done, err := o.admin(c, nil)
		if err != nil {
			return err
		}
		defer done()
		list, err := a.Check(ctx)
		if err != nil {
			return err
		}
		if o.format == "json" {
			if list == nil {
				list = []kafka.Deviation{}
			}
			err = writeIndented(c.OutOrStdout(), list)
		} else {
			err = kafka.WriteDeviations(c.OutOrStdout(), list)
		}
		problems := 0
		for _, d := range list {
			if d.Problem {
				problems++
			}
		}
		if err == nil && problems > 0 {
			err = fmt.Errorf("the fleet does not work on these topics: %d problem%s", problems, plural(problems))
		}
		return err
	}
	return c
}
