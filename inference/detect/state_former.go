package detect

import "github.com/hopscope/hopscope/inference/state"

// codeFormer reads a hop of states before the floor and the tail were compared. Its levels, limits and seasons are left
// out, and a finding about them ends: a level may be that of a fault. The usual silence and repetition stay.
func (h *Hop) codeFormer(c *state.Coder, n uint8) {
	c.Check("statistics", n <= 2)
	if !c.OK() {
		return
	}
	var old Hop // read and not used
	for k := range old.seasons {
		old.seasons[k].code(c, k)
	}
	c.Float32("spread", -most, most, &old.spread, &h.logCount)
	c.Float32("shares", 0, 1, &h.inverse, &h.emptyShare, &h.repeatShare)
	c.Float32("longest", 0, 12, &h.longest)
	state.FixedTo(c, "doubt", doubtMost, &old.doubt)
	state.FixedTo(c, "dumb", uninformativeMost, &old.uninformative)
	c.Float64("floor", 0, mostValue, &h.floor)
	state.Fixed(c, "windows", &old.windows)
	state.Fixed(c, "runs", &h.emptyRun, &h.repeatRun)
	c.Flag("gone", &h.silenceUsual)
	c.Float64("last values", 0, mostValue, &h.last[0], &h.last[1])
	var statistic uint8
	state.FixedTo(c, "cause", Stuck, &h.open.Cause)
	state.FixedTo(c, "statistic", 1, &statistic)
	c.Check("statistic", statistic == 0 || statistic < n)
	c.Check("cause", h.open.Cause == none || h.open.Cause == Silent || n > 0)
	c.Float64("factor", 0, mostValue, &old.open.Factor)
	c.Float32("base", -most, most, &old.open.base)
	c.Float64("floor", 0, mostValue, &old.open.floor)
	state.FixedTo(c, "contrast", contrasts-1, &old.open.contrast)
	state.Fixed(c, "age", &h.age, &old.calm, &old.back)
	var floats [2*2 + means + 1 + 2*seasons]float32
	c.Float32("passed", 0, most, &floats[0], &floats[1])
	c.Flag("noise", &old.bursts, &old.bursts)
	held := uint8(0)
	state.FixedTo(c, "held windows", heldMost, &held)
	for range held {
		count := uint8(0)
		state.FixedTo(c, "held window", loneCount-1, &count)
		c.Float64("held window", 0, mostValue, &old.last[0], &old.last[0], &old.last[0])
	}
	moved := h.open.Cause == Rise || h.open.Cause == Fall
	for range n {
		var s series
		c.Float32("level", -most, most, &s.now)
		for k := range s.mean {
			c.Float32("mean", -most, most, &s.mean[k])
		}
		for j := range s.scale {
			for sign := range s.scale[j] {
				sc := &s.scale[j][sign]
				c.Float32("scale", 0, most, &sc.square, &sc.tail)
				state.FixedTo(c, "scale", enough, &sc.seen)
			}
		}
		c.Float32("raised limit", 0, 40, &floats[0], &floats[1], &floats[2], &floats[3])
		if moved {
			for k := range s.onset {
				c.Float32("onset", -most, most, &s.onset[k])
			}
			c.Float32("onset", -most, most, &floats[0])
		}
		new(seasonal).code(c)
	}
	if h.open.Cause != Silent {
		h.open, h.age = Finding{}, 0
	}
	if n == 0 {
		return
	}
	h.stats = newStats(&Config{Single: n == 1})
	h.windows = min(old.windows, 1)
}
