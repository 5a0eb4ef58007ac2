package events

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// silentNet is flows over a small fabric whose packets vanish with some probability: edges 1 to 4, spines 11 to 13.
type silentNet struct {
	rng    *rand.Rand
	now    int64
	flows  []inference.FlowLoss
	lose   func(path []inference.HopKey, flow int) float64
	report func(e *inference.ExporterStats) // of the window
}

func newSilentNet(seed uint64) *silentNet {
	s := &silentNet{rng: rand.New(rand.NewPCG(seed, 5))}
	for i := range uint32(60) {
		src, dst, spine := 1+i%4, 1+(i+1+i/4%3)%4, 11+i/12%3
		s.flows = append(s.flows, inference.FlowLoss{Flow: flow(i), Packets: 20, Path: []inference.HopKey{
			{Node: src, EgressIf: spine}, {Node: spine, EgressIf: dst}, {Node: dst, EgressIf: 1}}})
	}
	return s
}

func (s *silentNet) window() *inference.Window {
	w := &inference.Window{Start: s.now, End: s.now + 1e9}
	s.now = w.End
	for n := range uint32(4) {
		e := inference.ExporterStats{ExporterKey: inference.ExporterKey{Node: n + 1}, Reports: 1000, Sequenced: true, Last: s.now}
		e.Addr[15] = byte(n + 1)
		if s.report != nil {
			s.report(&e)
		}
		w.Exporters = append(w.Exporters, e)
	}
	for i, f := range s.flows {
		for range f.Packets {
			if s.lose != nil && s.rng.Float64() < s.lose(f.Path, i) {
				f.Lost++
			}
		}
		w.Losses = append(w.Losses, f)
	}
	return w
}

// run returns the findings of losses that are published in some windows.
func (s *silentNet) run(d *Detector, windows int) (reported []inference.Finding) {
	for range windows {
		for _, f := range d.Step(s.window()) {
			if f.Kind == inference.PacketLoss || f.Kind == inference.BlackHole {
				reported = append(reported, f)
			}
		}
	}
	return reported
}

func over(path []inference.HopKey, from, to uint32) bool {
	for i := 1; i < len(path); i++ {
		if path[i-1].Node == from && path[i].Node == to {
			return true
		}
	}
	return false
}

// A link that loses packets is published once, with the link, and ends when it is well.
func TestPacketLoss(t *testing.T) {
	for _, ratio := range []float64{.3, .01, .002} {
		s, d := newSilentNet(1), New(DefaultConfig())
		if reported := s.run(d, 100); len(reported) > 0 {
			t.Fatalf("of nothing: %+v", reported)
		}
		s.lose = func(p []inference.HopKey, _ int) float64 {
			if over(p, 2, 12) {
				return ratio
			}
			return 0
		}
		reported := s.run(d, 300)
		s.lose = nil
		after := s.run(d, 400)
		if len(reported) == 0 || reported[0].Kind != inference.PacketLoss || reported[0].Element != inference.ElementOfLink(2, 12) || reported[0].Node != 2 {
			t.Fatalf("ratio %v: %+v", ratio, reported)
		}
		for _, f := range reported {
			if f.ID != reported[0].ID {
				t.Errorf("ratio %v: a second finding, %+v", ratio, f)
			}
		}
		if len(after) != 1 || after[0].ID != reported[0].ID || after[0].End == 0 {
			t.Errorf("ratio %v: after it ended, %+v", ratio, after)
		}
	}
}

