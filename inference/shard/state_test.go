package shard

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

func hop(node uint32, egress uint16, latency uint32) decode.Hop {
	return decode.Hop{Has: decode.HopNodeID | decode.HopEgressIf | decode.HopLatency | decode.HopQueueOccupancy,
		NodeID: node, EgressIf: egress, Latency: latency, QueueOccupancy: latency / 10}
}

func stack(flow uint32, at int64, hops ...decode.Hop) *decode.Report {
	return &decode.Report{Time: at, Kind: decode.KindStack, INT: decode.V21, Flow: flowKey(flow), Has: decode.HasFlow,
		Units: &decode.DefaultUnits, Hops: hops}
}

func postcard(flow uint32, at int64, node uint32, ttl uint8) *decode.Report {
	r := stack(flow, at, hop(node, 1, 1000*node))
	r.Kind, r.INT = decode.KindPostcard, 0
	if ttl != 0 {
		r.TTL, r.Has = ttl, r.Has|decode.HasTTL
	}
	return r
}

func cutOne(s *State, end int64) inference.Window {
	c := s.Cut(end)
	w := windowOf(s.cfg.TopFlows, c)
	s.Recycle(c)
	return w
}

func nodes(f inference.FlowStats) (n []uint32) {
	for _, h := range f.Hops {
		n = append(n, h.Node)
	}
	return n
}

func pathNodes(keys []inference.HopKey) (n []uint32) {
	for _, k := range keys {
		n = append(n, k.Node)
	}
	return n
}

// TestPostcards puts paths together from reports of one hop.
func TestPostcards(t *testing.T) {
	type card struct {
		node uint32
		ttl  uint8
	}
	path := func(times int, cards ...card) (out []card) { return slices.Repeat(cards, times) }
	tests := []struct {
		name    string
		cards   []card
		want    []uint32
		changes []string // from > to
	}{
		{"by falling TTL", path(1, card{3, 62}, card{1, 64}, card{2, 63}), []uint32{1, 2, 3}, nil},
		{"without TTL as they come", path(3, card{3, 0}, card{1, 0}, card{2, 0}), []uint32{3, 1, 2}, nil},
		{"unknown TTL behind the others", path(1, card{9, 0}, card{2, 63}, card{1, 64}), []uint32{1, 2, 9}, nil},
		{"same TTL everywhere", path(50, card{3, 64}, card{1, 64}, card{2, 64}, card{4, 64}, card{5, 64}), []uint32{3, 1, 2, 4, 5}, nil},
		{"one stray hop changes nothing that was there", append(path(5, card{1, 64}, card{2, 63}, card{3, 62}), card{8, 63}), []uint32{1, 2, 8, 3}, nil},
		{"another hop takes over", append(path(5, card{1, 64}, card{2, 63}, card{3, 62}), path(8, card{1, 64}, card{8, 63}, card{3, 62})...),
			[]uint32{1, 8, 3}, []string{"[1 2 8 3] > [1 8 3]"}},
		{"both come in turn", append(path(5, card{1, 64}, card{2, 63}), path(50, card{8, 63}, card{2, 63})...), []uint32{1, 2, 8}, nil},
		{"path becomes longer", append(path(5, card{1, 64}, card{2, 63}, card{3, 62}), path(9, card{1, 64}, card{7, 63}, card{8, 62}, card{3, 61})...),
			[]uint32{1, 7, 8, 3}, []string{"[1 2 7 8 3] > [1 7 8 3]"}},
		{"path becomes shorter", append(path(5, card{1, 64}, card{2, 63}, card{3, 62}), path(9, card{1, 64}, card{3, 63})...),
			[]uint32{1, 3}, []string{"[1 2 3] > [1 3]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := New(testConfig(), 1)
			for i, c := range tt.cards {
				s.Update([]*decode.Report{postcard(1, int64(i+1), c.node, c.ttl)})
			}
			var changes []string
			for _, c := range cutOne(s, 1000).Paths {
				changes = append(changes, strings.Join([]string{text(pathNodes(c.From)), text(pathNodes(c.To))}, " > "))
			}
			f := s.Flows(1)[0]
			if got := nodes(f); !slices.Equal(sorted(got, tt.want), tt.want) || !slices.Equal(changes, tt.changes) {
				t.Errorf("path %v, changes %q, want %v, %q", got, changes, tt.want, tt.changes)
			}
			if int(f.Changes) != len(tt.changes) || f.Packets != uint64(len(tt.cards)) || f.PathID == 0 {
				t.Errorf("flow %+v", f)
			}
		})
	}
}

