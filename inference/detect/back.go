package detect

// A finding of a short, strong fault would stay open for as long as the slow means remember it, on a hop of little noise for
// an hour and more. So the means before a finding are kept. When the values have been back at the level of that time for as
// long as the contrast that found the fault would need to see one, and on average as well, the means are what they were
// before, and the finding ends.

// level is the logarithm of what was usual before the finding that is open.
func (s *series) level(h *Hop) float32 { return s.onset[max(bank[h.open.contrast].slow, usual)] }

// needed is how many windows have to be back.
func (h *Hop) needed() uint32 { return max(12, uint32(constants[bank[h.open.contrast].fast])) }

// compareBefore holds a value against the level before the finding that is open. Limits are the squares of
// those of a window itself, and of those of the contrast that began the finding.
func (s *series) compareBefore(h *Hop, y float32, limits *[2][2]float32, v *verdict) {
	if h.open.Cause > Fall {
		v.away = true
		return
	}
	side := func(d float32) int {
		if d <= 0 {
			return downward
		}
		return upward
	}
	d := y - s.level(h)
	if h.back == 0 {
		s.backSum = 0
	}
	s.backSum += d
	mean := s.backSum / float32(h.back+1)
	open := limits[openLimit]
	if h.open.contrast == windowUsual {
		open = limits[usualLimit]
	}
	v.away = v.away || 4*d*d > limits[usualLimit][side(d)] || h.back+1 >= h.needed() && 9*mean*mean > open[side(mean)]
}

// returned reports whether the hop is back at the level before the finding that is open, and makes that the usual one again.
func (h *Hop) returned(cfg *Config) bool {
	if h.back < h.needed() || h.age >= uint32(cfg.Adopt) {
		return false
	}
	for i := range h.stats {
		s := &h.stats[i]
		level := s.level(h) + s.backSum/float32(h.back)
		copy(s.mean[usual:], s.onset[usual:])
		for k := range usual {
			s.mean[k] = level
		}
	}
	return true
}
