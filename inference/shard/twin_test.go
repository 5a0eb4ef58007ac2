package shard

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sketches/quantile"
)

type dropKey struct {
	node   uint32
	reason uint8
}

// twin is the oracle of a State: maps, and every value kept.
type twin struct {
	flows      map[decode.FlowKey]*twinFlow
	hops       map[inference.HopKey]*twinHop
	drops      map[dropKey]*inference.DropStats
	paths      []inference.PathChange
	reports    uint64
	maxPath    int
	maxChanges int
	otherPaths uint64
}

type twinFlow struct {
	packets, inWindow, onPath uint64
	last                      int64
	path                      []inference.HopKey
	id                        uint64
	changes                   uint32
	views                     int // of a part, since the path itself
	partial                   bool
	life                      map[inference.HopKey]*twinHop
	window                    map[inference.HopKey]*twinHop
}

type twinHop struct {
	count          uint64
	latency, queue []uint64
	utilization    float64
}

func newTwin(cfg Config) *twin {
	t := &twin{flows: map[decode.FlowKey]*twinFlow{}, maxPath: cfg.MaxPathLength, maxChanges: cfg.MaxPathChanges}
	t.clearWindow()
	return t
}

func (t *twin) clearWindow() {
	t.hops, t.drops, t.paths = map[inference.HopKey]*twinHop{}, map[dropKey]*inference.DropStats{}, nil
	t.reports, t.otherPaths = 0, 0
	for _, f := range t.flows {
		f.inWindow, f.window = 0, map[inference.HopKey]*twinHop{}
	}
}

func (h *twinHop) add(u *decode.Units, d *decode.Hop) {
	h.count++
	if v, ok := u.Latency(d); ok {
		h.latency = append(h.latency, v)
	}
	if v, ok := u.Queue(d); ok {
		h.queue = append(h.queue, v)
	}
	if v, ok := u.Utilization(d); ok {
		h.utilization = max(h.utilization, v)
	}
}

func hopOf(m map[inference.HopKey]*twinHop, k inference.HopKey) *twinHop {
	if m[k] == nil {
		m[k] = &twinHop{}
	}
	return m[k]
}

func (t *twin) update(r *decode.Report) {
	t.reports++
	for i := range r.Hops {
		hopOf(t.hops, hopKey(&r.Hops[i])).add(r.Units, &r.Hops[i])
	}
	if r.Kind == decode.KindDrop {
		k := dropKey{r.NodeID, r.DropReason}
		if t.drops[k] == nil {
			t.drops[k] = &inference.DropStats{Node: k.node, Reason: k.reason}
		}
		d := t.drops[k]
		d.Count++
		if r.Time != d.Last || r.Flow.Compare(&d.Flow) > 0 {
			d.Last, d.Flow = r.Time, r.Flow
		}
	}
	if r.Has&decode.HasFlow == 0 {
		return
	}
	f := t.flows[r.Flow]
	if f == nil {
		f = &twinFlow{life: map[inference.HopKey]*twinHop{}, window: map[inference.HopKey]*twinHop{}}
		t.flows[r.Flow] = f
	}
	f.packets++
	f.inWindow++
	f.last = max(f.last, r.Time)
	isPath, whole := reportsPath(r)
	if isPath && !whole {
		isPath = f.id == 0 || f.partial && (len(r.Hops) > len(f.path) || inference.PathID(r.Hops) == f.id)
	}
	seen := []inference.HopKey{}
	for i := range r.Hops {
		seen = append(seen, hopKey(&r.Hops[i]))
	}
	isPart := isPath && whole && f.id != 0 && !f.partial && r.Kind != decode.KindProbe && len(f.path) < t.maxPath && within(seen, f.path)
	grows := isPath && whole && f.id != 0 && !f.partial && len(f.path) < t.maxPath && within(f.path, seen)
	grows = grows && f.onPath < lasting
	if isPart {
		f.views++
		isPart = f.views < lasting
		isPath = !isPart
	}
	if isPath {
		f.views = 0
		var path []inference.HopKey
		for i := range r.Hops {
			path = append(path, hopKey(&r.Hops[i]))
		}
		path = path[:min(len(path), t.maxPath)]
		id := inference.PathID(r.Hops)
		if f.id != 0 && f.id != id && !f.partial && !grows && r.Kind != decode.KindProbe {
			f.changes++
			if len(t.paths) < t.maxChanges {
				t.paths = append(t.paths, inference.PathChange{Time: r.Time, Flow: r.Flow, From: f.path, To: path, PathID: id, Changes: f.changes, Packets: f.onPath})
			} else {
				t.otherPaths++
			}
		}
		if f.id != id {
			f.onPath = 0
		}
		f.onPath++
		f.path, f.id, f.partial = path, id, !whole
	}
	for i := range r.Hops {
		k := hopKey(&r.Hops[i])
		if slices.Contains(f.path, k) && (!isPath || i < t.maxPath) {
			hopOf(f.life, k).add(r.Units, &r.Hops[i])
			hopOf(f.window, k).add(r.Units, &r.Hops[i])
		}
	}
}

