package loop

import (
	"time"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/planner/control"
)

// Metric is a number that a control of probes publishes.
type Metric struct {
	Name, Help string
	Counter    bool // else it is a gauge
	Value      func(s *Status) float64
}

func counted(name, help string, value func(c *control.Counts) uint64) Metric {
	return Metric{"hopscope_control_" + name, help, true, func(s *Status) float64 { return float64(value(&s.Counts)) }}
}

func countedByLoop(name, help string, value func(c *State) uint64) Metric {
	return Metric{"hopscope_control_" + name, help, true, func(s *Status) float64 { return float64(value(&s.Loop)) }}
}

func gauge(name, help string, value func(s *Status) float64) Metric {
	return Metric{"hopscope_control_" + name, help, false, value}
}

func ofRounds(name, help string, counter bool, value func(r *roundsStatus) float64) Metric {
	return Metric{"hopscope_control_" + name, help, counter, func(s *Status) float64 {
		if s.Rounds == nil {
			return 0
		}
		return value(s.Rounds)
	}}
}

func ofOrchestration(name, help string, counter bool, value func(o *Orchestration) float64) Metric {
	return Metric{"hopscope_control_orchestrate_" + name, help, counter, func(s *Status) float64 {
		if s.Orchestration == nil {
			return 0
		}
		return value(s.Orchestration)
	}}
}

func ofDelivery(name, help string, counter bool, value func(d *p4.DeliveryStatus) float64) Metric {
	return Metric{"hopscope_control_delivery_" + name, help, counter, func(s *Status) float64 {
		if s.Delivery == nil {
			return 0
		}
		return value(s.Delivery)
	}}
}

