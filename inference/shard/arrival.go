package shard

import (
	"cmp"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// arrivals lists flows that are new to the shard. If there are too many, the first ones stay.
type arrivals struct {
	bounded[inference.Arrival]
	hops []inference.HopKey // memory of the paths
}

func newArrivals(n int) arrivals {
	return arrivals{bounded: bounded[inference.Arrival]{
		max: n,
		compare: func(a, b inference.Arrival) int {
			return cmp.Or(cmp.Compare(a.Time, b.Time), a.Flow.Compare(&b.Flow), cmp.Compare(a.Changes, b.Changes))
		},
		weight: func(*inference.Arrival) uint64 { return 1 },
	}}
}

// arrive lists a flow whose path r told, the first one since it came. Only whole paths of packets that nobody routes by hand
// are worth comparing with those that another collector knows.
func (s *State) arrive(f *flow, slot uint32, r *decode.Report) {
	f.flags &^= arrived
	if r.Kind == decode.KindProbe {
		return
	}
	c := &s.cut.arrivals
	if c.full() {
		c.trim()
		hops := c.hops
		c.hops = make([]inference.HopKey, 0, len(hops))
		for i := range c.list {
			c.list[i].Path = c.share(c.list[i].Path)
		}
	}
	a := c.add(inference.Arrival{Time: r.Time, Flow: s.flows.At(slot).Key, PathID: f.pathID, Changes: f.changes})
	if a == nil {
		c.other++
		return
	}
	var space [maxPathLength]inference.HopKey
	a.Path = c.share(s.hopKeys(space[:0], f))
}

func (c *arrivals) share(path []inference.HopKey) []inference.HopKey {
	n := len(c.hops)
	c.hops = append(c.hops, path...)
	return c.hops[n:len(c.hops):len(c.hops)]
}

func (c *arrivals) reset() {
	c.bounded.reset()
	c.hops = c.hops[:0]
}

func (c *arrivals) addTo(p *inference.Partial) {
	c.trim()
	for i := range c.list {
		p.AddArrival(&c.list[i])
	}
	p.OtherArrivals += c.other
}
