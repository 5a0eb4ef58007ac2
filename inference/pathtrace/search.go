package pathtrace

import (
	"math/bits"
	"slices"

	"github.com/hopscope/hopscope/decode/pint"
)

// level is one hop of a search, in the order in which hops get their nodes.
type level struct {
	h    int
	from int      // the hop beside it that has its node already, or -1
	list []uint16 // candidates
	at   int      // the next one of them
	set  bool     // its node is marked as used
	xors int32    // 1 + the first of the digests whose last unknown writer this hop is
}

// search visits the paths that explain all digests, depth first, until each returns false or the steps are used up. The
// slice that each gets is valid during the call. The result complete means that there are no other paths.
func (t *Tracer) search(tr *trace, steps int, each func(path []uint16) bool) (used int, complete bool) {
	path := t.path[:tr.k]
	loops := t.m.Config.Loops
	if !loops {
		defer t.unuse(tr)
	}
	first, last, possible := t.place(tr, path)
	if !possible {
		return 0, true
	}
	t.order(tr)
	n := len(t.levels)
	if n == 0 {
		if t.m.ShortestByWeight(path) {
			each(path)
		}
		return 0, true
	}
	t.attach(tr)
	left := steps
	pos := 0
	complete = true
	t.enter(tr, 0)
	for pos >= 0 {
		lv := &t.levels[pos]
		if lv.set {
			t.used[path[lv.h]] = false
			lv.set = false
		}
		lo, hi := t.lo[pos], t.hi[pos]
		if first >= 0 {
			lo, hi = min(lo, first), max(hi, last)
		}
		found := t.choose(tr, lv, path, lo, hi, &left)
		if left < 0 {
			complete = false
			break
		}
		switch {
		case !found:
			pos--
		case pos == n-1:
			if t.m.ShortestByWeight(path) && !each(path) {
				complete = false
				pos = -1
			}
		default:
			if !loops {
				t.used[path[lv.h]] = true
				lv.set = true
			}
			pos++
			t.enter(tr, pos)
		}
	}
	for i := range t.levels {
		if lv := &t.levels[i]; lv.set {
			t.used[path[lv.h]] = false
		}
	}
	return steps - left, complete
}

// place puts the nodes of known hops on a path and, unless paths may have loops, notes that they are used. It returns the
// first and the last of these hops, -1 if there is none. Known hops that no path can have together make it impossible.
func (t *Tracer) place(tr *trace, path []uint16) (first, last int, possible bool) {
	first, last = -1, -1
	for k := tr.known; k != 0; k &= k - 1 {
		h := bits.TrailingZeros64(k)
		path[h] = tr.node[h]
		if first < 0 {
			first = h
		}
		last = h
	}
	if t.m.Routed && first >= 0 && t.m.Distance(path[first], path[last]) != last-first {
		return first, last, false
	}
	if t.m.Config.Loops {
		return first, last, true
	}
	for k := tr.known; k != 0; k &= k - 1 {
		u := tr.node[bits.TrailingZeros64(k)]
		if t.used[u] {
			return first, last, false
		}
		t.used[u] = true
	}
	return first, last, true
}

// choose puts the next candidate of a level on a path that it fits, and reports whether there is one. The outermost
// hops that have their node already are lo and hi. Every candidate takes one of the steps that are left.
func (t *Tracer) choose(tr *trace, lv *level, path []uint16, lo, hi int, left *int) bool {
	m, row, loops := t.m, tr.row(lv.h), t.m.Config.Loops
	for lv.at < len(lv.list) {
		u := lv.list[lv.at]
		lv.at++
		*left--
		if !has(row, u) || t.used[u] && !loops {
			continue
		}
		if m.Routed && lo <= hi && (m.Distance(path[lo], u) != max(lo-lv.h, lv.h-lo) || m.Distance(path[hi], u) != max(hi-lv.h, lv.h-hi)) {
			continue
		}
		if m.Weights != nil && !m.Weights.Fits(path, lo, hi, lv.h, u) {
			continue
		}
		path[lv.h] = u
		if lv.xors == 0 || t.explained(tr, lv.xors, path, left) {
			return true
		}
	}
	return false
}

// unuse takes back the marks of nodes that known hops use.
func (t *Tracer) unuse(tr *trace) {
	for k := tr.known; k != 0; k &= k - 1 {
		t.used[tr.node[bits.TrailingZeros64(k)]] = false
	}
}

