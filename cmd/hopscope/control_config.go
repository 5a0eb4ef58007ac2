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
	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/p4/steer"
)

// controlConfig holds all settings of a control of probes. It has a separate file, as agents have.
type controlConfig struct {
	Topology    string                  `yaml:"topology" doc:"File or generator of the network that the probes were planned for."`
	FirstNode   int64                   `yaml:"first_node_id" range:"0..4294967295" doc:"Node id of the topology's first node; the others follow in order. Numeric names are ids themselves."`
	Files       probe.Files             `yaml:"plan" doc:"Plan whose probes cover the network."`
	Agents      []steer.AgentHost       `yaml:"agents" doc:"Addresses of hosts to which probes go; other agents have theirs in their own settings."`
	Controller  steer.ListenConfig      `yaml:"controller" doc:"Service for agents, over gRPC with mutual TLS."`
	Collector   steer.CollectorConfig   `yaml:"collector" doc:"Source of the findings and probes that make links suspicious."`
	Loop        loop.ChangeConfig       `yaml:"loop" doc:"How plans change."`
	Journal     steer.JournalConfig     `yaml:"journal" doc:"What was pushed where, and what came back."`
	Fleet       controlFleet            `yaml:"fleet" doc:"Several controls of one network. A topic of Kafka names the one in charge and keeps its plan."`
	Switches    []steer.Switch          `yaml:"switches" doc:"Switches that are to hold entries. Probes of hopscope need none."`
	Delivery    p4.DeliveryConfig       `yaml:"delivery" doc:"Over which paths reports go to which servers (RFT)."`
	Orchestrate steer.OrchestrateConfig `yaml:"orchestrate" doc:"Which flows carry the telemetry of which interfaces (INTO)."`
	Admin       controlAdmin            `yaml:"admin" doc:"Commands of operators."`
	P4Runtime   steer.SwitchTLS         `yaml:"p4runtime" doc:"Certificates towards switches."`
	Log         logConfig               `yaml:"log" doc:"What is written to standard error."`
}

type controlFleet struct {
	Enabled  bool           `yaml:"enabled" doc:"Stand by for being in charge, with findings of the fleet's merged windows in place of collector."`
	Name     string         `yaml:"name" doc:"Name of this control, for people. Empty is that of the machine."`
	Session  time.Duration  `yaml:"session" range:"6s..5m" doc:"Silence after which another control takes over; brokers allow 6 s to 30 min by default."`
	LookBack time.Duration  `yaml:"look_back" range:"1m..168h" doc:"Age of the oldest findings that are read at the start."`
	Page     string         `yaml:"page" doc:"Page of the fleet's console, for hop values of probes, with the token of collector. Empty uses findings alone."`
	Kafka    brokers.Config `yaml:"kafka" doc:"Where Kafka is; the same as kafka of the other members."`
}

type controlAdmin struct {
	Listen string `yaml:"listen" doc:"HOST:PORT on loopback, or unix:PATH; commands have no password, so other addresses are refused. Empty disables it."`
}

func defaultControlConfig() controlConfig {
	var c controlConfig
	settings.SetDefaults(&c) // those of parts that have their own
	c.Files = agent.DefaultConfig().Files
	c.Controller.Listen = "127.0.0.1:7443"
	c.Collector = steer.CollectorConfig{URL: "http://127.0.0.1:8080", Probes: true, QueueFloor: 10_000}
	c.Loop = loop.DefaultChangeConfig()
	c.Orchestrate, c.Delivery = steer.DefaultOrchestrateConfig(), p4.DefaultDeliveryConfig()
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
	errs = append(errs, c.Orchestrate.Validate(c.Collector.URL, c.Fleet.Enabled)...)
	return errors.Join(append(errs, c.Delivery.Validate(c.Fleet.Enabled)...)...)
}
