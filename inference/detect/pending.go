package detect

import "slices"

// A window whose finding has to come again is pending until it is decided whether it does. Meanwhile it moves only the
// fast means, which describe the present, and these no more than a window at half of its limit does. So the next window
// is compared with the usual values from before, and one high value does not make others exceed. When a finding begins,
// its pending windows belong to it and are not learnt. If the deviation did not come again, they are learnt like any
// other.

// heldMost is the greatest number of pending windows; of more the oldest one is learnt.
const heldMost = 3

// Pending reports whether there are windows of which it is not known whether they are a finding.
func (h *Hop) Pending() bool { return len(h.pendingWindows) > 0 }

// try takes a window that may have to come again, and holds it back if so.
func (h *Hop) try(cfg *Config, w *Window) verdict {
	stats := copyStats(h.stats)
	seasons, spread, logCount, inverse := h.seasons, h.spread, h.logCount, h.inverse
	v := h.learnWindow(cfg, w)
	if !v.doubt || v.ratio > 1 {
		return v
	}
	for i := range h.stats {
		if h.stats[i].begun && v.most[i] > 0 {
			stats[i].glance(h, h.stats[i].mean[previous], v.most[i])
		}
	}
	for i := range h.stats {
		h.stats[i] = stats[i].series
		if s := h.stats[i].seasonal; s != nil {
			*s = stats[i].seasonal
		}
	}
	h.seasons, h.spread, h.logCount, h.inverse = seasons, spread, logCount, inverse
	h.windows--
	if len(h.pendingWindows) == heldMost {
		h.release(cfg, 1)
	}
	h.pendingWindows = append(h.pendingWindows, *w)
	return v
}

// copyStats copies what is remembered of statistics, seasons included.
func copyStats(stats []series) (all [statistics]struct {
	series
	seasonal seasonal
}) {
	for i := range stats {
		all[i].series = stats[i]
		if s := stats[i].seasonal; s != nil {
			all[i].seasonal = *s
		}
	}
	return all
}

// release learns the first windows that are pending.
func (h *Hop) release(cfg *Config, n int) {
	stats := copyStats(h.stats)
	for i := range h.pendingWindows[:n] {
		h.windows++
		h.learnWindow(cfg, &h.pendingWindows[i])
	}
	for i := range h.stats {
		copy(h.stats[i].mean[:usual], stats[i].mean[:usual])
	}
	if h.pendingWindows = slices.Delete(h.pendingWindows, 0, n); len(h.pendingWindows) == 0 {
		h.pendingWindows = nil
	}
}

// glance moves the fast means by a value. The value is clipped to half the limit of a window, a square, on each side of
// the usual.
func (s *series) glance(h *Hop, y, limit float32) {
	most := sqrt(limit) / 2
	y = s.mean[usual] + max(-most, min(most, y-s.mean[usual]))
	for k := range usual {
		s.mean[k] += max(inverse[k], 1/float32(h.windows)) * (y - s.mean[k])
	}
}
