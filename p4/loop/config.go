package loop

import (
	"time"

	"github.com/hopscope/hopscope/planner/control"
)

// ChangeConfig holds the settings by which plans change.
type ChangeConfig struct {
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

// Control returns the settings of the controller.
func (c *ChangeConfig) Control(p *Probing) control.Config {
	basic, detailed := p.HopBytes()
	return control.Config{Cycle: int64(c.Cycle), Timeout: int64(c.Timeout), Grace: int64(c.Grace), Budget: c.Budget, MaxChanges: c.MaxChanges, SwitchCost: c.SwitchCost,
		RetryAfter: c.RetryAfter, Audit: c.Audit, Approve: c.Approve, DryRun: c.DryRun, BasicBytes: basic, DetailedBytes: detailed}
}

// DefaultChangeConfig is a cycle of 5 s.
func DefaultChangeConfig() ChangeConfig {
	return ChangeConfig{Cycle: 5 * time.Second, Timeout: 2 * time.Second, Grace: time.Second, SwitchCost: 1, RetryAfter: 10, Audit: 60, RaiseAfter: 1, DoubtAfter: 2, ClearAfter: 5}
}
