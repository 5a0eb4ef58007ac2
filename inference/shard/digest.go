package shard

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/congestion"
	"github.com/hopscope/hopscope/inference/latency"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/sketches/flowtable"
)

// Digests says how PINT digests are read. What is nil is not known: digests that need it are counted, and not read.
type Digests struct {
	Mininet, Tofino *pathtrace.Model    // of the published programs' digests
	Utilization     *congestion.Tracker // of HPCC digests
	Plans           []DigestPlan
	Latency         latency.Config // of the sketches of a flow's hops, for one shard

	// Ends tells at which sets of nodes, as numbered in pathtrace.Config, a flow's packets enter and leave the network,
	// 0 if that is not known. It may be nil.
	Ends func(*decode.FlowKey) (ingress, egress uint16)
}

// DigestPlan is an execution plan, and what is known of paths for each of its queries.
type DigestPlan struct {
	Plan   *pint.Plan
	Models []*pathtrace.Model    // by query; nil for those that do not trace paths, and where nothing is known
	Loads  []*congestion.Tracker // by query; nil for those that do not ask for the utilisation
}

// digests is what a shard keeps of the flows whose packets carry digests.
type digests struct {
	dialects    [decode.CodingHPCC]*pathtrace.Tracer
	utilization *congestion.Tracker
	plans       map[uint8]*plan
	ends        func(*decode.FlowKey) (ingress, egress uint16)
	flows       []digestFlow // 0 is nobody's
	free        uint32
	slots       []uint32 // of flows in the table: index into flows
	tracers     []*pathtrace.Tracer
	nodes       []uint32
	hops        []decode.Hop
	stats       DigestStats
}

// DigestStats counts what became of the digests of a shard.
type DigestStats struct {
	Digests   uint64 `json:"digests"`         // that came
	Unread    uint64 `json:"unread"`          // of another plan, or of a program whose network is not known
	Rejected  uint64 `json:"rejected"`        // that cannot be: wider than their scheme, of too many hops
	Duplicate uint64 `json:"duplicate"`       // of packets that came before
	Strange   uint64 `json:"strange"`         // that no path explains
	Decoded   uint64 `json:"paths_decoded"`   // flows whose path became known
	Undecided int    `json:"flows_undecided"` // flows that wait for their path
	Bytes     int64  `json:"bytes"`           // memory of paths and sketches
}

// Add adds the statistics of another shard.
func (d *DigestStats) Add(o DigestStats) {
	d.Digests += o.Digests
	d.Unread += o.Unread
	d.Rejected += o.Rejected
	d.Duplicate += o.Duplicate
	d.Strange += o.Strange
	d.Decoded += o.Decoded
	d.Undecided += o.Undecided
	d.Bytes += o.Bytes
}

type plan struct {
	*pint.Plan
	tracers []*pathtrace.Tracer // by query
	pools   []*latency.Pool
	loads   []*congestion.Tracker
}

// digestFlow is a flow whose packets carry digests of one coding and plan. While plans change, packets of both come in
// turn: a flow has two of them then.
type digestFlow struct {
	coding decode.Coding
	epoch  uint8
	trace  pathtrace.Flow
	values latency.Flow
	tracer *pathtrace.Tracer
	pool   *latency.Pool
	load   *congestion.Tracker
	use    congestion.Flow // of the fullest link
	needed uint32          // digests that the path was inferred from
	away   uint16          // digests since one agreed with the path that is shown
	aside  bool            // the last path that digests agreed with is not the one that is shown
	stray  bool            // the last digest agreed with none
	next   uint32          // the same flow's of another plan, or the next free one
}

// ReadDigests makes the shard read PINT digests. It is called before the first Update.
func (s *State) ReadDigests(c Digests, seed uint64) error {
	d := &digests{utilization: c.Utilization, ends: c.Ends, plans: map[uint8]*plan{}, flows: make([]digestFlow, 1), slots: make([]uint32, s.flows.Cap())}
	tracer := func(m *pathtrace.Model) *pathtrace.Tracer {
		if m == nil {
			return nil
		}
		t := pathtrace.New(m)
		d.tracers = append(d.tracers, t)
		return t
	}
	d.dialects[decode.CodingMininet] = tracer(c.Mininet)
	d.dialects[decode.CodingTofino] = tracer(c.Tofino)
	for _, p := range c.Plans {
		if d.plans[p.Plan.Epoch] != nil {
			return fmt.Errorf("two execution plans have epoch %d", p.Plan.Epoch)
		}
		if len(p.Models) != len(p.Plan.Queries) || len(p.Loads) != len(p.Plan.Queries) {
			return errors.New("an execution plan without an entry for each query")
		}
		q := &plan{Plan: p.Plan, tracers: make([]*pathtrace.Tracer, len(p.Models)), pools: make([]*latency.Pool, len(p.Models)), loads: p.Loads}
		for i := range p.Plan.Queries {
			q.tracers[i] = tracer(p.Models[i])
			if query := &p.Plan.Queries[i]; query.Aggregation == pint.Dynamic && query.Value == pint.LatencyValue {
				pool, err := latency.NewPool(c.Latency, query.Code, seed)
				if err != nil {
					return err
				}
				q.pools[i] = pool
			}
		}
		d.plans[p.Plan.Epoch] = q
	}
	s.digests = d
	return nil
}

