package suspicion

import (
	"fmt"
	"math"
	"slices"

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

// hops compares what probes report of links with the links' own history.
type hops struct {
	all        []*hop    // by link; nil without any value of it
	windows    uint64    // that were judged
	lineExcess []float64 // by link: time on the line in this cycle beyond its first value; NaN if none was reported
}

// hop is the state of a link.
type hop struct {
	series    [statistics]detect.Hop
	window    uint64  // the last one with values of it
	base      float64 // first time on the line: clocks may differ by any constant
	based     bool
	explained [statistics]bool // a cause has explained the open findings

	pair  detect.Hop // of both directions of the link together, in floors; at the one with the lower number
	slow  int        // windows in a row in which both took longer than usual, while a finding is open in the pair
	usual float64    // mean of the time on the line beyond base, while nothing was found in the pair
	seen  float64    // cycles that it is of, up to usualCycles

	last    float64 // time on the line beyond base in the cycle before it
	drift   float64 // mean of how far the clocks of both ends moved in a cycle, while nothing was found in the pair, ns; at the one with the lower number
	drifted float64 // cycles that it is of, up to usualCycles
}

const (
	usualCycles = 60
	// A direction is accused of the excess of both if this part of it is reported of that direction.
	pairShare = .25
	// How many times the clocks of a pair move in a cycle, in the mean, its floor is at least.
	driftReach = 8
)

// pairFloor returns the floor of a pair, by its link with the lower number, in ns. PairFloor allows for clocks that
// nothing disciplines. If the clocks of its ends moved less in the cycles before, the floor is pairLeast or the time of
// a packet on the line. The least time is that of the shortest ones.
func (h *hop) pairFloor(cfg *Config, link int) float64 {
	if h.drifted < usualCycles/2 || cfg.pairLeast <= 0 {
		return cfg.PairFloor
	}
	floor := max(cfg.pairLeast, driftReach*h.drift)
	if link < len(cfg.Floors) {
		floor = max(floor, cfg.Floors[link])
	}
	return min(cfg.PairFloor, floor)
}

// usual reports whether probes reported of a link in the last window, and nothing rose in what they did.
func (x *hops) usual(link int32) bool {
	h := x.all[link]
	if h == nil || h.window != x.windows || x.windows == 0 {
		return false
	}
	for k := range h.series {
		if f, open := h.series[k].Open(); open && f.Cause == detect.Rise {
			return false
		}
	}
	return true
}

func (x *hops) step(s *State, c *Cycle) {
	x.windows++
	cfgs := s.cfg.detectors()
	at := cfgs[ofLatency].At(c.Now)
	x.lineExcess = slices.Grow(x.lineExcess[:0], len(x.all))[:len(x.all)]
	for l := range x.lineExcess {
		x.lineExcess[l] = math.NaN()
	}
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
		h.window = x.windows
		cfgs[ofLatency].Floor = s.cfg.latencyFloor(int(v.Link))
		if s.thinned[v.Link] {
			v.Line.Count = 0 // the least time is that of the shortest packets, and these may be the ones that are missing
		}
		for k, w := range [statistics]detect.Window{v.Latency, v.Queue, h.line(v.Line, s.cfg.LineFloor)} {
			h.judge(s, v.Link, k, &cfgs[k], at, w)
		}
		if v.Line.Count > 0 {
			x.lineExcess[v.Link] = v.Line.P50 - h.base
		}
	}
	x.pairs(s, at)
}

// pairs compares both directions of each link together. The difference of two clocks is added to the one and subtracted
// from the other. So clocks which drift have no effect here, and far less than a possible drift is found.
func (x *hops) pairs(s *State, at detect.Moment) {
	cfg := detect.Latency(s.cfg.Window)
	cfg.Floor = 1 // values are in floors
	cfg.Rising, cfg.Idle, cfg.Steady, cfg.Single, cfg.MinCount = true, true, true, true, 1
	for l, b := range s.incidence.reverse {
		if int(b) <= l || math.IsNaN(x.lineExcess[l]) || math.IsNaN(x.lineExcess[b]) {
			continue
		}
		both := [2]*hop{x.all[l], x.all[b]}
		took := [2]float64{x.lineExcess[l], x.lineExcess[b]}
		// Each was LineFloor at first; a floor of room is left for both to become less.
		series, floor := &both[0].pair, both[0].pairFloor(&s.cfg, l)
		series.Add(&cfg, at, detect.Window{Count: 1 << 20, P50: max(0, (took[0]+took[1]-2*s.cfg.LineFloor)/floor+1)})
		f, open := series.Open()
		moved := math.Abs((took[0]-both[0].last)-(took[1]-both[1].last)) / 2
		both[0].last, both[1].last = took[0], took[1]
		if !open || f.Cause != detect.Rise || series.Resting() {
			both[0].slow = 0
			if h := both[0]; h.seen > 0 {
				h.drifted = min(h.drifted+1, usualCycles)
				h.drift += (moved - h.drift) / h.drifted
			}
			for k, h := range both {
				h.seen = min(h.seen+1, usualCycles)
				h.usual += (took[k] - h.usual) / h.seen
			}
			continue
		}
		more := [2]float64{max(0, took[0]-both[0].usual), max(0, took[1]-both[1].usual)}
		if !both[0].lasts(more[0]+more[1], floor*(f.Worst(&cfg)-f.Usual(&cfg)), s.cfg.latencyFloor(l)) {
			continue
		}
		e := evidence{severity: inference.Warning}
		if f.Grave(&cfg) {
			e.severity = inference.Critical
		}
		e.why = fmt.Sprintf("the time on the line there and back rose by %s", inference.Nanoseconds(floor*(f.Worst(&cfg)-f.Usual(&cfg))))
		for k, link := range [2]int32{int32(l), b} {
			if share := more[k] / (more[0] + more[1]); share >= pairShare {
				e.link, e.confidence = link, .99*share
				s.accuse(e)
			}
		}
	}
}

// lasts reports whether a pair takes longer now, and for long enough. For less than the time of a packet on the line,
// that is two windows in a row. The least time is that of the shortest packet, and in a window of few packets all may
// be longer ones.
func (h *hop) lasts(more, worst, packet float64) bool {
	if h.slow++; 2*more < worst {
		h.slow = 0
	}
	return h.slow >= 2 || worst >= packet
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
		all[k].Rising, all[k].Idle, all[k].Steady, all[k].MinCount = true, true, true, 5
		if k == ofLine || c.single {
			all[k].Single, all[k].MinCount = true, 1
		}
	}
	return all
}

// line returns the time on the line beyond its first value, with a floor of room for it to become less. With the floor
// that is added to all values, a floor more is half as much again.
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
		h.explained[k] = false
		return
	}
	if h.explained[k] = h.explained[k] || k != ofLine && s.links[link].explained; h.explained[k] {
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
