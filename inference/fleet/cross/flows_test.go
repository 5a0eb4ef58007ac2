package cross

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
)

func flowOf(n uint32) decode.FlowKey {
	return decode.FlowKey{Src: decode.AddrFrom4([]byte{10, 0, byte(n >> 8), byte(n)}), Dst: decode.AddrFrom4([]byte{10, 255, 0, 1}), SrcPort: 9, DstPort: 80, Proto: 6, IPVersion: 4}
}

func stackOf(flow uint32, at int64, path int) *decode.Report {
	r := &decode.Report{Time: at, Kind: decode.KindStack, INT: decode.V21, Flow: flowOf(flow), Has: decode.HasFlow, Units: &decode.DefaultUnits}
	for _, n := range []uint32{1, 10 + uint32(path), 2} {
		r.Hops = append(r.Hops, decode.Hop{Has: decode.HopNodeID | decode.HopEgressIf | decode.HopLatency, NodeID: n, EgressIf: 1, Latency: 5})
	}
	return r
}

// collectors is shards of several collectors, one shard that sees everything, and a Cross.
type collectors struct {
	t      *testing.T
	states []*shard.State
	one    *shard.State
	cross  *Crossing
	limits Limits
	end    int64
	keep   window.Limits
	rng    *rand.Rand
}

func newCollectors(t *testing.T, n int, seed uint64) *collectors {
	cfg := shard.DefaultConfig()
	cfg.MemoryBytes = 1 << 21
	c := &collectors{t: t, one: shard.New(cfg, seed), limits: DefaultLimits(), end: 1.7e18, keep: cfg.Limits(), rng: rand.New(rand.NewPCG(seed, 41))}
	for range n {
		s := shard.New(cfg, seed)
		s.ListArrivals()
		c.states = append(c.states, s)
	}
	c.cross = New(c.limits)
	return c
}

// turn ends a window and returns what Cross makes of it, and what one collector saw.
func (c *collectors) turn() (got, want inference.Window) {
	c.t.Helper()
	c.end += 1e9
	wide := window.Limits{Hops: 1e6, Flows: 1e6, Paths: 1e6, Drops: 1e6, Faults: 1e6, Arrivals: 1e6}
	var parts []*window.Partial
	var one window.Partial
	for i, s := range append(slices.Clone(c.states), c.one) {
		p, q := &window.Partial{}, &window.Partial{}
		cut := s.Cut(c.end)
		cut.AddTo(p)
		s.Recycle(cut)
		if i == len(c.states) {
			one.Merge(p)
			break
		}
		b, err := p.AppendBinary(nil)
		if err != nil {
			c.t.Fatal(err)
		}
		if err := q.ReadBinary(b, wide); err != nil {
			c.t.Fatal(err)
		}
		parts = append(parts, q)
	}
	second := New(c.limits)
	if err := second.ReadState(c.cross.AppendState(nil)); err != nil {
		c.t.Fatal(err)
	}
	var a, b window.Partial
	c.cross.Begin(c.end)
	second.Begin(c.end)
	for _, i := range c.rng.Perm(len(parts)) {
		c.cross.Add(fmt.Sprint(i), parts[i])
		a.Merge(parts[i])
	}
	for i, q := range parts {
		second.Add(fmt.Sprint(i), q)
		b.Merge(q)
	}
	c.cross.Finish(&a)
	second.Finish(&b)
	x, y := c.cross.AppendState(nil), second.AppendState(nil)
	if !slices.Equal(x, y) {
		c.t.Fatal("another order leaves another state")
	}
	x, _ = a.AppendBinary(nil)
	y, _ = b.AppendBinary(nil)
	if !slices.Equal(x, y) {
		c.t.Fatal("another order gives another partial")
	}
	return a.Window(c.keep), one.Window(c.keep)
}

func reportChange(p *inference.PathChange) string {
	return fmt.Sprint(p.Time, p.Flow, p.From, p.To, p.PathID, p.Changes)
}

