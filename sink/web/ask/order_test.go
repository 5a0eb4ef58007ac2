package ask

import (
	"math/rand/v2"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// TestSortOpen: what probes and flows met on their whole way follows the places of faults while a cause is open, and no
// longer; causes come before others of their severity, and resting findings last.
func TestSortOpen(t *testing.T) {
	flow := inference.ElementOfFlow(decode.FlowKey{SrcPort: 1})
	lost := inference.Finding{ID: 1, Kind: inference.ProbeLoss, Severity: inference.Critical, Start: 9, Element: flow}
	slow := inference.Finding{ID: 2, Kind: inference.HighLatency, Severity: inference.Warning, Start: 9, Element: flow}
	missing := inference.Finding{ID: 3, Kind: inference.PacketDrops, Severity: inference.Warning, Start: 8, Statistic: inference.MissingProbes, Element: inference.ElementOfNode(9)}
	hole := inference.Finding{ID: 4, Kind: inference.BlackHole, Severity: inference.Critical, Start: 1, Element: flow}
	cause := inference.Finding{ID: 5, Kind: inference.PathChanged, Severity: inference.Warning, Start: 2, Evidence: 3, Element: inference.ElementOfLink(7, 9)}
	queue := inference.Finding{ID: 6, Kind: inference.HighQueue, Severity: inference.Warning, Start: 3, Element: inference.ElementOfNode(7)}
	rests := cause
	rests.ID, rests.Resting = 7, true
	for _, tt := range []struct {
		name string
		want []inference.Finding
	}{
		{"a cause and its symptoms", []inference.Finding{hole, cause, queue, lost, slow, missing}},
		{"symptoms alone", []inference.Finding{lost, hole, slow, missing, queue}},
		{"a cause at rest", []inference.Finding{lost, queue, rests}},
	} {
		for seed := range uint64(20) {
			got := append([]inference.Finding(nil), tt.want...)
			rand.New(rand.NewPCG(seed, 2)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
			SortOpen(got)
			for i := range got {
				if got[i].ID != tt.want[i].ID {
					t.Fatalf("%s, seed %d: place %d has finding %d, want %d", tt.name, seed, i, got[i].ID, tt.want[i].ID)
				}
			}
		}
	}
}
