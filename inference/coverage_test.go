package inference

import (
	"testing"
	"time"
)

func TestCoverageText(t *testing.T) {
	for _, c := range []struct {
		of   Coverage
		want string
	}{
		{Coverage{}, ""},
		{Coverage{Seen: 3, Judged: 3}, "3 hops seen, 3 judged"},
		{Coverage{Seen: 3, Judged: 3, NoLatency: 2}, "3 hops seen, 3 judged: of 2 no latency is known"},
		{Coverage{Seen: 1, Young: 1, Warmup: 60}, "1 hop seen, 0 judged: 1 had fewer than 60 windows to learn from"},
		{
			Coverage{Seen: 2250, Few: 2250, MinRecords: 5, Window: time.Second, Times: 10},
			"2250 hops seen, 0 judged: 2250 had fewer than 5 records in a window of 1s; windows of 10s would be long enough",
		},
		{
			Coverage{Seen: 9, Judged: 2, Young: 3, Few: 4, Warmup: 5, MinRecords: 1, Window: time.Hour, Times: 2},
			"9 hops seen, 2 judged: 3 had fewer than 5 windows to learn from, 4 had no value to compare",
		},
		{
			// Twice as many records as a window may have to have, in the longest windows.
			Coverage{Seen: 1, Few: 1, MinRecords: 1e9, Window: time.Hour, Times: 5124096}, // the product wraps around to less than an hour
			"1 hop seen, 0 judged: 1 had fewer than 1000000000 records in a window of 1h0m0s",
		},
	} {
		if got := c.of.Text(); got != c.want {
			t.Errorf("%+v:\n got %q\nwant %q", c.of, got, c.want)
		}
	}
}
