package cause

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
)

// fabric is a network of nodes 1 to n in which interface p of each leads to node p.
type fabric struct {
	nodes uint32
	ahead map[inference.HopKey][]inference.HopKey
}

func (m fabric) Peers(h inference.HopKey) (out []uint32) {
	for p := uint32(1); p <= m.nodes; p++ {
		if p != h.Node && (h.EgressIf == 0 || h.EgressIf == p) {
			out = append(out, p)
		}
	}
	return out
}

func (m fabric) Interfaces(node uint32) (out []inference.HopKey) {
	for _, p := range m.Peers(inference.HopKey{Node: node}) {
		out = append(out, inference.HopKey{Node: node, EgressIf: p})
	}
	return out
}

func (m fabric) Ahead(h inference.HopKey) []inference.HopKey { return m.ahead[h] }

// stage stands for detectors. It assigns ids, keeps the open findings, and checks all that is published.
type stage struct {
	t       *testing.T
	g       Grouper
	network fabric
	settle  int
	id      uint64
	now     int64
	open    map[uint64]*inference.Finding
	moved   map[uint64][]inference.HopKey
	late    map[uint64]uint64
	news    []inference.Finding // of the present window
	shuffle *rand.Rand
	seen    func(inference.Element) Signs
	step    func(*Grouper, *Window)

	last   map[uint64]inference.Finding // of all that was published
	causes map[uint64]uint64            // of evidence
}

func newStage(t *testing.T) *stage {
	return &stage{t: t, network: fabric{nodes: 9}, settle: 3, step: (*Grouper).Step, open: map[uint64]*inference.Finding{}, moved: map[uint64][]inference.HopKey{},
		late: map[uint64]uint64{}, last: map[uint64]inference.Finding{}, causes: map[uint64]uint64{}}
}

// starts begins a finding in the coming window.
func (s *stage) starts(f inference.Finding) uint64 {
	s.id++
	f.ID, f.Start, f.Updated = s.id, s.now+1-f.Start, s.now+1 // it may have begun some windows ago
	s.open[f.ID] = &f
	s.news = append(s.news, f)
	return f.ID
}

// at is a finding at an element, named as in [inference.ParseElement].
func at(kind inference.Kind, element string) inference.Finding {
	e, err := inference.ParseElement(element)
	if err != nil {
		panic(err)
	}
	return inference.Finding{Kind: kind, Severity: inference.Warning, Element: e, Node: e.Node, EgressIf: e.EgressIf, Flow: e.Flow, Exporter: e.Addr, Nameless: e.Nameless, Text: "seen at " + element}
}

func (s *stage) ends(ids ...uint64) {
	for _, id := range ids {
		f := s.open[id]
		if f == nil {
			continue
		}
		delete(s.open, id)
		f.Updated, f.End = s.now+1, s.now+1
		s.news = append(s.news, *f)
	}
}

// window ends the window and returns what was published in it, in the order of ids.
func (s *stage) window() []inference.Finding {
	s.now++
	reported := s.news
	s.news = nil
	if s.shuffle != nil {
		s.shuffle.Shuffle(len(reported), func(i, k int) { reported[i], reported[k] = reported[k], reported[i] })
	}
	var late []inference.Finding
	s.step(&s.g, &Window{
		Now: s.now, Length: 1, Settle: s.settle, Published: reported, Map: s.network, Seen: s.seen,
		Late:  func(id uint64) uint64 { return s.late[id] },
		Moved: func(id uint64) []inference.HopKey { return s.moved[id] },
		Open:  func(id uint64) *inference.Finding { return s.open[id] },
		Start: func(f inference.Finding) *inference.Finding {
			s.id++
			f.ID = s.id
			return &f
		},
		Publish: func(f inference.Finding) { late = append(late, f) },
	})
	reported = append(reported, late...)
	slices.SortStableFunc(reported, func(a, b inference.Finding) int { return int(a.ID) - int(b.ID) })
	s.check(reported)
	return reported
}