// A flow that vanishes where others pass is published as a flow.
func TestBlackHole(t *testing.T) {
	s, d := newSilentNet(2), New(DefaultConfig())
	s.run(d, 50)
	s.lose = func(_ []inference.HopKey, flow int) float64 {
		if flow == 17 {
			return 1
		}
		return 0
	}
	reported := s.run(d, 20)
	s.lose = nil
	after := s.run(d, 20)
	if len(reported) != 1 || reported[0].Kind != inference.BlackHole || reported[0].Flow != s.flows[17].Flow || reported[0].Severity != inference.Critical ||
		reported[0].Element != inference.ElementOfFlow(s.flows[17].Flow) || !slices.EqualFunc(reported[0].Path, s.flows[17].Path, func(a, b inference.HopKey) bool { return a.Node == b.Node }) || !strings.Contains(reported[0].Text, "vanished") {
		t.Fatalf("reported %+v", reported)
	}
	if len(after) != 1 || after[0].End == 0 {
		t.Errorf("after it ended: %+v", after)
	}
}

// Lost reports are no lost packets. Windows are left out in which the last switch's exporter lost some, restarted its
// count or was silent.
func TestLossOfReportsIsNoLossOfPackets(t *testing.T) {
	for name, trouble := range map[string]func(e *inference.ExporterStats){
		"lost":        func(e *inference.ExporterStats) { e.Lost = 200 },
		"provisional": func(e *inference.ExporterStats) { e.Provisional = 5 },
		"restart":     func(e *inference.ExporterStats) { e.Restarts = 1 },
		"silent":      func(e *inference.ExporterStats) { e.Reports = 0 },
		"gone":        func(e *inference.ExporterStats) { *e = inference.ExporterStats{} },
	} {
		s, d := newSilentNet(3), New(DefaultConfig())
		s.run(d, 50)
		at := s.now
		s.report = func(e *inference.ExporterStats) {
			if e.Node == 3 && s.now <= at+10e9 {
				trouble(e)
			}
		}
		s.lose = func(p []inference.HopKey, _ int) float64 {
			if p[len(p)-1].Node == 3 && s.now <= at+13e9 { // packets are settled later
				return .2
			}
			return 0
		}
		if reported := s.run(d, 100); len(reported) > 0 {
			t.Errorf("%s: %+v", name, reported)
		}
	}
}

// Exporters that name the node with the id 0 report for it. Losses of those that name none have no effect on it.
func TestLossOfReportsOfNode0(t *testing.T) {
	for name, x := range map[string]struct {
		exporter inference.ExporterKey
		found    bool
	}{
		"of node 0":      {inference.ExporterKey{}, false},
		"without a node": {inference.ExporterKey{Nameless: true}, true},
		"of node 3":      {inference.ExporterKey{Node: 3}, true},
	} {
		s, d := newSilentNet(3), New(DefaultConfig())
		for i := range s.flows {
			for k := range s.flows[i].Path {
				if s.flows[i].Path[k].Node == 3 {
					s.flows[i].Path[k].Node = 0
				}
			}
		}
		x.exporter.Addr[15] = 9
		s.lose = func(p []inference.HopKey, _ int) float64 {
			if over(p, 12, 0) {
				return .2
			}
			return 0
		}
		var found []inference.Element
		for range 100 {
			w := s.window()
			w.Exporters = append(w.Exporters, inference.ExporterStats{ExporterKey: x.exporter, Reports: 10, Lost: 5, Sequenced: true, Last: s.now})
			for _, f := range d.Step(w) {
				if f.Kind == inference.PacketLoss {
					found = append(found, f.Element)
				}
			}
		}
		if (len(found) > 0) != x.found || x.found && found[0] != inference.ElementOfLink(12, 0) {
			t.Errorf("the exporter %s lost reports: losses of packets are found at %v", name, found)
		}
	}
}

// Losses at the ratio that is normal are published less than once in a million windows: never in these.
func TestSilentFalseAlarms(t *testing.T) {
	s, cfg := newSilentNet(4), DefaultConfig()
	d := New(cfg)
	s.lose = func(p []inference.HopKey, _ int) float64 { return cfg.SilentLoss }
	if reported := s.run(d, 3000); len(reported) > 0 {
		t.Errorf("%+v", reported)
	}
}

