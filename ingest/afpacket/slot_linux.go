package afpacket

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hopscope/hopscope/ingest"
)

// slot is the place of one worker at one interface: the ring that is open there now, and the counts since the start.
// The worker reads the ring; any goroutine may read the statistics.
type slot struct {
	group *group
	cfg   *Config
	ingest.Place

	frames, bytes, truncated atomic.Uint64 // handed over

	mu                sync.Mutex // guards the rest; the worker alone changes ring
	ring              *ring      // nil while none is open
	index             int        // of the device that it is open on
	accepted, dropped uint64     // by the kernel's filter; of those, lost
	problem           string
}

// up installs a ring, which is read from now on.
func (k *slot) up(r *ring, index int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ring, k.index, k.problem = r, index, ""
}

// down sets the problem for which no frame comes.
func (k *slot) down(problem string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.problem = problem
}

// count adds what the kernel counted. The caller holds the lock.
func (k *slot) count() {
	if k.ring != nil {
		taken, dropped := k.ring.statistics()
		k.accepted += taken
		k.dropped += dropped
	}
}

// stats are the counts of all rings that were open here.
func (k *slot) stats() ingest.Stats {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count()
	return ingest.Stats{Frames: k.frames.Load(), Bytes: k.bytes.Load(), Truncated: k.truncated.Load(), KernelDropped: k.dropped}
}

// waiting is the number of frames in the ring.
func (k *slot) waiting() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count()
	return k.accepted - k.dropped - min(k.frames.Load(), k.accepted-k.dropped)
}

// close releases the ring. Frames that it still holds are lost.
func (k *slot) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ring == nil {
		return nil
	}
	k.count()
	k.dropped = max(k.dropped, k.accepted-min(k.frames.Load(), k.accepted))
	err := k.ring.close()
	k.ring, k.index = nil, 0
	return err
}

// look checks the interface of a slot that had a problem. The kernel resumes a ring whose device is up again. A device
// with another number needs another ring.
func (k *slot) look() {
	d, err := LookUp(k.group.name)
	switch {
	case err != nil:
		k.down(fmt.Sprintf("nothing is read from %s: %v", k.group.name, err))
	case !d.Up:
		k.down("nothing is read from " + k.group.name + ": it is down")
	case k.ring != nil && k.index == d.Index:
		k.down("")
	default:
		err := k.close()
		var r *ring
		if err == nil {
			r, err = k.group.open(d, k.cfg)
		}
		if err != nil {
			k.down(fmt.Sprintf("nothing is read from %s: %v", k.group.name, err))
			return
		}
		k.up(r, d.Index)
	}
}
