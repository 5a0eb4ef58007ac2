package otlp

import (
	"cmp"
	"encoding/binary"
	"math"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
)

const (
	mostBuckets = 1024
	mostScale   = 20 // of exponential histograms, to both sides half of it
)

// point is one data point.
type point struct {
	at    int    // offset
	wrong string // field that is refused
	kind  kind   // of its metric
	delta bool   // it counts from the point before, and not from a start

	start, time uint64 // ns since 1970
	value       float64
	hasValue    bool
	empty       bool // nothing was recorded

	count    uint64
	hasMax   bool
	max      float64
	counts   []uint64
	bounds   []float64
	zero     uint64 // exponential
	zeroUpTo float64
	scale    int32
	offset   int32
	negative bool
	layout   uint64

	before, rest []uint64 // memory
}

func (p *point) reset(at int, k kind, delta bool) {
	*p = point{at: at, wrong: "data_point", kind: k, delta: delta, counts: p.counts[:0], bounds: p.bounds[:0], before: p.before[:0], rest: p.rest[:0]}
}

// read reads the point in m, and its attributes behind those of the resource.
func (p *point) read(d *Decoder, m message) decode.Reason {
	attributes := uint64(9)
	switch p.kind {
	case gauge, sum, summary:
		attributes = 7
	case exponential:
		attributes = 1
	}
	for f := (field{}); m.next(&f); {
		switch {
		case f.is(attributes, bytes):
			if !add(&d.attrs, m.in(&f)) {
				return p.bad("attributes", decode.BadCount)
			}
		case f.is(2, fixed64):
			p.start = f.v
		case f.is(3, fixed64):
			p.time = f.v
		default:
			if reason := p.field(&m, &f); reason != 0 {
				return reason
			}
		}
	}
	switch {
	case p.time == 0:
		return p.bad("time_unix_nano", decode.BadValue)
	case p.kind == histogram && !p.empty:
		return p.explicit(d)
	case p.kind == exponential && !p.empty:
		return p.exponential(d)
	case p.kind == summary:
		return p.bad("summary", decode.Unsupported)
	case !p.empty && (!p.hasValue || math.IsNaN(p.value) || math.IsInf(p.value, 0) || p.value < 0):
		return p.bad("value", decode.BadValue)
	}
	return 0
}

func (p *point) bad(field string, reason decode.Reason) decode.Reason {
	p.wrong = field
	return reason
}

// field reads a field that not all kinds of points have.
func (p *point) field(m *message, f *field) decode.Reason {
	switch p.kind {
	case gauge, sum:
		switch {
		case f.is(4, fixed64):
			p.value, p.hasValue = f.float(), true
		case f.is(6, fixed64):
			p.value, p.hasValue = float64(int64(f.v)), true
		case f.is(8, varint):
			p.empty = f.v&1 != 0
		}
	case histogram:
		switch {
		case f.is(4, fixed64):
			p.count = f.v
		case f.num == 6 && (f.typ == bytes || f.typ == fixed64):
			return p.fixed(m, f, "bucket_counts", len(p.counts), func(v uint64) { p.counts = append(p.counts, v) })
		case f.num == 7 && (f.typ == bytes || f.typ == fixed64):
			return p.fixed(m, f, "explicit_bounds", len(p.bounds), func(v uint64) { p.bounds = append(p.bounds, math.Float64frombits(v)) })
		case f.is(10, varint):
			p.empty = f.v&1 != 0
		case f.is(12, fixed64):
			p.max, p.hasMax = f.float(), true
		}
	case exponential:
		switch {
		case f.is(4, fixed64):
			p.count = f.v
		case f.is(6, varint):
			p.scale = int32(f.zigzag())
		case f.is(7, fixed64):
			p.zero = f.v
		case f.is(8, bytes):
			return p.positive(m.in(f))
		case f.is(9, bytes):
			n := len(p.counts)
			offset := p.offset
			if reason := p.positive(m.in(f)); reason != 0 {
				return reason
			}
			for _, c := range p.counts[n:] {
				p.negative = p.negative || c != 0
			}
			p.counts, p.offset = p.counts[:n], offset
		case f.is(10, varint):
			p.empty = f.v&1 != 0
		case f.is(13, fixed64):
			p.max, p.hasMax = f.float(), true
		case f.is(14, fixed64):
			p.zeroUpTo = f.float()
		}
	}
	return 0
}