// countDigest counts a report that carries a digest.
func (s *State) countDigest(f *flow, slot uint32, r *decode.Report) {
	d := s.digests
	if d == nil || r.Flags&decode.Loop != 0 { // a packet in a loop is on no path
		return
	}
	d.stats.Digests++
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
		s.trace(f, slot, d.flow(slot, r), t, r, value)
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
			}
		}
	}
}

// countLoad counts the utilisation of the fullest link on the path of a packet.
func (s *State) countLoad(x *digestFlow, t *congestion.Tracker, code uint32, now int64) {
	if x.load != t {
		x.load, x.use = t, congestion.Flow{}
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
		x.tracer = t
	}
	d := s.digests
	e := t.Add(&x.trace, r.Digest.ID, int(r.Digest.Hops), value)
	x.stray = e != pathtrace.Verified
	switch e {
	case pathtrace.Decoded, pathtrace.Changed:
		if e == pathtrace.Decoded {
			d.stats.Decoded++
		}
		x.stray = false
		s.traced(f, slot, x, r)
	case pathtrace.Parallel:
		x.aside, x.away = true, 0
	case pathtrace.Returned:
		d.readPath(x)
		if x.aside, x.stray = pathID(d.hops) != f.pathID, false; !x.aside {
			x.away = 0
		}
	case pathtrace.Verified:
		if !x.aside {
			break
		}
		if x.away++; x.away >= goneAfter { // what looked like a second path has replaced the first
			s.traced(f, slot, x, r)
		}
	case pathtrace.Contradiction, pathtrace.Untraceable, pathtrace.Ignored:
		d.stats.Strange++
		s.cut.faults.count(r, inference.Inconsistent)
	case pathtrace.Duplicate:
		d.stats.Duplicate++
	case pathtrace.RejectedHops, pathtrace.RejectedDigest, pathtrace.RejectedPacket, pathtrace.RejectedMemory:
		d.stats.Rejected++
	}
	if f.onPath != ^uint32(0) {
		f.onPath++
	}
}

// goneAfter is how many digests of other paths in a row tell that a flow does not take the one that is shown any more.
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
	d.nodes, d.hops = st.Nodes, d.hops[:0]
	for _, n := range st.Nodes {
		d.hops = append(d.hops, decode.Hop{Has: decode.HopNodeID, NodeID: n})
	}
	return uint32(st.Digests)
}

