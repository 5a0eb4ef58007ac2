package pathtrace

import (
	"fmt"
	"math"
)

// deviationKind is the way in which a path differs from the map.
type deviationKind uint8

// The kinds of deviations.
const (
	noDeviation deviationKind = iota
	unknownNode               // a node writes digests that the model does not have, or not there
	missingLink               // all nodes are the model's, but two that follow each other are not linked
	offset                    // hop numbers are shifted: the first hops never write, because the sender starts with a lower TTL
	detour                    // the path follows links, but is none that routing would choose, or has other ends
	unexplained               // digests contradict the map, and the true path is not known
	numDeviations
)

var deviationNames = [numDeviations]string{"none", "unknown-node", "missing-link", "offset", "detour", "unexplained"}

func (k deviationKind) String() string {
	if k < numDeviations {
		return deviationNames[k]
	}
	return fmt.Sprintf("deviation(%d)", uint8(k))
}

// deviation is the difference of a flow's path from the map.
type deviation struct {
	Path  []uint32 // node ids by hop; where the node is not known, the one that the map has there
	Wrong uint64   // hops that differ from the map, bit i-1 for hop i: of a missing link, those on both sides of it
	Kind  deviationKind
	Node  uint32 // the node at the first wrong hop, if Named
	Named bool   // digests identify the node
}

// Packet is a digest as it came, with the id of its packet.
type Packet struct {
	ID     uint32
	Digest uint64
}

// Deviation returns how the flow's path differs from the map. The result ok is false if digests do not contradict the
// map, or if the difference is not known yet. The nodes are appended to dst.
func (t *Tracer) Deviation(f *Flow, dst []uint32) (d deviation, ok bool) {
	if f.paths[0] == 0 {
		return deviation{}, false
	}
	r := t.slab.get(f.paths[0])
	if d.Kind = r.kind(); d.Kind == noDeviation {
		return deviation{}, false
	}
	path := r.path()
	d.Path, d.Wrong = append(dst, path...), r.astray()
	if d.Kind == missingLink {
		for h := 1; h < len(path); h++ {
			u, ok := t.m.Index[path[h-1]]
			w, okToo := t.m.Index[path[h]]
			if ok && okToo && !t.m.Linked(u, w) {
				d.Wrong |= 3 << (h - 1)
			}
		}
	}
	for h, id := range path {
		if d.Wrong>>h&1 != 0 {
			if d.Named = r.astray()>>h&1 == 0; d.Named {
				d.Node = id
			}
			break
		}
	}
	return d, true
}

// agreeing is the number of digests that have to agree with a path for it to be one that the flow took until then. Not all of its
// hops need be confirmed.
const agreeing = 48

// withstands reports whether digests of the hops in which another path differs agree with the published path more often
// than by chance. Then packets take that one as well, or some digests are wrong.
func (t *Tracer) withstands(f *Flow, x *loose, path []uint32, astray uint64) bool {
	if !f.Known() {
		return false
	}
	r := t.slab.get(f.paths[0])
	if r.hops() != x.k {
		return false
	}
	s, old := t.m.Config.Scheme, r.path()
	differ := astray
	for h := range path {
		if path[h] != old[h] {
			differ |= 1 << h
		}
	}
	agree, all := 0, 0
	for i := range x.parts {
		p := &x.parts[i]
		if w := p.writers & differ; w == 0 || w&(w-1) != 0 || p.writers&r.astray() != 0 {
			continue // two nodes that are exchanged write the same together
		}
		all++
		if s.Sum(&p.packet, p.writers, old) == p.value {
			agree++
		}
	}
	return float64(agree) > float64(all)*(math.Exp2(-float64(s.Width()))+0.125)
}

