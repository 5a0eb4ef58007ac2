package pintplan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"sort"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/p4"
)

// Program is a plan as a switch carries it out from the entries of its tables alone. It is immutable.
type Program struct {
	Epoch   uint8
	Bits    int // of the digest
	keySet  uint32
	sets    []span // of hashes
	slots   [256][]slot
	queries [maxQueries]query
}

// span is the meaning of a range of numbers.
type span struct {
	first, last uint64
	code        int
	gap         uint64 // of codes: to the next level; 0 for the last. Of layers: limit + 1; 0 for Baseline
}

type slot struct{ query, shift int }

type query struct {
	kind            pint.Aggregation
	known           bool
	value           uint64
	bits, instances int
	valueBits       int // of values that travel in fragments; 0 for hashes
	matches         uint64
	keyRound        uint32
	salts           [8]struct {
		hops, values, layer uint32 // values choose the fragment where there are some
		fragment            bool   // it does
		known               bool
	}
	layers, codes []span
}

// Compile reads a plan from the entries of its epoch in a switch. The error names what is missing.
func Compile(epoch uint8, entries []p4.Entry) (*Program, error) {
	p := &Program{Epoch: epoch}
	count, want := 0, -1
	for i := range entries {
		e := entry{&entries[i]}
		if e.Table == SourceTable || e.Default() || uint8(e.Match[0].Value.Uint64()) != epoch {
			continue
		}
		count++
		if e.Table == PlanTable {
			want = int(e.number(2))
			p.Bits, p.keySet = int(e.number(0)), uint32(e.number(1))
		} else if err := p.read(e); err != nil {
			return nil, err
		}
	}
	switch {
	case want < 0:
		return nil, fmt.Errorf("plan of epoch %d: its entry in %s is missing", epoch, PlanTable)
	case count != want:
		return nil, fmt.Errorf("plan of epoch %d: %d of its %d entries are there", epoch, count, want)
	}
	return p, p.check()
}

// entry reads what a table's entry holds; the table has checked its widths.
type entry struct{ *p4.Entry }

func (e entry) number(i int) uint64 { return e.Params[i].Uint64() }
func (e entry) key(i int) int       { return int(e.Match[i].Value.Uint64()) }

// span is the range in the last field of the key.
func (e entry) span() span {
	m := &e.Match[len(e.Match)-1]
	return span{first: m.Value.Uint64(), last: m.To.Uint64()}
}

// read takes over an entry.
func (p *Program) read(e entry) error {
	bad := func() error { return fmt.Errorf("plan of epoch %d: %v is beyond the program's size", p.Epoch, e.Entry) }
	var q *query
	switch e.Table {
	case SetTable:
		s := e.span()
		s.code = int(e.number(0))
		p.sets = append(p.sets, s)
		return nil
	case SlotTable:
		if e.key(2) >= maxQueries || e.number(0) > 63 {
			return bad()
		}
		p.slots[e.key(1)] = append(p.slots[e.key(1)], slot{e.key(2), int(e.number(0))})
		return nil
	case QueryTable, SaltTable, LayerTable, CodeTable:
		if e.key(1) >= maxQueries {
			return bad()
		}
		q = &p.queries[e.key(1)]
	default:
		return fmt.Errorf("plan of epoch %d: %v is of no plan", p.Epoch, e.Entry)
	}
	switch e.Table {
	case SaltTable:
		if e.key(2) >= len(q.salts) {
			return bad()
		}
		k := &q.salts[e.key(2)]
		k.hops, k.values, k.layer, k.known = uint32(e.number(0)), uint32(e.number(1)), uint32(e.number(2)), true
		k.fragment = e.Action == "part"
	case LayerTable:
		s := e.span()
		if e.Action == "fold" {
			s.gap = e.number(0) + 1
		}
		q.layers = append(q.layers, s)
	case CodeTable:
		s := e.span()
		s.code = int(e.number(0))
		if e.Action == "round" {
			s.gap = e.number(1)
		}
		q.codes = append(q.codes, s)
	case QueryTable:
		q.read(e)
	}
	return nil
}

