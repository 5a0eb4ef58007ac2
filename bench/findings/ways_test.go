package findings

import (
	"math"
	"testing"

	"github.com/hopscope/hopscope/inference/cause"
	"github.com/hopscope/hopscope/internal/testkit"
)

// TestWays holds that the table of ways and the command that counts it agree. Some faults with the first seed of the
// table have only ways of the table, and the frequent ones have shares like its own.
func TestWays(t *testing.T) {
	testkit.Long(t)
	var c wayCounts
	for seed := uint64(501); seed <= 502; seed++ {
		if err := c.emulated(t.Context(), seed, []string{"congested-line", "cut-rate", "link-down", "deny-flows", "slow-switch", "silence-reports", "gray-failure-1"}); err != nil {
			t.Fatal(err)
		}
	}
	seen, often := 0, 0
	for w := range c.ways {
		for s, x := range c.ways[w] {
			if x.Of == 0 {
				continue
			}
			right, of := cause.Counted(cause.Way(w), cause.Sort(s))
			if seen++; of == 0 {
				t.Errorf("%v, %v: %d of %d, and nothing in the table", cause.Way(w), cause.Sort(s), x.Shown, x.Of)
				continue
			}
			if x.Of < 20 || of < 20 {
				continue
			}
			often++
			if p, q := float64(x.Shown)/float64(x.Of), float64(right)/float64(of); math.Abs(p-q) > .4 {
				t.Errorf("%v, %v: %d of %d, in the table %d of %d", cause.Way(w), cause.Sort(s), x.Shown, x.Of, right, of)
			}
		}
	}
	if seen < 20 || often < 2 {
		t.Errorf("%d ways are seen, %d of them often", seen, often)
	}
}
