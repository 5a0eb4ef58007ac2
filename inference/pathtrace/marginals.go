package pathtrace

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// exactSteps bounds the search of Candidates.
const exactSteps = 1 << 20

// marginals weighs all paths that explain all digests.
func (t *Tracer) marginals(tr *trace) (hops [][]candidate, exact bool) {
	weights := make([]map[uint16]float64, tr.k)
	for h := range weights {
		weights[h] = map[uint16]float64{}
	}
	sum := 0.0
	add := func(path []uint16) bool {
		w := math.Exp2(t.m.LogWeight(path))
		sum += w
		for h, u := range path {
			weights[h][u] += w
		}
		return true
	}
	if tr.complete {
		exact = true
		for i := 0; i < len(tr.witnesses); i += tr.k {
			add(tr.witnesses[i : i+tr.k])
		}
	} else {
		_, exact = t.search(tr, exactSteps, add)
	}
	hops = make([][]candidate, tr.k)
	for h := range hops {
		if !exact {
			for i, w := range tr.row(h) {
				for ; w != 0; w &= w - 1 {
					u := i<<6 + bits.TrailingZeros64(w)
					hops[h] = append(hops[h], candidate{t.m.Nodes[u], 1 / float64(tr.size[h])})
				}
			}
			continue
		}
		for u, w := range weights[h] {
			hops[h] = append(hops[h], candidate{t.m.Nodes[u], w / sum})
		}
		slices.SortFunc(hops[h], func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.P, a.P), cmp.Compare(a.Node, b.Node))
		})
	}
	return hops, exact
}
