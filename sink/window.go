package sink

import (
	"sync"

	"github.com/hopscope/hopscope/inference"
)

// Window is a window that has ended, with the findings that started, became more severe or ended with it. It is what
// every sink receives. Sinks share it: whoever keeps it must not change it.
type Window struct {
	*inference.Window
	Findings []inference.Finding

	once   sync.Once
	points []Point
}

// NewWindow takes over w and findings.
func NewWindow(w *inference.Window, findings []inference.Finding) *Window {
	return &Window{Window: w, Findings: findings}
}

// Points gives the window as points of the stored series. They are made once, for all stores of series.
func (w *Window) Points() []Point {
	w.once.Do(func() { w.points = points(w.Window, w.Findings) })
	return w.points
}

// Batch gives the window as a batch for a [Writer].
func (w *Window) Batch() *Batch { return &Batch{Points: w.Points(), Reports: w.Reports} }