// check holds what is always true of causes and their evidence.
func (s *stage) check(reported []inference.Finding) {
	s.t.Helper()
	for i := range reported {
		f := &reported[i]
		if i > 0 && reported[i-1].ID == f.ID {
			s.t.Errorf("window %d: finding %d is reported twice", s.now, f.ID)
		}
		if f.Evidence > 0 && (f.Cause != 0 || f.Evidence < 2 || f.Element.Kind == inference.NoElement || f.Text == "" || f.Kind == 0) {
			s.t.Errorf("window %d: no cause: %+v", s.now, *f)
		}
		if was, known := s.last[f.ID]; known && (was.End != 0 && f.End == 0 || was.Start != f.Start && f.Evidence == 0 || was.Severity > f.Severity) {
			s.t.Errorf("window %d: after %+v came %+v", s.now, was, *f)
		}
		if f.End != 0 && f.End < f.Start {
			s.t.Errorf("window %d: %+v ends before it starts", s.now, *f)
		}
		s.last[f.ID] = *f
		if f.Cause != 0 {
			if was := s.causes[f.ID]; was != 0 && was != f.Cause {
				s.t.Errorf("window %d: finding %d has cause %d and then %d", s.now, f.ID, was, f.Cause)
			}
			s.causes[f.ID] = f.Cause
		} else if s.causes[f.ID] != 0 {
			s.t.Errorf("window %d: finding %d lost its cause", s.now, f.ID)
		}
	}
	count := map[uint64]int{}
	for id, c := range s.causes {
		if s.last[c].Evidence == 0 {
			s.t.Errorf("window %d: the cause %d of finding %d was never reported", s.now, c, id)
		}
		count[c]++
	}
	for _, c := range s.g.Causes {
		if n := count[c.Finding.ID]; n != c.Finding.Evidence {
			s.t.Errorf("window %d: cause %d has %d findings and says %d", s.now, c.Finding.ID, n, c.Finding.Evidence)
		}
	}
}

// open causes by the names of their elements.
func (s *stage) elements() (out []string) {
	for _, c := range s.g.Causes {
		out = append(out, fmt.Sprintf("%s: %s %d", c.Finding.Element, c.Finding.Kind, c.Finding.Evidence))
	}
	return out
}

func (s *stage) want(causes ...string) {
	s.t.Helper()
	if got := s.elements(); !slices.Equal(got, causes) {
		s.t.Errorf("window %d: causes %q, want %q", s.now, got, causes)
	}
}

// TestCauses goes through what is known to go together.
func TestCauses(t *testing.T) {
	const lat, que, dro, pat, sil, los, van, loo, str = "high-latency", "high-queue", "drops", "path-change", "exporter-silence", "exporter-loss", "packet-loss", "routing-loop", "strange-digests"
	const f1, f2 = "flow 10.0.0.1:1 > 10.0.0.2:2 tcp", "flow 10.0.0.3:1 > 10.0.0.2:2 tcp"
	for _, tt := range []struct {
		name     string
		findings [][2]string
		want     []string
	}{
		{"one finding stands for itself", [][2]string{{lat, "interface 4:1"}}, nil},
		{"a slow switch", [][2]string{{lat, "interface 4:1"}, {lat, "interface 4:2"}, {lat, "interface 4:3"}, {lat, "node 4"}}, []string{"node 4: high-latency 4"}},
		{"congestion", [][2]string{{lat, "interface 5:3"}, {que, "interface 5:3"}, {dro, "node 5"}, {lat, "node 5"}}, []string{"interface 5:3: high-queue 4"}},
		{"congestion towards a host", [][2]string{{lat, "interface 5:77"}, {que, "interface 5:77"}, {dro, "node 5"}}, []string{"interface 5:77: high-queue 3"}},
		{"a link that is slow in both directions", [][2]string{{lat, "interface 5:3"}, {lat, "interface 3:5"}}, []string{"link 3–5: high-latency 2"}},
		{"all ways to a switch are slow", [][2]string{{lat, "interface 5:3"}, {lat, "interface 3:5"}, {lat, "interface 7:5"}, {lat, "interface 5:7"}, {lat, "interface 5:8"}}, []string{"node 5: high-latency 5"}},
		{"a link that failed", [][2]string{{pat, "link 7–9"}, {dro, "node 7"}, {dro, "node 9"}}, []string{"link 7–9: path-change 3"}},
		{"a node that failed", [][2]string{{pat, "link 7–9"}, {pat, "link 7–8"}, {pat, "link 6–7"}, {sil, "exporter 10.0.0.7 node 7 hardware 0"}}, []string{"node 7: path-change 4"}},
		{"a loop", [][2]string{{loo, "node 7"}, {loo, "node 9"}, {dro, "node 7"}, {que, "interface 7:9"}, {que, "interface 9:7"}, {lat, "interface 9:7"}}, []string{"link 7–9: routing-loop 6"}},
		{"reports of an exporter", [][2]string{{los, "exporter 10.0.0.7 node 7 hardware 0"}, {los, "exporter 10.0.0.7 node 7 hardware 1"}}, []string{"exporter 10.0.0.7: exporter-loss 2"}},
		{"packets that are in no report of a switch", [][2]string{{los, "exporter 10.0.0.7 node 7 hardware 1"}, {van, "node 7"}, {van, "interface 7:12"}}, []string{"exporter 10.0.0.7 node 7 hardware 1: exporter-loss 3"}},
		{"packets that are in no report of another switch", [][2]string{{los, "exporter 10.0.0.7 node 7 hardware 1"}, {van, "node 5"}}, nil},
		{"two switches far apart", [][2]string{{dro, "node 2"}, {lat, "interface 4:1"}, {que, "interface 8:6"}}, nil},
		{"two faults at once", [][2]string{{lat, "interface 4:1"}, {que, "interface 4:1"}, {que, "interface 7:8"}, {lat, "interface 7:8"}},
			[]string{"interface 4:1: high-queue 2", "interface 7:8: high-queue 2"}},
		{"a flow", [][2]string{{str, f1}, {pat, f1}, {str, f2}}, []string{f1 + ": path-change 2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t)
			for _, f := range tt.findings {
				k, err := inference.ParseKind(f[0])
				if err != nil {
					t.Fatal(err)
				}
				s.starts(at(k, f[1]))
			}
			s.window()
			s.want(tt.want...)
		})
	}
}

