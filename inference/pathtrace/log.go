package pathtrace

import (
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference/pathtrace/prior"
)

// digestLog keeps the last digests of a flow from its first one on, whether a path explains them or not, until its path
// is certain. A contradicted path is weighed with them again, and the log counts how often each hop has confirmed the
// path.
type digestLog struct {
	ring    []packet
	oldest  int
	hops    int
	owner   uint32               // reference of the path that the counts belong to
	digests uint32               // digests that came so far
	next    uint32               // at how many of them deviations from the map are looked for again
	since   uint32               // digests that agreed since the path was published
	counts  [pint.MaxHops]uint16 // digests that agree with the path of the flow and that the hop wrote into
	shared  []uint64             // the last of these that several hops wrote: which ones

	// Where digests carry fragments of ids, those that a hop wrote alone: a bit for each. A digest with a fragment that
	// came before is no evidence. Nil for hashes.
	parts []uint32
}

// maxShared is how many digests of several writers are counted.
const maxShared = 64

// logPatience is how many times Config.Window digests have to agree with a path before the search for confirmation
// ends. Hops that did not write enough of them stay marked.
const logPatience = 8

func logBytes(m *prior.Model) int {
	n := 16*m.Config.Window + 2*pint.MaxHops + 8*maxShared + 128
	if m.Parts {
		n += 4 * pint.MaxHops
	}
	return n
}

// keep allocates a log for a flow, if there is memory for it: a quarter at most goes to logs.
func (t *Tracer) keep(f *Flow, k int) *digestLog {
	if f.log != 0 {
		return t.logs[f.log-1]
	}
	if len(t.idleLogs) == 0 {
		size, total := logBytes(t.m), t.m.Config.MemoryBytes
		if logs := (len(t.logs) + 1) * size; logs > total/4 || t.reserved+logs > total-total/4 || t.reserved+t.slab.bytes+logs > total {
			return nil
		}
		t.idleLogs = append(t.idleLogs, uint32(len(t.logs)))
		l := &digestLog{ring: make([]packet, 0, t.m.Config.Window), shared: make([]uint64, 0, maxShared)}
		if t.m.Parts {
			l.parts = make([]uint32, pint.MaxHops)
		}
		t.logs = append(t.logs, l)
		t.logBytes += size
	}
	last := len(t.idleLogs) - 1
	f.log = t.idleLogs[last] + 1
	t.idleLogs = t.idleLogs[:last]
	l := t.logs[f.log-1]
	l.restart(k)
	return l
}

// count makes the counts those of a path. Agreement with another one, or with this one before another was in use, is no
// evidence for it.
func (l *digestLog) count(ref uint32) {
	if l.owner != ref {
		l.owner, l.shared = ref, l.shared[:0]
		clear(l.counts[:])
		clear(l.parts)
	}
}

// restart empties a log, for paths of k hops.
func (l *digestLog) restart(k int) {
	clear(l.parts)
	*l = digestLog{ring: l.ring[:0], shared: l.shared[:0], parts: l.parts, hops: k, next: firstAttempt}
}

// discard takes a flow's log away.
func (t *Tracer) discard(f *Flow) {
	if f.log != 0 {
		t.idleLogs = append(t.idleLogs, f.log-1)
		f.log = 0
	}
}

// add keeps a digest. It reports whether it is new: a packet that is seen twice proves no more than once.
func (l *digestLog) add(p packet) bool {
	for i := range l.ring {
		if l.ring[i].id == p.id && l.ring[i].digest == p.digest {
			return false
		}
	}
	l.digests += min(1, ^l.digests)
	if len(l.ring) < cap(l.ring) {
		l.ring = append(l.ring, p)
		return true
	}
	l.ring[l.oldest] = p
	l.oldest = (l.oldest + 1) % len(l.ring)
	return true
}

