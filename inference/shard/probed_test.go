package shard

import (
	"testing"

	"github.com/hopscope/hopscope/decode"
)

// Counts of probes are those of their path, and no packet of their flow.
func TestProbeCounts(t *testing.T) {
	s := New(testConfig(), 1)
	r := stack(1, 1)
	r.Kind, r.NodeID, r.Hops = decode.KindProbes, 9, nil
	*r.AddProbes() = decode.ProbeCounts{Path: 3, Sent: 10, Received: 9, Missed: 1, Delays: []decode.DelayCount{{Code: decode.DelayCode(1000), Count: 9}}}
	alone := *r
	alone.Has &^= decode.HasFlow
	s.Update([]*decode.Report{r, r, &alone})
	if n := testing.AllocsPerRun(100, func() { s.Update([]*decode.Report{r}) }); n > 1 { // the list
		t.Errorf("%v allocations a report", n)
	}
	w := cutOne(s, 5)
	if len(w.Probes) != 1 || w.Probes[0].Path != 3 || w.Probes[0].Node != 9 || w.Probes[0].Sent != 103*10 || w.Probes[0].Delay.Count != 103*9 {
		t.Errorf("%+v", w.Probes)
	}
	if len(w.Flows) != 0 || w.FlowCount != 0 || w.Reports != 104 {
		t.Errorf("%d reports of %d flows", w.Reports, w.FlowCount)
	}
}
