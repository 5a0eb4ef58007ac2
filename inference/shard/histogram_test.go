package shard

import (
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference/window"
)

func histogramReport(node uint32, of decode.HopField, buckets ...decode.Bucket) *decode.Report {
	r := &decode.Report{Kind: decode.KindHistogram, Format: decode.OTLP, Rare: &decode.Rare{Histogram: decode.Histogram{Of: of, Buckets: buckets}}}
	*r.AddHop() = decode.Hop{Has: decode.HopNodeID | decode.HopL2EgressIf, NodeID: node, L2EgressIf: 70_000}
	return r
}

// Buckets of a device count as the values that they hold, at their upper bounds. A histogram without values makes no
// hop. A table without room loses none of them.
func TestHistogram(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxHops = 1
	s := New(cfg, 1)
	s.Update([]*decode.Report{
		histogramReport(7, decode.HopLatency),
		histogramReport(9, decode.HopLatency, decode.Bucket{High: 319, Count: 900}, decode.Bucket{Low: 319, High: 831, Count: 99}, decode.Bucket{Low: 4415, High: 4415, Count: 1, Open: true}),
		histogramReport(9, decode.HopQueueOccupancy, decode.Bucket{Low: 863, High: 1180511, Count: 5}),
		histogramReport(8, decode.HopLatency, decode.Bucket{High: 319, Count: 3}),
	})
	var p window.Partial
	s.Cut(1).AddTo(&p)
	w := p.Window(window.NoLimits())
	if len(w.Hops) != 2 || w.Hops[0].Node != 9 || w.Hops[0].EgressIf != 70_000 || !w.Hops[1].Other || w.Reports != 4 || w.OtherHops != 1 {
		t.Fatalf("hops %+v of %d reports, %d of others", w.Hops, w.Reports, w.OtherHops)
	}
	h := &w.Hops[0]
	if h.Latency.Count != 1000 || h.Count != 1001 || h.Queue.Count != 5 || h.Latency.Bounds == nil || h.Latency.Bounds.Open != 1 || h.Queue.Bounds == nil {
		t.Errorf("hop %+v", h)
	}
	if l := &h.Latency; l.P50 < 310 || l.P50 > 328 || l.P99 < 810 || l.P99 > 850 || l.Bounds.P50 != 0 || l.Bounds.P99 < 310 || l.Bounds.P99 > 328 {
		t.Errorf("latency %+v within %+v", l, l.Bounds)
	}
	if o := &w.Hops[1]; o.Latency.Count != 3 || o.Latency.Bounds != nil {
		t.Errorf("other %+v", o)
	}
}
