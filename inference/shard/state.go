package shard

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches/flowtable"
	"github.com/hopscope/hopscope/sketches/kll"
	"github.com/hopscope/hopscope/sketches/logcode"
)

// batchSize is how many reports are looked up together, so that their cache misses overlap.
const batchSize = 128

// State is what one shard knows. It has one owner and takes no lock.
type State struct {
	cfg     Config
	seed    uint64
	idle    int64 // the idle timeout, ns
	rng     kll.Rand
	flows   *table
	slab    slab
	hops    hopTable
	top     topFlows
	cut     *Cut // the open window
	spare   *Cut
	window  uint32 // number of the open window
	stats   Stats
	digests *digests // nil unless ReadDigests was called
	hand    uint32   // next flow to look at when blocks run out
	swept   int64    // time of the last look for idle flows

	hashes  [batchSize]uint64
	keys    [batchSize]decode.FlowKey
	slots   [batchSize]uint32
	reports [batchSize]*decode.Report
	counts  [maxCounts]uint32 // counters of the open window that wait to be counted
	counted int               // how many
	passed  [inline]uint16    // codes of a report that its flow does not take
	touched uint64            // sum of what was read ahead, so that the reads are not optimised away
}

// Stats is the state of a shard and what it counted since New.
type Stats struct {
	Flows           int    // in the table
	Capacity        int    // flows that there is room for
	Hops            int    // in the table of hops
	MemoryBytes     int64  // taken for flows and their sketches, whether in use or not
	EvictedIdle     uint64 // flows not seen for the idle timeout
	EvictedPressure uint64 // flows that made place for others
	OtherHops       uint64 // hop records folded into the hop "other"
	NoFlow          uint64 // reports that name no flow, counted for their hops alone
	Refused         uint64 // reports of flows that found no place, counted for their hops alone
	LongPaths       uint64 // hop records beyond the maximum path length, counted for their hops alone
	Unsketched      uint64 // hop records that no memory was left for in the sketches of their flow
	Digests         DigestStats
	Partial         uint64 // hop records of incomplete stacks that are on no known path of their flow
}

// New takes the memory of a shard. cfg must be valid. The seed makes the hashes of flows unpredictable and draws the
// coins of the sketches.
func New(cfg Config, seed uint64) *State {
	per := int64(cfg.flowBytes())
	n := cfg.MemoryBytes / per
	s := &State{
		cfg: cfg, seed: seed, idle: int64(cfg.IdleTimeout), rng: kll.Rand(seed),
		hops: newHopTable(cfg.MaxHops, seed),
		top:  newTopFlows(cfg.TopFlows),

		window: 1, // a flow that is new was in none
	}
	var err error
	s.flows, err = flowtable.New(flowtable.Config{
		MemoryBytes: int(n * (int64(unsafe.Sizeof(entry{})) + 12)), IdleTimeout: cfg.IdleTimeout,
	}, s.evicted)
	if err != nil {
		panic(fmt.Sprintf("shard.New with a configuration that does not validate: %v", err))
	}
	s.slab = newSlab(int((cfg.MemoryBytes-int64(s.flows.Bytes()))/int64(unsafe.Sizeof(block{}))) - 1)
	s.cut = s.newCut()
	return s
}

// Update counts reports that were read to their end. It keeps nothing of them.
func (s *State) Update(reports []*decode.Report) {
	for len(reports) > 0 {
		n := 0
		for n < len(s.reports) && len(reports) > 0 {
			r := reports[0]
			reports = reports[1:]
			s.cut.reports++
			if r.Has&decode.HasFlow == 0 {
				s.stats.NoFlow++
				s.countAlone(r)
				continue
			}
			s.reports[n], s.keys[n] = r, r.Flow
			n++
		}
		if n > 0 {
			s.update(n)
		}
	}
}

// update counts the first n reports of s.reports, in four passes that each read another place of memory.
func (s *State) update(n int) {
	reports, slots := s.reports[:n], s.slots[:n]
	now := reports[0].Time
	for i, r := range reports {
		s.hashes[i] = tableHash(&s.keys[i], s.seed)
		now = max(now, r.Time)
	}
	s.flows.FindAll(s.hashes[:n], s.keys[:n], now, slots, nil)
	s.readAhead(slots)
	for i, slot := range slots {
		if slot == flowtable.None {
			s.stats.Refused++
			s.countAlone(reports[i])
			continue
		}
		s.count(reports[i], slot)
	}
	s.countHops()
	s.sweep(now)
}

// maxCounts is how many counters are counted together.
const maxCounts = 1024

// countHops counts what waits for it.
func (s *State) countHops() {
	s.cut.hops.set.count(s.counts[:s.counted])
	s.counted = 0
}