// countValues counts the values of the hops that wrote into a digest: for the flow by hop number, and for the network as
// soon as it is known which node that is.
func (s *State) countValues(f *flow, x *digestFlow, r *decode.Report, q *pint.Query, pool *latency.Pool, part uint64) {
	g := &r.Digest
	if pool != nil && x.pool != pool {
		if x.pool != nil {
			x.pool.Free(&x.values)
		}
		x.pool = pool
	}
	for n := range q.Scheme.Instances() {
		p := q.Scheme.Packet(g.ID, n)
		hop := bits.Len64(q.Scheme.Writers(&p, int(g.Hops)))
		code := q.Scheme.Part(part, n)
		if pool != nil {
			pool.Add(&x.values, hop, code, r.Time)
		}
		if int(f.hops) != int(g.Hops) || !x.trace.Known() || x.aside || x.stray {
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

// flow gives what is kept of a flow in the table for the plan of a digest, in front of what is kept for another one.
func (d *digests) flow(slot uint32, r *decode.Report) *digestFlow {
	g, front := &r.Digest, d.slots[slot]
	if x := &d.flows[front]; front != 0 {
		if x.coding == g.Coding && x.epoch == g.Epoch {
			return x
		}
		if other := x.next; other != 0 {
			if y := &d.flows[other]; y.coding == g.Coding && y.epoch == g.Epoch {
				d.slots[slot], y.next, x.next = other, front, 0
				return y
			}
			d.give(other)
			x.next = 0
		}
	}
	i := d.free
	if i != 0 {
		d.free = d.flows[i].next
	} else {
		i = uint32(len(d.flows))
		d.flows = append(d.flows, digestFlow{})
	}
	x := &d.flows[i]
	*x = digestFlow{coding: g.Coding, epoch: g.Epoch, next: front}
	if d.ends != nil {
		x.trace.Ingress, x.trace.Egress = d.ends(&r.Flow)
	}
	d.slots[slot] = i
	return x
}

// give puts what a flow held back.
func (d *digests) give(i uint32) {
	x := &d.flows[i]
	if x.tracer != nil {
		x.tracer.Release(&x.trace)
	}
	if x.pool != nil {
		x.pool.Free(&x.values)
	}
	*x = digestFlow{next: d.free}
	d.free = i
}

// forget gives back what a flow held that leaves the table.
func (d *digests) forget(slot uint32) {
	for i := d.slots[slot]; i != 0; {
		next := d.flows[i].next
		d.give(i)
		i = next
	}
	d.slots[slot] = 0
}

// digestTotals tells what became of digests.
func (s *State) digestTotals() DigestStats {
	d := s.digests
	if d == nil {
		return DigestStats{}
	}
	st := d.stats
	for _, t := range d.tracers {
		ts := t.Stats()
		st.Undecided += ts.Undecided
		st.Bytes += int64(ts.Bytes)
	}
	for _, p := range d.plans {
		for _, pool := range p.pools {
			if pool != nil {
				st.Bytes += int64(pool.SizeBytes())
			}
		}
	}
	return st
}

// digestStats adds to the statistics of a flow what its digests tell.
func (s *State) digestStats(slot uint32, out *inference.FlowStats) {
	if s.digests == nil || slot == flowtable.None {
		return
	}
	i := s.digests.slots[slot]
	if i == 0 {
		return
	}
	x := &s.digests.flows[i]
	if y := &s.digests.flows[x.next]; x.next != 0 && !x.trace.Known() && y.trace.Known() {
		x = y // a plan that is new knows less than the one before
	}
	if x.load != nil {
		if w, ok := x.load.Window(&x.use, out.Last); ok {
			out.Load = inference.Load{Digests: w.Count, Last: w.Last, Mean: w.Mean, Max: w.Max}
		}
	}
	if x.tracer == nil {
		return
	}
	st, _ := x.tracer.Path(&x.trace, 0, nil)
	for i := 1; st.Complete; i++ {
		other, ok := x.tracer.Path(&x.trace, i, nil)
		if !ok {
			break
		}
		if !leads(st.Nodes, out.Hops) && leads(other.Nodes, out.Hops) { // the one that is shown
			st, other = other, st
		}
		out.Others = append(out.Others, other.Nodes)
	}
	out.Digests, out.Confidence, out.Partial = uint64(x.needed), st.Confidence, !st.Complete
	for i := len(out.Hops); st.Complete && i < len(st.Nodes); i++ { // longer than what is kept of other flows
		out.Hops = append(out.Hops, inference.FlowHop{HopKey: inference.HopKey{Node: st.Nodes[i]}})
	}
	for i := range out.Hops {
		out.Hops[i].Inferred = st.Complete && i < len(st.Nodes) && st.Seen>>i&1 == 0
	}
	if !st.Complete {
		out.Digests = uint64(st.Digests)
		out.Hops = out.Hops[:0]
		for i, n := range st.Nodes {
			out.Hops = append(out.Hops, inference.FlowHop{HopKey: inference.HopKey{Node: n}, Unknown: st.Known>>i&1 == 0})
		}
	}
	if x.pool == nil {
		return
	}
	for n := range out.Hops {
		if h, ok := x.pool.Hop(&x.values, n+1, out.Last); ok {
			out.Hops[n].Latency = inference.Summary{
				Count: h.Count, P50: uint64(h.Smooth(.5)), P90: uint64(h.Smooth(.9)), P99: uint64(h.Smooth(.99)), Max: uint64(h.Max),
			}
		}
	}
}

// leads reports whether a path leads over hops, of which the last ones may not be kept.
func leads(path []uint32, hops []inference.FlowHop) bool {
	for i := range hops {
		if i >= len(path) || hops[i].Node != path[i] {
			return false
		}
	}
	return true
}
