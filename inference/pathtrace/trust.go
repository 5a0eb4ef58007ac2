package pathtrace

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/inference/pathtrace/prior"
)

// Probabilities of errors of the map before any digest. They are stated high: a path that is published without a mark
// has to be right where a third of all flows meet an error.
const (
	errorPart  = 0.125 // an error of the map concerns at least this part of the flows that pass between two nodes
	newError   = 5     // -log2 of the part of errors that came up at places which flows have confirmed before
	priorFlows = 8     // flows that the prior for the stated confidence counts as much as

	bunches   = 16      // how many times a contradicted flow counts: errors come in bunches, and the first of them is seen late
	memory    = 1 << 14 // flows after which those before them count half
	knownLots = 1 << 12 // sources are distinguished by so many lots
)

// experience is how many flows agreed with the map so far, and how many did not.
type experience struct {
	sound, unsound float64 // flows whose path was confirmed to be the map's, and those that were found to deviate

	// The counts on which marks depend are more cautious. All flows of a source that agree with the map count once.
	// Each flow with a digest that contradicts it counts, for whatever reason.
	backed, contradicted float64
	lots                 [knownLots / 64]uint64 // of sources that were counted,
	drawn                int                    // and how many these are
}

// agreed counts a sound flow. A source counts again when half of all lots are drawn.
func (e *experience) agreed(source uint32) {
	if e.sound++; e.sound+e.unsound >= memory {
		e.sound, e.unsound = e.sound/2, e.unsound/2
	}
	bit := lot(source, knownLots)
	if e.lots[bit>>6]>>(bit&63)&1 != 0 {
		return
	}
	e.lots[bit>>6] |= 1 << (bit & 63)
	if e.drawn++; e.drawn == knownLots/2 {
		e.drawn = 0
		clear(e.lots[:])
	}
	if e.backed++; e.backed+e.contradicted >= memory {
		e.backed, e.contradicted = e.backed/2, e.contradicted/2
	}
}

// share is the probability that the next path meets an error of the map, by how many did so far.
func (e *experience) share() float64 {
	return (e.unsound + prior.Touched*priorFlows) / (e.sound + e.unsound + priorFlows)
}

// guard returns the greatest assumed share where marks depend on it.
func (e *experience) guard() float64 {
	return min(prior.Touched, (bunches*e.contradicted+prior.Touched*priorFlows)/(e.backed+e.contradicted+priorFlows))
}

// place is where a path leads from one node to the next but one, with the evidence of other flows about the node
// between them. Errors of the map stay, so a place that many flows in a row have confirmed hardly has one.
type place struct {
	before, after uint32
	sources       [2]uint64 // of flows that confirmed it since the last one that contradicted it: a bit for each, by its hash
}

// flows is how many sources have confirmed a place, at least.
func (p *place) flows() int { return bits.OnesCount64(p.sources[0]) + bits.OnesCount64(p.sources[1]) }

// lot draws one of n bits for a source, n being a power of two.
func lot(source uint32, n uint32) uint32 {
	return uint32(uint64(source)*0x9e3779b97f4a7c15>>33) & (n - 1)
}

// outside stands for the node before the first, and after the last.
const outside = ^uint32(0)

// minPlaces and maxPlaces bound the table of places: 24 bytes each.
const (
	minPlaces = 1 << 10
	maxPlaces = 1 << 16
)

// placeOf finds the entry of a hop in the table. Two places that meet there do not share it: the first has it until flows
// contradict it.
func (t *Tracer) placeOf(path []uint32, h int) *place {
	before, after := outside, outside
	if h > 0 {
		before = path[h-1]
	}
	if h < len(path)-1 {
		after = path[h+1]
	}
	x := uint64(before)<<32 | uint64(after)
	x = (x ^ x>>29) * 0xbf58476d1ce4e5b9
	p := &t.places[(x^x>>32)&uint64(len(t.places)-1)]
	if p.flows() == 0 {
		*p = place{before: before, after: after}
	}
	if p.before != before || p.after != after {
		return nil
	}
	return p
}

// trust returns the evidence in bits from other flows for the node of a hop. Many of them found the map right there,
// and none found it wrong since. All nodes that the map would have there must be confirmed, or one of them may have
// another id.
func (t *Tracer) trust(path []uint32, h int) float64 {
	if t.places == nil {
		return 0
	}
	p := t.placeOf(path, h)
	if p == nil || p.flows() == 0 || !t.others(path, h) {
		return 0
	}
	return min(-math.Log2(1-errorPart)*float64(p.flows()), newError)
}

