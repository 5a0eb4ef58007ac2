package solve

import "slices"

// limitSteps is how finely the number of parts is tried.
const limitSteps = 64

// limit cuts trails so that none has more than most edges, into as few as it can. Trails that are balanced need
// ceil(length / most) parts each. A component with m edges could do with ceil(m / most) in all, if no part stayed below
// the limit: so fewer parts are tried too, made about equally long once more, and those that are still too long are cut.
// The fewest parts for which none of these is left are found by bisection; the best of all tries counts.
func (n *net) limit(trails [][]int32, most int, stop func() bool) [][]int32 {
	n.balance(trails, stop)
	edges, low := n.fewest()
	high := make([]int, n.comps)
	for _, t := range trails {
		high[n.comp[n.node[t[0]]]] += (len(t) + most - 1) / most
	}
	same := true
	for c, m := range edges {
		low[c] = max(low[c], (m+most-1)/most)
		same = same && low[c] >= high[c]
	}
	best := cut(trails, func(_, length int) int { return (length + most - 1) / most })
	if same {
		return best
	}
	target := make([]int, n.comps)
	for a, b, step := 0, limitSteps, 0; a < b; step = (a + b) / 2 {
		for c := range target {
			target[c] = low[c] + max(0, high[c]-low[c])*step/limitSteps
		}
		parts, fits := n.cutInto(trails, target, most, stop)
		if len(parts) < len(best) {
			best = parts
		}
		if stop() {
			break
		}
		if fits {
			b = step
		} else {
			a = step + 1
		}
	}
	return best
}

// cutInto cuts trails into so many parts by component, if so many are needed, balances those, and cuts again what is too
// long. It leaves the trails alone, and reports whether nothing was too long.
func (n *net) cutInto(trails [][]int32, target []int, most int, stop func() bool) (out [][]int32, fits bool) {
	have := make([]int, n.comps)
	for _, t := range trails {
		have[n.comp[n.node[t[0]]]]++
	}
	parts := make([]int, len(trails))
	for k, t := range trails { // round down first: what is left over of the component's number goes to the longest
		parts[k] = 1
		if c := n.comp[n.node[t[0]]]; len(t) > most && have[c] < target[c] {
			more := min(len(t)/most-1, target[c]-have[c])
			parts[k] += more
			have[c] += more
		}
	}
	for k, t := range trails {
		if c := n.comp[n.node[t[0]]]; len(t) > most*parts[k] && have[c] < target[c] {
			parts[k]++
			have[c]++
		}
	}
	backing := make([]int32, 0, n.edges())
	for _, t := range cut(trails, func(k, _ int) int { return parts[k] }) {
		from := len(backing)
		backing = append(backing, t...)
		out = append(out, backing[from:len(backing):len(backing)])
	}
	n.balance(out, stop)
	fits = !slices.ContainsFunc(out, func(t []int32) bool { return len(t) > most })
	return cut(out, func(_, length int) int { return (length + most - 1) / most }), fits
}

// cut cuts every trail into so many even parts.
func cut(trails [][]int32, parts func(k, length int) int) [][]int32 {
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
