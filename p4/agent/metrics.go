package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric describes a metric of an agent.
type Metric struct {
	Name, Help string
	Labels     []string
	Kind       string // of Prometheus
}

const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// metric is a number that an agent publishes.
type metric struct {
	Metric
	value func(s *Stats, x *Status) float64
}

func countOf(name, help string, value func(s *Stats) uint64) metric {
	return metric{Metric{Name: "hopscope_agent_" + name, Help: help, Kind: counter},
		func(s *Stats, _ *Status) float64 { return float64(value(s)) }}
}

func gaugeOf(name, help string, value func(s *Stats, x *Status) float64) metric {
	return metric{Metric{Name: "hopscope_agent_" + name, Help: help, Kind: gauge}, value}
}

// metrics are those with one value.
var metrics = []metric{
	countOf("sent_probes_total", "Probes that the kernel took.", func(s *Stats) uint64 { return s.Sent }),
	countOf("sent_bytes_total", "Bytes of their frames.", func(s *Stats) uint64 { return s.SentBytes }),
	countOf("skipped_starts_total", "Starts that were due as well when one of the same probe was sent late, and were left out.", func(s *Stats) uint64 { return s.Skipped }),
	countOf("send_errors_total", "Probes that the kernel did not take, as where the link is down. They are not lost in the network.", func(s *Stats) uint64 { return s.SendErrors }),
	countOf("clock_steps_total", "Times that the clock was set by more than 200 ms, so that the schedule began anew.", func(s *Stats) uint64 { return s.ClockSteps }),
	countOf("received_probes_total", "Probes that came back and were reported.", func(s *Stats) uint64 { return s.Received }),
	countOf("kernel_dropped_total", "Frames that the kernel dropped because the receive buffer was full.", func(s *Stats) uint64 { return s.KernelDropped }),
	gaugeOf("lost_probes", "Rounds of probes that did not come, by the schedule of the plan. One that comes late is taken off again, so that this is no counter.", func(s *Stats, _ *Status) float64 { return float64(s.Lost) }),
	countOf("duplicate_probes_total", "Probes that came again.", func(s *Stats) uint64 { return s.Twice }),
	countOf("old_epoch_probes_total", "Probes of an earlier plan than the one in force.", func(s *Stats) uint64 { return s.OldEpoch }),
	countOf("unfollowed_probes_total", "Probes that were reported and whose rounds were not counted, because there is no room: max_probes others are, or 256 that the plan does not have.", func(s *Stats) uint64 { return s.Unfollowed }),
	countOf("unplanned_probes_total", "Probes that came and that the plan does not have.", func(s *Stats) uint64 { return s.Unplanned }),
	countOf("implausible_probes_total", "Probes whose round or epoch cannot be by the plan in force; they change no count of rounds.", func(s *Stats) uint64 { return s.Odd }),
	countOf("unchecked_probes_total", "Probes that came without a checksum of UDP, as from switches that do not keep it right, and without a digest.", func(s *Stats) uint64 { return s.Unchecked }),
	countOf("shared_node_id_total", "Probes that passed a switch with the agent's own node id.", func(s *Stats) uint64 { return s.SharedID }),
	gaugeOf("awaited_probes", "Probes of the plan that are to come to this agent.", func(_ *Stats, x *Status) float64 { return float64(x.Loss.Awaited) }),
	gaugeOf("silent_probes", "Of these, those whose last two rounds did not come, or more.", func(_ *Stats, x *Status) float64 { return float64(x.Loss.Silent) }),
	gaugeOf("line_up", "1 while the agent's own interface is up, 0 while it is down.", func(_ *Stats, x *Status) float64 {
		if x.Down {
			return 0
		}
		return 1
	}),
	countOf("limited_probes_total", "Probes to which a switch added nothing, because of the hop limit or the MTU.", func(s *Stats) uint64 { return s.Limited }),
	countOf("report_datagrams_total", "Datagrams of reports that the kernel took.", func(s *Stats) uint64 { return s.Datagrams }),
	countOf("report_errors_total", "Datagrams of reports that could not be sent.", func(s *Stats) uint64 { return s.ReportErrors }),
	countOf("status_connections_closed_total", "Connections to status.listen that asked nothing and were closed to make room for others.", func(s *Stats) uint64 { return s.StatusClosed }),
	countOf("status_requests_refused_total", "Requests to status.listen that were sent back, because all connections were being answered.", func(s *Stats) uint64 { return s.StatusBusy }),
	countOf("plans_accepted_total", "Plans that were put in force, or were already.", func(s *Stats) uint64 { return s.Accepted }),
	countOf("plans_refused_total", "Plans that were refused.", func(s *Stats) uint64 { return s.Refused }),
	gaugeOf("plan_epoch", "Epoch of the plan in force, 0 without one.", func(_ *Stats, x *Status) float64 { return float64(x.Epoch) }),
	gaugeOf("plan_probes", "Probes of it that this agent sends.", func(_ *Stats, x *Status) float64 { return float64(x.Load.Sends) }),
	gaugeOf("plan_send_bits_per_second", "What it sends by this plan.", func(_ *Stats, x *Status) float64 { return x.Load.SendBPS }),
	gaugeOf("controller_connected", "1 while the controller is there, 0 while it is gone; also 0 without one.", func(_ *Stats, x *Status) float64 {
		if x.Controller.Connected {
			return 1
		}
		return 0
	}),
}

// Those with labels or buckets.
var (
	malformedFrames = Metric{Name: "hopscope_agent_malformed_frames_total", Help: "Frames that came and were no probe that can be reported, by reason.", Labels: []string{"reason"}, Kind: counter}
	startDelay      = Metric{Name: "hopscope_agent_start_delay_seconds", Help: "Between the time of a start and its sending.", Kind: histogram}
	transitTime     = Metric{Name: "hopscope_agent_transit_seconds", Help: "Between the sending of a probe, by its sender's clock, and its receipt by the kernel here.", Kind: histogram}
)

// Metrics is the list for the documentation.
func Metrics() (list []Metric) {
	for _, m := range metrics {
		list = append(list, m.Metric)
	}
	return append(list, malformedFrames, startDelay, transitTime)
}

// metricsOf publishes the metrics of an agent.
type metricsOf struct{ *Agent }

func describe(m Metric) *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
}

// Describe implements [prometheus.Collector].
func (metricsOf) Describe(out chan<- *prometheus.Desc) {
	for _, m := range Metrics() {
		out <- describe(m)
	}
}

// Collect implements [prometheus.Collector].
func (a metricsOf) Collect(out chan<- prometheus.Metric) {
	s, x := a.Stats(), a.Status()
	for _, m := range metrics {
		kind := prometheus.GaugeValue
		if m.Kind == counter {
			kind = prometheus.CounterValue
		}
		out <- prometheus.MustNewConstMetric(describe(m.Metric), kind, m.value(&s, &x))
	}
	s.Reasons(func(reason string, n uint64) {
		out <- prometheus.MustNewConstMetric(describe(malformedFrames), prometheus.CounterValue, float64(n), reason)
	})
	for _, h := range []struct {
		m Metric
		t *TimesNow
	}{{startDelay, &s.Late}, {transitTime, &s.Transit}} {
		buckets, total := map[float64]uint64{}, uint64(0)
		for k, n := range h.t.Count {
			if total += n; k < Buckets-1 { // the last one has no bound
				buckets[(time.Microsecond << k).Seconds()] = total
			}
		}
		out <- prometheus.MustNewConstHistogram(describe(h.m), total, h.t.Sum.Seconds(), buckets)
	}
}
