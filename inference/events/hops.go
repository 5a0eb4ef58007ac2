package events

import (
	"fmt"
	"time"

	"github.com/hopscope/hopscope/inference"
)

// HopConfig are the settings of the detector of latencies and queues.
type HopConfig struct {
	History       int           `yaml:"history" doc:"Past windows of a hop that its baseline is made of." range:"10..1440"`
	Warmup        int           `yaml:"warmup" doc:"Windows of a hop before it is judged." range:"5..1440"`
	MinRecords    uint64        `yaml:"min_records" doc:"Hop records that a window must have to be judged." range:"1..1000000000"`
	Threshold     float64       `yaml:"threshold" doc:"Limit above the median, in robust standard deviations." range:"3..100"`
	RelativeFloor float64       `yaml:"relative_floor" doc:"Smallest distance of the limit from the median, as a share of the median." range:"0.05..100"`
	LatencyFloor  time.Duration `yaml:"latency_floor" doc:"Smallest distance of the limit from the median for latencies." range:"1ns..1m"`
	QueueFloor    uint64        `yaml:"queue_floor_bytes" doc:"Smallest distance of the limit from the median for queues, in bytes (or in the device's unit, where its profile knows no size)." range:"1..1000000000"`
	Critical      float64       `yaml:"critical" doc:"A hop is critical this many times as far above its median as the limit is." range:"1..1000"`
	StartAfter    int           `yaml:"start_after" doc:"Windows in a row above the limit that start a finding." range:"1..100"`
	EndAfter      int           `yaml:"end_after" doc:"Quiet windows in a row that end a finding." range:"1..1000"` // drops, digests and loss too
	LearnAfter    int           `yaml:"learn_after" doc:"Windows in a row above the limit after which they are learnt as the new normal." range:"1..100000"`
	ForgetAfter   int           `yaml:"forget_after" doc:"Windows without records after which the history of a hop is forgotten." range:"1..1000000"`
}

var defaultHopConfig = HopConfig{
	History: 60, Warmup: 30, MinRecords: 20, Threshold: 7, RelativeFloor: 0.5,
	LatencyFloor: time.Microsecond, QueueFloor: 24, Critical: 4,
	StartAfter: 2, EndAfter: 3, LearnAfter: 120, ForgetAfter: 3600,
}

func (c *HopConfig) problems() (errs []error) {
	if c.Warmup > c.History {
		errs = append(errs, fmt.Errorf("warmup: %d is more than the history of %d", c.Warmup, c.History))
	}
	return errs
}

// hops finds hops whose latency or queue is far above its own history.
type hops struct {
	*lifecycle[inference.HopKey, hop]
	scratch []float64 // of the length of a history
}

// hop is what is remembered of one hop.
type hop struct{ latency, queue series }

func (c *coder) hopState(h *hop) {
	c.series(&h.latency)
	c.series(&h.queue)
}

// series is one statistic of one hop over the windows.
type series struct {
	past    history
	above   int // windows in a row above the limit
	calm    int // windows in a row in the lower half
	absent  int // windows in a row without enough records
	finding *inference.Finding
	worst   float64 // since the value was first above the limit
}

func (c *coder) series(s *series) {
	c.history(&s.past)
	number(c, &s.above)
	number(c, &s.calm)
	number(c, &s.absent)
	c.finding(&s.finding)
	c.float(&s.worst)
}

func newHops(j *journal) *hops {
	return &hops{lifecycle: follow(j, inference.HopKey.Compare, (*coder).hop, (*coder).hopState)}
}

