package web

import (
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
)

// ringEvents is how many events a client may miss and still resume.
const ringEvents = 1024

// event is one server-sent event.
type event struct {
	number uint64
	kind   string // "finding", "window", "ledger"
	data   []byte // one line of JSON
}

// state tells whether an event is overtaken by the next of its kind, so that a client that catches up needs only the
// last of them.
func (e *event) state() bool { return e.kind != "finding" }

// ring keeps the last events. Readers come with a cursor of their own, so nothing is queued for a slow one and none
// can hold up the writer.
type ring struct {
	epoch string // differs from one process to the next

	mu      sync.Mutex
	events  [ringEvents]event
	last    uint64        // number of the last event
	changed chan struct{} // closed by the next publish
}

func newRing() *ring {
	return &ring{epoch: rand.Text()[:10], changed: make(chan struct{})}
}

func (r *ring) publish(kind string, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	r.events[r.last%ringEvents] = event{r.last, kind, data}
	close(r.changed)
	r.changed = make(chan struct{})
}

// after appends the events behind cursor to dst, without those that a later one overtakes, and gives the new cursor
// and a channel that is closed when there is more. It is false when events behind cursor are no longer kept.
func (r *ring) after(cursor uint64, dst []event) (out []event, next uint64, changed <-chan struct{}, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cursor > r.last || r.last-cursor > ringEvents {
		return dst, r.last, r.changed, false
	}
	latest := map[string]uint64{}
	for n := cursor + 1; n <= r.last; n++ {
		latest[r.events[n%ringEvents].kind] = n
	}
	for n := cursor + 1; n <= r.last; n++ {
		if e := &r.events[n%ringEvents]; !e.state() || latest[e.kind] == n {
			dst = append(dst, *e)
		}
	}
	return dst, r.last, r.changed, true
}

// id is what a client sends back to resume behind event n.
func (r *ring) id(n uint64) string { return r.epoch + "-" + strconv.FormatUint(n, 10) }

// parse reads an id. It is false for one of another process, and for anything else.
func (r *ring) parse(id string) (uint64, bool) {
	epoch, number, ok := strings.Cut(id, "-")
	if !ok || epoch != r.epoch {
		return 0, false
	}
	n, err := strconv.ParseUint(number, 10, 64)
	return n, err == nil
}
