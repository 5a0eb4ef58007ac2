package shard

import (
	"testing"

	"github.com/hopscope/hopscope/decode"
)

// A packet that is seen on several links of its way has views of one path, whichever piece of it they hold; what comes alone is a path.
func TestViewsOfOnePath(t *testing.T) {
	way := func(nodes ...uint32) (hops []decode.Hop) {
		for _, n := range nodes {
			hops = append(hops, hop(n, 1, 5))
		}
		return hops
	}
	type step struct {
		times int
		ways  [][]decode.Hop // in turn
	}
	whole, short := way(1, 2, 3, 4), way(1, 2)
	for name, c := range map[string]struct {
		steps   []step
		length  int
		changes uint32
	}{
		"beginning":               {[]step{{300, [][]decode.Hop{short, whole}}}, 4, 0},
		"end":                     {[]step{{300, [][]decode.Hop{whole, way(3, 4)}}}, 4, 0},
		"middle":                  {[]step{{300, [][]decode.Hop{way(2, 3), whole}}}, 4, 0},
		"all of them":             {[]step{{300, [][]decode.Hop{way(1), short, way(1, 2, 3), whole, way(4), way(3)}}}, 4, 0},
		"many on their way":       {[]step{{9, [][]decode.Hop{whole}}, {lasting - 1, [][]decode.Hop{short}}, {lasting - 1, [][]decode.Hop{whole}}, {9, [][]decode.Hop{short}}}, 4, 0},
		"a gap":                   {[]step{{1, [][]decode.Hop{whole}}, {1, [][]decode.Hop{way(1, 3, 4)}}}, 3, 1},
		"another node":            {[]step{{1, [][]decode.Hop{whole}}, {1, [][]decode.Hop{way(1, 5)}}}, 2, 1},
		"shorter for good":        {[]step{{100, [][]decode.Hop{whole}}, {100, [][]decode.Hop{short}}}, 2, 1},
		"shorter, from the end":   {[]step{{100, [][]decode.Hop{whole}}, {100, [][]decode.Hop{way(3, 4)}}}, 2, 1},
		"shorter, and back again": {[]step{{100, [][]decode.Hop{whole}}, {200, [][]decode.Hop{short}}, {100, [][]decode.Hop{whole}}}, 4, 2},
		"longer for good":         {[]step{{100, [][]decode.Hop{short}}, {100, [][]decode.Hop{whole}}}, 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, now, packets := New(testConfig(), 1), int64(1e18), uint64(0)
			for _, x := range c.steps {
				for range x.times {
					for _, hops := range x.ways {
						now += 1000
						packets++
						s.Update([]*decode.Report{stack(1, now, append([]decode.Hop(nil), hops...)...)})
					}
				}
			}
			f := s.Flows(1)[0]
			if len(f.Hops) != c.length || f.Changes != c.changes || f.Partial || f.Packets != packets {
				t.Errorf("path of %d hops, %d changes, partial %v, %d packets; want %d, %d, false, %d", len(f.Hops), f.Changes, f.Partial, f.Packets, c.length, c.changes, packets)
			}
		})
	}
}