func (x *hops) step(w *inference.Window) {
	for i := range w.Hops {
		s := &w.Hops[i]
		if s.Other {
			continue // many hops, and not the same ones in every window
		}
		h := x.see(s.HopKey, x.cfg.MaxHops)
		if h == nil {
			x.stats.HopsRefused++
			continue
		}
		x.judge(&h.latency, latencyKind, s.HopKey, &s.Latency)
		x.judge(&h.queue, queueKind, s.HopKey, &s.Queue)
	}
	x.absent(func(k inference.HopKey, h *hop, windows int) bool {
		var none inference.Summary
		x.judge(&h.latency, latencyKind, k, &none)
		x.judge(&h.queue, queueKind, k, &none)
		if windows < x.cfg.ForgetAfter {
			return false
		}
		text := k.Place() + " is forgotten"
		x.end(&h.latency.finding, text)
		x.end(&h.queue.finding, text)
		return true
	})
	x.stats.Hops = len(x.list)
}

// statistic is what distinguishes latency from queue.
type statistic struct {
	kind  inference.Kind
	name  string
	scale func(*Config) scale
	text  func(float64) string
}

var latencyKind = &statistic{
	kind: inference.HighLatency, name: "latency",
	scale: func(c *Config) scale { return scale{float64(c.LatencyFloor), true} },
	text:  durationText,
}

var queueKind = &statistic{
	kind: inference.HighQueue, name: "queue",
	scale: func(c *Config) scale { return scale{float64(c.QueueFloor), false} },
	text:  func(v float64) string { return fmt.Sprintf("%.0f B", v) },
}

// judge compares a window of a hop with the past ones, learns from it and tells.
func (x *hops) judge(s *series, st *statistic, k inference.HopKey, sum *inference.Summary) {
	if sum.Count < x.cfg.MinRecords {
		s.absent++
		if s.finding != nil && s.absent >= x.cfg.EndAfter {
			x.end(&s.finding, fmt.Sprintf("%s of %s: too few packets in %d windows to tell", st.name, k.Place(), s.absent))
			s.above, s.calm = 0, 0
		}
		return
	}
	s.absent = 0
	v, sc := float64(sum.P99), st.scale(&x.cfg)
	if len(s.past.values) < x.cfg.Warmup {
		s.past.add(sc.of(v), x.cfg.History)
		return
	}
	b := s.past.band(&x.cfg, sc, &x.scratch)
	s.count(v, b)
	if s.above == 0 || s.above > x.cfg.LearnAfter {
		s.past.add(sc.of(v), x.cfg.History)
	}
	switch {
	case s.finding != nil && s.calm >= x.cfg.EndAfter:
		s.finding.Value, s.finding.Baseline = s.worst, b.median
		x.end(&s.finding, fmt.Sprintf("%s of %s was up to p99 %s and is back to %s, usually %s",
			st.name, k.Place(), st.text(s.worst), st.text(v), st.text(b.median)))
	case s.finding != nil && v > b.calm(), s.finding == nil && s.above >= x.cfg.StartAfter:
		severity := inference.Warning
		if v > b.median+x.cfg.Critical*(b.limit-b.median) {
			severity = inference.Critical
		}
		x.tell(&s.finding, inference.Finding{
			Kind: st.kind, Severity: severity, Node: k.Node, EgressIf: k.EgressIf, Value: v, Baseline: b.median,
			Text: fmt.Sprintf("%s of %s: p99 %s over %d packets, usually %s, limit %s",
				st.name, k.Place(), st.text(v), sum.Count, st.text(b.median), st.text(b.limit)),
		})
	}
}

// count notes for how many windows in a row the value has been above the limit, or calm, and how bad it was.
func (s *series) count(v float64, b band) {
	if s.above++; v <= b.limit {
		s.above = 0
	}
	if s.calm++; v > b.calm() {
		s.calm = 0
	}
	if s.above == 1 && s.finding == nil {
		s.worst = 0
	}
	s.worst = max(s.worst, v)
}

// durationText writes nanoseconds with three digits that count.
func durationText(ns float64) string {
	switch d := time.Duration(ns); {
	case d < 10*time.Microsecond:
		return d.String()
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Nanosecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Microsecond).String()
	default:
		return d.Round(100 * time.Millisecond).String()
	}
}
