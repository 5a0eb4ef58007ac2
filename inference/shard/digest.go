package shard

import (
	"errors"
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/congestion"
	"github.com/hopscope/hopscope/inference/latency"
	"github.com/hopscope/hopscope/inference/pathtrace"
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
