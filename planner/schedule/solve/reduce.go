package solve

import (
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// reduce decides what is forced. A probe that passes a link alone has the period of the link as its longest interval.
// Rows that such probes see at their longest intervals are always seen. So is a row that has all probes of another one
// and no shorter period. Both are removed.
func (c *core) reduce() {
	if c.partial {
		return
	}
	for k := range c.rows {
		if row := &c.rows[k]; len(row.probes) == 1 {
			p := row.probes[0]
			c.must[p] = true
			for c.slow[p] > row.period {
				i, _ := slices.BinarySearch(c.grid, c.slow[p])
				c.slow[p] = c.grid[i-1] // the shortest period is the first interval
			}
		}
	}
	c.keep(func(k int) bool {
		row := &c.rows[k]
		return !slices.ContainsFunc(row.probes, func(p int32) bool { return c.must[p] && c.slow[p] <= row.period })
	})
	// Only rows of few probes are tried as the smaller ones, at the probe of theirs that has fewest rows.
	drop := make([]bool, len(c.rows))
	for k := range c.rows {
		a := &c.rows[k]
		if len(a.probes) > 4 || drop[k] {
			continue
		}
		rare := a.probes[0]
		for _, p := range a.probes {
			if len(c.on[p]) < len(c.on[rare]) {
				rare = p
			}
		}
		if len(c.on[rare]) > 2000 {
			continue
		}
		for _, j := range c.on[rare] {
			if b := &c.rows[j]; int(j) != k && !drop[j] && b.period >= a.period && opt.Subset(a.probes, b.probes) {
				drop[j] = true
			}
		}
	}
	c.keep(func(k int) bool { return !drop[k] })
}

// mustSee is a copy of c, with separate rows, in which all rows must be seen.
func (c *core) mustSee() *core {
	m := *c
	m.partial = false
	m.rows, m.must, m.slow, m.on = slices.Clone(c.rows), slices.Clone(c.must), slices.Clone(c.slow), make([][]int32, len(c.on))
	m.periods = nil
	m.index()
	return &m
}

// keep takes rows out.
func (c *core) keep(stays func(k int) bool) {
	rows := c.rows[:0]
	for k := range c.rows {
		if stays(k) {
			rows = append(rows, c.rows[k])
		}
	}
	c.rows = rows
	c.index()
}

// part is a piece of a core that can be solved separately.
type part struct {
	core
	probes []int32 // of the whole, by the numbers here
}

// parts splits what rows and limits do not hold together. Probes that have neither a row nor a limit are in none.
func (c *core) parts() []*part {
	sets := opt.NewSets(len(c.cost))
	join := func(list []int32) {
		for _, p := range list {
			sets.Unite(list[0], p)
		}
	}
	for k := range c.rows {
		join(c.rows[k].probes)
	}
	for k := range c.caps {
		join(c.caps[k].probes)
	}
	var all []*part
	of, number := make([]*part, len(c.cost)), make([]int32, len(c.cost))
	for k := range c.cost {
		if len(c.on[k]) == 0 && len(c.uses[k]) == 0 {
			continue
		}
		r := sets.Root(int32(k))
		if of[r] == nil {
			of[r] = &part{core: core{n: c.n, grid: c.grid, partial: c.partial}}
			all = append(all, of[r])
		}
		p := of[r]
		of[k], number[k] = p, int32(len(p.probes))
		p.probes = append(p.probes, int32(k))
		p.cost, p.must, p.slow = append(p.cost, c.cost[k]), append(p.must, c.must[k]), append(p.slow, c.slow[k])
		p.on, p.uses = append(p.on, nil), append(p.uses, nil)
	}
	local := func(list []int32) []int32 {
		out := make([]int32, len(list))
		for i, p := range list {
			out[i] = number[p]
		}
		return out
	}
	for k := range c.rows {
		row := c.rows[k]
		p := of[row.probes[0]]
		row.probes = local(row.probes)
		p.rows = append(p.rows, row)
	}
	where := make([]int32, len(c.caps))
	for k, l := range c.caps {
		p := of[l.probes[0]]
		where[k] = int32(len(p.caps))
		l.probes = local(l.probes)
		p.caps = append(p.caps, l)
	}
	for k, list := range c.uses {
		for _, u := range list {
			of[k].uses[number[k]] = append(of[k].uses[number[k]], use{where[u.limit], u.bytes})
		}
	}
	for _, p := range all {
		p.index()
	}
	return all
}
