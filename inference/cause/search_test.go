package cause

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// TestBestIsBest compares the search with all sets of elements. It finds the best set if that has at most mostTogether
// elements. Otherwise no further element and no exchange of one makes its set better.
func TestBestIsBest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	large, right := 0, 0
	for n := range 9000 {
		p := problem{}
		elements, findings := 1+r.IntN(9), 1+r.IntN(12)
		for range findings {
			p.alone = append(p.alone, 2+r.Float64())
		}
		for range elements {
			p.price = append(p.price, 2+r.Float64())
			var row []float64
			for range findings {
				if m := r.Float64(); r.IntN(3) == 0 {
					row = append(row, m)
				} else {
					row = append(row, math.Inf(1))
				}
			}
			p.misfit = append(p.misfit, row)
		}
		least, size := math.Inf(1), 0
		for set := range uint(1) << elements {
			var list []int
			for e := range elements {
				if set>>e&1 == 1 {
					list = append(list, e)
				}
			}
			if c := p.cost(list); c < least-1e-9 {
				least, size = c, bits.OnesCount(set)
			}
		}
		set, cost := p.best()
		if math.Abs(cost-p.cost(set)) > 1e-9 || cost < least-1e-9 || size <= mostTogether && cost > least+1e-9 {
			t.Fatalf("%d: %v costs %g, the best %d cost %g", n, set, cost, size, least)
		}
		if size > mostTogether {
			if large++; cost < least+1e-9 {
				right++
			}
		}
	}
	if large < 100 || right < large*8/10 {
		t.Errorf("of %d sets of more elements %d are the best ones", large, right)
	}
}

// seeing is a stage in which interfaces report unless a window silences them.
func seeing(t *testing.T, but ...string) *stage {
	s := newStage(t)
	silent := map[inference.Element]bool{}
	for _, e := range but {
		silent[at(0, e).Element] = true
	}
	s.seen = func(e inference.Element) Signs {
		if e.Kind != inference.InterfaceElement || silent[e] {
			return 0
		}
		return Slow | Queues | More | Fewer | Silent
	}
	return s
}

// TestAbsent: what an element would bring and is not there counts against it.
func TestAbsent(t *testing.T) {
	lat, que, sil, dro, pat := inference.HighLatency, inference.HighQueue, inference.HopSilence, inference.PacketDrops, inference.PathChanged
	type reported struct {
		kind inference.Kind
		at   string
	}
	for _, tt := range []struct {
		name     string
		silent   []string
		reported []reported
		want     []string
	}{
		{"two interfaces of a healthy node", nil, []reported{{lat, "interface 4:1"}, {lat, "interface 4:2"}}, nil},
		{"neighbours of a healthy node are slow", nil, []reported{{lat, "interface 1:5"}, {lat, "interface 3:5"}, {lat, "interface 7:5"}}, nil},
		{"no packets to a healthy node", []string{"interface 1:5", "interface 3:5"}, []reported{{sil, "interface 1:5"}, {sil, "interface 3:5"}}, nil},
		{"a node that is down", []string{"interface 5:1", "interface 5:3", "interface 1:5", "interface 3:5", "interface 5:2", "interface 5:4", "interface 5:6", "interface 5:7", "interface 5:8", "interface 5:9",
			"interface 2:5", "interface 4:5", "interface 6:5", "interface 7:5", "interface 8:5", "interface 9:5"},
			[]reported{{sil, "interface 1:5"}, {sil, "interface 3:5"}, {sil, "interface 5:1"}, {sil, "interface 5:3"}}, []string{"node 5: hop-silence 4"}},
		{"a member that is down", []string{"interface 5:1", "interface 1:5"}, []reported{{sil, "interface 1:5"}, {sil, "interface 5:1"}, {dro, "node 5"}, {pat, "link 1–5"}},
			[]string{"link 1–5: path-change 4"}},
		{"a link that is down, told by both nodes", []string{"interface 5:1", "interface 1:5"},
			[]reported{{dro, "node 1"}, {dro, "node 5"}, {pat, "link 1–5"}, {sil, "interface 1:5"}, {sil, "interface 5:1"}}, []string{"link 1–5: path-change 5"}},
		{"a link that is down and a queue elsewhere", []string{"interface 5:1", "interface 1:5"},
			[]reported{{dro, "node 1"}, {pat, "link 1–5"}, {que, "interface 7:8"}, {lat, "interface 7:8"}, {dro, "node 7"}},
			[]string{"interface 7:8: high-queue 3", "link 1–5: path-change 2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := seeing(t, tt.silent...)
			for _, f := range tt.reported {
				s.starts(at(f.kind, f.at))
			}
			s.wait(5)
			s.want(tt.want...)
		})
	}
	s := seeing(t) // all interfaces of a slow node are slow
	for _, p := range []string{"1", "2", "3", "5", "6", "7", "8", "9"} {
		s.starts(at(lat, "interface 4:"+p))
	}
	s.wait(2)
	s.want("node 4: high-latency 8")
}
