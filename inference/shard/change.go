package shard

import (
	"cmp"

	"github.com/hopscope/hopscope/inference"
)

// changes lists the path changes of a window. If there are too many, the first ones stay.
type changes struct {
	bounded[inference.PathChange]
	hops []inference.HopKey // memory of the paths
}

func newChanges(n int) changes {
	return changes{bounded: bounded[inference.PathChange]{
		max: n,
		compare: func(a, b inference.PathChange) int {
			return cmp.Or(cmp.Compare(a.Time, b.Time), a.Flow.Compare(&b.Flow), cmp.Compare(a.Changes, b.Changes))
		},
		weight: func(*inference.PathChange) uint64 { return 1 },
	}}
}

// count lists a change and gives its place, or nil if it is not listed. The paths are the caller's to fill in.
func (c *changes) count(p inference.PathChange) *inference.PathChange {
	if c.full() {
		c.trim()
		hops := c.hops
		c.hops = make([]inference.HopKey, 0, len(hops))
		for i := range c.list {
			p := &c.list[i]
			p.From, p.To = c.share(p.From), c.share(p.To)
		}
	}
	at := c.add(p)
	if at == nil {
		c.other++
	}
	return at
}

// share copies a path to the end of the memory and gives the copy.
func (c *changes) share(path []inference.HopKey) []inference.HopKey {
	n := len(c.hops)
	c.hops = append(c.hops, path...)
	return c.hops[n:len(c.hops):len(c.hops)]
}

func (c *changes) reset() {
	c.bounded.reset()
	c.hops = c.hops[:0]
}

func (c *changes) addTo(p *inference.Partial) {
	c.trim()
	for i := range c.list {
		p.AddPath(&c.list[i])
	}
	p.OtherPaths += c.other
}