func (q *query) read(e entry) {
	q.known, q.instances = true, 1
	switch e.Action {
	case "path", "fragment", "sample":
		q.kind = pint.Static
		if e.Action == "sample" {
			q.kind = pint.Dynamic
		}
		q.value, q.bits, q.instances = e.number(0), int(e.number(1)), int(e.number(2))
		if e.Action == "fragment" {
			q.valueBits = int(e.number(3))
		}
	case "maximum":
		q.kind, q.value, q.bits, q.keyRound = pint.PerPacket, e.number(0), int(e.number(1)), uint32(e.number(2))
	case "loop":
		q.kind, q.bits, q.matches = pint.Loop, int(e.number(0)), e.number(1)
	}
}

// width is the number of bits of a query in the digest.
func (q *query) width() int {
	if q.kind == pint.Loop {
		return q.bits + bits.Len64(q.matches)
	}
	return q.bits * q.instances
}

// check refuses what the program could not carry out.
func (p *Program) check() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("plan of epoch %d: "+format, append([]any{p.Epoch}, args...)...))
	}
	if p.Bits < 1 || p.Bits > 64 {
		bad("%d bits", p.Bits)
	}
	if !whole(p.sets, math.MaxUint32) {
		bad("hashes without a set")
	}
	for set := range p.slots {
		sort.Slice(p.slots[set], func(i, j int) bool { return p.slots[set][i].query < p.slots[set][j].query })
		for _, s := range p.slots[set] {
			if q := &p.queries[s.query]; !q.known || s.shift+q.width() > p.Bits {
				bad("set %d: query %d is not known, or beyond %d bits", set, s.query, p.Bits)
			}
		}
	}
	for i := range p.queries {
		q := &p.queries[i]
		if !q.known {
			continue
		}
		if q.bits < 1 || q.instances < 1 || q.instances > len(q.salts) || q.width() > 64 || q.kind != pint.PerPacket && q.bits > 32 {
			bad("query %d: %d times %d bits", i, q.instances, q.bits)
			continue
		}
		for n := range q.instances {
			if q.kind != pint.PerPacket && (!q.salts[n].known || q.salts[n].fragment != (q.valueBits > 0)) {
				bad("query %d: no keys for instance %d", i, n)
			}
		}
		if q.valueBits > 32 {
			bad("query %d: fragments of %d bits", i, q.valueBits)
		}
		if (q.kind == pint.Static || q.kind == pint.Dynamic) && !whole(q.layers, math.MaxUint32) {
			bad("query %d: hashes without a layer", i)
		}
		if (q.kind == pint.Dynamic || q.kind == pint.PerPacket) && !whole(q.codes, math.MaxUint64) {
			bad("query %d: values without a code", i)
		}
	}
	return errors.Join(errs...)
}

// whole sorts spans, and reports whether they cover all numbers up to last once.
func whole(list []span, last uint64) bool {
	sort.Slice(list, func(i, j int) bool { return list[i].first < list[j].first })
	next := uint64(0)
	for i, s := range list {
		if s.first != next || s.last < s.first {
			return false
		}
		if s.last >= last {
			return i == len(list)-1 && s.last == last
		}
		next = s.last + 1
	}
	return false
}

// find returns the span that a number is in; there is one.
func find(list []span, v uint64) *span {
	return &list[sort.Search(len(list), func(i int) bool { return list[i].last >= v })]
}

// crc is CRC-32 (Ethernet) over a word in network order.
func crc(x uint32) uint32 {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], x)
	return crc32.ChecksumIEEE(b[:])
}

// hash is 32 bits that depend on a packet, by its key crc(k + id), and on x.
func hash(key, x uint32) uint32 { return crc(key + crc(key+crc(x))) }

