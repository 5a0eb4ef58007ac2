package collector

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/hopscope/hopscope/ingest"
)

// wall ends a window at every multiple of its length, until ctx ends, all sources have ended, or a part fails.
func (c *Collector) wall(ctx context.Context, ended <-chan struct{}, failed <-chan error) error {
	length := c.cfg.Window
	c.pipeline.start = c.start.UnixNano()
	next := c.start.Truncate(length).Add(length)
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	return c.wait(ctx, ended, failed, timer.C, func(now time.Time) {
		c.endWindow(next.UnixNano())
		// After a suspended machine or a stopped process the missed windows are skipped, not made up.
		if next = next.Add(length); now.After(next) {
			next = now.Truncate(length).Add(length)
		}
		timer.Reset(time.Until(next))
	})
}

// wait does what comes up beside the sources until the run is to end. Tick may be nil.
func (c *Collector) wait(ctx context.Context, ended <-chan struct{}, failed <-chan error, tick <-chan time.Time, window func(now time.Time)) error {
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
			c.lookAtSources()
		case now := <-tick:
			c.lookAtSources()
			window(now)
		}
	}
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
			k.c.endWindow(k.next)
			// A gap in the capture is no series of empty windows; a few of them let the detectors see the silence.
			const empty = 3
			for i := 0; i < empty && uint64(frames[n].Time)-uint64(k.next) >= uint64(k.length); i++ {
				k.next += k.length
				k.c.endWindow(k.next)
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
		k.c.last = true
		k.c.endWindow(k.next)
	}
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
