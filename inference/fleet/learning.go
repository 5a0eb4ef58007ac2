package fleet

import "github.com/hopscope/hopscope/inference"

// maxLearningHops is how many hops that are learning a [Document] names.
const maxLearningHops = 1 << 14

// learning counts and names the hops that are learning.
func (d *Document) learning(hops []inference.HopStats) {
	named := map[uint32][]uint32{}
	n := 0
	for i := range hops {
		h := &hops[i]
		if !h.Learning {
			continue
		}
		d.Totals.Learning++
		if !h.Other && n < maxLearningHops {
			named[h.Node] = append(named[h.Node], h.EgressIf)
			n++
		}
	}
	if n > 0 && d.Totals.Learning < len(hops) {
		d.LearningHops = named
	}
}

// boundLearning forgets the names of more hops than a document has, in documents of other writers.
func (d *Document) boundLearning() {
	n := 0
	for _, list := range d.LearningHops {
		n += 1 + len(list)
	}
	if n > 2*maxLearningHops {
		d.LearningHops = nil
	}
}

// Learns reports whether the document marks a hop of its window as learning.
func (d *Document) Learns(k inference.HopKey) bool {
	switch {
	case d == nil || d.Totals.Learning == 0:
		return false
	case d.Totals.Learning >= d.Totals.Hops:
		return true
	case k.Other:
		return false
	}
	for _, egress := range d.LearningHops[k.Node] {
		if egress == k.EgressIf {
			return true
		}
	}
	return false
}
