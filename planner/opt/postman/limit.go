package postman

import (
	"cmp"
	"math"
	"slices"
)

// Limit cuts trails into as few as it can, none with more than most edges. Balanced trails need ceil(length / most)
// parts each. A component with m edges would need only ceil(m / most) in all, if every part reached the limit. So Limit
// makes few parts, and random moves shift the excess of some to others with room, in passes of growing length. Parts
// that stay too long are cut once more. The best pass so far counts.
func (n *Net) Limit(trails [][]int32, most int, stop func() bool) [][]int32 {
	if len(trails) > 1 {
		b := newBalancer(n, trails)
		b.settleSoon(stop)
		b.shake(stop)
	}
	l := &limiter{Net: n, most: most, stop: stop}
	l.best = Cut(trails, l.needed)
	edges, target := n.Fewest()
	fewest := 0
	for c, m := range edges {
		target[c] = max(target[c], (m+most-1)/most)
		fewest += target[c]
	}
	if len(l.best) == fewest {
		return l.best
	}
	l.parts = n.cutInto(trails, target, most)
	b := newBalancer(n, l.parts)
	b.settle(stop)
	for range 4 {
		if b.shake(stop); l.over() == 0 {
			break
		}
	}
	for sweeps, before := 15, math.MaxInt; !l.noted() && sweeps <= 240; sweeps *= 2 {
		newAnnealer(newBalancer(n, l.parts)).shorten(most, sweeps, stop)
		over := l.over()
		if sweeps >= 60 && over >= before {
			break // it is not for want of steps
		}
		before = over
	}
	for !l.noted() && l.split() {
		newAnnealer(newBalancer(n, l.parts)).shorten(most, 120, stop)
	}
	return l.best
}

// limiter looks for the fewest parts of at most that many edges.
type limiter struct {
	*Net
	most  int
	stop  func() bool
	parts [][]int32 // some of which may still be too long
	best  [][]int32
}

func (l *limiter) needed(_, length int) int { return (length + l.most - 1) / l.most }

// over is how many cuts would make all parts short enough.
func (l *limiter) over() (cuts int) {
	for _, t := range l.parts {
		cuts += l.needed(0, len(t)) - 1
	}
	return cuts
}

// noted keeps the parts, cut where they are too long, if these are fewer than ever, and reports whether to end.
func (l *limiter) noted() bool {
	over := l.over()
	if len(l.parts)+over < len(l.best) {
		l.best = Cut(clone(l.parts), l.needed)
	}
	return over == 0 || l.stop()
}

// split cuts half of the parts that are too long, so that there is more room. It does so only if that can still lead to
// fewer parts than the best so far.
func (l *limiter) split() bool {
	cuts := (l.over() + 1) / 2
	if len(l.parts)+cuts >= len(l.best) {
		return false
	}
	l.parts = Cut(l.parts, func(_, length int) int {
		if length <= l.most || cuts == 0 {
			return 1
		}
		cuts--
		return 2
	})
	return true
}

// cutInto cuts trails into a number of parts by component, if so many are needed, each into its share. It leaves the
// trails alone.
func (n *Net) cutInto(trails [][]int32, target []int, most int) (out [][]int32) {
	parts := make([]int, len(trails))
	edges, free := make([]int, n.Comps), slices.Clone(target) // of trails that are long enough to be cut
	for _, t := range trails {
		edges[n.Comp[n.From[t[0]]]] += len(t)
	}
	for k, t := range trails {
		if c := n.Comp[n.From[t[0]]]; len(t) <= most || len(t)*free[c] < edges[c] {
			parts[k] = 1
			edges[c] -= len(t)
			free[c]--
		}
	}
	var rest []int
	left := slices.Clone(free)
	for k, t := range trails {
		if c := n.Comp[n.From[t[0]]]; parts[k] == 0 {
			parts[k] = max(1, len(t)*free[c]/edges[c])
			left[c] -= parts[k]
			rest = append(rest, k)
		}
	}
	slices.SortStableFunc(rest, func(a, b int) int { return cmp.Compare(len(trails[b])*parts[a], len(trails[a])*parts[b]) })
	for _, k := range rest {
		if c := n.Comp[n.From[trails[k][0]]]; left[c] > 0 && len(trails[k]) > most*parts[k] {
			parts[k]++
			left[c]--
		}
	}
	return clone(Cut(trails, func(k, _ int) int { return parts[k] }))
}

// clone copies trails one behind the other.
func clone(trails [][]int32) [][]int32 {
	total := 0
	for _, t := range trails {
		total += len(t)
	}
	all := make([]int32, 0, total)
	out := make([][]int32, len(trails))
	for k, t := range trails {
		from := len(all)
		all = append(all, t...)
		out[k] = all[from:len(all):len(all)]
	}
	return out
}

// Cut cuts every trail into even parts, whose number parts returns.
func Cut(trails [][]int32, parts func(k, length int) int) [][]int32 {
	out := make([][]int32, 0, len(trails))
	for k, t := range trails {
		n := parts(k, len(t))
		for i := range n {
			from, to := i*len(t)/n, (i+1)*len(t)/n
			out = append(out, t[from:to:to])
		}
	}
	return out
}
