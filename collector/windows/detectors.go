package windows

import (
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/sink/notify"
)

// Detector turns windows into findings. It is called from one goroutine, and does not keep the window. The findings are
// valid until the next call.
type Detector interface {
	Step(w *inference.Window) []inference.Finding
}

// Detectors finds in windows what is worth a finding. One goroutine steps it; others may change its settings.
type Detectors struct {
	events *events.Detector
	all    []Detector
	live   bool                // windows end by the clock
	last   int64               // time of the last window for the detectors
	open   []inference.Finding // since an earlier run, for the first window
	reload atomic.Pointer[events.Config]
}

// NewDetectors makes the detectors that the settings name, and more beside them.
func NewDetectors(cfg events.Config, live bool, more ...Detector) *Detectors {
	d := &Detectors{events: events.New(cfg), live: live}
	d.all = append([]Detector{d.events}, more...)
	return d
}

// Reload changes the settings with the next window.
func (d *Detectors) Reload(cfg events.Config) { d.reload.Store(&cfg) }

// accept hands to the detectors what operators accepted as normal.
func (d *Detectors) accept(r *notify.Rules) { d.events.Accept(stores.Acceptances(r)) }

// time returns the end of a window for the detectors. They see windows in the order of counting, also when the clock
// was set back. Until it has passed the latest window, each window ends a millisecond after the one before. Findings
// neither begin before their cause nor end before they began, and no event replaces another.
func (d *Detectors) time(label int64) int64 {
	const apart = int64(time.Millisecond) // more than what keeps the events of one window apart
	if d.live && d.last != 0 && label < d.last+apart {
		label = d.last + apart
	}
	d.last = label
	return label
}

// step returns what all detectors find in w, behind the findings that are open since an earlier run, once. Each counts its
// findings on its own, so those of detectors beside the first carry the detector's number in their upper bits.
func (d *Detectors) step(w *inference.Window) []inference.Finding {
	const perDetector = 56 // bits
	if cfg := d.reload.Swap(nil); cfg != nil {
		d.events.Configure(*cfg)
	}
	found := d.open
	d.open = nil
	seen := *w
	seen.End = d.time(w.End)
	for i, x := range d.all {
		from := len(found)
		found = append(found, x.Step(&seen)...)
		for k := range found[from:] {
			found[from+k].ID |= uint64(i) << perDetector
		}
	}
	d.events.Mark(w)
	return found
}

// learning is how many hops are younger than their statistics need.
func (d *Detectors) learning() int { return d.events.Stats().Learning }

// coverage is how much of the last window was judged.
func (d *Detectors) coverage() inference.Coverage { return d.events.Coverage() }
