package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"time"

	"github.com/hopscope/hopscope/collector/settings"
	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/p4/steer"
)

// controlConfig holds all settings of a control of probes. It has a separate file, as agents have.
type controlConfig struct {
	Topology   string                `yaml:"topology" doc:"File or generator of the network, the one that the probes were planned for."`
	FirstNode  int64                 `yaml:"first_node_id" range:"0..4294967295" doc:"Node id by which reports know the first node of the topology; the others follow in its order. Where all names are numbers, these are the ids."`
	Files      probe.Files           `yaml:"plan" doc:"The plan whose probes cover the network. Which of them look closer is what is decided here."`
	Agents     []steer.AgentHost     `yaml:"agents" doc:"Addresses of hosts that agents send probes to. An agent that is not named leaves that to the settings of the agents."`
	Controller steer.ListenConfig    `yaml:"controller" doc:"Where agents follow, over gRPC with mutual TLS."`
	Collector  steer.CollectorConfig `yaml:"collector" doc:"Whose findings, and whose probes, make links suspicious."`
	Loop       steer.LoopConfig      `yaml:"loop" doc:"How plans change."`
	Journal    steer.JournalConfig   `yaml:"journal" doc:"What was pushed where, and what came back."`
	Fleet      controlFleet          `yaml:"fleet" doc:"Several controls of one network, of which one at a time is in charge: a topic of Kafka says which, and keeps the plan."`
	Switches   []steer.Switch        `yaml:"switches" doc:"Switches that are to hold entries. Probes of hopscope need none."`
	Admin      controlAdmin          `yaml:"admin" doc:"Where operators ask and say."`
	P4Runtime  steer.SwitchTLS       `yaml:"p4runtime" doc:"Certificates towards switches."`
	Log        logConfig             `yaml:"log" doc:"What is written to standard error."`
}

type controlFleet struct {
	Enabled  bool           `yaml:"enabled" doc:"Stand for being in charge, and take findings from the merged windows of the fleet, in place of collector."`
	Name     string         `yaml:"name" doc:"Name of this control, for people. Empty is that of the machine."`
	Session  time.Duration  `yaml:"session" range:"6s..5m" doc:"Silence after which another control takes over. Brokers allow 6 s to 30 min by default."`
	LookBack time.Duration  `yaml:"look_back" range:"1m..168h" doc:"How far back the findings of the fleet are read at the start. Older ones that are still open are not known."`
	Page     string         `yaml:"page" doc:"Page of the console of the fleet, for the values that probes reported of hops, with the token of collector. Empty leaves it at findings."`
	Kafka    brokers.Config `yaml:"kafka" doc:"Where Kafka is; the same as kafka of the other members."`
}

type controlAdmin struct {
	Listen string `yaml:"listen" doc:"HOST:PORT on loopback, or unix:PATH. Commands have no password, so that other addresses are refused. Empty serves nothing."`
}

func defaultControlConfig() controlConfig {
	var c controlConfig
	settings.SetDefaults(&c) // those of parts that have their own
	c.Files = agent.DefaultConfig().Files
	c.Controller.Listen = "127.0.0.1:7443"
	c.Collector = steer.CollectorConfig{URL: "http://127.0.0.1:8080", Probes: true, QueueFloor: 10_000}
	c.Loop = steer.DefaultLoopConfig()
	c.Fleet.Session, c.Fleet.LookBack, c.Fleet.Kafka = 10*time.Second, time.Hour, brokers.DefaultConfig()
	c.Journal = steer.JournalConfig{File: "hopscope-control.jsonl", Bytes: 16 << 20, Keep: 4}
	c.Admin.Listen = controlAddress
	return c
}

// Validate finds what is wrong beyond the ranges of single values. It reads no file.
func (c *controlConfig) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Topology == "" {
		wrong("topology: is missing; suspicious links could not be found on probes")
	}
	if len(c.Files.Probes) == 0 {
		wrong("plan.probes: are missing: name the plan that covers the network")
	}
	if c.Files.Attention != "" {
		wrong("plan.attention: which probes look closer is decided here; leave it out")
	}
	if c.Loop.Timeout >= c.Loop.Cycle {
		wrong("loop.timeout: %v is not below cycle, %v", c.Loop.Timeout, c.Loop.Cycle)
	}
	if _, _, err := net.SplitHostPort(c.Controller.Listen); err != nil {
		wrong("controller.listen: %q is not HOST:PORT", c.Controller.Listen)
	}
	for _, x := range []struct{ key, value string }{{"ca_file", c.Controller.CAFile}, {"cert_file", c.Controller.CertFile}, {"key_file", c.Controller.KeyFile}} {
		if x.value == "" {
			wrong("controller.%s: is missing; agents follow over mutual TLS alone", x.key)
		}
	}
	for _, x := range []struct{ key, value string }{{"collector.url", c.Collector.URL}, {"fleet.page", c.Fleet.Page}} {
		if u, err := url.Parse(x.value); x.value != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			wrong("%s: %q is not http://HOST:PORT or https://HOST:PORT", x.key, x.value)
		}
	}
	if c.Admin.Listen != "" {
		if err := loop.CheckAdmin(c.Admin.Listen); err != nil {
			wrong("admin.listen: %w", err)
		}
	}
	for i, a := range c.Agents {
		if ip, err := netip.ParseAddr(a.Address); a.Name == "" || err != nil || !ip.Is4() {
			wrong("agents[%d]: want a name and an IPv4 address, not %q and %q", i, a.Name, a.Address)
		}
	}
	errs = append(errs, steer.ValidateSwitches(c.Switches, &c.P4Runtime)...)
	return errors.Join(errs...)
}