// spare returns those of the open hops that lose their mark, although their own digests are too few for any prior. An
// error of the map is assumed to be equally probable at any hop. A wrong node remains by chance, with a probability
// that falls with each digest of its hop, and with all flows that confirmed its place. These probabilities are summed,
// the least ones first, with those of the hops that have lost their mark. The sum may be as large as the stated
// confidence leaves.
func (t *Tracer) spare(r record, l *digestLog, sure, open uint64) (spared uint64) {
	path := r.path()
	each := t.experience.guard() / float64(len(path))
	type hopDoubt struct {
		h int
		p float64
	}
	var space [64]hopDoubt
	list, left := space[:0], 1-t.m.Config.Confidence
	for h := range path {
		n := t.evidence(l, h)
		switch bit := uint64(1) << h; {
		case sure&bit != 0:
			left -= each * t.passes(path, h, n)
		case open&bit != 0 && n > 0:
			if p := each * t.passes(path, h, n); p <= left {
				if n = min(n, l.support(h, false)); n > 0 {
					list = append(list, hopDoubt{h, each * t.passes(path, h, n)})
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b hopDoubt) int { return cmp.Or(cmp.Compare(a.p, b.p), a.h-b.h) })
	for _, d := range list {
		if left -= d.p; left < 0 {
			break
		}
		spared |= 1 << d.h
	}
	return spared
}

// passes returns the probability that a hop seems to have the published node, by chance, after so many digests. There
// are as many chances for it as nodes that the map could have there.
func (t *Tracer) passes(path []uint32, h, n int) float64 {
	if n >= t.m.Strict {
		return math.Exp2(t.m.Branch - float64(n)*t.m.Bits)
	}
	return math.Exp2(t.branch(path, h) - float64(n)*t.m.Bits - t.trust(path, h))
}

// branch is log2 of how many nodes the map could have between the neighbours of a hop.
func (t *Tracer) branch(path []uint32, h int) float64 {
	n := 0
	if t.m.First == nil || !t.between(path, h, func(uint16) bool { n++; return true }) {
		return t.m.Branch
	}
	return t.m.Log2[max(n, 1)]
}

// others reports whether all nodes that the map has between the neighbours of a hop were confirmed by some flow.
func (t *Tracer) others(path []uint32, h int) bool {
	return t.between(path, h, func(w uint16) bool { return bits.OnesCount8(t.heard[w]) >= 4 })
}

// between calls each with the nodes that the map has between the neighbours of a hop, until it returns false. It
// reports whether it never did, and whether there are such neighbours.
func (t *Tracer) between(path []uint32, h int, each func(w uint16) bool) bool {
	near := h - 1
	if h == 0 {
		near = 1
	}
	if near >= len(path) {
		return false
	}
	u, ok := t.m.Index[path[near]]
	if !ok {
		return false
	}
	far, both := uint16(0), h > 0 && h < len(path)-1
	if both {
		if far, ok = t.m.Index[path[h+1]]; !ok {
			return false
		}
	}
	for _, w := range t.m.Neighbours(u) {
		if both && !t.m.Linked(w, far) {
			continue
		}
		if !each(w) {
			return false
		}
	}
	return true
}

// confirm counts a flow whose digests alone confirmed all hops of its path. However many flows one source has, they
// count as one: a forger of digests confirms nothing for the flows of others.
func (t *Tracer) confirm(f *Flow, r record) {
	t.experience.agreed(f.Source)
	if t.m.First == nil {
		return
	}
	if t.places == nil {
		n := minPlaces
		for n < 4*len(t.m.Peers) && n < maxPlaces {
			n *= 2
		}
		t.places, t.heard = make([]place, n), make([]uint8, len(t.m.Nodes))
	}
	path := r.path()
	for h, id := range path {
		if u, ok := t.m.Index[id]; ok {
			t.heard[u] |= 1 << lot(f.Source, 8)
		}
		if p := t.placeOf(path, h); p != nil {
			bit := lot(f.Source, 128)
			p.sources[bit>>6] |= 1 << (bit & 63)
		}
	}
}

// distrust forgets what confirmed a place.
func (t *Tracer) distrust(path []uint32, h int) {
	if t.places == nil {
		return
	}
	if p := t.placeOf(path, h); p != nil {
		p.sources = [2]uint64{}
	}
}

// doubts appends for each hop of a known path the probability that its node is not the right one.
func (t *Tracer) doubts(f *Flow, i int, dst []float64) []float64 {
	r := t.slab.get(f.paths[i])
	var l *digestLog
	if i == 0 && f.log != 0 && t.logs[f.log-1].hops == r.hops() && t.logs[f.log-1].owner == f.paths[0] {
		l = t.logs[f.log-1]
	}
	limit := 1 - t.m.Config.Confidence
	each, branch := t.experience.share()/float64(r.hops()), t.m.Branch
	if r.kind() != noDeviation {
		each, branch = prior.Touched/float64(r.hops()), t.m.Log2[len(t.m.Nodes)]
	}
	falls := 1 - math.Exp2(-float64(r.balance())/opposes)
	suspects := r.suspects()
	for h := range r.hops() {
		bit := uint64(1) << h
		w, n := each, 0.0
		switch {
		case l != nil:
			n = float64(t.evidence(l, h))
		case r.seen()&bit != 0 && t.m.Config.Scheme.Fragments() == 1: // else a part of an id came, at least
			n = 1
		}
		if n > 0 {
			w *= math.Exp2(min(branch-n*t.m.Bits, 0))
		}
		if r.sure()&bit != 0 {
			w = min(w, limit/float64(r.hops()))
		}
		if suspects&bit != 0 {
			w = max(w, falls)
		}
		if r.astray()&bit != 0 {
			w = 1
		}
		dst = append(dst, w)
	}
	return dst
}

// HopConfidence appends for each hop of the flow's i-th known path the probability that its node is right. It is 0
// where the node is known to be another one.
func (t *Tracer) HopConfidence(f *Flow, i int, dst []float64) []float64 {
	if i < 0 || i >= maxPaths || f.paths[i] == 0 {
		return dst
	}
	from := len(dst)
	dst = t.doubts(f, i, dst)
	for h := from; h < len(dst); h++ {
		dst[h] = 1 - dst[h]
	}
	return dst
}

// confidence is the probability that a known path is right.
func (t *Tracer) confidence(f *Flow, i int) float64 {
	r := t.slab.get(f.paths[i])
	if r.astray() != 0 {
		return 0
	}
	right := 1 - r.wrong()
	var space [64]float64
	for _, w := range t.doubts(f, i, space[:0]) {
		right = min(right, right-right*w)
	}
	if r.marked() == 0 { // each hop is confirmed as well as is asked for
		right = max(right, t.m.Config.Confidence)
	}
	return min(right, math.Exp2(-float64(r.balance())/opposes))
}
