package sink

import (
	"sync"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/inference/window"
)

// Window is a window that has ended, with the findings that started, became more severe or ended with it. Every sink
// receives it. Sinks share it and must not change it.
//
// The end of a window is its label: the name under which stores keep it. When a collector's clock is set back, labels
// come again. The window is then handed over once more, with a higher Revision. Its hops, flows and exporters contain
// everything that was counted under the label so far. Their points can thus replace those that were written before.
// Reports, path changes and findings are only the new ones.
type Window struct {
	*inference.Window
	Findings []inference.Finding

	// Instance is the origin of the points: the name of a collector, or of its fleet.
	Instance string
	// Label is the end under which a fleet keeps the window: a multiple of its length, also where a run ended before it. The
	// next run then adds to what this one counted.
	Label    int64
	Revision uint64      // how often the window was handed over before
	Names    []names.Row // what nodes and interfaces are called, in windows that hold them: the first one, when it changes, and daily
	Run      *Run        // the run that the window is from, in a point of its own; nil makes none

	// Partial is the summary that the window was made of, for a [WindowEncoder]; nil outside of its call.
	Partial *window.Partial

	once   sync.Once
	points []Point
}

// Run is the collector's run that a window is from.
type Run struct {
	Boot    string // differs from one run to the next
	Version string // of the program
	Start   int64  // of the run, ns since 1970
	Reports uint64 // counted under the label of the window so far
	Held    bool   // the clock was set back too far: the window is kept under the last label
}

// NewWindow takes over w and findings, for points of an instance.
func NewWindow(instance string, w *inference.Window, findings []inference.Finding) *Window {
	return &Window{Instance: instance, Window: w, Findings: findings}
}

// Points returns the window as points of the stored series. They are made once, for all stores of series.
func (w *Window) Points() []Point {
	w.once.Do(func() { w.points = points(w) })
	return w.points
}

// Batch returns the window as a batch for a [Writer].
func (w *Window) Batch() *Batch { return &Batch{Points: w.Points(), Reports: w.Reports} }
