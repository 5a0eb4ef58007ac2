package cause

import (
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// TestDistinguished: a cause names the element at another place that explains its evidence nearly as well, and none if
// there is none.
func TestDistinguished(t *testing.T) {
	lat, que, dro := inference.HighLatency, inference.HighQueue, inference.PacketDrops
	for _, tt := range []struct {
		name     string
		reported []inference.Finding
		want     string
	}{
		{"a full queue", []inference.Finding{at(lat, "interface 5:3"), at(que, "interface 5:3"), at(dro, "node 5")}, ""},
		{"a node, or one of its links", []inference.Finding{at(lat, "node 7"), at(dro, "node 7")}, "it cannot be distinguished from link 1–7"},
		{"a slow switch", []inference.Finding{at(lat, "interface 4:1"), at(lat, "interface 4:2"), at(lat, "interface 4:3"), at(lat, "interface 4:5")}, ""},
	} {
		s := newStage(t)
		for _, f := range tt.reported {
			s.starts(f)
		}
		s.wait(3)
		if len(s.g.Causes) != 1 {
			t.Fatalf("%s: causes %q", tt.name, s.elements())
		}
		text := s.g.Causes[0].Finding.Text
		if tt.want == "" && strings.Contains(text, "distinguished") || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %s", tt.name, text)
		}
	}
}

// TestNarrowest: where a node and its one interface that the evidence is at explain it equally well, the interface leads.
func TestNarrowest(t *testing.T) {
	lat, que, more := inference.HighLatency, inference.HighQueue, inference.HighUtilization
	for _, tt := range []struct {
		name     string
		reported []inference.Finding
		want     []string
	}{
		{"a port towards a host", []inference.Finding{at(que, "interface 4:12"), at(lat, "interface 4:12")}, []string{"interface 4:12: high-queue 2"}},
		{"all ports", []inference.Finding{at(lat, "interface 4:1"), at(lat, "interface 4:2"), at(lat, "interface 4:3"), at(lat, "interface 4:12")}, []string{"node 4: high-latency 4"}},
	} {
		s := newStage(t)
		s.network.nodes = 4
		s.seen = func(e inference.Element) Signs { // all interfaces are judged, and none carries more
			if e.Kind == inference.InterfaceElement {
				return Slow | Queues | signOf(more)
			}
			return 0
		}
		for _, f := range tt.reported {
			s.starts(f)
		}
		s.wait(3)
		if got := s.elements(); len(got) == 0 || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestOutlet: packets that wait for a node wait for the port behind it whose queue is long, also if that is seen later.
// This does not hold if two are long, or if something else is wrong.
func TestOutlet(t *testing.T) {
	que, more, drops := inference.HighQueue, inference.HighUtilization, inference.PacketDrops
	for _, tt := range []struct {
		name  string
		later []inference.Finding
		want  string
	}{
		{"one port", []inference.Finding{at(que, "interface 4:12")}, "interface 4:12: high-queue 4"},
		{"two ports", []inference.Finding{at(que, "interface 4:12"), at(que, "interface 4:13")}, "node 4: high-queue 5"},
		{"another sign", []inference.Finding{at(que, "interface 4:12"), at(inference.StrangeDigests, "node 4")}, "node 4: strange-digests 5"},
	} {
		s := newStage(t)
		s.starts(at(drops, "node 4"))
		s.starts(at(more, "interface 1:4"))
		s.starts(at(more, "interface 2:4"))
		s.window()
		s.want("node 4: drops 3")
		for _, f := range tt.later {
			s.starts(f)
		}
		s.wait(5)
		if got := s.elements(); len(got) == 0 || got[0] != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestQueueThatIsGone: packets of a slow switch pass a queue that other packets met before. It explains none of them
// once it is gone.
func TestQueueThatIsGone(t *testing.T) {
	queue := inference.HopKey{Node: 8, EgressIf: 12} // towards a host
	for _, tt := range []struct {
		name string
		then func(s *stage, queue uint64)
		want string
	}{
		{"it lasts", func(*stage, uint64) {}, "interface 8:12: high-latency 5"},
		{"it is as usual", func(s *stage, id uint64) { s.open[id].Resting = true }, "node 4: high-latency 4"},
		{"it has ended", func(s *stage, id uint64) { s.ends(id); s.window() }, "node 4: high-latency 4"},
	} {
		s := newStage(t)
		s.network.ahead = map[inference.HopKey][]inference.HopKey{{Node: 4}: {queue}, {Node: 4, EgressIf: 8}: {queue}}
		s.seen = func(e inference.Element) Signs {
			if e.Kind == inference.InterfaceElement {
				return Slow | Queues | More
			}
			return 0
		}
		id := s.starts(at(inference.HighLatency, "interface 8:12"))
		for range 4 {
			s.window()
		}
		tt.then(s, id)
		for _, e := range []string{"interface 4:1", "interface 4:3", "interface 4:5", "interface 4:8"} {
			s.starts(at(inference.HighLatency, e))
		}
		s.window()
		if got := s.elements(); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
