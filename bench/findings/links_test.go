package findings

import (
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
)

// A direction of a link that becomes slower is found by the times that both ends report. The finding names it, and
// the node that packets leave. Before that, no link is published.
func TestEmulatedLinkDirection(t *testing.T) {
	testkit.Long(t)
	for seed := uint64(21); seed <= 24; seed++ {
		e := NewEmulation(seed)
		e.Names, e.Quiet, e.Pause = []string{"asymmetric-latency"}, 100*time.Second, 10*time.Second
		o, err := e.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		reported := 0
		for _, list := range [][]inference.Finding{o.False, o.Learning, o.Evidence, o.Faults[0].causes} {
			for i := range list {
				f := &list[i]
				if f.Kind != inference.HighLatency || f.Statistic != "time on the link" {
					continue
				}
				if reported++; !o.Faults[0].names(f) || f.Node != o.Faults[0].Node {
					t.Errorf("seed %d: %v: %v of node %d: %s", seed, o.Faults[0].Happening, f.Element, f.Node, f.Text)
				}
			}
		}
		if reported != 1 {
			t.Errorf("seed %d: %v is reported %d times", seed, o.Faults[0].Happening, reported)
		}
	}
}
