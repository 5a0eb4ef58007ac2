package window

import (
	"iter"
	"math"
	"slices"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// HopSketch is the distributions of one place in the network.
type HopSketch struct {
	inference.HopKey
	Latency, Queue quantile.Histogram // dense codes of nanoseconds and of bytes
}

// HopPart is one place in the network in a partial.
type HopPart struct {
	HopSketch
	NoLatency      uint64 // records without a latency; all others are in Latency
	Utilization    float64
	HasUtilization bool
}

var hopKind = kindOf[inference.HopKey, HopPart]{
	one: "hop", many: "hops", least: 4,
	in:      func(p *Partial) *table[inference.HopKey, HopPart] { return &p.hops },
	limit:   func(l *Limits) int { return l.Hops },
	slice:   func(s *Slicer, h *HopPart) int { return s.Hop(h.HopKey) },
	key:     func(h *HopPart) inference.HopKey { return h.HopKey },
	compare: (*HopPart).compare,
	sum: func(_ *memory, to, from *HopPart) {
		to.HopKey = from.HopKey
		to.merge(from)
	},
	empty: (*HopPart).reset,
	leave: func(p *Partial, h *HopPart) { // into the hop called other, which has room beside the limit
		if !h.Other {
			p.OtherHops += h.records()
		}
		p.Hop(inference.HopKey{Other: true}).merge(h)
	},
	code: func(c *coder, _ *memory, h *HopPart) {
		c.flags("hop flags", &h.Other, &h.HasUtilization)
		if !h.Other {
			node := h.Node - c.before.Node
			c.id("hop node", &node)
			c.id("hop interface", &h.EgressIf)
		}
		c.before = h.HopKey
		c.sketch("hop", &h.HopSketch)
		c.uint("hop records without latency", &h.NoLatency)
		if h.HasUtilization {
			bits := math.Float64bits(h.Utilization)
			c.fixed64("hop utilization", &bits)
		}
	},
	readAll: readHops,
	view: func(p *Partial, w *inference.Window, _ *Limits) {
		w.Hops = make([]inference.HopStats, 0, len(p.hops.items))
		for h := range p.AllHops() {
			s := h.Stats()
			if b := p.buckets.find(h.HopKey); b != nil {
				b.Latency.bound(&s.Latency)
				b.Queue.bound(&s.Queue)
			}
			w.Hops = append(w.Hops, s)
		}
	},
}

// readHops adds n hops to t.
func readHops(c *coder, t *table[inference.HopKey, HopPart], n int) {
	for i := range n {
		var k inference.HopKey
		var none, bits uint64
		at, utilized := c.at, false
		c.flags("hop flags", &k.Other, &utilized)
		if !k.Other {
			c.id("hop node", &k.Node)
			c.id("hop interface", &k.EgressIf)
			k.Node += c.before.Node
		}
		// A node number that wraps is out of order, too.
		if !c.check("hop", at, i == 0 || c.before.Compare(k) < 0) {
			return
		}
		c.before = k
		h, _ := t.at(k)
		h.HopKey = k
		c.sketch("hop", &h.HopSketch)
		c.uint("hop records without latency", &none)
		h.NoLatency += none
		if utilized {
			at := c.at
			c.fixed64("hop utilization", &bits)
			u := math.Float64frombits(bits)
			if !c.check("hop utilization", at, u >= 0 && u <= math.MaxFloat64 && !math.Signbit(u)) {
				return
			}
			h.Utilization, h.HasUtilization = max(h.Utilization, u), true
		}
	}
}

// Hop returns a place in the network, to be added to. It is good until the next call of a method.
func (p *Partial) Hop(k inference.HopKey) *HopPart {
	h, known := p.hops.at(k)
	if !known {
		h.HopKey = k
	}
	return h
}

// AllHops returns the places in the network, in the order of [HopKey.Compare]. P must not change meanwhile.
func (p *Partial) AllHops() iter.Seq[*HopPart] {
	return func(yield func(*HopPart) bool) {
		for _, i := range sorted(&p.order, p.hops.items, (*HopPart).compare) {
			if !yield(&p.hops.items[i]) {
				return
			}
		}
	}
}

func (h *HopPart) compare(o *HopPart) int { return h.HopKey.Compare(o.HopKey) }

// records is the number of the records of a hop.
func (h *HopPart) records() uint64 { return h.Latency.Count() + h.NoLatency }

// Stats returns h as in a [Window].
func (h *HopPart) Stats() inference.HopStats {
	return inference.HopStats{
		HopKey: h.HopKey, Count: h.records(), Latency: summary(&h.Latency), Queue: summary(&h.Queue),
		Utilization: h.Utilization, HasUtilization: h.HasUtilization,
	}
}

// summary reads the quantiles of a histogram.
func summary(h *quantile.Histogram) inference.Summary {
	var q [3]uint64
	h.Quantiles(q[:0], 0.5, 0.9, 0.99)
	return inference.Summary{Count: h.Count(), P50: q[0], P90: q[1], P99: q[2], Max: h.Max(), Min: h.Min()}
}

func (h *HopSketch) merge(o *HopSketch) {
	h.Latency.Merge(&o.Latency)
	h.Queue.Merge(&o.Queue)
}

func (h *HopSketch) reset() {
	h.Latency.Reset()
	h.Queue.Reset()
}

func (h *HopPart) merge(o *HopPart) {
	h.HopSketch.merge(&o.HopSketch)
	h.NoLatency += o.NoLatency
	if o.HasUtilization {
		h.Utilization, h.HasUtilization = max(h.Utilization, o.Utilization), true
	}
}

func (h *HopPart) reset() {
	h.HopSketch.reset()
	h.NoLatency, h.Utilization, h.HasUtilization = 0, 0, false
}

// Totals adds up the hops of many windows, for the summary of a run.
type Totals struct {
	max     int
	hops    table[inference.HopKey, HopPart]
	buckets table[inference.HopKey, BucketPart]
	rest    Partial // of the kinds that are bounded by themselves: hops without a node id
}

// NewTotals returns empty totals for at most maxHops hops; further ones are folded into the hop "other".
func NewTotals(maxHops int) *Totals { return &Totals{max: maxHops} }

// Add adds the hops of a window. It keeps nothing of p.
func (t *Totals) Add(p *Partial) {
	for i := range p.hops.items {
		h, k := &p.hops.items[i], p.hops.items[i].HopKey
		if t.hops.find(k) == nil && len(t.hops.items) >= t.max {
			k = inference.HopKey{Other: true}
		}
		to, _ := t.hops.at(k)
		to.HopKey = k
		to.merge(h)
	}
	for i := range p.buckets.items {
		if b := &p.buckets.items[i]; t.hops.find(b.HopKey) != nil {
			to, _ := t.buckets.at(b.HopKey)
			bucketKind.sum(nil, to, b)
		}
	}
	if len(p.nameless.items) > 0 {
		namelessKind.merge(&t.rest, p, &Limits{Hops: maxNameless})
	}
}

// Hops returns the sums, ordered by node and egress interface.
func (t *Totals) Hops() []inference.HopStats {
	out := make([]inference.HopStats, 0, len(t.hops.items))
	for i := range t.hops.items {
		s := t.hops.items[i].Stats()
		if b := t.buckets.find(s.HopKey); b != nil {
			b.Latency.bound(&s.Latency)
			b.Queue.bound(&s.Queue)
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b inference.HopStats) int { return a.HopKey.Compare(b.HopKey) })
	return out
}
