package shard

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/aggregation"
	"github.com/hopscope/hopscope/inference/pathtrace"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
	"github.com/hopscope/hopscope/inference/survey"
)

// Digests says how PINT digests are read. What is nil is not known: digests that need it are counted, and not read.
type Digests struct {
	Mininet, Tofino *prior.Model             // of the published programs' digests
	Utilization     *aggregation.LoadTracker // of HPCC digests
	Plans           []DigestPlan
	Values          aggregation.Config // of the sketches of a flow's hops, for one shard; its Kind follows from each query

	// SprayBytes is the memory of one shard for digests of flows that use several paths at once. 0 keeps none.
	SprayBytes int64

	// Ends returns at which sets of nodes, as numbered in prior.Config, a flow's packets enter and leave the network, 0 if that
	// is not known. It may be nil.
	Ends func(*decode.FlowKey) (ingress, egress uint16)

	// Base is added to the ids of nodes in results, which are below it: digests are hashes of the ids that nodes know themselves by.
	Base uint32
	// Read makes what says of a report with a digest whether it is from the network of the models. It may be nil.
	Read func() func(*decode.Report) bool

	// SearchIDs is the limit below which the ids of nodes that are not on the map are searched; 0 searches none.
	SearchIDs uint32
}

// DigestPlan is an execution plan, and what is known of paths for each of its queries.
type DigestPlan struct {
	Plan   *pint.Plan
	Models []*prior.Model             // by query; nil for those that do not trace paths, and where nothing is known
	Loads  []*aggregation.LoadTracker // by query; nil for those that do not ask for the utilisation
}

// digests is what a shard keeps of the flows whose packets carry digests.
type digests struct {
	dialects    [decode.CodingHPCC]*pathtrace.Tracer
	utilization *aggregation.LoadTracker
	plans       map[uint8]*plan
	ends        func(*decode.FlowKey) (ingress, egress uint16)
	base        uint32
	read        func(*decode.Report) bool
	flows       []digestFlow // 0 belongs to no flow
	free        uint32
	slots       []uint32 // of flows in the table: index into flows
	tracers     []*pathtrace.Tracer
	nodes       []uint32
	hops        []decode.Hop
	sprays      sprays
	foreign     map[uint32]*foreign // by index into flows, of the window
	stats       DigestStats
	few         FewIDs
	example     uint32 // index into flows of the flow that few names; 0 for none
	survey      *survey.Watch
	maps        map[*pathtrace.Tracer]*survey.Map
}

// DigestStats counts what became of the digests of a shard.
type DigestStats struct {
	Digests     uint64 `json:"digests"`              // that came
	Unread      uint64 `json:"unread"`               // of another plan, or of a program whose network is not known
	Elsewhere   uint64 `json:"other_site,omitempty"` // of exporters in another site than the network that is known
	Rejected    uint64 `json:"rejected"`             // that cannot be: wider than their scheme, of too many hops
	Duplicate   uint64 `json:"duplicate"`            // of packets that came before
	Unexplained uint64 `json:"strange"`              // that no path explains
	Decoded     uint64 `json:"paths_decoded"`        // flows whose path became known
	Undecided   int    `json:"flows_undecided"`      // flows that wait for their path
	Watched     int    `json:"flows_watched"`        // flows whose digests contradict the map, or seem to
	Sprayed     int    `json:"flows_sprayed"`        // flows that use several paths at once, and whose paths are known
	Fits        uint64 `json:"mixture_fits"`         // how often such paths were looked for
	Bytes       int64  `json:"bytes"`                // memory of paths and sketches
	NoMemory    uint64 `json:"no_memory,omitempty"`  // of the rejected, those of flows for whose paths no memory was left
	Unkept      uint64 `json:"unkept,omitempty"`     // of flows that use several paths, that were not kept, or gave way early, because their memory was full
	FewIDs      FewIDs `json:"few_ids,omitzero"`     // flows whose packets have few ids
}

// Add adds the statistics of another shard.
func (d *DigestStats) Add(o DigestStats) {
	d.Digests += o.Digests
	d.Unread += o.Unread
	d.Elsewhere += o.Elsewhere
	d.Rejected += o.Rejected
	d.Duplicate += o.Duplicate
	d.Unexplained += o.Unexplained
	d.Decoded += o.Decoded
	d.Undecided += o.Undecided
	d.Watched += o.Watched
	d.Sprayed += o.Sprayed
	d.Fits += o.Fits
	d.Bytes += o.Bytes
	d.NoMemory += o.NoMemory
	d.Unkept += o.Unkept
	d.FewIDs.add(&o.FewIDs)
}

type plan struct {
	*pint.Plan
	tracers []*pathtrace.Tracer // by query
	pools   []*aggregation.Pool // of queries whose values are kept by flow
	loads   []*aggregation.LoadTracker
}

// values are the sketches of one flow in the pool of a query.
type values struct {
	pool *aggregation.Pool
	flow aggregation.Flow
}

// of makes x the sketches of a pool. Those of another pool, which belong to an earlier query, are given back.
func (x *values) of(pool *aggregation.Pool) {
	if x.pool != pool {
		x.free()
		x.pool = pool
	}
}

func (x *values) free() {
	if x.pool != nil {
		x.pool.Free(&x.flow)
		x.pool = nil
	}
}

