package suspicion

import (
	"fmt"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/detect"
)

// The statistics of a link.
const (
	ofLatency = iota
	ofQueue
	ofLine
	statistics
)

var statisticNames = [statistics]string{"the time in the switch before it", "its queue", "the time on the line"}

// hops compares what probes tell of links with the links' own history.
type hops struct {
	all []*hop // by link; nil for one that probes never told of
}

// hop is what is remembered of a link.
type hop struct {
	series [statistics]detect.Hop
	base   float64 // of the time on the line, when it was told first: clocks may differ by any constant
	based  bool
	known  [statistics]bool // a cause has explained what is open
}

func (x *hops) step(s *State, c *Cycle) {
	cfgs := s.cfg.detectors()
	at := cfgs[ofLatency].At(c.Now)
	for i := range c.Hops {
		v := &c.Hops[i]
		if v.Link < 0 || int(v.Link) >= len(x.all) {
			continue
		}
		h := x.all[v.Link]
		if h == nil {
			h = new(hop)
			x.all[v.Link] = h
		}
		if cfgs[ofLatency].Floor = s.cfg.LatencyFloor; int(v.Link) < len(s.cfg.Floors) && s.cfg.Floors[v.Link] > 0 {
			cfgs[ofLatency].Floor = s.cfg.Floors[v.Link]
		}
		for k, w := range [statistics]detect.Window{v.Latency, v.Queue, h.line(v.Line, s.cfg.LineFloor)} {
			h.judge(s, v.Link, k, &cfgs[k], at, w)
		}
	}
}

// detectors are the settings of package detect.
func (c *Config) detectors() (all [statistics]detect.Config) {
	all[ofLatency] = detect.Latency(c.Window)
	all[ofLatency].Floor = c.LatencyFloor
	all[ofQueue] = detect.Queue(c.Window)
	all[ofQueue].Floor = c.QueueFloor
	all[ofLine] = detect.Latency(c.Window)
	all[ofLine].Floor = c.LineFloor
	for k := range all {
		all[k].Rising, all[k].Idle, all[k].Steady = true, true, true
		if k == ofLine || c.Single {
			all[k].Single, all[k].MinCount = true, 1
		}
	}
	return all
}

// line gives the time on the line beyond what it was at first, and a floor of room for it to become less: with the floor that is added to
// all values, a floor more is half as much again.
func (h *hop) line(w detect.Window, floor float64) detect.Window {
	if w.Count == 0 {
		return w
	}
	if !h.based {
		h.base, h.based = w.P50-floor, true
	}
	return detect.Window{Count: 1 << 20, P50: max(0, w.P50-h.base)}
}

// judge takes a cycle of one statistic.
func (h *hop) judge(s *State, link int32, k int, cfg *detect.Config, at detect.Moment, w detect.Window) {
	if w.Count == 0 {
		return // what vanished is a loss
	}
	if cfg.Single {
		w.Count = 1 << 20
	}
	series := &h.series[k]
	series.Add(cfg, at, w)
	f, open := series.Open()
	if !open || f.Cause != detect.Rise {
		h.known[k] = false
		return
	}
	if h.known[k] = h.known[k] || k != ofLine && s.held[link].explained; h.known[k] {
		return
	}
	e := evidence{link: link, severity: inference.Warning, confidence: .99}
	if f.Grave(cfg) {
		e.severity = inference.Critical
	}
	usual, worst := f.Usual(cfg), f.Worst(cfg)
	switch k {
	case ofQueue:
		e.why = fmt.Sprintf("%s rose to %.0f, usually %.0f", statisticNames[k], inference.Round(worst), inference.Round(usual))
	case ofLine:
		e.why = fmt.Sprintf("%s rose by %s", statisticNames[k], inference.Nanoseconds(worst-usual))
	default:
		e.why = fmt.Sprintf("%s rose to %s, usually %s", statisticNames[k], inference.Nanoseconds(worst), inference.Nanoseconds(usual))
	}
	s.accuse(e)
}