// sorted orders hops of the same TTL, whose order is free, as want has them.
func sorted(got, want []uint32) []uint32 {
	if len(got) == len(want) && len(got) == 4 && got[1] != want[1] && got[1] == want[2] && got[2] == want[1] {
		got[1], got[2] = got[2], got[1]
	}
	return got
}

func text(n []uint32) string {
	b := []byte{'['}
	for i, v := range n {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, byte('0'+v))
	}
	return string(append(b, ']'))
}

// A stack has the whole path and makes postcards of the same flow mere values.
func TestPostcardsThenStack(t *testing.T) {
	s := New(testConfig(), 1)
	s.Update([]*decode.Report{
		postcard(1, 1, 2, 63), postcard(1, 2, 1, 64),
		stack(1, 3, hop(1, 1, 1000), hop(2, 1, 2000), hop(3, 1, 3000)),
		postcard(1, 4, 3, 62), postcard(1, 5, 9, 61),
	})
	w := cutOne(s, 10)
	f := s.Flows(1)[0]
	if got := nodes(f); !slices.Equal(got, []uint32{1, 2, 3}) || len(w.Paths) != 0 || f.Changes != 0 {
		t.Errorf("path %v, changes %+v", got, w.Paths)
	}
	if f.Hops[0].Latency.Count != 2 || f.Hops[1].Latency.Count != 2 || f.Hops[2].Latency.Count != 2 || s.Stats().Partial != 1 {
		t.Errorf("hops %+v, stats %+v", f.Hops, s.Stats())
	}
	if len(w.Hops) != 4 {
		t.Errorf("%d hops in the window, want 4", len(w.Hops))
	}
}

// Codes of stacks with a part of the path are counted before postcards make it longer.
func TestPartialStackThenPostcards(t *testing.T) {
	s := New(testConfig(), 1)
	cut := stack(1, 1, hop(1, 1, 1000), hop(2, 1, 2000))
	cut.Flags = decode.Truncated
	s.Update([]*decode.Report{cut, cut, cut, postcard(1, 2, 3, 62), postcard(1, 3, 4, 61)})
	for _, h := range s.Flows(1)[0].Hops {
		want := map[uint32]uint64{1: 3, 2: 3, 3: 1, 4: 1}[h.Node]
		if v := uint64(1000 * h.Node); h.Latency.Count != want || h.Latency.Max < v-v/1000 || h.Latency.Max > v+v/1000 {
			t.Errorf("hop %+v, want %d values of %d", h, want, v)
		}
	}
}