// probability is p as a limit for 32 uniform bits: below it means yes.
func probability(p float64) uint64 {
	if p <= 0 {
		return 0
	}
	return max(1, uint64(math.Round(p*(1<<32))))
}

// Write is [pint.Plan.Write] of the plan from which the entries were made. If looped is not 0, the switch has met its
// own hash that often in the packet and reports a loop.
func (p *Program) Write(digest uint64, id uint32, hop int, v pint.Values, rnd uint32) (next uint64, looped uint8) {
	set := find(p.sets, uint64(hash(crc(p.keySet+id), 0))).code
	for _, s := range p.slots[set] {
		q := &p.queries[s.query]
		mask := uint64(1)<<q.width() - 1
		part, rewritten := q.write(digest>>s.shift&mask, s.query, id, hop, &v, rnd)
		digest = digest&^(mask<<s.shift) | part&mask<<s.shift
		if rewritten {
			looped = uint8(q.matches + 1)
		}
	}
	return digest, looped
}

func (q *query) write(part uint64, index int, id uint32, hop int, v *pint.Values, rnd uint32) (uint64, bool) {
	value := [...]uint64{uint64(v.Node), v.Latency, v.Queue, v.Utilization}[q.value]
	switch q.kind {
	case pint.PerPacket:
		r := hash(crc(q.keyRound+id), 0)
		return max(part, q.code(value, r)), false
	case pint.Loop:
		return q.loop(part, id, hop, v.Node)
	}
	mask := uint64(1)<<q.bits - 1
	for n := range q.instances {
		k := &q.salts[n]
		layer := find(q.layers, uint64(hash(crc(k.layer+id), 0)))
		limit := layer.gap
		if limit == 0 && hop > 0 {
			limit = 1 << 32 / uint64(hop)
		}
		if hop < 1 || hop > pint.MaxHops || uint64(hash(crc(k.hops+id), uint32(hop))) >= limit {
			continue
		}
		var d uint64
		switch {
		case q.kind == pint.Dynamic:
			d = q.code(value, uint32(finish(uint64(rnd)<<8+uint64(index))>>32)) & mask
		case q.valueBits > 0:
			parts := uint64((q.valueBits + q.bits - 1) / q.bits)
			fragment := uint64(hash(crc(k.values+id), 0)) * parts >> 32
			d = uint64(uint32(value)) & (1<<q.valueBits - 1) >> (fragment * uint64(q.bits)) & mask
		default:
			d = uint64(hash(crc(k.values+id), uint32(value)) >> (32 - q.bits))
		}
		at := q.bits * n
		if layer.gap > 0 {
			d ^= part >> at & mask
		}
		part = part&^(mask<<at) | d<<at
	}
	return part, false
}

// code rounds a value to one of its two neighbours.
func (q *query) code(v uint64, rnd uint32) uint64 {
	s := find(q.codes, v)
	c := uint64(s.code)
	if s.gap == 0 {
		return c
	}
	if high, _ := bits.Mul64(s.gap, uint64(rnd)<<32); v-s.first > high {
		c++
	}
	return c
}

// loop is Algorithm 2 of the paper, as [pint.Loops] reads it.
func (q *query) loop(part uint64, id uint32, hop int, node uint32) (uint64, bool) {
	k := &q.salts[0]
	own := uint64(hash(crc(k.values+id), node)) >> (32 - q.bits)
	stored, count := part&(1<<q.bits-1), part>>q.bits
	report := false
	if hop > 1 && stored == own {
		if report = count >= q.matches; !report {
			count++
		}
	}
	if uint64(hash(crc(k.hops+id), uint32(hop))) < 1<<32/uint64(max(hop, 1)) {
		stored, count = own, 0
	}
	return count<<q.bits | stored, report
}

// finish is the last step of a hash of 64 bits (Stafford's variant 13), as decode/pint rounds with.
func finish(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
