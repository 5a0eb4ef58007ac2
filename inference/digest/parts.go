package digest

import (
	"math/bits"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/aggregation"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/inference/window"
)

// Parts are the parts of the digest of one report, one for each query that it answers. [Parts.Next] reads them in their
// order. Path, OnPath and Values are the content of the part at hand; they are good until the next part is read.
type Parts struct {
	Path   []decode.Hop // nodes of the path of the flow from now on; nil if the flow keeps its path
	OnPath bool         // the packet counts as one on the path of the flow
	Values []Value      // of hops of the path of the flow, provided that it has as many hops as the digest

	d     *Reader
	r     *decode.Report
	slot  uint32
	x     *flow
	plan  *followed
	slots []pint.Slot // parts of the plan to read

	dialect *pathtrace.Tracer // of the only part of a digest without a plan, until it is read
	value   uint64            // the part at hand, or that one
	tracer  *pathtrace.Tracer // that took the part at hand; nil if none did
	event   pathtrace.Event   // what it made of it
}

// Value is the value that one hop wrote into a digest.
type Value struct {
	Hop   int             // its place on the path, from 1
	Field decode.HopField // HopLatency or HopQueueOccupancy, in their default units; 0 for a value that hops have no field for
	Value uint32
}

// Begin makes p, which is empty, the parts of the digest of a report of the flow in a slot.
func (d *Reader) Begin(p *Parts, slot uint32, r *decode.Report) {
	if d == nil || r.Flags&decode.Loop != 0 { // a packet in a loop is on no path
		return
	}
	d.stats.Digests++
	if d.read != nil && !d.read(r) {
		d.stats.Elsewhere++
		return
	}
	p.d, p.r, p.slot = d, r, slot
	g := &r.Digest
	switch g.Coding {
	case decode.CodingMininet, decode.CodingTofino:
		t := d.dialects[g.Coding]
		if t == nil {
			d.stats.Unread++
			break
		}
		p.value = g.Value
		if g.Coding == decode.CodingMininet {
			lanes, _ := pint.MininetLanes(p.value)
			p.value = uint64(lanes)
		}
		p.x, p.dialect = d.flow(slot, &r.Flow, g.Coding, g.Epoch), t
		d.noteID(p.x, slot, r, t.Writers)
	case decode.CodingHPCC:
		if d.utilization == nil {
			d.stats.Unread++
			break
		}
		d.countLoad(d.flow(slot, &r.Flow, g.Coding, g.Epoch), d.utilization, uint32(g.Value), r.Time)
	case decode.CodingPlan:
		q := d.plans[g.Epoch]
		if q == nil || g.Hops == 0 || int(g.Hops) > pint.MaxHops || q.Bits < 64 && g.Value>>q.Bits != 0 {
			if q == nil {
				d.stats.Unread++
			} else {
				d.stats.Rejected++
			}
			break
		}
		p.x = d.flow(slot, &r.Flow, g.Coding, g.Epoch)
		d.noteID(p.x, slot, r, q.writers)
		p.plan, p.slots = q, q.Sets[q.Set(g.ID)].Slots
	}
}

// Next reads the next part and reports whether there is one. The flow has the given path, by [inference.PathID], after
// the part before. Faults are added to the open window.
func (p *Parts) Next(pathID uint64, open *window.Partial) bool {
	p.watch()
	p.Path, p.OnPath, p.Values = nil, false, nil
	if t := p.dialect; t != nil {
		p.dialect = nil
		p.trace(t, p.value, pathID, open)
		return true
	}
	for len(p.slots) > 0 {
		at := p.slots[0]
		p.slots = p.slots[1:]
		q, part := &p.plan.Queries[at.Query], p.plan.Part(p.r.Digest.Value, at)
		switch q.Aggregation {
		case pint.Static:
			if t := p.plan.tracers[at.Query]; t != nil {
				p.trace(t, part, pathID, open)
				return true
			}
			p.d.stats.Unread++
		case pint.Dynamic:
			p.readValues(q, p.plan.pools[at.Query], part)
			return true
		case pint.PerPacket:
			p.countWhole(q, at.Query, uint32(part))
		}
	}
	return false
}

// countWhole counts a value of the whole path of the packet.
func (p *Parts) countWhole(q *pint.Query, query int, code uint32) {
	if t := p.plan.loads[query]; t != nil {
		p.d.countLoad(p.x, t, code, p.r.Time)
	} else if pool := p.plan.pools[query]; pool != nil {
		p.x.paths.assign(pool)
		p.x.whole = q.Function.String() + " of " + q.Value
		pool.Add(&p.x.paths.flow, 1, code, p.r.Time)
	}
}

// countLoad counts the utilisation of the fullest link on the path of a packet.
func (d *Reader) countLoad(x *flow, t *aggregation.LoadTracker, code uint32, now int64) {
	if x.load != t {
		x.load, x.use = t, aggregation.FlowLoad{}
	}
	if !t.Add(&x.use, code, now) {
		d.stats.Rejected++
	}
}

