package shard

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
)

// records makes short forms of reports whose hops have node, interfaces, latency and queue, as a decoder does.
type records struct {
	shapes map[int]*decode.Shape // by hops, 0 for postcards
	timed  bool
	units  *decode.Units
}

const recordStride = 16

func (x *records) of(r *decode.Report) *decode.Lazy {
	kind := len(r.Hops)
	if r.Postcard() {
		kind = 0
	}
	s := x.shapes[kind]
	if s == nil {
		s = &decode.Shape{Hops: len(r.Hops), Stride: recordStride, Timed: x.timed, Blocks: readBlocks}
		s.Common = *r
		s.Common.Hops = nil
		x.shapes[kind] = s
	}
	rec := &decode.Lazy{Time: r.Time, Flow: r.Flow, Shape: s, NodeID: r.NodeID}
	be := binary.BigEndian
	for i, h := range r.Hops {
		b := rec.Stack[(len(r.Hops)-1-i)*recordStride:]
		be.PutUint32(b, h.NodeID)
		be.PutUint16(b[4:], h.IngressIf)
		be.PutUint16(b[6:], h.EgressIf)
		be.PutUint32(b[8:], math.MaxUint32)
		if h.Has&decode.HopLatency != 0 {
			be.PutUint32(b[8:], h.Latency)
		}
		be.PutUint32(b[12:], math.MaxUint32)
		if h.Has&decode.HopQueueOccupancy != 0 {
			be.PutUint32(b[12:], h.QueueOccupancy)
		}
	}
	return rec
}

func readBlocks(hops []decode.Hop, b []byte, stride int) {
	be := binary.BigEndian
	for i := range hops {
		b := b[(len(hops)-1-i)*stride:]
		h := decode.Hop{Has: decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf, NodeID: be.Uint32(b), IngressIf: be.Uint16(b[4:]), EgressIf: be.Uint16(b[6:])}
		if v := be.Uint32(b[8:]); v != math.MaxUint32 {
			h.Latency, h.Has = v, h.Has|decode.HopLatency
		}
		if v := be.Uint32(b[12:]) & (1<<24 - 1); v != 1<<24-1 {
			h.QueueOccupancy, h.Has = v, h.Has|decode.HopQueueOccupancy
		}
		hops[i] = h
	}
}

// TestLazy holds that records count as their reports do, to the bit. It covers changes of paths, absent and absurd
// values, windows, silence, candidates for the busiest flows and a policy.
func TestLazy(t *testing.T) {
	for seed := range uint64(testkit.Rounds(6, 60)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			testLazy(t, seed)
		})
	}
}

func testLazy(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 9))
	cfg := testConfig()
	cfg.TopFlows, cfg.IdleTimeout, cfg.MaxHops = 3+int(seed), time.Second, 40
	reports, short := New(cfg, seed), New(cfg, seed)
	states := [...]*State{reports, short}
	for _, s := range states {
		if seed%2 == 1 {
			s.ListArrivals()
		}
		if seed%3 == 1 {
			p, err := inference.NewPolicy([]inference.PolicyRule{{Name: "no 7", Avoid: []uint32{7}}})
			if err != nil {
				t.Fatal(err)
			}
			s.Judge(p)
		}
	}
	units := decode.DefaultUnits
	if seed%2 == 0 {
		units.LatencyNS, units.QueueBytes = 8, 80
	}
	rec := records{shapes: map[int]*decode.Shape{}, timed: seed == 2, units: &units}
	paths := map[int][]decode.Hop{}
	now := int64(1)
	for range 30 {
		for range 1 + rng.IntN(30) {
			n := 1 + rng.IntN(300)
			var a []*decode.Report
			var b []*decode.Lazy
			for range n {
				now += int64(rng.IntN(100_000))
				if rng.IntN(20_000) == 0 {
					now += 2e9
				}
				id := int(40 * math.Pow(rng.Float64(), 3))
				if paths[id] == nil || rng.IntN(2000) == 0 {
					paths[id] = make([]decode.Hop, 1+rng.IntN(9))
					for i := range paths[id] {
						paths[id][i] = decode.Hop{Has: decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf, NodeID: uint32(rng.IntN(12)), EgressIf: uint16(rng.IntN(4)), IngressIf: uint16(rng.IntN(2))}
					}
				}
				r := &decode.Report{Time: now, Format: decode.TelemetryReport, Kind: decode.KindStack, Flags: decode.Tracked, INT: decode.V21, Flow: flowKey(uint32(id)),
					Has: decode.HasFlow | decode.HasNodeID, NodeID: 3, Units: &units}
				r.Hops = append(r.Hops, paths[id]...)
				if id%8 == 7 || rng.IntN(1000) == 0 {
					r.Kind, r.INT = decode.KindPostcard, 0
					at := rng.IntN(len(r.Hops))
					r.Hops = r.Hops[at : at+1]
				}
				for i := range r.Hops {
					h := &r.Hops[i]
					if rng.IntN(500) != 0 {
						h.Latency, h.Has = uint32(1000*(1+rng.ExpFloat64()*3)), h.Has|decode.HopLatency
					}
					if rng.IntN(3000) == 0 {
						h.Latency = rng.Uint32N(math.MaxUint32)
					}
					if rng.IntN(300) != 0 {
						h.QueueOccupancy, h.Has = uint32(rng.IntN(100)), h.Has|decode.HopQueueOccupancy
					}
				}
				a, b = append(a, r), append(b, rec.of(r))
			}
			reports.Update(a)
			short.UpdateLazy(b)
		}
		windows := [2]inference.Window{}
		for i, s := range states {
			c := s.Cut(now)
			windows[i] = windowOf(20, c)
			s.Recycle(c)
		}
		if !reflect.DeepEqual(windows[0], windows[1]) {
			t.Fatalf("windows differ:\n%+v\n%+v", windows[0], windows[1])
		}
		if a, b := reports.Stats(), short.Stats(); a != b {
			t.Fatalf("%+v, want %+v", b, a)
		}
	}
	if a, b := reports.AppendPaths(nil, 1000), short.AppendPaths(nil, 1000); !reflect.DeepEqual(a, b) {
		t.Error("paths differ")
	}
	if a, b := reports.Flows(1000), short.Flows(1000); !reflect.DeepEqual(a, b) {
		t.Errorf("flows differ:\n%+v\n%+v", a, b)
	}
}