// within reports whether the shorter path a is a part of b, which goes through none of its nodes again.
func within(a, b []inference.HopKey) bool {
	nodes := map[uint32]int{}
	for _, k := range b {
		nodes[k.Node]++
	}
	in := map[uint32]int{}
	for _, k := range a {
		in[k.Node]++
	}
	for n, times := range in {
		if nodes[n] != times {
			return false
		}
	}
	for at := range len(b) - len(a) + 1 {
		if len(a) < len(b) && slices.Equal(a, b[at:at+len(a)]) {
			return true
		}
	}
	return false
}

// exact returns the q-quantile of sorted values: the smallest that the share q of them does not exceed.
func exact(sorted []uint64, q float64) uint64 {
	return sorted[max(int(math.Ceil(q*float64(len(sorted)))), 1)-1]
}

// near checks a summary of a histogram, whose quantiles are within its relative error.
func near(t *testing.T, what string, got inference.Summary, values []uint64) {
	t.Helper()
	if got.Count != uint64(len(values)) {
		t.Fatalf("%s: %d values, want %d", what, got.Count, len(values))
	}
	if len(values) == 0 {
		return
	}
	s := slices.Sorted(slices.Values(values))
	for _, c := range []struct {
		got  uint64
		want uint64
	}{{got.P50, exact(s, 0.5)}, {got.P90, exact(s, 0.9)}, {got.P99, exact(s, 0.99)}, {got.Max, s[len(s)-1]}} {
		if d := math.Abs(float64(c.got) - float64(c.want)); d > quantile.DenseRelativeError*float64(c.want) {
			t.Fatalf("%s: quantile %d of %d values, want %d", what, c.got, len(s), c.want)
		}
	}
}

// sketched checks a summary of a 120-byte sketch. It is exact as long as all values fit, and later within a rank error
// of 0.15. Such a sketch exceeds that by far more rarely than once in a million.
func sketched(t *testing.T, what string, got inference.Summary, values []uint64) {
	t.Helper()
	if got.Count != uint64(len(values)) {
		t.Fatalf("%s: %d values, want %d", what, got.Count, len(values))
	}
	if len(values) == 0 {
		return
	}
	s := slices.Sorted(slices.Values(values))
	code := func(v uint64) uint64 { return quantile.Decode(quantile.Encode(v)) }
	if want := code(s[len(s)-1]); got.Max != want {
		t.Fatalf("%s: largest %d, want %d", what, got.Max, want)
	}
	for _, c := range []struct {
		got uint64
		q   float64
	}{{got.P50, 0.5}, {got.P90, 0.9}, {got.P99, 0.99}} {
		slack := 0.15
		if len(s) <= 40 {
			slack = 0
		}
		lo, hi := code(exact(s, max(c.q-slack, 0))), code(exact(s, min(c.q+slack, 1)))
		if slack != 0 { // cells of the sketch are up to an eighth of an octave wide
			lo, hi = lo-lo/10, hi+hi/10
		}
		if c.got < lo || c.got > hi {
			t.Fatalf("%s: q%g = %d of %d values, want %d to %d", what, c.q, c.got, len(s), lo, hi)
		}
	}
}

