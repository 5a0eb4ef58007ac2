package inference

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode"
)

// FlowSight is a busy flow in a window as a node saw it that samples packets or exports flow records: where the packets came in and left,
// and how many they were by the sampling rate. The way of the flow is not known by it, nor a latency of a hop.
type FlowSight struct {
	Node            uint32
	Ingress, Egress uint32 // interfaces; 0 where they are not known
	Records         uint64 // samples and flow records
	Packets, Octets uint64 // that these stand for; Octets is 0 where it is not known
	First, Last     int64  // times of the first and the last packet of flow records, by the exporter's clock; 0 where they are not known

	// Time of packets since the node that put telemetry into them, by the clocks of the two, in ns. There are no quantiles of it.
	Delayed            uint64 // packets that the mean is of; 0 where no delay is known
	DelaySum           uint64 // of these packets
	DelayMin, DelayMax uint64 // DelayMin is above DelayMax where neither is known
}

// DelayMean is the mean delay in ns; it is 0 where Delayed is.
func (s *FlowSight) DelayMean() uint64 { return s.DelaySum / max(s.Delayed, 1) }

// Add adds what was seen at the same place.
func (s *FlowSight) Add(o *FlowSight) {
	s.Records += o.Records
	s.Packets += o.Packets
	s.Octets += o.Octets
	if o.First != 0 && (s.First == 0 || o.First < s.First) {
		s.First = o.First
	}
	s.Last = max(s.Last, o.Last)
	s.Delayed += o.Delayed
	s.DelaySum += o.DelaySum
	s.DelayMin, s.DelayMax = min(s.DelayMin, o.DelayMin), max(s.DelayMax, o.DelayMax)
}

// noDelayMin and noDelayMax are DelayMin and DelayMax where no delay is known.
const noDelayMin, noDelayMax = 1<<64 - 1, 0

// HasDelayBounds reports whether DelayMin and DelayMax are known.
func (s *FlowSight) HasDelayBounds() bool { return s.DelayMin <= s.DelayMax }

// MostSights bounds the places of one flow that are kept. Where there are more, those with the least numbers stay.
const MostSights = 8

// FlowSights are the places of one flow.
type FlowSights struct {
	Flow  decode.FlowKey
	Count int                   // of places
	Sight [MostSights]FlowSight // by node, ingress and egress
}

// Add adds what was seen at one place.
func (x *FlowSights) Add(s *FlowSight) {
	at, known := slices.BinarySearchFunc(x.Sight[:x.Count], s, func(a FlowSight, b *FlowSight) int { return comparePlaces(&a, b) })
	switch {
	case known:
		x.Sight[at].Add(s)
	case at < MostSights:
		x.Count = min(x.Count+1, MostSights)
		copy(x.Sight[at+1:x.Count], x.Sight[at:])
		x.Sight[at] = *s
	}
}

func comparePlaces(a, b *FlowSight) int {
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
		n := c.count("sights", MostSights, 12, x.Count)
		c.check("sights", at, n > 0)
		for x.Count = 0; x.Count < n && c.err == nil; x.Count++ {
			codeSight(c, x, &x.Sight[x.Count])
		}
	},
}

func codeSight(c *coder, of *FlowSights, x *FlowSight) {
	at := c.at
	c.id("sight node", &x.Node)
	c.id("sight ingress", &x.Ingress)
	c.id("sight egress", &x.Egress)
	c.check("sight", at, of.Count == 0 || comparePlaces(&of.Sight[of.Count-1], x) < 0)
	c.time("sight first", &x.First)
	c.time("sight last", &x.Last)
	at = c.at
	c.uints("sight counts", &x.Records, &x.Packets, &x.Octets, &x.Delayed, &x.DelaySum, &x.DelayMin, &x.DelayMax)
	c.check("sight counts", at, x.Records > 0 && (x.DelayMin <= x.DelayMax || x.DelayMin == noDelayMin && x.DelayMax == noDelayMax))
}

// sight adds to a flow of the window what nodes saw of it, the places with most packets first.
func (p *Partial) sight(f *FlowStats) {
	x := p.sights.find(f.Key)
	if x == nil {
		return
	}
	f.Sights = slices.Clone(x.Sight[:x.Count])
	slices.SortStableFunc(f.Sights, func(a, b FlowSight) int { return cmp.Compare(b.Packets, a.Packets) })
}

// AddSights adds what nodes saw of a flow, at one place at least.
func (p *Partial) AddSights(x *FlowSights) { sightKind.put(p, x) }

// SightOf makes a sight of a report of a sample or a flow record.
func SightOf(r *decode.Report) FlowSight {
	s := FlowSight{Node: r.NodeID, Records: 1, Packets: uint64(max(r.Weight, 1)), DelayMin: noDelayMin, DelayMax: noDelayMax}
	t := r.Traffic
	if t == nil {
		return s
	}
	s.Ingress, s.Egress, s.Octets, s.First, s.Last = t.Ingress, t.Egress, t.Octets, t.Start, t.End
	d := &t.Delay
	if d.Has&decode.DelayMean != 0 {
		s.Delayed = max(d.Packets, 1)
		if s.DelaySum = d.Mean * s.Delayed; d.Has&decode.DelaySum != 0 && d.Packets > 0 {
			s.DelaySum = d.Sum
		}
		s.DelayMin, s.DelayMax = d.Mean, d.Mean
	}
	if d.Has&decode.DelayMin != 0 {
		s.DelayMin, s.DelayMax = min(s.DelayMin, d.Min), max(s.DelayMax, d.Min)
	}
	if d.Has&decode.DelayMax != 0 {
		s.DelayMin, s.DelayMax = min(s.DelayMin, d.Max), max(s.DelayMax, d.Max)
	}
	return s
}
