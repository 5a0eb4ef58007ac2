package udp

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hopscope/hopscope/ingest"
)

// worker reads one socket of every address, in turn.
type worker struct {
	id      int
	sockets []*socket
	ring    *ring
	batch   ingest.Batch
	admit   admission
	nap     time.Duration
	wake    int     // eventfd, readable when there is a prompt
	asked   *prompt // the last one that was heard
	owes    bool    // an answer to it
}

func newWorker(id int, cfg *Config, prefixes []netip.Prefix) *worker {
	return &worker{
		id:    id,
		ring:  newRing(cfg.BatchSize, cfg.MaxDatagramBytes),
		batch: ingest.Batch{Frames: make([]ingest.Frame, 0, cfg.BatchSize)},
		admit: admission{prefixes: prefixes},
		nap:   cfg.Nap,
	}
}

// run reads until the source is stopped, and then what is left.
func (w *worker) run(s *Source, handle func(int, *ingest.Batch)) error {
	fds := make([]unix.PollFd, 0, len(w.sockets)+2)
	for _, k := range w.sockets {
		fds = append(fds, unix.PollFd{Fd: int32(k.fd), Events: unix.POLLIN})
	}
	fds = append(fds, unix.PollFd{Fd: int32(s.stop), Events: unix.POLLIN}, unix.PollFd{Fd: int32(w.wake), Events: unix.POLLIN})
	prompted := &fds[len(fds)-1]
	for !s.stopped.Load() {
		w.hear(s.prompt.Load())
		most, err := w.round(handle)
		w.answer(handle)
		switch {
		case err != nil:
			return err
		case most == cap(w.batch.Frames): // there is more
		case most > 0 && w.nap > 0:
			if w.mayNap() {
				time.Sleep(w.nap)
			}
		default:
			if _, err := unix.Ppoll(fds, nil, nil); err != nil && err != unix.EINTR {
				return fmt.Errorf("udp: ppoll: %w", err)
			}
			if prompted.Revents&unix.POLLIN != 0 {
				var count [8]byte
				_, _ = unix.Read(w.wake, count[:]) // what it counted says nothing
			}
		}
	}
	return w.drain(handle)
}

// hear takes over a new prompt. What the sockets hold from now on is looked at for it.
func (w *worker) hear(p *prompt) {
	if p == w.asked {
		return
	}
	w.asked, w.owes = p, true
	for _, k := range w.sockets {
		k.asked = false
	}
}

// answer answers a prompt once every socket was empty, or gave what arrived later.
func (w *worker) answer(handle func(int, *ingest.Batch)) {
	if !w.owes {
		return
	}
	for _, k := range w.sockets {
		if !k.asked {
			return
		}
	}
	w.owes = false
	w.batch.Frames, w.batch.Until = w.batch.Frames[:0], w.asked.before
	handle(w.id, &w.batch)
	w.batch.Until = 0
}

// mayNap reports whether every buffer can take another nap like the last: what came since then, which is what was read
// now, must be a small part of what fits.
func (w *worker) mayNap() bool {
	ok := true
	for _, k := range w.sockets {
		ok = ok && k.taken <= k.granted/napShare
		k.taken = 0
	}
	return ok
}

// napShare is the granted buffer a datagram needs (768 bytes of twice the buffer for one of up to about 300 bytes), times
// four: a nap may fill a quarter.
const napShare = 4 * 768 / 2

// round takes one batch from every socket and gives the size of the largest.
func (w *worker) round(handle func(int, *ingest.Batch)) (most int, err error) {
	for _, k := range w.sockets {
		n, err := w.receive(k)
		if err != nil {
			return 0, err
		}
		if len(w.batch.Frames) > 0 {
			handle(w.id, &w.batch)
		}
		most = max(most, n)
	}
	return most, nil
}

// receive fills the batch from k, counts, and gives the number of datagrams taken, which is more than the
// batch holds when some were refused.
func (w *worker) receive(k *socket) (int, error) {
	w.batch.Frames = w.batch.Frames[:0]
	n, errno := w.ring.receive(k.fd)
	switch errno {
	case 0:
	case unix.EAGAIN:
		k.asked = true
		return 0, nil
	case unix.ENOBUFS, unix.ENOMEM: // the machine is short of memory; the datagrams stay where they are
		time.Sleep(time.Millisecond)
		return 0, nil
	default:
		return 0, fmt.Errorf("udp: receive on %v: %w", k.addr, errno)
	}
	var (
		bytes, truncated, refused int
		drops                     uint32
		hasDrops                  bool
		now                       int64
	)
	frames := w.batch.Frames[:n]
	kept := 0
	last := int64(0) // time of a datagram
	for i := range n {
		f := &frames[kept]
		if d, ok := w.ring.frame(i, f); ok {
			drops, hasDrops = d, true
		}
		last = f.Time
		if !w.admit.admits(f.Src.Addr()) {
			refused++
			continue
		}
		f.Link, f.Dst, f.DstPort, f.Only = ingest.LinkUDP, k.addr.Addr(), k.addr.Port(), k.only
		if f.Time == 0 {
			if now == 0 {
				now = time.Now().UnixNano()
			}
			f.Time = now
		}
		if f.Length > len(f.Data) {
			truncated++
		}
		bytes += len(f.Data)
		kept++
	}
	w.batch.Frames = frames[:kept]
	k.asked = k.asked || n < len(w.ring.hdrs) || w.owes && last >= w.asked.before
	if hasDrops {
		k.count.drops.observe(drops)
	}
	k.taken += n
	k.count.add(kept, bytes, truncated, refused)
	return n, nil
}

// drain hands over what the sockets hold. Past the deadline it only counts.
func (w *worker) drain(handle func(int, *ingest.Batch)) error {
	deadline := time.Now().Add(drainTime)
	for _, k := range w.sockets {
		if err := k.deafen(); err != nil {
			return fmt.Errorf("udp: close %v to new datagrams: %w", k.addr, err)
		}
	}
	for _, k := range w.sockets {
		for time.Now().Before(deadline) {
			n, err := w.receive(k)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			if len(w.batch.Frames) > 0 {
				handle(w.id, &w.batch)
			}
		}
		for {
			n, errno := w.ring.receive(k.fd)
			if errno != 0 {
				break
			}
			for i := range n {
				var f ingest.Frame
				w.ring.frame(i, &f)
			}
			k.count.left.Add(uint64(n))
		}
	}
	return nil
}
