package subject

import (
	"errors"
	"fmt"
	"time"
)

// Config holds the conditions of findings. Times are counted in windows. It consists of the limits and of the
// settings of each detector.
type Config struct {
	MaxHops  int `yaml:"max_hops" doc:"Hops whose history is kept." range:"1..1048576"`
	MaxFlows int `yaml:"max_flows" doc:"Flows with path findings of their own; further ones share one." range:"1..1048576"`
	MaxDrops int `yaml:"max_drops" doc:"Pairs of node and drop reason that are tracked." range:"1..1048576"`

	HopConfig
	FlowConfig
	PathConfig
	DropConfig
	PolicyConfig
	DigestConfig
	InventoryConfig
	ExporterConfig
	InterfaceConfig
	ProbeConfig
	LinkConfig
	SilentConfig
	CauseConfig
}

// DefaultConfig suits windows of one to ten seconds.
func DefaultConfig() Config {
	return Config{
		MaxHops: 8192, MaxFlows: 1024, MaxDrops: 4096,
		HopConfig: defaultHopConfig, FlowConfig: defaultFlowConfig, PathConfig: defaultPathConfig, DropConfig: defaultDropConfig, PolicyConfig: defaultPolicyConfig,
		DigestConfig: defaultDigestConfig, InventoryConfig: defaultInventoryConfig, ExporterConfig: defaultExporterConfig, InterfaceConfig: defaultInterfaceConfig, ProbeConfig: defaultProbeConfig,
		LinkConfig: defaultLinkConfig, SilentConfig: defaultSilentConfig, CauseConfig: defaultCauseConfig,
	}
}

// Validate reports errors beyond the ranges of the fields.
func (c *Config) Validate() error {
	return errors.Join(c.ExporterConfig.problems()...)
}

// HopConfig holds the settings of the detector of hops: of their latencies, queues and utilisation. One of them is for
// all operators; the others are for experts, as the limits were tuned for their defaults.
type HopConfig struct {
	FalseADay        float64       `yaml:"false_a_day" doc:"Accepted false findings of hops and flows a day in the whole network, from which limits follow (docs/findings.md)." range:"0.0001..10000"`
	MinRecords       uint64        `yaml:"min_records" doc:"Least hop records of a judged window. With few records, several windows must agree on a change." range:"1..1000000000"`
	Warmup           int           `yaml:"warmup" doc:"Windows of a hop before it is judged. Limits hold for 60; fewer give false findings." range:"5..1440"`
	LatencyFloor     time.Duration `yaml:"latency_floor" doc:"Added to latencies before their ratio is taken." range:"1ns..1m"`
	QueueFloor       uint64        `yaml:"queue_floor_bytes" doc:"The same for queues, in bytes or in the device's unit." range:"1..1000000000"`
	UtilizationFloor float64       `yaml:"utilization_floor" doc:"The same for utilisation; 1 is a full link." range:"0.001..1"`
	Critical         float64       `yaml:"critical" doc:"A hop is critical at this many times its usual value." range:"1..1000"`
	EndAfter         int           `yaml:"end_after" doc:"Quiet windows in a row that end a finding." range:"1..1000"` // drops, digests and loss too
	LearnAfter       int           `yaml:"learn_after" doc:"Windows of a finding after which the hop's level becomes normal." range:"60..100000"`
	ForgetAfter      int           `yaml:"forget_after" doc:"Windows without records after which the history of a hop is forgotten." range:"1..1000000"`
}

var defaultHopConfig = HopConfig{
	FalseADay: 1, MinRecords: 1, Warmup: 60, LatencyFloor: time.Microsecond, QueueFloor: 10_000, UtilizationFloor: 0.1,
	Critical: 4, EndAfter: 3, LearnAfter: 360, ForgetAfter: 3600,
}

// FalseShare is the share of the windows of a statistic in which a false finding may begin, if a number of them is
// watched.
func (c *HopConfig) FalseShare(watched int, window time.Duration) float64 {
	return c.FalseADay * window.Hours() / 24 / float64(max(watched, 1))
}

// FlowConfig are the settings of the detector of flows. How many findings without a fault are accepted is set with that
// of hops.
type FlowConfig struct {
	BusyFlows   int    `yaml:"busy_flows" doc:"Flows whose latency is judged: those that stay among flows.top_flows. 0 judges none." range:"0..10000"`
	BusyReports uint64 `yaml:"busy_reports" doc:"Least values of each hop in a window in which a flow's latency is judged." range:"100..1000000000"`
}

var defaultFlowConfig = FlowConfig{BusyFlows: 100, BusyReports: 100}

// PathConfig are the settings of the detector of path changes.
type PathConfig struct {
	PathGroup  int `yaml:"path_group" doc:"Flows from or to the same link that make their finding a warning." range:"2..1000000"`
	PathStable int `yaml:"path_stable" doc:"Windows without a change that end the finding of a flow's path." range:"1..1000"`
	PathFlaps  int `yaml:"path_flaps" doc:"Changes during one finding that make it a warning." range:"2..1000000"`
}

var defaultPathConfig = PathConfig{PathGroup: 5, PathStable: 3, PathFlaps: 4}

// DropConfig are the settings of the detector of drops.
type DropConfig struct {
	DropsSevere int     `yaml:"drops_severe" doc:"Drop reports of a node and reason in a window that are critical." range:"1..1000000000"`
	DropsShare  float64 `yaml:"drops_share" doc:"Share of a node's packets whose drops for one reason in a window are critical; 1 for none. A node that samples hops alone needs another share." range:"0..1"`
}

