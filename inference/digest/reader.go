package digest

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
	"github.com/hopscope/hopscope/inference/window"
)

// Reader reads the digests of the flows of one shard, named by their slots in the table of flows. It has one owner and
// takes no lock. A nil Reader reads none.
type Reader struct {
	dialects    [decode.CodingHPCC]*pathtrace.Tracer
	utilization *aggregation.LoadTracker
	plans       map[uint8]*followed
	ends        func(*decode.FlowKey) (ingress, egress uint16)
	base        uint32
	read        func(*decode.Report) bool
	flows       []flow // 0 belongs to no flow
	free        uint32
	slots       []uint32 // of flows in the table: index into flows
	tracers     []*pathtrace.Tracer
	nodes       []uint32
	hops        []decode.Hop
	sprays      sprays
	foreign     map[uint32]*foreign // by index into flows, of the window
	values      []Value             // memory
	stats       Stats
	few         FewIDs
	example     uint32 // index into flows of the flow that few names; 0 for none
	survey      *survey.Watch
	maps        map[*pathtrace.Tracer]*survey.Map
}

// followed is a plan whose digests are read.
type followed struct {
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

// assign makes x the sketches of a pool. Those of another pool, which belong to an earlier query, are given back.
func (x *values) assign(pool *aggregation.Pool) {
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

// flow is a flow whose packets carry digests of one coding and plan. While plans change, packets of both come in
// turn: a flow has two of them then.
type flow struct {
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
	astray    uint64               // hops of it that have another node than in the map, which is not known
	needed    uint32               // digests that the path was inferred from
	away      uint16               // digests since one agreed with the path that is shown
	aside     bool                 // the last path that digests agreed with is not the one that is shown
	stray     bool                 // the last digest agreed with none
	watched   uint32               // reference in the survey of the map; 0 if it is not watched
	unwatched uint16               // digests for which it is left alone
	unrest    uint8                // changes and contradictions since the path was last stable
	calm      uint8                // digests of the path since then
	spray     uint32               // index into sprays, of a flow whose digests come from no single path
	deviant   bool                 // the published path differs from the map
	ids       idCount
	next      uint32 // the same flow's of another plan, or the next free one
}

// New makes a reader for a table of flows with so many slots. The seed draws the coins of the sketches.
func New(c Config, slots int, seed uint64) (*Reader, error) {
	d := &Reader{sprays: sprays{flows: make([]spray, 1), most: c.SprayBytes}, utilization: c.Utilization, ends: c.Ends, base: c.Base, plans: map[uint8]*followed{}, flows: make([]flow, 1), slots: make([]uint32, slots)}
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
		if m.Parts { // errors of the map are looked for in hashes alone
			return t
		}
		known := m.Config
		d.maps[t] = survey.NewMap(known.Scheme, known.Nodes, known.Links)
		return t
	}
	d.dialects[decode.CodingMininet] = tracer(c.Mininet)
	d.dialects[decode.CodingTofino] = tracer(c.Tofino)
	for _, p := range c.Plans {
		if d.plans[p.Plan.Epoch] != nil {
			return nil, fmt.Errorf("two execution plans have epoch %d", p.Plan.Epoch)
		}
		if len(p.Models) != len(p.Plan.Queries) || len(p.Loads) != len(p.Plan.Queries) {
			return nil, errors.New("an execution plan without an entry for each query")
		}
		q := &followed{Plan: p.Plan, tracers: make([]*pathtrace.Tracer, len(p.Models)), pools: make([]*aggregation.Pool, len(p.Models)), loads: p.Loads}
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
				return nil, err
			}
			q.pools[i] = pool
		}
		d.plans[p.Plan.Epoch] = q
	}
	return d, nil
}

// flow returns the state of a flow in the table for the plan of a digest. It is put in front of the state for another
// plan.
func (d *Reader) flow(slot uint32, key *decode.FlowKey, coding decode.Coding, epoch uint8) *flow {
	front := d.slots[slot]
	if x := &d.flows[front]; front != 0 {
		if x.coding == coding && x.epoch == epoch {
			return x
		}
		if other := x.next; other != 0 {
			if y := &d.flows[other]; y.coding == coding && y.epoch == epoch {
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
		d.flows = append(d.flows, flow{})
	}
	x := &d.flows[i]
	*x = flow{coding: coding, epoch: epoch, next: front}
	x.trace.Source = source(key)
	if d.ends != nil {
		x.trace.Ingress, x.trace.Egress = d.ends(key)
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
func (d *Reader) release(i uint32) {
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
	*x = flow{next: d.free}
	d.free = i
}

// Has reports whether packets of the flow in a slot have carried digests.
func (d *Reader) Has(slot uint32) bool { return d != nil && d.slots[slot] != 0 }

// Forget releases the memory of a flow that leaves the table.
func (d *Reader) Forget(slot uint32) {
	if d.Has(slot) {
		d.forget(slot)
	}
}

func (d *Reader) forget(slot uint32) {
	for i := d.slots[slot]; i != 0; {
		next := d.flows[i].next
		d.release(i)
		i = next
	}
	d.slots[slot] = 0
}

// Cut ends the open window, to which it adds faults of digests and errors of the map. It calls found for each flow
// whose change of path was held back. The arguments are the time of the change and the nodes of the new path.
func (d *Reader) Cut(open *window.Partial, found func(slot uint32, at int64, nodes []decode.Hop)) {
	d.settleForeign(open)
	d.settleSprays(open, found)
	d.cutSurvey(open)
}
