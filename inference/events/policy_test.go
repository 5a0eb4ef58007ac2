package events

import (
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// A rule that is broken in one window alone, as while routes change, is no finding. One that stays broken is one
// finding until it ends, also over a restart.
func TestOffPolicy(t *testing.T) {
	d := New(DefaultConfig())
	missed := inference.StrayKey{Rule: "web", Reason: inference.Missed, Node: 7}
	forbidden := inference.StrayKey{Rule: "web", Reason: inference.Forbidden, Node: 9}
	step := func(end int64, strays ...inference.Stray) (reported []inference.Finding) {
		for _, f := range d.Step(&inference.Window{Start: end - 1e9, End: end, Strays: strays}) {
			if f.Kind == inference.OffPolicy && f.Evidence == 0 { // and no cause that puts several together
				reported = append(reported, f)
			}
		}
		return reported
	}
	flow, err := decode.ParseFlow("10.0.0.1:80 > 10.0.0.2:53 udp")
	if err != nil {
		t.Fatal(err)
	}
	stray := func(k inference.StrayKey, flows uint64) inference.Stray {
		return inference.Stray{StrayKey: k, Flows: flows, Flow: flow, Path: []inference.HopKey{{Node: 1, EgressIf: 2}, {Node: 3, EgressIf: 4}}}
	}
	now := int64(1e18)
	next := func() int64 { now += 1e9; return now }
	if reported := step(next(), stray(missed, 3), stray(forbidden, 1)); len(reported) != 0 {
		t.Fatalf("reported after one window: %+v", reported)
	}
	reported := step(next(), stray(missed, 5))
	if len(reported) != 1 || reported[0].Node != 7 || reported[0].Value != 5 || reported[0].Severity != inference.Warning || reported[0].Element != inference.ElementOfFlow(flow) ||
		reported[0].Text != "rule web: node 7 is not passed by 5 flows, such as 10.0.0.1:80 > 10.0.0.2:53 udp on 1:2-3:4" {
		t.Fatalf("%+v", reported)
	}
	id := reported[0].ID
	if reported := step(next(), stray(missed, 2), stray(forbidden, 1)); len(reported) != 0 { // the other one was away in between
		t.Fatalf("%+v", reported)
	}
	b := d.AppendState(nil)
	d = New(DefaultConfig())
	if err := d.ReadState(b); err != nil {
		t.Fatal(err)
	}
	// The other one is published again, since a cause explains both.
	if reported = step(next(), stray(missed, 2), stray(forbidden, 1)); len(reported) != 2 || reported[0].Element != inference.ElementOfNode(9) || reported[0].Flow != flow {
		t.Fatalf("%+v", reported)
	}
	var ended []inference.Finding
	for range 2*DefaultConfig().EndAfter + DefaultConfig().CauseSettle {
		ended = append(ended, step(next())...)
	}
	if len(ended) != 2 || ended[0].ID != id && ended[1].ID != id || ended[0].End == 0 || ended[1].End == 0 || !strings.Contains(ended[0].Text+ended[1].Text, "by up to 5 flows") {
		t.Fatalf("%+v", ended)
	}
	if n := len(d.Open()); n != 0 {
		t.Errorf("%d findings are open", n)
	}
}
