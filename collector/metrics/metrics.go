// Package metrics describes all metrics in one list and publishes their values when they are scraped.
package metrics

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/hopscope/hopscope/inference/names"
)

// Metric describes one metric of /metrics; docs/metrics.md is written from the list.
type Metric struct {
	Name, Help string
	Labels     []string
	Kind       Kind
}

// Kind is a type of Prometheus.
type Kind uint8

// The kinds of metrics.
const (
	Gauge Kind = iota
	Counter
	Histogram
)

func (k Kind) String() string {
	return [...]string{"gauge", "counter", "histogram"}[min(k, Histogram)]
}

// NewGauge describes a gauge.
func NewGauge(name, help string, labels ...string) Metric { return Metric{name, help, labels, Gauge} }

// NewCounter describes a counter.
func NewCounter(name, help string, labels ...string) Metric {
	return Metric{name, help, labels, Counter}
}

// Emit publishes one value of a metric, with the values of its labels.
type Emit func(m Metric, v float64, labels ...string)

// number is a type from which a value can be read.
type number interface {
	~int | ~int64 | ~uint64 | ~float64
}

// Value is a metric with a value, and those of its labels.
type Value struct {
	Metric
	V     float64
	label []string
}

// Of makes a value.
func Of[N number](m Metric, n N, labels ...string) Value { return Value{m, float64(n), labels} }

// All publishes values.
func (e Emit) All(values ...Value) {
	for _, v := range values {
		e(v.Metric, v.V, v.label...)
	}
}

// Map publishes the values of a map, whose keys are the last label.
func Map[N number](emit Emit, m Metric, values map[string]N, labels ...string) {
	for key, n := range values {
		emit(m, float64(n), append(labels[:len(labels):len(labels)], key)...)
	}
}

// Bool is the value of a condition: 1 while it holds, else 0.
func Bool(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// Registry makes a registry of the metrics in list, whose values collect emits at each scrape, of those of the process, and
// of more. Histograms in the list are among more.
func Registry(list []Metric, collect func(Emit), more ...prometheus.Collector) *prometheus.Registry {
	s := scrape{map[string]*prometheus.Desc{}, collect}
	for _, m := range list {
		if m.Kind != Histogram {
			s.descriptions[m.Name] = prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
		}
	}
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), s)
	r.MustRegister(more...)
	return r
}

type scrape struct {
	descriptions map[string]*prometheus.Desc // by name
	collect      func(Emit)
}

// Describe implements prometheus.Collector.
func (s scrape) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range s.descriptions {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s scrape) Collect(ch chan<- prometheus.Metric) {
	s.collect(func(m Metric, v float64, labels ...string) {
		kind := prometheus.GaugeValue
		if m.Kind == Counter {
			kind = prometheus.CounterValue
		}
		labels = slices.Clone(labels)
		for i, l := range labels {
			labels[i] = names.Printable(l) // it may come from others; the client takes none that is not UTF-8
		}
		ch <- prometheus.MustNewConstMetric(s.descriptions[m.Name], kind, v, labels...)
	})
}

// Durations is a histogram of the durations of writes, by store and by success.
type Durations struct{ *prometheus.HistogramVec }

// NewDurations makes the histogram of a metric with two labels: store, and whether the write succeeded.
func NewDurations(m Metric) Durations {
	return Durations{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: m.Name, Help: m.Help, Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}, m.Labels)}
}

// Observer returns what counts the writes to one store.
func (h Durations) Observer(store string) func(d time.Duration, err error) {
	return func(d time.Duration, err error) {
		h.WithLabelValues(store, strconv.FormatBool(err == nil)).Observe(d.Seconds())
	}
}