// tableHash turns the halves of the hash around: collectors choose the shard by the upper half, and the table looks at
// the upper half too.
func tableHash(k *decode.FlowKey, seed uint64) uint64 { return bits.RotateLeft64(k.Hash(seed), 32) }

// readAhead reads the lines that counting will need, independently of each other.
func (s *State) readAhead(slots []uint32) {
	var sum uint64
	for _, slot := range slots {
		if slot == flowtable.None {
			continue
		}
		f := &s.flows.At(slot).Value
		if f.shift == 0 {
			at := int(f.buffered) * int(f.hops)
			sum += uint64(f.codes[min(at, bufferCodes-1)])
		} else {
			sum += uint64(f.peak[0])
		}
		if (f.seen+1)&f.mask() == 0 && f.full(1) {
			for _, b := range f.block[:min(f.hops, inline)] {
				p := &s.slab.blocks[b]
				sum += uint64(p.node) + p.latency.Count()
			}
		}
	}
	s.touched = sum
}

// full reports whether n reports more fill the buffer.
func (f *flow) full(n uint8) bool { return f.buffered+n >= bufferReports[f.hops] }

// bufferReports is how many reports are buffered, by the length of the path: as many as there is room for, but whole
// batches of 16, which the sketches like best.
var bufferReports = func() (n [maxPathLength + 1]uint8) {
	n[0] = 255
	for hops := 1; hops < len(n); hops++ {
		n[hops] = uint8(min(bufferCodes/hops, 240))
		if n[hops] > 16 {
			n[hops] &^= 15
		}
	}
	return n
}()

// count counts a report for its flow and its hops.
func (s *State) count(r *decode.Report, slot uint32) {
	f := &s.flows.At(slot).Value
	if r.Time-f.last > s.idle && f.packets != 0 {
		s.restart(slot)
	}
	f.packets++
	f.last = max(f.last, r.Time)
	if f.window != s.window {
		f.window, f.inWindow, f.fresh = s.window, 0, 0
		s.cut.flows++
	}
	f.inWindow++
	if f.inWindow > s.top.threshold && f.top == 0 {
		s.admit(f, slot)
	}
	if r.Flags&decode.Loop != 0 {
		s.cut.faults.count(r, inference.Looping)
	}
	if r.Has&decode.HasDigest != 0 {
		s.countDigest(f, slot, r)
		return
	}
	path, whole := tellsPath(r)
	if path && !whole {
		// Part of a path is better than none, and a longer part better than a shorter one.
		path = f.pathID == 0 || f.flags&partial != 0 && (len(r.Hops) > int(f.hops) || pathID(r.Hops) == f.pathID)
	}
	switch {
	case path:
		id := pathID(r.Hops)
		short := int(f.hops) < len(r.Hops) && int(f.hops) < s.cfg.MaxPathLength // for want of memory
		if id != f.pathID || f.gen != s.hops.gen || short || f.flags&postcards != 0 || whole == (f.flags&partial != 0) {
			s.setPath(f, slot, r, id)
			if f.flags &^= partial; !whole {
				f.flags |= partial
			}
		}
		if f.onPath != ^uint32(0) {
			f.onPath++
		}
		s.countStack(f, r)
	case r.Kind == decode.KindDrop:
		s.cut.drops.count(r)
		s.countPartial(f, r)
	case len(r.Hops) == 1 && r.INT == 0:
		s.countPostcard(f, slot, r)
	default:
		s.countPartial(f, r)
	}
}

// countStack counts a report whose path is that of the flow.
func (s *State) countStack(f *flow, r *decode.Report) {
	u := units(r)
	kept := int(f.hops)
	if f.top != 0 {
		s.countTopQueues(f, r.Hops[:min(kept, len(r.Hops))], u)
	}
	var codes []uint16
	if f.taken() {
		at := int(f.buffered) * kept
		codes = f.codes[at : at+kept]
	} else {
		codes = s.passed[:kept]
	}
	i := s.countPlain(f, r.Hops, u, codes)
	gap, link := false, uint32(0)
	if i >= inline && kept > inline {
		link = f.block[inline-1]
	}
	for ; i < len(r.Hops); i++ {
		h := &r.Hops[i]
		var ref uint16
		switch {
		case i >= kept:
			ref = s.hops.find(hopKey(h))
			s.skipped(i)
		case i < inline:
			ref = f.refs[i]
			link = f.block[i]
		default: // long paths go from block to block
			link = s.slab.blocks[link].next
			ref = s.slab.blocks[link].ref
		}
		latency, _ := s.countHop(ref, u, h)
		if i < kept {
			codes[i] = latency
			gap = gap || latency == absent
		}
	}
	if f.shift != 0 {
		if !gap {
			s.countSampled(f, codes)
			return
		}
		s.flush(f)
		f.takeAll()
		copy(f.codes[:], codes)
	}
	if gap {
		f.flags |= gaps
	}
	f.buffered++
	f.fresh++
	if f.full(0) {
		s.flush(f)
	}
}

