package collector

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/hopscope/hopscope/sink"
)

// The times of a damaged capture can be anything. Every frame counts in a window, and the run ends.
func TestCaptureClockStrangeTimes(t *testing.T) {
	const s = int64(time.Second)
	for _, times := range [][]int64{
		{0, 1, 5 * s},
		{-15 * s, -14 * s, -12 * s, 3 * s},
		{-10 * s, -10 * s}, // its window ends at 0
		{-5 * s, 1},
		{5 * s, 0, math.MinInt64, 30 * s},
		{math.MinInt64, 0},
		{math.MinInt64, math.MaxInt64},
		{0, math.MaxInt64 - 5, math.MaxInt64},
		{1e18, math.MaxInt64 - s, 1e18},
	} {
		t.Run(fmt.Sprint(times), func(t *testing.T) {
			src := &canned{workers: 1, batches: len(times), frames: datagrams(t, 5), times: func(_, batch int) int64 { return times[batch] }}
			kept := &keeper{}
			c := newEngine(t, func(p *program) { p.Window = 10 * time.Second }, Options{
				Policy: Replay, Sources: []Source{{Name: "capture", Source: src}}, Writers: []sink.WindowWriter{kept},
			})
			if err := run(t, c); err != nil {
				t.Fatal(err)
			}
			reports := uint64(0)
			for _, w := range kept.windows {
				reports += w.Reports
				if w.End < w.Start {
					t.Errorf("a window from %d to %d", w.Start, w.End)
				}
			}
			if want := uint64(5 * len(times)); reports != want || len(kept.windows) > 10 {
				t.Errorf("%d windows with %d reports, want %d in at most 10", len(kept.windows), reports, want)
			}
		})
	}
}
