package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/planner/control"
)

// controlMetric is a number that a control of probes publishes.
type controlMetric struct {
	collector.Metric
	value func(s *loop.Status) float64
}

func controlCounter(name, help string, value func(c *control.Counts) uint64) controlMetric {
	return controlMetric{collector.Metric{Name: "hopscope_control_" + name, Help: help, Kind: collector.Counter}, func(s *loop.Status) float64 { return float64(value(&s.Counts)) }}
}

func controlLoopCounter(name, help string, value func(c *loop.State) uint64) controlMetric {
	return controlMetric{collector.Metric{Name: "hopscope_control_" + name, Help: help, Kind: collector.Counter}, func(s *loop.Status) float64 { return float64(value(&s.Loop)) }}
}

func controlGauge(name, help string, value func(s *loop.Status) float64) controlMetric {
	return controlMetric{collector.Metric{Name: "hopscope_control_" + name, Help: help, Kind: collector.Gauge}, value}
}

func controlRounds(name, help string, kind collector.MetricKind, value func(r *loop.RoundsStatus) float64) controlMetric {
	return controlMetric{collector.Metric{Name: "hopscope_control_" + name, Help: help, Kind: kind}, func(s *loop.Status) float64 {
		if s.Rounds == nil {
			return 0
		}
		return value(s.Rounds)
	}}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// controlMetrics are those with one value.
var controlMetrics = []controlMetric{
	controlCounter("cycles_total", "Cycles in which suspects were asked for.", func(c *control.Counts) uint64 { return c.Cycles }),
	controlCounter("plans_total", "Plans that were begun.", func(c *control.Counts) uint64 { return c.Plans }),
	controlCounter("plans_refused_total", "Plans that were refused, whole: by their check, a device, or an operator.", func(c *control.Counts) uint64 { return c.Refused }),
	controlCounter("cycles_skipped_total", "Cycles that found the change-over before unfinished.", func(c *control.Counts) uint64 { return c.Skipped }),
	controlCounter("timeouts_total", "Requests to agents and switches that were not answered in time.", func(c *control.Counts) uint64 { return c.TimedOut }),
	controlCounter("stale_answers_total", "Answers that nobody waited for.", func(c *control.Counts) uint64 { return c.Stale }),
	controlCounter("entries_installed_total", "Entries that went into switches.", func(c *control.Counts) uint64 { return c.Installed }),
	controlCounter("entries_removed_total", "Entries that went out of switches.", func(c *control.Counts) uint64 { return c.Removed }),
	controlCounter("entries_repaired_total", "Readings of switches that showed something else than was installed.", func(c *control.Counts) uint64 { return c.Repaired }),
	controlLoopCounter("networks_total", "Networks that were taken over from changed files while the control ran.", func(s *loop.State) uint64 { return s.Networks }),
	controlLoopCounter("networks_refused_total", "Changed files that were refused, whole; what was in force stays.", func(s *loop.State) uint64 { return s.NetworksRefused }),
	controlRounds("rounds_total", "Rounds of probes whose fate agents told.", collector.Counter, func(r *loop.RoundsStatus) float64 { return float64(r.Sent) }),
	controlRounds("rounds_lost_total", "Those of them that got lost.", collector.Counter, func(r *loop.RoundsStatus) float64 { return float64(r.Lost) }),
	controlRounds("rounds_refused_total", "Answers of agents about rounds that cannot be, and were refused, whole.", collector.Counter, func(r *loop.RoundsStatus) float64 { return float64(r.Refused) }),
	controlRounds("rounds_begun_anew_total", "Times that the rounds of a probe could not be followed further, as after a change of plan; what was not known by then stays unknown.", collector.Counter, func(r *loop.RoundsStatus) float64 { return float64(r.Declined) }),
	controlRounds("rounds_agents", "Agents that told of rounds when they were asked last.", collector.Gauge, func(r *loop.RoundsStatus) float64 { return float64(r.Agents) }),
	controlRounds("rounds_probes", "Probes whose rounds could be followed then.", collector.Gauge, func(r *loop.RoundsStatus) float64 { return float64(r.Probes) }),
	controlGauge("behind_probes", "Probes of the base plan that are still to change, after a change of the network.", func(s *loop.Status) float64 { return float64(s.Behind) }),
	controlGauge("epoch", "Epoch of the plan that devices are to have.", func(s *loop.Status) float64 { return float64(s.Epoch) }),
	controlGauge("epoch_in_force", "Epoch of the last plan that all devices had that are up.", func(s *loop.Status) float64 { return float64(s.InForce) }),
	controlGauge("probes", "Probes of the plan.", func(s *loop.Status) float64 { return float64(s.Probes) }),
	controlGauge("detailed_probes", "Those of them that look closer.", func(s *loop.Status) float64 { return float64(s.Detailed) }),
	controlGauge("suspects", "Directions of links that are suspicious.", func(s *loop.Status) float64 { return float64(len(s.Suspects)) }),
	controlGauge("left_out_links", "Suspicious ones that get no closer look, for the budget or the cap on changes, or because no probe passes them.", func(s *loop.Status) float64 {
		return float64(len(s.Stats.LeftOut) + len(s.Stats.NoProbe))
	}),
	controlGauge("paused", "1 while it is paused, else 0.", func(s *loop.Status) float64 { return truth(s.Paused) }),
	controlGauge("dry_run", "1 in a dry run, else 0.", func(s *loop.Status) float64 { return truth(s.DryRun) }),
	controlGauge("awaiting_approval", "1 while a plan waits for approval, else 0.", func(s *loop.Status) float64 { return truth(s.Pending != nil) }),
	controlGauge("stood_down", "1 after another controller has taken over, else 0.", func(s *loop.Status) float64 { return truth(s.Phase == control.Stood) }),
	controlGauge("journal_failing", "1 while the journal cannot be written, and nothing is pushed, else 0.", func(s *loop.Status) float64 { return truth(s.Loop.Journal != "") }),
	controlGauge("planning_seconds", "Time that the last cycle took to decide.", func(s *loop.Status) float64 { return s.Loop.Planning.Seconds() }),
	controlGauge("changeover_seconds", "Time of the last change-over, from its beginning until all devices that are up had the plan; 0 while it lasts.", func(s *loop.Status) float64 {
		if s.Loop.Acked == 0 {
			return 0
		}
		return time.Duration(s.Loop.Acked - s.Loop.Began).Seconds()
	}),
}

// controlDevices has a label.
var controlDevices = collector.Metric{Name: "hopscope_control_devices", Help: "Agents and switches, by kind and state: ready, behind, unknown, silent, failed or down.",
	Labels: []string{"kind", "state"}, Kind: collector.Gauge}

// Those that a control has which steers nothing, too.
var (
	controlInCharge = collector.Metric{Name: "hopscope_control_in_charge", Help: "1 while this control steers the probes, 0 while it stands by for another one of its fleet, which has no others of these metrics.", Kind: collector.Gauge}
	controlTerms    = collector.Metric{Name: "hopscope_control_terms_total", Help: "Times that this control came to steer the probes; 1 without a fleet.", Kind: collector.Counter}
)

// allControlMetrics is the list for the documentation.
func allControlMetrics() (list []collector.Metric) {
	list = []collector.Metric{controlInCharge, controlTerms}
	for _, m := range controlMetrics {
		list = append(list, m.Metric)
	}
	return append(list, controlDevices)
}

// describeControl describes a metric to Prometheus.
func describeControl(m collector.Metric) *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
}