// countSampled counts a report of a flow that takes one of 2^shift. What it does not take leaves nothing but its largest
// codes.
func (s *State) countSampled(f *flow, codes []uint16) {
	if f.taken() {
		f.buffered++
	} else {
		for i, c := range codes {
			f.peak[i%inline] = max(f.peak[i%inline], c)
		}
	}
	if f.seen++; f.seen&f.mask() != 0 {
		return
	}
	f.pick = uint16(s.rng.Next()) & uint16(f.mask())
	if f.full(0) {
		s.flush(f)
	}
}

// countPlain counts the first hops of a path as long as they are what most hops are: one of the flow's first ones, in
// the table, with a latency and a queue occupancy and nothing more to count, of an octave that has its page. It does
// what countHop does, and gives the number of hops that it did it for.
func (s *State) countPlain(f *flow, hops []decode.Hop, u *decode.Units, codes []uint16) (i int) {
	const want, not = decode.HopLatency | decode.HopQueueOccupancy, decode.HopTxUtilization
	n := s.counted
	if n+2*inline > len(s.counts) {
		s.countHops()
		n = 0
	}
	hops = hops[:min(len(hops), len(codes), inline)]
	set := s.cut.hops.set.hops
	for i = range hops {
		h, ref := &hops[i], f.refs[i%inline]
		if h.Has&(want|not) != want || ref == other {
			s.counted = n
			return i
		}
		ns, bytes := uint64(h.Latency)*u.LatencyNS, uint64(h.QueueOccupancy)*u.QueueBytes
		codes[i] = logcode.Encode(ns)
		l, q := logcode.EncodeDense(ns), logcode.EncodeDense(bytes)
		w := &set[ref]
		lp, qp := uint32(w.page[l/pageCounters][latencyPages]), uint32(w.page[q/pageCounters][queuePages])
		if lp == 0 || qp == 0 {
			s.counted = n
			return i
		}
		group := uint32(ref) / groupHops << groupBits
		s.counts[n%maxCounts] = group | lp*pageCounters | uint32(l%pageCounters)
		s.counts[(n+1)%maxCounts] = group | qp*pageCounters | uint32(q%pageCounters)
		n += 2
	}
	s.counted = n
	return len(hops)
}

// skipped counts a hop record, the i-th of its path, that has no sketch in its flow.
func (s *State) skipped(i int) {
	if i < s.cfg.MaxPathLength {
		s.stats.Unsketched++
	} else {
		s.stats.LongPaths++
	}
}

// countTopQueues counts the queues of one of the busiest flows. Their latencies are counted when the buffer is flushed.
func (s *State) countTopQueues(f *flow, hops []decode.Hop, u *decode.Units) {
	for i := range hops {
		if bytes, ok := u.Queue(&hops[i]); ok {
			s.top.hop(f, hopKey(&hops[i])).Queue.Add(logcode.EncodeDense(bytes))
		}
	}
}

// countHop counts one hop record in the window and gives the codes of latency and queue.
func (s *State) countHop(ref uint16, u *decode.Units, h *decode.Hop) (latency, queue uint16) {
	if s.counted+2 > len(s.counts) {
		s.countHops()
	}
	set := &s.cut.hops.set
	w := &set.hops[ref]
	latency, queue = absent, absent
	ns, ok := uint64(h.Latency)*u.LatencyNS, true
	if h.Has&decode.HopLatency == 0 {
		ns, ok = u.Latency(h)
	}
	n := s.counted
	if ok {
		latency = logcode.Encode(ns)
		s.counts[n%maxCounts] = set.counter(ref, w, latencyPages, logcode.EncodeDense(ns))
		n++
	} else {
		w.noLatency++
		w.used = true
	}
	if h.Has&decode.HopQueueOccupancy != 0 {
		bytes := uint64(h.QueueOccupancy) * u.QueueBytes
		queue = logcode.Encode(bytes)
		s.counts[n%maxCounts] = set.counter(ref, w, queuePages, logcode.EncodeDense(bytes))
		n++
	}
	s.counted = n
	if h.Has&decode.HopTxUtilization != 0 {
		if v, ok := u.Utilization(h); ok {
			w.utilization, w.hasUtilization = max(w.utilization, v), true
		}
	}
	if ref == other {
		s.cut.hops.other++
	}
	return latency, queue
}

// countAlone counts the hops of a report without a flow.
func (s *State) countAlone(r *decode.Report) {
	u := units(r)
	for i := range r.Hops {
		s.countHop(s.hops.find(hopKey(&r.Hops[i])), u, &r.Hops[i])
	}
	if r.Kind == decode.KindDrop {
		s.cut.drops.count(r)
	}
}

