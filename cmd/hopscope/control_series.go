package main

import (
	"context"
	"time"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/fleet/console"
	"github.com/prometheus/client_golang/prometheus"
)

// How a control reads the series of a fleet: as a console does.
const (
	leastWait    = 200 * time.Millisecond
	mostWait     = console.MostWait
	consoleValue = console.MaxValue
)

var (
	consoleLimits = console.Limits
	record        = console.Record
)

// sleep waits, and is false when ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// describeAgent describes a metric to Prometheus.
func describeAgent(m collector.Metric) *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
}