// fixed reads numbers of 8 bytes, of which there are n already.
func (p *point) fixed(m *message, f *field, name string, n int, add func(uint64)) decode.Reason {
	if f.typ == fixed64 {
		if n == mostBuckets {
			return p.bad(name, decode.BadCount)
		}
		add(f.v)
		return 0
	}
	b := m.data[f.from:f.to]
	switch {
	case len(b)%8 != 0:
		return p.bad(name, decode.BadLength)
	case len(b)/8+n > mostBuckets:
		return p.bad(name, decode.BadCount)
	}
	for ; len(b) > 0; b = b[8:] {
		add(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// positive reads the buckets of an exponential histogram.
func (p *point) positive(m message) decode.Reason {
	for f := (field{}); m.next(&f); {
		switch {
		case f.is(1, varint):
			p.offset = int32(f.zigzag())
		case f.is(2, varint):
			p.counts = append(p.counts, f.v)
		case f.is(2, bytes):
			list := m.in(&f)
			for list.at < list.end {
				v, ok := list.number()
				if !ok {
					return p.bad("bucket_counts", list.reason)
				}
				if p.counts = append(p.counts, v); len(p.counts) > mostBuckets {
					break
				}
			}
		}
		if len(p.counts) > mostBuckets {
			return p.bad("bucket_counts", decode.BadCount)
		}
	}
	return 0
}

// counted checks the sum of the buckets against the count, which some devices leave out.
func (p *point) counted(more uint64) decode.Reason {
	n := more
	for _, c := range p.counts {
		if n += c; n < c || n > math.MaxInt64 {
			return p.bad("bucket_counts", decode.BadValue)
		}
	}
	if p.count != 0 && p.count != n {
		return p.bad("count", decode.BadCount)
	}
	return 0
}

// explicit checks a histogram with bounds of its own.
func (p *point) explicit(d *Decoder) decode.Reason {
	if len(p.counts) != len(p.bounds)+1 {
		if len(p.counts) == 0 && len(p.bounds) == 0 && p.count == 0 {
			return 0
		}
		return p.bad("bucket_counts", decode.BadCount)
	}
	if len(p.bounds) == 0 {
		return p.bad("explicit_bounds", decode.Unsupported) // a count and a sum, and nothing of values
	}
	for i, b := range p.bounds {
		if math.IsNaN(b) || math.IsInf(b, 0) || i > 0 && b <= p.bounds[i-1] {
			return p.bad("explicit_bounds", decode.BadValue)
		}
		p.layout = d.key.Words(p.layout, math.Float64bits(b), 5, 0)
	}
	return p.counted(0)
}

// exponential checks a histogram whose bounds are powers.
func (p *point) exponential(*Decoder) decode.Reason {
	switch {
	case p.negative:
		return p.bad("negative", decode.BadValue)
	case p.scale < -mostScale/2 || p.scale > mostScale:
		return p.bad("scale", decode.BadValue)
	case p.offset > math.MaxInt32-mostBuckets-1 || p.offset < math.MinInt32+mostBuckets:
		return p.bad("offset", decode.BadValue)
	case !(p.zeroUpTo >= 0) || math.IsInf(p.zeroUpTo, 0):
		return p.bad("zero_threshold", decode.BadValue)
	}
	return p.counted(p.zero)
}

// emit makes a report of the current point by a rule.
func (d *Decoder) emit(r *Rule, name []byte, at *place) decode.Reason {
	p := &d.p
	if d.ahead && p.empty {
		return 0
	}
	if p.empty {
		d.report(decode.KindCounters, at)
		d.full()
		return 0
	}
	isHistogram := p.kind == histogram || p.kind == exponential
	if isHistogram != (isHistogram && (r.Statistic == Latency || r.Statistic == Queue)) {
		return p.bad("data", decode.BadType)
	}
	key := d.key.Words(uint64(at.node), d.hash(0, name), d.hashOf(d.attrs[d.own:]), d.owner^uint64(p.kind))
	if d.ahead {
		d.lookAt(d.streams.byKey[key])
		return 0
	}
	s := d.streams.find(key, d.time)
	if s == nil {
		return p.bad("stream", decode.NoRoom)
	}
	before := s.time
	news, reason := s.step(p, d.time, d.cfg.Since)
	if reason != 0 {
		return p.bad("time_unix_nano", reason)
	}
	if news == anew {
		d.got.Resets++
	}
	var g growth
	if r.Statistic == Octets || r.Statistic >= Drops {
		if g = d.grown(s, news, before); g.fell {
			d.got.Resets++
		}
	}
	switch {
	case isHistogram:
		reason = d.histogram(r, s, news, before, at)
	case r.Statistic == Octets:
		d.octets(r, &g, at)
	case r.Statistic == InOctets:
		d.received(r, &g, at)
	case r.Statistic == Drops || r.Statistic == Errors:
		d.drops(r, &g, at)
	case r.Statistic.Counts():
		d.counted(r, &g, at)
	default:
		reason = d.value(r, at)
	}
	if reason == 0 {
		d.full()
	}
	return reason
}

// report appends a report about a place, with a hop that has no values yet.
func (d *Decoder) report(kind decode.Kind, at *place) *decode.Report {
	r := d.next(kind, d.p.at)
	r.NodeID = at.node
	r.Has |= decode.HasNodeID
	return r
}

// hop adds the hop of a place to a report.
func (at *place) hop(r *decode.Report) *decode.Hop {
	h := r.AddHop()
	h.NodeID, h.Has = at.node, decode.HopNodeID
	if at.port != nil {
		if at.port.Index < 0xffff {
			h.EgressIf = uint16(at.port.Index)
			h.Has |= decode.HopEgressIf
		} else {
			h.L2EgressIf = at.port.Index
			h.Has |= decode.HopL2EgressIf
		}
	}
	if at.queue >= 0 {
		packet.AddQueueID(h, uint8(at.queue))
	}
	return h
}

// histogram makes a report of buckets. Those in which nothing was counted leave it empty: where no packet passed
// there is no latency.
func (d *Decoder) histogram(rule *Rule, s *stream, news share, before uint64, at *place) decode.Reason {
	p := &d.p
	as, fell, reason := d.buckets(s, news, before)
	if reason != 0 {
		return p.bad("stream", reason)
	}
	if fell && news == added {
		d.got.Resets++
	}
	r := d.report(decode.KindHistogram, at)
	at.hop(r)
	h := &r.AddRare().Histogram
	h.Of = decode.HopLatency
	if rule.Statistic == Queue {
		h.Of = decode.HopQueueOccupancy
	}
	if as == nothing {
		return 0
	}
	if p.kind == exponential {
		p.powers(rule, h)
	} else {
		p.ranges(rule, h)
	}
	if n := len(h.Buckets); n > 0 && p.hasMax && as == whole {
		upTo(&h.Buckets[n-1], whole64(rule.scale(p.max)))
	}
	return 0
}

// upTo narrows the highest bucket by the largest value, if that is in it.
func upTo(b *decode.Bucket, most uint64) {
	if most >= b.Low && (b.Open || most < b.High) {
		b.High, b.Open = most, false
	}
}

// ranges lists the buckets of a histogram with bounds of its own. The last one is open.
func (p *point) ranges(rule *Rule, to *decode.Histogram) {
	low := uint64(0)
	for i, n := range p.counts {
		high, open := low, i == len(p.bounds)
		if !open {
			high = whole64(rule.scale(p.bounds[i]))
		}
		if n > 0 {
			to.Buckets = append(to.Buckets, decode.Bucket{Low: low, High: high, Count: n, Open: open})
		}
		low = high
	}
}

// powers lists the buckets of an exponential histogram: bucket i is above base^i and up to base^(i+1), where base is
// 2^(2^-scale).
func (p *point) powers(rule *Rule, to *decode.Histogram) {
	if p.zero > 0 {
		to.Buckets = append(to.Buckets, decode.Bucket{High: whole64(rule.scale(p.zeroUpTo)), Count: p.zero})
	}
	step := math.Exp2(-float64(p.scale))
	for i, n := range p.counts {
		if n > 0 {
			at := float64(p.offset) + float64(i)
			to.Buckets = append(to.Buckets, decode.Bucket{
				Low: whole64(rule.scale(math.Exp2(at * step))), High: whole64(rule.scale(math.Exp2((at + 1) * step))), Count: n,
			})
		}
	}
}

// octets makes a report of the octets that an interface sent since the previous point, with its utilisation if its
// speed is known.
func (d *Decoder) octets(rule *Rule, g *growth, at *place) {
	r := d.report(decode.KindCounters, at)
	if at.port != nil {
		if n, ok := d.rise(rule, g, at.port); ok {
			r.AddRare().Counters = decode.Counters{Has: decode.CountOutOctets, Interface: at.port.Index, OutOctets: n}
		}
	}
	if !g.known {
		return
	}
	if used, ok := d.used(rule, rule.scale(g.n), g.since, at.port); ok {
		h := at.hop(r)
		packet.AddWord(h, decode.HopTxUtilization, &h.TxUtilization, used)
	}
}

// used is the utilisation of an interface by octets since the previous point, in hundredths of a percent, if its
// speed is known.
func (d *Decoder) used(rule *Rule, octets float64, since uint64, port *port) (used uint32, ok bool) {
	const hour = 3600e9
	speed := d.speed(rule, port)
	length := float64(d.p.time - min(since, d.p.time))
	if speed == 0 || since == 0 || length < 1e6 || length > hour {
		return 0, false
	}
	x := octets * 8 / speed / (length / 1e9)
	return uint32(min(x, 1) * decode.WholeUtilization), x <= 1.1 // above that the counter was set, or the speed is wrong
}

// speed is the speed of an interface in bit/s, 0 if unknown. A metric that reports it comes first, then the
// interface's configuration, then the rule's value for all.
func (d *Decoder) speed(rule *Rule, port *port) float64 {
	if port == nil {
		return rule.Speed
	}
	if port.Speed == 0 && d.cfg.Speed != nil {
		return cmp.Or(d.cfg.Speed(d.src, port.Node, port.Index), rule.Speed)
	}
	return cmp.Or(port.Speed, rule.Speed)
}

// drops makes a report of the packets that were dropped since the point before.
func (d *Decoder) drops(rule *Rule, g *growth, at *place) {
	dropped := min(whole64(rule.scale(g.n)), math.MaxUint32)
	if !g.known || dropped == 0 {
		d.report(decode.KindCounters, at)
		return
	}
	r := d.report(decode.KindDrop, at)
	r.Weight, r.DropReason = uint32(dropped), rule.Reason
	r.Flags |= decode.Dropped
	r.Has |= decode.HasDropReason
	at.hop(r)
}

// value makes a report of a value that needs no previous point.
func (d *Decoder) value(rule *Rule, at *place) decode.Reason {
	v := rule.scale(d.p.value)
	if rule.Statistic == Speed {
		if at.port != nil && v > 0 && at.port.Speed != v {
			at.port.Speed = v
			d.learn(&at.port.Port)
		}
		d.report(decode.KindCounters, at)
		return 0
	}
	if rule.Statistic == Utilization && v > 1.1 {
		return d.p.bad("value", decode.BadValue)
	}
	r := d.report(decode.KindCounters, at)
	h := at.hop(r)
	switch rule.Statistic {
	case Latency:
		packet.AddWord(h, decode.HopLatency, &h.Latency, uint32(min(v, math.MaxUint32-1)))
	case Queue:
		packet.AddWord(h, decode.HopQueueOccupancy, &h.QueueOccupancy, uint32(min(v, math.MaxUint32-1)))
	case Utilization:
		packet.AddWord(h, decode.HopTxUtilization, &h.TxUtilization, uint32(min(v, 1)*decode.WholeUtilization))
	}
	return 0
}
