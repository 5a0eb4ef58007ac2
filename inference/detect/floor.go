package detect

import "math"

// Floor returns what is added to the values of a hop besides the floor of its configuration.
func (h *Hop) Floor() float64 { return h.floor }

// SetFloor sets the floor that is added to the values of a hop from now on. It moves the state so that nothing seems to
// happen then. It does nothing while a finding is open, and reports whether it did.
func (h *Hop) SetFloor(cfg *Config, to float64) bool {
	if h.open.Cause != none {
		return false
	}
	by := to - h.floor
	for i := range min(len(h.stats), int(Tail)) { // which is a ratio, and hardly moves
		h.stats[i].lift(by, cfg.Floor+to)
		h.accepted.lift(statistic(i), by, cfg.Floor+to)
	}
	if len(h.stats) > 0 {
		h.spread *= part(h.stats[P50].mean[usual], by, cfg.Floor+to)
	}
	h.floor = to
	return true
}

// part is how much smaller differences of logarithms are beside a level that moved.
func part(level float32, by, floor float64) float32 {
	after := math.Exp(float64(level))
	return float32(max(after-by, floor-by) / max(after, floor))
}

// lifted is the logarithm of a value that is greater.
func lifted(logarithm float32, by, floor float64) float32 {
	return float32(math.Log(max(math.Exp(float64(logarithm))+by, floor)))
}

// lift moves all logarithms to those of values that are greater.
func (s *series) lift(by, floor float64) {
	for k := range s.mean {
		s.mean[k] = lifted(s.mean[k], by, floor)
	}
	s.now, s.former = lifted(s.now, by, floor), lifted(s.former, by, floor)
	f := part(s.mean[usual], by, floor)
	for j := range s.scale {
		for sign := range s.scale[j] {
			s.scale[j][sign].square *= f * f
			s.scale[j][sign].tail *= f
			s.scale[j][sign].excess *= f
		}
	}
	if s.seasonal == nil {
		return
	}
	for k := range seasons {
		s.seasonal.recurring[k] *= f
		s.seasonal.sum[k] *= f
		last, before := s.seasonal.profile.visits(k)
		for _, bins := range [][]int8{last, before} {
			for i := range bins {
				bins[i] = int8(max(-127, min(127, math.RoundToEven(float64(float32(bins[i])*f)))))
			}
		}
	}
}
