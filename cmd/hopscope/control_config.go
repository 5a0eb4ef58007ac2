package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/ingest/kafka/conn"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/p4/steer"
)

// controlConfig is everything that a control of probes can be told. It has a file of its own, as agents have.
type controlConfig struct {
	Topology   string            `yaml:"topology" doc:"File or generator of the network, the one that the probes were planned for."`
	FirstNode  int64             `yaml:"first_node_id" range:"0..4294967295" doc:"Node id by which reports know the first node of the topology; the others follow in its order. Where all names are numbers, these are the ids."`
	Files      agent.Files       `yaml:"plan" doc:"The plan whose probes cover the network. Which of them look closer is what is decided here."`
	Agents     []steer.AgentHost `yaml:"agents" doc:"Addresses of hosts that agents send probes to. An agent that is not named leaves that to the settings of the agents."`
	Controller controlListen     `yaml:"controller" doc:"Where agents follow, over gRPC with mutual TLS."`
	Collector  controlCollector  `yaml:"collector" doc:"Whose findings, and whose probes, make links suspicious."`
	Loop       controlLoop       `yaml:"loop" doc:"How plans change."`
	Journal    controlJournal    `yaml:"journal" doc:"What was pushed where, and what came back."`
	Fleet      controlFleet      `yaml:"fleet" doc:"Several controls of one network, of which one at a time is in charge: a topic of Kafka says which, and keeps the plan."`
	Switches   []steer.Switch    `yaml:"switches" doc:"Switches that are to hold entries. Probes of hopscope need none."`
	Admin      controlAdmin      `yaml:"admin" doc:"Where operators ask and say."`
	P4Runtime  steer.SwitchTLS   `yaml:"p4runtime" doc:"Certificates towards switches."`
	Log        logConfig         `yaml:"log" doc:"What is written to standard error."`
}

type controlListen struct {
	Listen   string `yaml:"listen" doc:"HOST:PORT."`
	CAFile   string `yaml:"ca_file" doc:"PEM file of the authorities that may sign certificates of agents. A certificate carries the name of its agent."`
	CertFile string `yaml:"cert_file" doc:"PEM file of the controller's certificate. It is read again for every connection."`
	KeyFile  string `yaml:"key_file" doc:"PEM file of the key that belongs to cert_file."`
}

type controlCollector struct {
	URL       string `yaml:"url" doc:"Page of the collector, or of the console of a fleet."`
	TokenFile string `yaml:"token_file" doc:"File with the page's token, where it wants one."`

	Probes       bool          `yaml:"probes" doc:"Take what probes told of hops from the page too. They are flows: its collector lists half as many of them as flows.top_flows at most."`
	LatencyFloor time.Duration `yaml:"latency_floor" range:"0s..1m" doc:"Added to times in switches before they are compared by their ratio: what is far below it is all the same. 0 is what a packet of 1500 bytes takes on the line behind, where the topology tells its rate, and 10us where that is less or not told."`
	QueueFloor   int64         `yaml:"queue_floor_bytes" range:"1..1000000000" doc:"The same for queues, in bytes (or in the device's unit)."`
}

type controlLoop struct {
	Cycle      time.Duration `yaml:"cycle" range:"100ms..1h" doc:"How often suspects are asked for."`
	Timeout    time.Duration `yaml:"timeout" range:"10ms..10m" doc:"After which a request to an agent or a switch counts as lost. Below cycle."`
	Grace      time.Duration `yaml:"grace" range:"0s..10m" doc:"From the last agent's move until entries of earlier plans go. Probes may be under way so long."`
	Budget     float64       `yaml:"budget_hops" range:"0..1000000000" doc:"Hops that may be measured in detail in a round of the probes; 0 for any number."`
	MaxChanges int           `yaml:"max_changes" range:"0..1000000" doc:"Probes that change in a cycle; 0 for any number."`
	SwitchCost float64       `yaml:"switch_cost_hops" range:"0..1000000" doc:"What the change of a probe costs beside the hops that it measures in detail."`
	RetryAfter int           `yaml:"retry_after" range:"1..100000" doc:"Cycles before a plan that was refused is tried again."`
	Audit      int           `yaml:"audit" range:"0..100000" doc:"Cycles between two readings of a switch; 0 for never."`
	Approve    bool          `yaml:"approve" doc:"Plans wait for \"hopscope control approve\". The first one does not."`
	DryRun     bool          `yaml:"dry_run" doc:"Plans are made and kept in the journal, and given to nobody."`
	RaiseAfter int           `yaml:"raise_after" range:"1..1000" doc:"Cycles of evidence in a row until a link is suspicious."`
	DoubtAfter int           `yaml:"doubt_after" range:"1..1000" doc:"The same where the evidence is as likely about another link."`
	ClearAfter int           `yaml:"clear_after" range:"1..100000" doc:"Cycles without evidence until it is not suspicious any more."`
}

