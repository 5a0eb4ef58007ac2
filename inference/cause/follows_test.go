package cause

import (
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// flowing is a stage on whose network packets pass these interfaces, one after the other, in every window.
func flowing(t *testing.T, ways ...[]string) *stage {
	s := newStage(t)
	s.network.ahead = map[inference.HopKey][]inference.HopKey{}
	for _, way := range ways {
		for i, from := range way {
			for _, to := range way[i+1:] {
				h := at(0, from).Element.Hop()
				s.network.ahead[h] = append(s.network.ahead[h], at(0, to).Element.Hop())
			}
		}
	}
	return s
}

func (s *stage) wait(windows int) {
	for range windows {
		s.window()
	}
}

// TestDownstream: while packets queue or get lost at a place there are fewer behind it, however late that shows, and
// the waiting ones come together. Packets that do not come from there have another cause, and so have all once it is
// over.
func TestDownstream(t *testing.T) {
	low, lat, que, util := inference.LowUtilization, inference.HighLatency, inference.HighQueue, inference.HighUtilization
	for _, tt := range []struct {
		name  string
		later inference.Finding
		over  bool // what it would follow from
		want  []string
	}{
		{"fewer packets", at(low, "interface 7:8"), false, []string{"interface 4:7: high-queue 3"}},
		{"a burst", at(util, "interface 7:8"), false, []string{"interface 4:7: high-queue 3"}},
		{"packets that came together", at(lat, "interface 7:8"), false, []string{"interface 4:7: high-queue 3"}},
		{"a queue of its own", at(que, "interface 7:8"), false, []string{"interface 4:7: high-queue 2"}},
		{"fewer packets elsewhere", at(low, "interface 2:3"), false, []string{"interface 4:7: high-queue 2"}},
		{"a burst elsewhere", at(util, "interface 2:3"), false, []string{"interface 4:7: high-queue 2"}},
		{"long after it was over", at(low, "interface 7:8"), true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := flowing(t, []string{"interface 4:7", "interface 7:8"}, []string{"interface 2:3", "interface 3:1"})
			a, b := s.starts(at(que, "interface 4:7")), s.starts(at(lat, "interface 4:7"))
			s.window()
			s.want("interface 4:7: high-queue 2")
			if tt.over {
				s.ends(a, b)
			}
			s.wait(25)
			s.starts(tt.later)
			s.wait(3)
			s.want(tt.want...)
		})
	}
}

// TestFewerOnTheWay: where packets of a flow vanish, the interfaces on its way carry less, and it may take a while to
// see.
func TestFewerOnTheWay(t *testing.T) {
	const flow = "flow 10.0.0.1:1 > 10.0.0.2:2 tcp"
	for place, want := range map[string][]string{"interface 5:6": {flow + ": black-hole 2"}, "interface 8:6": nil} {
		s := newStage(t)
		id := s.starts(at(inference.BlackHole, flow))
		s.moved[id] = []inference.HopKey{{Node: 4}, {Node: 5}}
		s.wait(14)
		s.starts(at(inference.LowUtilization, place))
		s.wait(3)
		s.want(want...)
	}
}

// TestUpstream: an interface that carries more on the way to an open cause is evidence of that. Others on its own path
// show it as well.
func TestUpstream(t *testing.T) {
	s := flowing(t, []string{"interface 1:2", "interface 2:3"})
	s.starts(at(inference.HighQueue, "interface 3:77"))
	s.starts(at(inference.PacketDrops, "node 3"))
	s.starts(at(inference.HighQueue, "interface 2:3"))
	s.window()
	s.want("interface 3:77: high-queue 3")
	s.wait(4)
	s.starts(at(inference.HighUtilization, "interface 1:2"))
	s.starts(at(inference.HighUtilization, "interface 2:3"))
	s.wait(3)
	s.want("interface 3:77: high-queue 5")
}

// TestGlimpse: a flow that is seen at one node alone changes its path in the window in which a link fails. Nothing
// shows that it passed the link, and nothing else explains it. A flow whose whole way is known would be among those
// that left the link.
func TestGlimpse(t *testing.T) {
	for _, tt := range []struct {
		nodes []uint32
		want  []string
	}{
		{[]uint32{2, 2}, []string{"link 7–9: path-change 3"}},
		{[]uint32{2, 3}, []string{"link 7–9: path-change 2"}},
	} {
		s := newStage(t)
		s.starts(at(inference.PathChanged, "link 7–9"))
		s.starts(at(inference.PacketDrops, "node 7"))
		one := at(inference.PathChanged, "flow 10.0.0.1:1 > 10.0.0.2:2 tcp")
		one.Severity = inference.Info
		id := s.starts(one)
		for i, n := range tt.nodes {
			s.moved[id] = append(s.moved[id], inference.HopKey{Node: n, EgressIf: 70 + uint32(i)})
		}
		s.wait(2)
		s.want(tt.want...)
	}
}

