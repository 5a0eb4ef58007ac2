package cover

// limit cuts trails so that none has more than most edges, into as few as it can: of a component with m edges,
// ceil(m / most) at least. Trails that are too long are cut into even parts, so that all together are as many as that
// (or as are needed without a limit, where these are more), and balanced once more; what is still too long then is cut
// at the limit.
func (n *net) limit(trails [][]int32, most int, stop func() bool) [][]int32 {
	n.balance(trails, stop)
	edges, fewest := n.fewest()
	have := make([]int, n.comps)
	for _, t := range trails {
		have[n.comp[n.node[t[0]]]]++
	}
	parts := make([]int, len(trails))
	for k, t := range trails {
		parts[k] = 1
		if c := n.comp[n.node[t[0]]]; len(t) > most && have[c] < max(fewest[c], (edges[c]+most-1)/most) {
			// Round down first: what is left over of the component's number goes to the longest.
			more := max(len(t)/most, 1) - 1
			more = min(more, max(fewest[c], (edges[c]+most-1)/most)-have[c])
			parts[k] += more
			have[c] += more
		}
	}
	for k, t := range trails {
		c := n.comp[n.node[t[0]]]
		if len(t) > most*parts[k] && have[c] < max(fewest[c], (edges[c]+most-1)/most) {
			parts[k]++
			have[c]++
		}
	}
	trails = cut(trails, func(k, length int) int { return parts[k] })
	n.balance(trails, stop)
	return cut(trails, func(_, length int) int { return (length + most - 1) / most })
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
