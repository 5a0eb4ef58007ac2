package pathtrace

import (
	"math"
	"math/bits"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
)

// packet is a digest as it arrived.
type packet struct {
	digest uint64
	id     uint32
	known  bool // a path that was known already explains it
}

// xor is a digest of one instance that several hops wrote.
type xor struct {
	writers uint64 // hops, bit i-1 for hop i
	unknown uint64 // writers whose value is not taken out of rest yet
	rest    uint32
	id      uint32
	inst    uint8
}

// trace is the knowledge about a path of k hops that is not known yet.
//
// Hops count from 0 here, and nodes are indices.
type trace struct {
	k     int
	space *prior.Space
	words int

	domain []uint64 // nodes that a hop can still be: a bitset for each hop
	size   []int32  // members of each
	node   []uint16 // of hops with one member
	known  uint64   // those hops

	toXORs, toLeft, toRight uint64 // hops whose domain shrank, and whose digests or neighbours were not narrowed since
	excluded                uint64 // known hops whose node was removed from the candidates of the other hops
	dead                    bool   // no path explains all digests

	recent []packet // the last digests, a ring until it is unrolled
	oldest int
	xors   []xor
	wide   bool    // links of many candidates are followed, too
	paired bool    // hops with few candidates were compared
	bits   float64 // evidence so far
	total  float64 // log2 of the weights of all paths before any digest
	little float64 // with less evidence than this, a path outside the model cannot be ruled out
	seen   uint64  // hops that wrote into some digest

	witnesses []uint16 // paths of k nodes each that explain all digests; two of them make a search useless
	complete  bool     // there are no others
	doubted   bool     // one path is left, but digests contradicted each other before: it has to stand a test of more digests
	score     float64  // log2 of the odds in that test
	credit    int      // steps that a search may take
	need      int      // credit below which the next search would not get further than the last one

	all               bool // all digests belong to this path; otherwise only those that no known path explains
	active            int  // how many digests the trace is made of, the last ones of those remembered
	strays, explained int  // how many of these no known path explains, and how many one does
	samplings         int  // how often parts of the digests were searched for two paths
	matches           int  // digests in a row that a known path explains
	length            int  // number of hops of the last digest and, if it was not k,
	lengths           int  // how many digests in a row had it
	bytes, reserved   int  // memory in use, and how much it may become
}

func (tr *trace) row(h int) []uint64 { return tr.domain[h*tr.words:][:tr.words] }

// open makes tr ready for paths of k hops.
func (t *Tracer) open(tr *trace, f *Flow, k int) {
	s := t.m.Space(k)
	tr.k, tr.space, tr.words = k, s, t.m.Words
	tr.domain = append(tr.domain[:0], s.Domain...)
	tr.size = append(tr.size[:0], s.Size...)
	if cap(tr.node) < k {
		tr.node = make([]uint16, pint.MaxHops)
	}
	tr.node = tr.node[:k]
	tr.known, tr.excluded, tr.seen, tr.dead = 0, 0, 0, false
	tr.toXORs, tr.toLeft, tr.toRight = 0, 0, 0
	if t.m.Routed { // the domains of hops beside known ones follow shortest paths already
		tr.known = s.Known
		copy(tr.node, s.Node)
	}
	tr.xors, tr.witnesses, tr.complete = tr.xors[:0], tr.witnesses[:0], false
	tr.bits, tr.need, tr.paired, tr.doubted, tr.score = 0, 0, false, false, 0
	tr.total = t.m.Total(s, f.Ingress, f.Egress)
	tr.little = tr.total + t.other(f) - math.Log2(1/t.m.Config.Confidence-1)
	if set := t.m.End(f.Ingress); set != nil {
		t.intersect(tr, 0, set)
	}
	if set := t.m.End(f.Egress); set != nil {
		t.intersect(tr, k-1, set)
	}
	for h := range k {
		switch {
		case tr.size[h] == 0:
			tr.dead = true
		case tr.size[h] == 1 && tr.known>>h&1 == 0:
			t.shrunk(tr, h)
		}
	}
}

