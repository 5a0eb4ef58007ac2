package windows

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hopscope/hopscope/collector/pipeline"
	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/sink"
)

func (e *Ends) read() reading {
	wall, mono := e.Now()
	return reading{mono: int64(mono), wall: wall.UnixNano()}
}

// Start begins the first window of a live run, which is in time for now. It is called before anything is received.
func (e *Ends) Start(wall time.Time, mono time.Duration) {
	now := reading{mono: int64(mono), wall: wall.UnixNano()}
	e.run, e.start = wall, now.wall
	e.clock = newWallClock(e.Length, e.Corrections.Reach, now)
	if e.Fleet {
		e.clock.whole()
	}
	edge, label := e.clock.open()
	e.Pipeline.StartEdge(edge, label)
	e.Tally.Change(func(f *summary.Figures) { f.FirstLabel = edge })
}

// Look ends the open window of a live run if it is due, and returns how long nothing is to be done.
func (e *Ends) Look() time.Duration {
	step, cut, due := e.clock.look(e.read())
	e.noteStep(step)
	if due {
		e.endWall(cut)
	} else if edge, label := e.clock.open(); !e.Pipeline.Open(edge, label) {
		e.Pipeline.MoveEdge(edge, label)
	}
	return e.clock.sleep()
}

// Finish ends the last window of a live run, and the one before it where that is due.
func (e *Ends) Finish() {
	now := e.read() // nothing was received after it
	step, cut, due := e.clock.look(now)
	e.noteStep(step)
	if due {
		e.endWall(cut)
	}
	e.Pipeline.MoveEdge(math.MaxInt64, math.MaxInt64)
	e.Pipeline.Exporters.Settle()
	now.wall++ // the end is excluded
	step, cut = e.clock.finish(now)
	e.noteStep(step)
	e.endWall(cut)
}

// clockState is the knowledge about the wall clock, beside the windows.
type clockState struct {
	Steps    uint64
	Last     time.Duration // by which it was set, negative for back
	lastTime time.Time     // by the clock as it was set then
	Held     bool          // the last window is kept open
	Bytes    int           // of the windows kept for corrections
}

// ClockState may be called at any time.
func (e *Ends) ClockState() clockState {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state
}

// Problems returns sentences about present and past problems of the clock.
func (s *clockState) Problems() (out []string) {
	if s.Held {
		out = append(out, "clock: set back further than corrections reach; what is counted is merged into the last window until the clock has passed it")
	}
	if s.Steps > 0 {
		direction := "forward"
		if s.Last < 0 {
			direction = "back"
		}
		times := ""
		if s.Steps > 1 {
			times = fmt.Sprintf(", the last of %d times", s.Steps)
		}
		out = append(out, fmt.Sprintf("clock: set %s by %v, to %s%s", direction, s.Last.Abs().Round(time.Millisecond),
			s.lastTime.UTC().Format(time.RFC3339), times))
	}
	return out
}

// noteStep notes that the wall clock was set. What that means for windows is logged when they end.
func (e *Ends) noteStep(step time.Duration) {
	if step == 0 {
		return
	}
	e.mu.Lock()
	e.state.Steps++
	e.state.Last, e.state.lastTime = step, time.Unix(0, e.clock.last.wall)
	e.mu.Unlock()
	if step < 0 {
		e.Log.Warn("the clock was set back: windows that come again are merged with what was stored", "by", (-step).String())
	} else {
		e.Log.Warn("the clock was set forward, or the machine slept", "by", step.String())
	}
}

// noteHeld notes when the clock is too far behind the last window to come to windows again, and when it has passed it.
func (e *Ends) noteHeld(cut windowCut) {
	held := cut.kind == heldWindow
	e.mu.Lock()
	before := e.state.Held
	e.state.Held = held
	e.mu.Unlock()
	switch last := time.Unix(0, cut.label).UTC().Format(time.RFC3339Nano); {
	case held && !before:
		e.Log.Warn("the clock is further back than the windows that are kept, which is as far as corrections reach and no further than the start of this run: what is counted is merged into the last window until the clock has passed it",
			"window", last, "behind", time.Duration(cut.label-cut.at.wall).String(), "corrections", e.Corrections.Reach.String())
	case before && !held:
		e.Log.Info("the clock has passed the last window", "window", last)
	}
}