// parted calls each for every instance of a digest about a path, with the hops that wrote it, and whether the path
// explains it. Hops whose node is not known explain anything; instances that they wrote into are left out.
func (t *Tracer) parted(r record, id uint32, digest uint64, each func(fragment int, writers uint64, agrees bool)) {
	s, path, wrong := t.m.Config.Scheme, r.path(), r.astray()
	for inst := range s.Instances() {
		p := s.Packet(id, inst)
		w := s.Writers(&p, len(path))
		if w&wrong != 0 {
			continue
		}
		each(p.Fragment(), w, s.Sum(&p, w, path) == s.Part(digest, inst))
	}
}

// steady takes in one more digest that the path of a flow explains, while it is not certain or was contradicted.
func (t *Tracer) steady(f *Flow, r record, id uint32, digest uint64) Event {
	if b := r.balance(); b > 0 {
		r.setBalance(b - 1)
	}
	if r[recState]&unsettled == 0 {
		return Verified
	}
	l := t.keep(f, r.hops())
	if l != nil && l.hops != r.hops() && f.trace == 0 {
		l.restart(r.hops())
	}
	if l == nil || l.hops != r.hops() || !l.add(packet{digest, id, true}) {
		return Verified
	}
	l.count(f.paths[0])
	t.parted(r, id, digest, func(fragment int, writers uint64, _ bool) { l.credit(fragment, writers) })
	return t.certify(f, r, l)
}

// credit counts a digest that agrees with the path for the hops that wrote it.
func (l *digestLog) credit(fragment int, writers uint64) {
	if writers&(writers-1) != 0 {
		if len(l.shared) == maxShared {
			l.withdraw(0)
		}
		l.shared = append(l.shared, writers)
	} else if writers != 0 && l.parts != nil {
		l.parts[bits.TrailingZeros64(writers)] |= 1 << fragment
	}
	for ; writers != 0; writers &= writers - 1 {
		c := &l.counts[bits.TrailingZeros64(writers)]
		*c += min(1, ^*c)
	}
}

// withdraw takes a digest of several writers back.
func (l *digestLog) withdraw(i int) {
	for w := l.shared[i]; w != 0; w &= w - 1 {
		c := &l.counts[bits.TrailingZeros64(w)]
		*c -= min(1, *c)
	}
	l.shared = append(l.shared[:i], l.shared[i+1:]...)
}

// uncredit forgets what agreed so far with the nodes of some hops.
func (l *digestLog) uncredit(writers uint64) {
	for i := len(l.shared) - 1; i >= 0; i-- {
		if l.shared[i]&writers != 0 {
			l.withdraw(i)
		}
	}
	for ; writers != 0; writers &= writers - 1 {
		h := bits.TrailingZeros64(writers)
		if l.counts[h] = 0; l.parts != nil {
			l.parts[h] = 0
		}
	}
}

// evidence is how many independent digests of a hop agree with the path, at most. Ids of neighbours may differ in one
// fragment alone, so that a hop has evidence when all fragments of its id have come: that of the bits of an id.
func (t *Tracer) evidence(l *digestLog, h int) int {
	switch {
	case !t.m.Parts:
		return int(l.counts[h])
	case bits.OnesCount32(l.parts[h]) < t.m.Config.Scheme.Fragments():
		return 0
	}
	return t.m.Whole
}

// support returns how many digests confirm the node of a hop. Those that two hops wrote together agree as well if the
// nodes of the two are exchanged. So for each other hop there must be as many that only one of the two wrote. If a
// digest contradicted this hop, only its own count, since those of the other one may be older than the change.
func (l *digestLog) support(h int, suspect bool) int {
	n, together := int(l.counts[h]), [pint.MaxHops]int{}
	any := uint64(0)
	for _, w := range l.shared {
		if w>>h&1 == 0 {
			continue
		}
		for any |= w; w != 0; w &= w - 1 {
			together[bits.TrailingZeros64(w)]++
		}
	}
	for any &^= 1 << h; any != 0; any &= any - 1 {
		g := bits.TrailingZeros64(any)
		apart := int(l.counts[h]) - together[g]
		if !suspect {
			apart += int(l.counts[g]) - together[g]
		}
		n = min(n, apart)
	}
	return n
}