func (t *twin) check(tt *testing.T, w *inference.Window, topFlows int) {
	tt.Helper()
	seen := 0
	for _, f := range t.flows {
		if f.inWindow > 0 {
			seen++
		}
	}
	if w.Reports != t.reports || w.OtherPaths != t.otherPaths || w.FlowCount != seen || w.OtherHops != 0 {
		tt.Fatalf("window of %d reports, %d flows, %d and %d folded, want %d, %d, %d, 0",
			w.Reports, w.FlowCount, w.OtherPaths, w.OtherHops, t.reports, seen, t.otherPaths)
	}
	if len(w.Hops) != len(t.hops) || !slices.IsSortedFunc(w.Hops, func(a, b inference.HopStats) int { return a.HopKey.Compare(b.HopKey) }) {
		tt.Fatalf("%d hops, want %d in order", len(w.Hops), len(t.hops))
	}
	for _, h := range w.Hops {
		want := t.hops[h.HopKey]
		if want == nil || h.Count != want.count || h.Utilization != want.utilization || h.HasUtilization != (want.utilization > 0) {
			tt.Fatalf("hop %+v, want %+v", h, want)
		}
		near(tt, "hop latency", h.Latency, want.latency)
		near(tt, "hop queue", h.Queue, want.queue)
	}
	if !reflect.DeepEqual(w.Paths, t.paths) && len(w.Paths)+len(t.paths) > 0 {
		tt.Fatalf("path changes\n%+v\nwant\n%+v", w.Paths, t.paths)
	}
	if len(w.Drops) != len(t.drops) {
		tt.Fatalf("%d drops, want %d", len(w.Drops), len(t.drops))
	}
	for _, d := range w.Drops {
		if want := t.drops[dropKey{d.Node, d.Reason}]; want == nil || d != *want {
			tt.Fatalf("drop %+v, want %+v", d, want)
		}
	}

	var counts []uint64
	for _, f := range t.flows {
		if f.inWindow > 0 {
			counts = append(counts, f.inWindow)
		}
	}
	slices.SortFunc(counts, func(a, b uint64) int { return cmp.Compare(b, a) })
	counts = counts[:min(topFlows, len(counts))]
	if len(w.Flows) != len(counts) {
		tt.Fatalf("%d flows listed, want %d", len(w.Flows), len(counts))
	}
	for i, f := range w.Flows {
		want := t.flows[f.Key]
		if want == nil || f.Packets != counts[i] || f.Packets != want.inWindow || f.Last != want.last || f.PathID != want.id || f.Changes != want.changes {
			tt.Fatalf("flow %d in order: %+v, want %d packets, %+v", i, f, counts[i], want)
		}
		if len(f.Hops) != len(want.path) {
			tt.Fatalf("flow %v: %d hops, want %d", f.Key, len(f.Hops), len(want.path))
		}
		for j, h := range f.Hops {
			v := hopOf(want.window, want.path[j])
			if h.HopKey != want.path[j] || h.Latency.Count > uint64(len(v.latency)) {
				tt.Fatalf("flow %v, hop %d: %+v, want %v with at most %d values", f.Key, j, h, want.path[j], len(v.latency))
			}
			if h.Latency.Count == uint64(len(v.latency)) { // all of the window, as for most flows
				near(tt, "flow latency", h.Latency, v.latency)
			}
		}
	}
}

