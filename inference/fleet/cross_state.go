package fleet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// crossVersion is the first byte of the state of a Cross.
const crossVersion = 1

// AppendState appends what c knows between two windows, for ReadState. What was the same for two of them has the same bytes.
func (c *Cross) AppendState(b []byte) []byte {
	unsigned := func(list ...uint64) {
		for _, v := range list {
			b = binary.AppendUvarint(b, v)
		}
	}
	signed := func(list ...int64) {
		for _, v := range list {
			b = binary.AppendVarint(b, v)
		}
	}
	flag := func(v bool) {
		if v {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	b = append(b, crossVersion)
	signed(c.end, c.swept)
	unsigned(uint64(len(c.exporters)))
	for _, k := range inOrder(c.exporters, inference.ExporterKey.Compare) {
		x := c.exporters[k]
		b = append(append(b, k.Addr[:]...), k.HWID)
		unsigned(uint64(k.Node))
		b = appendName(b, x.owner)
		b = appendName(b, x.former)
		signed(x.since, x.last, x.until, x.gone, x.told, x.due)
		flag(x.shared)
		unsigned(uint64(len(x.claims)))
		for _, k := range x.claims {
			signed(k.end, k.lost)
			unsigned(k.provisional, k.down, k.restarts)
		}
		unsigned(uint64(len(x.streams)))
		for _, s := range x.streams {
			b = append(b, s.width)
			flag(s.marked)
			unsigned(uint64(s.epoch), s.edge, s.mark, uint64(len(s.members)))
			signed(s.markEnd, s.heard)
			for i := range s.members {
				m := &s.members[i]
				b = appendName(b, m.from)
				unsigned(m.to, uint64(m.epoch), m.head)
				signed(m.heard)
			}
			unsigned(uint64(len(s.runs)))
			next := uint64(0)
			for _, r := range s.runs {
				unsigned(r.First-next, r.Last-r.First, r.Last-r.First+1-r.Count)
				next = r.Last + 1
			}
		}
	}
	unsigned(uint64(len(c.flows)))
	for _, k := range inOrder(c.flows, func(a, b decode.FlowKey) int { return a.Compare(&b) }) {
		x := c.flows[k]
		b = append(append(b, k.Src[:]...), k.Dst[:]...)
		b = binary.LittleEndian.AppendUint16(b, k.SrcPort)
		b = binary.LittleEndian.AppendUint16(b, k.DstPort)
		b = append(b, k.Proto, k.IPVersion)
		b = appendName(b, x.owner)
		unsigned(x.id, uint64(x.changes), uint64(x.ahead), uint64(len(x.path)))
		signed(x.last)
		for _, h := range x.path {
			unsigned(uint64(h.Node), uint64(h.EgressIf))
			flag(h.Other)
		}
	}
	return b
}

func inOrder[K comparable, V any](m map[K]V, compare func(a, b K) int) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compare)
	return keys
}

// CrossStateError says at which byte of a state something is wrong, and what.
type CrossStateError struct {
	Field  string
	Offset int
	Err    error // ErrShort, ErrVersion or ErrRange
}

func (e *CrossStateError) Error() string {
	return fmt.Sprintf("state of exporters and flows: %s at byte %d: %v", e.Field, e.Offset, e.Err)
}

// Unwrap gives the reason.
func (e *CrossStateError) Unwrap() error { return e.Err }

// ReadState makes c know what AppendState wrote, by a Cross whose limits were not higher. Anything else is refused with a
// [*CrossStateError], and then c knows nothing.
func (c *Cross) ReadState(b []byte) error {
	refused := c.stats.Refused
	c.clear()
	c.stats.Refused = refused
	r := headReader{b: b}
	c.readState(&r)
	if r.err == nil && r.at != len(b) {
		r.fail("end", ErrRange)
	}
	if r.err != nil {
		c.clear()
		var at *HeadError
		if errors.As(r.err, &at) {
			return &CrossStateError{at.Field, at.Offset, at.Err}
		}
		return r.err
	}
	return nil
}

