package shard

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/pathtrace"
)

// What a shard knows of the paths of its flows, as bytes that only the version that wrote them reads. Integers without a
// width are uvarints:
//
//	paths: version<1b> newest<8b> { flow }, from the one seen last on
//	flow:  key<38b> path<8b> age flags<1b> packets on-path changes hops<1b> { hop } digests<1b> { digest }
//	hop:   node egress, and of paths of postcards TTL<1b> strikes<1b>
//	digest: coding<1b> epoch<1b> query<1b> aside<1b> away needed length { known paths, see package pathtrace }
//
// Age is how long before newest the flow was seen, in ns. Integers are little endian.
const (
	pathsVersion = 1

	flowKeyBytes = 2*len(decode.Addr{}) + 6
	keptFlags    = postcards | flatTTL | partial // what the others say is of the buffer
)

// PathsError says at which byte bytes are not what [State.AppendPaths] of this version writes, and why.
type PathsError struct {
	Offset int
	Reason string
}

func (e *PathsError) Error() string {
	return fmt.Sprintf("paths of flows: byte %d: %s", e.Offset, e.Reason)
}

// AppendPaths appends what is known of the paths of the flows, at most so many, of which it takes those that were seen
// last, for [State.ReadPaths] of whoever goes on with these flows: some 70 bytes for each, and 20 more for PINT digests.
// It reads the whole table. Sketches of a flow's life, the utilisation of its links, and digests that no known path
// explains are left out: they begin anew.
func (s *State) AppendPaths(dst []byte, most int) []byte {
	type candidate struct {
		last int64
		slot uint32
	}
	var newest []candidate
	after := int64(math.MinInt64) // what is older has no place any more
	trim := func() {
		slices.SortFunc(newest, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.last, a.last), s.flows.At(a.slot).Key.Compare(&s.flows.At(b.slot).Key))
		})
		if len(newest) > most {
			newest = newest[:most]
			after = newest[most-1].last
		}
	}
	if most > 0 {
		for slot, e := range s.flows.All() {
			f := &e.Value
			if f.packets == 0 || f.last < after || f.pathID == 0 && (s.digests == nil || s.digests.slots[slot] == 0) {
				continue
			}
			if newest = append(newest, candidate{f.last, slot}); len(newest) >= 2*most+64 {
				trim()
			}
		}
		trim()
	}
	dst = append(dst, pathsVersion)
	base := int64(0)
	if len(newest) > 0 {
		base = newest[0].last
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(base))
	for _, c := range newest {
		dst = s.appendPath(dst, c.slot, base)
	}
	return dst
}

func (s *State) appendPath(dst []byte, slot uint32, base int64) []byte {
	e := s.flows.At(slot)
	f := &e.Value
	dst = append(append(dst, e.Key.Src[:]...), e.Key.Dst[:]...)
	dst = binary.LittleEndian.AppendUint16(dst, e.Key.SrcPort)
	dst = binary.LittleEndian.AppendUint16(dst, e.Key.DstPort)
	dst = append(dst, e.Key.Proto, e.Key.IPVersion)
	dst = binary.LittleEndian.AppendUint64(dst, f.pathID)
	dst = binary.AppendUvarint(dst, uint64(base-f.last))
	dst = append(dst, byte(f.flags&keptFlags))
	for _, n := range [...]uint64{f.packets, uint64(f.onPath), uint64(f.changes)} {
		dst = binary.AppendUvarint(dst, n)
	}
	dst = append(dst, f.hops)
	var space [maxBlocks]uint32
	for _, b := range s.slab.chain(&space, f)[:f.hops] {
		p := &s.slab.blocks[b]
		dst = binary.AppendUvarint(dst, uint64(p.node))
		dst = binary.AppendUvarint(dst, uint64(p.egress))
		if f.flags&postcards != 0 {
			dst = append(dst, p.ttl, p.strikes)
		}
	}
	at := len(dst)
	dst = append(dst, 0)
	if s.digests == nil {
		return dst
	}
	for i := s.digests.slots[slot]; i != 0; i = s.digests.flows[i].next {
		x := &s.digests.flows[i]
		query := s.digests.query(x)
		if query < 0 {
			continue
		}
		aside := byte(0)
		if x.aside {
			aside = 1
		}
		dst[at]++
		dst = append(dst, byte(x.coding), x.epoch, byte(query), aside)
		dst = binary.AppendUvarint(dst, uint64(x.away))
		dst = binary.AppendUvarint(dst, uint64(x.needed))
		known := x.tracer.AppendKnown(nil, &x.trace)
		dst = binary.AppendUvarint(dst, uint64(len(known)))
		dst = append(dst, known...)
	}
	return dst
}