// TestManyReports holds that flows with many reports count all of them, keep the largest values, and have the quantiles
// of all. That holds also if the path changes, values are missing or the flow becomes one of the busiest in between,
// and at any time.
func TestManyReports(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 9))
		cfg := testConfig()
		cfg.TopFlows = int(seed % 2)
		s := New(cfg, seed)
		type truth struct {
			packets uint64
			node    uint32
			values  [][]uint64 // by hop
		}
		flows := make([]truth, 40)
		for i := range flows {
			flows[i].values = make([][]uint64, 1+i%(inline+2))
		}
		window := uint64(0)
		for i := range 100_000 {
			n := int(float64(len(flows)) * math.Pow(rng.Float64(), 2))
			f := &flows[n]
			f.packets++
			if n%4 == 0 && rng.IntN(3000) == 0 { // another path: all sketches begin anew
				f.node += 10
				f.values = make([][]uint64, len(f.values))
			}
			r := stack(uint32(n), 1)
			for j := range f.values {
				h := hop(f.node+uint32(j), 1, uint32(float64(1000*(j+1))*(1+rng.ExpFloat64())))
				if n%4 == 2 { // in step
					h.Latency = 1000 * uint32(1+f.packets%8)
				}
				if n%4 == 1 && j == 0 && rng.IntN(1000) == 0 {
					h.Has &^= decode.HopLatency
				} else {
					f.values[j] = append(f.values[j], uint64(h.Latency))
					window++
				}
				r.Hops = append(r.Hops, h)
			}
			s.Update([]*decode.Report{r})
			if i%10_000 == 7777 {
				for _, h := range cutOne(s, 1).Hops { // the windows count everything
					window -= h.Latency.Count
				}
				if window != 0 {
					t.Fatalf("seed %d: a window lacks %d values", seed, int64(window))
				}
			}
			if i%9_000 != 8_999 {
				continue
			}
			for n, f := range flows {
				got, ok := s.Flow(flowKey(uint32(n)))
				if got.Packets != f.packets || ok && len(got.Hops) != len(f.values) {
					t.Fatalf("seed %d: flow %+v, want %d packets, %d hops", seed, got, f.packets, len(f.values))
				}
				for j, h := range got.Hops {
					sketched(t, "sampled latency", h.Latency, f.values[j])
				}
			}
		}
	}
}

func TestPathChange(t *testing.T) {
	s := New(testConfig(), 1)
	a := []decode.Hop{hop(1, 1, 1), hop(2, 2, 2), hop(3, 3, 3)}
	b := []decode.Hop{hop(1, 1, 1), hop(4, 2, 4), hop(3, 3, 3)}
	cut := stack(1, 3, a[0], b[1])
	cut.Flags = decode.Truncated
	s.Update([]*decode.Report{stack(1, 1, a...), stack(1, 2, a...), cut, stack(1, 4, b...), stack(1, 5, a...)})
	w := cutOne(s, 10)
	keys := func(hops []decode.Hop) (k []inference.HopKey) {
		for i := range hops {
			k = append(k, hopKey(&hops[i]))
		}
		return k
	}
	want := []inference.PathChange{
		{Time: 4, Flow: flowKey(1), From: keys(a), To: keys(b), PathID: inference.PathID(b), Changes: 1, Packets: 2},
		{Time: 5, Flow: flowKey(1), From: keys(b), To: keys(a), PathID: inference.PathID(a), Changes: 2, Packets: 1},
	}
	if !reflect.DeepEqual(w.Paths, want) {
		t.Errorf("changes\n%+v\nwant\n%+v", w.Paths, want)
	}
	// The hop that both paths have keeps its sketch, and so does the one that came back.
	f := s.Flows(1)[0]
	if f.Hops[0].Latency.Count != 5 || f.Hops[1].Latency.Count != 3 || f.Hops[2].Latency.Count != 4 {
		t.Errorf("hops %+v", f.Hops)
	}
}

// TestPathID: nodes, interfaces and their order count, values do not.
func TestPathID(t *testing.T) {
	base := []decode.Hop{hop(1, 1, 1), hop(2, 2, 2), hop(3, 3, 3)}
	id := inference.PathID(base)
	vary := func(f func(h []decode.Hop) []decode.Hop) uint64 { return inference.PathID(f(slices.Clone(base))) }
	same := vary(func(h []decode.Hop) []decode.Hop { h[1].Latency, h[2].QueueOccupancy = 99, 99; return h })
	logical := vary(func(h []decode.Hop) []decode.Hop { h[1].L2EgressIf = 7; return h }) // beside the port
	if id == 0 || same != id || logical != id {
		t.Errorf("path id %x, with other values %x, with logical interfaces %x", id, same, logical)
	}
	if base[1].L2EgressIf = 7; vary(func(h []decode.Hop) []decode.Hop { h[1].Has &^= decode.HopIngressIf | decode.HopEgressIf; return h }) == id {
		t.Error("without ports, logical interfaces do not change the path id")
	}
	base[1].L2EgressIf = 0
	for name, other := range map[string]uint64{
		"order":   vary(func(h []decode.Hop) []decode.Hop { h[0], h[1] = h[1], h[0]; return h }),
		"node":    vary(func(h []decode.Hop) []decode.Hop { h[1].NodeID = 7; return h }),
		"egress":  vary(func(h []decode.Hop) []decode.Hop { h[1].EgressIf = 7; return h }),
		"ingress": vary(func(h []decode.Hop) []decode.Hop { h[1].IngressIf = 7; return h }),
		"length":  vary(func(h []decode.Hop) []decode.Hop { return h[:2] }),
		"zeros":   vary(func(h []decode.Hop) []decode.Hop { return append(h, decode.Hop{}) }),
	} {
		if other == id {
			t.Errorf("%s does not change the path id", name)
		}
	}
}

