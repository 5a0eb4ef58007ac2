package window

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// FlowSights are the places of one flow.
type FlowSights struct {
	Flow  decode.FlowKey
	Count int                                       // of places
	Sight [inference.MostSights]inference.FlowSight // by node, ingress and egress
}

// Add adds what was seen at one place.
func (x *FlowSights) Add(s *inference.FlowSight) {
	at, known := slices.BinarySearchFunc(x.Sight[:x.Count], s, func(a inference.FlowSight, b *inference.FlowSight) int { return comparePlaces(&a, b) })
	switch {
	case known:
		x.Sight[at].Add(s)
	case at < inference.MostSights:
		x.Count = min(x.Count+1, inference.MostSights)
		copy(x.Sight[at+1:x.Count], x.Sight[at:])
		x.Sight[at] = *s
	}
}

func comparePlaces(a, b *inference.FlowSight) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Ingress, b.Ingress), cmp.Compare(a.Egress, b.Egress))
}

var sightKind = kindOf[decode.FlowKey, FlowSights]{
	one: "sight", many: "sights", least: flowBytes + 13,
	in:      func(p *Partial) *table[decode.FlowKey, FlowSights] { return &p.sights },
	limit:   func(l *Limits) int { return l.Flows },
	slice:   func(s *Slicer, x *FlowSights) int { return s.Flow(&x.Flow) },
	key:     func(x *FlowSights) decode.FlowKey { return x.Flow },
	compare: func(a, b *FlowSights) int { return a.Flow.Compare(&b.Flow) },
	sum: func(_ *memory, to, from *FlowSights) {
		for i := range from.Count {
			to.Add(&from.Sight[i])
		}
	},
	fits: func(p *Partial, x *FlowSights, most int) bool { // if flows are left out, those of their sights are
		return len(p.flows.items) < most || p.flows.find(x.Flow) != nil
	},
	code: func(c *coder, _ *memory, x *FlowSights) {
		c.flow("sight flow", &x.Flow)
		at := c.at
		n := c.count("sights", inference.MostSights, 12, x.Count)
		c.check("sights", at, n > 0)
		for x.Count = 0; x.Count < n && c.err == nil; x.Count++ {
			codeSight(c, x, &x.Sight[x.Count])
		}
	},
}

func codeSight(c *coder, of *FlowSights, x *inference.FlowSight) {
	at := c.at
	c.id("sight node", &x.Node)
	c.id("sight ingress", &x.Ingress)
	c.id("sight egress", &x.Egress)
	c.check("sight", at, of.Count == 0 || comparePlaces(&of.Sight[of.Count-1], x) < 0)
	c.time("sight first", &x.First)
	c.time("sight last", &x.Last)
	at = c.at
	c.uints("sight counts", &x.Records, &x.Packets, &x.Octets, &x.Delayed, &x.DelaySum, &x.DelayMin, &x.DelayMax)
	c.check("sight counts", at, x.Records > 0 && (x.DelayMin <= x.DelayMax || x.DelayMin == inference.NoDelayMin && x.DelayMax == inference.NoDelayMax))
}

// sight adds to a flow of the window what nodes saw of it, the places with most packets first.
func (p *Partial) sight(f *inference.FlowStats) {
	x := p.sights.find(f.Key)
	if x == nil {
		return
	}
	f.Sights = slices.Clone(x.Sight[:x.Count])
	slices.SortStableFunc(f.Sights, func(a, b inference.FlowSight) int { return cmp.Compare(b.Packets, a.Packets) })
}

// AddSights adds what nodes saw of a flow, at one place at least.
func (p *Partial) AddSights(x *FlowSights) { sightKind.put(p, x) }
