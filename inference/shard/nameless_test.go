package shard

import (
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// Hops without a node id count by exporter and position, whatever else is in their reports. A node whose id is 0 has
// figures of its own. Neither the flow nor the network has a path of zeros.
func TestNamelessHops(t *testing.T) {
	unnamed := func(latency uint32) decode.Hop {
		h := hop(0, 2, latency)
		h.Has &^= decode.HopNodeID
		return h
	}
	from := func(exporter byte, r *decode.Report) *decode.Report {
		r.Exporter = decode.Addr{15: exporter}
		return r
	}
	alone := from(2, stack(3, 1, unnamed(40)))
	alone.Has &^= decode.HasFlow
	s := New(testConfig(), 1)
	s.Update([]*decode.Report{
		from(1, stack(1, 1, unnamed(10), unnamed(20))),
		from(2, stack(2, 1, unnamed(30), hop(7, 1, 5))),
		from(2, stack(4, 1, hop(0, 2, 60), hop(7, 1, 5))),
		alone,
	})
	w := cutOne(s, 5)
	want := []struct {
		exporter, position byte
		count, max         uint64
	}{{1, 1, 1, 10}, {1, 2, 1, 20}, {2, 1, 2, 40}}
	if len(w.Nameless) != len(want) {
		t.Fatalf("%+v", w.Nameless)
	}
	for i, x := range want {
		n := w.Nameless[i]
		if n.NamelessKey != (inference.NamelessKey{Exporter: decode.Addr{15: x.exporter}, Position: x.position}) || n.Count != x.count || n.Latency.Max != x.max {
			t.Errorf("%+v, want %+v", n, x)
		}
	}
	if len(w.Hops) != 2 || w.Hops[0].Node != 0 || w.Hops[0].Count != 1 || w.Hops[0].Latency.Max != 60 || w.Hops[1].Count != 2 {
		t.Errorf("hops %+v, want node 0 once and node 7 twice", w.Hops)
	}
	for _, f := range w.Flows {
		if n := nodes(f); f.Key != flowKey(4) && len(n) > 0 {
			t.Errorf("flow %v has the path %d", f.Key, n)
		}
	}

	// Counting takes no memory once a place is known, and leaves the report as it is.
	r := from(1, stack(1, 1, unnamed(10), hop(7, 1, 5), unnamed(20)))
	list := []*decode.Report{r}
	count := func() { s.Update(list) }
	count()
	if n := testing.AllocsPerRun(100, count); n != 0 {
		t.Errorf("%v allocations a report", n)
	}
	if len(r.Hops) != 3 || r.Hops[0].Latency != 10 || r.Remarks != 0 {
		t.Errorf("the report became %+v", r)
	}
}
