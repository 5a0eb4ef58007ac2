package web

import (
	"cmp"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ringEvents is how many findings a client may miss and still resume.
const ringEvents = 1024

// event is one server-sent event.
type event struct {
	number uint64
	kind   string // "finding", "window", "ledger"
	data   []byte // one line of JSON
}

// ring keeps the last findings, and of every state (windows, the ledger) the latest event, because that overtakes the
// ones before. Readers come with a cursor of their own, so nothing is queued for a slow one and none can hold up the
// writer.
type ring struct {
	epoch string // differs from one process to the next

	mu       sync.Mutex
	findings [ringEvents]event
	count    uint64 // findings ever published
	states   map[string]event
	last     uint64        // number of the last event
	changed  chan struct{} // closed by the next publish
}

func newRing() *ring {
	return &ring{epoch: rand.Text()[:10], states: map[string]event{}, changed: make(chan struct{})}
}

// publishFinding keeps an event until ringEvents others have come.
func (r *ring) publishFinding(data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	r.findings[r.count%ringEvents] = event{r.last, "finding", data}
	r.count++
	r.wake()
}

// publishState keeps an event until the next of its kind.
func (r *ring) publishState(kind string, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	r.states[kind] = event{r.last, kind, data}
	r.wake()
}

func (r *ring) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// after appends the events behind cursor to dst in their order. It returns the new cursor and a channel that is closed
// when more events come. It returns false when a finding behind cursor is no longer kept.
func (r *ring) after(cursor uint64, dst []event) (out []event, next uint64, changed <-chan struct{}, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldest := r.count - min(r.count, ringEvents)
	// All events between two findings are states, so a lost finding shows in the number of the oldest kept one.
	if cursor > r.last || oldest > 0 && cursor < r.findings[oldest%ringEvents].number-1 {
		return dst, r.last, r.changed, false
	}
	n := r.count
	for n > oldest && r.findings[(n-1)%ringEvents].number > cursor {
		n--
	}
	first := len(dst)
	for ; n < r.count; n++ {
		dst = append(dst, r.findings[n%ringEvents])
	}
	for _, e := range r.states {
		if e.number > cursor {
			dst = append(dst, e)
		}
	}
	slices.SortFunc(dst[first:], func(a, b event) int { return cmp.Compare(a.number, b.number) })
	return dst, r.last, r.changed, true
}

// id returns the text that a client sends back to resume after event n.
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