// Another detector that reads the state goes on where the first one stopped, in the middle of a loss.
func TestSilentState(t *testing.T) {
	s, one := newSilentNet(5), New(DefaultConfig())
	s.lose = func(p []inference.HopKey, flow int) float64 {
		switch {
		case over(p, 11, 3):
			return .02
		case flow == 5:
			return 1
		}
		return 0
	}
	for step := range 60 {
		w := s.window()
		state := one.AppendState(nil)
		two := New(DefaultConfig())
		if err := two.ReadState(state); err != nil {
			t.Fatal(err)
		}
		a := append([]inference.Finding(nil), one.Step(w)...)
		b := two.Step(w)
		if len(a) != len(b) {
			t.Fatalf("window %d: %+v and %+v", step, a, b)
		}
		for i := range a {
			if !reflect.DeepEqual(a[i], b[i]) {
				t.Fatalf("window %d: %+v and %+v", step, a[i], b[i])
			}
		}
		one = two
	}
	if len(one.Open()) != 2 {
		t.Errorf("open: %+v", one.Open())
	}
}

// A link that loses packets is one finding while it does. Its further losses are not attributed to its neighbour,
// whichever flows come by. A neighbour that loses packets as well is found by flows that did not pass the first.
func TestNeighboursOfALoss(t *testing.T) {
	way := func(nodes ...uint32) (p []inference.HopKey) {
		for _, n := range nodes {
			p = append(p, inference.HopKey{Node: n})
		}
		return p
	}
	s, d := newSilentNet(6), New(DefaultConfig())
	window := func(both, first, second [2]uint64) { // packets and losses of flows over both links, and over one of them
		s.flows = append(s.flows[:0], // what else enters and leaves at the ends of these links
			inference.FlowLoss{Flow: flow(10), Packets: 100, Path: way(2, 13, 3)}, inference.FlowLoss{Flow: flow(11), Packets: 100, Path: way(2, 13, 1)})
		for i, n := range [][2]uint64{both, first, second} {
			f := inference.FlowLoss{Flow: flow(uint32(i)), Packets: n[0], Lost: n[1], Path: [][]inference.HopKey{way(2, 12, 3), way(2, 12, 1), way(4, 12, 3)}[i]}
			if s.flows = append(s.flows, f); n[0] == 0 {
				s.flows = s.flows[:len(s.flows)-1]
			}
		}
	}
	elements := func(windows int) (all []inference.Element) {
		for _, f := range s.run(d, windows) {
			if f.End == 0 && f.Severity == inference.Critical {
				all = append(all, f.Element)
			}
		}
		return all
	}
	window([2]uint64{100, 0}, [2]uint64{100, 0}, [2]uint64{100, 0})
	s.run(d, 20)
	window([2]uint64{100, 10}, [2]uint64{100, 10}, [2]uint64{100, 0})
	if got := elements(3); len(got) != 1 || got[0] != inference.ElementOfLink(2, 12) {
		t.Fatalf("reported %v", got)
	}
	window([2]uint64{100, 10}, [2]uint64{60, 0}, [2]uint64{})
	if got := elements(3); len(got) != 0 {
		t.Errorf("reported %v of what the first link loses", got)
	}
	window([2]uint64{100, 10}, [2]uint64{100, 10}, [2]uint64{200, 20})
	if got := elements(10); len(got) != 1 || got[0] != inference.ElementOfLink(3, 12) {
		t.Errorf("reported %v of a neighbour that loses packets, too", got)
	}
}

