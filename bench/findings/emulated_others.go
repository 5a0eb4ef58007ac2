package findings

import (
	"fmt"
	"slices"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/detect"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
)

// Others are the detectors for comparison on the emulated network. They judge latencies and queues of single hops
// alone, and infer no causes: their findings are at a hop.
var Others = []detector{
	{"FANT 1, 3", func(bool) watch { return newFant(1, 3) }},
	{"FANT 3, 10", func(bool) watch { return newFant(3, 10) }},
	{"former", func(queue bool) watch {
		f := newFormer(queue).(*former)
		if f.floor = float64(fullPacket); queue { // ours has the same floors
			f.floor = queueFloor
		}
		return f
	}},
}

// rivalNames are those of the others and of the detector that looks at pictures, in the order of their results.
var rivalNames = func() (names []string) {
	for i := range Others {
		names = append(names, Others[i].Name)
	}
	return append(names, "picture")
}()

// queueFloor is the default of events.queue_floor_bytes.
const queueFloor = 3000

// rival is one of the others with the series that it watches.
type rival struct {
	watches map[inference.HopKey]*[2]watch // of latency and queue
	begun   []begun
}

// begun is a finding of a rival.
type begun struct {
	at  int64 // end of the window
	hop inference.HopKey
}

// rivals are all of them.
type rivals struct {
	all    []rival            // the last is the detector that looks at pictures
	hops   []inference.HopKey // that were seen, in order
	film   *film
	kernel kernel
	in     [][inputs]float64
}

func newRivals(n *emu.Network) *rivals {
	r := &rivals{all: make([]rival, len(rivalNames)), film: newFilm(n), kernel: newKernel()}
	r.in = make([][inputs]float64, len(r.film.cells))
	for i := range Others {
		r.all[i].watches = map[inference.HopKey]*[2]watch{}
	}
	return r
}

func (r *rivals) window(w *inference.Window) {
	now := make(map[inference.HopKey]*inference.HopStats, len(w.Hops))
	for i := range w.Hops {
		h := &w.Hops[i]
		if now[h.HopKey] = h; h.Other {
			continue
		}
		if at, known := slices.BinarySearchFunc(r.hops, h.HopKey, inference.HopKey.Compare); !known {
			r.hops = slices.Insert(r.hops, at, h.HopKey)
		}
	}
	pictures := &r.all[len(Others)]
	for _, hop := range r.film.watch(&r.kernel, w, r.in) {
		pictures.begun = append(pictures.begun, begun{w.End, hop})
	}
	for i := range Others {
		for _, k := range r.hops {
			var values [2]detect.Window
			if h := now[k]; h != nil {
				values = [2]detect.Window{quantiles(&h.Latency), quantiles(&h.Queue)}
			}
			x := r.all[i].watches[k]
			if x == nil {
				x = &[2]watch{Others[i].New(false), Others[i].New(true)}
				r.all[i].watches[k] = x
			}
			for q, watch := range x {
				if b, _ := watch.Step(values[q]); b {
					r.all[i].begun = append(r.all[i].begun, begun{w.End, k})
				}
			}
		}
	}
}

func quantiles(s *inference.Summary) detect.Window {
	return detect.Window{Count: s.Count, P50: float64(s.P50), P90: float64(s.P90), P99: float64(s.P99)}
}

// versus is the result of one detector with one fault of the table.
type versus struct {
	Found int // faults during which something began
	named int // of them, those of which something was at the element
	False int // findings elsewhere, until the next fault
}

func (v versus) String() string { return fmt.Sprintf("%d %d %d", v.Found, v.named, v.False) }

// share counts the findings of the others for each fault, and those before the first one. To be at a switch, a
// finding may be at any of its hops.
func (r *rivals) share(o *outcome, epoch int64) {
	o.Before = make([]int, len(r.all))
	for i := range o.Faults {
		o.Faults[i].others = make([]versus, len(r.all))
	}
	for d := range r.all {
		for _, b := range r.all[d].begun {
			start, at := time.Duration(b.at-epoch), -1
			for i := range o.Faults {
				if start >= o.Faults[i].From {
					at = i
				}
			}
			if at < 0 {
				o.Before[d]++
				continue
			}
			t := &o.Faults[at]
			v := &t.others[d]
			v.Found = 1
			f := inference.Finding{Element: inference.ElementOfHop(b.hop)}
			if len(t.Trouble.Kinds) > 0 && (t.names(&f) || t.At == scenario.AtSwitch && b.hop.Node == t.Node) {
				v.named = 1
			} else {
				v.False++
			}
		}
	}
}