// deviated publishes the path that was found in the digests of a flow.
func (t *Tracer) deviated(f *Flow, l *digestLog, x *loose) (Event, bool) {
	m, k := t.m, x.k
	astray := hops(k) &^ x.settled
	path := t.name(x.node[:k])
	if t.same(f, path, astray) || t.withstands(f, x, path, astray) {
		return 0, false
	}
	kind := t.kindOf(f, x, astray)
	ref := t.slab.put(k, t.room())
	if ref == 0 {
		return 0, false
	}
	e := Decoded
	if old := f.paths[0]; old != 0 {
		e = Changed
		if r := t.slab.get(old); r[recState]&unsettled != 0 && r[recDigests] < agreeing {
			e = Revised
			t.slab.drop(old)
			copy(f.paths[:], f.paths[1:])
			f.paths[maxPaths-1] = 0
		}
	}
	r := t.slab.get(ref)
	copy(r.path(), path)
	r.setPair(recAstray, astray)
	r[recState] |= uint32(kind) << kindShift
	right := 1.0
	for h := range k {
		right *= max(x.chance[h], x.missed[h])
	}
	r.setWrong(1 - right)
	r.agree(uint32(len(l.ring)))
	for i := range x.parts {
		r.see(r.seen() | x.parts[i].writers)
	}
	if kind != noDeviation && e != Changed {
		t.experience.unsound++
	}
	for h := range k {
		for _, at := range [3]int{h - 1, h, h + 1} {
			if astray>>h&1 != 0 && at >= 0 && at < k {
				t.distrust(r.path(), at)
			}
		}
		if h > 0 && !m.Linked(x.node[h-1], x.node[h]) {
			t.distrust(r.path(), h-1)
			t.distrust(r.path(), h)
		}
	}
	if last := f.paths[maxPaths-1]; last != 0 {
		t.slab.drop(last)
	}
	copy(f.paths[1:], f.paths[:])
	f.paths[0] = ref
	f.state.against, f.state.restarts, f.state.hopeless, f.state.pause = 0, 0, 0, 0
	if f.trace != 0 {
		t.close(f)
	}
	t.recount(f, ref)
	return e, true
}

// kindOf returns the kind of the difference from the map.
func (t *Tracer) kindOf(f *Flow, x *loose, astray uint64) deviationKind {
	m, k := t.m, x.k
	if astray != 0 {
		if astray&(astray+1) == 0 && t.wroteNothing(x, astray) {
			return offset
		}
		return unknownNode
	}
	for h := 1; h < k; h++ {
		if !m.Linked(x.node[h-1], x.node[h]) {
			return missingLink
		}
	}
	from, to := m.End(f.Ingress), m.End(f.Egress)
	if m.Routed && m.Distance(x.node[0], x.node[k-1]) != k-1 || from != nil && !has(from, x.node[0]) || to != nil && !has(to, x.node[k-1]) {
		return detour
	}
	return noDeviation
}

// wroteNothing reports whether the first hops, whose nodes are not known, wrote nothing at all.
func (t *Tracer) wroteNothing(x *loose, first uint64) bool {
	n := 0
	for i := range x.parts {
		p := &x.parts[i]
		if p.writers&first == 0 || p.writers&^first&^x.settled != 0 {
			continue
		}
		if t.remains(x, p, p.writers&^first) != 0 {
			return false
		}
		n++
	}
	return float64(n)*t.m.Bits >= 12
}

// room is how much memory is left for known paths.
func (t *Tracer) room() int {
	return t.m.Config.MemoryBytes - t.reserved - t.slab.bytes - t.logBytes
}

// resized takes in a digest that no known path explains, of another number of hops than those that are kept.
func (t *Tracer) resized(f *Flow, l *digestLog, p packet, k int) Event {
	if f.Known() {
		if r := t.slab.get(f.paths[0]); r.hops() != k {
			r.oppose(hops(r.hops()))
			r[recState] |= unsettled
		}
	}
	e := t.stray(f, p, k)
	if f.log != 0 && f.trace != 0 && t.traces[f.trace-1].k == k {
		l.restart(k)
		l.add(p)
	}
	return e
}

// contrary takes in a digest that no known path explains.
func (t *Tracer) contrary(f *Flow, p packet, hops int) Event {
	var l *digestLog
	if f.log == 0 && f.state.pause > 0 && f.state.hopeless > 1 {
		return t.stray(f, p, hops) // it was untraceable time and again
	}
	if l = t.keep(f, hops); l != nil {
		if l.hops != hops {
			return t.resized(f, l, p, hops)
		}
		if !l.add(p) {
			return Duplicate
		}
	}
	enough := uint32(0) // evidence that is needed against the published path
	if f.Known() {
		if r := t.slab.get(f.paths[0]); r.hops() == hops {
			if r.balance() == 0 {
				t.experience.contradicted++
			}
			t.opposed(f, r, p.id, p.digest)
			if enough = 2 * opposes; r[recDigests] >= agreeing {
				enough = 8 * opposes
			}
			if r.balance() >= enough {
				enough = 0
			}
		}
	}
	e := t.stray(f, p, hops)
	doubted := f.state.against > 0 || f.state.pause > 0 || f.state.hopeless > 0 || f.Known()
	switch e {
	case Decoded, Changed, Parallel:
		return e
	case RejectedMemory:
		if !f.Known() {
			t.discard(f)
		}
		return e
	case Contradiction:
		if f.state.against == 1 {
			t.experience.contradicted++
		}
	case Untraceable:
		if f.state.hopeless > 1 {
			t.discard(f)
		}
	}
	if f.log == 0 || !doubted || enough > 0 {
		return e
	}
	if found, ok := t.deviates(f, t.logs[f.log-1]); ok {
		return found
	}
	return e
}
