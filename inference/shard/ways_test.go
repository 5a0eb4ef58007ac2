package shard

import (
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

// wayReport is an agent's report about probes of a session.
func wayReport(session uint32, p decode.ProbeCounts) *decode.Report {
	r := &decode.Report{Kind: decode.KindProbes, NodeID: 9, Has: decode.HasNodeID | decode.HasFlow, Flow: decode.FlowKey{
		Src: decode.AddrFrom4([]byte{10, 1, 0, 1}), Dst: decode.AddrFrom4([]byte{10, 1, 0, 2}), SrcPort: uint16(session), DstPort: 862, Proto: 17, IPVersion: 4,
	}}
	p.Path = session
	*r.AddProbes() = p
	return r
}

// cutLosses cuts a window that has the losses of flows.
func cutLosses(s *State, end int64) inference.Window {
	c := s.Cut(end)
	var p window.Partial
	c.AddTo(&p)
	s.Recycle(c)
	return p.Window(s.cfg.Limits())
}

var routersOfTest = []decode.Addr{decode.AddrFrom4([]byte{10, 0, 0, 1}), {}, decode.AddrFrom4([]byte{10, 0, 0, 3})}

// TestWaysOfProbes holds what a window has of an agent's probes: what was settled and lost on the way out, and the way.
// Counts of another epoch have none until it is reported. Losses that turn out to be late arrivals are taken back.
func TestWaysOfProbes(t *testing.T) {
	s := New(testConfig(), 1)
	agent := inference.HopKey{Node: 9, Other: true}
	known := []inference.HopKey{agent, {Node: 10<<24 + 1}, {}, {Node: 10<<24 + 3}, {Node: 10<<24 + 1<<16 + 2}}
	way := decode.ProbeCounts{Epoch: 1, Way: routersOfTest}
	for i, step := range []struct {
		what    string
		reports []decode.ProbeCounts
		want    inference.FlowLoss
	}{
		{"before a way", []decode.ProbeCounts{{Epoch: 1, Sent: 10, Received: 9, Missed: 1, Forward: 1}}, inference.FlowLoss{Packets: 10, Lost: 1, Path: []inference.HopKey{agent}}},
		{"with a way", []decode.ProbeCounts{way, {Epoch: 1, Sent: 10, Received: 7, Missed: 3, Forward: 1, Back: 2}, {Epoch: 1, Sent: 10, Received: 9, Missed: 1, Forward: 1}},
			inference.FlowLoss{Packets: 20, Lost: 2, Path: known}},
		{"all lost", []decode.ProbeCounts{{Epoch: 1, Sent: 10, Missed: 10}}, inference.FlowLoss{Packets: 10, Lost: 10, Path: known}},
		{"six came late", []decode.ProbeCounts{{Epoch: 1, Sent: 10, Received: 16, Late: 6, Forward: -6}}, inference.FlowLoss{Packets: 10, Path: known}},
		{"their losses are not counted again", []decode.ProbeCounts{{Epoch: 1, Sent: 10, Received: 3, Missed: 7, Forward: 7}}, inference.FlowLoss{Packets: 10, Lost: 1, Path: known}},
		{"another epoch", []decode.ProbeCounts{{Epoch: 2, Sent: 10, Received: 10}}, inference.FlowLoss{Packets: 10, Path: []inference.HopKey{agent}}},
	} {
		var list []*decode.Report
		for _, p := range step.reports {
			list = append(list, wayReport(40000, p))
		}
		s.Update(list)
		w := cutLosses(s, int64(i+1))
		step.want.Flow = list[0].Flow
		if want := []inference.FlowLoss{step.want}; !reflect.DeepEqual(w.Losses, want) {
			t.Errorf("%s:\n%+v, want\n%+v", step.what, w.Losses, want)
		}
	}
	if w := cutLosses(s, 99); len(w.Losses) != 0 {
		t.Errorf("without reports: %+v", w.Losses)
	}
}

// TestWaysBound holds that a shard remembers no more ways than it has places, that a way without reports leaves its
// place after a while, and that reports of known ways allocate nothing.
func TestWaysBound(t *testing.T) {
	s := New(testConfig(), 1)
	way, counts := decode.ProbeCounts{Way: routersOfTest}, decode.ProbeCounts{Sent: 1, Received: 1}
	for n := range uint32(3 * maxProbeWays) {
		s.Update([]*decode.Report{wayReport(n, way), wayReport(n, counts)})
	}
	if w := cutLosses(s, 1); len(s.ways.list) != maxProbeWays || len(s.ways.index) != maxProbeWays || len(w.Losses) != maxProbeWays {
		t.Fatalf("%d ways, %d keys, %d losses", len(s.ways.list), len(s.ways.index), len(w.Losses))
	}
	for n := range int64(idleWay) {
		cutLosses(s, n+2)
	}
	const late = 3 * maxProbeWays
	s.Update([]*decode.Report{wayReport(1, counts)})
	cutLosses(s, 99)
	s.Update([]*decode.Report{wayReport(1, counts), wayReport(late, way), wayReport(late, counts)})
	if w := cutLosses(s, 100); len(w.Losses) != 2 || len(w.Losses[1].Path) != 5 || len(s.ways.list) != maxProbeWays || len(s.ways.index) != maxProbeWays {
		t.Errorf("%d ways, %d keys, losses %+v", len(s.ways.list), len(s.ways.index), w.Losses)
	}
	list := []*decode.Report{wayReport(late, way), wayReport(late, counts)}
	s.Update(list)
	if n := testing.AllocsPerRun(100, func() { s.Update(list) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestPlannedLosses holds that the losses of a path of a plan have the hops of its probes, once one came in the epoch. Only
// rounds that are known as lost count.
func TestPlannedLosses(t *testing.T) {
	s := New(testConfig(), 1)
	came := probeOf(5, 1)
	counts := func(p decode.ProbeCounts) *decode.Report {
		r := probeOf(5, 1)
		r.Kind, r.NodeID, r.Hops, p.Path = decode.KindProbes, 9, nil, 17
		*r.AddProbes() = p
		return r
	}
	hops := []inference.HopKey{{Node: 1, EgressIf: 5}, {Node: 2, EgressIf: 1}}
	for i, step := range []struct {
		what    string
		reports []*decode.Report
		want    *inference.FlowLoss
	}{
		{"nothing came", []*decode.Report{counts(decode.ProbeCounts{Epoch: 1, Sent: 10}), counts(decode.ProbeCounts{Epoch: 1, Missed: 10})}, nil},
		{"all come", []*decode.Report{came, counts(decode.ProbeCounts{Epoch: 1, Sent: 10}), counts(decode.ProbeCounts{Epoch: 1, Received: 10})}, &inference.FlowLoss{Packets: 10, Path: hops}},
		{"some are lost", []*decode.Report{counts(decode.ProbeCounts{Epoch: 1, Received: 7, Missed: 3, Forward: 3})}, &inference.FlowLoss{Packets: 10, Lost: 3, Path: hops}},
		{"all are lost", []*decode.Report{counts(decode.ProbeCounts{Epoch: 1, Missed: 12}), counts(decode.ProbeCounts{Epoch: 1, Sent: 10})}, &inference.FlowLoss{Packets: 10, Lost: 10, Path: hops}},
		{"none was sent", []*decode.Report{counts(decode.ProbeCounts{Epoch: 1, Missed: 10})}, nil},
		{"another epoch", []*decode.Report{counts(decode.ProbeCounts{Epoch: 2, Missed: 10}), counts(decode.ProbeCounts{Epoch: 2, Sent: 10})}, nil},
		{"of two epochs", []*decode.Report{counts(decode.ProbeCounts{Epoch: 2, Missed: 10}), counts(decode.ProbeCounts{Epoch: 3, Sent: 10})}, nil},
	} {
		s.Update(step.reports)
		w := cutLosses(s, int64(i+1))
		if step.want == nil && len(w.Losses) == 0 {
			continue
		}
		if step.want != nil {
			step.want.Flow = came.Flow
		}
		if step.want == nil || !reflect.DeepEqual(w.Losses, []inference.FlowLoss{*step.want}) {
			t.Errorf("%s:\n%+v, want\n%+v", step.what, w.Losses, step.want)
		}
	}
	list := []*decode.Report{counts(decode.ProbeCounts{Epoch: 3, Received: 1})}
	s.Update(list)
	if n := testing.AllocsPerRun(100, func() { s.Update(list) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
