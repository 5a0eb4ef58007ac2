package detect

import (
	"math"

	"github.com/hopscope/hopscope/inference/state"
)

// AppendState appends all that is remembered of the hop, a kilobyte for two statistics. The bytes are for ReadState of
// the same version of this package; the caller keeps the version.
func (h *Hop) AppendState(b []byte) []byte { return state.Append(b, h.Code) }

// ReadState replaces what is remembered with what AppendState wrote. Other bytes are refused with a [*state.Error], and
// leave the hop as it was.
func (h *Hop) ReadState(b []byte) error {
	var fresh Hop
	if err := state.Read("state of a hop", b, fresh.Code); err != nil {
		return err
	}
	*h = fresh
	return nil
}

// most is more than any logarithm or any number of findings, and mostValue more than any value.
const (
	most      = 1e6
	mostValue = 1e300
)

// Code codes the encoding of AppendState as a part of a larger state. A hop that is read into is a new one. The first
// byte is the number of statistics, with marks. States from before the floor and the tail were compared have no mark.
// Their limits and levels are not used: the hop is learnt anew, with its silence and its repetitions as they were.
func (h *Hop) Code(c *state.Coder) {
	n := uint8(len(h.stats)) | present
	if h.accepted != nil {
		n |= withAccepted
	}
	state.Fixed(c, "statistics", &n)
	if n&present == 0 {
		h.codeFormer(c, n)
		return
	}
	if n&withAccepted != 0 && c.Reading() {
		h.accepted = new(accepted)
	}
	n &^= present | withAccepted
	c.Check("statistics", n == 0 || n == 1 || n == statistics)
	if c.Reading() && c.OK() && n > 0 {
		h.stats = newStats(&Config{Single: n == 1})
	}
	for k := range h.seasons {
		h.seasons[k].code(c, k)
	}
	c.Float32("spread", -most, most, &h.spread, &h.logCount)
	c.Float32("shares", 0, 1, &h.inverse, &h.emptyShare, &h.repeatShare)
	c.Float32("longest", 0, 12, &h.longest)
	state.FixedTo(c, "doubt", doubtMost, &h.doubt)
	state.FixedTo(c, "dumb", uninformativeMost, &h.uninformative)
	c.Float64("floor", 0, mostValue, &h.floor)
	state.Fixed(c, "windows", &h.windows)
	c.Check("windows", h.windows > 0 || n == 0)
	state.Fixed(c, "runs", &h.emptyRun, &h.repeatRun)
	c.Flag("gone", &h.silenceUsual)
	for i := range h.last {
		c.Float64("last values", 0, mostValue, &h.last[i])
	}
	o := &h.open
	state.FixedTo(c, "cause", Stuck, &o.Cause)
	state.FixedTo(c, "statistic", Tail, &o.Statistic)
	c.Check("statistic", o.Statistic == 0 || uint8(o.Statistic) < n)
	c.Check("cause", o.Cause == none || o.Cause == Silent || n > 0)
	c.Float64("factor", 0, mostValue, &o.Factor)
	c.Float32("base", -most, most, &o.base, &o.beside)
	c.Float64("floor", 0, mostValue, &o.floor)
	state.FixedTo(c, "contrast", contrasts-1, &o.contrast)
	c.Flag("state", &o.Adopted, &h.resting, &h.hasFormer, &h.bursts)
	c.Check("resting", !h.resting || o.Cause == Rise || o.Cause == Fall)
	state.Fixed(c, "age", &h.age, &h.calm, &h.back)
	for i := range h.recurrences {
		r := &h.recurrences[i]
		state.FixedTo(c, "cause", Stuck, &r.lastly)
		state.Fixed(c, "times", &r.times)
		state.FixedTo(c, "gap", recursWithin+1, &r.gap)
		state.FixedTo(c, "gap", recursWithin+1, &r.since)
	}
	held := uint8(len(h.pendingWindows))
	state.FixedTo(c, "held windows", heldMost, &held)
	c.Check("held windows", held == 0 || len(h.stats) == statistics && !h.active() && h.doubt > 0)
	state.Repeat(c, int(held), &h.pendingWindows, (*Window).codeHeld)
	for i := range h.stats {
		h.stats[i].code(c, h.active())
	}
	if h.accepted != nil {
		h.accepted.code(c)
	}
}

// Marks of the first byte.
const (
	present      = 128 // the state is of the present form
	withAccepted = 64  // accepted levels are at its end
)

func (s *season) code(c *state.Coder, k int) {
	codeSigned(c, "season", seasonBins[k], &s.bin)
	state.Fixed(c, "season", &s.count)
	c.Check("season", s.bin > 0 || s.count == 0)
}

// codeHeld codes a window that is not learnt yet.
func (w *Window) codeHeld(c *state.Coder) {
	count := uint8(w.Count)
	state.FixedTo(c, "held window", loneCount-1, &count)
	c.Check("held window", count > 0)
	w.Count = uint64(count)
	c.Float64("held window", 0, mostValue, &w.P50, &w.P90, &w.P99, &w.Low)
	c.Flag("held window", &w.HasLow)
}

func (s *series) code(c *state.Coder, active bool) {
	c.Flag("begun", &s.begun)
	c.Float32("level", -most, most, &s.now, &s.former)
	for k := range s.mean {
		c.Float32("mean", -most, most, &s.mean[k])
	}
	for j := range s.scale {
		for sign := range s.scale[j] {
			sc := &s.scale[j][sign]
			c.Float32("scale", 0, most, &sc.square, &sc.tail, &sc.excess)
			state.FixedTo(c, "scale", enough, &sc.seen)
			c.Float32("scale", 0, beyondMost, &sc.beyond)
		}
	}
	if active { // otherwise they are not used
		for k := range s.onset {
			c.Float32("onset", -most, most, &s.onset[k])
		}
	}
	if s.seasonal != nil {
		s.seasonal.code(c)
	}
}

func (s *seasonal) code(c *state.Coder) {
	for k := range seasons {
		c.Float32("season", -most, most, &s.recurring[k], &s.sum[k])
		last, before := s.profile.visits(k)
		for _, bins := range [][]int8{last, before} {
			for i := range bins {
				codeSigned(c, "season", -1, &bins[i])
			}
		}
	}
}

// codeSigned codes a byte with a sign; from 0 to most, unless that is negative.
func codeSigned(c *state.Coder, field string, most int64, p *int8) {
	u := uint8(*p)
	limit := uint8(math.MaxUint8)
	if most >= 0 {
		limit = uint8(most)
	}
	state.FixedTo(c, field, limit, &u)
	*p = int8(u)
}
