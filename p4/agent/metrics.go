package agent

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hopscope/hopscope/p4/probe"
	"github.com/hopscope/hopscope/p4/stamp"
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
	countOf("skipped_starts_total", "Overdue starts of probes that were left out.", func(s *Stats) uint64 { return s.Skipped }),
	countOf("send_errors_total", "Probes that the kernel did not take.", func(s *Stats) uint64 { return s.SendErrors }),
	countOf("clock_steps_total", "Steps of the clock by more than 200 ms, which restart the schedule.", func(s *Stats) uint64 { return s.ClockSteps }),
	countOf("received_probes_total", "Probes that came back and were reported.", func(s *Stats) uint64 { return s.Received }),
	countOf("kernel_dropped_total", "Frames dropped by the kernel: the receive buffer was full.", func(s *Stats) uint64 { return s.KernelDropped }),
	gaugeOf("lost_probes", "Rounds of probes that did not arrive; late ones are subtracted.", func(s *Stats, _ *Status) float64 { return float64(s.Lost) }),
	countOf("duplicate_probes_total", "Probes that came again.", func(s *Stats) uint64 { return s.Twice }),
	countOf("old_epoch_probes_total", "Probes of an earlier plan than the one in force.", func(s *Stats) uint64 { return s.OldEpoch }),
	countOf("unfollowed_probes_total", "Probes reported without a count of rounds, beyond their places.", func(s *Stats) uint64 { return s.Unfollowed }),
	countOf("unplanned_probes_total", "Received probes outside of the plan.", func(s *Stats) uint64 { return s.Unplanned }),
	countOf("implausible_probes_total", "Probes with an impossible round or epoch.", func(s *Stats) uint64 { return s.Odd }),
	countOf("unchecked_probes_total", "Probes without a UDP checksum and without a digest.", func(s *Stats) uint64 { return s.Unchecked }),
	countOf("shared_node_id_total", "Probes that passed a switch with the agent's own node id.", func(s *Stats) uint64 { return s.SharedID }),
	gaugeOf("awaited_probes", "Probes of the plan towards this agent.", func(_ *Stats, x *Status) float64 { return float64(x.Loss.Awaited) }),
	gaugeOf("silent_probes", "Of these, those whose last two rounds did not come.", func(_ *Stats, x *Status) float64 { return float64(x.Loss.Silent) }),
	gaugeOf("unidentified_probes", "Of the awaited ones, those that cannot be distinguished from another one, so that their paths are not reported.", func(_ *Stats, x *Status) float64 { return float64(x.Loss.Unsure) }),
	gaugeOf("line_up", "1 while the agent's own interface is up, 0 while it is down.", func(_ *Stats, x *Status) float64 {
		if x.Down {
			return 0
		}
		return 1
	}),
	countOf("limited_probes_total", "Probes to which a switch added nothing, by hop limit or MTU.", func(s *Stats) uint64 { return s.Limited }),
	countOf("report_datagrams_total", "Datagrams of reports that the kernel took.", func(s *Stats) uint64 { return s.Datagrams }),
	countOf("report_errors_total", "Datagrams of reports that could not be sent.", func(s *Stats) uint64 { return s.ReportErrors }),
	countOf("status_connections_closed_total", "Silent connections to status.listen, closed to make room.", func(s *Stats) uint64 { return s.StatusClosed }),
	countOf("status_requests_refused_total", "Requests to status.listen refused while all connections were busy.", func(s *Stats) uint64 { return s.StatusBusy }),
	countOf("plans_accepted_total", "Plans put in force, or already there.", func(s *Stats) uint64 { return s.Accepted }),
	countOf("plans_refused_total", "Plans that were refused.", func(s *Stats) uint64 { return s.Refused }),
	gaugeOf("plan_epoch", "Epoch of the plan in force, 0 without one.", func(_ *Stats, x *Status) float64 { return float64(x.Epoch) }),
	gaugeOf("plan_probes", "Probes of it that this agent sends.", func(_ *Stats, x *Status) float64 { return float64(x.Load.Sends) }),
	gaugeOf("plan_send_bits_per_second", "What it sends by this plan.", func(_ *Stats, x *Status) float64 { return x.Load.SendBPS }),
	gaugeOf("controller_connected", "1 while the controller is connected.", func(_ *Stats, x *Status) float64 {
		if x.controller.Connected {
			return 1
		}
		return 0
	}),
}

