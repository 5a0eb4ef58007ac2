package shard

import (
	"math/bits"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/aggregation"
	"github.com/hopscope/hopscope/inference/pathtrace"
)

// countDigest counts a report that carries a digest.
func (s *State) countDigest(f *flow, slot uint32, r *decode.Report) {
	d := s.digests
	if d == nil || r.Flags&decode.Loop != 0 { // a packet in a loop is on no path
		return
	}
	d.stats.Digests++
	if d.read != nil && !d.read(r) {
		d.stats.Elsewhere++
		return
	}
	g := &r.Digest
	switch g.Coding {
	case decode.CodingMininet, decode.CodingTofino:
		t := d.dialects[g.Coding]
		if t == nil {
			d.stats.Unread++
			return
		}
		value := g.Value
		if g.Coding == decode.CodingMininet {
			lanes, _ := pint.MininetLanes(value)
			value = uint64(lanes)
		}
		x := d.flow(slot, r)
		d.noteID(x, slot, r, t.Writers)
		s.trace(f, slot, x, t, r, value)
	case decode.CodingHPCC:
		if d.utilization == nil {
			d.stats.Unread++
			return
		}
		s.countLoad(d.flow(slot, r), d.utilization, uint32(g.Value), r.Time)
	case decode.CodingPlan:
		p := d.plans[g.Epoch]
		if p == nil || g.Hops == 0 || int(g.Hops) > pint.MaxHops || p.Bits < 64 && g.Value>>p.Bits != 0 {
			if p == nil {
				d.stats.Unread++
			} else {
				d.stats.Rejected++
			}
			return
		}
		s.countPlanned(f, slot, r, p)
	}
}

// countPlanned takes the digest of a packet apart, as its plan says.
func (s *State) countPlanned(f *flow, slot uint32, r *decode.Report, p *plan) {
	d, g := s.digests, &r.Digest
	x := d.flow(slot, r)
	d.noteID(x, slot, r, p.writers)
	for _, at := range p.Sets[p.Set(g.ID)].Slots {
		q, part := &p.Queries[at.Query], p.Part(g.Value, at)
		switch q.Aggregation {
		case pint.Static:
			if t := p.tracers[at.Query]; t != nil {
				s.trace(f, slot, x, t, r, part)
			} else {
				d.stats.Unread++
			}
		case pint.Dynamic:
			s.countValues(f, x, r, q, p.pools[at.Query], part)
		case pint.PerPacket:
			if t := p.loads[at.Query]; t != nil {
				s.countLoad(x, t, uint32(part), r.Time)
			} else if pool := p.pools[at.Query]; pool != nil {
				x.paths.of(pool)
				x.whole = q.Function.String() + " of " + q.Value
				pool.Add(&x.paths.flow, 1, uint32(part), r.Time)
			}
		}
	}
}

// countLoad counts the utilisation of the fullest link on the path of a packet.
func (s *State) countLoad(x *digestFlow, t *aggregation.LoadTracker, code uint32, now int64) {
	if x.load != t {
		x.load, x.use = t, aggregation.FlowLoad{}
	}
	if !t.Add(&x.use, code, now) {
		s.digests.stats.Rejected++
	}
}

