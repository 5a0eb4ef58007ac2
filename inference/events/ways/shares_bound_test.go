package ways

import "testing"

// TestFewerOfMany: the work for a link is bounded, however many packets a window has. Counts of a billion would take
// minutes for each link if all numbers were weighed. Where the shares are alike they are evidence of nothing, and where
// half is lost they are.
func TestFewerOfMany(t *testing.T) {
	for _, packets := range []uint64{1000, 100_000, 1_000_000_000, 1 << 50} {
		rest := arrivedCount{3 * packets, 3 * packets / 10}
		for _, c := range []struct {
			reported uint64
			loses    bool
		}{{packets / 10, false}, {packets / 20, true}} {
			var llr [len(shareLosses)]float64
			fewer(&llr, arrivedCount{packets, c.reported}, rest)
			if half := llr[1]; c.loses != (half > 10) || c.loses == (half < 0) {
				t.Errorf("%d of %d packets are reported, and %v of others: %v", c.reported, packets, rest.share(), llr)
			}
		}
	}
}
