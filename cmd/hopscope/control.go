package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/p4rt"
	"github.com/hopscope/hopscope/p4/steer"
)

func controlCommand() *cobra.Command {
	var o struct {
		config string
		check  bool
	}
	c := &cobra.Command{
		Use:   "control",
		Short: "Steer which probes look closer: from findings to plans at agents and switches",
		Long: `Ask a collector for its findings once a cycle, choose the probes that are to look
closer at suspicious links, and give the agents that send them a new plan, switches
first where they need entries. Agents follow over gRPC with mutual TLS; a plan that
fails its check is refused whole, and the one in force stays.

The commands below ask a control that runs, and give it commands: at --url, which
is a loopback address or a socket of the file system, since commands have no password.

With --check settings, topology and plans are read and held against each other, all
problems of the settings are named at once, and nothing runs. SIGHUP reads topology,
plans, agents and switches again, and takes them over whole or not at all. SIGINT or
SIGTERM ends it; agents and switches keep what they have. docs/loop.md has more.`,
		Example: `  hopscope control config >control.yaml
  hopscope control --config control.yaml --check
  hopscope control --config control.yaml
  hopscope control status
  hopscope control approve`,
		Args:        exactArgs(0),
		Annotations: map[string]string{"hangup": "reload"},
	}
	c.Flags().StringVar(&o.config, "config", "", "settings file (see \"hopscope control config\")")
	c.Flags().BoolVar(&o.check, "check", false, "check settings, topology and plans, show what there is to steer, and end")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if o.config == "" {
			return usagef("--config is missing: \"hopscope control config\" writes a file to begin with")
		}
		cfg, err := readControlConfig(o.config)
		if err != nil {
			return err
		}
		x, err := steer.ReadNetwork(cfg.network())
		if err := errors.Join(err, checkControlFiles(&cfg)); err != nil {
			return wrongInput(err)
		}
		if o.check {
			return writeControlled(c.OutOrStdout(), &cfg, x)
		}
		log := newLogger(cfg.Log, c.ErrOrStderr())
		defer flushLog(log)
		return runControl(c.Context(), newControlFiles(o.config, signalsOf(c.Context()).hangup, &cfg), x, log)
	}
	c.AddCommand(controlConfigCommand(), controlStatusCommand(), controlLogCommand())
	for _, v := range controlVerbs {
		c.AddCommand(v.command())
	}
	return c
}

func controlConfigCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print all settings of a control of probes with their defaults, as a file",
		Args:  exactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg := defaultControlConfig()
			return settings.Print(c.OutOrStdout(), &cfg)
		},
	}
}

// readControlConfig reads a file, and returns everything that is wrong with it.
func readControlConfig(path string) (controlConfig, error) {
	cfg := defaultControlConfig()
	if _, err := settings.ReadFile(path, &cfg); err != nil {
		return cfg, wrongInput(err)
	}
	return cfg, wrongInput(settings.Check(&cfg))
}

// checkControlFiles reads the certificates and the token.
func checkControlFiles(cfg *controlConfig) error {
	var errs []error
	if _, err := loop.TLS(cfg.Controller.CAFile, cfg.Controller.CertFile, cfg.Controller.KeyFile); err != nil {
		errs = append(errs, fmt.Errorf("controller.%w", err))
	}
	if p := &cfg.P4Runtime; p.CAFile != "" {
		if _, err := p4rt.LoadTLS("any", p.CAFile, p.CertFile, p.KeyFile); err != nil {
			errs = append(errs, fmt.Errorf("p4runtime: %w", err))
		}
	}
	if cfg.Fleet.Enabled {
		if err := cfg.Fleet.Kafka.CheckFiles(); err != nil {
			errs = append(errs, fmt.Errorf("fleet.kafka: %w", err))
		}
	} else if cfg.Collector.TokenFile != "" {
		if _, err := cli.ReadFile(cfg.Collector.TokenFile, cli.MaxToken); err != nil {
			errs = append(errs, fmt.Errorf("collector.token_file: %w", err))
		}
	}
	return errors.Join(errs...)
}

// writeControlled writes what there is to steer.
func writeControlled(w io.Writer, cfg *controlConfig, x *steer.Network) (err error) {
	covered, links := x.Config.Links.Covered()
	basic, detailed := x.Config.Sent.HopBytes()
	if interfaces, flows, why, ok := x.Assigned(); ok {
		defer func() {
			switch {
			case err != nil:
			case why != "":
				_, err = fmt.Fprintln(w, why)
			default:
				_, err = fmt.Fprintf(w, "%d interfaces are assigned to %d flows in %s\n", interfaces, flows, cfg.Orchestrate.File)
			}
		}()
	}
	_, err = fmt.Fprintf(w, "no problems; network %s\n%d probes of %d agents pass %d of %d directions of links; a hop adds %d bytes, or %d in detail\n%d switches hold entries; a cycle of %v\n",
		x.Control.Name, len(x.Control.Probes), len(x.Control.Agents), covered, links, basic, detailed, len(x.Control.Switches), cfg.Loop.Cycle)
	return err
}