// digestFlow is a flow whose packets carry digests of one coding and plan. While plans change, packets of both come in
// turn: a flow has two of them then.
type digestFlow struct {
	coding    decode.Coding
	epoch     uint8
	trace     pathtrace.Flow
	quantiles values
	frequent  values
	often     string // the value that a query for frequent values asks for
	paths     values // of whole paths, as those of one hop
	whole     string // what these are: "sum of latency"
	tracer    *pathtrace.Tracer
	load      *aggregation.LoadTracker
	use       aggregation.FlowLoad // of the fullest link
	astray    uint64               // hops of it that have another node than the map says, which is not known
	needed    uint32               // digests that the path was inferred from
	away      uint16               // digests since one agreed with the path that is shown
	aside     bool                 // the last path that digests agreed with is not the one that is shown
	stray     bool                 // the last digest agreed with none
	watched   uint32               // reference in the survey of the map; 0 if it is not watched
	unwatched uint16               // digests for which it is left alone
	unrest    uint8                // changes and contradictions since the path was last stable
	calm      uint8                // digests of the path since then
	spray     uint32               // index into sprays, of a flow whose digests come from no single path
	deviant   bool                 // the published path is not what the map says
	ids       idCount
	next      uint32 // the same flow's of another plan, or the next free one
}

// ReadDigests makes the shard read PINT digests. It is called before the first Update.
func (s *State) ReadDigests(c Digests, seed uint64) error {
	d := &digests{sprays: sprays{flows: make([]spray, 1), most: c.SprayBytes}, utilization: c.Utilization, ends: c.Ends, base: c.Base, plans: map[uint8]*plan{}, flows: make([]digestFlow, 1), slots: make([]uint32, s.flows.Cap())}
	if c.Read != nil {
		d.read = c.Read()
	}
	d.survey, d.maps = survey.NewWatch(c.SearchIDs), map[*pathtrace.Tracer]*survey.Map{}
	tracer := func(m *prior.Model) *pathtrace.Tracer {
		if m == nil {
			return nil
		}
		t := pathtrace.New(m)
		d.tracers = append(d.tracers, t)
		known := m.Config
		d.maps[t] = survey.NewMap(known.Scheme, known.Nodes, known.Links)
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
		q := &plan{Plan: p.Plan, tracers: make([]*pathtrace.Tracer, len(p.Models)), pools: make([]*aggregation.Pool, len(p.Models)), loads: p.Loads}
		for i := range p.Plan.Queries {
			q.tracers[i] = tracer(p.Models[i])
			query := &p.Plan.Queries[i]
			if !keepsValues(query) {
				continue
			}
			sketches := c.Values
			if query.Answer == pint.Frequent {
				sketches.Kind = aggregation.Frequent
			}
			pool, err := aggregation.NewPool(sketches, query.Code, seed)
			if err != nil {
				return err
			}
			q.pools[i] = pool
		}
		d.plans[p.Plan.Epoch] = q
	}
	s.digests = d
	return nil
}

// keepsValues reports whether the values that a query brings are kept by flow. Those of other dynamic queries count for the hops of the
// network alone.
func keepsValues(q *pint.Query) bool {
	switch q.Aggregation {
	case pint.Dynamic:
		return q.Value == pint.LatencyValue || q.Answer == pint.Frequent
	case pint.PerPacket:
		return q.Value != pint.UtilizationValue || q.Function != pint.Max // which a LoadTracker takes
	}
	return false
}

// Pools is the number of queries of a plan whose values are kept by flow, each with sketches of its own.
func Pools(p *pint.Plan) (n int) {
	for i := range p.Queries {
		if keepsValues(&p.Queries[i]) {
			n++
		}
	}
	return n
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
			d.release(other)
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
	x.trace.Source = source(&r.Flow)
	if d.ends != nil {
		x.trace.Ingress, x.trace.Egress = d.ends(&r.Flow)
	}
	d.slots[slot] = i
	return x
}

// source stands for the sender of a flow: its address, or the network of 64 bits that it may choose addresses from.
func source(k *decode.FlowKey) uint32 {
	x := binary.BigEndian.Uint64(k.Src[:8])
	if k.IPVersion == 4 {
		x = uint64(binary.BigEndian.Uint32(k.Src[12:]))
	}
	return uint32((x ^ x>>29) * 0xbf58476d1ce4e5b9 >> 32)
}

// release frees what a flow holds.
func (d *digests) release(i uint32) {
	delete(d.foreign, i)
	x := &d.flows[i]
	d.manyIDs(x, i)
	if x.tracer != nil {
		x.tracer.Release(&x.trace)
	}
	if x.watched != 0 {
		d.survey.End(x.watched)
	}
	x.quantiles.free()
	x.frequent.free()
	x.paths.free()
	if x.spray != 0 {
		d.sprays.end(x.spray)
	}
	*x = digestFlow{next: d.free}
	d.free = i
}

// forget gives back what a flow held that leaves the table.
func (d *digests) forget(slot uint32) {
	for i := d.slots[slot]; i != 0; {
		next := d.flows[i].next
		d.release(i)
		i = next
	}
	d.slots[slot] = 0
}

// digestTotals returns what became of digests.
func (s *State) digestTotals() DigestStats {
	d := s.digests
	if d == nil {
		return DigestStats{}
	}
	st := d.stats
	st.FewIDs = d.few
	for _, t := range d.tracers {
		ts := t.Stats()
		st.Undecided += ts.Undecided
		st.Bytes += int64(ts.Bytes)
		st.NoMemory += ts.Events[pathtrace.RejectedMemory]
	}
	st.Watched = d.survey.Flows()
	st.Bytes += int64(d.survey.SizeBytes())
	st.Bytes += d.sprays.bytes
	st.Unkept = d.sprays.unkept
	for i := range d.sprays.flows {
		if d.sprays.flows[i].result != nil {
			st.Sprayed++
		}
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
