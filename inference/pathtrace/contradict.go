package pathtrace

import "slices"

const (
	maxRestarts  = 24 // how many contradictions make a flow untraceable,
	maxSamplings = 3  // if as many searches in parts of the digests have failed as well
	maxHopeless  = 8  // how often the pause of such a flow doubles

	samples    = 64 // how many parts of the digests such a search looks at,
	sampleWork = 64 // and how much work it may take, in what Config.Work allows for a digest
)

// contradicted begins a trace anew when no path explains it. Where a path was known before, packets may still take it,
// and only digests that it does not explain count from now on. Otherwise the path may have changed in the meantime, and
// the older digests are left aside. If that does not help, the flow takes several paths, or digests are wrong.
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
		tr.recent, tr.active = tr.recent[:n], n
		if t.replay(f, tr) {
			return Pending
		}
	}
	f.state.restarts += min(1, ^f.state.restarts)
	f.state.against += min(1, ^f.state.against)
	if window := t.m.Config.Window; len(tr.recent) == window {
		if path := t.sample(f, tr); path != nil {
			return t.learnt(f, tr, path, 1-t.m.Config.Confidence)
		}
		tr.samplings++
		tr.recent = tr.recent[:copy(tr.recent, tr.recent[window/4:])] // no further attempt before the window is full again
		tr.active = min(tr.active, len(tr.recent))
	}
	impossible := false
	for {
		tr.active /= 2
		if t.replay(f, tr) {
			break
		}
		if impossible = tr.active == 0; impossible {
			break
		}
	}
	if f.state.restarts >= maxRestarts && (impossible || tr.samplings >= maxSamplings) {
		f.state.restarts = 0
		f.state.pause = patience << f.state.hopeless
		f.state.hopeless = min(f.state.hopeless+1, maxHopeless)
		t.close(f)
		return Untraceable
	}
	return Contradiction
}

// unroll puts the ring of digests in order.
func (t *Tracer) unroll(tr *trace) {
	if tr.oldest != 0 {
		t.ring = append(append(t.ring[:0], tr.recent[tr.oldest:]...), tr.recent[:tr.oldest]...)
		copy(tr.recent, t.ring)
		tr.oldest = 0
	}
}

// replay opens a trace anew with the last active ones of its digests. It reports whether there may be a path.
func (t *Tracer) replay(f *Flow, tr *trace) bool {
	t.open(tr, f, tr.k)
	tr.strays, tr.explained = 0, 0
	for _, p := range tr.recent[len(tr.recent)-tr.active:] {
		if p.known {
			tr.explained++
		} else {
			tr.strays++
		}
		if t.fold(tr, p.id, p.digest); tr.dead {
			return false
		}
	}
	t.narrow(tr)
	return !tr.dead
}

// sample looks for two paths that explain all digests between them. It traces parts of the digests, in turn runs of
// them and scattered ones, until one part leads to a path. Then the digests that this path does not explain have to
// lead to a second one. Those that the second one does not explain have to lead back to the first. If two paths are
// used equally, one part of n digests in 2ⁿ⁻¹ is of a single path. Where links are known, half a dozen digests make a
// path.
func (t *Tracer) sample(f *Flow, tr *trace) []uint16 {
	n := len(tr.recent)
	random := uint64(tr.recent[n-1].id)<<32 | uint64(tr.recent[0].id)
	credit := sampleWork * t.m.Config.Work
	for try := 0; try < samples && credit > 0; try++ {
		random = random*6364136223846793005 + 1442695040888963407
		at, step := int(random>>33)%n, 1
		if try&1 != 0 {
			for step = int(random>>17)&0xffff%n | 1; gcd(step, n) != 1; step += 2 {
			}
		}
		t.part = t.part[:0]
		for range n / 2 {
			t.part = append(t.part, tr.recent[at])
			at = (at + step) % n
		}
		first := t.trace(f, tr.k, t.part, false, &credit)
		if first == nil {
			continue
		}
		second := t.trace(f, tr.k, t.unexplained(tr.recent, first), true, &credit)
		if second == nil {
			continue
		}
		repeated := t.trace(f, tr.k, t.unexplained(tr.recent, second), true, &credit)
		if slices.Equal(first, repeated) {
			return first
		}
	}
	return nil
}

// unexplained returns the digests that a path does not explain, until the next call.
func (t *Tracer) unexplained(digests []packet, path []uint16) []packet {
	t.part = t.part[:0]
	ids := t.name(path)
	for _, p := range digests {
		if !t.agrees(ids, p.id, p.digest) {
			t.part = append(t.part, p)
		}
	}
	return t.part
}

// trace finds the path of k hops that the digests lead to. They are all digests, or else as many of the first ones as
// it takes. The result is nil if there is no such path, or not enough credit to find it.
func (t *Tracer) trace(f *Flow, k int, digests []packet, all bool, credit *int) []uint16 {
	tr := &t.trial
	t.open(tr, f, k)
	tr.credit = *credit - k*tr.words/8
	defer func() { *credit = tr.credit }()
	for i, p := range digests {
		tr.credit -= 4
		t.fold(tr, p.id, p.digest)
		t.winnow(tr, p)
		if t.narrow(tr); tr.dead || tr.credit <= 0 {
			return nil
		}
		if all && i < len(digests)-1 {
			continue
		}
		if !tr.complete && len(tr.witnesses) < 2*k {
			t.look(tr)
		}
		if tr.complete && len(tr.witnesses) == 0 {
			return nil
		}
		if path, share := t.best(f, tr); tr.complete && share >= t.m.Config.Confidence {
			return slices.Clone(path)
		}
	}
	return nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
