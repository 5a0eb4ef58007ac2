package web

import "github.com/hopscope/hopscope/inference"

// dropCell counts the packets that a node dropped in the last window in which it dropped any.
type dropCell struct {
	window, count uint64
}

// addDrops keeps what nodes dropped, of as many nodes as there may be hops.
func (h *history) addDrops(n uint64, w *inference.Window) {
	swept := false
	for i := range w.Drops {
		d := &w.Drops[i]
		cell, known := h.drops[d.Node]
		if !known && len(h.drops) >= h.hops.max {
			if !swept {
				h.forgetDrops()
				swept = true
			}
			if len(h.drops) >= h.hops.max {
				continue
			}
		}
		switch {
		case cell.window == n:
			cell.count += d.Count
		case cell.window < n:
			cell = dropCell{n, d.Count}
		}
		h.drops[d.Node] = cell
	}
}

// forgetDrops removes those of windows that are not kept any more.
func (h *history) forgetDrops() {
	for node, old := range h.drops {
		if old.window < h.oldest() {
			delete(h.drops, node)
		}
	}
}
