package emu

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hopscope/hopscope/p4/table"
)

// Request is the number of something that a controller asked a switch for. No two requests of a network have the same.
type Request uint32

// Switches is the interface by which a controller writes to switches of any kind. All methods return at once; the result of a request
// comes later, in the order in which the answers come. Some never come: requests and answers may be lost, and a caller that waits has
// to give up at some time, without knowing which of the two it was.
type Switches interface {
	// Install writes entries, each of them alone: it takes the place of the one with the same key, or is added.
	Install(node int, entries []table.Entry) Request
	// Remove takes out the entries with these keys.
	Remove(node int, entries []table.Entry) Request
	// ReadBack asks for all entries of a table, or of all tables for "".
	ReadBack(node int, name string) Request
}

var _ Switches = (*Network)(nil)

// Answer is the answer of a switch to a request.
type Answer struct {
	Request Request
	At      time.Duration // when it came to the controller
	Node    int           // in the graph
	Entries []table.Entry // that were read
	Errors  []error       // by entry that was written or removed, nil where that worked; nil if all did
}

// controlStats counts what the control plane did, and what happened to digests because of it.
type controlStats struct {
	Requests, RequestsLost, Answers, AnswersLost uint64

	Written, Removed, Refused uint64 // entries

	Unstamped  uint64 // packets that entered at a switch without a plan, and go on without a digest
	Foreign    uint64 // digests, by switch, of a plan that it does not hold, and which it did not touch
	Incomplete uint64 // digests that were not reported because not all switches on the way held their plan
}

// controlStats gives these counters.
func (n *Network) ControlStats() controlStats { return n.control.stats }

// control is the channel between a controller and the switches. The controller sends one request after the other; those to
// one switch, and its answers, keep their order.
type control struct {
	r        *rand.Rand
	requests []request
	spare    []int32
	last     Request
	idle     int64 // when the controller can send the next request
	stats    controlStats

	plans      []planRequest
	sparePlans []int32
}

// request is one that is under way, or its answer.
type request struct {
	timer   int32
	what    requestKind
	name    string
	entries []table.Entry
	done    bool // by the switch
	answer  Answer
}

type requestKind uint8

const (
	install requestKind = iota
	remove
	readBack
)

// Install implements [Switches].
func (n *Network) Install(node int, entries []table.Entry) Request {
	return n.request(node, install, "", entries)
}

// Remove implements [Switches].
func (n *Network) Remove(node int, entries []table.Entry) Request {
	return n.request(node, remove, "", entries)
}

// ReadBack implements [Switches].
func (n *Network) ReadBack(node int, name string) Request {
	return n.request(node, readBack, name, nil)
}

// request sends a request off, unless it gets lost.
func (n *Network) request(node int, what requestKind, name string, entries []table.Entry) Request {
	c := &n.control
	c.last++
	c.stats.Requests++
	if node < 0 || node >= len(n.switches) { // no switch is there to answer
		c.stats.RequestsLost++
		return c.last
	}
	leaves := max(n.now, c.idle)
	c.idle = leaves + int64(n.cfg.ControlGap)
	d := &n.switches[node]
	at := max(leaves+n.controlDelay(), d.written.reached)
	if c.lose(n.cfg.ControlLoss) {
		c.stats.RequestsLost++
		return c.last
	}
	d.written.reached = at
	i := int32(len(c.requests))
	if k := len(c.spare); k > 0 {
		i, c.spare = c.spare[k-1], c.spare[:k-1]
	} else {
		c.requests = append(c.requests, request{timer: n.timer(timerRequest, int(i))})
	}
	r := &c.requests[i]
	*r = request{timer: r.timer, what: what, name: name, entries: slices.Clone(entries), answer: Answer{Request: c.last, Node: node}}
	n.events.add(at, r.timer)
	return c.last
}

func (c *control) lose(p float64) bool { return p > 0 && c.r.Float64() < p }

func (n *Network) controlDelay() int64 {
	d := int64(n.cfg.ControlDelay)
	if j := int64(n.cfg.ControlJitter); j > 0 {
		d += n.control.r.Int64N(j + 1)
	}
	return d
}

// requestEvent happens when a request reaches its switch, and when the answer reaches the controller.
func (n *Network) requestEvent(i int) {
	c := &n.control
	r := &c.requests[i]
	d := &n.switches[r.answer.Node]
	if !r.done {
		r.done = true
		n.serve(r, d)
		if c.lose(n.cfg.ControlLoss) {
			c.stats.AnswersLost++
			c.free(int32(i))
			return
		}
		d.written.answered = max(n.now+n.controlDelay(), d.written.answered)
		n.events.add(d.written.answered, r.timer)
		return
	}
	c.stats.Answers++
	answer := r.answer
	answer.At = n.Now()
	c.free(int32(i))
	if n.cfg.OnAnswer != nil {
		n.cfg.OnAnswer(answer)
	}
}

func (c *control) free(i int32) {
	c.requests[i] = request{timer: c.requests[i].timer}
	c.spare = append(c.spare, i)
}

// serve is what a switch does when a request has reached it.
func (n *Network) serve(r *request, d *device) {
	n.openTables(d)
	if r.what == readBack {
		r.answer.Entries = d.tables.Read(r.name)
		return
	}
	st := &n.control.stats
	for i := range r.entries {
		e := &r.entries[i]
		var err error
		if r.what == remove {
			err = d.tables.Delete(e)
		} else if err = n.fits(e, r.answer.Node); err == nil {
			_, err = d.tables.Put(*e)
		}
		switch {
		case err != nil:
			if r.answer.Errors == nil {
				r.answer.Errors = make([]error, len(r.entries))
			}
			r.answer.Errors[i] = err
			st.Refused++
		case r.what == remove:
			st.Removed++
		default:
			st.Written++
		}
	}
	d.follow(r.entries)
}
