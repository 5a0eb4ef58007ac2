package events

import (
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// TestDropsOfOnePort: a port that passes hardly a packet is named by what its node drops, as long as most of it was to
// leave there. One that passes more of them has latencies, and its drops are those of the node.
func TestDropsOfOnePort(t *testing.T) {
	node := inference.ElementOfNode(7)
	port := func(n uint32) inference.Element {
		return inference.ElementOfHop(inference.HopKey{Node: 7, EgressIf: n})
	}
	// hop has a number of packets that left by an interface, and of those that were dropped there.
	hop := func(port uint32, passed, dropped uint64) inference.HopStats {
		return inference.HopStats{HopKey: inference.HopKey{Node: 7, EgressIf: port}, Count: passed + dropped, Latency: inference.Summary{Count: passed, P50: 10_000, P90: 15_000, P99: 20_000}}
	}
	for _, x := range []struct {
		name string
		hops [][]inference.HopStats // by window
		want []inference.Element
	}{
		{"hardly a packet passes", [][]inference.HopStats{{hop(1, 100, 0), hop(2, 3, 60)}}, []inference.Element{port(2)}},
		{"half of them pass", [][]inference.HopStats{{hop(1, 100, 0), hop(2, 60, 60)}}, []inference.Element{node}},
		{"two ports drop", [][]inference.HopStats{{hop(1, 2, 50), hop(2, 3, 60)}}, []inference.Element{node}},
		{"too few", [][]inference.HopStats{{hop(1, 100, 0), hop(2, 0, 9)}}, []inference.Element{node}},
		{"no latencies are reported", [][]inference.HopStats{{{HopKey: inference.HopKey{Node: 7, EgressIf: 2}, Count: 500}, hop(3, 10, 20)}}, []inference.Element{node}},
		{"it is seen in the next window", [][]inference.HopStats{{hop(1, 100, 0), hop(2, 30, 40)}, {hop(1, 100, 0), hop(2, 1, 60)}}, []inference.Element{node, port(2)}},
		{"it remains while it is most", [][]inference.HopStats{{hop(1, 100, 0), hop(2, 1, 60)}, {hop(1, 100, 20), hop(2, 9, 30)}, {hop(1, 100, 40), hop(2, 9, 30)}}, []inference.Element{port(2), port(2), node}},
	} {
		d := New(DefaultConfig())
		for k, hops := range x.hops {
			w := &inference.Window{Start: int64(k) * 1e9, End: int64(k+1) * 1e9, Hops: hops, Drops: []inference.DropStats{{Node: 7, Reason: 71}}}
			for i := range hops {
				if hops[i].Count < 500 { // others have no latencies at all
					w.Drops[0].Count += hops[i].Count - hops[i].Latency.Count
				}
			}
			d.Step(w)
			var got []inference.Element
			for _, f := range d.Open() {
				if f.Kind == inference.PacketDrops && f.Cause == 0 {
					got = append(got, f.Element)
				}
			}
			if len(got) != 1 || got[0] != x.want[k] {
				t.Errorf("%s, window %d: %v, want %v", x.name, k, got, x.want[k])
			}
		}
	}
}
