package detect

import "github.com/hopscope/hopscope/inference/state"

// An operator may state that the values of a finding are normal now. Its level is the usual one at once, and so is
// everything between the former level and the farthest value that the finding saw. So what comes and goes is accepted
// together with what stays.

// accepted is the range of each statistic that is accepted, as logarithms; both ends are 0 where none is.
type accepted [statistics][2]float32

// acceptedSlack is how far beyond an accepted range values may stray, as a logarithm.
const acceptedSlack = .2

// Accept makes what the open finding found the usual state, and ends it. It reports whether a finding was open.
func (h *Hop) Accept() bool {
	switch h.open.Cause {
	case none:
		return false
	case Silent:
		h.silenceUsual = true
	case Stuck:
		h.repeatShare = 1
	default:
		h.acceptLevels()
	}
	h.recurrences = [statistics]recurrence{}
	h.end()
	return true
}

// acceptLevels accepts the levels of all statistics. While a finding rests they are the former ones already. Then only
// the change of the statistic in which it was found is known, and the others are assumed to have changed as much.
func (h *Hop) acceptLevels() {
	if h.accepted == nil {
		h.accepted = new(accepted)
	}
	far := float32(0)
	if h.open.Factor > 0 {
		far = logarithm(h.open.Factor)
	}
	h.accepted.extend(h.open.Statistic, h.open.base)
	h.accepted.extend(h.open.Statistic, h.open.base+far)
	for i := range h.stats {
		s := &h.stats[i]
		if !h.resting {
			const fast = 1 // the mean of three windows
			h.accepted.extend(statistic(i), s.onset[usual])
			h.accepted.extend(statistic(i), s.mean[fast])
			s.mean[usual] = s.mean[fast]
		} else if statistic(i) != Tail {
			h.accepted.extend(statistic(i), s.mean[usual])
			h.accepted.extend(statistic(i), s.mean[usual]+far)
		}
	}
	if !h.resting {
		h.adopt()
	}
}

// extend makes the range of a statistic contain a level.
func (a *accepted) extend(s statistic, level float32) {
	r := &a[s]
	if *r == [2]float32{} {
		*r = [2]float32{level, level}
	}
	r[0], r[1] = min(r[0], level), max(r[1], level)
}

// change is how far one level is from another, less what of the way between them is accepted.
func (a *accepted) change(s statistic, to, from float32) float32 {
	if a == nil || a[s] == [2]float32{} {
		return to - from
	}
	low, high := a[s][0]-acceptedSlack, a[s][1]+acceptedSlack
	switch {
	case to > high:
		return max(to-max(from, high), 0)
	case to < low:
		return min(to-min(from, low), 0)
	}
	return 0
}

// lift moves the levels of a statistic to those of values that are greater.
func (a *accepted) lift(s statistic, by, floor float64) {
	if a == nil {
		return
	}
	if r := &a[s]; *r != [2]float32{} {
		r[0], r[1] = lifted(r[0], by, floor), lifted(r[1], by, floor)
	}
}

func (a *accepted) code(c *state.Coder) {
	for i := range a {
		c.Float32("accepted range", -most, most, &a[i][0], &a[i][1])
		c.Check("accepted range", a[i][0] <= a[i][1])
	}
}