// countPartial counts the hops of a report that does not tell a path. What belongs to hops on the known path of the
// flow counts there too.
func (s *State) countPartial(f *flow, r *decode.Report) {
	u := units(r)
	var space [maxBlocks]uint32
	chain := s.slab.chain(&space, f)[:f.hops]
	for i := range r.Hops {
		h := &r.Hops[i]
		k := hopKey(h)
		latency, queue := s.countHop(s.hops.find(k), u, h)
		known := false
		for _, b := range chain {
			if p := &s.slab.blocks[b]; p.node == k.Node && p.egress == k.EgressIf {
				s.add(f, p, latency, queue)
				known = true
				break
			}
		}
		if !known {
			s.stats.Partial++
		}
	}
}

// add counts codes in the sketches of a hop without going through the flow's buffer.
func (s *State) add(f *flow, b *block, latency, queue uint16) {
	var t *inference.HopSketch
	if f.top != 0 {
		t = s.top.hop(f, b.key())
	}
	if latency != absent {
		b.latency.Update(latency, &s.rng)
		if t != nil {
			t.Latency.Add(logcode.Dense(latency))
		}
	}
	if queue != absent && t != nil {
		t.Queue.Add(logcode.Dense(queue))
	}
}

// flush moves the codes in the buffer to the sketches of the hops. From then on, the flow takes of its reports what the
// sketches would take of their codes: deciding for all hops at once spares most reports of a busy flow the way into the
// buffer. Flows with gaps are not sampled, for then the hops would not have the same number of values; nor are
// candidates for the busiest ones, whose histograms want every value.
func (s *State) flush(f *flow) {
	if f.buffered == 0 && f.seen == 0 {
		return
	}
	old := int(f.buffered) // how many of the reports are of earlier windows
	if f.window == s.window {
		old -= int(f.fresh)
	}
	var space [maxBlocks]uint32
	var memory [bufferCodes]uint16
	shift := uint8(maxShift)
	for i, b := range s.slab.chain(&space, f)[:f.hops] {
		p := &s.slab.blocks[b]
		codes := f.column(&memory, i)
		if f.top != 0 {
			addDense(&s.top.hop(f, p.key()).Latency, codes[old:])
		}
		f.feed(&p.latency, codes, i, &s.rng)
		shift = min(shift, p.latency.Base())
	}
	if f.top != 0 || f.hops == 0 || f.hops > inline || f.flags&gaps != 0 {
		shift = 0
	}
	f.buffered, f.fresh = 0, 0
	f.flags &^= gaps
	f.takeAll()
	if shift != 0 {
		f.shift, f.pick = shift, uint16(s.rng.Next())&(1<<shift-1)
		f.peak = [inline]uint16{}
	}
}

func addDense(h *logcode.Histogram, codes []uint16) {
	for _, c := range codes {
		if c != absent {
			h.Add(logcode.Dense(c))
		}
	}
}

// sweep forgets idle flows, at a pace that looks at each four times an idle timeout.
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

// restart forgets a flow that was silent for the idle timeout, as the sweep would have done had it come by: what becomes
// of a flow must not depend on how many others there are.
func (s *State) restart(slot uint32) {
	e := s.flows.At(slot)
	s.evicted(slot, e, flowtable.Idle)
	e.Value = flow{}
	s.stats.EvictedIdle++
}

// evicted gives back what a flow holds.
func (s *State) evicted(slot uint32, e *entry, why flowtable.Reason) {
	f := &e.Value
	if s.digests != nil {
		s.digests.forget(slot)
	}
	if f.top != 0 {
		s.top.release(f)
	}
	var space [maxBlocks]uint32
	for _, b := range s.slab.chain(&space, f) {
		s.slab.give(b)
	}
	if why == flowtable.Deleted {
		s.stats.EvictedPressure++
	}
}

func units(r *decode.Report) *decode.Units {
	if r.Units == nil {
		return &decode.DefaultUnits
	}
	return r.Units
}

// Stats tells the state of the shard.
func (s *State) Stats() Stats {
	st, t := s.stats, s.flows.Stats()
	st.Flows, st.Capacity, st.Hops = t.Entries, t.Capacity, len(s.hops.keys)-1
	st.EvictedIdle, st.EvictedPressure = st.EvictedIdle+t.Idle, st.EvictedPressure+t.Pressure
	st.MemoryBytes = int64(s.flows.Bytes()) + int64(len(s.slab.blocks))*int64(unsafe.Sizeof(block{}))
	st.OtherHops += s.cut.hops.other
	st.Digests = s.digestTotals()
	return st
}

// hopKeys appends the places of the path of f.
func (s *State) hopKeys(dst []inference.HopKey, f *flow) []inference.HopKey {
	var space [maxBlocks]uint32
	for _, b := range s.slab.chain(&space, f)[:f.hops] {
		dst = append(dst, s.slab.blocks[b].key())
	}
	return dst
}
