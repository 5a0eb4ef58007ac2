package events

import (
	"cmp"
	"fmt"
	"time"

	"github.com/hopscope/hopscope/inference"
)

// hop is what is remembered of one hop.
type hop struct {
	latency, queue series
	last           uint64 // window of the last record
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

func (d *Detector) stepHops(w *inference.Window) {
	present := 0
	for i := range w.Hops {
		h := &w.Hops[i]
		if h.Other {
			continue // many hops, and not the same ones in every window
		}
		st := d.hops[h.HopKey]
		if st == nil {
			if len(d.hops) >= d.cfg.MaxHops {
				d.stats.HopsRefused++
				continue
			}
			st = &hop{}
			d.hops[h.HopKey] = st
		}
		st.last = d.windows
		present++
		d.judge(&st.latency, latencyKind, h, &h.Latency)
		d.judge(&st.queue, queueKind, h, &h.Queue)
	}
	if present == len(d.hops) {
		return
	}
	for _, key := range ordered(d.hops, compareHops) {
		st := d.hops[key]
		if st.last == d.windows {
			continue
		}
		none := inference.HopStats{HopKey: key}
		d.judge(&st.latency, latencyKind, &none, &none.Latency)
		d.judge(&st.queue, queueKind, &none, &none.Queue)
		if d.windows-st.last >= uint64(d.cfg.ForgetAfter) {
			for _, s := range []*series{&st.latency, &st.queue} {
				if s.finding != nil {
					d.end(s.finding, placeText(key)+" is forgotten")
				}
			}
			delete(d.hops, key)
		}
	}
}

func compareHops(a, b inference.HopKey) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.EgressIf, b.EgressIf))
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
	text:  func(v float64) string { return durationText(v) },
}

var queueKind = &statistic{
	kind: inference.HighQueue, name: "queue",
	scale: func(c *Config) scale { return scale{float64(c.QueueFloor), false} },
	text:  func(v float64) string { return fmt.Sprintf("%.0f B", v) },
}

// judge compares a window of a hop with the past ones and learns from it.
func (d *Detector) judge(s *series, st *statistic, h *inference.HopStats, sum *inference.Summary) {
	if sum.Count < d.cfg.MinRecords {
		s.absent++
		if s.finding != nil && s.absent >= d.cfg.EndAfter {
			d.end(s.finding, fmt.Sprintf("%s of %s: too few packets in %d windows to tell", st.name, placeText(h.HopKey), s.absent))
			s.finding, s.above, s.calm = nil, 0, 0
		}
		return
	}
	s.absent = 0
	v, sc := float64(sum.P99), st.scale(&d.cfg)
	if len(s.past.values) < d.cfg.Warmup {
		s.past.add(sc.of(v), d.cfg.History)
		return
	}
	b := s.past.band(&d.cfg, sc, d.scratch)
	if v > b.limit {
		s.above++
	} else {
		s.above = 0
	}
	if v <= b.calm() {
		s.calm++
	} else {
		s.calm = 0
	}
	if s.above == 0 || s.above > d.cfg.LearnAfter {
		s.past.add(sc.of(v), d.cfg.History)
	}

	severity := inference.Warning
	if v > b.median+d.cfg.Critical*(b.limit-b.median) {
		severity = inference.Critical
	}
	text := func() string {
		return fmt.Sprintf("%s of %s: p99 %s over %d packets, usually %s, limit %s",
			st.name, placeText(h.HopKey), st.text(v), sum.Count, st.text(b.median), st.text(b.limit))
	}
	if s.above == 1 && s.finding == nil {
		s.worst = 0
	}
	s.worst = max(s.worst, v)
	switch {
	case s.finding == nil && s.above >= d.cfg.StartAfter:
		s.finding = d.start(inference.Finding{
			Kind: st.kind, Severity: severity, Node: h.Node, EgressIf: h.EgressIf, Value: v, Baseline: b.median, Text: text(),
		})
	case s.finding != nil && s.calm >= d.cfg.EndAfter:
		s.finding.Value, s.finding.Baseline = s.worst, b.median
		d.end(s.finding, fmt.Sprintf("%s of %s was up to p99 %s and is back to %s, usually %s",
			st.name, placeText(h.HopKey), st.text(s.worst), st.text(v), st.text(b.median)))
		s.finding = nil
	case s.finding != nil && v > b.calm():
		d.update(s.finding, severity, v, b.median, text())
	}
}

func placeText(k inference.HopKey) string {
	if k.EgressIf == 0 {
		return fmt.Sprintf("node %d", k.Node)
	}
	return fmt.Sprintf("node %d interface %d", k.Node, k.EgressIf)
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
