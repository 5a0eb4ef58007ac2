package solve

import (
	"math"
	"math/rand/v2"
)

// improve removes starts of a random probe, repairs the rows that are no longer seen in the cheapest ways, and removes
// what has become needless. It reverts a worse result. Between restarts from the best it accepts equal ones.
func (c *core) improve(s *state, bound int64, rounds int, rng *rand.Rand, stop func() bool) {
	c.improveWithin(s, bound, rounds, func() bool { return true }, rng, stop)
}

// improveWithin is improve where not all results are allowed.
func (c *core) improveWithin(s *state, bound int64, rounds int, allowed func() bool, rng *rand.Rand, stop func() bool) {
	if len(c.cost) == 0 {
		return
	}
	var log []change
	for round := range rounds {
		if round&15 == 0 && stop() || !c.partial && s.cost <= bound {
			return
		}
		p := int32(rng.IntN(len(c.cost)))
		log = log[:0]
		cost, left := s.cost, s.left
		if !c.disturb(s, p, &log, rng) {
			continue
		}
		c.repair(s, p, &log, rng)
		if c.partial && s.left > 0 {
			c.fill(s, &log, rng)
		}
		for _, ch := range append([]change(nil), log...) {
			c.lowerOne(s, ch.probe, &log)
			c.lowerAround(s, ch.probe, &log, rng)
		}
		if d := s.left - left; d > tolerance(left) || math.Abs(d) <= tolerance(left) && s.cost > cost || !allowed() {
			for k := len(log) - 1; k >= 0; k-- {
				c.set(s, log[k].probe, log[k].interval, log[k].phase)
			}
		}
	}
}

// disturb sends a probe more seldom; or, where it is not sent or rows are left out, more often.
func (c *core) disturb(s *state, p int32, log *[]change, rng *rand.Rand) bool {
	now := s.interval[p]
	var list [64]int32
	options := list[:0]
	for j := range min(len(c.grid)+1, len(list)) {
		i := c.option(j)
		if !c.open(p, j) || i == now {
			continue
		}
		if slower := i == 0 || now > 0 && i > now; slower || (now == 0 || s.left > 0) && c.fits(s, p, i) {
			options = append(options, i)
		}
	}
	if len(options) == 0 {
		return false
	}
	i, phase := options[rng.IntN(len(options))], int32(0)
	if i > 0 {
		phase = rng.Int32N(i)
	}
	*log = append(*log, change{p, now, s.phase[p]})
	c.set(s, p, i, phase)
	return true
}

// repair finds the rows of a probe that are not seen, and has other probes see them.
func (c *core) repair(s *state, p int32, log *[]change, rng *rand.Rand) {
	for _, r := range c.on[p] {
		if !s.seen[r] {
			c.repairRow(s, r, p, log, rng)
		}
	}
}

// fill tries some rows that are left out: there may be room for them now.
func (c *core) fill(s *state, log *[]change, rng *rand.Rand) {
	const most = 8
	from := rng.IntN(len(c.rows))
	for k, tried := 0, 0; k < len(c.rows) && tried < most; k++ {
		if r := int32((from + k) % len(c.rows)); !s.seen[r] {
			c.repairRow(s, r, -1, log, rng)
			tried++
		}
	}
}

// repairRow has some probe see row r, p only if there is no other.
func (c *core) repairRow(s *state, r, p int32, log *[]change, rng *rand.Rand) {
	best, least := change{probe: -1}, int64(0)
	for _, q := range c.rows[r].probes {
		if q == p && len(c.rows[r].probes) > 1 {
			continue
		}
		now, phase := s.interval[q], s.phase[q]
		left := s.left
		for _, i := range c.grid {
			more := (c.starts(i) - c.starts(now)) * c.cost[q]
			if i > c.slow[q] || best.probe >= 0 && more >= least || !c.fits(s, q, i) {
				continue
			}
			phases := int32(1)
			if i > c.rows[r].period {
				phases = min(i, mostPhases)
			}
			first := phase
			if now == 0 && i > c.rows[r].period {
				first = rng.Int32N(i)
			}
			for f := range phases {
				c.set(s, q, i, (first+f)%i)
				if s.seen[r] && s.left < left {
					best, least = change{q, i, s.phase[q]}, more
					break
				}
			}
		}
		c.set(s, q, now, phase)
	}
	if best.probe >= 0 {
		*log = append(*log, change{best.probe, s.interval[best.probe], s.phase[best.probe]})
		c.set(s, best.probe, best.interval, best.phase)
	}
}

// lowerAround takes away what has become needless at probes that share a row with p.
func (c *core) lowerAround(s *state, p int32, log *[]change, rng *rand.Rand) {
	const most = 12
	rows := c.on[p]
	for range min(most, len(rows)) {
		list := c.rows[rows[rng.IntN(len(rows))]].probes
		if q := list[rng.IntN(len(list))]; q != p {
			c.lowerOne(s, q, log)
		}
	}
}
