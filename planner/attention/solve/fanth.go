package solve

import "math"

// fantH is the search of FANT-H: iterative deepening on the cost, over a matrix of links and probes in dancing links
// (D. E. Knuth, "Dancing Links", 2000), adapted to covering: choosing a probe removes it and the links it covers, while
// other probes through these links stay.
//
// A branch is cut where its cost plus (1 + α) times the estimate of the remaining cost exceeds the limit. The next
// limit is (1 + β) times the smallest such sum. With both factors 0 the first cover found is a cheapest one.
func fantH(c *cover, alpha, beta float64, stop func() bool) (cols []int32, nodes int, proven bool) {
	if c.rows() == 0 {
		return nil, 0, true
	}
	f := &fantSearch{dance: newDance(c), alpha: alpha, stop: stop}
	f.seen, f.used = make([]int32, c.rows()), make([]int32, len(c.cost))
	limit := (1 + alpha) * float64(f.estimate())
	for {
		f.over = math.Inf(1)
		if f.find(0, limit) {
			return f.chosen, f.nodes, alpha == 0 && beta == 0
		}
		if f.stopped {
			return greedy(c, true), f.nodes, false
		}
		limit = (1 + beta) * f.over
	}
}

type fantSearch struct {
	*dance
	alpha   float64
	stop    func() bool
	stopped bool
	nodes   int
	chosen  []int32
	over    float64 // smallest sum that exceeded the limit
	seen    []int32 // by row: estimate that marked it
	used    []int32
	mark    int32
}

// find covers what is left for a total that the limit allows.
func (f *fantSearch) find(cost int64, limit float64) bool {
	if f.nodes++; f.nodes&1023 == 0 && f.stop() {
		f.stopped = true
	}
	if f.stopped {
		return false
	}
	if sum := float64(cost) + (1+f.alpha)*float64(f.estimate()); sum > limit*(1+1e-12) {
		f.over = min(f.over, sum)
		return false
	}
	if f.right[f.root] == f.root {
		return true
	}
	h := f.shortest()
	for x := f.down[h]; x != h; x = f.down[x] {
		k := f.col[x]
		f.chosen = append(f.chosen, k)
		f.choose(k)
		ok := f.find(cost+f.cost[k], limit)
		f.undo(k)
		if ok {
			return true
		}
		f.chosen = f.chosen[:len(f.chosen)-1]
	}
	return false
}

// estimate goes through the uncovered links in order: it adds the cheapest probe of one and skips all that share any
// probe with it. The links counted have no probe in common, so no cover costs less.
func (f *fantSearch) estimate() (sum int64) {
	f.mark++
	for h := f.right[f.root]; h != f.root; h = f.right[h] {
		if f.seen[h] == f.mark {
			continue
		}
		least := int64(math.MaxInt64)
		for x := f.down[h]; x != h; x = f.down[x] {
			k := f.col[x]
			least = min(least, f.cost[k])
			if f.used[k] == f.mark {
				continue
			}
			f.used[k] = f.mark
			for _, r := range f.rowsOf(k) {
				f.seen[r] = f.mark
			}
		}
		sum += least
	}
	return sum
}

// dance is the matrix of dancing links. Headers are rows (links); those not yet covered form a ring. Below each header
// hang its nodes, one for each column (probe) that can still be chosen.
type dance struct {
	cost        []int64
	root        int32
	left, right []int32 // by header
	up, down    []int32 // by header, then node
	col, head   []int32 // by node
	size        []int32 // by header
	start, row  []int32 // rows by column
	node        []int32 // their nodes
}

func newDance(c *cover) *dance {
	m := c.rows()
	d := &dance{cost: c.cost, root: int32(m)}
	d.left, d.right, d.size = make([]int32, m+1), make([]int32, m+1), make([]int32, m+1)
	n := m + 1 + len(c.col)
	d.up, d.down, d.col, d.head = make([]int32, n), make([]int32, n), make([]int32, n), make([]int32, n)
	d.start, d.row = c.transpose()
	d.node = make([]int32, len(d.row))
	for h := range int32(m + 1) {
		d.left[h], d.right[h] = (h+int32(m))%int32(m+1), (h+1)%int32(m+1)
		d.up[h], d.down[h] = h, h
	}
	next := make([]int32, len(c.cost))
	copy(next, d.start)
	x := int32(m + 1)
	for h := range int32(m) {
		for _, k := range c.row(int(h)) {
			d.up[x], d.down[x] = d.up[h], h
			d.down[d.up[h]], d.up[h] = x, x
			d.col[x], d.head[x] = k, h
			d.size[h]++
			d.node[next[k]] = x
			next[k]++
			x++
		}
	}
	return d
}

func (d *dance) rowsOf(k int32) []int32 { return d.row[d.start[k]:d.start[k+1]] }

// shortest is the uncovered link on the fewest probes.
func (d *dance) shortest() int32 {
	best := d.right[d.root]
	for h := best; h != d.root; h = d.right[h] {
		if d.size[h] < d.size[best] {
			best = h
		}
	}
	return best
}

// choose removes column k and the rows that it covers. A row that is covered already stays out of the ring.
func (d *dance) choose(k int32) {
	for i := d.start[k]; i < d.start[k+1]; i++ {
		h, x := d.row[i], d.node[i]
		d.up[d.down[x]], d.down[d.up[x]] = d.up[x], d.down[x]
		d.size[h]--
		if d.right[d.left[h]] == h {
			d.right[d.left[h]], d.left[d.right[h]] = d.right[h], d.left[h]
		} else {
			d.node[i] = ^x // was covered before: undo leaves it out
		}
	}
}

// undo takes choose back. Choices are undone in reverse order.
func (d *dance) undo(k int32) {
	for i := d.start[k+1] - 1; i >= d.start[k]; i-- {
		h, x := d.row[i], d.node[i]
		if x < 0 {
			x = ^x
			d.node[i] = x
		} else {
			d.right[d.left[h]], d.left[d.right[h]] = h, h
		}
		d.up[d.down[x]], d.down[d.up[x]] = x, x
		d.size[h]++
	}
}
