package detect

// While a finding is active, nothing is learnt of levels: they are those of before it. When the values of the statistic
// that it was found in have been back at the level of that time, the finding passes. That takes about as long as the
// contrast that found it would need to see one.

// needed is how many windows have to be back.
func (h *Hop) needed() uint32 { return max(10, uint32(constants[bank[h.open.contrast].fast])) }

// backLoss is how many windows that are back one that is not takes away: one that strays by chance does not begin the
// count anew.
const backLoss = 4

// isAway reports whether a value is far from the level before the open finding f. It is farther than half of a limit, a
// square, or than half of the greatest deviation.
func (s *series) isAway(y, limit float32, f *Finding) bool {
	d := y - s.onset[usual]
	worst := float32(0)
	if f.Factor > 0 {
		worst = logarithm(f.Factor)
	}
	return 4*d*d > min(limit, worst*worst)
}