func (r *headReader) byte(field string) byte {
	if r.err == nil && r.at >= len(r.b) {
		r.fail(field, ErrShort)
	}
	if r.err != nil {
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

func (r *headReader) flag(field string) bool {
	v := r.byte(field)
	if v > 1 {
		r.at--
		r.fail(field, ErrRange)
	}
	return v == 1
}

func (r *headReader) copy(field string, to []byte) {
	if r.err == nil && len(to) > len(r.b)-r.at {
		r.fail(field, ErrShort)
	}
	if r.err == nil {
		r.at += copy(to, r.b[r.at:])
	}
}

// signed reads a number when there may have been an error before.
func (r *headReader) signed(field string) int64 {
	if r.err != nil {
		return 0
	}
	return r.int(field)
}

// count reads how many items follow that have a number of bytes at least.
func (r *headReader) count(field string, most, size int) int {
	at := r.at
	n := r.uint(field, uint64(max(most, 0)))
	if r.err == nil && n > uint64((len(r.b)-r.at)/size) {
		r.at = at
		r.fail(field, ErrShort)
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *headReader) ok(field string, ok bool) {
	if !ok {
		r.fail(field, ErrRange)
	}
}

// Extended numbers begin at firstEpoch and grow. The bounds keep sums and differences of them from wrapping.
const (
	nearest  = firstEpoch / 2
	furthest = 1 << 62
)

func (c *Cross) readState(r *headReader) {
	if v := r.byte("version"); r.err == nil && v != crossVersion {
		r.at = 0
		r.fail("version", ErrVersion)
	}
	c.end, c.swept = r.signed("end"), r.signed("end")
	var before inference.ExporterKey
	for i, n := 0, r.count("exporters", c.limits.Exporters, 28); i < n && r.err == nil; i++ {
		var k inference.ExporterKey
		r.copy("exporter", k.Addr[:])
		k.HWID, k.Node = r.byte("exporter"), uint32(r.uint("exporter", math.MaxUint32))
		r.ok("exporter", i == 0 || before.Compare(k) < 0)
		before = k
		x := &exporter{owner: r.name("owner"), former: r.name("owner")}
		for _, v := range []*int64{&x.since, &x.last, &x.until, &x.gone, &x.told, &x.due} {
			*v = r.signed("exporter")
		}
		x.shared = r.flag("exporter")
		for n := r.count("claims", maxClaims, 5); n > 0 && r.err == nil; n-- {
			k := claim{end: r.signed("claim"), lost: r.signed("claim")}
			k.provisional, k.down, k.restarts = r.uint("claim", math.MaxUint64), r.uint("claim", math.MaxUint64), r.uint("claim", math.MaxUint64)
			x.claims = append(x.claims, k)
		}
		for n := r.count("streams", maxStreams, 12); n > 0 && r.err == nil; n-- {
			x.streams = append(x.streams, r.stream(&c.limits))
		}
		c.exporters[k] = x
	}
	var last decode.FlowKey
	for i, n := 0, r.count("flows", c.limits.Flows, 44); i < n && r.err == nil; i++ {
		var k decode.FlowKey
		var ports [4]byte
		r.copy("flow", k.Src[:])
		r.copy("flow", k.Dst[:])
		r.copy("flow", ports[:])
		k.SrcPort, k.DstPort = binary.LittleEndian.Uint16(ports[:]), binary.LittleEndian.Uint16(ports[2:])
		k.Proto, k.IPVersion = r.byte("flow"), r.byte("flow")
		r.ok("flow", i == 0 || last.Compare(&k) < 0)
		last = k
		x := &flow{owner: r.name("owner"), id: r.uint("path", math.MaxUint64)}
		x.changes, x.ahead = uint32(r.uint("changes", math.MaxUint32)), uint32(r.uint("changes", math.MaxUint32))
		hops := r.count("path", math.MaxInt, 3)
		x.last = r.signed("flow")
		x.path = make([]inference.HopKey, 0, min(hops, 64))
		for ; hops > 0 && r.err == nil; hops-- {
			h := inference.HopKey{Node: uint32(r.uint("path", math.MaxUint32)), EgressIf: uint32(r.uint("path", math.MaxUint32))}
			h.Other = r.flag("path")
			x.path = append(x.path, h)
		}
		c.flows[k] = x
	}
}

func (r *headReader) stream(l *CrossLimits) *stream {
	s := &stream{width: r.byte("width")}
	r.ok("width", s.width >= 1 && s.width <= 32)
	s.marked = r.flag("mark")
	s.epoch = uint32(r.uint("epoch", math.MaxUint32))
	s.edge, s.mark = r.uint("edge", furthest), r.uint("mark", furthest)
	members := r.count("members", maxMembers, 5)
	s.markEnd, s.heard = r.signed("mark"), r.signed("mark")
	for ; members > 0 && r.err == nil; members-- {
		m := listener{from: r.name("member"), to: r.uint("member", math.MaxUint64)}
		m.epoch, m.head = uint32(r.uint("member", math.MaxUint32)), r.uint("member", furthest)
		r.ok("member", m.head >= nearest)
		m.heard = r.signed("member")
		r.ok("member", s.member(m.from, m.to) == nil)
		s.members = append(s.members, m)
	}
	n := r.count("runs", max(l.Runs, 2), 3)
	r.ok("runs", n > 0)
	next := uint64(0)
	for i := 0; i < n && r.err == nil; i++ {
		skip, length := r.uint("run", furthest), r.uint("run", furthest)
		missing := r.uint("run", length)
		r.ok("run", next+skip+length < furthest && (i > 0 || skip >= nearest))
		s.runs = append(s.runs, inference.Run{First: next + skip, Last: next + skip + length, Count: length + 1 - missing})
		next += skip + length + 1
	}
	return s
}
