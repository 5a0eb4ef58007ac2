package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/cmd/internal/cli"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/sink/web"
)

// agentConfig holds all settings of an agent. It has a file of its own, because an agent runs on another machine than a
// collector.
type agentConfig struct {
	agent.Config `yaml:""`
	Status       agentStatusConfig `yaml:"status" doc:"State of the agent over HTTP."`
	Log          logConfig         `yaml:"log" doc:"What is written to standard error."`
}

// agentStatusConfig is where an agent can be asked.
type agentStatusConfig struct {
	Listen string `yaml:"listen" doc:"Address of /metrics, /status, /healthz and /readyz, read-only and without a password. Empty disables it."`
}

// SetDefaults is a port on loopback.
func (c *agentStatusConfig) SetDefaults() { c.Listen = "127.0.0.1:9464" }

func defaultAgentConfig() agentConfig {
	var c agentConfig
	settings.SetDefaults(&c)
	return c
}

// agentFlags are the settings that a first try needs. They override the file.
type agentFlags struct {
	config, name, face, schedule, attention, dialect string
	probes, collectors, stamp, reflect               []string
	interval                                         time.Duration
	check                                            bool
}

func (o *agentFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.config, "config", "", "settings file (default: all defaults, see \"hopscope agent config\")")
	f.StringVar(&o.name, "name", "", "name of the agent in plans (default: that of the machine)")
	f.StringVar(&o.face, "interface", "", "network interface of probes")
	f.StringArrayVar(&o.collectors, "collector", nil, "where reports go, as HOST:PORT (repeatable)")
	f.StringArrayVar(&o.probes, "probes", nil, "JSON of \"hopscope plan cover --sr=int-probe\" (repeatable)")
	f.StringVar(&o.schedule, "schedule", "", "JSON of \"hopscope plan schedule\"")
	f.StringVar(&o.attention, "attention", "", "JSON of \"hopscope plan attention\"")
	f.DurationVar(&o.interval, "interval", time.Second, "between two starts of a probe, without a schedule")
	f.StringVar(&o.dialect, "dialect", string(probe.INT21), "what switches add: int-2.1 or fant")
	f.StringArrayVar(&o.stamp, "stamp", nil, "reflector of STAMP to measure to, as HOST or HOST:PORT (repeatable)")
	f.StringArrayVar(&o.reflect, "reflect", nil, "address to answer STAMP at, as ADDRESS:PORT; a port alone is on loopback (repeatable)")
	f.BoolVar(&o.check, "check", false, "check settings and plan, show what the agent would do, and end")
}

// apply writes the flags that are given into the settings.
func (o *agentFlags) apply(c *cobra.Command, cfg *agentConfig) {
	set := c.Flags().Changed
	for flag, to := range map[string]struct {
		of *string
		v  string
	}{
		"name": {&cfg.Name, o.name}, "interface": {&cfg.Interface, o.face}, "schedule": {&cfg.Files.Schedule, o.schedule},
		"attention": {&cfg.Files.Attention, o.attention}, "dialect": {&cfg.Files.Dialect, o.dialect},
	} {
		if set(flag) {
			*to.of = to.v
		}
	}
	if set("collector") {
		cfg.Collectors = o.collectors
	}
	if set("probes") {
		cfg.Files.Probes = o.probes
	}
	if set("stamp") {
		cfg.STAMP.Sessions = nil
		for _, to := range o.stamp {
			cfg.STAMP.Sessions = append(cfg.STAMP.Sessions, agent.STAMPSession{To: to})
		}
	}
	if set("reflect") {
		cfg.STAMP.Reflector.Listen = o.reflect
	}
	if set("interval") {
		cfg.Files.Interval = o.interval
	}
}