// TestCrossFlows moves flows between collectors and paths, and compares the path changes and the busiest flows with
// those of one collector that sees everything.
func TestCrossFlows(t *testing.T) {
	changes, across := 0, 0
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 42))
		c := newCollectors(t, 2+rng.IntN(3), seed)
		type place struct{ at, path, stays int }
		flows := make([]place, 40)
		for i := range flows {
			flows[i] = place{rng.IntN(len(c.states)), rng.IntN(3), 3}
		}
		for range 30 {
			var reports []*decode.Report
			var to []int
			for i := range flows {
				f := &flows[i]
				if f.stays--; f.stays < 0 && rng.IntN(4) == 0 { // on to another collector, or back
					f.at, f.stays = rng.IntN(len(c.states)), 2+rng.IntN(4)
				}
			}
			for k := range 200 {
				i := k % len(flows)
				f := &flows[i]
				if k >= len(flows) && rng.IntN(30) == 0 {
					f.path = rng.IntN(3)
				}
				reports = append(reports, stackOf(uint32(i), c.end+int64(k)*1e6, f.path))
				to = append(to, f.at)
			}
			for k, r := range reports {
				c.one.Update([]*decode.Report{r})
				c.states[to[k]].Update([]*decode.Report{r})
			}
			for i := range flows { // between windows, so that the next collector sees another path from the start
				if rng.IntN(30) == 0 {
					flows[i].path = rng.IntN(3)
				}
			}
			got, want := c.turn()
			if len(got.Paths) != len(want.Paths) {
				t.Fatalf("seed %d: %d path changes, want %d:\n%+v\n%+v", seed, len(got.Paths), len(want.Paths), got.Paths, want.Paths)
			}
			for i := range got.Paths {
				if a, b := reportChange(&got.Paths[i]), reportChange(&want.Paths[i]); a != b {
					t.Fatalf("seed %d: path change\n%s, want\n%s", seed, a, b)
				}
				changes++
				if got.Paths[i].Packets == 0 {
					across++
				}
			}
			for i := range got.Flows {
				if a, b := &got.Flows[i], &want.Flows[i]; a.Key != b.Key || a.PathID != b.PathID || a.Changes != b.Changes || a.Packets != b.Packets {
					t.Fatalf("seed %d: flow %+v, want %+v", seed, a, b)
				}
			}
		}
	}
	if changes < 500 || across < 20 {
		t.Errorf("%d path changes, %d across collectors: too few", changes, across)
	}
}

// TestCrossFlowsAlone: of flows that keep their collector, path changes are those that it reported, to the last bit.
func TestCrossFlowsAlone(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 43))
		c := newCollectors(t, 3, seed)
		for range 15 {
			for k := range 300 {
				i := rng.Uint32N(60)
				r := stackOf(i, c.end+int64(k)*1e6, rng.IntN(50)/48)
				c.one.Update([]*decode.Report{r})
				c.states[i%3].Update([]*decode.Report{r})
			}
			got, want := c.turn()
			if len(want.Paths) == 0 || !slices.EqualFunc(got.Paths, want.Paths, func(a, b inference.PathChange) bool {
				return reportChange(&a) == reportChange(&b) && a.Packets == b.Packets
			}) {
				t.Fatalf("seed %d:\n%+v, want\n%+v", seed, got.Paths, want.Paths)
			}
		}
	}
}

// TestCrossFlowLimits: what is known of flows is bounded, and idle ones leave.
func TestCrossFlowLimits(t *testing.T) {
	limits := DefaultLimits()
	limits.Flows = 32
	c := New(limits)
	end, n := int64(1.7e18), uint32(0)
	for range 20 {
		end += 1e9
		var q, p window.Partial
		for range 20 {
			n++
			q.AddArrival(&window.Arrival{Time: end, Flow: flowOf(n), PathID: 7, Path: []inference.HopKey{{Node: 1}}})
		}
		p.Merge(&q)
		c.Begin(end)
		c.Add("a", &q)
		c.Finish(&p)
		if got := c.Stats().Flows; got > 32 || got < 20 {
			t.Fatalf("%d flows, want at most 32 and the last 20", got)
		}
	}
	move := func(flow uint32) int {
		end += 1e9
		var q, p window.Partial
		q.AddArrival(&window.Arrival{Time: end, Flow: flowOf(flow), PathID: 8, Path: []inference.HopKey{{Node: 2}}})
		p.Merge(&q)
		c.Begin(end)
		c.Add("b", &q)
		c.Finish(&p)
		return len(p.PathChanges())
	}
	if move(1) != 0 || move(n) != 1 || move(n) != 0 {
		t.Error("the flows that were reported last are to be known, and not the first")
	}
	end += int64(limits.Idle) * 17 / 16
	c.Begin(end)
	c.Finish(&window.Partial{})
	if got := c.Stats(); got.Flows != 0 {
		t.Errorf("after the idle time: %+v", got)
	}
}
