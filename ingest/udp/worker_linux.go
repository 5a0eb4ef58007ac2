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
	member  ingest.Worker // while it runs
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

// run reads until the source is stopped, and then the remaining datagrams.
func (w *worker) run(c *ingest.Crew, handle func(int, *ingest.Batch)) error {
	var fds []unix.PollFd
	var places []*ingest.Place
	for _, k := range w.sockets {
		fds = append(fds, unix.PollFd{Fd: int32(k.fd), Events: unix.POLLIN})
		places = append(places, &k.Place)
	}
	w.member = c.Member(w.id, places)
	for !c.Stopped() {
		w.member.Hear()
		most, err := w.round(handle)
		w.member.Answer(&w.batch, handle)
		switch {
		case err != nil:
			return err
		case most == cap(w.batch.Frames): // there is more
		case most > 0 && w.nap > 0:
			if w.mayNap() {
				time.Sleep(w.nap)
			}
		default:
			if _, err := w.member.Wait(fds, nil); err != nil {
				return err
			}
		}
	}
	return w.drain(handle)
}

// mayNap reports whether every buffer can take another nap like the last. The datagrams that came since then, which
// were just read, must be a small part of its size.
func (w *worker) mayNap() bool {
	ok := true
	for _, k := range w.sockets {
		ok = ok && k.received <= k.granted/napShare
		k.received = 0
	}
	return ok
}

// napShare is four times the granted buffer that a datagram needs, so that a nap may fill a quarter. A datagram of up
// to about 300 bytes needs 768 bytes of twice the buffer.
const napShare = 4 * 768 / 2

// round takes one batch from every socket and returns the size of the largest.
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

// receive fills the batch from k, counts, and returns the number of datagrams taken, which is more than the
// batch holds when some were refused.
func (w *worker) receive(k *socket) (int, error) {
	w.batch.Frames = w.batch.Frames[:0]
	n, errno := w.ring.receive(k.fd)
	switch errno {
	case 0:
	case unix.EAGAIN:
		k.Asked = true
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
	before, owes := w.member.Owes()
	k.Asked = k.Asked || n < len(w.ring.hdrs) || owes && last >= before
	if hasDrops {
		k.count.drops.observe(drops)
	}
	k.received += n
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