func TestOtherHops(t *testing.T) {
	cfg := testConfig()
	cfg.MaxHops, cfg.IdleTimeout = 4, time.Second
	s := New(cfg, 1)
	for n := range uint32(10) {
		s.Update([]*decode.Report{stack(n, 1, hop(n, 1, 1000*(n+1)))})
	}
	w := cutOne(s, int64(time.Second))
	last := w.Hops[len(w.Hops)-1]
	if len(w.Hops) != 5 || !last.Other || last.Count != 6 || w.OtherHops != 6 || s.Stats().OtherHops != 6 || s.Stats().Hops != 4 {
		t.Fatalf("window %+v, stats %+v", w.Hops, s.Stats())
	}
	// Hops that were silent for the idle timeout make place. References of flows to them are resolved anew.
	s.Update([]*decode.Report{stack(9, 2, hop(9, 1, 5))})
	cutOne(s, 3*int64(time.Second))
	if n := s.Stats().Hops; n != 0 {
		t.Fatalf("%d hops after silence, want 0", n)
	}
	for n := range uint32(10) {
		s.Update([]*decode.Report{stack(9-n, 3, hop(9-n, 1, 7))})
	}
	w = cutOne(s, 4*int64(time.Second))
	if len(w.Hops) != 5 || w.Hops[0].Node != 6 || w.Hops[3].Node != 9 || w.Hops[0].Latency.P50 != 7 {
		t.Errorf("window %+v, want nodes 6 to 9 and the rest", w.Hops)
	}
}

func TestDrops(t *testing.T) {
	cfg := testConfig()
	cfg.MaxDrops = 2
	s := New(cfg, 1)
	drop := func(flow, node uint32, reason uint8) *decode.Report {
		r := stack(flow, 1, hop(node+100, 1, 1))
		r.Kind, r.Flags, r.DropReason, r.NodeID = decode.KindDrop, decode.Dropped, reason, node
		r.Has |= decode.HasDropReason | decode.HasNodeID
		return r
	}
	nameless := drop(4, 9, 80)
	nameless.Has &^= decode.HasNodeID
	late := drop(1, 200, 3) // finds the list full
	lone := drop(5, 7, 80)
	lone.Has &^= decode.HasFlow
	lone.Flow = decode.FlowKey{}
	cut := drop(6, 0, 0) // the capture ended before node and reason
	cut.Has, cut.Flags, cut.Hops = cut.Has&^(decode.HasNodeID|decode.HasDropReason), decode.Dropped|decode.Truncated, nil
	cut.Weight = 8 // of a sampled packet
	s.Update([]*decode.Report{cut, drop(1, 7, 80), drop(2, 7, 80), nameless, late, lone})
	w := cutOne(s, 5)
	want := []inference.DropStats{{Node: 7, Reason: 80, Count: 3, Last: 1}, {Node: 109, Reason: 80, Count: 1, Last: 1, Flow: flowKey(4)}}
	// All of them came at the same time, and no flow is the first by key.
	want[0].Flow = flowKey(2)
	if !reflect.DeepEqual(w.Drops, want) || w.OtherDrops != 9 {
		t.Errorf("drops %+v and %d, want %+v and 9", w.Drops, w.OtherDrops, want)
	}
}

