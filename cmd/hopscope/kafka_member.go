package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hopscope/hopscope/collector"
	consumers "github.com/hopscope/hopscope/collector/fleet"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/sink/kafka"
)

// machineClock reads the wall clock and a monotonic one; nil reads those of the machine. Tests put it wrong.
var machineClock func() (time.Time, time.Duration)

// wallClock is the wall clock of a member of a fleet.
func wallClock() time.Time {
	if machineClock == nil {
		return time.Now()
	}
	wall, _ := machineClock()
	return wall
}

// fleetParams are what the members of a fleet have in common, as this one is configured.
func fleetParams(cfg *config, seed uint64) roster.Params {
	c := &cfg.Kafka.Config
	return roster.NewParams(c.Fleet, c.Slices, cfg.Window, seed)
}

// join makes the collector a member of its fleet, if it has one.
func (r *running) join(opt *collector.Options) error {
	for i := range opt.Stores {
		w, ok := opt.Stores[i].Writer.(*kafka.Writer)
		if !ok {
			continue
		}
		r.fleet, r.replays = w, opt.Policy.CaptureTime
		if err := roster.CheckName(r.Status().Instance); err != nil {
			return usagef("instance: %q %w", r.Status().Instance, err)
		}
		err := w.Join(context.Background(), kafka.Identity{
			Name: r.Status().Instance, Params: fleetParams(r.cfg, opt.Seed), Seed: opt.Seed, Status: r.memberStatus, Now: wallClock,
		})
		if err != nil {
			return wrongFleet(err)
		}
		if err := w.Unfit(); r.replays && errors.As(err, new(*kafka.NameError)) { // it would wait for as long as that one runs
			return usageError{Err: err}
		}
		if p := w.Stats().Problem; p != "" && opt.Log != nil {
			opt.Log.Warn("not yet a member of the fleet", "problem", p)
		}
	}
	return nil
}

// NotReady returns why reports cannot be received, stored, or sent to the fleet, one sentence each. It is empty when they can.
func (r *running) NotReady() []string {
	problems := r.Collector.NotReady()
	if r.fleet != nil {
		if err := r.fleet.Unfit(); err != nil {
			problems = append(problems, err.Error())
		}
	}
	return problems
}

// wrongFleet makes a wrong question of settings that do not fit into the fleet.
func wrongFleet(err error) error {
	if errors.As(err, new(*kafka.MismatchError)) || errors.As(err, new(*consumers.MismatchError)) {
		return usageError{Err: err}
	}
	return err
}

// thisProcess is the process that runs, which stays the same.
var thisProcess = sync.OnceValue(kafka.ThisProcess)

// mostProblems bounds the problems that a member reports.
const mostProblems = 16

// memberStatus is a collector's status in the roster.
func (r *running) memberStatus(boot uint64, left bool) []byte {
	s, now := r.Standing(), wallClock()
	if s.Start.Before(time.Unix(0, 0)) { // it does not run yet
		s.Start = now
	}
	m := roster.Member{
		Role: roster.Collector, Name: s.Name, Boot: boot, Version: version(), Start: s.Start.UnixNano(), Updated: now.UnixNano(), Left: left, Process: thisProcess(),
		Since: s.First, Window: max(0, r.fleet.Stats().Label), Rate: s.ReportsPerSecond, Spool: s.SpoolBytes,
	}
	if m.Since <= 0 && !r.replays {
		m.Since = fleet.Label(now.UnixNano(), int64(r.cfg.Window))
	}
	for _, p := range s.Problems {
		if len(m.Faults) < mostProblems && !left { // a member that has left receives nothing, as it should be
			m.Faults = append(m.Faults, consumers.OneLine(p))
		}
	}
	if url := r.served.Load(); url != nil {
		m.Pages = []string{*url}
	}
	m.Windows, m.Reports = r.fleet.Confirmed(boot)
	m.Run = kafka.BalanceOf(s.Balances, r.fleet.Name())
	if s.AllRuns != nil {
		m.All = kafka.BalanceOf(s.AllRuns.Sinks, r.fleet.Name())
	}
	return m.Append(nil)
}

// fleetMetrics are those of a member of a fleet, beside those of all collectors.
var fleetMetrics = []collector.Metric{
	{Name: "hopscope_fleet_records_total", Help: "Records that Kafka confirmed.", Kind: collector.Counter},
	{Name: "hopscope_fleet_bytes_total", Help: "Bytes of the values of confirmed records.", Kind: collector.Counter},
	{Name: "hopscope_fleet_repeats_total", Help: "Records sent again after a lost answer.", Kind: collector.Counter},
	{Name: "hopscope_fleet_requests_total", Help: "Requests to write records.", Kind: collector.Counter},
	{Name: "hopscope_fleet_raw_reports_total", Help: "Reports that were sent one by one.", Kind: collector.Counter},
	{Name: "hopscope_fleet_raw_batches_total", Help: "Records of single reports.", Kind: collector.Counter},
	{Name: "hopscope_fleet_raw_bytes_total", Help: "Bytes of the values of records of single reports, compressed.", Kind: collector.Counter},
	{Name: "hopscope_fleet_clock_offset_seconds", Help: "Least offset of the clock to Kafka's; negative is behind. Beyond a window nothing is sent.", Kind: collector.Gauge},
	{Name: "hopscope_fleet_extra_partitions", Help: "Partitions that were added later, and stay empty.", Kind: collector.Gauge},
	{Name: "hopscope_fleet_member", Help: "1 for a member of its fleet; 0 with a problem.", Kind: collector.Gauge},
}

// fleetCollector reads them.
type fleetCollector struct{ w *kafka.Writer }

// Describe implements prometheus.Collector.
func (c fleetCollector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

// Collect implements prometheus.Collector.
func (c fleetCollector) Collect(out chan<- prometheus.Metric) {
	s := c.w.Stats()
	member := 1.0
	if s.Problem != "" {
		member = 0
	}
	for i, v := range []float64{
		float64(s.Records), float64(s.Bytes), float64(s.Repeats), float64(s.Requests),
		float64(s.Diverted.Reports), float64(s.Diverted.Batches), float64(s.Diverted.Bytes),
		s.Clock.Seconds(), float64(s.Extra), member,
	} {
		m := fleetMetrics[i]
		kind := prometheus.CounterValue
		if m.Kind == collector.Gauge {
			kind = prometheus.GaugeValue
		}
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc(m.Name, m.Help, nil, nil), kind, v)
	}
}