// trace passes a digest to the tracer of its flow.
func (p *Parts) trace(t *pathtrace.Tracer, value, pathID uint64, open *window.Partial) {
	d, x, r := p.d, p.x, p.r
	d.begin(x, t)
	if x.spray != 0 && d.sprayed(x, r, value) {
		return
	}
	e := t.Add(&x.trace, r.Digest.ID, int(r.Digest.Hops), value)
	x.stray = e != pathtrace.Verified && e != pathtrace.Confirmed
	kept := d.noteForeign(x, p.slot, t, r, value, e)
	switch e {
	case pathtrace.Decoded, pathtrace.Changed, pathtrace.Revised:
		if e == pathtrace.Decoded {
			d.stats.Decoded++
		}
		x.stray = false
		if e == pathtrace.Changed && d.unrest(p.slot, x, r, e) {
			d.holdChange(x, r)
			break
		}
		p.Path = d.showPath(x)
	case pathtrace.Parallel:
		d.unrest(p.slot, x, r, e)
		x.aside, x.away = true, 0
	case pathtrace.Returned:
		d.readPath(x)
		if x.aside, x.stray = inference.PathID(d.hops) != pathID, false; !x.aside {
			x.away = 0
		}
	case pathtrace.Verified, pathtrace.Confirmed:
		if x.unrest != 0 {
			x.calmed()
		}
		if !x.aside {
			break
		}
		if x.away++; x.away >= goneAfter && x.spray == 0 { // what looked like a second path has replaced the first
			p.Path = d.showPath(x)
		}
	case pathtrace.Contradiction, pathtrace.Untraceable, pathtrace.Ignored:
		if held := e != pathtrace.Ignored && d.unrest(p.slot, x, r, e) || x.spray != 0; kept {
			break
		} else if held {
			d.sprays.flows[x.spray].addUnexplained(r.Time)
			break
		}
		d.stats.Unexplained++
		open.AddFault(&inference.DigestFault{Flow: r.Flow, Fault: inference.Inconsistent, Count: 1, First: r.Time, Last: r.Time})
	case pathtrace.Duplicate:
		d.stats.Duplicate++
	case pathtrace.RejectedHops, pathtrace.RejectedDigest, pathtrace.RejectedPacket, pathtrace.RejectedMemory:
		d.stats.Rejected++
	}
	p.OnPath, p.tracer, p.value, p.event = true, t, value, e
}

// begin makes t the tracer of a flow.
func (d *Reader) begin(x *flow, t *pathtrace.Tracer) {
	if x.tracer == t {
		return
	}
	if x.tracer != nil {
		x.tracer.Release(&x.trace)
	}
	if x.watched != 0 {
		d.survey.End(x.watched)
		x.watched = 0
	}
	if x.spray != 0 {
		d.sprays.end(x.spray)
		x.spray = 0
	}
	x.deviant = false
	x.tracer = t
}

// watch passes the part that was traced to the survey of errors of the map. The path of the flow is set by then, for
// which others may have left the table and the survey.
func (p *Parts) watch() {
	if x := p.x; p.tracer != nil && (x.watched != 0 || x.deviant || p.event != pathtrace.Verified) {
		p.d.watch(x, p.d.slots[p.slot], p.tracer, p.r, p.value, p.event)
	}
	p.tracer = nil
}

// goneAfter is the number of digests of other paths in a row after which a flow no longer takes the path that is shown.
const goneAfter = 256

// showPath returns the path that the last digest agrees with, which becomes the path of the flow. Paths that flowlets
// take in turn are no changes: the first of them is shown, and the others beside it.
func (d *Reader) showPath(x *flow) []decode.Hop {
	x.needed, x.aside, x.away = d.readPath(x), false, 0
	return d.hops
}

// readPath makes d.hops the path that the last digest agrees with, and returns the number of digests that do.
func (d *Reader) readPath(x *flow) uint32 {
	st, _ := x.tracer.Path(&x.trace, 0, d.nodes[:0])
	x.astray = ^st.Known
	d.nodes, d.hops = st.Nodes, d.hops[:0]
	for _, n := range st.Nodes {
		d.hops = append(d.hops, decode.Hop{Has: decode.HopNodeID, NodeID: d.base | n})
	}
	return uint32(st.Digests)
}

// readValues reads the values of the hops that wrote into a digest. Values count for the flow by hop number, and for
// the network as soon as the node of the hop is known.
func (p *Parts) readValues(q *pint.Query, pool *aggregation.Pool, part uint64) {
	d, x, g := p.d, p.x, &p.r.Digest
	kept := &x.quantiles
	if q.Answer == pint.Frequent {
		kept, x.often = &x.frequent, q.Value
	}
	if pool != nil {
		kept.assign(pool)
	}
	d.values = d.values[:0]
	for n := range q.Scheme.Instances() {
		k := q.Scheme.Packet(g.ID, n)
		hop := bits.Len64(q.Scheme.Writers(&k, int(g.Hops)))
		code := q.Scheme.Part(part, n)
		if pool != nil {
			pool.Add(&kept.flow, hop, code, p.r.Time)
		}
		if !x.trace.Known() || x.aside || x.stray || hop > 0 && x.astray>>(hop-1)&1 != 0 {
			continue
		}
		v := Value{Hop: hop, Value: uint32(min(q.Code.Decode(code), 1<<32-1))}
		switch q.Value {
		case pint.LatencyValue:
			v.Field = decode.HopLatency
		case pint.QueueValue:
			v.Field = decode.HopQueueOccupancy
		}
		d.values = append(d.values, v)
	}
	p.Values = d.values
}
