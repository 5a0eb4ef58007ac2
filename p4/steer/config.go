package steer

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/planner/control"
)

// ListenConfig holds the address that agents follow.
type ListenConfig struct {
	Listen   string `yaml:"listen" doc:"HOST:PORT."`
	CAFile   string `yaml:"ca_file" doc:"PEM file of the authorities that sign certificates of agents, which carry the agents' names."`
	CertFile string `yaml:"cert_file" doc:"PEM file of the controller's certificate, read for every connection."`
	KeyFile  string `yaml:"key_file" doc:"PEM file of the key that belongs to cert_file."`
}

// CollectorConfig names a collector.
type CollectorConfig struct {
	URL       string `yaml:"url" doc:"Page of the collector, or of the console of a fleet."`
	TokenFile string `yaml:"token_file" doc:"File with the page's token, where it wants one."`

	Probes       bool          `yaml:"probes" doc:"Also take hop values of probes from the page, which lists at most half of flows.top_flows."`
	LatencyFloor time.Duration `yaml:"latency_floor" range:"0s..1m" doc:"Added to times in switches before their ratio is taken. 0 is the time of 1500 bytes on the next line, by its rate in the topology, at least 10us."`
	QueueFloor   int64         `yaml:"queue_floor_bytes" range:"1..1000000000" doc:"The same for queues, in bytes (or in the device's unit)."`
}

// LoopConfig holds the settings by which plans change.
type LoopConfig struct {
	Cycle      time.Duration `yaml:"cycle" range:"100ms..1h" doc:"Interval of cycles, which poll the suspects."`
	Timeout    time.Duration `yaml:"timeout" range:"10ms..10m" doc:"Time after which a request to an agent or switch is lost. Below cycle."`
	Grace      time.Duration `yaml:"grace" range:"0s..10m" doc:"Time from the last agent's change until entries of earlier plans go, for probes under way."`
	Budget     float64       `yaml:"budget_hops" range:"0..1000000000" doc:"Most hops measured in detail in a round; 0 for any number."`
	MaxChanges int           `yaml:"max_changes" range:"0..1000000" doc:"Probes that change in a cycle; 0 for any number."`
	SwitchCost float64       `yaml:"switch_cost_hops" range:"0..1000000" doc:"Cost of changing a probe, in hops measured in detail."`
	RetryAfter int           `yaml:"retry_after" range:"1..100000" doc:"Cycles before a plan that was refused is tried again."`
	Audit      int           `yaml:"audit" range:"0..100000" doc:"Cycles between two readings of a switch; 0 for never."`
	Approve    bool          `yaml:"approve" doc:"Plans wait for \"hopscope control approve\". The first one does not."`
	DryRun     bool          `yaml:"dry_run" doc:"Plans are only kept in the journal."`
	RaiseAfter int           `yaml:"raise_after" range:"1..1000" doc:"Cycles of evidence in a row until a link is suspicious."`
	DoubtAfter int           `yaml:"doubt_after" range:"1..1000" doc:"The same where evidence is as likely about another link."`
	ClearAfter int           `yaml:"clear_after" range:"1..100000" doc:"Cycles without evidence until it is not suspicious any more."`
}

// JournalConfig is the file of a journal.
type JournalConfig struct {
	File  string `yaml:"file" doc:"File of JSON lines. Empty keeps none: after a restart, devices alone know the plan."`
	Bytes int64  `yaml:"max_bytes" range:"65536..1099511627776" doc:"Bytes after which a new file is begun."`
	Keep  int    `yaml:"keep" range:"1..100" doc:"Files that are kept beside the current one."`
}

// Control returns the settings of the controller.
func (c *LoopConfig) Control(p *loop.Probing) control.Config {
	basic, detailed := p.HopBytes()
	return control.Config{Cycle: int64(c.Cycle), Timeout: int64(c.Timeout), Grace: int64(c.Grace), Budget: c.Budget, MaxChanges: c.MaxChanges, SwitchCost: c.SwitchCost,
		RetryAfter: c.RetryAfter, Audit: c.Audit, Approve: c.Approve, DryRun: c.DryRun, BasicBytes: basic, DetailedBytes: detailed}
}

// DefaultLoopConfig is a cycle of 5 s.
func DefaultLoopConfig() LoopConfig {
	return LoopConfig{Cycle: 5 * time.Second, Timeout: 2 * time.Second, Grace: time.Second, SwitchCost: 1, RetryAfter: 10, Audit: 60, RaiseAfter: 1, DoubtAfter: 2, ClearAfter: 5}
}

// ValidateSwitches returns everything that is wrong with the settings of switches.
func ValidateSwitches(switches []Switch, p *SwitchTLS) (errs []error) {
	seen, tls := map[string]bool{}, false
	for i := range switches {
		s := &switches[i]
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
		if s.Load != "" && s.Load != loadNever && s.Load != loadIfEmpty && s.Load != loadAlways {
			wrong(".load: %q is none of %s, %s, %s", s.Load, loadNever, loadIfEmpty, loadAlways)
		}
		if s.Commit && s.Load != "" && s.Load != loadAlways {
			wrong(".load: %s contradicts commit", s.Load)
		}
		tls = tls || s.Address != "" && !s.Plaintext
	}
	if tls && (p.CAFile == "" || p.CertFile == "" || p.KeyFile == "") {
		errs = append(errs, errors.New("p4runtime: ca_file, cert_file and key_file are needed for switches without plaintext"))
	}
	return errs
}
