package solve

import (
	"math/rand/v2"
	"slices"
)

// local is a local search for a cheap cover. It removes columns that lose little for their cost until the cover is
// cheaper than the best one. It then adds columns for uncovered rows; rows that stay uncovered gain weight (C. Gao, X.
// Yao, T. Weise and J. Li, European Journal of Operational Research 246, 2015). Its random numbers have a fixed seed.
type local struct {
	c          *cover
	start, row []int32 // rows by column
	rng        *rand.Rand
	best       []int32
	least      int64

	in      []bool
	covered []int32
	weight  []int64
	gain    []int64 // by column: weight that is uncovered without it, or covered with it
	moved   []int   // when a column came or went last
	fresh   []bool  // something around the column changed since it went
	cols    []int32 // that are in
	at      []int32 // index into cols
	open    []int32 // uncovered rows
	openAt  []int32
	cost    int64
	now     int
	lastIn  int32
}

func newLocal(c *cover, cols []int32) *local {
	n, m := len(c.cost), c.rows()
	l := &local{c: c, rng: rand.New(rand.NewPCG(1, uint64(n)))}
	l.start, l.row = c.transpose()
	l.in, l.fresh = make([]bool, n), make([]bool, n)
	l.covered, l.openAt, l.at = make([]int32, m), make([]int32, m), make([]int32, n)
	l.weight, l.gain, l.moved = make([]int64, m), make([]int64, n), make([]int, n)
	for r := range m {
		l.weight[r] = 1
		l.uncover(int32(r))
	}
	for k := range n {
		l.gain[k] = int64(l.start[k+1] - l.start[k])
		l.fresh[k] = true
	}
	for _, k := range cols {
		l.put(k)
	}
	l.save()
	return l
}

func (l *local) rowsOf(k int32) []int32 { return l.row[l.start[k]:l.start[k+1]] }

func (l *local) save() { l.best, l.least = slices.Clone(l.cols), l.cost }

// uncover lists a row as open; cover takes it from the list.
func (l *local) uncover(r int32) {
	l.openAt[r] = int32(len(l.open))
	l.open = append(l.open, r)
}

func (l *local) cover(r int32) {
	last := l.open[len(l.open)-1]
	l.open[l.openAt[r]], l.openAt[last] = last, l.openAt[r]
	l.open = l.open[:len(l.open)-1]
}

// put takes a column in.
func (l *local) put(k int32) {
	l.in[k], l.moved[k] = true, l.now
	l.at[k] = int32(len(l.cols))
	l.cols = append(l.cols, k)
	l.cost += l.c.cost[k]
	l.gain[k] = 0
	for _, r := range l.rowsOf(k) {
		w := l.weight[r]
		l.covered[r]++
		switch l.covered[r] {
		case 1:
			l.cover(r)
			l.gain[k] += w
			for _, j := range l.c.row(int(r)) {
				if j != k {
					l.gain[j] -= w
					l.fresh[j] = true
				}
			}
		case 2:
			for _, j := range l.c.row(int(r)) {
				if j != k && l.in[j] {
					l.gain[j] -= w
				}
			}
		}
	}
}

// drop takes a column out.
func (l *local) drop(k int32) {
	last := l.cols[len(l.cols)-1]
	l.cols[l.at[k]], l.at[last] = last, l.at[k]
	l.cols = l.cols[:len(l.cols)-1]
	l.in[k], l.moved[k], l.fresh[k] = false, l.now, false
	l.cost -= l.c.cost[k]
	l.gain[k] = 0
	for _, r := range l.rowsOf(k) {
		w := l.weight[r]
		l.covered[r]--
		switch l.covered[r] {
		case 0:
			l.uncover(r)
			l.gain[k] += w
			for _, j := range l.c.row(int(r)) {
				if j != k {
					l.gain[j] += w
					l.fresh[j] = true
				}
			}
		case 1:
			for _, j := range l.c.row(int(r)) {
				if j != k && l.in[j] {
					l.gain[j] += w
				}
			}
		}
	}
}

// weaker reports whether column a gains less than b for what it costs; of equals the one that moved earlier is weaker.
func (l *local) weaker(a, b int32) bool {
	x, y := float64(l.gain[a])*float64(l.c.cost[b]), float64(l.gain[b])*float64(l.c.cost[a])
	if x != y {
		return x < y
	}
	return l.moved[a] < l.moved[b]
}

// weakest is a weak column that is in, and was not put in just now: the weakest of all, or of a sample.
func (l *local) weakest() int32 {
	const sample = 60
	var weak int32 = -1
	look := func(k int32) {
		if l.moved[k] != l.now && k != l.lastIn && (weak < 0 || l.weaker(k, weak)) {
			weak = k
		}
	}
	if len(l.cols) <= sample {
		for _, k := range l.cols {
			look(k)
		}
	} else {
		for range sample {
			look(l.cols[l.rng.IntN(len(l.cols))])
		}
	}
	return weak
}

// run makes that many exchanges, or ends when the cover costs no more than enough.
func (l *local) run(rounds int, enough int64, stop func() bool) {
	if len(l.open) > 0 { // after an earlier run
		l.reset()
	}
	for i := 0; i < rounds && l.least > enough; i++ {
		if i&255 == 255 && stop() {
			return
		}
		l.now++
		for len(l.open) == 0 {
			if l.cost < l.least {
				l.save()
			}
			k := l.anyWeakest()
			if k < 0 {
				return
			}
			l.drop(k)
		}
		if k := l.weakest(); k >= 0 {
			l.drop(k)
		}
		for len(l.open) > 0 {
			k := l.strongest(l.open[l.rng.IntN(len(l.open))])
			if k < 0 || l.cost+l.c.cost[k] >= l.least {
				break
			}
			l.put(k)
			l.lastIn = k
			l.raise()
		}
		l.raise()
	}
	if len(l.open) == 0 && l.cost < l.least {
		l.save()
	}
}

// anyWeakest is the weakest of all that are in.
func (l *local) anyWeakest() int32 {
	var weak int32 = -1
	for _, k := range l.cols {
		if weak < 0 || l.weaker(k, weak) {
			weak = k
		}
	}
	return weak
}

// strongest is the column of a row that gains most for its cost, of those around which something changed since they went.
func (l *local) strongest(r int32) int32 {
	var strong int32 = -1
	for _, k := range l.c.row(int(r)) {
		if l.fresh[k] && l.moved[k] != l.now && (strong < 0 || l.weaker(strong, k)) {
			strong = k
		}
	}
	return strong
}

// raise makes open rows weigh more.
func (l *local) raise() {
	for _, r := range l.open {
		l.weight[r]++
		for _, k := range l.c.row(int(r)) {
			l.gain[k]++
		}
	}
}

// reset goes back to the best cover.
func (l *local) reset() {
	keep := make([]bool, len(l.in))
	for _, k := range l.best {
		keep[k] = true
	}
	for k := range l.in {
		if l.in[k] && !keep[k] {
			l.drop(int32(k))
		}
	}
	for _, k := range l.best {
		if !l.in[k] {
			l.put(k)
		}
	}
}

// offer hands the search a cover that was found elsewhere.
func (l *local) offer(cols []int32, cost int64) {
	if cost < l.least {
		l.best, l.least = slices.Clone(cols), cost
		l.reset()
	}
}