// trace gives a digest to the tracer of its flow.
func (s *State) trace(f *flow, slot uint32, x *digestFlow, t *pathtrace.Tracer, r *decode.Report, value uint64) {
	if x.tracer != t {
		if x.tracer != nil {
			x.tracer.Release(&x.trace)
		}
		if x.watched != 0 {
			s.digests.survey.End(x.watched)
			x.watched = 0
		}
		if x.spray != 0 {
			s.digests.sprays.end(x.spray)
			x.spray = 0
		}
		x.deviant = false
		x.tracer = t
	}
	d := s.digests
	if x.spray != 0 && s.sprayed(x, r, value) {
		return
	}
	e := t.Add(&x.trace, r.Digest.ID, int(r.Digest.Hops), value)
	x.stray = e != pathtrace.Verified && e != pathtrace.Confirmed
	kept := d.noteForeign(x, slot, t, r, value, e)
	switch e {
	case pathtrace.Decoded, pathtrace.Changed, pathtrace.Revised:
		if e == pathtrace.Decoded {
			d.stats.Decoded++
		}
		x.stray = false
		if e == pathtrace.Changed && s.unrest(slot, x, r, e) {
			s.holdChange(x, r)
			break
		}
		s.traced(f, slot, x, r)
	case pathtrace.Parallel:
		s.unrest(slot, x, r, e)
		x.aside, x.away = true, 0
	case pathtrace.Returned:
		d.readPath(x)
		if x.aside, x.stray = pathID(d.hops) != f.pathID, false; !x.aside {
			x.away = 0
		}
	case pathtrace.Verified, pathtrace.Confirmed:
		if x.unrest != 0 {
			s.calmed(x)
		}
		if !x.aside {
			break
		}
		if x.away++; x.away >= goneAfter && x.spray == 0 { // what looked like a second path has replaced the first
			s.traced(f, slot, x, r)
		}
	case pathtrace.Contradiction, pathtrace.Untraceable, pathtrace.Ignored:
		if held := e != pathtrace.Ignored && s.unrest(slot, x, r, e) || x.spray != 0; kept {
			break
		} else if held {
			d.sprays.flows[x.spray].addUnexplained(r.Time)
			break
		}
		d.stats.Unexplained++
		s.cut.countUnexplained(r)
	case pathtrace.Duplicate:
		d.stats.Duplicate++
	case pathtrace.RejectedHops, pathtrace.RejectedDigest, pathtrace.RejectedPacket, pathtrace.RejectedMemory:
		d.stats.Rejected++
	}
	if x.watched != 0 || x.deviant || e != pathtrace.Verified {
		d.watch(x, d.slots[slot], t, r, value, e)
	}
	if f.onPath != ^uint32(0) {
		f.onPath++
	}
}

// goneAfter is the number of digests of other paths in a row after which a flow no longer takes the path that is shown.
const goneAfter = 256

// traced makes the path that the last digest agrees with the path of the flow. Paths that flowlets take in turn are no
// changes: the first of them is shown, and the others beside it.
func (s *State) traced(f *flow, slot uint32, x *digestFlow, r *decode.Report) {
	d := s.digests
	x.needed, x.aside, x.away = d.readPath(x), false, 0
	whole := decode.Report{Time: r.Time, Kind: decode.KindStack, Flow: r.Flow, Hops: d.hops}
	s.setPath(f, slot, &whole, pathID(d.hops))
	f.flags &^= partial
}

// readPath makes d.hops the path that the last digest agrees with, and gives the number of digests that do.
func (d *digests) readPath(x *digestFlow) uint32 {
	st, _ := x.tracer.Path(&x.trace, 0, d.nodes[:0])
	x.astray = ^st.Known
	d.nodes, d.hops = st.Nodes, d.hops[:0]
	for _, n := range st.Nodes {
		d.hops = append(d.hops, decode.Hop{Has: decode.HopNodeID, NodeID: d.base | n})
	}
	return uint32(st.Digests)
}

// countValues counts the values of the hops that wrote into a digest: for the flow by hop number, and for the network as
// soon as it is known which node that is.
func (s *State) countValues(f *flow, x *digestFlow, r *decode.Report, q *pint.Query, pool *aggregation.Pool, part uint64) {
	g := &r.Digest
	kept := &x.quantiles
	if q.Answer == pint.Frequent {
		kept, x.often = &x.frequent, q.Value
	}
	if pool != nil {
		kept.of(pool)
	}
	for n := range q.Scheme.Instances() {
		p := q.Scheme.Packet(g.ID, n)
		hop := bits.Len64(q.Scheme.Writers(&p, int(g.Hops)))
		code := q.Scheme.Part(part, n)
		if pool != nil {
			pool.Add(&kept.flow, hop, code, r.Time)
		}
		if int(f.hops) != int(g.Hops) || !x.trace.Known() || x.aside || x.stray || hop > 0 && x.astray>>(hop-1)&1 != 0 {
			continue
		}
		var space [maxBlocks]uint32
		b := &s.slab.blocks[s.slab.chain(&space, f)[hop-1]]
		h := decode.Hop{Has: decode.HopNodeID, NodeID: b.node}
		switch v := q.Code.Decode(code); q.Value {
		case pint.LatencyValue:
			h.Has |= decode.HopLatency
			h.Latency = uint32(min(v, 1<<32-1))
		case pint.QueueValue:
			h.Has |= decode.HopQueueOccupancy
			h.QueueOccupancy = uint32(min(v, 1<<32-1))
		}
		latency, queue := s.hops.record(s.hops.find(b.key()), &decode.DefaultUnits, &h)
		s.add(f, b, latency, queue)
	}
}