// TestPressure floods a small table. Every flow that is gone is counted, and the memory of flows and blocks is given
// back and taken again.
func TestPressure(t *testing.T) {
	for _, hops := range []int{1, 5, 12} { // less and more than the blocks are meant for
		cfg := testConfig()
		cfg.MemoryBytes, cfg.PathLength, cfg.IdleTimeout = 1<<20, 5, time.Second
		s := New(cfg, 1)
		rng := rand.New(rand.NewPCG(1, uint64(hops)))
		path := make([]decode.Hop, hops)
		for i := range path {
			path[i] = hop(uint32(i), uint16(i), 100)
		}
		const flows = 5000
		var now int64
		var batch []*decode.Report
		for i := range 50000 {
			now += int64(time.Millisecond) / 100
			batch = append(batch, stack(rng.Uint32N(flows), now, path...))
			if len(batch) == 200 {
				s.Update(batch)
				batch = batch[:0]
				st := s.Stats()
				used := 0
				for _, e := range s.flows.All() {
					used += int(e.Value.blocks)
					if int(e.Value.hops) > hops || e.Value.blocks < e.Value.hops {
						t.Fatalf("flow of %d hops, %d blocks", e.Value.hops, e.Value.blocks)
					}
				}
				if used != s.slab.live || st.Flows > st.Capacity {
					t.Fatalf("%d hops, after %d reports: %d blocks in use, flows hold %d, stats %+v", hops, i, s.slab.live, used, st)
				}
			}
		}
		st := s.Stats()
		in := s.flows.Stats().Inserted
		if st.EvictedPressure == 0 || in != uint64(st.Flows)+st.EvictedIdle+st.EvictedPressure {
			t.Errorf("%d hops: %d flows came, stats %+v", hops, in, st)
		}
		if st.MemoryBytes > cfg.MemoryBytes {
			t.Errorf("%d bytes, want at most %d", st.MemoryBytes, cfg.MemoryBytes)
		}
		w := cutOne(s, now)
		var n uint64
		for _, h := range w.Hops {
			n += h.Count
		}
		if n != uint64(50000*hops) || w.Reports != 50000 {
			t.Errorf("%d hop records of %d reports in the window, want %d of 50000", n, w.Reports, 50000*hops)
		}
		for _, f := range s.Flows(10) {
			if f.Hops[0].Latency.P50 != 100 {
				t.Errorf("flow %+v", f)
			}
		}
		// Then nothing but one flow for a while: the others are idle.
		for range 1000 {
			now += int64(10 * time.Millisecond)
			s.Update([]*decode.Report{stack(1, now, path...)})
		}
		if st := s.Stats(); st.Flows != 1 || st.EvictedIdle == 0 || s.slab.live != hops {
			t.Errorf("%d hops, after silence: %+v, %d blocks", hops, st, s.slab.live)
		}
	}
}

// TestDeterministic replays random traffic. The same reports and seed give the same windows and flows, bit for bit,
// whatever the pieces of the input and the reads meanwhile.
func TestDeterministic(t *testing.T) {
	run := func(seed uint64, piece int, look bool) (out []any) {
		g := &traffic{rng: rand.New(rand.NewPCG(seed, 1)), paths: map[int][]decode.Hop{}, flows: 300, long: true, now: 1}
		s := New(testConfig(), seed)
		for range 3 {
			var all []*decode.Report
			for range 5000 {
				all = append(all, g.next())
			}
			for p := range slices.Chunk(all, piece) {
				s.Update(p)
				if look {
					s.Flows(5)
					s.Flow(flowKey(1))
				}
			}
			out = append(out, cutOne(s, g.now))
		}
		return append(out, s.Flows(1000), s.Stats())
	}
	for seed := range uint64(3) {
		want := run(seed, 5000, false)
		for _, piece := range []int{64, 1000} {
			if !reflect.DeepEqual(run(seed, piece, piece == 64), want) {
				t.Errorf("seed %d: pieces of %d reports give another result", seed, piece)
			}
		}
	}
}

