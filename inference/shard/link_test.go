package shard

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// timedReport is a report of a path of three hops whose clocks are given, with what a link and a hop take.
func timedReport(flow int, at int64, bits uint8, clocks [3]uint64, link, hop uint64) *decode.Report {
	r := &decode.Report{Has: decode.HasFlow, Kind: decode.KindStack, INT: decode.V21, Time: at, Flow: decode.FlowKey{SrcPort: uint16(flow), IPVersion: 4}}
	t := uint64(at)
	for i := range clocks {
		h := decode.Hop{
			Has:    decode.HopNodeID | decode.HopIngressIf | decode.HopEgressIf | decode.HopIngressTime | decode.HopEgressTime | decode.HopLatency,
			NodeID: uint32(i + 1), IngressIf: uint16(10 + i), EgressIf: uint16(20 + i), Latency: uint32(hop), TimeBits: bits,
		}
		mask := ^uint64(0) >> (64 - bits)
		h.IngressTime, h.EgressTime = (t+clocks[i])&mask, (t+hop+clocks[i])&mask
		r.Hops = append(r.Hops, h)
		t += hop + link
	}
	return r
}

// linksOf returns the links in a window.
func linksOf(states []*State, end int64) []inference.LinkStats {
	var p window.Partial
	for _, s := range states {
		c := s.Cut(end)
		c.AddTo(&p)
		s.Recycle(c)
	}
	return p.Window(s0(states).Limits()).Links
}

func s0(states []*State) *Config { return &states[0].cfg }

// The least time from the egress of one switch to the ingress of the next is measured by their clocks. Their width and
// their wraps do not matter. It does not depend on the distribution of flows over shards.
func TestTimesOnLinks(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MemoryBytes = 4 << 20
	for bits, clocks := range map[uint8][3]uint64{32: {0, 1<<32 - 500, 7}, 48: {5, 1 << 47, 0}, 64: {1 << 63, 3, 1<<64 - 9}} {
		one, four := []*State{New(cfg, 1)}, []*State{New(cfg, 2), New(cfg, 3), New(cfg, 4), New(cfg, 5)}
		rng := rand.New(rand.NewPCG(uint64(bits), 1))
		for window := range 3 {
			least, seen := uint64(1<<40), map[int]int{}
			first := int64(0)
			counted := uint64(0)
			for i := range 2000 {
				flow, link := rng.IntN(40), 1000+rng.Uint64N(5000)
				at := int64(1e18) + int64(window*2000+i)*1000
				seen[flow]++
				if n := seen[flow]; n <= firstTimed || n%everyTimed == 0 {
					if counted++; link < least {
						least, first = link, at
					}
				}
				for _, s := range []*State{one[0], four[flow%4]} {
					s.Update([]*decode.Report{timedReport(flow, at, bits, clocks, link, 30)})
				}
			}
			got, second := linksOf(one, 1), linksOf(four, 1)
			if !reflect.DeepEqual(got, second) {
				t.Errorf("%d bits: one shard reports %+v, four report %+v", bits, got, second)
			}
			period := uint64(1) << (bits & 63)
			if bits == 64 {
				period = 0
			}
			var want []inference.LinkStats
			for i := range 2 {
				d := int64((least+clocks[i+1]-clocks[i])<<(64-bits)) >> (64 - bits)
				want = append(want, inference.LinkStats{
					LinkKey: inference.LinkKey{Node: uint32(i + 1), EgressIf: uint32(20 + i), Peer: uint32(i + 2), PeerIf: uint32(11 + i), Period: period},
					Count:   counted, Least: d, At: first,
				})
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%d bits: %+v, want %+v", bits, got, want)
			}
		}
	}
}

// Reports without times, of no whole path, or in units that make no nanoseconds have no times. The number of measured
// reports is bounded.
func TestTimesOnLinksAreBounded(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MemoryBytes, cfg.MaxHops = 4<<20, 8
	s := New(cfg, 1)
	for name, change := range map[string]func(r *decode.Report){
		"no egress time": func(r *decode.Report) { r.Hops[0].Has &^= decode.HopEgressTime; r.Hops[1].Has &^= decode.HopEgressTime },
		"no ingress time": func(r *decode.Report) {
			r.Hops[1].Has &^= decode.HopIngressTime
			r.Hops[2].Has &^= decode.HopIngressTime
		},
		"cut":       func(r *decode.Report) { r.Flags |= decode.HopLimit },
		"postcard":  func(r *decode.Report) { r.Kind, r.INT, r.Hops = decode.KindPostcard, 0, r.Hops[:1] },
		"no width":  func(r *decode.Report) { r.Hops[1].TimeBits = 0 },
		"one node":  func(r *decode.Report) { r.Hops[1].NodeID, r.Hops[2].NodeID = 1, 1 },
		"long unit": func(r *decode.Report) { r.Units = &decode.Units{TimeNS: 1 << 40} },
	} {
		r := timedReport(1, 1e18, 32, [3]uint64{}, 5, 5)
		change(r)
		s.Update([]*decode.Report{r})
		if got := linksOf([]*State{s}, 1); len(got) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for i := range 2 * maxTimed {
		r := timedReport(i, 1e18, 32, [3]uint64{}, 5, 5)
		r.Flow.DstPort = uint16(i >> 16)
		r.Hops[0].EgressIf = uint16(i / 2 % 100)
		s.Update([]*decode.Report{r})
	}
	got := linksOf([]*State{s}, 1)
	sum := uint64(0)
	for i := range got {
		sum += got[i].Count
	}
	if len(got) != cfg.MaxHops || sum > 2*maxTimed || sum < maxTimed {
		t.Errorf("%d links of %d packets", len(got), sum)
	}
}
