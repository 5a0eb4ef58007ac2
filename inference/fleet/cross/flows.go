package cross

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// flow is where a flow was seen last, and on which path.
type flow struct {
	id    uint64
	path  []inference.HopKey
	owner string
	// changes of the path over all collectors. The owner's own count is behind by ahead, modulo 2³².
	changes, ahead uint32
	last           int64
}

// event is a report of a collector about the path of a flow.
type event struct {
	from    string
	arrival bool // else a path change
	inference.PathChange
}

// addEvents lists the events of a collector.
func (c *Crossing) addEvents(from string, q *window.Partial) {
	for i := range q.PathChanges() {
		e := event{from, false, q.PathChanges()[i]}
		e.From, e.To = slices.Clone(e.From), slices.Clone(e.To)
		c.events = append(c.events, e)
	}
	for i := range q.Arrivals() {
		a := &q.Arrivals()[i]
		c.events = append(c.events, event{from, true, inference.PathChange{
			Time: a.Time, Flow: a.Flow, PathID: a.PathID, Changes: a.Changes, To: slices.Clone(a.Path),
		}})
	}
}

func (e *event) compare(o *event) int {
	kind := func(e *event) int {
		if e.arrival {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(e.Time, o.Time), e.Flow.Compare(&o.Flow), cmp.Compare(kind(e), kind(o)), cmp.Compare(e.Changes, o.Changes),
		cmp.Compare(e.from, o.from), cmp.Compare(e.PathID, o.PathID), cmp.Compare(e.Packets, o.Packets),
		slices.CompareFunc(e.To, o.To, inference.HopKey.Compare), slices.CompareFunc(e.From, o.From, inference.HopKey.Compare))
}

// finishFlows follows the flows through the window, and lists in p the path changes that one collector would have seen.
func (c *Crossing) finishFlows(p *window.Partial) {
	slices.SortFunc(c.events, func(a, b event) int { return a.compare(&b) })
	var out []inference.PathChange
	for i := range c.events {
		if e := &c.events[i]; c.applyEvent(e) {
			out = append(out, e.PathChange)
		}
	}
	if len(c.events) > 0 {
		p.SetPathChanges(out)
	}
	for i := range p.Flows() {
		f := &p.Flows()[i]
		if x := c.flows[f.Key]; x != nil {
			x.last = max(x.last, f.Last)
			if x.ahead != 0 {
				f.Changes = x.changes
			}
		}
	}
	c.forget()
}

// applyEvent takes an event, and reports whether the flow has changed its path; then e holds the change.
func (c *Crossing) applyEvent(e *event) bool {
	x := c.flows[e.Flow]
	if x == nil {
		c.flows[e.Flow] = &flow{id: e.PathID, path: e.To, owner: e.from, changes: e.Changes, last: e.Time}
		return !e.arrival
	}
	x.last = max(x.last, e.Time)
	own := e.Changes
	switch {
	case x.owner != e.from: // which has not seen the changes between
		moved := x.id != e.PathID
		if moved {
			x.changes++
			e.From, e.Changes = x.path, x.changes
			if e.arrival {
				e.Packets = 0
			}
		}
		*x = flow{id: e.PathID, path: e.To, owner: e.from, changes: x.changes, ahead: x.changes - own, last: x.last}
		return moved
	case e.arrival:
		if x.changes-x.ahead != own { // the collector has forgotten it
			x.changes, x.ahead = own, 0
		}
	default:
		x.changes = own + x.ahead
		e.Changes = x.changes
	}
	x.id, x.path = e.PathID, e.To
	return !e.arrival
}

// forget lets flows leave that are idle, or that are too many.
func (c *Crossing) forget() {
	if c.end-c.swept >= int64(c.limits.Idle)/16 {
		c.swept = c.end
		for k, x := range c.flows {
			if c.end-x.last > int64(c.limits.Idle) {
				delete(c.flows, k)
			}
		}
	}
	if len(c.flows) <= c.limits.Flows {
		return
	}
	keys := make([]decode.FlowKey, 0, len(c.flows))
	for k := range c.flows {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b decode.FlowKey) int {
		return cmp.Or(cmp.Compare(c.flows[a].last, c.flows[b].last), a.Compare(&b))
	})
	keep := max(c.limits.Flows-c.limits.Flows/16, 0)
	for _, k := range keys[:len(keys)-keep] {
		delete(c.flows, k)
	}
}