// read reads settings and flags, and finds everything that is wrong with them.
func (o *agentFlags) read(c *cobra.Command) (agentConfig, error) {
	cfg := defaultAgentConfig()
	o.apply(c, &cfg) // a file need not have the settings of flags
	if o.config != "" {
		if _, err := settings.ReadFile(o.config, &cfg); err != nil {
			return cfg, wrongInput(err)
		}
		o.apply(c, &cfg)
	}
	if err := settings.Check(&cfg); err != nil {
		return cfg, wrongInput(err)
	}
	if err := settings.NewProblems("settings", settings.CheckFiles(&cfg)); err != nil {
		return cfg, wrongInput(err)
	}
	return cfg, cfg.SetName()
}

func agentCommand() *cobra.Command {
	var o agentFlags
	c := &cobra.Command{
		Use:   "agent",
		Short: "Send probes into the network as a plan says, take them back, and report to collectors",
		Long: `Send source-routed probes with an INT header at the times of a plan, over a packet
socket, take back those that come to this host, and send what they gathered to
collectors as telemetry reports 2.0. It needs CAP_NET_RAW, and not root.

A plan comes from the files that "hopscope plan" writes, or from a controller, over
gRPC with mutual TLS. A plan that does not check, or that asks for more than the
agent's settings allow, is refused whole, and the one before stays in force. So it
does when the controller is gone.

Where no switch loads a program, --stamp measures loss and delay to reflectors of
STAMP (RFC 8762), and --reflect is one. Both need no interface and no rights. With
settings (stamp.sessions), requests go by several DSCP values, over segments of
SRv6, or with an IOAM trace that routers of Linux fill in (docs/agent.md).

SIGHUP reads the files of the plan again. SIGINT or SIGTERM ends it. docs/agent.md
begins with five minutes.`,
		Example: `  hopscope plan cover --topology lab.yaml --sr=int-probe --format json >probes.json
  hopscope agent --interface eth1 --name leaf-1 --probes probes.json --check
  hopscope agent --interface eth1 --name leaf-1 --probes probes.json --collector 192.0.2.9:32766
  hopscope agent --stamp 192.0.2.7 --stamp 192.0.2.8:8620 --reflect 192.0.2.6:8620
  hopscope agent --config agent.yaml
  hopscope agent status`,
		Args:        exactArgs(0),
		Annotations: map[string]string{"hangup": "reload"},
	}
	o.add(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := o.read(c)
		if err != nil {
			return err
		}
		plan, err := cfg.ReadPlan()
		if err != nil {
			return wrongInput(err)
		}
		if o.check {
			return wrongInput(cfg.Describe(c.OutOrStdout(), plan))
		}
		return runAgent(c, &cfg, plan)
	}
	c.AddCommand(agentStatusCommand(), agentWaysCommand(), agentConfigCommand())
	return c
}

func agentConfigCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print all settings of an agent with their defaults, as a file",
		Args:  exactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg := defaultAgentConfig()
			return settings.Print(c.OutOrStdout(), &cfg)
		},
	}
}

// runAgent runs until it is asked to stop.
func runAgent(c *cobra.Command, cfg *agentConfig, plan *probe.Plan) error {
	log := newLogger(cfg.Log, c.ErrOrStderr())
	defer flushLog(log)
	a, err := agent.Open(cfg.Config, log)
	if err != nil {
		return err
	}
	defer a.Close()
	switch {
	case plan != nil:
		if err := a.AdoptFiles(&cfg.Config, plan, log); err != nil {
			return wrongInput(err)
		}
	case cfg.Controller.Address == "" && cfg.Interface != "":
		log.Warn("no plan: name files (plan.probes) or a controller (controller.address); until then the agent only receives")
	}
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	page, err := agent.ServeStatus(cfg.Status.Listen, a, version(), web.Screened)
	if err != nil {
		return err
	}
	defer page.Close()
	log.Info("agent runs", "name", cfg.Name, "interface", cfg.Interface, "status", page.URL())
	go a.RereadFiles(ctx, signalsOf(c.Context()).hangup, &cfg.Config, log)
	defer cli.Supervise(ctx, log, time.Second, a.Beats, func() string { return agent.StatusLine(a) }).Close()
	err = a.Run(ctx)
	s := a.Stats()
	log.Info("agent ends", "sent", s.Sent, "received", s.Received, "lost", s.Lost)
	return err
}