// controlMetricsOf publishes those of a control, and of its loop if there is one.
type controlMetricsOf struct{ *controlPage }

// Describe implements [prometheus.Collector].
func (controlMetricsOf) Describe(out chan<- *prometheus.Desc) {
	for _, m := range allControlMetrics() {
		out <- describeControl(m)
	}
}

// Collect implements [prometheus.Collector].
func (p controlMetricsOf) Collect(out chan<- prometheus.Metric) {
	l := p.loop.Load()
	out <- prometheus.MustNewConstMetric(describeControl(controlInCharge), prometheus.GaugeValue, truth(l != nil))
	out <- prometheus.MustNewConstMetric(describeControl(controlTerms), prometheus.CounterValue, float64(p.terms.Load()))
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s, err := l.Status(ctx)
	if err != nil {
		return // an end of the loop is seen by its health check
	}
	for _, m := range controlMetrics {
		kind := prometheus.GaugeValue
		if m.Kind == collector.Counter {
			kind = prometheus.CounterValue
		}
		out <- prometheus.MustNewConstMetric(describeControl(m.Metric), kind, m.value(&s))
	}
	count := map[[2]string]int{}
	for _, d := range s.Devices {
		count[[2]string{d.Device.Kind.String(), d.State}]++
	}
	for k, n := range count {
		out <- prometheus.MustNewConstMetric(describeControl(controlDevices), prometheus.GaugeValue, float64(n), k[0], k[1])
	}
}