// TestCauseLives follows a cause. It is published at its start and end, when its element changes, and when it becomes
// worse. It keeps its id.
func TestCauseLives(t *testing.T) {
	s := newStage(t)
	a := s.starts(at(inference.HighLatency, "interface 4:1"))
	s.window()
	s.want()
	b := s.starts(at(inference.HighQueue, "interface 4:1"))
	reported := s.window()
	s.want("interface 4:1: high-queue 2")
	// the finding that stood for itself is published once more, then the new one, then the cause
	if len(reported) != 3 || reported[0].ID != a || reported[2].Evidence != 2 || reported[0].Cause != reported[2].ID || reported[1].Cause != reported[2].ID || reported[2].Start != 1 {
		t.Fatalf("reported %+v", reported)
	}
	id := reported[2].ID
	c, d := s.starts(at(inference.HighLatency, "interface 4:2")), s.starts(at(inference.HighLatency, "interface 4:3"))
	reported = s.window()
	s.want("node 4: high-queue 4")
	if last := reported[0]; len(reported) != 3 || last.ID != id || last.Element != inference.ElementOfNode(4) {
		t.Errorf("reported %+v", reported)
	}
	if reported = s.window(); len(reported) != 0 {
		t.Errorf("without news it is reported again: %+v", reported)
	}
	worse := at(inference.PacketDrops, "node 4")
	worse.Severity = inference.Critical
	e := s.starts(worse)
	if reported = s.window(); len(reported) != 2 || reported[0].ID != id || reported[0].Severity != inference.Critical || reported[0].Evidence != 5 {
		t.Errorf("reported %+v", reported)
	}
	s.ends(a, b, c, d, e)
	s.window()
	ended := s.now
	for range s.settle - 1 {
		if reported = s.window(); len(reported) != 0 {
			t.Errorf("window %d: reported %+v", s.now, reported)
		}
	}
	if reported = s.window(); len(reported) != 1 || reported[0].ID != id || reported[0].End != ended {
		t.Errorf("reported %+v, want the end of cause %d at %d", reported, id, ended)
	}
	for range s.settle + 1 {
		s.window()
	}
	if len(s.g.Causes)+len(s.g.Alone) != 0 {
		t.Errorf("%d causes and %d findings are left", len(s.g.Causes), len(s.g.Alone))
	}
}

// TestFlapping: what comes again before it is over is the same cause.
func TestFlapping(t *testing.T) {
	s := newStage(t)
	ids := map[uint64]bool{}
	for range 10 {
		f := s.starts(at(inference.HighQueue, "interface 4:1"))
		s.window()
		s.ends(f)
		s.window()
		s.window()
		for _, c := range s.g.Causes {
			ids[c.Finding.ID] = true
		}
	}
	s.want("interface 4:1: high-queue 10")
	if len(ids) != 1 {
		t.Errorf("%d causes, want one", len(ids))
	}
}

