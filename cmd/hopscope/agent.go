package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/collector/service"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/agent/status"
	"github.com/hopscope/hopscope/planner/show"
)

// agentConfig is everything that an agent can be told. It has a file of its own: an agent runs on another machine than a
// collector, and is told nothing of what that does.
type agentConfig struct {
	agent.Config `yaml:""`
	Status       agentStatusConfig `yaml:"status" doc:"What the agent says of itself."`
	Log          logConfig         `yaml:"log" doc:"What is written to standard error."`
}

// agentStatusConfig is where an agent can be asked.
type agentStatusConfig struct {
	Listen string `yaml:"listen" doc:"Address of /metrics, /status, /healthz and /readyz, over HTTP. It says nothing that changes anything, and has no password. Empty serves nothing."`
}

// SetDefaults is a port on loopback.
func (c *agentStatusConfig) SetDefaults() { c.Listen = "127.0.0.1:9464" }

func defaultAgentConfig() agentConfig {
	var c agentConfig
	settings.SetDefaults(&c)
	return c
}

// agentFlags stand for the settings that a first try needs. What they say goes before the file.
type agentFlags struct {
	config, name, face, schedule, attention, dialect string
	probes, collectors                               []string
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
	f.StringVar(&o.dialect, "dialect", string(agent.INT21), "what switches add: int-2.1 or fant")
	f.BoolVar(&o.check, "check", false, "check settings and plan, say what the agent would do, and end")
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
	if set("interval") {
		cfg.Files.Interval = o.interval
	}
}

// read reads settings and flags, and finds everything that is wrong with them.
func (o *agentFlags) read(c *cobra.Command) (agentConfig, error) {
	cfg := defaultAgentConfig()
	o.apply(c, &cfg) // a file need not have what a flag gives
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

SIGHUP reads the files of the plan again. SIGINT or SIGTERM ends it. docs/agent.md
begins with five minutes.`,
		Example: `  hopscope plan cover --topology lab.yaml --sr=int-probe --format json >probes.json
  hopscope agent --interface eth1 --name leaf-1 --probes probes.json --check
  hopscope agent --interface eth1 --name leaf-1 --probes probes.json --collector 192.0.2.9:32766
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
		plan, err := readAgentPlan(&cfg)
		if err != nil {
			return wrongInput(err)
		}
		if o.check {
			return checkAgent(c.OutOrStdout(), &cfg, plan)
		}
		return runAgent(c, &cfg, plan)
	}
	c.AddCommand(agentStatusCommand(), agentConfigCommand())
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

// nextEpoch is that of a plan from files: the time, so that plans of later starts of the agent are later ones to whoever
// receives its probes; it is above the last one in any case.
func nextEpoch(last uint32) uint32 { return max(uint32(time.Now().Unix()), last+1) }

// readAgentPlan reads the files of the plan, nil where none is named.
func readAgentPlan(cfg *agentConfig) (*agent.Plan, error) {
	if !cfg.Files.Used() {
		return nil, nil
	}
	plan, err := cfg.Files.Read(nextEpoch(0))
	if err != nil {
		return nil, err
	}
	limits := cfg.Limits()
	if _, err := plan.Check(&limits); err != nil {
		return nil, fmt.Errorf("the plan is refused:\n%w", err)
	}
	return plan, nil
}

