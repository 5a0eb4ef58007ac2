package solve

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
	"github.com/hopscope/hopscope/planner/schedule"
)

// core is the decision in bases: the interval of every probe, and the base of it in which the probe starts. Phases in
// slots come later. Rounding all phases down to the base makes no gap longer than its period, since periods and
// intervals are multiples of the base. So nothing is lost here.
type core struct {
	n    int32   // bases in the hyperperiod
	grid []int32 // intervals, ascending
	cost []int64 // by probe: bytes of one start on all links
	must []bool  // by probe: it has to be sent, with an interval of at most slow
	slow []int32 // by probe: the longest interval that is worth a thought
	rows []row
	on   [][]int32 // rows by probe
	caps []limit
	uses [][]use // limits by probe

	periods []int32 // of rows, ascending, each once
	partial bool    // rows may be left unseen
}

// row is a link, or several that the same probes pass.
type row struct {
	probes []int32 // ascending
	period int32
	class  int32 // index of the period
	weight float64
	links  []int32
}

// limit is the capacity of a link or an agent.
type limit struct {
	room   float64 // bytes in a hyperperiod
	what   string
	probes []int32
}

// use is the amount of a limit that one start of a probe takes.
type use struct {
	limit int32
	bytes float64
}

// state is an assignment of intervals and phases; an interval of 0 is a probe that is not sent.
type state struct {
	interval, phase []int32
	used            []float64 // by limit
	seen            []bool    // by row
	cost            int64     // bytes in a hyperperiod
	left            float64   // weight of rows that are not seen
}

func (c *core) newState() *state {
	s := &state{interval: make([]int32, len(c.cost)), phase: make([]int32, len(c.cost)), used: make([]float64, len(c.caps)), seen: make([]bool, len(c.rows))}
	for r := range c.rows {
		s.left += c.rows[r].weight
	}
	return s
}

func (s *state) clone() *state {
	return &state{slices.Clone(s.interval), slices.Clone(s.phase), slices.Clone(s.used), slices.Clone(s.seen), s.cost, s.left}
}

// better reports whether s is to be preferred: it leaves out less, or as much with fewer bytes.
func (s *state) better(t *state) bool {
	if d := s.left - t.left; math.Abs(d) > tolerance(t.left) {
		return d < 0
	}
	return s.cost < t.cost
}

func tolerance(x float64) float64 { return 1e-9 * max(1, math.Abs(x)) }

// starts is how often a probe of an interval starts in a hyperperiod.
func (c *core) starts(interval int32) int64 {
	if interval == 0 {
		return 0
	}
	return int64(c.n / interval)
}

// fits reports whether probe p may get an interval.
func (c *core) fits(s *state, p, interval int32) bool {
	more := float64(c.starts(interval) - c.starts(s.interval[p]))
	if more <= 0 {
		return true
	}
	for _, u := range c.uses[p] {
		if l := &c.caps[u.limit]; s.used[u.limit]+more*u.bytes > l.room*(1+1e-12) {
			return false
		}
	}
	return true
}

// set sets interval and phase of probe p, and recomputes its rows.
func (c *core) set(s *state, p, interval, phase int32) {
	more := c.starts(interval) - c.starts(s.interval[p])
	s.interval[p], s.phase[p] = interval, phase
	s.cost += more * c.cost[p]
	for _, u := range c.uses[p] {
		s.used[u.limit] += float64(more) * u.bytes
	}
	for _, r := range c.on[p] {
		if now := c.sees(s, r); now != s.seen[r] {
			s.seen[r] = now
			if now {
				s.left -= c.rows[r].weight
			} else {
				s.left += c.rows[r].weight
			}
		}
	}
}

// sees reports whether row r is seen in time.
func (c *core) sees(s *state, r int32) bool {
	row := &c.rows[r]
	looks := int64(0)
	for _, p := range row.probes {
		i := s.interval[p]
		if i > 0 && i <= row.period {
			return true
		}
		looks += c.starts(i)
	}
	return looks*int64(row.period) >= int64(c.n) && c.together(s, row)
}

// together reports whether the probes of a row see it in time by taking turns.
func (c *core) together(s *state, row *row) bool {
	var words [64]uint64 // no hyperperiod has more bases than bits
	all := int32(1)      // after which these probes repeat
	for _, p := range row.probes {
		if i := s.interval[p]; i > 0 {
			all = all / opt.GCD(all, i) * i
		}
	}
	for _, p := range row.probes {
		if i := s.interval[p]; i > 0 {
			for t := s.phase[p]; t < all; t += i {
				words[t>>6] |= 1 << (t & 63)
			}
		}
	}
	first, last := int32(-1), int32(-1)
	for t := range all {
		if words[t>>6]>>(t&63)&1 == 0 {
			continue
		}
		if first < 0 {
			first = t
		} else if t-last > row.period {
			return false
		}
		last = t
	}
	return first >= 0 && first+all-last <= row.period
}

