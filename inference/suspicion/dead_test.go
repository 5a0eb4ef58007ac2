package suspicion

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/inference"
)

// Flows that go another way near a dead line, and drops of a node where it ends, follow from it: they accuse no other link, also when they were found
// a cycle before it. Without a dead line they do.
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
