package shard

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
)

// A packet that is seen on several links of its way has views of one path, whichever piece of it they hold. A piece
// that comes alone is a path.
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

// A packet of the network that is captured on n links counts once, as do its hops, and its path is the whole one. That
// holds in any order of its views, and among other packets of its flow and of other flows.
func TestViewsOfOnePacket(t *testing.T) {
	const (
		flows, packets = 7, 40
		long           = 5
	)
	type taken struct{ flow, packet, view int }
	rng := rand.New(rand.NewPCG(1, 2))
	for name, values := range map[string]struct{ id, times, latency bool }{
		"identification": {id: true}, "times": {times: true}, "latencies": {latency: true}, "nothing": {},
	} {
		for _, order := range []string{"growing", "shrinking", "any", "link by link", "any by four"} {
			for links := 2; links <= long; links++ {
				t.Run(fmt.Sprint(name, ", ", order, ", ", links), func(t *testing.T) {
					var all []taken
					for p := 0; p < packets; p++ {
						var views []taken
						for v := long - links + 1; v <= long; v++ {
							for f := range flows {
								views = append(views, taken{f, p, v})
							}
						}
						switch order {
						case "shrinking":
							slices.Reverse(views)
						case "any":
							rng.Shuffle(len(views), func(i, j int) { views[i], views[j] = views[j], views[i] })
						}
						all = append(all, views...)
					}
					switch order {
					case "link by link":
						slices.SortStableFunc(all, func(a, b taken) int {
							return cmp.Or(cmp.Compare(a.packet/20, b.packet/20), cmp.Compare(a.view, b.view))
						})
					case "any by four":
						for part := range slices.Chunk(all, 4*flows*links) {
							rng.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
						}
					}
					s := New(testConfig(), 1)
					for i, x := range all {
						var hops []decode.Hop
						for n := range x.view {
							// from half of its packets on, a flow takes another way, whose views differ
							node := uint32(10*x.flow + n + 1)
							if x.packet >= packets/2 && n > 0 && n < long-1 {
								node += 1000
							}
							h := hop(node, 1, 100)
							if values.latency {
								h.Latency += uint32(7919 * (x.packet + 1) % 1000)
							}
							if values.times {
								h.Has |= decode.HopIngressTime | decode.HopEgressTime
								h.IngressTime = uint64(1e9+x.packet*1_000_000+n*1000) + 1
								h.EgressTime, h.TimeBits = h.IngressTime+100, 64
							}
							hops = append(hops, h)
						}
						r := stack(uint32(x.flow), int64(1e18)+int64(i)*1000, hops...)
						r.Format, r.INT = decode.INTMD, 0
						r.Has, r.TTL = r.Has|decode.HasTTL, uint8(60-x.view)
						if values.id {
							r.Has, r.PacketID = r.Has|decode.HasPacketID, uint16(x.packet+1)
						}
						s.Update([]*decode.Report{r})
					}
					w := cutOne(s, int64(2e18))
					for _, h := range w.Hops {
						want := uint64(packets)
						if n := (h.Node%1000 - 1) % 10; n > 0 && n < long-1 {
							want /= 2
						}
						if h.Count != want {
							t.Errorf("node %d counts %d, want %d", h.Node, h.Count, want)
						}
					}
					for _, f := range s.Flows(flows) {
						if len(f.Hops) != long || f.Packets != packets {
							t.Errorf("%d packets, path of %d hops", f.Packets, len(f.Hops))
						}
					}
					changed := 0
					for _, c := range w.Paths {
						changed++
						if len(c.From) != long || len(c.To) != long {
							t.Errorf("path change from %v to %v", c.From, c.To)
						}
					}
					if order != "any by four" && changed != flows {
						t.Errorf("%d path changes, want %d", changed, flows)
					}
				})
			}
		}
	}
}

// Packets that differ in nothing and came long before are past: however many they are, the views of the next one are
// found.
func TestViewsOfManyPackets(t *testing.T) {
	const packets, flows = 3 * mostAlike, 3
	s := New(testConfig(), 1)
	view := func(flow uint32, links int, time int64) {
		var hops []decode.Hop
		for n := range links {
			hops = append(hops, hop(uint32(n+1), 1, 100))
		}
		r := stack(flow, time, hops...)
		r.Format, r.INT = decode.INTMD, 0
		r.Has, r.TTL = r.Has|decode.HasTTL, uint8(60-links)
		s.Update([]*decode.Report{r})
	}
	for p := range int64(packets) {
		for f := range uint32(flows) {
			for links := 1; links <= 3; links++ {
				view(f, links, int64(1e18)+p*viewsWithin*2+int64(links%2)) // in an order that is not that of time
			}
		}
	}
	for _, h := range cutOne(s, int64(2e18)).Hops {
		if want := uint64(flows * packets); h.Count != want {
			t.Errorf("node %d counts %d, want %d", h.Node, h.Count, want)
		}
	}
}