// certify takes the marks from hops that enough digests have confirmed. When all of them were, by digests of this flow
// alone, its digests are kept no longer.
func (t *Tracer) certify(f *Flow, r record, l *digestLog) Event {
	l.since++
	before, firm := r.marked(), true
	strict, path := t.strict(r), r.path()
	sure, suspects := r.sure(), r.suspects()
	for h := range path {
		bit := uint64(1) << h
		if r.astray()&bit != 0 {
			firm = false
			continue
		}
		n := t.evidence(l, h)
		if n >= strict && (sure&bit == 0 || suspects&bit != 0) {
			n = min(n, l.support(h, suspects&bit != 0))
		}
		if n >= strict {
			sure |= bit
			if r.balance() == 0 {
				suspects &^= bit
			}
			continue
		}
		firm = false
	}
	if open := hops(len(path)) &^ sure &^ suspects; open != 0 && r.kind() == noDeviation && f.paths[1] == 0 {
		sure |= t.spare(r, l, sure, open)
	}
	r.ensure(sure)
	r.suspect(suspects)
	switch {
	case firm && r.balance() == 0:
		t.confirm(f, r)
		r[recState] &^= unsettled
		t.discard(f)
	case l.since > logPatience*uint32(t.m.Config.Window):
		r[recState] &^= unsettled
		t.discard(f)
	}
	if before != 0 && r.marked() == 0 {
		return Confirmed
	}
	return Verified
}

// strict is how many digests a hop must have written into for its mark to be taken away by this flow alone.
func (t *Tracer) strict(r record) int {
	if r.kind() != noDeviation {
		return t.m.StrictAny
	}
	return t.m.Strict
}

// recount weighs a newly published path with the digests that are kept, of which those that contradict it count against
// it.
func (t *Tracer) recount(f *Flow, ref uint32) {
	r := t.slab.get(ref)
	r[recState] |= unsettled
	l := t.keep(f, r.hops())
	if l == nil {
		return
	}
	if l.hops != r.hops() {
		l.restart(r.hops())
	}
	l.since = 0
	l.owner = 0
	l.count(ref)
	for i := range l.ring {
		p := &l.ring[(l.oldest+i)%len(l.ring)]
		wrong := uint64(0)
		t.parted(r, p.id, p.digest, func(_ int, writers uint64, agrees bool) {
			if !agrees {
				wrong |= writers
			}
		})
		if wrong != 0 {
			r.oppose(wrong)
			l.uncredit(wrong)
			continue
		}
		r.setBalance(r.balance() - min(r.balance(), 1))
		t.parted(r, p.id, p.digest, func(fragment int, writers uint64, _ bool) { l.credit(fragment, writers) })
	}
	t.certify(f, r, l)
}

// opposed counts a digest that contradicts the path of a flow: the confidence of the path falls. The hops that may be
// to blame are marked again. Each mark stays until as many digests as before its first removal agree with the hop anew.
func (t *Tracer) opposed(f *Flow, r record, id uint32, digest uint64) {
	if f.log != 0 && t.logs[f.log-1].hops != r.hops() {
		return
	}
	t.parted(r, id, digest, func(_ int, writers uint64, agrees bool) {
		if agrees {
			return
		}
		r.oppose(writers)
		r.ensure(r.sure() &^ writers)
		r[recState] |= unsettled
		if f.log != 0 {
			l := t.logs[f.log-1]
			l.since = 0
			l.count(f.paths[0])
			l.uncredit(writers)
		}
		if writers != 0 && writers&(writers-1) == 0 {
			t.distrust(r.path(), bits.TrailingZeros64(writers))
		}
	})
}

// same reports whether a path of a flow is published already.
func (t *Tracer) same(f *Flow, path []uint32, astray uint64) bool {
	ref := f.paths[0]
	return ref != 0 && slices.Equal(t.slab.get(ref).path(), path) && t.slab.get(ref).astray() == astray
}
