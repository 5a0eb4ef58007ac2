package afpacket

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
)

const (
	batchFrames = 256
	lookEvery   = time.Second     // at an interface that is down
	drainTime   = 2 * time.Second // for which a stopping worker hands over what its rings hold
	// late is how much later than its time a packet can be in the ring, beside the wait of a block.
	late = 10 * time.Millisecond
)

// worker reads one ring of every interface, in turn.
type worker struct {
	id     int
	cfg    *Config
	slots  []*slot
	batch  ingest.Batch
	unwrap Unwrapper
	member ingest.Worker // while it runs
	fds    []unix.PollFd
	at     []*slot // of fds
}

func newWorker(id int, cfg *Config) *worker {
	return &worker{id: id, cfg: cfg, unwrap: cfg.Unwrapper(), batch: ingest.Batch{Frames: make([]ingest.Frame, 0, batchFrames)}}
}

// run reads until the source is stopped, and then the remaining frames.
func (w *worker) run(c *ingest.Crew, handle func(int, *ingest.Batch)) error {
	var places []*ingest.Place
	for _, k := range w.slots {
		places = append(places, &k.Place)
	}
	w.member = c.Member(w.id, places)
	for !c.Stopped() {
		w.member.Hear()
		idle := true
		for _, k := range w.slots {
			if w.read(k, handle) {
				idle = false
			}
		}
		w.member.Answer(&w.batch, handle)
		if idle {
			if err := w.sleep(); err != nil {
				return err
			}
		}
	}
	return w.drain(handle)
}

// read hands over a batch of a ring, and reports whether there was one.
func (w *worker) read(k *slot, handle func(int, *ingest.Batch)) bool {
	if k.ring == nil {
		k.Asked = true
		return false
	}
	w.batch.Frames = w.batch.Frames[:0]
	more := k.ring.read(&w.batch)
	if k.ring.left < 0 { // no block
		before, owes := w.member.Owes()
		k.Asked = k.Asked || owes && time.Now().UnixNano() >= w.due(before)
		return false
	}
	if n := len(w.batch.Frames); n > 0 {
		bytes, cut := w.unwrap.Unwrap(w.batch.Frames)
		before, owes := w.member.Owes()
		k.Asked = k.Asked || owes && w.batch.Frames[n-1].Time >= before
		handle(w.id, &w.batch)
		k.frames.Add(uint64(n))
		k.bytes.Add(bytes)
		k.truncated.Add(cut)
	}
	if !more {
		k.ring.release()
	}
	return true
}

// due returns the time after which a ring without a block holds no frame from before a time. The kernel has handed
// over the block by then.
func (w *worker) due(before int64) int64 { return before + int64(2*w.cfg.Wait+late) }

// sleep waits for a block, a prompt or the end, and checks interfaces that are down.
func (w *worker) sleep() error {
	w.fds, w.at = w.fds[:0], w.at[:0]
	wait := time.Duration(-1)
	for _, k := range w.slots {
		if k.problem != "" {
			wait = lookEvery
		}
		if k.ring != nil {
			w.fds, w.at = append(w.fds, unix.PollFd{Fd: int32(k.ring.fd), Events: unix.POLLIN}), append(w.at, k)
		}
	}
	if before, owes := w.member.Owes(); owes {
		left := max(time.Until(time.Unix(0, w.due(before))), 0) + time.Millisecond
		if wait < 0 || left < wait {
			wait = left
		}
	}
	var limit *unix.Timespec
	if wait >= 0 {
		t := unix.NsecToTimespec(int64(wait))
		limit = &t
	}
	n, err := w.member.Wait(w.fds, limit)
	if err != nil {
		return err
	}
	if n == 0 {
		for _, k := range w.slots {
			if k.problem != "" {
				k.look()
			}
		}
	}
	return w.errors()
}

// errors takes the errors of rings: an interface that went down or was removed is looked at again, anything else ends reading.
func (w *worker) errors() error {
	for i, k := range w.at {
		if w.fds[i].Revents&unix.POLLERR == 0 {
			continue
		}
		errno, err := unix.GetsockoptInt(k.ring.fd, unix.SOL_SOCKET, unix.SO_ERROR)
		switch {
		case err != nil:
			return fmt.Errorf("%s: interface %s: %w", w.cfg.Section, k.group.name, err)
		case unix.Errno(errno) == unix.ENETDOWN, unix.Errno(errno) == unix.ENODEV, unix.Errno(errno) == unix.ENXIO:
			k.look()
		case errno != 0:
			return fmt.Errorf("%s: interface %s: %w", w.cfg.Section, k.group.name, unix.Errno(errno))
		}
	}
	return nil
}

// drain hands over what the rings hold. Past the deadline it is lost, and counted.
func (w *worker) drain(handle func(int, *ingest.Batch)) error {
	deadline := time.Now().Add(drainTime)
	for _, k := range w.slots {
		if k.ring == nil {
			continue
		}
		if err := k.ring.attach(nothing); err != nil {
			return fmt.Errorf("%s: turn away packets of %s: %w", w.cfg.Section, k.group.name, err)
		}
	}
	for _, k := range w.slots {
		for k.ring != nil && k.waiting() > 0 && time.Now().Before(deadline) {
			if !w.read(k, handle) {
				time.Sleep(w.cfg.Wait) // the block is handed over when its time is up
			}
		}
	}
	return nil
}
