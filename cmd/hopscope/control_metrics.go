package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/p4/loop"
)

// controlDevices has a label.
var controlDevices = collector.Metric{Name: "hopscope_control_devices", Help: "Agents and switches, by kind and state: ready, behind, unknown, silent, failed or down.",
	Labels: []string{"kind", "state"}, Kind: collector.Gauge}

// Those that a control has which steers nothing, too.
var (
	controlInCharge = collector.Metric{Name: "hopscope_control_in_charge", Help: "1 while this control is in charge; 0 while it stands by, without the other metrics.", Kind: collector.Gauge}
	controlTerms    = collector.Metric{Name: "hopscope_control_terms_total", Help: "Times that this control took charge; 1 without a fleet.", Kind: collector.Counter}
)

// controlClosed has a label, and a control has it that steers nothing, too.
var controlClosed = collector.Metric{Name: "hopscope_control_connections_closed_total", Help: "Silent connections closed to make room, by listener: admin or agents.",
	Labels: []string{"listener"}, Kind: collector.Counter}

// controlRemoved has a label.
var controlRemoved = collector.Metric{Name: "hopscope_control_journal_removed_total", Help: "Files and bytes of the journal removed by journal.keep.", Labels: []string{"unit"}, Kind: collector.Counter}

// controlMetric is a metric of a loop.
func controlMetric(m *loop.Metric) collector.Metric {
	kind := collector.Gauge
	if m.Counter {
		kind = collector.Counter
	}
	return collector.Metric{Name: m.Name, Help: m.Help, Kind: kind}
}

// truth is 1 or 0.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// allControlMetrics is the list for the documentation.
func allControlMetrics() (list []collector.Metric) {
	list = []collector.Metric{controlInCharge, controlTerms, controlClosed, controlRemoved}
	for i := range loop.Metrics {
		list = append(list, controlMetric(&loop.Metrics[i]))
	}
	return append(list, controlDevices)
}

// describeControl describes a metric to Prometheus.
func describeControl(m collector.Metric) *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
}

// controlMetricsOf publishes the metrics of a control, and of its loop if there is one.
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
	for listener, n := range map[string]uint64{"admin": p.closed.Load(), "agents": p.agentsClosed.Load()} {
		out <- prometheus.MustNewConstMetric(describeControl(controlClosed), prometheus.CounterValue, float64(n), listener)
	}
	files, records := p.journal.Removed()
	for unit, n := range map[string]uint64{"files": files, "records": records} {
		out <- prometheus.MustNewConstMetric(describeControl(controlRemoved), prometheus.CounterValue, float64(n), unit)
	}
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s, err := l.Status(ctx)
	if err != nil {
		return // an end of the loop is seen by its health check
	}
	for i := range loop.Metrics {
		m, kind := &loop.Metrics[i], prometheus.GaugeValue
		if m.Counter {
			kind = prometheus.CounterValue
		}
		out <- prometheus.MustNewConstMetric(describeControl(controlMetric(m)), kind, m.Value(&s))
	}
	count := map[[2]string]int{}
	for _, d := range s.Devices {
		count[[2]string{d.Device.Kind.String(), d.State}]++
	}
	for k, n := range count {
		out <- prometheus.MustNewConstMetric(describeControl(controlDevices), prometheus.GaugeValue, float64(n), k[0], k[1])
	}
}
