package pathtrace

import "math"

// learn takes a digest into a trace and looks whether the path is known then.
func (t *Tracer) learn(f *Flow, tr *trace, p packet) Event {
	if !t.remember(tr, p) {
		return Duplicate
	}
	tr.credit = min(tr.credit+t.m.config.Work, maxCredit*t.m.config.Work)
	t.fold(tr, p.id, p.digest)
	t.winnow(tr, p)
	t.narrow(tr)
	e := t.settle(f, tr)
	t.account(tr)
	return e
}

// winnow drops witnesses that a digest speaks against.
func (t *Tracer) winnow(tr *trace, p packet) {
	keep := tr.witnesses[:0]
	for i := 0; i < len(tr.witnesses); i += tr.k {
		if w := tr.witnesses[i : i+tr.k]; t.agrees(w, p.id, p.digest) {
			keep = append(keep, w...)
		}
	}
	tr.witnesses = keep
}

// settle ends a trace if its path is known, or if there is none.
func (t *Tracer) settle(f *Flow, tr *trace) Event {
	if !tr.dead && !tr.complete {
		if _, share := t.best(f, tr); share >= t.m.config.Confidence || len(tr.witnesses) == 0 {
			t.look(tr)
		}
	}
	if tr.dead || tr.complete && len(tr.witnesses) == 0 {
		return t.contradicted(f, tr)
	}
	if !tr.complete || f.Known() && tr.strays < 2 {
		return Pending
	}
	path, share := t.best(f, tr)
	if share < t.m.config.Confidence {
		return Pending
	}
	return t.learnt(f, tr, path, 1-share)
}

// look searches for paths that explain all digests, as far as the credit reaches. Two of the same weight are enough to
// know that more digests are needed; a few are listed, since then the next digests only have to choose among them.
func (t *Tracer) look(tr *trace) {
	if all := tr.known == hops(tr.k); !all && (tr.bits < tr.little || tr.credit < max(tr.need, 32)) {
		return
	}
	budget := min(tr.credit, maxSearch*t.m.config.Work)
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
		tr.need = budget // which takes a few digests to come together again
	}
}

// maxWitnesses is how many paths are kept to show that there are several.
const maxWitnesses = 4

// best is the witness with the greatest weight and its probability, if there are no other paths than the witnesses and
// those that the model does not know. Digests of these are random.
func (t *Tracer) best(f *Flow, tr *trace) (path []uint16, share float64) {
	sum := math.Exp2(t.m.other - tr.bits + t.m.total(tr.space, f.Ingress, f.Egress))
	weight := 0.0
	for i := 0; i < len(tr.witnesses); i += tr.k {
		p := tr.witnesses[i : i+tr.k]
		w := math.Exp2(t.m.logWeight(p))
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

// learnt makes the path of a trace a known one.
func (t *Tracer) learnt(f *Flow, tr *trace, path []uint16, wrong float64) Event {
	e := Decoded
	if f.Known() {
		e = Parallel
		if tr.all {
			e = Changed
		}
	}
	ref := t.slab.put(path)
	r := t.slab.get(ref)
	r.agree(uint32(len(tr.recent)))
	r.see(tr.seen)
	r.setWrong(wrong)
	if last := f.paths[maxPaths-1]; last != 0 {
		t.slab.drop(last)
	}
	copy(f.paths[1:], f.paths[:])
	f.paths[0] = ref
	f.state.restarts, f.state.hopeless = 0, 0
	t.close(f)
	return e
}

// contradicted starts a trace anew that no path explains. Where a path was known before, packets may still take it, and
// only the others count from now on; otherwise the path may have changed meanwhile, and old digests are forgotten.
func (t *Tracer) contradicted(f *Flow, tr *trace) Event {
	t.unroll(tr)
	if f.Known() && tr.all {
		tr.all = false
		n := 0
		for _, p := range tr.recent {
			if !p.known {
				tr.recent[n] = p
				n++
			}
		}
		tr.recent = tr.recent[:n]
		if t.replay(f, tr) {
			return Pending
		}
	}
	if f.state.restarts++; f.state.restarts >= maxRestarts {
		f.state.restarts = 0
		f.state.pause = patience << min(f.state.hopeless, 8)
		f.state.hopeless = min(f.state.hopeless+1, 8)
		t.close(f)
		return Untraceable
	}
	for {
		tr.recent = tr.recent[:copy(tr.recent, tr.recent[(len(tr.recent)+1)/2:])]
		if t.replay(f, tr) {
			return Contradiction
		}
		if len(tr.recent) == 0 {
			t.close(f)
			return Contradiction
		}
	}
}

// unroll puts the ring of digests in order.
func (t *Tracer) unroll(tr *trace) {
	if tr.oldest != 0 {
		t.ring = append(append(t.ring[:0], tr.recent[tr.oldest:]...), tr.recent[:tr.oldest]...)
		copy(tr.recent, t.ring)
		tr.oldest = 0
	}
}

// replay opens a trace with the digests that it remembers. It reports whether there may be a path.
func (t *Tracer) replay(f *Flow, tr *trace) bool {
	t.open(tr, f, tr.k)
	tr.strays = 0
	for _, p := range tr.recent {
		if !p.known {
			tr.strays++
		}
		if t.fold(tr, p.id, p.digest); tr.dead {
			return false
		}
	}
	t.narrow(tr)
	return !tr.dead
}
