package pcapfile

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/retry"
)

// nap is the shortest sleep of a replay at recorded speed. Frames that are closer together than that travel in one
// batch, so that a fast capture does not cost a wake-up a frame.
const nap = 100 * time.Microsecond

// Source replays one capture. It has one worker and loses nothing: a slow handler makes the replay slow.
type Source struct {
	cfg  Config
	path string

	counts
	reader atomic.Pointer[Reader]
}

// counts are written by one worker and read by any goroutine.
type counts struct {
	frames, bytes, truncated, damaged atomic.Uint64
}

var _ ingest.Source = (*Source)(nil)

// NewSource replays the capture at path, "-" for standard input. The file is opened by Run.
func NewSource(cfg Config, path string) *Source { return &Source{cfg: cfg, path: path} }

// Run hands over the frames of the capture in their order. It returns nil at the end of the capture and when ctx ends,
// and an [*Error] where the capture cannot be read on.
//
// With a speed, a frame leaves when as much time has passed since the first one as in the capture, divided by the
// speed. Frames whose time lies before that of an earlier frame leave with that one.
func (s *Source) Run(ctx context.Context, handle func(worker int, b *ingest.Batch)) error {
	r, err := OpenContext(ctx, s.path)
	if err != nil {
		return s.end(ctx, err)
	}
	defer r.Close()
	s.reader.Store(r)
	var b ingest.Batch
	p := pace{speed: s.cfg.Speed}
	for ctx.Err() == nil {
		if err := r.ReadBatch(&b, max(s.cfg.BatchFrames, 1)); err != nil {
			return s.end(ctx, err)
		}
		if s.cfg.Speed <= 0 {
			s.add(&b)
			handle(0, &b)
			continue
		}
		for rest := b.Frames; len(rest) > 0; {
			n := p.due(rest)
			if n == 0 {
				if !p.wait(ctx, rest[0].Time) {
					return nil
				}
				continue
			}
			due := ingest.Batch{Frames: rest[:n:n]}
			s.add(&due)
			handle(0, &due)
			rest = rest[n:]
		}
	}
	return nil
}

// end maps the end of reading to the result of Run.
func (s *Source) end(ctx context.Context, err error) error {
	if err == io.EOF || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	if errors.Is(err, ErrTruncated) || errors.Is(err, errDamaged) {
		s.damaged.Add(1)
	}
	return err
}

// add counts a batch that is handed over.
func (c *counts) add(b *ingest.Batch) {
	var bytes, cut uint64
	for i := range b.Frames {
		f := &b.Frames[i]
		bytes += uint64(len(f.Data))
		if f.Length > len(f.Data) {
			cut++
		}
	}
	c.frames.Add(uint64(len(b.Frames)))
	c.bytes.Add(bytes)
	c.truncated.Add(cut)
}

func (c *counts) stats() ingest.Stats {
	return ingest.Stats{
		Frames: c.frames.Load(), Bytes: c.bytes.Load(), Truncated: c.truncated.Load(), Damaged: c.damaged.Load(),
	}
}

// Workers is 1.
func (s *Source) Workers() int { return 1 }

// Stats counts a frame as truncated when the capture holds fewer bytes than were on the wire. The record at which
// reading stopped counts as damaged.
func (s *Source) Stats() ingest.Stats { return s.stats() }

// progress returns the bytes of the file read so far, and its size or 0 where it is unknown.
func (s *Source) progress() (read, size int64) {
	if r := s.reader.Load(); r != nil {
		return r.Progress()
	}
	return 0, 0
}

// pace maps times of the capture to now.
type pace struct {
	speed float64
	begun time.Time
	first int64 // capture time of the first frame
}

// due counts the frames from the front that may leave now.
func (p *pace) due(frames []ingest.Frame) (n int) {
	if p.begun.IsZero() {
		p.begun, p.first = time.Now(), frames[0].Time
	}
	now := int64(min(float64(time.Since(p.begun))*p.speed, 1<<62))
	for n < len(frames) && frames[n].Time-p.first <= now {
		n++
	}
	return n
}

// wait sleeps until a frame of that capture time is due. It reports false when ctx ended before.
func (p *pace) wait(ctx context.Context, at int64) bool {
	left := time.Duration(min(float64(at-p.first)/p.speed, 1<<62)) - time.Since(p.begun)
	return retry.Sleep(ctx, max(left, nap))
}
