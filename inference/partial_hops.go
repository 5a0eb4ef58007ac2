package inference

import "iter"

// AllHops gives what p knows of the places in the network, in the order of [HopKey.Compare]. P must not change meanwhile.
func (p *Partial) AllHops() iter.Seq[*HopPart] {
	return func(yield func(*HopPart) bool) {
		for _, i := range sorted(&p.order, p.hops.items, (*HopPart).order) {
			if !yield(&p.hops.items[i]) {
				return
			}
		}
	}
}

// Stats gives h as in a [Window].
func (h *HopPart) Stats() HopStats { return h.stats() }