func (t *twin) checkFlows(tt *testing.T, flows []inference.FlowStats) {
	tt.Helper()
	if len(flows) != len(t.flows) {
		tt.Fatalf("%d flows, want %d", len(flows), len(t.flows))
	}
	for i, f := range flows {
		want := t.flows[f.Key]
		if want == nil || f.Packets != want.packets || f.Last != want.last || f.PathID != want.id || f.Changes != want.changes || len(f.Hops) != len(want.path) {
			tt.Fatalf("flow %+v, want %+v", f, want)
		}
		if i > 0 && flows[i-1].Packets < f.Packets {
			tt.Fatalf("flow %d is busier than the one before", i)
		}
		if want.changes > 0 {
			continue // sketches of hops that were off the path for long begin anew
		}
		for j, h := range f.Hops {
			v := hopOf(want.life, want.path[j])
			sketched(tt, "latency", h.Latency, v.latency)
			if h.Queue.Count != 0 {
				tt.Fatalf("flow %v has queues: %+v", want, h.Queue)
			}
		}
	}
}

// traffic makes random reports: complete stacks over paths that change now and then, incomplete ones, drops, and
// reports without hops or without a flow.
type traffic struct {
	rng   *rand.Rand
	paths map[int][]decode.Hop
	now   int64
	flows int
	base  uint32 // of the numbers of flows
	long  bool
}

func flowKey(n uint32) decode.FlowKey {
	return decode.FlowKey{
		Src: decode.AddrFrom4(binary.BigEndian.AppendUint32(nil, 10<<24|n)), Dst: decode.AddrFrom4([]byte{10, 255, 0, 1}),
		SrcPort: uint16(n), DstPort: 80, Proto: 6, IPVersion: 4,
	}
}

func (g *traffic) path() (hops []decode.Hop) {
	n := 1 + g.rng.IntN(7)
	if g.long && g.rng.IntN(3) == 0 {
		n = 8 + g.rng.IntN(30)
	}
	for i := range n {
		h := decode.Hop{Has: decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf, NodeID: uint32(100*i + g.rng.IntN(4)),
			IngressIf: uint16(g.rng.IntN(3)), EgressIf: uint16(1 + g.rng.IntN(3))}
		if g.rng.IntN(10) == 0 {
			h.Has = decode.HopNodeID | decode.HopL2EgressIf
			h.IngressIf, h.EgressIf, h.L2EgressIf = 0, 0, 100000+uint32(g.rng.IntN(3))
		}
		hops = append(hops, h)
	}
	return hops
}

func (g *traffic) next() *decode.Report {
	rng := g.rng
	g.now += int64(rng.IntN(1000))
	id := int(float64(g.flows) * math.Pow(rng.Float64(), 3)) // some are much busier
	r := &decode.Report{Time: g.now, Format: decode.TelemetryReport, Kind: decode.KindStack, INT: decode.V21, Flow: flowKey(g.base + uint32(id)),
		Has: decode.HasFlow | decode.HasNodeID, NodeID: uint32(rng.IntN(5)), Units: &decode.Units{LatencyNS: 10, TimeNS: 1, QueueBytes: 80, TxFullScale: 100, LatencyCalc: true}}
	if g.paths[id] == nil || rng.IntN(200) == 0 {
		g.paths[id] = g.path()
	}
	r.Hops = slices.Clone(g.paths[id])
	for i := range r.Hops {
		h := &r.Hops[i]
		if rng.IntN(20) != 0 {
			h.Has |= decode.HopLatency
			h.Latency = uint32(1000 * (i + 1) * (1 + int(rng.ExpFloat64()*3)))
		} else {
			h.Has |= decode.HopIngressTime | decode.HopEgressTime
			h.TimeBits, h.IngressTime, h.EgressTime = 32, rng.Uint64N(1<<32), rng.Uint64N(1<<32)
		}
		if rng.IntN(5) != 0 {
			h.Has |= decode.HopQueueOccupancy | decode.HopTxUtilization
			h.QueueOccupancy, h.TxUtilization = uint32(rng.IntN(100)*rng.IntN(100)), uint32(1+rng.IntN(100))
		}
	}
	switch rng.IntN(40) {
	case 0:
		r.Flags = []decode.Flags{decode.Truncated, decode.HopLimit, decode.MTU, decode.Transit}[rng.IntN(4)]
		r.Hops = r.Hops[:rng.IntN(len(r.Hops)+1)]
	case 1:
		r.Kind, r.Flags, r.DropReason, r.Has = decode.KindDrop, decode.Dropped, uint8(rng.IntN(3)), r.Has|decode.HasDropReason
		r.Hops = r.Hops[:1]
	case 2:
		r.Kind, r.Hops = decode.KindInstruction, nil
	case 3:
		r.Flow, r.Has = decode.FlowKey{}, r.Has&^decode.HasFlow
	case 4:
		r.Kind, r.Flags = decode.KindQueue, decode.Congested
	}
	return r
}

