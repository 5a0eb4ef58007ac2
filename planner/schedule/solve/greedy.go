package solve

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// begin returns a state with only the probes that must be sent, at their longest intervals. The result ok is false if
// even that is too much.
func (c *core) begin() (s *state, ok bool) {
	s, ok = c.newState(), true
	for p := range c.cost {
		if c.must[p] {
			ok = ok && c.fits(s, int32(p), c.slow[p])
			c.set(s, int32(p), c.slow[p], 0)
		}
	}
	return s, ok
}

// greedy sends probes more often until all rows are seen or nothing more fits. Each step takes the probe and the
// interval with the most worth of rows per byte. The worth of a row is its price, or its weight.
func (c *core) greedy(s *state, worth []float64) {
	q := opt.Heap[item]{Less: func(a, b *item) bool {
		return cmp.Or(cmp.Compare(b.ratio(), a.ratio()), cmp.Compare(a.probe, b.probe)) < 0
	}}
	offer := func(p int32) {
		if it := c.offer(s, p, worth); it.gain > 0 {
			q.Items = append(q.Items, it)
		}
	}
	for p := range c.cost {
		offer(int32(p))
	}
	q.Init()
	for len(q.Items) > 0 {
		it := q.Items[0]
		now := c.offer(s, it.probe, worth) // rows may have been seen since, and room be taken
		switch {
		case now.gain <= 0:
			q.Pop()
			continue
		case now.ratio() < it.ratio():
			q.Items[0] = now
			q.FixTop()
			continue
		}
		c.set(s, it.probe, now.interval, s.phase[it.probe]%now.interval)
		q.Items[0] = c.offer(s, it.probe, worth)
		if q.Items[0].gain <= 0 {
			q.Pop()
		} else {
			q.FixTop()
		}
	}
}

// offer finds the best way to send a probe more often.
func (c *core) offer(s *state, p int32, worth []float64) (best item) {
	best.probe = p
	now := s.interval[p]
	for _, i := range c.grid {
		if now > 0 && (i >= now || now%i != 0) || i > c.slow[p] || !c.fits(s, p, i) {
			continue
		}
		it := item{probe: p, interval: i, cost: float64((c.starts(i) - c.starts(now)) * c.cost[p])}
		for _, r := range c.on[p] {
			if !s.seen[r] && c.rows[r].period >= i {
				it.gain += worth[r]
			}
		}
		if it.gain > 0 && (best.gain == 0 || it.ratio() > best.ratio()) {
			best = it
		}
	}
	return best
}

type item struct {
	probe, interval int32
	gain, cost      float64
}

func (it *item) ratio() float64 { return it.gain / it.cost }

// lower sends probes more seldom, or not at all, where everything that is seen still is: the dearest first. It leaves the
// changes in log.
func (c *core) lower(s *state, probes []int32, log *[]change) {
	probes = slices.Clone(probes)
	slices.SortStableFunc(probes, func(a, b int32) int {
		x, y := c.cost[a]*c.starts(s.interval[a]), c.cost[b]*c.starts(s.interval[b])
		return cmp.Or(cmp.Compare(y, x), cmp.Compare(a, b))
	})
	for _, p := range probes {
		c.lowerOne(s, p, log)
	}
}

// lowerOne sets p to the cheapest interval, with some phase, in which nothing is lost.
func (c *core) lowerOne(s *state, p int32, log *[]change) {
	now, phase, left := s.interval[p], s.phase[p], s.left
	if now == 0 {
		return
	}
	try := func(interval, phase int32) bool {
		c.set(s, p, interval, phase)
		return s.left <= left+tolerance(left)
	}
	found := !c.must[p] && try(0, 0)
	for k := len(c.grid) - 1; k >= 0 && !found && c.grid[k] > now; k-- {
		if i := c.grid[k]; i <= c.slow[p] {
			for f := int32(0); f < min(i, mostPhases) && !found; f++ {
				found = try(i, (phase+f)%i)
			}
		}
	}
	if !found {
		c.set(s, p, now, phase)
	} else if log != nil {
		*log = append(*log, change{p, now, phase})
	}
}

// mostPhases bounds how many phases are tried for an interval.
const mostPhases = 16

// change remembers what a probe had before.
type change struct{ probe, interval, phase int32 }
