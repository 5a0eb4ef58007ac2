package window

import (
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// BucketPart holds the lower bounds of a hop's values that came as counts of buckets, from a device that keeps
// histograms itself. In [HopPart] each of them stands at the upper bound of its bucket.
type BucketPart struct {
	inference.HopKey
	Latency, Queue BucketCounts
}

// BucketCounts is the other end of the buckets that values came in.
type BucketCounts struct {
	Low  quantile.Histogram // dense codes of the lower bounds, in nanoseconds or bytes
	Open uint64             // values beyond the last bound, which count at that bound
}

var bucketKind = kindOf[inference.HopKey, BucketPart]{
	one: "hop with buckets", many: "hops with buckets", least: 6,
	in:      func(p *Partial) *table[inference.HopKey, BucketPart] { return &p.buckets },
	limit:   func(l *Limits) int { return l.Hops },
	slice:   func(s *Slicer, b *BucketPart) int { return s.Hop(b.HopKey) },
	key:     func(b *BucketPart) inference.HopKey { return b.HopKey },
	compare: func(a, b *BucketPart) int { return a.HopKey.Compare(b.HopKey) },
	sum: func(_ *memory, to, from *BucketPart) {
		to.HopKey = from.HopKey
		to.Latency.merge(&from.Latency)
		to.Queue.merge(&from.Queue)
	},
	empty: func(b *BucketPart) {
		b.Latency.reset()
		b.Queue.reset()
	},
	code: func(c *coder, _ *memory, b *BucketPart) {
		c.id("node with buckets", &b.Node)
		c.id("interface with buckets", &b.EgressIf)
		for _, x := range []*BucketCounts{&b.Latency, &b.Queue} {
			c.histogram("bucket bounds", &x.Low)
			c.uint("values beyond the buckets", &x.Open)
		}
	},
}

func (b *BucketCounts) merge(o *BucketCounts) {
	b.Low.Merge(&o.Low)
	b.Open += o.Open
}

func (b *BucketCounts) reset() {
	b.Low.Reset()
	b.Open = 0
}

// Buckets returns what is known of the buckets of a place in the network, to be added to. It is good until the next
// call of a method.
func (p *Partial) Buckets(k inference.HopKey) *BucketPart {
	b, known := p.buckets.at(k)
	if !known {
		b.HopKey = k
	}
	return b
}

// bound sets the bounds of the summary of a hop's values that follow from their buckets, if they came in any.
func (b *BucketCounts) bound(s *inference.Summary) {
	if b.Low.Count() == 0 || s.Count == 0 {
		return
	}
	var q [3]uint64
	b.Low.Quantiles(q[:0], 0.5, 0.9, 0.99)
	s.Bounds = &inference.Bounds{P50: min(q[0], s.P50), P90: min(q[1], s.P90), P99: min(q[2], s.P99), Open: b.Open}
}