// TestMoment: an exporter that is no node joins a change of paths at whose beginning it fell silent, and no other.
func TestMoment(t *testing.T) {
	for _, quiet := range []float64{3, 6} {
		s := newStage(t)
		for range 20 {
			s.window()
		}
		link := at(inference.PathChanged, "link 7–9")
		id := s.starts(link)
		s.moved[id] = []inference.HopKey{{Node: 7, EgressIf: 8}}
		s.window()
		s.starts(at(inference.HighQueue, "interface 7:8")) // where flows moved to
		s.starts(at(inference.HighQueue, "interface 2:3"))
		s.window()
		s.want("link 7–9: path-change 2")
		for range 3 {
			s.window()
		}
		silent := at(inference.ExporterSilence, "exporter 10.9.0.1")
		silent.Value = quiet
		s.starts(silent)
		s.window()
		if quiet == 6 {
			s.want("link 7–9: path-change 3")
		} else {
			s.want("link 7–9: path-change 2")
		}
	}
}

// randomFinding is a finding of any kind somewhere in the network.
func randomFinding(r *rand.Rand) inference.Finding {
	n, p := 1+r.Uint32N(9), 1+r.Uint32N(9)
	flow := fmt.Sprintf("flow 10.0.0.%d:1 > 10.0.0.2:2 tcp", 1+r.IntN(20))
	f := []inference.Finding{
		at(inference.HighLatency, fmt.Sprintf("interface %d:%d", n, p)), at(inference.HighQueue, fmt.Sprintf("interface %d:%d", n, p)),
		at(inference.HighLatency, fmt.Sprintf("node %d", n)), at(inference.PacketDrops, fmt.Sprintf("node %d", n)),
		at(inference.PathChanged, fmt.Sprintf("link %d–%d", n, p)), at(inference.PathChanged, flow), at(inference.StrangeDigests, flow),
		at(inference.ExporterSilence, fmt.Sprintf("exporter 10.0.1.%d node %d hardware 0", n, n)),
		at(inference.ExporterLoss, fmt.Sprintf("exporter 10.0.1.%d node %d hardware 1", n, n)),
		at(inference.ExporterSilence, fmt.Sprintf("exporter 10.0.2.%d", n)), {Kind: inference.PathChanged, Text: "many"},
	}[r.IntN(11)]
	if f.Severity = inference.Severity(r.IntN(3)); f.Kind == inference.RoutingLoop {
		f.Flow = decode.FlowKey{IPVersion: 4, SrcPort: uint16(r.IntN(5))}
	}
	f.Value = float64(r.IntN(9))
	return f
}

// TestRandomCauses holds in random histories that every finding has one cause at most and keeps it. Nothing depends on
// the order of findings, and everything ends.
func TestRandomCauses(t *testing.T) {
	run := func(seed uint64, shuffled bool) map[uint64]inference.Finding {
		r := rand.New(rand.NewPCG(seed, 3))
		s := newStage(t)
		if shuffled {
			s.shuffle = rand.New(rand.NewPCG(seed, 4))
		}
		for range 150 {
			for range r.IntN(1 + r.IntN(12)) {
				f := randomFinding(r)
				id := s.starts(f)
				if f.Kind == inference.PathChanged {
					s.moved[id] = []inference.HopKey{{Node: 1 + r.Uint32N(9), EgressIf: 1 + r.Uint32N(9)}}
				}
			}
			for _, id := range slices.Sorted(maps.Keys(s.open)) {
				if r.IntN(6) == 0 && s.open[id].Start <= s.now {
					s.ends(id)
				}
			}
			s.window()
		}
		s.ends(slices.Sorted(maps.Keys(s.open))...)
		for range max(2*s.settle+3, longest) { // changes of paths are remembered longest
			s.window()
		}
		for id, f := range s.last {
			if f.End == 0 {
				t.Errorf("seed %d: finding %d is open at the end: %+v", seed, id, f)
			}
		}
		if len(s.g.Causes)+len(s.g.Alone) != 0 {
			t.Errorf("seed %d: %d causes and %d findings are left", seed, len(s.g.Causes), len(s.g.Alone))
		}
		if len(s.causes) < 100 {
			t.Errorf("seed %d: only %d findings have a cause", seed, len(s.causes))
		}
		return s.last
	}
	for seed := range uint64(20) {
		if a, b := run(seed, false), run(seed, true); !reflect.DeepEqual(a, b) {
			t.Errorf("seed %d: it depends on the order", seed)
		}
	}
}

