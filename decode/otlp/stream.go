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
	total  float64 // of a counter
	counts []uint64
	zero   uint64 // of an exponential histogram, and so are the next two
	scale  int32
	offset int32
	layout uint64 // of the bounds
}

const (
	streamBytes = 200 // of a stream, with its place in the table
	countBytes  = 8

	// fresh is how old the start of a stream may be whose first point counts whole, if this process received by then already: of others it is not
	// known when it was, or an earlier process counted a part of it.
	fresh = uint64(time.Minute)
	// patience is how long a stream may go on with times that are before that of its last point until these are believed: a clock was set back.
	patience = 5 * time.Minute
	// idle is how long a stream must be silent that makes room for others, and sweep how often the table is looked through for such.
	idle  = 10 * time.Minute
	sweep = time.Minute
)

// streams are the last points of streams, in bounded memory.
type streams struct {
	most, used int64 // bytes
	of         map[uint64]*stream
	swept      int64
}

// find gives a stream, nil if there is no room for a new one. A stream that is new has seen nothing.
func (t *streams) find(key uint64, now int64) *stream {
	if s := t.of[key]; s != nil {
		return s
	}
	if !t.room(streamBytes, now) {
		return nil
	}
	s := &stream{}
	t.of[key] = s
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
	for k, s := range t.of {
		if now-s.seen > int64(idle) {
			t.used -= streamBytes + int64(cap(s.counts))*countBytes
			delete(t.of, k)
		}
	}
	return t.used+n <= t.most
}

// share is what of a point is new since the one before.
type share uint8

const (
	nothing share = iota // not known: it is the first one
	added                // what it has more than the one before
	whole                // all of it
)

// step follows a stream to its next point, and says what of that is new as far as times show it, and whether a sum began anew. Since is when the
// receiver began, by its clock.
func (s *stream) step(p *point, now, since int64) (news share, anew bool, reason decode.Reason) {
	known := s.seen != 0
	if known && p.time <= s.time {
		if now-s.seen < int64(patience) {
			return 0, false, decode.Repeated
		}
		known = false
	}
	began := p.start > s.start && p.start >= s.time // anew, behind the last point
	switch {
	case p.delta, known && began, !known && p.start != 0 && p.start <= p.time && p.time-p.start <= fresh && now-int64(p.time-p.start) >= since:
		news = whole
	case known:
		news = added
	}
	s.seen, s.time, s.start = now, p.time, p.start
	return news, known && began && !p.delta, 0
}

// count gives what a counter counted since the point before, and whether that is known. A counter that fell was set to 0 in between.
func (s *stream) count(news share, total float64) (n float64, ok bool) {
	last := s.total
	s.total = total
	switch {
	case news == nothing:
		return 0, false
	case news == whole || total < last:
		return total, true
	}
	return total - last, true
}

// buckets leaves in p.counts what buckets counted since the point before, and reports whether that is known, and whether one of them fell.
func (t *streams) buckets(s *stream, news share, p *point, now int64) (ok, fell bool, reason decode.Reason) {
	last, zero, scale, offset, layout := append(p.before[:0], s.counts...), s.zero, s.scale, s.offset, s.layout
	p.before = last
	if !p.delta && !t.keep(s, p.counts, now) {
		return false, false, decode.NoRoom
	}
	s.zero, s.scale, s.offset, s.layout = p.zero, p.scale, p.offset, p.layout
	switch {
	case news == nothing || news == added && layout != p.layout:
		return false, false, 0
	case news == whole:
		return true, false, 0
	}
	return true, !p.subtract(last, zero, scale, offset), 0
}

// subtract takes the counts of an earlier point from those of p, in the coarser one of both scales. Where p has less in a bucket it began anew, and
// stays whole, which is reported as false.
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
