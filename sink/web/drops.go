package web

import "github.com/hopscope/hopscope/inference"

// dropSeries counts the packets that a node dropped in the last window in which it dropped any.
type dropSeries struct {
	window, count uint64
}

func (s *dropSeries) lastSeen() uint64 { return s.window }

// addDrops keeps what nodes dropped, of as many nodes as there may be hops.
func (h *history) addDrops(n uint64, w *inference.Window) {
	for i := range w.Drops {
		d := &w.Drops[i]
		s, ok := h.drops.open(d.Node, n, 1, func() *dropSeries { return &dropSeries{} })
		switch {
		case !ok:
		case s.window == n:
			s.count += d.Count
		case s.window < n:
			s.window, s.count = n, d.Count
		}
	}
}