// TestPolicy: a node that sends flows another way is the cause of their effects on the links that they come to.
func TestPolicy(t *testing.T) {
	s := newStage(t)
	id := s.starts(at(inference.PathChanged, "node 6"))
	s.moved[id] = []inference.HopKey{{Node: 6, EgressIf: 8}, {Node: 6, EgressIf: 7}}
	s.window()
	s.starts(at(inference.HighUtilization, "interface 6:8"))
	s.wait(2)
	s.want("node 6: path-change 2")
}

// TestFarApart: two faults at once in different parts of a network are two causes, with what follows from each.
func TestFarApart(t *testing.T) {
	for _, second := range []int{0, 1, 5, 20} {
		s := flowing(t, []string{"interface 1:2", "interface 2:3"}, []string{"interface 6:7", "interface 7:8"})
		fault := func(at func(inference.Kind, string) inference.Finding, place, node string) {
			s.starts(at(inference.HighQueue, place))
			s.starts(at(inference.HighLatency, place))
			s.starts(at(inference.PacketDrops, node))
			s.window()
		}
		if second == 0 {
			s.starts(at(inference.HighQueue, "interface 1:2"))
			s.starts(at(inference.HighLatency, "interface 1:2"))
			s.starts(at(inference.PacketDrops, "node 1"))
			fault(at, "interface 6:7", "node 6")
		} else {
			fault(at, "interface 1:2", "node 1")
			s.wait(second)
			fault(at, "interface 6:7", "node 6")
		}
		s.starts(at(inference.LowUtilization, "interface 2:3"))
		s.window()
		s.starts(at(inference.LowUtilization, "interface 7:8"))
		s.wait(3)
		s.want("interface 1:2: high-queue 4", "interface 6:7: high-queue 4")
		if all := s.elements(); !slices.IsSorted(all) {
			t.Errorf("causes %q are not in the order of their beginning", all)
		}
	}
}

// TestFoundLate: effects of many flows at their new places show slowly, and are found when no more flows move. They
// began with the change of paths, by as much as they may have begun before they were found. Findings that begin later
// have nothing to do with that change.
func TestFoundLate(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after int // windows from the change
		late  uint64
		place string
		want  []string
	}{
		{"while flows move", 4, 22, "interface 9:2", []string{"link 7–9: path-change 2"}},
		{"where flows moved", 18, 22, "interface 9:2", []string{"link 7–9: path-change 2"}},
		{"where flows moved, much later", 50, 66, "interface 9:2", []string{"link 7–9: path-change 2"}},
		{"when it is forgotten", longest + 1, 66, "interface 9:2", nil},
		{"where none moved", 18, 22, "interface 8:2", nil},
		{"at once", 18, 0, "interface 9:2", nil},
		{"not as late as that", 30, 7, "interface 9:2", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t)
			moved := s.starts(at(inference.PathChanged, "link 7–9"))
			s.moved[moved] = []inference.HopKey{{Node: 9, EgressIf: 2}}
			s.wait(min(5, tt.after))
			s.ends(moved)
			s.wait(tt.after - 5)
			s.late[s.id+1] = tt.late
			s.starts(at(inference.HighUtilization, tt.place))
			s.window()
			s.want(tt.want...)
			s.wait(5)
			s.want(tt.want...)
		})
	}
}

// TestLateTogether: two findings that were found late, in one window, began with an open cause of before.
func TestLateTogether(t *testing.T) {
	for late, want := range map[uint64][]string{22: {"link 7–9: path-change 4"}, 0: {"link 7–9: path-change 2", "interface 5:6: high-latency 2"}} {
		s := newStage(t)
		moved := s.starts(at(inference.PathChanged, "link 7–9"))
		s.moved[moved] = []inference.HopKey{{Node: 4, EgressIf: 5}, {Node: 5, EgressIf: 6}}
		s.starts(at(inference.PacketDrops, "node 7"))
		s.wait(14)
		s.late[s.id+1], s.late[s.id+2] = late, late
		s.starts(at(inference.HighLatency, "interface 4:5"))
		s.starts(at(inference.HighUtilization, "interface 5:6"))
		s.wait(4)
		s.want(want...)
	}
}
