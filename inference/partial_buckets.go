package inference

import (
	"math"

	"github.com/hopscope/hopscope/sketches/logcode"
)

// BucketPart holds the lower bounds of a hop's values that came as counts of buckets, from a device that keeps histograms itself. In
// [HopPart] each of them stands at the upper bound of its bucket.
type BucketPart struct {
	HopKey
	Latency, Queue BucketCounts
}

// BucketCounts is the other end of the buckets that values came in.
type BucketCounts struct {
	Low  logcode.Histogram // dense codes of the lower bounds, in nanoseconds or bytes
	Open uint64            // values beyond the last bound, which stand at that bound
}

// Bounds states how far the quantiles of a [Summary] can be from those of the values, since these came in buckets: none of them is
// higher, unless it is among those that are beyond the last bound.
type Bounds struct {
	P50, P90, P99 uint64 // the least that they can be
	Open          uint64 // values beyond the last bound, of which no more is known
}

var bucketKind = kindOf[HopKey, BucketPart]{
	one: "hop with buckets", many: "hops with buckets", least: 6,
	in:      func(p *Partial) *table[HopKey, BucketPart] { return &p.buckets },
	limit:   func(l *Limits) int { return l.Hops },
	slice:   func(s *Slicer, b *BucketPart) int { return s.Hop(b.HopKey) },
	key:     func(b *BucketPart) HopKey { return b.HopKey },
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

// Buckets returns what is known of the buckets of a place in the network, to be added to. It is good until the next call of a method.
func (p *Partial) Buckets(k HopKey) *BucketPart {
	b, known := p.buckets.at(k)
	if !known {
		b.HopKey = k
	}
	return b
}

// bound gives the summary of a hop's values the bounds that follow from their buckets, if they came in any.
func (b *BucketCounts) bound(s *Summary) {
	if b.Low.Count() == 0 || s.Count == 0 {
		return
	}
	var q [3]uint64
	b.Low.Quantiles(q[:0], 0.5, 0.9, 0.99)
	s.Bounds = &Bounds{P50: min(q[0], s.P50), P90: min(q[1], s.P90), P99: min(q[2], s.P99), Open: b.Open}
}

// Beyond reports whether a quantile is among the values beyond the last bound, of which it is only known that they are higher.
func (s *Summary) Beyond(q float64) bool {
	return s.Bounds != nil && float64(s.Count)-float64(s.Bounds.Open) < math.Ceil(q*float64(s.Count))
}

// width is how far a quantile can be below what the summary says of it.
func (b *Bounds) width(q float64, v uint64) uint64 {
	switch low := b.P50; {
	case q > .9:
		return v - min(b.P99, v)
	case q > .5:
		return v - min(b.P90, v)
	default:
		return v - min(low, v)
	}
}