// Those with labels or buckets.
var (
	malformedFrames = Metric{Name: "hopscope_agent_malformed_frames_total", Help: "Received frames that are no valid probe, by reason.", Labels: []string{"reason"}, Kind: counter}
	startDelay      = Metric{Name: "hopscope_agent_start_delay_seconds", Help: "Between the time of a start and its sending.", Kind: histogram}
	transitTime     = Metric{Name: "hopscope_agent_transit_seconds", Help: "Time from sending, by the sender's clock, to receipt by the kernel.", Kind: histogram}
)

// stampMetric is a number of a session of STAMP.
type stampMetric struct {
	Metric
	value func(s *stampStatus) float64
}

func ofSession(name, help, kind string, value func(s *stampStatus) float64) stampMetric {
	return stampMetric{Metric{Name: "hopscope_agent_stamp_" + name, Help: help, Labels: []string{"session"}, Kind: kind}, value}
}

var stampMetrics = []stampMetric{
	ofSession("sent_total", "Requests of a session of STAMP that the kernel took.", counter, func(s *stampStatus) float64 { return float64(s.Sent) }),
	ofSession("send_errors_total", "Requests that the kernel did not take.", counter, func(s *stampStatus) float64 { return float64(s.Failed) }),
	ofSession("kernel_dropped_total", "Answers dropped by a full receive buffer; they count as lost.", counter, func(s *stampStatus) float64 { return float64(s.Dropped) }),
	ofSession("received_total", "Requests whose answer came, in time or late.", counter, func(s *stampStatus) float64 { return float64(s.Received) }),
	ofSession("lost", "Requests without an answer within stamp.timeout; late ones are subtracted.", gauge, func(s *stampStatus) float64 { return float64(s.Lost) }),
	ofSession("lost_out", "Of these, requests that did not reach the reflector, by its numbers.", gauge, func(s *stampStatus) float64 { return float64(s.Forward) }),
	ofSession("lost_home", "Of these, answers that did not come back.", gauge, func(s *stampStatus) float64 { return float64(s.Back) }),
	ofSession("late_total", "Answers that came after stamp.timeout.", counter, func(s *stampStatus) float64 { return float64(s.Late) }),
	ofSession("duplicates_total", "Answers that came again.", counter, func(s *stampStatus) float64 { return float64(s.Twice) }),
	ofSession("reordered_total", "Answers that came behind those of later requests.", counter, func(s *stampStatus) float64 { return float64(s.Reordered) }),
	ofSession("remarked_total", "Requests received by the reflector with another DSCP (stamp.class_of_service).", counter, func(s *stampStatus) float64 { return float64(s.Remarked) }),
	ofSession("silent", "1 while the last two requests were lost or not sent.", gauge, func(s *stampStatus) float64 {
		if s.Silent {
			return 1
		}
		return 0
	}),
	ofSession("way", "Number of the way of a session with a port; it rises when the routers change. 0 is unknown.", gauge, func(s *stampStatus) float64 { return float64(s.Way.Epoch) }),
	ofSession("clock_error_seconds", "Error of one-way delays by the accounts of both clocks; 0 without synchronised clocks.", gauge, func(s *stampStatus) float64 { return s.ClockError.Seconds() }),
}

// Those of STAMP with more labels, and of the reflector.
var (
	stampDelay     = Metric{Name: "hopscope_agent_stamp_delay_seconds", Help: "Quantiles of the last whole minute, by way: trip (there and back without the reflector), out and home with synchronised clocks; 1 is the largest.", Labels: []string{"session", "way", "quantile"}, Kind: gauge}
	stampVariation = Metric{Name: "hopscope_agent_stamp_variation_seconds", Help: "The same of differences between the delays of successive requests; out and home need no synchronised clocks.", Labels: []string{"session", "way", "quantile"}, Kind: gauge}
	stampCorrupt   = Metric{Name: "hopscope_agent_stamp_corrupt_total", Help: "Refused answers: short and long, bad-mac (no key of ours), bad-echo (no such request), bad-tlv (wrong extensions or padding), bad-time.", Labels: []string{"session", "reason"}, Kind: counter}
	stampAnswered  = Metric{Name: "hopscope_agent_stamp_answers_total", Help: "Answers of the reflector that the kernel took.", Kind: counter}
	stampUnsent    = Metric{Name: "hopscope_agent_stamp_answer_errors_total", Help: "Answers of the reflector that the kernel did not take.", Kind: counter}
	stampDropped   = Metric{Name: "hopscope_agent_stamp_requests_dropped_total", Help: "Requests to the reflector dropped by a full receive buffer.", Kind: counter}
	stampRefused   = Metric{Name: "hopscope_agent_stamp_refused_total", Help: "Packets that the reflector did not answer, by reason.", Labels: []string{"reason"}, Kind: counter}
	stampTraces    = Metric{Name: "hopscope_agent_stamp_traces_total", Help: "IOAM traces in answered requests: whole, or with overflow (a router had no room); empty (no router added data) and malformed ones are not reported.", Labels: []string{"outcome"}, Kind: counter}
	stampOpen      = Metric{Name: "hopscope_agent_stamp_reflected_sessions", Help: "Sessions that the reflector remembers.", Kind: gauge}
)

