package suspicion

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// Path changes near a dead line, and drops of a node where it ends, follow from it. They accuse no other link, also if
// they were found a cycle before it. Without a dead line they do.
func TestFollowsFromDeadLine(t *testing.T) {
	link := inference.Element{Kind: inference.LinkElement, Node: 1, Peer: 2}
	places := by{link: {0, 1}, inference.ElementOfNode(1): {0, 1, 3}, inference.ElementOfNode(2): {0, 1}}
	changed := inference.Finding{ID: 1, Kind: inference.PathChanged, Severity: inference.Warning, Element: link, Value: 9}
	drops := inference.Finding{ID: 2, Kind: inference.PacketDrops, Severity: inference.Warning, Element: inference.ElementOfNode(1)}
	for _, f := range []inference.Finding{changed, drops} {
		for _, dead := range []bool{false, true} {
			in, r := crossings(t), rand.New(rand.NewPCG(1, 1))
			s := New(DefaultConfig(), in, places)
			step := func(lost []int32, open ...inference.Finding) []int32 {
				return links(s.Step(&Cycle{NoNewWindow: true, Rounds: lossy(in, 20, lost, 1, r), Findings: open}))
			}
			if got := step(nil, f); !slices.Contains(got, 0) {
				t.Errorf("%v alone: %d are suspected", f.Kind, got)
			}
			want, lost := places[f.Element], []int32(nil)
			if dead {
				want, lost = []int32{3}, []int32{3}
			}
			for k := range 20 {
				if got := step(lost, f); !slices.Equal(got, want) {
					t.Errorf("%v, a line is dead: %v; cycle %d: %d are suspected, want %d", f.Kind, dead, k, got, want)
				}
			}
		}
	}
}

// Findings that a cause explains are evidence against the links that the cause names, and no longer against others.
// Drops of a node accuse all of its links until their cause is known.
func TestCauseNarrows(t *testing.T) {
	link := inference.Element{Kind: inference.LinkElement, Node: 1, Peer: 2}
	flow := inference.Element{Kind: inference.FlowElement}
	places := by{link: {0, 1}, inference.ElementOfNode(1): {0, 1, 3, 4}}
	for element, want := range map[inference.Element][]int32{link: {0, 1}, flow: {0, 1, 3, 4}} {
		s := New(DefaultConfig(), crossings(t), places)
		drops := inference.Finding{ID: 1, Kind: inference.PacketDrops, Severity: inference.Warning, Element: inference.ElementOfNode(1)}
		step := func(open ...inference.Finding) []int32 {
			return links(s.Step(&Cycle{NoNewWindow: true, NoNewRounds: true, Findings: open}))
		}
		if got := step(drops); !slices.Equal(got, []int32{0, 1, 3, 4}) {
			t.Fatalf("without a cause: %v", got)
		}
		cause := inference.Finding{ID: 2, Kind: inference.PathChanged, Severity: inference.Warning, Element: element, Value: 9, Evidence: 1}
		drops.Cause = 2
		if got := step(drops, cause); !slices.Equal(got, want) {
			t.Errorf("with a cause at %v: %v, want %v", element.Kind, got, want)
		}
	}
}

// A queue that begins as a line dies, and that probes across it do not meet, is one of rerouted packets that came
// together. One that they meet, and one that began before or long after, is evidence.
func TestQueueOfRerouted(t *testing.T) {
	port := inference.Element{Kind: inference.InterfaceElement, Node: 1, EgressIf: 5}
	for _, c := range []struct {
		name  string
		start int
		slow  bool
		want  []int32
	}{{"with it", 101, false, []int32{3}}, {"met by probes", 101, true, []int32{3, 5}}, {"before", 60, false, []int32{3, 5}}, {"long after", 115, false, []int32{3, 5}}} {
		in, r := crossings(t), rand.New(rand.NewPCG(1, 1))
		s := New(DefaultConfig(), in, by{port: {5}})
		var got []int32
		for k := range 118 {
			y := Cycle{Now: int64(k) * 1e9}
			for l := range int32(8) {
				more := 0.0 // ns
				if c.slow && l == 5 && k > 100 {
					more = 3e6
				}
				y.Hops = append(y.Hops, noise(r, l, more))
			}
			lost := []int32(nil)
			if k > 100 {
				lost = []int32{3}
			}
			y.Rounds = lossy(in, 20, lost, 1, r)
			if k >= c.start {
				y.Findings = []inference.Finding{{ID: 1, Kind: inference.HighQueue, Severity: inference.Warning, Start: int64(c.start) * 1e9, Element: port}}
			}
			got = links(s.Step(&y))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestLineOrTwo: the probes that cross either direction of a line are those that cross one direction of two others. All
// are lost: the line is down, which is one failure in place of two.
func TestLineOrTwo(t *testing.T) {
	const one, two, down, up = 0, 2, 4, 5 // directions: one of two lines each, whose other directions are 1 and 3, and both of a third one
	in, err := NewIncidence(12, [][]int32{{one, down, 6}, {two, down, 7}, {up, 3, two, 8}, {up, 1, one, 9}, {1, 10}, {3, 11}, {6, 7, 8}, {9, 10, 11}})
	if err != nil {
		t.Fatal(err)
	}
	back := slices.Repeat([]int32{-1}, 12)
	back[down], back[up], back[one], back[1], back[two], back[3] = up, down, 1, one, 3, two
	if err := in.Pair(back); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		s, r := New(DefaultConfig(), in, nil), rand.New(rand.NewPCG(seed, 9))
		for range 50 {
			s.Step(&Cycle{Rounds: lossy(in, 20, nil, 0, r)})
		}
		for k := range 20 {
			if got := links(s.Step(&Cycle{Rounds: lossy(in, 20, []int32{down, up}, 1, r)})); !slices.Equal(got, []int32{down, up}) {
				t.Fatalf("seed %d, cycle %d: %v are suspected, want both directions of the line", seed, k, got)
			}
		}
	}
}