// intersect leaves only members of a set in a domain.
func (t *Tracer) intersect(tr *trace, h int, set []uint64) bool {
	n, row := 0, tr.row(h)
	for i, w := range row {
		row[i] = w & set[i]
		n += bits.OnesCount64(row[i])
	}
	if int32(n) == tr.size[h] {
		return false
	}
	tr.size[h] = int32(n)
	t.shrunk(tr, h)
	return true
}

// shrunk notes what follows from a smaller domain.
func (t *Tracer) shrunk(tr *trace, h int) {
	bit := uint64(1) << h
	tr.toXORs |= bit
	tr.toLeft |= bit
	tr.toRight |= bit
	switch tr.size[h] {
	case 0:
		tr.dead = true
	case 1:
		tr.known |= bit
		tr.node[h] = uint16(prior.Lowest(tr.row(h)))
	}
}

// fold takes in one packet.
func (t *Tracer) fold(tr *trace, id uint32, digest uint64) {
	s := t.m.Config.Scheme
	for inst := range s.Instances() {
		p := s.Packet(id, inst)
		writers, part := s.Writers(&p, tr.k), s.Part(digest, inst)
		tr.seen |= writers
		switch {
		case writers == 0: // it carries nothing, unless it is wrong
			if part != 0 {
				tr.dead = true
			}
			continue
		case tr.complete: // only the list of paths counts now
		case writers&(writers-1) == 0:
			h := bits.TrailingZeros64(writers)
			tr.paired = tr.paired && tr.known>>h&1 != 0
			t.match(tr, h, &p, p.Role(writers, h+1), part)
		case len(tr.xors) < t.m.Config.Window:
			tr.xors = append(tr.xors, xor{writers: writers, unknown: writers, rest: part, id: id, inst: uint8(inst)})
			t.peel(tr, &tr.xors[len(tr.xors)-1])
			t.combine(tr, &tr.xors[len(tr.xors)-1])
		default:
			t.replace(tr, xor{writers: writers, unknown: writers, rest: part, id: id, inst: uint8(inst)})
		}
		tr.bits += t.m.Bits
		if tr.dead {
			return
		}
	}
}

// replace puts a digest into the place of one that has no unknown hops any more, or else of the one with the most.
func (t *Tracer) replace(tr *trace, x xor) {
	worst, most := 0, -1
	for i := range tr.xors {
		n := bits.OnesCount64(tr.xors[i].unknown)
		if n == 0 {
			worst = i
			break
		}
		if n > most {
			worst, most = i, n
		}
	}
	tr.xors[worst] = x
	t.peel(tr, &tr.xors[worst])
	t.combine(tr, &tr.xors[worst])
}

// oneByOne is the number of candidates up to which they are tested one by one.
const oneByOne = 8

// match keeps the candidates of a hop with the value that was found.
func (t *Tracer) match(tr *trace, h int, p *pint.Packet, role pint.Role, want uint32) {
	s, row, n := t.m.Config.Scheme, tr.row(h), tr.size[h]
	tr.credit -= int(n) / 32
	if n > oneByOne {
		s.Match(row, p, role, t.m.Nodes, want)
	} else {
		for i, w := range row {
			for b := w; b != 0; b &= b - 1 {
				if s.Value(p, role, t.m.Nodes[i<<6+bits.TrailingZeros64(b)]) != want {
					w &^= b & -b
				}
			}
			row[i] = w
		}
	}
	if left := prior.Popcount(row); left != n {
		tr.size[h] = left
		t.shrunk(tr, h)
	}
}

// remember keeps a digest, in the place of the oldest one when the window is full. It reports whether the digest is
// new: a packet that is seen twice proves no more than once.
func (t *Tracer) remember(tr *trace, p packet) bool {
	for i := range tr.recent {
		if tr.recent[i].id == p.id && tr.recent[i].digest == p.digest {
			return false
		}
	}
	if len(tr.recent) < t.m.Config.Window {
		tr.recent = append(tr.recent, p)
		return true
	}
	tr.recent[tr.oldest] = p
	tr.oldest = (tr.oldest + 1) % len(tr.recent)
	return true
}

func has(set []uint64, u uint16) bool { return set[u>>6]>>(u&63)&1 != 0 }
