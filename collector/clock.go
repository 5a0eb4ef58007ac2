package collector

import (
	"context"
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
	next int64      // end of the open window; 0 before the first frame
}

// handle gives the pipeline the frames up to each window's end. A frame from before the open window counts in it:
// captures are now and then out of order by a little.
func (k *captureClock) handle(w *worker, frames []ingest.Frame) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.c.pipeline
	if k.next == 0 && len(frames) > 0 {
		p.start = frames[0].Time
		k.next = k.after(frames[0].Time)
	}
	for len(frames) > 0 {
		n := 0
		for n < len(frames) && frames[n].Time < k.next {
			n++
		}
		p.handle(w, frames[:n])
		if n < len(frames) {
			k.c.endWindow(k.next)
			// A gap in the capture is no series of empty windows; a few of them let the detectors see the silence.
			const empty = 3
			for i := 0; i < empty && k.next+k.length <= frames[n].Time; i++ {
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
	if k.next != 0 {
		k.c.endWindow(k.next)
	}
}

// after is the first multiple of the window's length behind t.
func (k *captureClock) after(t int64) int64 { return t - t%k.length + k.length }
