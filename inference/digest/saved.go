package digest

import (
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/inference/state"
)

// Saved is the state of a flow's digests of one coding and plan, for the process that goes on with the flow.
type Saved struct {
	coding       decode.Coding
	epoch, query uint8
	aside        bool
	away         uint16
	needed       uint32
	known        *pathtrace.Known
}

// Save appends what is known of the flow in a slot. Digests that no known path explains are left out.
func (d *Reader) Save(dst []Saved, slot uint32) []Saved {
	if !d.Has(slot) {
		return dst
	}
	for i := d.slots[slot]; i != 0; i = d.flows[i].next {
		x := &d.flows[i]
		if query := d.query(x); query >= 0 {
			dst = append(dst, Saved{x.coding, x.epoch, uint8(query), x.aside, x.away, x.needed, x.tracer.Saved(&x.trace)})
		}
	}
	return dst
}

// Resume makes known what Save gave of a flow, which has come to the table at a slot. Digests of plans that are not
// followed any more are passed over.
func (d *Reader) Resume(slot uint32, key *decode.FlowKey, saved []Saved) {
	if d == nil {
		return
	}
	for i := len(saved) - 1; i >= 0; i-- { // the one that came last is in front
		s := &saved[i]
		t := d.tracerOf(s.coding, s.epoch, s.query)
		if t == nil {
			continue
		}
		x := d.flow(slot, key, s.coding, s.epoch)
		x.needed, x.away, x.aside, x.tracer = s.needed, s.away, s.aside, t
		t.Resume(&x.trace, s.known)
	}
}

// query returns the number of the query whose tracer a flow has, 0 for codings without queries, and -1 if it has none.
func (d *Reader) query(x *flow) int {
	switch {
	case x.tracer == nil:
		return -1
	case x.coding != decode.CodingPlan:
		return 0
	}
	p := d.plans[x.epoch]
	if p == nil {
		return -1
	}
	return slices.Index(p.tracers, x.tracer)
}

// tracerOf is the tracer of a coding's query, or nil if there is none any more.
func (d *Reader) tracerOf(coding decode.Coding, epoch, query uint8) *pathtrace.Tracer {
	switch {
	case coding != decode.CodingPlan && int(coding) < len(d.dialects):
		return d.dialects[coding]
	case coding != decode.CodingPlan:
		return nil
	}
	if p := d.plans[epoch]; p != nil && int(query) < len(p.tracers) {
		return p.tracers[query]
	}
	return nil
}

// Code writes or reads what is saved:
//
//	coding<1b> epoch<1b> query<1b> aside<1b> away needed length { known paths, see package pathtrace }
func (s *Saved) Code(c *state.Coder) {
	if c.Reading() {
		s.known = &pathtrace.Known{}
	}
	state.Fixed(c, "coding", &s.coding)
	state.Fixed(c, "epoch", &s.epoch, &s.query)
	c.Flag("aside", &s.aside)
	state.Uint(c, "digests away", &s.away)
	state.Uint(c, "digests needed", &s.needed)
	c.Part("known paths", s.known.Code)
}