func TestAllocations(t *testing.T) {
	g := &traffic{rng: rand.New(rand.NewPCG(1, 1)), paths: map[int][]decode.Hop{}, flows: 1000, now: 1}
	reports := make([]*decode.Report, 4096)
	for i := range reports {
		reports[i] = g.next()
	}
	s := New(testConfig(), 1)
	var p window.Partial
	run := func() {
		s.Update(reports)
		c := s.Cut(g.now)
		p.Reset()
		c.AddTo(&p)
		s.Recycle(c)
	}
	for range 200 { // histograms of flows among the busiest grow until they have seen all values
		run()
	}
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations in %d reports and a cut, want 0", n, len(reports))
	}
}

func TestFlow(t *testing.T) {
	s := New(testConfig(), 1)
	s.Update([]*decode.Report{stack(1, 5, hop(1, 1, 100), hop(2, 2, 200)), stack(1, 4, hop(1, 1, 300), hop(2, 2, 400))})
	f, ok := s.Flow(flowKey(1))
	want := inference.FlowStats{Key: flowKey(1), Packets: 2, PathID: f.PathID, Last: 5, Hops: []inference.FlowHop{
		{HopKey: inference.HopKey{Node: 1, EgressIf: 1}, Latency: inference.Summary{Count: 2, P50: 100, P90: 300, P99: 300, Max: 300}},
		{HopKey: inference.HopKey{Node: 2, EgressIf: 2}, Latency: inference.Summary{Count: 2, P50: 200, P90: 400, P99: 400, Max: 400}},
	}}
	if !ok || !reflect.DeepEqual(f, want) {
		t.Errorf("flow %+v, %v, want %+v", f, ok, want)
	}
	if _, ok := s.Flow(flowKey(2)); ok {
		t.Error("found a flow that never came")
	}
	if got := s.Flows(0); len(got) != 0 {
		t.Errorf("no flows asked for, %d given", len(got))
	}
}

// Counters of one byte overflow into wide ones.
func TestManyRecords(t *testing.T) {
	s := New(testConfig(), 1)
	reports := slices.Repeat([]*decode.Report{stack(1, 1, hop(1, 1, 100), hop(2, 1, 7000))}, 1000)
	for range 70 {
		s.Update(reports)
	}
	s.Update(slices.Repeat([]*decode.Report{stack(1, 1, hop(1, 1, 900), hop(2, 1, 7000))}, 701))
	w := cutOne(s, 5)
	if h := w.Hops[0]; h.Count != 70701 || h.Latency.Count != 70701 || h.Queue.Count != 70701 || h.Latency.P99 > 102 || h.Latency.Max < 880 {
		t.Errorf("hop %+v", h)
	}
	if h := w.Hops[1]; h.Latency.P50 != h.Latency.Max {
		t.Errorf("hop %+v, want one value", h)
	}
}

func TestTotals(t *testing.T) {
	s, totals := New(testConfig(), 1), window.NewTotals(2)
	for i := range uint32(3) {
		s.Update([]*decode.Report{stack(1, 1, hop(1, 1, 100), hop(2, 2, 200*(i+1))), stack(2, 1, hop(3, 1, 1), hop(4, 1, 1))})
		c := s.Cut(int64(i + 1))
		var p window.Partial
		c.AddTo(&p)
		s.Recycle(c)
		totals.Add(&p)
	}
	got := totals.Hops()
	if len(got) != 3 || got[0].Count != 3 || got[1].Latency.Max < 590 || got[1].Latency.Max > 610 || !got[2].Other || got[2].Count != 6 {
		t.Errorf("totals %+v", got)
	}
}

func TestTopFlowsOff(t *testing.T) {
	cfg := testConfig()
	cfg.TopFlows = 0
	s := New(cfg, 1)
	s.Update([]*decode.Report{stack(1, 5, hop(1, 1, 100))})
	if w := cutOne(s, 10); len(w.Flows) != 0 || w.FlowCount != 1 {
		t.Errorf("window %+v", w)
	}
}

func TestConfig(t *testing.T) {
	cfg := DefaultConfig()
	if err := cfg.Validate(); err != nil {
		t.Errorf("default: %v", err)
	}
	cfg.PathLength, cfg.MaxPathLength, cfg.MemoryBytes = 5, 4, 1000
	if err := cfg.Validate(); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("got %v, want two problems", err)
	}
}
