package emu

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hopscope/hopscope/p4"
)

// Request is the number of something that a controller asked a switch for. No two requests of a network have the same.
type Request uint32

// Switches is the interface by which a controller writes to switches of any kind. All methods return at once; the result of a request
// comes later, in the order in which the answers come. Some never come: requests and answers may be lost, and a caller that waits has
// to give up at some time, without knowing which of the two it was.
type Switches interface {
	// Install writes entries, each of them alone: it takes the place of the one with the same key, or is added.
	Install(node int, entries []p4.Entry) Request
	// Remove takes out the entries with these keys.
	Remove(node int, entries []p4.Entry) Request
	// ReadBack asks for all entries of a table, or of all tables for "".
	ReadBack(node int, name string) Request
}

var _ Switches = (*Network)(nil)

// Answer is the answer of a switch to a request.
type Answer struct {
	Request Request
	At      time.Duration // when it came to the controller
	Node    int           // in the graph
	Entries []p4.Entry    // that were read
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
func (n *Network) controlStats() controlStats { return n.control.stats }

// control is the channel between a controller and the switches and agents. The controller sends one request after the other; those to one
// device, and its answers, keep their order.
type control struct {
	r     *rand.Rand
	calls []call
	spare []int32
	last  Request
	idle  int64 // when the controller can send the next request
	stats controlStats
}

// call is a request that is under way, or its answer.
type call struct {
	timer int32
	done  bool // by the device
	*called
	serve  func() bool            // what the device does; false: none is there that answers
	answer func(at time.Duration) // what the controller does
}

// called is when the last request came to a device, and when its last answer comes.
type called struct{ reached, answered int64 }

type requestKind uint8

const (
	install requestKind = iota
	remove
	readBack
)

// Install implements [Switches].
func (n *Network) Install(node int, entries []p4.Entry) Request {
	return n.request(node, install, "", entries)
}

// Remove implements [Switches].
func (n *Network) Remove(node int, entries []p4.Entry) Request {
	return n.request(node, remove, "", entries)
}

// ReadBack implements [Switches].
func (n *Network) ReadBack(node int, name string) Request {
	return n.request(node, readBack, name, nil)
}

// request sends a request to a switch off, unless it gets lost.
func (n *Network) request(node int, what requestKind, name string, entries []p4.Entry) Request {
	if node < 0 || node >= len(n.switches) {
		return n.call(nil, nil, nil)
	}
	d, entries := &n.switches[node], slices.Clone(entries)
	answer := Answer{Request: n.control.last + 1, Node: node}
	return n.call(&d.written.called, func() bool {
		n.serve(&answer, d, what, name, entries)
		return true
	}, func(at time.Duration) {
		if answer.At = at; n.cfg.OnAnswer != nil {
			n.cfg.OnAnswer(answer)
		}
	})
}

// call sends a request to a device off, unless it gets lost. No device is nil.
func (n *Network) call(to *called, serve func() bool, answer func(at time.Duration)) Request {
	c := &n.control
	c.last++
	c.stats.Requests++
	if to == nil { // none is there to answer
		c.stats.RequestsLost++
		return c.last
	}
	leaves := max(n.now, c.idle)
	c.idle = leaves + int64(n.cfg.ControlGap)
	at := max(leaves+n.controlDelay(), to.reached)
	if c.lose(n.cfg.ControlLoss) {
		c.stats.RequestsLost++
		return c.last
	}
	to.reached = at
	i := int32(len(c.calls))
	if k := len(c.spare); k > 0 {
		i, c.spare = c.spare[k-1], c.spare[:k-1]
	} else {
		c.calls = append(c.calls, call{timer: n.timer(timerRequest, int(i))})
	}
	c.calls[i] = call{timer: c.calls[i].timer, called: to, serve: serve, answer: answer}
	n.events.Add(at, c.calls[i].timer)
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

// requestEvent happens when a request reaches its device, and when the answer reaches the controller.
func (n *Network) requestEvent(i int) {
	c := &n.control
	x := &c.calls[i]
	free := func() {
		*x = call{timer: x.timer}
		c.spare = append(c.spare, int32(i))
	}
	if x.done {
		c.stats.Answers++
		answer := x.answer
		free()
		answer(n.Now())
		return
	}
	x.done = true
	switch {
	case !x.serve():
		c.stats.RequestsLost++
		free()
	case c.lose(n.cfg.ControlLoss):
		c.stats.AnswersLost++
		free()
	default:
		x.answered = max(n.now+n.controlDelay(), x.answered)
		n.events.Add(x.answered, x.timer)
	}
}

// serve is what a switch does when a request has reached it.
func (n *Network) serve(a *Answer, d *device, what requestKind, name string, entries []p4.Entry) {
	n.openTables(d)
	if what == readBack {
		a.Entries = d.tables.Read(name)
		return
	}
	st := &n.control.stats
	for i := range entries {
		e := &entries[i]
		var err error
		if what == remove {
			err = d.tables.Delete(e)
		} else if err = n.fits(e, a.Node); err == nil {
			_, err = d.tables.Put(*e)
		}
		switch {
		case err != nil:
			if a.Errors == nil {
				a.Errors = make([]error, len(entries))
			}
			a.Errors[i] = err
			st.Refused++
		case what == remove:
			st.Removed++
		default:
			st.Written++
		}
	}
	d.apply(entries)
}
