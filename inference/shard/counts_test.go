package shard

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/window"
)

// TestCounts: packets read the counters of interfaces, and windows have what these rose by, as often as they are read
// and in however many shards.
func TestCounts(t *testing.T) {
	reading := func(at int64, probe uint16, node, sent, dropped uint32) *decode.Report {
		r := &decode.Report{Time: at * int64(time.Second), Kind: decode.KindStack, Format: decode.TelemetryReport, INT: decode.V21, Has: decode.HasFlow | decode.HasPorts}
		r.Flow.SrcPort = probe
		*r.AddHop() = decode.Hop{Has: decode.HopNodeID | decode.HopEgressIf, NodeID: node, EgressIf: 5}
		r.AddHop().Has = decode.HopLatency // a hop without a name, whose counts are of no interface
		for i := range r.GrowCounts(2) {
			r.Rare.Counts[i] = decode.HopCounts{Has: decode.HopTxPackets | decode.HopDroppedPackets, TxPackets: sent, DroppedPackets: dropped}
		}
		return r
	}
	sentAlone := reading(62, 1, 7, 140, 0)
	sentAlone.Rare.Counts[0].Has &^= decode.HopDroppedPackets
	windows := [][]*decode.Report{
		{reading(1, 1, 7, 1000, 0), reading(2, 2, 7, 1010, 0), reading(3, 1, 7, 1020, 1)},
		{reading(12, 2, 7, 1100, 1), reading(13, 1, 7, 1130, 4), reading(11, 1, 7, 1090, 1), reading(14, 1, 9, 5, 0)},
		{reading(22, 1, 7, 1130, 4), reading(23, 2, 7, 6, 0)}, // the switch was restarted
		{reading(32, 1, 7, 26, 2), reading(33, 2, 7, 56, 2)},
		{reading(41, 1, 7, 60, 2), reading(49, 2, 7, 100, 2)},
		{reading(55, 1, 7, 130, 3)}, // goes on from what the other probe read
		{sentAlone},
		nil,
		{reading(83, 2, 7, 150, 9)}, // and from packets before, each counter from those that read it
	}
	const packets, drops = decode.CountOutPackets, decode.CountOutDiscards
	want := [][]string{{"7: 3, 21 sent, 1 dropped"}, {"7: 3, 113 sent, 3 dropped", "9: 1, 0 sent, 0 dropped"}, nil, {"7: 2, 52 sent, 2 dropped"},
		{"7: 2, 44 sent, 0 dropped"}, {"7: 1, 31 sent, 1 dropped"}, {"7: 1, 10 sent"}, nil, {"7: 1, 16 sent, 6 dropped"}}
	for _, shards := range []int{1, 2} {
		var all []*State
		for range shards {
			all = append(all, New(DefaultConfig(), 1))
		}
		for i, reports := range windows {
			var p window.Partial
			for _, r := range reports {
				all[int(r.Flow.SrcPort)%shards].Update([]*decode.Report{r})
			}
			for _, s := range all {
				c := s.Cut(int64(10*(i+1)) * int64(time.Second))
				c.AddTo(&p)
				s.Recycle(c)
			}
			var got []string
			for _, x := range p.Window(window.NoLimits()).Interfaces {
				row := fmt.Sprintf("%d: %d, %d sent", x.Node, x.Samples, x.OutPackets)
				if x.Has == packets|drops {
					row += fmt.Sprintf(", %d dropped", x.OutDiscards)
				} else if x.Has != packets {
					t.Errorf("%+v", x)
				}
				got = append(got, row)
			}
			if !reflect.DeepEqual(got, want[i]) {
				t.Errorf("%d shards, window %d: %q, want %q", shards, i, got, want[i])
			}
		}
	}
	s := New(DefaultConfig(), 1)
	s.Update(windows[0])
	s.Cut(time.Hour.Nanoseconds())
	if len(s.readings) != 0 {
		t.Errorf("%d readings after an hour", len(s.readings))
	}
}
