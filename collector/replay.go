package collector

import (
	"context"
	"time"

	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/ingest"
)

// NewReplay prepares a collector that is fed from a capture: it has no sockets and no page, its clock is the
// capture's, and it waits for full queues instead of dropping. Profile replaces the dialects of the settings.
func NewReplay(cfg Config, opt Options, profile demux.Profile) (*Collector, error) {
	c, err := build(cfg, opt, false)
	if err != nil {
		return nil, err
	}
	for _, w := range c.pipeline.workers {
		w.decoder.Store(demux.NewRouter(profile, nil))
	}
	return c, nil
}

// Replay pushes everything that src has through the pipeline and drains.
func (c *Collector) Replay(ctx context.Context, src ingest.Source) error {
	c.start = time.Now()
	c.startStores()
	c.pipeline.run()
	clock := &captureClock{c: c, length: int64(c.cfg.Window)}
	err := src.Run(ctx, clock.handle)
	if clock.next != 0 {
		c.endWindow(clock.next)
	}
	c.finish()
	drain, cancel := context.WithTimeout(context.Background(), c.cfg.DrainTimeout)
	defer cancel()
	if serr := c.closeStores(drain); err == nil {
		err = serr
	}
	return err
}

// captureClock ends windows by the time stamps of frames.
type captureClock struct {
	c      *Collector
	length int64 // of a window, ns
	next   int64 // end of the open window; 0 before the first frame
}

// handle gives the pipeline the frames up to each window's end. A frame from before the open window counts in it:
// captures are now and then out of order by a little.
func (k *captureClock) handle(_ int, b *ingest.Batch) {
	p := k.c.pipeline
	w := p.workers[0]
	frames := b.Frames
	if k.next == 0 && len(frames) > 0 {
		p.start = frames[0].Time
		k.next = k.after(frames[0].Time)
	}
	for len(frames) > 0 {
		n := 0
		for n < len(frames) && frames[n].Time < k.next {
			n++
		}
		p.decode(w, frames[:n])
		p.deliver(w)
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

// after is the first multiple of the window's length behind t.
func (k *captureClock) after(t int64) int64 { return t - t%k.length + k.length }