// TestStorm takes ten thousand findings in one window, and as many again.
func TestStorm(t *testing.T) {
	testkit.Long(t)
	s := newStage(t)
	s.network.nodes = 40
	r := rand.New(rand.NewPCG(1, 1))
	for range 2 {
		for range 10000 {
			f := at(inference.HighLatency, fmt.Sprintf("interface %d:%d", 1+r.IntN(2000), 1+r.IntN(64)))
			if r.IntN(3) == 0 {
				f = at(inference.PacketDrops, fmt.Sprintf("node %d", 1+r.IntN(2000)))
			}
			s.starts(f)
		}
		s.window()
	}
	if len(s.g.Causes) == 0 || len(s.g.Causes) > maxCauses || len(s.g.Alone) > maxAlone {
		t.Errorf("%d causes and %d findings alone", len(s.g.Causes), len(s.g.Alone))
	}
	for _, c := range s.g.Causes {
		if len(c.Open) > maxEvidence || len(c.Flows) > maxFlows || len(c.Fits) > 2*maxFits {
			t.Errorf("cause %d holds %d findings, %d flows, %d elements", c.Finding.ID, len(c.Open), len(c.Flows), len(c.Fits))
		}
	}
}

// TestSlowFlows: flows that are slow at a hop wait for findings of the hop itself, and are evidence of the same cause
// then. Two of them are a cause without it; one alone is none.
func TestSlowFlows(t *testing.T) {
	slow := func(s *stage, flow string) {
		id := s.starts(at(inference.HighLatency, flow))
		s.moved[id] = []inference.HopKey{{Node: 3, EgressIf: 4}}
	}
	const f1, f2 = "flow 10.0.0.1:1 > 10.0.0.2:2 tcp", "flow 10.0.0.3:1 > 10.0.0.2:2 tcp"
	s := newStage(t)
	slow(s, f1)
	slow(s, f2)
	s.window()
	s.want()
	s.starts(at(inference.HighQueue, "interface 3:4"))
	s.window()
	s.want("interface 3:4: high-queue 3")
	slow(s, "flow 10.0.0.5:1 > 10.0.0.2:2 tcp")
	s.window()
	s.want("interface 3:4: high-queue 4")

	s = newStage(t)
	slow(s, f1)
	for range 3 {
		s.window()
		s.want()
	}
	slow(s, f2)
	for range 3 {
		s.window()
	}
	s.want("interface 3:4: high-latency 2")
}

// TestFlowsOfCause: a cause remembers each flow of its evidence once, maxFlows of them, and no flow where a finding
// names none.
func TestFlowsOfCause(t *testing.T) {
	flow := func(i int) decode.FlowKey {
		return decode.FlowKey{Src: decode.Addr{15: byte(i)}, Dst: decode.Addr{15: 1}, SrcPort: uint16(1000 + i), DstPort: 80, Proto: 6, IPVersion: 4}
	}
	for _, tt := range []struct{ flows, want int }{{3, 3}, {maxFlows - 1, maxFlows - 1}, {maxFlows, maxFlows}, {maxFlows + 8, maxFlows}} {
		s := newStage(t)
		s.starts(at(inference.HighQueue, "interface 4:1"))
		for range 2 { // the second time the same flows
			for i := range tt.flows {
				f := at(inference.HighLatency, "interface 4:1")
				f.Flow = flow(i)
				s.starts(f)
			}
		}
		s.window()
		if len(s.g.Causes) != 1 {
			t.Fatalf("%d flows: %d causes", tt.flows, len(s.g.Causes))
		}
		got := slices.Clone(s.g.Causes[0].Flows)
		slices.SortFunc(got, func(a, b decode.FlowKey) int { return a.Compare(&b) })
		if len(got) != tt.want || len(slices.Compact(got)) != tt.want || slices.Contains(got, decode.FlowKey{}) {
			t.Errorf("of %d flows it has %d: %v", tt.flows, len(s.g.Causes[0].Flows), got)
		}
	}
}