type controlJournal struct {
	File  string `yaml:"file" doc:"File of JSON lines. Each is synced before what it tells of is done. Empty keeps none: a restart then knows what devices have alone."`
	Bytes int64  `yaml:"max_bytes" range:"65536..1099511627776" doc:"Bytes after which a new file is begun."`
	Keep  int    `yaml:"keep" range:"1..100" doc:"Files that are kept beside the current one."`
}

type controlFleet struct {
	Enabled  bool          `yaml:"enabled" doc:"Stand for being in charge, and take findings from the merged windows of the fleet, in place of collector."`
	Name     string        `yaml:"name" doc:"Name of this control, for people. Empty is that of the machine."`
	Session  time.Duration `yaml:"session" range:"6s..5m" doc:"Silence after which another control takes over. Brokers allow 6 s to 30 min unless told otherwise."`
	LookBack time.Duration `yaml:"look_back" range:"1m..168h" doc:"How far back the findings of the fleet are read at the start. Older ones that are still open are not known."`
	Page     string        `yaml:"page" doc:"Page of the console of the fleet, for what probes told of hops, with the token of collector. Empty leaves it at findings."`
	Kafka    conn.Config   `yaml:"kafka" doc:"Where Kafka is; the same as kafka of the other members."`
}

type controlAdmin struct {
	Listen string `yaml:"listen" doc:"HOST:PORT on loopback, or unix:PATH. Commands have no password, so that other addresses are refused. Empty serves nothing."`
}

func defaultControlConfig() controlConfig {
	var c controlConfig
	settings.SetDefaults(&c) // those of parts that have their own
	c.Files = agent.DefaultConfig().Files
	c.Controller.Listen = "127.0.0.1:7443"
	c.Collector = controlCollector{URL: "http://127.0.0.1:8080", Probes: true, QueueFloor: 10_000}
	c.Loop = controlLoop{Cycle: 5 * time.Second, Timeout: 2 * time.Second, Grace: time.Second, SwitchCost: 1, RetryAfter: 10, Audit: 60, RaiseAfter: 1, DoubtAfter: 2, ClearAfter: 5}
	c.Fleet.Session, c.Fleet.LookBack, c.Fleet.Kafka = 10*time.Second, time.Hour, conn.DefaultConfig()
	c.Journal = controlJournal{File: "hopscope-control.jsonl", Bytes: 16 << 20, Keep: 4}
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
	errs = append(errs, c.validateSwitches()...)
	return errors.Join(errs...)
}

func (c *controlConfig) validateSwitches() (errs []error) {
	seen, tls := map[string]bool{}, false
	for i := range c.Switches {
		s := &c.Switches[i]
		wrong := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("switches["+strconv.Itoa(i)+"]"+format, args...))
		}
		switch {
		case s.Name == "":
			wrong(".name: is missing")
		case seen[s.Name]:
			wrong(".name: %q is there twice", s.Name)
		}
		seen[s.Name] = true
		if (s.Address == "") == (s.File == "") {
			wrong(": want either address or file")
		}
		tls = tls || s.Address != "" && !s.Plaintext
	}
	if p := &c.P4Runtime; tls && (p.CAFile == "" || p.CertFile == "" || p.KeyFile == "") {
		errs = append(errs, errors.New("p4runtime: ca_file, cert_file and key_file are needed for switches without plaintext"))
	}
	return errs
}
