package main

import (
	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/fleet/console"
	"github.com/prometheus/client_golang/prometheus"
)

// How a control reads the series of a fleet: as a console does.
const consoleValue = console.MaxValue

var (
	consoleLimits = console.Limits
	record        = console.Record
)

// describeAgent describes a metric to Prometheus.
func describeAgent(m collector.Metric) *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
}
