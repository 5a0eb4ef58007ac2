package collector

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/sink"
)

// timeNow is the clock of [Options]: the wall clock and, in the same instant, the monotonic one.
func timeNow() func() (time.Time, time.Duration) {
	base := time.Now()
	return func() (time.Time, time.Duration) {
		now := time.Now()
		return now, now.Sub(base)
	}
}

func (c *Collector) read() reading {
	wall, mono := c.opt.Now()
	return reading{mono: int64(mono), wall: wall.UnixNano()}
}

// wall ends windows by the clock, until ctx ends, all sources have ended, or a part fails.
func (c *Collector) wall(ctx context.Context, ended <-chan struct{}, failed <-chan error) error {
	timer := time.NewTimer(0) // looks once, and then as long as the clock says
	defer timer.Stop()
	err := c.wait(ctx, ended, failed, timer.C, c.pipeline.receipt.early, func() {
		step, cut, due := c.clock.look(c.read())
		c.tellStep(step)
		if due {
			c.endWallWindow(cut)
		} else if _, edge := c.clock.end(); edge != c.pipeline.receipt.edge {
			c.pipeline.moveEdge(edge)
		}
		timer.Reset(c.clock.sleep())
	})
	c.log.Info("stopping")
	return err
}

// finishWall ends the last window, and the one before it where that is due.
func (c *Collector) finishWall() {
	now := c.read() // nothing was received after it
	step, cut, due := c.clock.look(now)
	c.tellStep(step)
	if due {
		c.endWallWindow(cut)
	}
	c.pipeline.moveEdge(math.MaxInt64)
	c.pipeline.exporters.settle()
	now.wall++ // the end is excluded
	step, cut = c.clock.finish(now)
	c.tellStep(step)
	c.endWallWindow(cut)
}

// wait does what comes up beside the sources until the run is to end. Every second, and at each tick, it looks whether a
// window ends. Tick, early and look may be nil.
func (c *Collector) wait(ctx context.Context, ended <-chan struct{}, failed <-chan error, tick <-chan time.Time, early <-chan struct{}, look func()) error {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			return nil
		case err := <-failed:
			return err
		case <-second.C:
		case <-tick:
		case <-early:
		}
		c.lookAtSources()
		if look != nil {
			look()
		}
	}
}

// clockState is what is known of the wall clock, beside the windows.
type clockState struct {
	steps    uint64
	last     time.Duration // by which it was set, negative for back
	lastTime time.Time     // by the clock as it was set then
	held     bool          // the last window is kept open
	bytes    int           // of the windows kept for corrections
}

// tellStep tells that the wall clock was set. What that means for windows is told when they end.
func (c *Collector) tellStep(step time.Duration) {
	if step == 0 {
		return
	}
	c.stateMu.Lock()
	c.clockState.steps++
	c.clockState.last, c.clockState.lastTime = step, time.Unix(0, c.clock.last.wall)
	c.stateMu.Unlock()
	if step < 0 {
		c.log.Warn("the clock was set back: windows that come again are merged with what was stored", "by", (-step).String())
	} else {
		c.log.Warn("the clock was set forward, or the machine slept", "by", step.String())
	}
}

// tellHeld tells when the clock is too far behind the last window to come to windows again, and when it has passed it.
func (c *Collector) tellHeld(cut windowCut) {
	held := cut.kind == heldWindow
	c.stateMu.Lock()
	before := c.clockState.held
	c.clockState.held = held
	c.stateMu.Unlock()
	switch last := time.Unix(0, cut.label).UTC().Format(time.RFC3339Nano); {
	case held && !before:
		c.log.Warn("the clock is further back than the windows that are kept, which is as far as corrections reach and no further than the start of this run: what is counted is merged into the last window until the clock has passed it",
			"window", last, "behind", time.Duration(cut.label-cut.at.wall).String(), "corrections", c.cfg.Corrections.String())
	case before && !held:
		c.log.Info("the clock has passed the last window", "window", last)
	}
}

// endWallWindow ends the open window of a live collector.
func (c *Collector) endWallWindow(cut windowCut) {
	if cut.label-c.pipeline.start > 2*int64(c.cfg.Window) || cut.label <= c.pipeline.start {
		c.pipeline.start = cut.label - int64(c.cfg.Window) // the clock was set since the window began
	}
	c.tellHeld(cut)
	if cut.label == c.pipeline.receipt.edge {
		c.gather(cut.label)
	}
	_, next := c.clock.end()
	c.endWindow(windowEnd{cut.label, cut.at.wall, c.clock.steady(), next}, cut.took, func(w *sink.Window, p *inference.Partial) {
		w.Run = &sink.Run{Boot: c.boot, Version: c.opt.Version, Start: c.start.UnixNano(), Reports: p.Reports, Held: cut.kind == heldWindow}
		whole, revision, err := c.corrections.add(cut.label, p)
		c.clock.forget(c.corrections.trim(c.clock.floor))
		c.stateMu.Lock()
		c.clockState.bytes = c.corrections.bytes
		c.stateMu.Unlock()
		if err != nil {
			// Points of their own take no other's place.
			c.log.Error("a window is not merged with what was stored", "window", time.Unix(0, cut.label).UTC().Format(time.RFC3339Nano), "error", err.Error())
			w.End++
		} else if whole != nil {
			w.Run.Reports, w.Revision = whole.Reports, revision
			w.Hops, w.Flows, w.FlowBound, w.FlowCount, w.Exporters = whole.Hops, whole.Flows, whole.FlowBound, whole.FlowCount, whole.Exporters
			w.Start, w.OtherHops = whole.Start, whole.OtherHops
			c.admission.Mark(w.Window, nil)
		}
	})
}

// captureClock ends windows by the time stamps of frames.
type captureClock struct {
	c      *Collector
	length int64 // of a window, ns

	mu   sync.Mutex // the workers of all sources share the clock, and so work one after the other
	open bool       // there was a frame
	next int64      // end of the open window
}

// handle gives the pipeline the frames up to each window's end. A frame from before the open window counts in it:
// captures are now and then out of order by a little.
func (k *captureClock) handle(w *worker, frames []ingest.Frame) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.c.pipeline
	if !k.open && len(frames) > 0 {
		p.start = frames[0].Time
		k.open, k.next = true, k.after(frames[0].Time)
	}
	for len(frames) > 0 {
		n := 0
		for n < len(frames) && k.holds(frames[n].Time) {
			n++
		}
		p.handle(w, frames[:n])
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

// finish ends the last window.
func (k *captureClock) finish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open {
		k.end()
	}
}

// end ends the open window.
func (k *captureClock) end() {
	k.c.endWindow(windowEnd{k.next, k.next, k.next, math.MaxInt64}, 0, nil)
	k.c.stepDialects(k.next)
}

// holds reports whether a frame of time t counts in the open window. The last window that there can be takes all.
func (k *captureClock) holds(t int64) bool { return t < k.next || k.next == math.MaxInt64 }

// after is the first multiple of the window's length behind t. A damaged capture can have times from before 1970, and
// times so late that there is no such multiple; then it is the last time that there is.
func (k *captureClock) after(t int64) int64 {
	into := t % k.length
	if into < 0 {
		into += k.length
	}
	if end := t - into + k.length; end > t {
		return end
	}
	return math.MaxInt64
}
