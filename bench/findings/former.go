package findings

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/inference/detect"
)

// former is the earlier detector of hops in hopscope, with its defaults. It compares the 99th percentile with a limit
// above the median of its last 60 windows. The distance is seven robust standard deviations, at least half of the
// median, and at least a floor. Two windows in a row above it begin a finding, and three in the lower half of the
// distance end one. After 120 windows the higher value is learnt as normal.
type former struct {
	floor       float64
	log         bool // latencies are compared on a logarithmic scale
	past        []float64
	next        int
	above, calm int
	absent      int
	open        bool
}

const (
	formerHistory  = 60
	formerWarmup   = 30
	formerRecords  = 20
	formerLimit    = 7
	formerRelative = .5
	formerLearn    = 120
	madToSigma     = 1.4826 // standard deviation of a normal distribution over its median absolute deviation
	q90ToSigma     = 1.2816
)

func newFormer(queue bool) watch {
	if queue {
		return &former{floor: 24}
	}
	return &former{floor: 1000, log: true}
}

func (f *former) Step(w detect.Window) (begun, open bool) {
	if w.Count < formerRecords {
		if f.absent++; f.open && f.absent >= 3 {
			f.open, f.above, f.calm = false, 0, 0
		}
		return false, f.open
	}
	f.absent = 0
	v := w.P99
	if len(f.past) < formerWarmup {
		f.add(v)
		return false, false
	}
	median, limit := f.band()
	if f.above++; v <= limit {
		f.above = 0
	}
	if f.calm++; v > median+(limit-median)/2 {
		f.calm = 0
	}
	if f.above == 0 || f.above > formerLearn {
		f.add(v)
	}
	switch {
	case f.open && f.calm >= 3:
		f.open = false
	case !f.open && f.above >= 2:
		f.open, begun = true, true
	}
	return begun, f.open
}

func (f *former) add(v float64) {
	if f.log {
		v = math.Log(v + f.floor)
	}
	if len(f.past) < formerHistory {
		f.past = append(f.past, v)
		return
	}
	f.past[f.next] = v
	f.next = (f.next + 1) % formerHistory
}

// band returns the normal value, and the limit.
func (f *former) band() (median, limit float64) {
	var room [formerHistory]float64
	s := append(room[:0], f.past...)
	middle := func() float64 {
		slices.Sort(s)
		return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
	}
	median = middle()
	spread := (s[min(int(.9*float64(len(s))), len(s)-1)] - median) / q90ToSigma
	for i, v := range s {
		s[i] = math.Abs(v - median)
	}
	spread = max(spread, madToSigma*middle())
	limit = median + formerLimit*spread
	if f.log {
		median, limit = math.Exp(median)-f.floor, math.Exp(limit)-f.floor
	}
	return median, max(limit, median+max(f.floor, formerRelative*median))
}