var defaultDropConfig = DropConfig{DropsSevere: 1000, DropsShare: .05}

// PolicyConfig are the settings of the detector of flows that leave the way which the policy allows.
type PolicyConfig struct {
	PolicyWindows int `yaml:"policy_windows" doc:"Consecutive windows in which the same break of a rule makes a finding." range:"1..1000"`
}

var defaultPolicyConfig = PolicyConfig{PolicyWindows: 2}

// DigestConfig are the settings of the detector of faults in digests.
type DigestConfig struct {
	DigestsStrange uint64 `yaml:"digests_strange" doc:"PINT digests of a flow in a window, possible on no path, that make a finding." range:"1..1000000000"`
}

var defaultDigestConfig = DigestConfig{DigestsStrange: 10}

// InventoryConfig are the settings of the detector of errors of the inventory.
type InventoryConfig struct {
	InventoryFlows int `yaml:"inventory_flows" doc:"Flows, from as many addresses, whose PINT digests agree on an error of the inventory." range:"3..1000000"`
}

var defaultInventoryConfig = InventoryConfig{InventoryFlows: 3}

// ExporterConfig are the settings of the detector of exporters that lose reports or fall silent.
type ExporterConfig struct {
	LossRatio      float64 `yaml:"loss_ratio" doc:"Share of an exporter's reports that may be lost. A finding needs evidence of more, at one error in a million windows." range:"0..1"`
	LossSevere     float64 `yaml:"loss_severe" doc:"Share of lost reports that is critical, by the same evidence." range:"0..1"`
	SilenceAfter   int     `yaml:"silence_after" doc:"Least windows of silence. A finding needs a pause less likely than one in a million by the exporter's history." range:"1..100000"`
	SilenceHistory int     `yaml:"silence_history" doc:"Windows with reports that are such a history at the earliest." range:"1..100000"`
	SilentSevere   int     `yaml:"silence_severe" doc:"Windows of silence that are critical." range:"1..1000000"`
}

var defaultExporterConfig = ExporterConfig{LossRatio: 0.0001, LossSevere: 0.05, SilenceAfter: 3, SilenceHistory: 30, SilentSevere: 30}

func (c *ExporterConfig) problems() (errs []error) {
	if c.LossSevere < c.LossRatio {
		errs = append(errs, fmt.Errorf("loss_severe: %g is less than the loss_ratio of %g", c.LossSevere, c.LossRatio))
	}
	if c.SilentSevere < c.SilenceAfter {
		errs = append(errs, fmt.Errorf("silence_severe: %d is less than the silence_after of %d", c.SilentSevere, c.SilenceAfter))
	}
	return errs
}

// InterfaceConfig are the settings of the detector of interfaces that count errors and discards.
type InterfaceConfig struct {
	ErrorRatio      float64 `yaml:"error_ratio" doc:"Share of an interface's packets in a direction that may be errors. A finding needs evidence of more, as for loss_ratio." range:"0..1"`
	DiscardRatio    float64 `yaml:"discard_ratio" doc:"The same for packets that an interface counts as discarded." range:"0..1"`
	InterfaceSevere float64 `yaml:"interface_severe" doc:"Share of errors or discards among an interface's packets that is critical, by the same evidence." range:"0..1"`
}

var defaultInterfaceConfig = InterfaceConfig{ErrorRatio: 1e-6, DiscardRatio: 1e-5, InterfaceSevere: .01}

// ProbeConfig are the settings of the detector of losses, damage and delays of probes. Sensitivity to delays is that of
// hops.
type ProbeConfig struct {
	MaxProbes    int           `yaml:"max_probes" doc:"Paths of probes between agents whose history is kept." range:"1..1048576"`
	ProbeLoss    float64       `yaml:"probe_loss" doc:"Share of a path's probes that may be lost. A finding needs evidence of more, as for loss_ratio." range:"0..1"`
	ProbeCorrupt float64       `yaml:"probe_corrupt" doc:"The same for probes that come damaged." range:"0..1"`
	ProbeSevere  float64       `yaml:"probe_severe" doc:"Share of lost or damaged probes of a path that is critical, by the same evidence." range:"0..1"`
	ProbeFloor   time.Duration `yaml:"probe_floor" doc:"Added to delays of probes before their ratio is taken." range:"1ns..1m"`
}

var defaultProbeConfig = ProbeConfig{MaxProbes: 8192, ProbeLoss: 0.001, ProbeCorrupt: 1e-5, ProbeSevere: .05, ProbeFloor: 100 * time.Microsecond}

// LinkConfig are the settings of the detector of times on links. Sensitivity is that of hops.
type LinkConfig struct {
	LinkFloor time.Duration `yaml:"link_floor" doc:"Added to the time on a link, there and back, before its ratio is taken." range:"1ns..1m"`
}

var defaultLinkConfig = LinkConfig{LinkFloor: 100 * time.Microsecond}

// SilentConfig are the settings of the detector of packets that vanish.
type SilentConfig struct {
	SilentLoss float64 `yaml:"silent_loss" doc:"Share of a flow's packets that may vanish between first and last switch. A finding needs evidence of more, at one error in a million windows." range:"0.0000001..0.1"`
}

var defaultSilentConfig = SilentConfig{SilentLoss: 2e-5}

// CauseConfig are the settings of causes.
type CauseConfig struct {
	CauseSettle int `yaml:"cause_settle" doc:"Windows after a cause's last evidence until it ends; new evidence within them belongs to it." range:"0..1000"`
}

var defaultCauseConfig = CauseConfig{CauseSettle: 10}
