package pathtrace

import (
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
)

const (
	// foreignSteps is how many nodes are visited for a digest that may be foreign. Where there are more, it is not
	// taken for one.
	foreignSteps = 1 << 11
	// foreignEnds is how many links may be between the ends of a known path and those of another one of the same flow.
	// Hosts with two switches, and pairs of switches at the border, are two links from each other at most.
	foreignEnds = 2
)

// Writers returns the hops that write into the digest of a packet which passes so many switches, bit i-1 for hop i.
func (t *Tracer) Writers(id uint32, hops int) (all uint64) {
	s := t.m.Config.Scheme
	for inst := range s.Instances() {
		p := s.Packet(id, inst)
		all |= s.Writers(&p, hops)
	}
	return all
}

// Kept calls yield for each part of a digest that one hop wrote last, over earlier content. The arguments are that hop,
// 1 for the first, and whether the node of the known path there can have written it.
func (t *Tracer) Kept(f *Flow, id uint32, hops int, digest uint64, yield func(hop int, agrees bool)) {
	if !f.Known() {
		return
	}
	r, s := t.slab.get(f.paths[0]), t.m.Config.Scheme
	if r.hops() != hops {
		return
	}
	for inst := range s.Instances() {
		p := s.Packet(id, inst)
		if h := bits.Len64(s.Writers(&p, hops)); p.Baseline && h > 0 {
			yield(h, s.Part(digest, inst) == s.Value(&p, pint.Replaced, r.path()[h-1]))
		}
	}
}

// Foreign reports whether no packet can have brought a digest. The packet enters and leaves the network at the ends of
// the flow's known path, or within two links. The packet may take any links of the map: no walk of so many nodes
// explains the digest. Foreign is false if no path is known or none of that length, if distances are not known, and if
// there are too many walks.
func (t *Tracer) Foreign(f *Flow, id uint32, hops int, digest uint64) bool {
	if !f.Known() || t.m.Dist == nil {
		return false
	}
	r := t.slab.get(f.paths[0])
	if r.hops() != hops || r.astray()&(1|1<<(hops-1)) != 0 {
		return false
	}
	path := r.path()
	from, known := t.m.Index[path[0]]
	to, both := t.m.Index[path[hops-1]]
	if !known || !both {
		return false
	}
	w := walks{t: t, hops: hops, to: to, steps: foreignSteps}
	s := t.m.Config.Scheme
	for inst := range s.Instances() {
		p := s.Packet(id, inst)
		if writers := s.Writers(&p, hops); writers != 0 {
			w.parts = append(w.parts, walkPart{p, writers, s.Part(digest, inst)})
		}
	}
	if len(w.parts) == 0 || w.explained(from, 0) {
		return false
	}
	for u := range t.m.Nodes {
		if u != int(from) && w.apart(uint16(u), from) <= foreignEnds && w.explained(uint16(u), 0) {
			return false
		}
	}
	return w.steps > 0
}

// walks looks for a walk that explains a digest.
type walks struct {
	t     *Tracer
	hops  int
	to    uint16
	steps int // that are left
	parts []walkPart
	path  [pint.MaxHops]uint16
}

// walkPart is an instance of the digest.
type walkPart struct {
	packet  pint.Packet
	writers uint64
	rest    uint32 // without what the hops so far wrote
}

// apart is how many links two nodes are from each other.
func (w *walks) apart(u, v uint16) int { return int(w.t.m.Dist[int(u)*len(w.t.m.Nodes)+int(v)]) }

// explained reports whether a walk that goes on with a node at a hop explains the digest.
func (w *walks) explained(u uint16, h int) bool {
	m := w.t.m
	if w.steps--; w.steps <= 0 || w.apart(u, w.to) > w.hops-1-h+foreignEnds || !m.Config.Loops && slices.Contains(w.path[:h], u) {
		return false
	}
	w.path[h] = u
	agrees := true
	for i := range w.parts {
		if p := &w.parts[i]; p.writers>>h&1 != 0 {
			p.rest ^= m.Config.Scheme.Value(&p.packet, p.packet.Role(p.writers, h+1), m.Nodes[u])
			agrees = agrees && (p.rest == 0 || bits.Len64(p.writers) > h+1)
		}
	}
	found := agrees && h == w.hops-1
	if agrees && !found {
		found = slices.ContainsFunc(m.Neighbours(u), func(v uint16) bool { return w.explained(v, h+1) })
	}
	for i := range w.parts {
		if p := &w.parts[i]; p.writers>>h&1 != 0 {
			p.rest ^= m.Config.Scheme.Value(&p.packet, p.packet.Role(p.writers, h+1), m.Nodes[u])
		}
	}
	return found
}
