package events

import (
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
)

// The findings accepted in a day are those of all judged statistics, in the next power of two. They are of hops, of
// flows that are known well enough, and of links with times in both directions.
func TestEveryStatisticCounts(t *testing.T) {
	cfg := DefaultConfig()
	d, x := New(cfg), newTraffic(1, busyNow{1, 200}, busyNow{2, 200}, busyNow{3, 200}, busyNow{4, 200}, busyNow{5, 20})
	w := x.next()
	for n := range cfg.Warmup + 2 {
		if n > 0 {
			w = x.next()
		}
		for _, k := range []inference.LinkKey{{Node: 1, Peer: 2}, {Node: 1, Peer: 3}, {Node: 2, Peer: 1}, {Node: 2, Peer: 9}, {Node: 3, Peer: 1}} {
			w.Links = append(w.Links, inference.LinkStats{LinkKey: k, Count: 1, Least: 1000, At: w.Start})
		}
		d.Step(w)
	}
	hops := 0
	for i := range w.Hops {
		for _, used := range []bool{w.Hops[i].Latency.Count > 0, w.Hops[i].Queue.Count > 0, w.Hops[i].HasUtilization} {
			if used {
				hops++
			}
		}
	}
	const flows, links = 4, 2
	s := d.Stats()
	if s.Watched != hops+flows || s.Links != links {
		t.Fatalf("%d statistics and %d links are watched, want %d of hops, %d of flows and %d links", s.Watched, s.Links, hops, flows, links)
	}
	power := 1
	for power < hops+flows+links {
		power *= 2
	}
	if power/2 < hops+flows || power/2 < hops+links {
		t.Fatalf("%d statistics of hops do not show whether both others count", hops)
	}
	if got, want := hopConfig(d.journal, w).Share, cfg.FalseADay*10/86400/float64(power); got != want || time.Duration(w.End-w.Start) != 10*time.Second {
		t.Errorf("limits have the factor %v, want %v for %d statistics", got, want, power)
	}
}
