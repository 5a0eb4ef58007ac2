package shard

import (
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/digest"
	"github.com/hopscope/hopscope/sketches"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// batchSize is how many reports are looked up together, so that their cache misses overlap.
const batchSize = 128

// State is the state of one shard. It has one owner and takes no lock.
type State struct {
	cfg          Config
	key          decode.HashKey
	idle         int64 // the idle timeout, ns
	rng          quantile.Rand
	flows        *table
	slab         slab
	hops         hops
	top          topFlows
	cut          *Cut // the open window
	spare        *Cut
	window       uint32 // number of the open window
	stats        Stats
	pairs        pairs
	ways         probeWays
	views        views
	readings     countReadings
	digests      *digest.Reader    // nil unless ReadDigests was called
	listArrivals bool              // arrivals
	policy       *inference.Policy // nil unless Judge was called
	hand         uint32            // next flow to look at when blocks run out
	swept        int64             // time of the last look for idle flows

	// The batch at hand: n reports that name a flow, each decoded or lazy.
	n       int
	now     int64 // time of the last one
	hashes  [batchSize]uint64
	keys    [batchSize]*decode.FlowKey
	slots   [batchSize]uint32
	reports [batchSize]*decode.Report
	lazy    [batchSize]*decode.Lazy
	viewed  [batchSize]view
	rare    []*decode.Report // drops and loops, of which most batches have none
	rest    struct {         // the rest of reports with hops that name no node
		reports []decode.Report
		hops    []decode.Hop
	}

	path    []inference.HopKey // memory
	former  []inference.HopKey // memory
	touched uint64             // sum of the values read ahead, so that the reads are not optimised away
}

// Stats is the state of a shard and what it counted since New.
type Stats struct {
	Flows           int    // in the table
	Capacity        int    // flows that there is room for
	Hops            int    // in the table of hops
	MemoryBytes     int64  // taken for flows and their sketches, whether in use or not
	UsedBytes       int64  // of these, those in use
	EvictedIdle     uint64 // flows not seen for the idle timeout
	EvictedPressure uint64 // flows that made place for others
	OtherHops       uint64 // hop records folded into the hop "other"
	NoFlow          uint64 // reports that name no flow, counted for their hops alone
	Refused         uint64 // reports of flows that found no place, counted for their hops alone
	LongPaths       uint64 // hop records beyond the maximum path length, counted for their hops alone
	Unsketched      uint64 // hop records that no memory was left for in the sketches of their flow
	Digests         digest.Stats
	Partial         uint64 // hop records of incomplete stacks that are on no known path of their flow
}

// New takes the memory of a shard. cfg must be valid. The seed makes the hashes of flows unpredictable and draws the
// coins of the sketches.
func New(cfg Config, seed uint64) *State {
	per := int64(cfg.flowBytes())
	n := cfg.MemoryBytes / per
	key := decode.NewHashKey(seed)
	s := &State{
		cfg: cfg, key: key, idle: int64(cfg.IdleTimeout), rng: quantile.Rand(seed),
		hops: hops{hopTable: newHopTable(cfg.MaxHops, key)},
		top:  newTopFlows(cfg.TopFlows),

		window: 1, // a flow that is new was in none
	}
	var err error
	s.flows, err = sketches.NewFlowTable(sketches.FlowTableConfig{
		MemoryBytes: int(n * (int64(unsafe.Sizeof(entry{})) + indexBytes)), IdleTimeout: cfg.IdleTimeout,
	}, s.evicted)
	if err != nil {
		panic(fmt.Sprintf("shard.New with a configuration that does not validate: %v", err))
	}
	s.slab = newSlab(int((cfg.MemoryBytes-int64(s.flows.Bytes()))/int64(unsafe.Sizeof(block{}))) - 1)
	s.cut = s.newCut()
	s.hops.open = &s.cut.hops
	return s
}

// ListArrivals makes the shard list flows that it sees for the first time, or again after a window without them. It
// lists up to Config.MaxPathChanges in a window. It is for collectors of a fleet, and is called before the first
// report.
func (s *State) ListArrivals() { s.listArrivals = true }

// Update counts reports that were read to their end. It keeps nothing of them. A [decode.Report.FlowHash] that they carry
// is that of the key of this shard's seed.
func (s *State) Update(reports []*decode.Report) {
	for len(reports) > 0 {
		batch := reports[:min(len(reports), batchSize)]
		reports = reports[len(batch):]
		s.begin(len(batch))
		for _, r := range batch {
			s.enqueue(r)
		}
		s.end()
	}
}

// UpdateLazy is Update for lazy reports.
func (s *State) UpdateLazy(reports []*decode.Lazy) {
	for len(reports) > 0 {
		batch := reports[:min(len(reports), batchSize)]
		reports = reports[len(batch):]
		s.begin(len(batch))
		for _, r := range batch {
			if r.Shape == nil {
				s.enqueue(r.Report())
				continue
			}
			n := s.n
			s.lazy[n], s.viewed[n], s.keys[n], s.hashes[n] = r, view{}, &r.Flow, r.Hash
			s.now = max(s.now, r.Time)
			s.n++
		}
		s.end()
	}
}

// begin starts a batch of n reports.
func (s *State) begin(n int) {
	s.cut.partial.Reports += uint64(n)
	s.n, s.now, s.rare = 0, math.MinInt64, s.rare[:0]
	s.rest.reports, s.rest.hops = s.rest.reports[:0], s.rest.hops[:0]
}

// enqueue adds a report to the batch, or counts it if it names no flow.
func (s *State) enqueue(r *decode.Report) {
	if r.Kind == decode.KindProbes { // no packet of the flow
		if r.Rare != nil && r.Rare.Probes != nil && r.Has&decode.HasFlow != 0 {
			s.observeProbes(r, r.Rare.Probes)
		}
		return
	}
	if r.Rare != nil && len(r.Rare.Counts) > 0 {
		s.readCounts(r)
	}
	var v view
	if inNetwork(r) {
		hash := r.FlowHash
		if hash == 0 {
			hash = s.key.Flow(&r.Flow)
		}
		v = s.views.observe(r, hash)
	}
	if x := s.named(r, v.hops); x != r {
		r, v.hops = x, 0 // what was counted is not in it
	}
	if r.Kind == decode.KindDrop || r.Flags&decode.Loop != 0 {
		s.rare = append(s.rare, r)
	}
	if r.Has&decode.HasFlow == 0 {
		s.stats.NoFlow++
		s.countAlone(r)
		return
	}
	n := s.n
	s.reports[n], s.lazy[n], s.viewed[n], s.keys[n], s.hashes[n] = r, nil, v, &r.Flow, r.FlowHash
	s.now = max(s.now, r.Time)
	s.n++
}

// end counts the batch.
func (s *State) end() {
	if s.n > 0 {
		s.update(s.n)
	}
	s.hops.settle()
	s.cut.countDrops(s.rare)
	s.cut.countLoops(s.rare)
}

// update counts the first n reports of the batch, in four passes that each read another place of memory.
func (s *State) update(n int) {
	slots := s.slots[:n]
	for i, h := range s.hashes[:n] {
		if h == 0 {
			h = s.key.Flow(s.keys[i])
		}
		s.hashes[i] = tableHash(h)
	}
	s.flows.FindAll(s.hashes[:n], s.keys[:n], s.now, slots, nil)
	s.readAhead(slots)
	for i, slot := range slots {
		short := s.lazy[i]
		if short != nil && slot != sketches.NoSlot && s.countShort(short, slot) {
			continue
		}
		r := s.reports[i]
		if short != nil {
			r = short.Report()
		}
		if slot == sketches.NoSlot {
			s.stats.Refused++
			s.countAlone(r)
			continue
		}
		s.countSeen(r, slot, &s.viewed[i])
		if s.policy != nil {
			s.conform(slot, r)
		}
	}
	s.sweep(s.now)
}

// tableHash swaps the halves of the hash. Collectors choose the shard by the upper half, and the table uses the upper
// half too.
func tableHash(flow uint64) uint64 { return bits.RotateLeft64(flow, 32) }

// readAhead reads the lines that counting will need, independently of each other.
func (s *State) readAhead(slots []uint32) {
	var sum uint64
	for _, slot := range slots {
		if slot == sketches.NoSlot {
			continue
		}
		f := &s.flows.At(slot).Value
		sum += uint64(f.codes[min(int(f.buffered)*int(f.hops), bufferCodes-1)])
		if f.full(1) {
			sum += uint64(f.codes[0]) + uint64(f.codes[32]) + uint64(f.codes[64])
			for _, b := range f.block[:min(f.hops, inline)] {
				sum += s.slab.touch(b)
			}
			if f.top != 0 {
				sum += s.top.places[f.top-1].part.Touch(int(f.hops))
			}
		}
	}
	s.touched = sum
}

// count counts a report for its flow and its hops.
func (s *State) count(r *decode.Report, slot uint32) {
	f := &s.flows.At(slot).Value
	if f.window != s.window {
		s.enter(f, slot, r.Time)
	}
	if r.Flags&decode.Transit != 0 && entersNetwork(r) {
		s.countEntered(f, slot, r)
		return
	}
	if f.flags&paired != 0 && (leavesNetwork(r) || s.lastPostcard(f, r)) {
		s.countLeft(slot, r)
	}
	weight := max(r.Weight, 1)
	if r.Flags&decode.Sampled != 0 {
		weight = 0 // the sample counts
	}
	f.packets += uint64(weight)
	f.last = max(f.last, r.Time)
	f.inWindow += min(weight, math.MaxUint32-f.inWindow)
	if f.top == 0 && (f.inWindow > s.top.threshold || f.flags&probe != 0) {
		s.admit(f, slot)
	}
	if r.Rare != nil && f.top != 0 {
		s.top.see(f, r)
	}
	if r.Has&decode.HasDigest != 0 {
		s.countDigest(f, slot, r)
		return
	}
	path, whole := reportsPath(r)
	if path && !whole {
		// Part of a path is better than none, and a longer part better than a shorter one.
		path = f.pathID == 0 || f.flags&partial != 0 && (len(r.Hops) > int(f.hops) || inference.PathID(r.Hops) == f.pathID)
	}
	part, id := 0, uint64(0)
	if path {
		if id = inference.PathID(r.Hops); whole && id != f.pathID && f.pathID != 0 && f.flags&(postcards|partial) == 0 && r.Kind != decode.KindProbe {
			part = s.partOf(f, r)
		}
	}
	switch {
	case path && part < 0:
		s.countPartial(f, r)
	case path:
		f.views, f.flags = 0, f.flags&^viewed
		if part > 0 {
			f.flags |= partial // the known path is a part, and no other path
		}
		short := int(f.hops) < len(r.Hops) && int(f.hops) < s.cfg.MaxPathLength // for want of memory
		if id != f.pathID || f.gen != s.hops.gen || short || f.flags&postcards != 0 || whole == (f.flags&partial != 0) {
			s.setPath(f, slot, r, id)
			if f.flags &^= partial; !whole {
				f.flags |= partial
			}
		}
		if f.flags&arrived != 0 && whole {
			s.arrive(f, slot, r)
		}
		if f.onPath != ^uint32(0) {
			f.onPath++
		}
		if whole && timed(f.inWindow) {
			s.cut.countTimes(r)
		}
		s.countStack(f, r)
	case r.Kind == decode.KindDrop:
		s.countPartial(f, r)
	case len(r.Hops) == 1 && r.INT == 0:
		s.countPostcard(f, slot, r)
	default:
		s.countPartial(f, r)
	}
}

// enter begins the open window of a flow that it has no report in yet.
func (s *State) enter(f *flow, slot uint32, at int64) {
	if at-f.last > s.idle && f.packets != 0 {
		s.restart(slot)
	}
	if s.listArrivals && (f.packets == 0 || s.window-f.window > 1) {
		f.flags |= arrived
	}
	if f.packets == 0 && inference.IsProbe(&s.flows.At(slot).Key) {
		f.flags |= probe
	}
	f.window, f.inWindow, f.fresh = s.window, 0, 0
	s.cut.partial.FlowCount++
}

// countAlone counts the hops of a report without a flow.
func (s *State) countAlone(r *decode.Report) {
	if x := r.Rare; x != nil {
		if x.Histogram.Of != 0 && len(r.Hops) == 1 {
			s.hops.histogram(&s.cut.partial, hopKey(&r.Hops[0]), &x.Histogram)
			return
		}
		if x.Counters.Has != 0 {
			s.cut.partial.AddInterface(&inference.InterfaceStats{Node: r.NodeID, Counters: x.Counters, Samples: 1})
		}
	}
	u := units(r)
	for i := range r.Hops {
		s.hops.record(s.hops.find(hopKey(&r.Hops[i])), u, &r.Hops[i])
	}
}

// countPartial counts the hops of a report without a path. Values of hops on the known path of the flow count there
// too.
func (s *State) countPartial(f *flow, r *decode.Report) {
	u := units(r)
	var space [maxBlocks]uint32
	chain := s.slab.chain(&space, f)
	for i := range r.Hops {
		h := &r.Hops[i]
		k := hopKey(h)
		latency, queue := s.hops.record(s.hops.find(k), u, h)
		known := false
		for i, b := range chain[:f.hops] {
			if p := s.slab.at(b); p.node == k.Node && p.egress == k.EgressIf {
				s.add(f, chain, i, latency, queue)
				known = true
				break
			}
		}
		if !known {
			s.stats.Partial++
		}
	}
}

// sweep forgets idle flows, at a pace that tests each four times an idle timeout.
func (s *State) sweep(now int64) {
	d := now - s.swept
	if s.swept == 0 || d < 0 {
		s.swept = now
		return
	}
	step := int64(s.cfg.IdleTimeout) / 4 / int64(s.flows.Len()+1)
	if d <= step {
		return
	}
	n := d / max(step, 1)
	s.swept = now
	s.flows.Sweep(now, int(min(n, int64(s.flows.Cap()))))
}

// restart forgets a flow that was silent for the idle timeout, as the sweep would have done had it come by. The state
// of a flow must not depend on the number of others. The timeout is checked with the first report of a window, which is
// enough as long as no window is longer than it.
func (s *State) restart(slot uint32) {
	e := s.flows.At(slot)
	s.evicted(slot, e, sketches.EvictedIdle)
	e.Value = flow{}
	s.stats.EvictedIdle++
}

// evicted frees the memory of a flow.
func (s *State) evicted(slot uint32, e *entry, why sketches.Eviction) {
	f := &e.Value
	s.digests.Forget(slot)
	if f.flags&paired != 0 {
		s.pairs.forget(slot)
	}
	if f.top != 0 {
		s.top.release(f)
	}
	var space [maxBlocks]uint32
	for _, b := range s.slab.chain(&space, f) {
		s.slab.release(b)
	}
	if why == sketches.EvictedDeleted {
		s.stats.EvictedPressure++
	}
}

func units(r *decode.Report) *decode.Units {
	if r.Units == nil {
		return &decode.DefaultUnits
	}
	return r.Units
}

// Stats returns the state of the shard.
func (s *State) Stats() Stats {
	st, t := s.stats, s.flows.Stats()
	st.Flows, st.Capacity, st.Hops = t.Entries, t.Capacity, len(s.hops.keys)-1
	st.EvictedIdle, st.EvictedPressure = st.EvictedIdle+t.Idle, st.EvictedPressure+t.Pressure
	st.MemoryBytes = int64(s.flows.Bytes()) + int64(len(s.slab.blocks))*int64(unsafe.Sizeof(block{}))
	st.UsedBytes = int64(st.Flows)*int64(unsafe.Sizeof(entry{})+indexBytes) + int64(s.slab.halves)*int64(unsafe.Sizeof(half{}))
	st.Unsketched += s.top.missed
	st.OtherHops = s.hops.folded + s.hops.open.other + s.hops.open.set.folded
	st.Digests = s.digests.Stats()
	return st
}

// hopKeys appends the places of the path of f.
func (s *State) hopKeys(dst []inference.HopKey, f *flow) []inference.HopKey {
	var space [maxBlocks]uint32
	for _, b := range s.slab.chain(&space, f)[:f.hops] {
		dst = append(dst, s.slab.at(b).key())
	}
	return dst
}