// truth is 1 or 0.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Metrics are the metrics of a loop that have no label.
var Metrics = []Metric{
	counted("cycles_total", "Cycles of the loop.", func(c *control.Counts) uint64 { return c.Cycles }),
	counted("plans_total", "Plans that were begun.", func(c *control.Counts) uint64 { return c.Plans }),
	counted("plans_refused_total", "Plans refused by their check, a device or an operator.", func(c *control.Counts) uint64 { return c.Refused }),
	counted("cycles_skipped_total", "Cycles during an unfinished change-over.", func(c *control.Counts) uint64 { return c.Skipped }),
	counted("timeouts_total", "Requests to agents and switches without an answer in time.", func(c *control.Counts) uint64 { return c.TimedOut }),
	counted("stale_answers_total", "Answers that came after their request had ended.", func(c *control.Counts) uint64 { return c.Stale }),
	counted("entries_installed_total", "Entries installed in switches.", func(c *control.Counts) uint64 { return c.Installed }),
	counted("entries_removed_total", "Entries removed from switches.", func(c *control.Counts) uint64 { return c.Removed }),
	counted("entries_repaired_total", "Readings of switches that differed from what was installed.", func(c *control.Counts) uint64 { return c.Repaired }),
	countedByLoop("networks_total", "Networks taken over from changed files.", func(s *State) uint64 { return s.Networks }),
	countedByLoop("networks_refused_total", "Changed files that were refused.", func(s *State) uint64 { return s.NetworksRefused }),
	ofRounds("rounds_total", "Rounds of probes that agents reported.", true, func(r *roundsStatus) float64 { return float64(r.Sent) }),
	ofRounds("rounds_lost_total", "Rounds of probes that were lost.", true, func(r *roundsStatus) float64 { return float64(r.Lost) }),
	ofRounds("rounds_refused_total", "Impossible answers of agents about rounds, refused whole.", true, func(r *roundsStatus) float64 { return float64(r.Refused) }),
	ofRounds("rounds_begun_anew_total", "Restarts of the count of a probe's rounds, as after a change of plan.", true, func(r *roundsStatus) float64 { return float64(r.Declined) }),
	ofRounds("rounds_unsent_total", "Rounds that the agents' own ports did not take.", true, func(r *roundsStatus) float64 { return float64(r.Unsent) }),
	ofRounds("agents_unable", "Agents whose ports did not take some rounds since the survey before.", false, func(r *roundsStatus) float64 { return float64(r.Unable) }),
	ofRounds("rounds_agents", "Agents that reported rounds in the last survey.", false, func(r *roundsStatus) float64 { return float64(r.Agents) }),
	ofRounds("rounds_probes", "Probes whose rounds that survey followed.", false, func(r *roundsStatus) float64 { return float64(r.Probes) }),
	ofOrchestration("plans_total", "Changed assignments of flows to interfaces.", true, func(o *Orchestration) float64 { return float64(o.Plans) }),
	ofOrchestration("failed_total", "Intervals without an assignment, such as without a collector.", true, func(o *Orchestration) float64 { return float64(o.Failed) }),
	ofOrchestration("in_force", "1 while every switch that is up holds the assignment, else 0.", false, func(o *Orchestration) float64 { return truth(o.InForce) }),
	ofOrchestration("interfaces", "Interfaces that listed flows pass.", false, func(o *Orchestration) float64 { return float64(o.Interfaces) }),
	ofOrchestration("assigned_interfaces", "Interfaces with a flow that carries their telemetry.", false, func(o *Orchestration) float64 { return float64(o.Assigned) }),
	ofOrchestration("reported_interfaces", "Assigned interfaces with reports in the newest windows.", false, func(o *Orchestration) float64 { return float64(o.Reported) }),
	ofOrchestration("unserved_interfaces", "Interfaces left out, since no flow that passes them has room.", false, func(o *Orchestration) float64 { return float64(o.Unserved) }),
	ofOrchestration("flows", "Flows that carry telemetry.", false, func(o *Orchestration) float64 { return float64(o.FlowsUsed) }),
	ofOrchestration("load_max_items", "Most items of 4 bytes on a packet.", false, func(o *Orchestration) float64 { return float64(o.LoadMax) }),
	ofOrchestration("freshness_hops", "Mean hops over which items are carried.", false, func(o *Orchestration) float64 { return o.Freshness }),
	ofDelivery("plans_total", "Changed plans of the delivery of reports.", true, func(d *p4.DeliveryStatus) float64 { return float64(d.Plans) }),
	ofDelivery("failed_total", "Intervals without a plan of delivery, such as without a server.", true, func(d *p4.DeliveryStatus) float64 { return float64(d.Failed) }),
	ofDelivery("in_force", "1 while every switch that is up holds the plan of delivery, else 0.", false, func(d *p4.DeliveryStatus) float64 { return truth(d.InForce) }),
	ofDelivery("paths", "Paths that reports are assigned to.", false, func(d *p4.DeliveryStatus) float64 { return float64(len(d.Paths)) }),
	ofDelivery("servers_on", "Servers that the plan of delivery selects.", false, func(d *p4.DeliveryStatus) float64 { return d.Objective }),
	ofDelivery("servers_down", "Servers whose page does not answer.", false, func(d *p4.DeliveryStatus) (n float64) {
		for _, x := range d.Servers {
			n += truth(!x.Up)
		}
		return n
	}),
	ofDelivery("unserved_points", "Points whose reports are refused for lack of a path.", false, func(d *p4.DeliveryStatus) (n float64) {
		for _, x := range d.Points {
			n += truth(x.Constraint != "")
		}
		return n
	}),
	ofDelivery("held_points", "Points that keep their rate, although another one is measured, or none.", false, func(d *p4.DeliveryStatus) float64 { return float64(d.HeldPoints()) }),
	ofDelivery("refused_reports", "Reports that switches refused, by their counters since they started.", false, func(d *p4.DeliveryStatus) float64 { return float64(d.Refused) }),
	gauge("behind_probes", "Probes still to change after a change of the network.", func(s *Status) float64 { return float64(s.Behind) }),
	gauge("epoch", "Epoch of the target plan.", func(s *Status) float64 { return float64(s.Epoch) }),
	gauge("epoch_in_force", "Epoch of the last plan on all devices that are up.", func(s *Status) float64 { return float64(s.InForce) }),
	gauge("probes", "Probes of the plan.", func(s *Status) float64 { return float64(s.Probes) }),
	gauge("detailed_probes", "Probes of the plan that look closer.", func(s *Status) float64 { return float64(s.Detailed) }),
	gauge("suspects", "Suspicious directions of links.", func(s *Status) float64 { return float64(len(s.Suspects)) }),
	gauge("left_out_links", "Suspicious links without a closer look, by budget, cap on changes, or lack of a probe.", func(s *Status) float64 {
		return float64(len(s.Stats.LeftOut) + len(s.Stats.NoProbe))
	}),
	gauge("paused", "1 while it is paused, else 0.", func(s *Status) float64 { return truth(s.Paused) }),
	gauge("dry_run", "1 in a dry run, else 0.", func(s *Status) float64 { return truth(s.DryRun) }),
	gauge("awaiting_approval", "1 while a plan waits for approval, else 0.", func(s *Status) float64 { return truth(s.Pending != nil) }),
	gauge("stood_down", "1 after another controller has taken over, else 0.", func(s *Status) float64 { return truth(s.Phase == control.Deposed) }),
	gauge("journal_failing", "1 while the journal cannot be written, and nothing is pushed.", func(s *Status) float64 { return truth(s.Loop.Journal != "") }),
	gauge("planning_seconds", "Time of the last cycle's decision.", func(s *Status) float64 { return s.Loop.Planning.Seconds() }),
	gauge("changeover_seconds", "Time of the last change-over, for devices that are up; 0 while it lasts.", func(s *Status) float64 {
		if s.Loop.Acked == 0 {
			return 0
		}
		return time.Duration(s.Loop.Acked - s.Loop.Began).Seconds()
	}),
}