// collectSTAMP publishes what there is of STAMP.
func (a metricsOf) collectSTAMP(out chan<- prometheus.Metric) {
	give := func(m *Metric, value float64, labels ...string) {
		kind := prometheus.GaugeValue
		if m.Kind == counter {
			kind = prometheus.CounterValue
		}
		out <- prometheus.MustNewConstMetric(describe(*m), kind, value, labels...)
	}
	list, answers := a.STAMP()
	for k := range list {
		s := &list[k]
		for _, m := range stampMetrics {
			give(&m.Metric, m.value(s), s.Name)
		}
		for _, why := range stamp.AnswerReasons {
			give(&stampCorrupt, float64(s.Refused[why]), s.Name, why.String())
		}
		for _, w := range []struct {
			way              string
			delay, variation *stamp.Delays
		}{{"trip", &s.Trip, &s.TripVariation}, {"out", &s.Out, &s.OutVariation}, {"home", &s.Home, &s.HomeVariation}} {
			for _, q := range []float64{0.5, 0.9, 0.99, 1} {
				text := strconv.FormatFloat(q, 'g', -1, 64)
				if w.delay.Count > 0 {
					give(&stampDelay, w.delay.Quantile(q).Seconds(), s.Name, w.way, text)
				}
				if w.variation.Count > 0 {
					give(&stampVariation, w.variation.Quantile(q).Seconds(), s.Name, w.way, text)
				}
			}
		}
	}
	if len(answers.Listen) == 0 {
		return
	}
	give(&stampAnswered, float64(answers.Answered))
	give(&stampUnsent, float64(answers.Unsent))
	give(&stampDropped, float64(answers.Dropped))
	give(&stampOpen, float64(answers.Sessions))
	for outcome, n := range answers.Traces {
		give(&stampTraces, float64(n), stamp.Outcome(outcome).String())
	}
	for why := stamp.Short; why < stamp.NumReasons; why++ {
		give(&stampRefused, float64(answers.Refused[why]), why.String())
	}
}

// Metrics is the list for the documentation.
func Metrics() (list []Metric) {
	for _, m := range metrics {
		list = append(list, m.Metric)
	}
	list = append(list, malformedFrames, startDelay, transitTime)
	for _, m := range stampMetrics {
		list = append(list, m.Metric)
	}
	return append(list, stampCorrupt, stampDelay, stampVariation, stampAnswered, stampUnsent, stampDropped, stampRefused, stampTraces, stampOpen)
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
	a.collectSTAMP(out)
	s, x := a.Stats(), a.Status()
	for _, m := range metrics {
		kind := prometheus.GaugeValue
		if m.Kind == counter {
			kind = prometheus.CounterValue
		}
		out <- prometheus.MustNewConstMetric(describe(m.Metric), kind, m.value(&s, &x))
	}
	s.reasons(func(reason string, n uint64) {
		out <- prometheus.MustNewConstMetric(describe(malformedFrames), prometheus.CounterValue, float64(n), reason)
	})
	for _, h := range []struct {
		m Metric
		t *probe.TimesNow
	}{{startDelay, &s.Late}, {transitTime, &s.Transit}} {
		buckets, total := map[float64]uint64{}, uint64(0)
		for k, n := range h.t.Count {
			if total += n; k < len(h.t.Count)-1 { // the last one has no bound
				buckets[(time.Microsecond << k).Seconds()] = total
			}
		}
		out <- prometheus.MustNewConstHistogram(describe(h.m), total, h.t.Sum.Seconds(), buckets)
	}
}
