package pathtrace

import "math"

// learn takes a digest into a trace and sees whether that makes its path known.
func (t *Tracer) learn(f *Flow, tr *trace, p packet) Event {
	if !t.remember(tr, p) {
		return Duplicate
	}
	tr.active = min(tr.active+1, len(tr.recent))
	if p.known {
		tr.explained++
	} else {
		tr.strays++
	}
	tr.credit = min(tr.credit+t.m.Config.Work, maxCredit*t.m.Config.Work)
	if tr.doubted {
		return t.confirms(f, tr, p)
	}
	t.fold(tr, p.id, p.digest)
	t.winnow(tr, p)
	t.narrow(tr)
	e := t.settle(f, tr)
	t.account(tr)
	return e
}

// winnow drops the witnesses that do not explain a digest.
func (t *Tracer) winnow(tr *trace, p packet) {
	keep := tr.witnesses[:0]
	for i := 0; i < len(tr.witnesses); i += tr.k {
		if w := tr.witnesses[i : i+tr.k]; t.agrees(t.name(w), p.id, p.digest) {
			keep = append(keep, w...)
		}
	}
	tr.witnesses = keep
}

// settle ends a trace if its path is known, or if there is none.
func (t *Tracer) settle(f *Flow, tr *trace) Event {
	if !tr.dead && !tr.complete {
		if _, share := t.best(f, tr); share >= t.m.Config.Confidence || len(tr.witnesses) == 0 {
			t.look(tr)
		}
	}
	if tr.dead || tr.complete && len(tr.witnesses) == 0 {
		return t.contradicted(f, tr)
	}
	if !tr.complete {
		return Pending
	}
	path, share := t.best(f, tr)
	if share < t.m.Config.Confidence || !t.replaces(f, tr) {
		return Pending
	}
	if tr.doubted = f.state.against > 0; tr.doubted {
		return Pending
	}
	return t.learnt(f, tr, path, 1-share)
}

// look searches for paths that explain all digests, as far as the credit reaches. Two of the same weight are enough to
// know that more digests are needed. Up to maxFound are listed, because if these are all there are, the next digests
// only have to choose among them.
func (t *Tracer) look(tr *trace) {
	if all := tr.known == hops(tr.k); !all && (tr.bits < tr.little || tr.credit < max(tr.need, 32)) {
		return
	}
	// The links of hops with many candidates are followed when much credit was saved up, as happens with narrow digests.
	if t.m.First != nil && tr.toRight|tr.toLeft != 0 && tr.credit > maxSearch*t.m.Config.Work {
		tr.wide = true
		t.narrow(tr)
		tr.wide = false
		if tr.dead || tr.credit <= 0 {
			return
		}
	}
	budget := min(tr.credit, maxSearch*t.m.Config.Work)
	t.found = t.found[:0]
	used, complete := t.search(tr, budget, func(path []uint16) bool {
		t.found = append(t.found, path...)
		return len(t.found) < maxFound*tr.k
	})
	tr.credit -= used
	t.stats.Searches++
	t.stats.Steps += uint64(used)
	tr.complete = complete
	tr.witnesses = tr.witnesses[:0]
	n := len(t.found) / tr.k
	step := 1
	if !complete && n > maxWitnesses {
		step = (n - 1) / (maxWitnesses - 1)
	}
	for i := 0; i < n; i += step {
		tr.witnesses = append(tr.witnesses, t.found[i*tr.k:][:tr.k]...)
	}
	if !complete && n < 2 {
		tr.need = budget // it takes a few digests to save up as much again
	}
}

// maxWitnesses is how many paths are kept to show that there are several.
const maxWitnesses = 4

// other is log2 of the odds that the model does not know the path, or that digests come from no path. After n
// contradictions they are (n+1)² to 1: they grow, so that all attempts together hardly end with a wrong path.
func (t *Tracer) other(f *Flow) float64 {
	if f.state.against == 0 {
		return t.m.Other
	}
	return 2 * math.Log2(float64(f.state.against)+1)
}

// mixture is how much less likely it is, in bits, that packets take two paths than that they take one.
const mixture = 6

// confirms weighs one more digest for or against the only path that explains all digests since a contradiction. If
// packets take two paths and this one is made of pieces of both, it has another node than either of them at some hop.
// So a digest disagrees with at least the probability that it covers any one hop. If this is the only path of the flow,
// only wrong digests disagree. They may be an eighth as frequent.
func (t *Tracer) confirms(f *Flow, tr *trace, p packet) Event {
	path, share := t.best(f, tr)
	if c := tr.space.Cover; t.agrees(t.name(path), p.id, p.digest) {
		tr.score += math.Log2((1 - c/8) / (1 - c))
	} else if tr.score -= 3; tr.score < -6 {
		return t.contradicted(f, tr)
	}
	if tr.score < math.Log2(1/(1-t.m.Config.Confidence))-mixture || !t.replaces(f, tr) {
		return Pending
	}
	return t.learnt(f, tr, path, 1-share)
}

// best is the witness with the greatest weight. Its probability holds if there are no other paths than the witnesses
// and those that the model does not know, whose digests are random.
func (t *Tracer) best(f *Flow, tr *trace) (path []uint16, share float64) {
	sum := math.Exp2(t.other(f) - tr.bits + tr.total)
	weight := 0.0
	for i := 0; i < len(tr.witnesses); i += tr.k {
		p := tr.witnesses[i : i+tr.k]
		w := math.Exp2(t.m.LogWeight(p))
		sum += w
		if w > weight {
			path, weight = p, w
		}
	}
	if weight == 0 {
		return nil, 0
	}
	return path, weight / sum
}

// replaces reports whether a new path has enough digests that no known path explains. Two are enough to distinguish it
// from a wrong digest. If digests that a known path explains helped to find it, packets may be taking two paths. There
// must be so many that the packets which distinguish the two are hardly all of one path by chance.
func (t *Tracer) replaces(f *Flow, tr *trace) bool {
	if !f.Known() {
		return true
	}
	need := 2.0
	if tr.explained > 0 {
		need = max(need, math.Log2(1/(1-t.m.Config.Confidence))-mixture)
	}
	return float64(tr.strays) >= need
}

// learnt makes the path of a trace a known one. If there is no memory for it, the trace goes on.
func (t *Tracer) learnt(f *Flow, tr *trace, path []uint16, wrong float64) Event {
	e := Decoded
	if f.Known() {
		e = Parallel
		if tr.all {
			e = Changed
		}
	}
	ref := t.slab.put(tr.k, t.room())
	if ref == 0 {
		return RejectedMemory
	}
	r := t.slab.get(ref)
	for h, u := range path {
		r.path()[h] = t.m.Nodes[u]
	}
	r.agree(uint32(tr.active))
	r.see(tr.seen)
	r.setWrong(wrong)
	if last := f.paths[maxPaths-1]; last != 0 {
		t.slab.drop(last)
	}
	copy(f.paths[1:], f.paths[:])
	f.paths[0] = ref
	f.state.against, f.state.restarts, f.state.hopeless = 0, 0, 0
	t.recount(f, ref)
	t.close(f)
	return e
}
