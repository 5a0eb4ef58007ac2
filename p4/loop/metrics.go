package loop

import (
	"time"

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

// truth is 1 or 0.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Metrics are the metrics of a loop that have no label.
var Metrics = []Metric{
	counted("cycles_total", "Cycles in which suspects were asked for.", func(c *control.Counts) uint64 { return c.Cycles }),
	counted("plans_total", "Plans that were begun.", func(c *control.Counts) uint64 { return c.Plans }),
	counted("plans_refused_total", "Plans that were refused, whole: by their check, a device, or an operator.", func(c *control.Counts) uint64 { return c.Refused }),
	counted("cycles_skipped_total", "Cycles that found the change-over before unfinished.", func(c *control.Counts) uint64 { return c.Skipped }),
	counted("timeouts_total", "Requests to agents and switches that were not answered in time.", func(c *control.Counts) uint64 { return c.TimedOut }),
	counted("stale_answers_total", "Answers that came after their request had ended.", func(c *control.Counts) uint64 { return c.Stale }),
	counted("entries_installed_total", "Entries that went into switches.", func(c *control.Counts) uint64 { return c.Installed }),
	counted("entries_removed_total", "Entries that went out of switches.", func(c *control.Counts) uint64 { return c.Removed }),
	counted("entries_repaired_total", "Readings of switches that showed something else than was installed.", func(c *control.Counts) uint64 { return c.Repaired }),
	countedByLoop("networks_total", "Networks that were taken over from changed files while the control ran.", func(s *State) uint64 { return s.Networks }),
	countedByLoop("networks_refused_total", "Changed files that were refused, whole; what was in force stays.", func(s *State) uint64 { return s.NetworksRefused }),
	ofRounds("rounds_total", "Rounds of probes whose fate agents reported.", true, func(r *roundsStatus) float64 { return float64(r.Sent) }),
	ofRounds("rounds_lost_total", "Rounds of probes that got lost, by the same reports.", true, func(r *roundsStatus) float64 { return float64(r.Lost) }),
	ofRounds("rounds_refused_total", "Answers of agents about rounds that cannot be, and were refused, whole.", true, func(r *roundsStatus) float64 { return float64(r.Refused) }),
	ofRounds("rounds_begun_anew_total", "Restarts of the count of a probe's rounds, as after a change of plan; unknown ones stay unknown.", true, func(r *roundsStatus) float64 { return float64(r.Declined) }),
	ofRounds("rounds_unsent_total", "Rounds that the agents' own ports did not take; they accuse no link.", true, func(r *roundsStatus) float64 { return float64(r.Unsent) }),
	ofRounds("agents_unable", "Agents whose ports did not take some rounds since they were asked before.", false, func(r *roundsStatus) float64 { return float64(r.Unable) }),
	ofRounds("rounds_agents", "Agents that reported rounds when they were asked last.", false, func(r *roundsStatus) float64 { return float64(r.Agents) }),
	ofRounds("rounds_probes", "Probes whose rounds could be followed then.", false, func(r *roundsStatus) float64 { return float64(r.Probes) }),
	gauge("behind_probes", "Probes still to change after a change of the network.", func(s *Status) float64 { return float64(s.Behind) }),
	gauge("epoch", "Epoch of the plan that devices are to have.", func(s *Status) float64 { return float64(s.Epoch) }),
	gauge("epoch_in_force", "Epoch of the last plan that all devices had that are up.", func(s *Status) float64 { return float64(s.InForce) }),
	gauge("probes", "Probes of the plan.", func(s *Status) float64 { return float64(s.Probes) }),
	gauge("detailed_probes", "Probes of the plan that look closer.", func(s *Status) float64 { return float64(s.Detailed) }),
	gauge("suspects", "Directions of links that are suspicious.", func(s *Status) float64 { return float64(len(s.Suspects)) }),
	gauge("left_out_links", "Suspicious links without a closer look, by budget, by the cap on changes, or without a probe.", func(s *Status) float64 {
		return float64(len(s.Stats.LeftOut) + len(s.Stats.NoProbe))
	}),
	gauge("paused", "1 while it is paused, else 0.", func(s *Status) float64 { return truth(s.Paused) }),
	gauge("dry_run", "1 in a dry run, else 0.", func(s *Status) float64 { return truth(s.DryRun) }),
	gauge("awaiting_approval", "1 while a plan waits for approval, else 0.", func(s *Status) float64 { return truth(s.Pending != nil) }),
	gauge("stood_down", "1 after another controller has taken over, else 0.", func(s *Status) float64 { return truth(s.Phase == control.Deposed) }),
	gauge("journal_failing", "1 while the journal cannot be written, and nothing is pushed, else 0.", func(s *Status) float64 { return truth(s.Loop.Journal != "") }),
	gauge("planning_seconds", "Time that the last cycle took to decide.", func(s *Status) float64 { return s.Loop.Planning.Seconds() }),
	gauge("changeover_seconds", "Time of the last change-over until all devices that are up had the plan; 0 while it lasts.", func(s *Status) float64 {
		if s.Loop.Acked == 0 {
			return 0
		}
		return time.Duration(s.Loop.Acked - s.Loop.Began).Seconds()
	}),
}
