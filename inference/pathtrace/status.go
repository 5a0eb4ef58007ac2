package pathtrace

// Status is the state of knowledge about a path.
type Status struct {
	Nodes      []uint32 // node ids in the order of the path; only those in Known mean something
	Known      uint64   // hops that are known, bit i-1 for hop i
	Seen       uint64   // hops that wrote into some digest so far; the nodes of the others follow from the model alone
	Marked     uint64   // hops of a complete path that rest on the map: no digests specific to them have confirmed them well enough
	Complete   bool     // the path is known
	Confidence float64  // probability that a complete path is right
	Digests    int      // how many agree with a known path, or support the known hops of another one
}

// Path returns the i-th known path of a flow; path 0 is the one that the last digests agreed with. If no path is known,
// path 0 is as much of one as is known. ok is false if nothing is known. The nodes are appended to dst.
func (t *Tracer) Path(f *Flow, i int, dst []uint32) (s Status, ok bool) {
	if i < 0 || i >= maxPaths {
		return Status{}, false
	}
	if ref := f.paths[i]; ref != 0 {
		r := t.slab.get(ref)
		dst = append(dst, r.path()...)
		return Status{Nodes: dst, Known: hops(r.hops()) &^ r.astray(), Seen: r.seen(), Marked: r.marked(), Complete: true,
			Confidence: t.confidence(f, i), Digests: int(r[recDigests])}, true
	}
	if i > 0 || f.trace == 0 {
		return Status{}, false
	}
	tr := t.traces[f.trace-1]
	s = Status{Known: tr.known, Seen: tr.seen, Digests: tr.active}
	from := len(dst)
	for h := range tr.k {
		dst = append(dst, 0)
		if tr.known>>h&1 != 0 {
			dst[from+h] = t.m.Nodes[tr.node[h]]
		}
	}
	s.Nodes = dst
	return s, true
}

// hops is the set of the first k hops.
func hops(k int) uint64 { return ^uint64(0) >> (64 - k) }

// candidate is a node that a hop may be.
type candidate struct {
	Node uint32
	P    float64
}

// Candidates returns the possible nodes of each hop of an undecided path, the most likely ones first. The path is
// assumed to be one of the model's. The result exact is true if all paths were weighed. Otherwise all nodes of a hop
// that are not excluded have the same probability. The list is nil for a flow with nothing undecided.
func (t *Tracer) Candidates(f *Flow) (hops [][]candidate, exact bool) {
	if f.trace == 0 {
		return nil, true
	}
	tr := t.traces[f.trace-1]
	tr.little = 0
	t.narrow(tr)
	return t.marginals(tr)
}