// checkAgent says what an agent would do.
func checkAgent(w io.Writer, cfg *agentConfig, plan *agent.Plan) error {
	if plan == nil {
		from := "there is no plan: name files (--probes, plan.probes) or a controller (controller.address)"
		if cfg.Controller.Address != "" {
			from = "plans come from the controller " + cfg.Controller.Name + " at " + cfg.Controller.Address
		}
		if _, err := fmt.Fprintf(w, "no problems; %s\n", from); err != nil {
			return err
		}
		return tellInterface(w, cfg)
	}
	limits := cfg.Limits()
	load, err := plan.Check(&limits)
	if err != nil {
		return wrongInput(err)
	}
	_, err = fmt.Fprintf(w, "no problems; agent %s\nsends %d of %d probes, %d of them in detail, %.4g a second, %s (at most %s)\nreceives %d, %s (at most %s)\n",
		cfg.Name, load.Sends, len(plan.Probes), load.Detailed, load.ProbesPerSecond, show.BitRate(load.SendBPS), show.BitRate(cfg.SendLimit),
		load.Received, show.BitRate(load.ReceiveBPS), show.BitRate(cfg.ReceiveLimit))
	if warning := notNamed(cfg, plan); err == nil && warning != "" {
		_, err = fmt.Fprintln(w, warning)
	}
	if err != nil {
		return err
	}
	return tellInterface(w, cfg)
}

// tellInterface says that this machine has no such interface. It is no error: settings are checked elsewhere, too.
func tellInterface(w io.Writer, cfg *agentConfig) error {
	if _, err := net.InterfaceByName(cfg.Interface); err == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "this machine has no interface %s; \"ip link\" lists them\n", cfg.Interface)
	return err
}

// notNamed says that a plan has no probe for the agent, and for whom it has some.
func notNamed(cfg *agentConfig, plan *agent.Plan) string {
	var names []string
	for k := range plan.Probes {
		x := &plan.Probes[k]
		if x.Agent == cfg.Name {
			return ""
		}
		names = append(names, x.Agent)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	const most = 8
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d others", len(names)-most)
	}
	return fmt.Sprintf("no probe of the plan is sent by %q: its agents are %s%s (--name)", cfg.Name, strings.Join(names, ", "), more)
}

// runAgent runs until it is told to stop.
func runAgent(c *cobra.Command, cfg *agentConfig, plan *agent.Plan) error {
	log := newLogger(cfg.Log, c.ErrOrStderr())
	defer flushLog(log)
	a, err := agent.Open(cfg.Config, log)
	if err != nil {
		return err
	}
	defer a.Close()
	switch {
	case plan != nil:
		if err := adoptFiles(a, cfg, plan, log); err != nil {
			return wrongInput(err)
		}
	case cfg.Controller.Address == "":
		log.Warn("no plan: name files (plan.probes) or a controller (controller.address); until then the agent only receives")
	}
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	page, err := status.Serve(cfg.Status.Listen, a, version())
	if err != nil {
		return err
	}
	defer page.Close()
	log.Info("agent runs", "name", cfg.Name, "interface", cfg.Interface, "status", page.URL())
	go rereadOnHangup(ctx, signalsOf(c.Context()).hangup, a, cfg, log)
	service.Supervise(ctx, log, time.Second, a.Beats, func() string { return status.Line(a) })
	err = a.Run(ctx)
	s := a.Stats()
	log.Info("agent ends", "sent", s.Sent, "received", s.Received, "lost", s.Lost)
	return err
}

// adoptFiles puts a plan from files in force.
func adoptFiles(a *agent.Agent, cfg *agentConfig, plan *agent.Plan, log *slog.Logger) error {
	if _, err := a.Adopt(plan, "files"); err != nil {
		return err
	}
	if warning := notNamed(cfg, plan); warning != "" {
		log.Warn("plan", "problem", warning)
	}
	return nil
}

// rereadOnHangup reads the files of the plan again at every SIGHUP.
func rereadOnHangup(ctx context.Context, hangup <-chan struct{}, a *agent.Agent, cfg *agentConfig, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
		}
		if !cfg.Files.Used() {
			log.Warn("nothing to read again: the plan is not from files")
			continue
		}
		if plan, err := cfg.Files.Read(nextEpoch(a.Status().Epoch)); err != nil {
			a.Refuse(0, "files", err)
		} else {
			_ = adoptFiles(a, cfg, plan, log) // the agent logs and says what it refuses
		}
	}
}