// endWall ends the open window of a live collector.
func (e *Ends) endWall(cut windowCut) {
	if cut.label-e.start > 2*int64(e.Length) || cut.label <= e.start {
		e.start = cut.label - int64(e.Length) // the clock was set since the window began
	}
	e.noteHeld(cut)
	if cut.label == e.Pipeline.Edge() {
		e.Pipeline.Gather(cut.label)
	}
	next, label := e.clock.open()
	e.end(pipeline.End{Label: cut.label, Wall: cut.at.wall, Steady: e.clock.steady(), Next: next, NextLabel: label}, cut.duration, func(w *sink.Window, p *window.Partial) {
		w.Run = &sink.Run{Boot: e.Boot, Version: e.Version, Start: e.run.UnixNano(), Reports: p.Reports, Held: cut.kind == heldWindow}
		whole, revision, err := e.corrections.add(cut.label, p)
		e.clock.forget(e.corrections.trim(e.clock.floor))
		e.mu.Lock()
		e.state.Bytes = e.corrections.bytes
		e.mu.Unlock()
		if err != nil {
			// Points of their own take no other's place.
			e.Log.Error("a window is not merged with the stored one", "window", time.Unix(0, cut.label).UTC().Format(time.RFC3339Nano), "error", err.Error())
			w.End++
		} else if whole != nil {
			w.Run.Reports, w.Revision = whole.Reports, revision
			w.Hops, w.Flows, w.FlowBound, w.FlowCount, w.Exporters, w.Interfaces = whole.Hops, whole.Flows, whole.FlowBound, whole.FlowCount, whole.Exporters, whole.Interfaces
			w.Start, w.OtherHops, w.Nameless, w.Probes = whole.Start, whole.OtherHops, whole.Nameless, whole.Probes
			e.admission.Mark(w.Window, nil)
		}
	})
}

// capture ends windows by the time stamps of frames.
type capture struct {
	ends   *Ends
	step   func(end int64) // called behind the end of each window
	length int64           // of a window, ns

	mu   sync.Mutex // the workers of all sources share the clock, and so work one after the other
	open bool       // there was a frame
	next int64      // end of the open window
}

// Capture makes what ends windows by the time stamps of frames. Step is called behind the end of each.
func (e *Ends) Capture(step func(end int64)) *capture {
	return &capture{ends: e, step: step, length: int64(e.Length)}
}

// Handle passes frames to the pipeline up to each window's end. A frame from before the open window counts in it:
// captures are now and then slightly out of order.
func (k *capture) Handle(w *pipeline.Worker, frames []ingest.Frame) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.open && len(frames) > 0 {
		k.ends.start = frames[0].Time
		k.open, k.next = true, k.after(frames[0].Time)
	}
	for len(frames) > 0 {
		n := 0
		for n < len(frames) && k.holds(frames[n].Time) {
			n++
		}
		k.ends.Pipeline.Handle(w, frames[:n])
		if n < len(frames) {
			k.end()
			// A gap in the capture is no series of empty windows; a few of them let the detectors see the silence.
			const empty = 3
			for i := 0; i < empty && uint64(frames[n].Time)-uint64(k.next) >= uint64(k.length); i++ {
				k.next += k.length
				k.end()
			}
			k.next = k.after(frames[n].Time)
		}
		frames = frames[n:]
	}
}

// Finish ends the last window, when the sources have ended.
func (k *capture) Finish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends.Pipeline.Exporters.Settle()
	if k.open {
		k.end()
	}
}

// end ends the open window.
func (k *capture) end() {
	k.ends.end(pipeline.End{Label: k.next, Wall: k.next, Steady: k.next, Next: math.MaxInt64}, 0, nil)
	k.step(k.next)
}

// holds reports whether a frame of time t counts in the open window. The last window that there can be takes all.
func (k *capture) holds(t int64) bool { return t < k.next || k.next == math.MaxInt64 }

// after returns the first multiple of the window's length after t. A damaged capture can have times before 1970, and
// times so late that there is no such multiple. It then returns the last possible time.
func (k *capture) after(t int64) int64 {
	into := t % k.length
	if into < 0 {
		into += k.length
	}
	if end := t - into + k.length; end > t {
		return end
	}
	return math.MaxInt64
}