// query gives the number of the query whose tracer a flow has, 0 for codings without queries, and -1 if it has none.
func (d *digests) query(x *digestFlow) int {
	switch {
	case x.tracer == nil:
		return -1
	case x.coding != decode.CodingPlan:
		return 0
	}
	p := d.plans[x.epoch]
	if p == nil {
		return -1
	}
	return slices.Index(p.tracers, x.tracer)
}

// tracerOf is the tracer of a coding's query, or nil if there is none any more.
func (d *digests) tracerOf(coding decode.Coding, epoch, query uint8) *pathtrace.Tracer {
	switch {
	case coding != decode.CodingPlan && int(coding) < len(d.dialects):
		return d.dialects[coding]
	case coding != decode.CodingPlan:
		return nil
	}
	if p := d.plans[epoch]; p != nil && int(query) < len(p.tracers) {
		return p.tracers[query]
	}
	return nil
}

// ReadPaths makes flows known whose paths AppendPaths wrote: their next report goes on from there, and another path is a
// path change. It is called after ReadDigests and before the first Update. Flows that are known already are left as they
// are, and so are those for which there is no room; digests of plans that are not followed any more are passed over. What
// AppendPaths does not write is refused with a [PathsError], and then nothing is changed.
func (s *State) ReadPaths(b []byte) error {
	if err := s.readPaths(b, false); err != nil {
		return err
	}
	return s.readPaths(b, true)
}

// savedFlow is one flow of what AppendPaths wrote.
type savedFlow struct {
	key     decode.FlowKey
	flow    flow // without its blocks
	hops    []block
	digests []savedDigest
}

type savedDigest struct {
	digestFlow
	query uint8
	known *pathtrace.Known
}

func (s *State) readPaths(b []byte, keep bool) error {
	r := pathsReader{b: b}
	if v := r.octet(); r.err == nil && v != pathsVersion {
		return &PathsError{0, fmt.Sprintf("it has version %d, and version %d is read here", v, pathsVersion)}
	}
	newest := int64(r.fixed())
	age := uint64(0)
	var x savedFlow
	for r.err == nil && r.at < len(b) {
		start := r.at
		age = r.flow(&x, newest, age)
		if r.err == nil && !keep && x.flow.packets == 0 {
			r.at = start
			r.fail("a flow without packets")
		}
		if r.err == nil && keep {
			s.resume(&x)
		}
	}
	if r.err != nil {
		return r.err
	}
	return nil
}

// resume makes a flow known.
func (s *State) resume(x *savedFlow) {
	kept := x.hops[:min(len(x.hops), s.cfg.MaxPathLength)]
	if s.flows.Len() == s.flows.Cap() || s.slab.live+len(kept) >= len(s.slab.blocks) {
		return
	}
	slot, inserted := s.flows.Find(tableHash(s.key.Flow(&x.key)), &x.key, x.flow.last)
	if !inserted {
		return
	}
	f := &s.flows.At(slot).Value
	*f = x.flow
	f.gen = s.hops.gen - 1 // the next stack looks its hops up
	var chain [maxBlocks]uint32
	for i := range kept {
		h := &kept[i]
		chain[i] = s.slab.take(h.key())
		p := &s.slab.blocks[chain[i]]
		p.ttl, p.strikes = h.ttl, h.strikes
	}
	f.hops = uint8(len(kept))
	s.slab.setChain(f, chain[:len(kept)])
	if s.digests == nil {
		return
	}
	for i := len(x.digests) - 1; i >= 0; i-- { // the one that came last is in front
		d := &x.digests[i]
		t := s.digests.tracerOf(d.coding, d.epoch, d.query)
		if t == nil {
			continue
		}
		y := s.digests.flow(slot, &decode.Report{Flow: x.key, Digest: decode.Digest{Coding: d.coding, Epoch: d.epoch}})
		y.needed, y.away, y.aside, y.tracer = d.needed, d.away, d.aside, t
		t.Resume(&y.trace, d.known)
	}
}

