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
	CAFile   string `yaml:"ca_file" doc:"PEM file of the authorities that may sign certificates of agents. A certificate carries the name of its agent."`
	CertFile string `yaml:"cert_file" doc:"PEM file of the controller's certificate. It is read again for every connection."`
	KeyFile  string `yaml:"key_file" doc:"PEM file of the key that belongs to cert_file."`
}

// CollectorConfig names a collector.
type CollectorConfig struct {
	URL       string `yaml:"url" doc:"Page of the collector, or of the console of a fleet."`
	TokenFile string `yaml:"token_file" doc:"File with the page's token, where it wants one."`

	Probes       bool          `yaml:"probes" doc:"Take the values that probes reported of hops from the page too. They are flows: its collector lists half as many of them as flows.top_flows at most."`
	LatencyFloor time.Duration `yaml:"latency_floor" range:"0s..1m" doc:"Added to times in switches before they are compared by their ratio: what is far below it is all the same. 0 is what a packet of 1500 bytes takes on the line behind, where the topology has its rate, and 10us where that is less or unknown."`
	QueueFloor   int64         `yaml:"queue_floor_bytes" range:"1..1000000000" doc:"The same for queues, in bytes (or in the device's unit)."`
}

// LoopConfig holds the settings by which plans change.
type LoopConfig struct {
	Cycle      time.Duration `yaml:"cycle" range:"100ms..1h" doc:"How often suspects are asked for."`
	Timeout    time.Duration `yaml:"timeout" range:"10ms..10m" doc:"After which a request to an agent or a switch counts as lost. Below cycle."`
	Grace      time.Duration `yaml:"grace" range:"0s..10m" doc:"From the last agent's move until entries of earlier plans go. Probes may be under way so long."`
	Budget     float64       `yaml:"budget_hops" range:"0..1000000000" doc:"Hops that may be measured in detail in a round of the probes; 0 for any number."`
	MaxChanges int           `yaml:"max_changes" range:"0..1000000" doc:"Probes that change in a cycle; 0 for any number."`
	SwitchCost float64       `yaml:"switch_cost_hops" range:"0..1000000" doc:"What the change of a probe costs beside the hops that it measures in detail."`
	RetryAfter int           `yaml:"retry_after" range:"1..100000" doc:"Cycles before a plan that was refused is tried again."`
	Audit      int           `yaml:"audit" range:"0..100000" doc:"Cycles between two readings of a switch; 0 for never."`
	Approve    bool          `yaml:"approve" doc:"Plans wait for \"hopscope control approve\". The first one does not."`
	DryRun     bool          `yaml:"dry_run" doc:"Plans are made and kept in the journal, and none is installed."`
	RaiseAfter int           `yaml:"raise_after" range:"1..1000" doc:"Cycles of evidence in a row until a link is suspicious."`
	DoubtAfter int           `yaml:"doubt_after" range:"1..1000" doc:"The same where the evidence is as likely about another link."`
	ClearAfter int           `yaml:"clear_after" range:"1..100000" doc:"Cycles without evidence until it is not suspicious any more."`
}

// JournalConfig is the file of a journal.
type JournalConfig struct {
	File  string `yaml:"file" doc:"File of JSON lines. Each is synced before the action that it describes. Empty keeps none: a restart then knows what devices have alone."`
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
