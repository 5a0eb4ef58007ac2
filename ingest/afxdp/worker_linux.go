package afxdp

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/afpacket"
)

const (
	batchFrames = 256
	drainTime   = 2 * time.Second // for which a stopping worker hands over what its rings hold
	// late is how much later than its time a frame can be in the ring: the driver hands over a burst at once.
	late = 10 * time.Millisecond
	// nap is the pause after a partial batch. A worker that sleeps in the kernel would be woken by every frame.
	nap = time.Millisecond
	// napShare is the part of a ring that a nap may fill.
	napShare = 4
)

// worker reads its sockets of every interface, in turn.
type worker struct {
	id     int
	cfg    *Config
	base   monotonicBase
	slots  []*slot
	batch  ingest.Batch
	unwrap afpacket.Unwrapper
	member ingest.Worker // while it runs
	fds    []unix.PollFd
}

func newWorker(id int, cfg *Config, base monotonicBase) *worker {
	return &worker{id: id, cfg: cfg, base: base, unwrap: cfg.Unwrapper(), batch: ingest.Batch{Frames: make([]ingest.Frame, 0, batchFrames)}}
}

// run reads until the source is stopped, and then the remaining frames.
func (w *worker) run(c *ingest.Crew, handle func(int, *ingest.Batch)) error {
	var places []*ingest.Place
	for _, k := range w.slots {
		places = append(places, &k.Place)
	}
	w.member = c.Member(w.id, places)
	var busy time.Time // when frames came last
	for !c.Stopped() {
		w.member.Hear()
		most, full := 0, false
		now := w.base.now()
		for _, k := range w.slots {
			if k.changed.Load() {
				if err := k.replace(); err != nil {
					return err
				}
			}
			n, isFull := w.read(k, now, handle)
			most, full = max(most, n), full || isFull
		}
		w.member.Answer(&w.batch, handle)
		switch {
		case w.cfg.BusyPoll > 0 && (most > 0 || time.Since(busy) < w.cfg.BusyPoll):
			if most > 0 {
				busy = time.Now()
			}
			w.wake()
		case full: // there is more, or soon
		case most > 0:
			time.Sleep(min(nap, w.cfg.Wait))
		default:
			if err := w.sleep(); err != nil {
				return err
			}
		}
	}
	return w.drain(handle)
}

// read hands over a batch of each socket of a slot. It returns the size of the largest, and whether a ring is too full for a nap.
func (w *worker) read(k *slot, now clock, handle func(int, *ingest.Batch)) (most int, full bool) {
	before, owes := w.member.Owes()
	asked := true
	for _, s := range k.sockets {
		if s.waiting() > (int(s.rx.mask)+1)/napShare {
			full = true
		}
		w.batch.Frames = w.batch.Frames[:0]
		s.read(&w.batch, now)
		n := len(w.batch.Frames)
		if n == 0 {
			asked = asked && now.wall >= before+int64(late)
			continue
		}
		most, full = max(most, n), full || n == batchFrames
		asked = asked && w.batch.Frames[n-1].Time >= before
		for i := range w.batch.Frames {
			f := &w.batch.Frames[i]
			f.Data = f.Data[:min(len(f.Data), w.cfg.MaxFrameBytes)]
		}
		bytes, cut := w.unwrap.Unwrap(w.batch.Frames)
		handle(w.id, &w.batch)
		s.release()
		k.frames.Add(uint64(n))
		k.bytes.Add(bytes)
		k.truncated.Add(cut)
	}
	k.Asked = k.Asked || owes && asked
	return most, full
}

// wake runs the drivers of all sockets.
func (w *worker) wake() {
	for _, k := range w.slots {
		for _, s := range k.sockets {
			s.wake()
		}
	}
}

// sleep waits for a frame, a prompt, other sockets or the end.
func (w *worker) sleep() error {
	w.fds = w.fds[:0]
	for _, k := range w.slots {
		for _, s := range k.sockets {
			w.fds = append(w.fds, unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN})
		}
	}
	var limit *unix.Timespec
	if before, owes := w.member.Owes(); owes {
		left := max(time.Until(time.Unix(0, before+int64(late))), 0) + time.Millisecond
		t := unix.NsecToTimespec(int64(left))
		limit = &t
	}
	_, err := w.member.Wait(w.fds, limit)
	return err
}

// drain hands over what the rings hold, once no program steers to them. Past the deadline it is lost, and counted.
func (w *worker) drain(handle func(int, *ingest.Batch)) error {
	deadline, quiet := time.Now().Add(drainTime), time.Now().Add(late)
	for _, k := range w.slots {
		err := k.port.detach()
		if k.changed.Load() { // it was stopped at once
			err = errors.Join(err, k.replace())
		}
		if err != nil {
			return err
		}
	}
	for now := time.Now(); now.Before(deadline); now = time.Now() {
		left := 0
		for _, k := range w.slots {
			w.read(k, w.base.now(), handle)
			left += k.waiting()
		}
		if left == 0 && now.After(quiet) { // a driver may have been in the middle of a burst
			return nil
		}
		if left == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}