// pathsReader reads what AppendPaths wrote. After an error it gives zeros.
type pathsReader struct {
	b   []byte
	at  int
	err error
}

func (r *pathsReader) fail(reason string) {
	if r.err == nil {
		r.err = &PathsError{r.at, reason}
	}
}

func (r *pathsReader) bytes(n int) []byte {
	if r.err == nil && n > len(r.b)-r.at {
		r.fail("it ends too early")
	}
	if r.err != nil {
		return nil
	}
	r.at += n
	return r.b[r.at-n : r.at]
}

func (r *pathsReader) octet() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// below reads a byte of at most so much.
func (r *pathsReader) below(most byte) byte {
	v := r.octet()
	if r.err == nil && v > most {
		r.at--
		r.fail("a number is out of range")
		return 0
	}
	return v
}

func (r *pathsReader) fixed() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// uint reads a number of at most so much, in the shortest form.
func (r *pathsReader) uint(most uint64) uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b[r.at:])
	switch {
	case n == 0:
		r.fail("it ends too early")
	case n < 0 || v > most || n > 1 && r.b[r.at+n-1] == 0:
		r.fail("a number is out of range")
	default:
		r.at += n
		return v
	}
	return 0
}

// flow reads a flow that is at least as old as the one before, and gives its age.
func (r *pathsReader) flow(x *savedFlow, newest int64, before uint64) (age uint64) {
	*x = savedFlow{hops: x.hops[:0], digests: x.digests[:0]}
	if b := r.bytes(flowKeyBytes); b != nil {
		n := copy(x.key.Src[:], b)
		n += copy(x.key.Dst[:], b[n:])
		x.key.SrcPort, x.key.DstPort = binary.LittleEndian.Uint16(b[n:]), binary.LittleEndian.Uint16(b[n+2:])
		x.key.Proto, x.key.IPVersion = b[n+4], b[n+5]
	}
	f := &x.flow
	f.pathID = r.fixed()
	start := r.at
	age = r.uint(math.MaxUint64)
	if r.err == nil && age < before {
		r.at = start
		r.fail("flows are not in order")
	}
	f.last = newest - int64(age)
	f.flags = flowFlags(r.octet())
	if r.err == nil && f.flags&^keptFlags != 0 {
		r.at--
		r.fail("a flag that is not known")
	}
	if inference.IsProbe(&x.key) {
		f.flags |= probe
	}
	f.packets, f.onPath, f.changes = r.uint(math.MaxUint64), uint32(r.uint(math.MaxUint32)), uint32(r.uint(math.MaxUint32))
	n := r.below(maxPathLength)
	if r.err == nil && n > 0 && f.pathID == 0 {
		r.at--
		r.fail("hops of no path")
	}
	for ; n > 0 && r.err == nil; n-- {
		h := block{node: uint32(r.uint(math.MaxUint32)), egress: uint32(r.uint(math.MaxUint32))}
		if f.flags&postcards != 0 {
			h.ttl, h.strikes = r.octet(), r.octet()
		}
		x.hops = append(x.hops, h)
	}
	for n := r.below(2); n > 0 && r.err == nil; n-- {
		var d savedDigest
		d.coding, d.epoch, d.query = decode.Coding(r.octet()), r.octet(), r.octet()
		d.aside = r.below(1) == 1
		d.away, d.needed = uint16(r.uint(math.MaxUint16)), uint32(r.uint(math.MaxUint32))
		known := r.bytes(int(r.uint(math.MaxInt32)))
		if r.err != nil {
			return age
		}
		k, err := pathtrace.ReadKnown(known)
		if e, ok := err.(*pathtrace.KnownError); ok {
			r.at += e.Offset - len(known)
			r.fail(e.Reason)
			return age
		}
		d.known = k
		x.digests = append(x.digests, d)
	}
	return age
}