// TestLossByChanceOnOneFlow: the last packets that a link loses are by chance all of one flow, so that in a short time another link
// of that flow explains them better. It is not accused, since all that is remembered says otherwise.
func TestLossByChanceOnOneFlow(t *testing.T) {
	ways := [][]uint32{{1, 11, 3}, {2, 11, 3}, {4, 11, 3}, {1, 13, 2}, {2, 13, 3}, {4, 13, 1}}
	s, d := newSilentNet(7), New(DefaultConfig())
	window := func(lost ...uint64) []inference.Finding {
		s.flows = s.flows[:0]
		for i, nodes := range ways {
			f := inference.FlowLoss{Flow: flow(uint32(i)), Packets: 100}
			for _, n := range nodes {
				f.Path = append(f.Path, inference.HopKey{Node: n})
			}
			if i < len(lost) {
				f.Lost = lost[i]
			}
			s.flows = append(s.flows, f)
		}
		return s.run(d, 1)
	}
	var found []inference.Finding
	for i := range 60 {
		switch i {
		case 10, 40:
			found = append(found, window(0, 1)...)
		case 25:
			found = append(found, window(0, 0, 1)...)
		default:
			found = append(found, window()...)
		}
	}
	found = append(append(found, window(3)...), window(2)...)
	if len(found) > 0 {
		t.Fatalf("too early: %+v", found)
	}
	for range 20 {
		found = append(found, window(1, 1, 1)...)
	}
	if len(found) == 0 || found[0].Element != inference.ElementOfLink(3, 11) {
		t.Errorf("reported %+v", found)
	}
}

// TestLossOfMember: of several links between two nodes the one is named that alone loses packets, and none where all do.
func TestLossOfMember(t *testing.T) {
	one := inference.ElementOfLinkAt(inference.HopKey{Node: 2, EgressIf: 6}, inference.HopKey{Node: 12})
	for _, all := range []bool{false, true} {
		s, d := newSilentNet(1), New(DefaultConfig())
		bad := map[int]bool{}
		n := uint32(0)
		for i := range s.flows {
			for k := range s.flows[i].Path[1:] {
				if p := s.flows[i].Path; p[k].Node == 2 && p[k+1].Node == 12 {
					n++
					p[k].EgressIf = 5 + n%2
					bad[i] = all || p[k].EgressIf == 6
				}
			}
		}
		s.run(d, 50)
		s.lose = func(_ []inference.HopKey, flow int) float64 {
			if bad[flow] {
				return .2
			}
			return 0
		}
		reported, want := s.run(d, 60), one
		if all {
			want = inference.ElementOfLink(2, 12)
		}
		if n < 2 || len(reported) == 0 || reported[len(reported)-1].Element != want || reported[len(reported)-1].ID != reported[0].ID {
			t.Errorf("all %v, of %d flows: %+v", all, n, reported)
		}
	}
}

// TestFewOfMember: a member of a bundle that few packets pass is found, named and critical after a few losses, however
// many packets pass the others.
func TestFewOfMember(t *testing.T) {
	way := func(egress uint32, nodes ...uint32) (p []inference.HopKey) {
		for _, n := range nodes {
			p = append(p, inference.HopKey{Node: n})
		}
		p[0].EgressIf = egress
		return p
	}
	s, d := newSilentNet(6), New(DefaultConfig())
	s.flows = []inference.FlowLoss{
		{Flow: flow(0), Packets: 13, Path: way(6, 2, 12, 1)}, {Flow: flow(1), Packets: 60, Path: way(5, 2, 12, 3)}, {Flow: flow(2), Packets: 60, Path: way(5, 2, 12, 1)},
		{Flow: flow(10), Packets: 100, Path: way(7, 2, 13, 3)}, {Flow: flow(11), Packets: 100, Path: way(7, 2, 13, 1)}, {Flow: flow(12), Packets: 100, Path: way(8, 4, 12, 1)},
	}
	s.run(d, 20)
	s.flows[0].Lost = 1
	reported := s.run(d, 10)
	want := inference.ElementOfLinkAt(inference.HopKey{Node: 2, EgressIf: 6}, inference.HopKey{Node: 12})
	if len(reported) == 0 || reported[0].Element != want || reported[len(reported)-1].Severity != inference.Critical {
		t.Errorf("reported %+v", reported)
	}
}