func testConfig() Config {
	cfg := DefaultConfig()
	cfg.MemoryBytes, cfg.TopFlows, cfg.IdleTimeout = 8<<20, 20, time.Hour
	return cfg
}

// shards is a set of states that share the flows as a collector shares them out.
type shards []*State

func newShards(n int, cfg Config, seed uint64) (s shards) {
	for range n {
		s = append(s, New(cfg, seed))
	}
	return s
}

func (s shards) update(seed uint64, reports []*decode.Report) {
	parts := make([][]*decode.Report, len(s))
	key := decode.NewHashKey(seed)
	for _, r := range reports {
		i := (key.Flow(&r.Flow) >> 32) * uint64(len(s)) >> 32
		parts[i] = append(parts[i], r)
	}
	for i, st := range s {
		st.Update(parts[i])
	}
}

// windowOf makes a window of cuts, with the given number of busiest flows and all else that they list.
func windowOf(topFlows int, cuts ...*Cut) inference.Window {
	var p window.Partial
	for _, c := range cuts {
		c.AddTo(&p)
	}
	return p.Window(window.Limits{Flows: topFlows, Paths: 1e9, Drops: 1e9, Faults: 1e9})
}

// cut merges the cuts of all shards, in the order of perm.
func (s shards) cut(end int64, topFlows int, perm []int) inference.Window {
	cuts := make([]*Cut, len(s))
	for i, j := range perm {
		cuts[i] = s[j].Cut(end)
	}
	w := windowOf(topFlows, cuts...)
	for i, j := range perm {
		s[j].Recycle(cuts[i])
	}
	return w
}

// TestTwin compares with the twin over random traffic, for one shard and for several.
func TestTwin(t *testing.T) {
	for seed := range uint64(testkit.Rounds(30, 30)) {
		cfg := testConfig()
		g := &traffic{rng: rand.New(rand.NewPCG(seed, 1)), paths: map[int][]decode.Hop{}, flows: 1 + int(seed)*20, long: seed%2 == 1, now: 1}
		cfg.MaxPathLength = []int{32, 10, 5}[seed%3]
		cfg.MaxPathChanges = []int{1000, 20}[seed/4%2]
		n := 1 + int(seed)%4
		if n > 1 {
			cfg.MaxPathChanges = 100000 // each shard has its own list
		}
		s, tw := newShards(n, cfg, seed), newTwin(cfg)
		for range 4 {
			var batch []*decode.Report
			for range 2000 + g.rng.IntN(3000) {
				r := g.next()
				batch = append(batch, r)
				tw.update(r)
				if g.rng.IntN(100) == 0 {
					s.update(seed, batch)
					batch = batch[:0]
				}
			}
			s.update(seed, batch)
			w := s.cut(g.now, cfg.TopFlows, g.rng.Perm(n))
			t.Logf("seed %d, %d shards", seed, n)
			tw.check(t, &w, cfg.TopFlows)
			tw.clearWindow()
		}
		var flows []inference.FlowStats
		for _, st := range s {
			flows = append(flows, st.Flows(10000)...)
			if x := st.Stats(); x.EvictedIdle+x.EvictedPressure+x.Refused+x.Unsketched+x.OtherHops != 0 {
				t.Errorf("seed %d: stats %+v", seed, x)
			}
		}
		slices.SortStableFunc(flows, func(a, b inference.FlowStats) int { return cmp.Compare(b.Packets, a.Packets) })
		tw.checkFlows(t, flows)
	}
}
