package findings

import (
	"time"

	"github.com/hopscope/hopscope/inference/detect"
	"github.com/hopscope/hopscope/inference/suspicion"
)

// watch follows one hop.
type watch interface {
	// Step observes the next window, also one without values. It reports whether a finding is open after it, and
	// whether it began with this window.
	Step(w detect.Window) (begun, open bool)
}

// detector is one of the compared detectors. With queue, values are the bytes of a queue instead of nanoseconds.
type detector struct {
	Name string
	New  func(queue bool) watch
}

// Detectors are all that are compared: the test of FANT as published, in one reading, the one that hopscope had
// before, and the present one.
var Detectors = []detector{
	{"FANT 1, 3", func(bool) watch { return newFant(1, 3) }},
	{"FANT 3, 10", func(bool) watch { return newFant(3, 10) }},
	{"former", newFormer},
	{"ours", newOurs},
}

// ours is the detector of package detect.
type ours struct {
	cfg detect.Config
	hop detect.Hop
	end int64
}

func newOurs(queue bool) watch {
	if queue {
		return &ours{cfg: detect.Queue(10 * time.Second)}
	}
	return &ours{cfg: detect.Latency(10 * time.Second)}
}

func (o *ours) Step(w detect.Window) (begun, open bool) {
	o.end += int64(o.cfg.Window)
	begun = o.hop.Add(&o.cfg, o.cfg.At(o.end), w) == detect.Begun
	_, open = o.hop.Open()
	return begun, open
}

// fant is the test by which FANT finds suspicious links, as suspicion.Deviation reads it. Every quantile of a window
// is a metric of its own. The published test has no end of a finding; here it ends after three windows in a row that
// are not suspicious.
type fant struct {
	theta1, theta2 float64
	metrics        [len(ranks)]suspicion.Deviation
	open           bool
	calm           int
}

func newFant(theta1, theta2 float64) watch { return &fant{theta1: theta1, theta2: theta2} }

func (f *fant) Step(w detect.Window) (begun, open bool) {
	if w.Count == 0 {
		return false, f.open
	}
	suspicious := false
	for i, v := range []float64{w.P50, w.P90, w.P99} {
		suspicious = f.metrics[i].Step(v, f.theta1, f.theta2) || suspicious
	}
	f.calm++
	if suspicious {
		begun, f.open, f.calm = !f.open, true, 0
	}
	f.open = f.open && f.calm < 3
	return begun, f.open
}