// order decides in which order unknown hops get their nodes. Where links are known, each hop comes after one beside it:
// first the runs of unknown hops with the fewest combinations. Without links, hops with few candidates come first.
func (t *Tracer) order(tr *trace) {
	levels := t.levels[:0]
	defer func() { t.levels = levels }()
	if t.m.First == nil {
		for h := range tr.k {
			if tr.known>>h&1 == 0 {
				levels = append(levels, level{h: h, from: -1})
			}
		}
		slices.SortFunc(levels, func(a, b level) int { return int(tr.size[a.h] - tr.size[b.h]) })
	} else if tr.known == 0 {
		c := 0
		for h := range tr.k {
			if tr.size[h] < tr.size[c] {
				c = h
			}
		}
		levels = append(levels, level{h: c, from: -1})
		for h := c + 1; h < tr.k; h++ {
			levels = append(levels, level{h: h, from: h - 1})
		}
		for h := c - 1; h >= 0; h-- {
			levels = append(levels, level{h: h, from: h + 1})
		}
	} else {
		levels = t.runs(tr, levels)
	}
	// The outermost hops that have their node when a level is entered.
	lo, hi := tr.k, -1
	for i := range levels {
		t.lo[i], t.hi[i] = lo, hi
		lo, hi = min(lo, levels[i].h), max(hi, levels[i].h)
	}
	t.members = t.members[:0]
	for i := range levels {
		if levels[i].from < 0 {
			start := len(t.members)
			for j, w := range tr.row(levels[i].h) {
				for ; w != 0; w &= w - 1 {
					t.members = append(t.members, uint16(j<<6+bits.TrailingZeros64(w)))
				}
			}
			levels[i].list = t.members[start:len(t.members):len(t.members)]
		}
	}
}

// runs adds a level for each unknown hop, one run of neighbouring ones after the other, and each run from a known hop on.
func (t *Tracer) runs(tr *trace, levels []level) []level {
	type run struct {
		lo, hi int
		weight float64
	}
	var space [pint.MaxHops]run
	runs := space[:0]
	for h := 0; h < tr.k; h++ {
		if tr.known>>h&1 != 0 {
			continue
		}
		r := run{lo: h}
		for ; h < tr.k && tr.known>>h&1 == 0; h++ {
			r.weight += t.m.Log2[tr.size[h]]
		}
		r.hi = h - 1
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b run) int {
		switch {
		case a.weight < b.weight:
			return -1
		case a.weight > b.weight:
			return 1
		}
		return a.lo - b.lo
	})
	for _, r := range runs {
		if r.lo > 0 {
			for h := r.lo; h <= r.hi; h++ {
				levels = append(levels, level{h: h, from: h - 1})
			}
			continue
		}
		for h := r.hi; h >= 0; h-- {
			levels = append(levels, level{h: h, from: h + 1})
		}
	}
	return levels
}

// attach lists every digest at the level that completes it.
func (t *Tracer) attach(tr *trace) {
	var pos [pint.MaxHops]int
	for i := range t.levels {
		pos[t.levels[i].h] = i
	}
	t.next, t.packets = t.next[:0], t.packets[:0]
	for i := range tr.xors {
		x := &tr.xors[i]
		at := -1
		for u := x.unknown; u != 0; u &= u - 1 {
			at = max(at, pos[bits.TrailingZeros64(u)])
		}
		if at < 0 {
			t.next, t.packets = append(t.next, 0), append(t.packets, pint.Packet{})
			continue
		}
		t.next, t.packets = append(t.next, t.levels[at].xors), append(t.packets, t.m.Config.Scheme.Packet(x.id, int(x.inst)))
		t.levels[at].xors = int32(i) + 1
	}
}

// enter begins a level: with the neighbours of the hop that it comes after.
func (t *Tracer) enter(tr *trace, pos int) {
	lv := &t.levels[pos]
	lv.at = 0
	if lv.from >= 0 {
		lv.list = t.m.Neighbours(t.path[lv.from])
	}
}

// explained reports whether a path explains the digests of a list. Every value takes one of the steps that are left.
func (t *Tracer) explained(tr *trace, list int32, path []uint16, left *int) bool {
	s := t.m.Config.Scheme
	for i := list; i != 0; i = t.next[i-1] {
		x, p := &tr.xors[i-1], &t.packets[i-1]
		rest := x.rest
		for u := x.unknown; u != 0; u &= u - 1 {
			h := bits.TrailingZeros64(u)
			rest ^= s.Value(p, p.Role(x.writers, h+1), t.m.Nodes[path[h]])
			*left--
		}
		if rest != 0 {
			return false
		}
	}
	return true
}