// newCore makes rows of links: those of one period that the same probes pass are one. Links that no probe passes, or that
// are to be skipped, are in none.
func newCore(r *schedule.Resolved, skip []bool) *core {
	base := int32(r.Base)
	c := &core{n: int32(r.Hyper) / base, cost: make([]int64, len(r.Probes)),
		must: make([]bool, len(r.Probes)), slow: make([]int32, len(r.Probes)), on: make([][]int32, len(r.Probes)), uses: make([][]use, len(r.Probes))}
	for _, i := range r.Grid {
		c.grid = append(c.grid, int32(i)/base)
	}
	for k := range r.Probes {
		c.cost[k], c.slow[k] = r.Probes[k].Total, c.n
	}
	c.addRows(r, skip)
	c.addLimits(r)
	return c
}

// through lists by link the probes that pass it.
func through(r *schedule.Resolved) [][]int32 {
	count, total := make([]int32, len(r.Links)), 0
	for k := range r.Probes {
		for _, l := range r.Probes[k].Links {
			count[l]++
		}
		total += len(r.Probes[k].Links)
	}
	all, lists := make([]int32, 0, total), make([][]int32, len(r.Links))
	for l, n := range count {
		lists[l] = all[len(all) : len(all) : len(all)+int(n)]
		all = all[:len(all)+int(n)]
	}
	for k := range r.Probes {
		for _, l := range r.Probes[k].Links {
			lists[l] = append(lists[l], int32(k))
		}
	}
	return lists
}

func (c *core) addRows(r *schedule.Resolved, skip []bool) {
	lists := through(r)
	index := make(map[string]int32, len(r.Probes))
	var key []byte
	for l := range r.Links {
		link := &r.Links[l]
		if len(lists[l]) == 0 || link.Period == 0 || skip != nil && skip[l] {
			continue
		}
		period := int32(link.Period / r.Base)
		key = binary.AppendUvarint(key[:0], uint64(period))
		for _, p := range lists[l] {
			key = binary.AppendUvarint(key, uint64(p))
		}
		k, ok := index[string(key)]
		if !ok {
			k = int32(len(c.rows))
			index[string(key)] = k
			c.rows = append(c.rows, row{probes: lists[l], period: period})
		}
		row := &c.rows[k]
		row.weight, row.links = row.weight+link.Weight, append(row.links, int32(l))
	}
	c.index()
}

// index lists rows by probe and periods.
func (c *core) index() {
	c.periods = c.periods[:0]
	for k := range c.on {
		c.on[k] = c.on[k][:0]
	}
	for k := range c.rows {
		c.periods = append(c.periods, c.rows[k].period)
		for _, p := range c.rows[k].probes {
			c.on[p] = append(c.on[p], int32(k))
		}
	}
	slices.Sort(c.periods)
	c.periods = slices.Compact(c.periods)
	for k := range c.rows {
		i, _ := slices.BinarySearch(c.periods, c.rows[k].period)
		c.rows[k].class = int32(i)
	}
}

// addLimits keeps those limits that can be exceeded at all.
func (c *core) addLimits(r *schedule.Resolved) {
	seconds := r.Seconds(r.Hyper)
	most := float64(c.starts(c.grid[0]))
	links, send, receive := make([]float64, len(r.Links)), make([]float64, len(r.Agents)), make([]float64, len(r.Agents))
	each := func(do func(load []float64, k int32, p int, bytes int64)) {
		for k := range r.Probes {
			p := &r.Probes[k]
			for i, l := range p.Links {
				do(links, l, k, p.Bytes[i])
			}
			if p.Agent >= 0 {
				do(send, p.Agent, k, p.Sent)
			}
			if p.Collector >= 0 {
				do(receive, p.Collector, k, p.Received)
			}
		}
	}
	each(func(load []float64, k int32, _ int, bytes int64) { load[k] += most * float64(bytes) })
	add := func(load []float64, bps func(k int) float64, name func(k int) string) {
		for k := range load {
			room := bps(k) * seconds / 8
			if load[k] <= room {
				load[k] = -1
				continue
			}
			load[k] = float64(len(c.caps))
			c.caps = append(c.caps, limit{room: room, what: name(k)})
		}
	}
	add(links, func(k int) float64 { return r.Links[k].Limit }, func(k int) string { return "link " + r.Links[k].Name })
	add(send, func(k int) float64 { return r.Agents[k].Send }, func(k int) string { return "what agent " + r.Agents[k].Name + " sends" })
	add(receive, func(k int) float64 { return r.Agents[k].Receive }, func(k int) string { return "what agent " + r.Agents[k].Name + " receives" })
	each(func(index []float64, k int32, p int, bytes int64) {
		if index[k] >= 0 {
			l := int32(index[k])
			c.uses[p] = append(c.uses[p], use{l, float64(bytes)})
			c.caps[l].probes = append(c.caps[l].probes, int32(p))
		}
	})
}
