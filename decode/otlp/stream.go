package otlp

import (
	"math"
	"time"

	"github.com/hopscope/hopscope/decode"
)

// A stream is the points of a metric with the same attributes of one node.
type stream struct {
	seen   int64  // when a point came last, by the clock of the receiver
	time   uint64 // of the last point
	start  uint64
	total  float64 // of a counter, or of all buckets
	rate   float64 // by which it rose, per ns, over the last few points; 0 where that is not known
	counts []uint64
	zero   uint64 // of an exponential histogram, and so are the next two
	scale  int32
	offset int32
	layout uint64 // of the bounds
}

const (
	streamBytes = 208 // of a stream, with its place in the table
	countBytes  = 8

	// fresh is the largest age of a stream's start at its first point for that point to count whole. This process
	// must also have received at the start. Otherwise the start of counting is unknown, or an earlier process counted
	// a part.
	fresh = uint64(time.Minute)
	// patience is how long a stream may have times before that of its last point until they are accepted: a clock was
	// set back.
	patience = 5 * time.Minute
	// idle is how long a stream must be silent before it makes room for others, and sweep the interval of searches
	// for such.
	idle  = 10 * time.Minute
	sweep = time.Minute
)

// streams are the last points of streams, in bounded memory.
type streams struct {
	most, used int64 // bytes
	byKey      map[uint64]*stream
	swept      int64
}

// find returns a stream, nil if there is no room for a new one. A new stream has no point.
func (t *streams) find(key uint64, now int64) *stream {
	if s := t.byKey[key]; s != nil {
		return s
	}
	if !t.room(streamBytes, now) {
		return nil
	}
	s := &stream{}
	t.byKey[key] = s
	t.used += streamBytes
	return s
}

// keep makes s remember counts, and reports whether there was room for them.
func (t *streams) keep(s *stream, counts []uint64, now int64) bool {
	if more := int64(len(counts)-cap(s.counts)) * countBytes; more > 0 {
		if !t.room(more, now) {
			return false
		}
		t.used += more
		s.counts = make([]uint64, 0, len(counts))
	}
	s.counts = append(s.counts[:0], counts...)
	return true
}

func (t *streams) room(n, now int64) bool {
	if t.used+n <= t.most {
		return true
	}
	if now-t.swept < int64(sweep) && now >= t.swept {
		return false
	}
	t.swept = now
	for k, s := range t.byKey {
		if now-s.seen > int64(idle) {
			t.used -= streamBytes + int64(cap(s.counts))*countBytes
			delete(t.byKey, k)
		}
	}
	return t.used+n <= t.most
}

// share is the part of a point that is new since the previous one.
type share uint8

const (
	nothing share = iota // not known: it is the first one
	added                // its difference to the previous one
	anew                 // of a sum whose start moved behind the one before: all of it, if the sum began anew
	whole                // all of it
)

// step moves a stream to its next point, and returns the new share of that, as far as times show it. Since is when
// the receiver began, by its clock.
//
// Source: OpenTelemetry metrics data model, "Resets and Gaps". A start that equals the time of its own point is
// unknown.
func (s *stream) step(p *point, now, since int64) (news share, reason decode.Reason) {
	known := s.seen != 0
	if known && p.time <= s.time {
		if now-s.seen < int64(patience) {
			return 0, decode.Repeated
		}
		known = false
	}
	starts := p.start != 0 && p.start < p.time
	switch {
	case p.delta, !known && starts && p.time-p.start <= fresh && now-int64(p.time-p.start) >= since:
		news = whole
	case known && starts && p.start > s.start && p.start >= s.time:
		news = anew
	case known:
		news = added
	}
	s.seen, s.time, s.start = now, p.time, p.start
	return news, 0
}

// settle decides what of a stream counts, once it is known whether it fell from its previous total. A sum whose start
// moved counts whole in three cases. It fell, or another sum of its resource fell with the same new start, or all of
// it fits twice its rate since the start. Else it continued, for example behind a sender that restarted, and its
// increment counts. A new sum would have counted at most the old total more. A sum that fell under its old start was
// set at an unknown time, to an unknown value. So its increment is unknown. A restart above the previous point is
// invisible if the sum has no start, or still the old one: the difference counts.
func (d *Decoder) settle(s *stream, news share, fell bool, total float64) share {
	p := &d.p
	switch {
	case news == anew && fell:
		d.restart = p.start
		return whole
	case news == anew && (p.start == d.restart || total <= 2*s.rate*float64(p.time-p.start) || d.fellWith(p.start)):
		return whole
	case news == anew:
		return added
	case news == added && fell:
		return nothing
	}
	return news
}

// rose records the rate of a stream, by its increment between two times.
func (s *stream) rose(n float64, since, to uint64) {
	const few = 8
	switch rate := n / float64(to-since); {
	case since == 0 || to <= since:
	case s.rate == 0:
		s.rate = rate
	default:
		s.rate += (rate - s.rate) / few
	}
}

