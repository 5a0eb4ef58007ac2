package pathtrace

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hopscope/hopscope/decode/pint"
)

// knownVersion is the first byte of what is written now. Before, there was the number of paths, which is less.
const knownVersion = 130

// Known is what [Tracer.AppendKnown] wrote of a flow.
type Known struct {
	paths []knownPath
	state flowState
}

type knownPath struct {
	wrong, digests, state        uint32
	seen, sure, suspects, astray uint64
	nodes                        []uint32
}

// KnownError says at which byte bytes are not what [Tracer.AppendKnown] writes.
type KnownError struct {
	Offset int
	Reason string
}

func (e *KnownError) Error() string {
	return fmt.Sprintf("known paths of a flow: byte %d: %s", e.Offset, e.Reason)
}

// AppendKnown appends the known paths of a flow, with their confidence, for [ReadKnown] and [Tracer.Resume] of another
// process. Digests that no known path explains are left out: who resumes waits for as many anew.
//
//	known: version<1b> paths<1b> { hops<1b> -log2 of wrong<uvarint> digests<uvarint> seen<uvarint>
//	       state<uvarint> sure<uvarint> suspects<uvarint> astray<uvarint> { node<uvarint> } }
//	       digests<uvarint> strays<uvarint> pause<uvarint> against<uvarint> restarts<1b> hopeless<1b>
//
// Before version 130 there were neither a version nor the numbers from state to astray. Paths of that time are read as if no
// digest had confirmed any of their hops yet.
func (t *Tracer) AppendKnown(dst []byte, f *Flow) []byte {
	n := 0
	for n < maxPaths && f.paths[n] != 0 {
		n++
	}
	dst = append(dst, knownVersion, byte(n))
	for _, ref := range f.paths[:n] {
		r := t.slab.get(ref)
		dst = append(dst, byte(r.hops()))
		dst = binary.AppendUvarint(dst, uint64(r[recHops]>>8))
		dst = binary.AppendUvarint(dst, uint64(r[recDigests]))
		for _, v := range [...]uint64{r.seen(), uint64(r[recState]), r.sure(), r.suspects(), r.astray()} {
			dst = binary.AppendUvarint(dst, v)
		}
		for _, node := range r.path() {
			dst = binary.AppendUvarint(dst, uint64(node))
		}
	}
	s := &f.state
	for _, v := range [...]uint32{s.digests, s.strays, s.pause, uint32(s.against)} {
		dst = binary.AppendUvarint(dst, uint64(v))
	}
	return append(dst, s.restarts, s.hopeless)
}

// ReadKnown reads what [Tracer.AppendKnown] wrote. Anything else is a [KnownError].
func ReadKnown(b []byte) (*Known, error) {
	at, reason := 0, ""
	uint := func(most uint64) uint64 {
		v, n := binary.Uvarint(b[at:])
		switch {
		case reason != "":
			return 0
		case n == 0:
			reason = "it ends too early"
		case n < 0 || v > most || n > 1 && b[at+n-1] == 0:
			reason = "a number is out of range"
		default:
			at += n
			return v
		}
		return 0
	}
	octet := func(least, most byte) (v byte) {
		switch {
		case reason != "":
		case at == len(b):
			reason = "it ends too early"
		case b[at] < least || b[at] > most:
			reason = "a number is out of range"
		default:
			v = b[at]
			at++
		}
		return v
	}
	k := &Known{}
	versioned := len(b) > 0 && b[0] == knownVersion
	if versioned {
		at++
	}
	for range octet(0, maxPaths) {
		n := octet(1, pint.MaxHops)
		p := knownPath{wrong: uint32(uint(math.MaxUint16)), digests: uint32(uint(math.MaxUint32))}
		start := at
		if p.seen = uint(math.MaxUint64); versioned {
			p.state = uint32(uint(1<<(kindShift+3) - 1))
			p.sure, p.suspects, p.astray = uint(math.MaxUint64), uint(math.MaxUint64), uint(math.MaxUint64)
		} else {
			p.state = unsettled
		}
		if reason == "" && (n == 0 || (p.seen|p.sure|p.suspects|p.astray)&^hops(int(n)) != 0) {
			at, reason = start, "a hop that is not on the path"
		}
		if reason == "" && p.state>>kindShift >= uint32(numDeviations) {
			at, reason = start, "a deviation that is not known"
		}
		for ; n > 0 && reason == ""; n-- {
			p.nodes = append(p.nodes, uint32(uint(math.MaxUint32)))
		}
		if reason != "" {
			break
		}
		k.paths = append(k.paths, p)
	}
	s := &k.state
	for _, v := range [...]*uint32{&s.digests, &s.strays, &s.pause} {
		*v = uint32(uint(math.MaxUint32))
	}
	s.against = uint16(uint(math.MaxUint16))
	s.restarts, s.hopeless = octet(0, math.MaxUint8), octet(0, maxHopeless)
	if reason == "" && at != len(b) {
		reason = "there are more bytes than there should be"
	}
	if reason != "" {
		return nil, &KnownError{at, reason}
	}
	return k, nil
}

// Resume makes paths known that were known before, of a flow without digests so far. Those for which there is no memory, or
// that are longer than the model allows, are left out.
func (t *Tracer) Resume(f *Flow, k *Known) {
	n := 0
	for i := range k.paths {
		p := &k.paths[i]
		if len(p.nodes) > t.m.config.MaxHops {
			continue
		}
		ref := t.slab.put(len(p.nodes), t.room())
		if ref == 0 {
			break
		}
		r := t.slab.get(ref)
		copy(r.path(), p.nodes)
		r[recHops] |= p.wrong << 8
		r[recDigests] = p.digests
		r.see(p.seen)
		r[recState] = p.state
		r.ensure(p.sure)
		r.suspect(p.suspects)
		r.setPair(recAstray, p.astray)
		f.paths[n] = ref
		n++
	}
	f.state = k.state
}
