package emu

import (
	"slices"
	"time"

	"github.com/hopscope/hopscope/p4"
	"github.com/hopscope/hopscope/p4/emu/sim"
)

// Request is the number of something that a controller asked a switch for. No two requests of a network have the same.
type Request uint32

// Switches is the interface by which a controller writes to switches of any kind. All methods return at once. The
// result of a request comes later, in the order in which the answers arrive. Some never arrive, because requests and
// answers may be lost. A waiting caller then has to give up without knowing which of the two was lost.
type Switches interface {
	// Install writes entries, each of them alone: it takes the place of the one with the same key, or is added.
	Install(node int, entries []p4.Entry) Request
	// Remove takes out the entries with these keys.
	Remove(node int, entries []p4.Entry) Request
	// ReadBack requests all entries of a table, or of all tables for "".
	ReadBack(node int, name string) Request
}

var _ Switches = (*Network)(nil)

// Answer is the answer of a switch to a request.
type Answer struct {
	Request Request
	At      time.Duration // when it came to the controller
	Node    int           // in the graph
	entries []p4.Entry    // that were read
	Errors  []error       // by entry that was written or removed, nil where that worked; nil if all did
}

// controlStats counts actions of the control plane, and their effects on digests.
type controlStats struct {
	requests, requestsLost, answers, answersLost uint64 // of switches and agents

	Written, removed, Refused uint64 // entries

	unstamped  uint64 // packets that entered at a switch without a plan, and go on without a digest
	foreign    uint64 // digests, by switch, of a plan that it does not hold, and which it did not touch
	incomplete uint64 // digests that were not reported because not all switches on the way held their plan
}

// controlStats returns these counters.
func (n *Network) controlStats() controlStats {
	s, c := n.control.stats, &n.control.Channel
	s.requests, s.requestsLost, s.answers, s.answersLost = c.Requests, c.RequestsLost, c.Answers, c.AnswersLost
	return s
}

// control is the channel to switches and agents, with the number of the last request.
type control struct {
	sim.Channel
	last  Request
	stats controlStats
}

// call sends a request to a device off, unless it gets lost. No device is nil.
func (n *Network) call(to *sim.Called, serve func() bool, answer func(at time.Duration)) Request {
	n.control.last++
	n.control.Call(n.now, to, serve, answer)
	return n.control.last
}

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
	return n.call(&d.written.Called, func() bool {
		n.serve(&answer, d, what, name, entries)
		return true
	}, func(at time.Duration) {
		if answer.At = at; n.cfg.OnAnswer != nil {
			n.cfg.OnAnswer(answer)
		}
	})
}

// serve is the work of a switch when a request has reached it.
func (n *Network) serve(a *Answer, d *device, what requestKind, name string, entries []p4.Entry) {
	n.openTables(d)
	if what == readBack {
		a.entries = d.tables.Read(name)
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
			st.removed++
		default:
			st.Written++
		}
	}
	d.apply(entries)
}