// fellWith reports whether another sum of the current resource fell with the same new start. It reads the resource
// ahead, once for a start, and for a few starts of a request. If a sender gives each sum its own start, no sum fell
// with another.
func (d *Decoder) fellWith(start uint64) bool {
	const few = 4
	if d.askedIn != d.requests {
		d.asks = 0
	}
	if d.asks == few || d.asks > 0 && d.asked == start && d.askedAt == d.within.at {
		return false
	}
	d.asks++
	p, attrs, own, owner, got := d.p, d.attrs, d.own, d.owner, d.got
	d.p, d.attrs, d.ahead = point{}, nil, true
	d.asked, d.askedAt, d.askedIn = start, d.within.at, d.requests
	d.resource(d.within)
	d.p, d.attrs, d.own, d.owner, d.got, d.ahead = p, attrs, own, owner, got, false
	return d.restart == start
}

// lookAt remembers that the sum at hand, which is read ahead, fell under the new start that is asked for.
func (d *Decoder) lookAt(s *stream) {
	if p := &d.p; s != nil && p.start == d.asked && p.start > s.start && p.start >= s.time && p.time > s.time && p.whole() < s.total {
		d.restart = p.start
	}
}

// whole is the value of a point, or how much is in its buckets.
func (p *point) whole() float64 {
	if p.kind != histogram && p.kind != exponential {
		return p.value
	}
	n := p.zero
	for _, c := range p.counts {
		n += c
	}
	return float64(n)
}

// growth is the increment of a counter since the previous point.
type growth struct {
	n     float64
	since uint64 // when that began, ns since 1970; 0 where it is not known
	known bool
	fell  bool // it was set, and n is not known
}

// grown returns the growth of a counter with the point at hand. Before is the time of the one before.
func (d *Decoder) grown(s *stream, news share, before uint64) (g growth) {
	last, total := s.total, d.p.value
	s.total = total
	switch as := d.settle(s, news, total < last, total); {
	case as == whole:
		s.rose(total, d.p.start, d.p.time)
		return growth{n: total, since: d.p.start, known: true}
	case as == added:
		s.rose(total-last, before, d.p.time)
		return growth{n: total - last, since: before, known: true}
	}
	return growth{fell: news == added}
}

// buckets leaves in p.counts the increments of the buckets since the previous point, whose time is before. It returns
// which share that is, and whether a bucket fell.
func (d *Decoder) buckets(s *stream, news share, before uint64) (as share, fell bool, reason decode.Reason) {
	p := &d.p
	last, zero, scale, offset, layout, had := append(p.before[:0], s.counts...), s.zero, s.scale, s.offset, s.layout, s.total
	p.before = last
	if !p.delta && !d.streams.keep(s, p.counts, d.time) {
		return nothing, false, decode.NoRoom
	}
	s.zero, s.scale, s.offset, s.layout, s.total = p.zero, p.scale, p.offset, p.layout, p.whole()
	total := s.total
	if layout != p.layout && news != whole { // another histogram
		return d.settle(s, news, true, total), false, 0
	}
	if news == anew && d.settle(s, news, total < had, total) == whole {
		news = whole
	}
	switch news {
	case nothing:
		return nothing, false, 0
	case whole:
		s.rose(total, p.start, p.time)
		return whole, false, 0
	}
	if fell = !p.subtract(last, zero, scale, offset); !fell {
		s.rose(total-had, before, p.time)
	}
	return d.settle(s, news, fell, total), fell, 0
}

// subtract subtracts the counts of an earlier point from those of p, in the coarser one of both scales. If p has less
// in a bucket it stays whole, and subtract returns false.
func (p *point) subtract(last []uint64, zero uint64, scale, offset int32) bool {
	to := min(scale, p.scale)
	now, at := coarser(p.rest[:0], p.counts, p.scale-to, p.offset)
	p.rest = now
	if zero > p.zero {
		return false
	}
	for i, n := range last {
		if n == 0 {
			continue
		}
		j := int((int64(offset)+int64(i))>>min(scale-to, 63)) - int(at)
		if j < 0 || j >= len(now) || now[j] < n {
			return false
		}
		now[j] -= n
	}
	p.zero -= zero
	p.counts, p.rest = now, p.counts
	p.scale, p.offset = to, at
	return true
}

// coarser adds up buckets whose width doubles by times.
func coarser(to, counts []uint64, by, offset int32) ([]uint64, int32) {
	first := int64(offset) >> min(by, 63)
	for i, n := range counts {
		j := int((int64(offset)+int64(i))>>min(by, 63) - first)
		for len(to) <= j {
			to = append(to, 0)
		}
		to[j] += n
	}
	return to, int32(first)
}

// whole64 is v as a whole number.
func whole64(v float64) uint64 {
	switch {
	case !(v > 0):
		return 0
	case v >= math.MaxInt64:
		return math.MaxInt64
	}
	return uint64(math.Round(v))
}
