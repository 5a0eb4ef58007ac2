package solve

import (
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// hard is a branch and bound over a part with many rows of more than two columns. It expands the open node of the
// lowest bound first, so that the bound keeps rising. A local search improves the cover.
type hard struct {
	*search
	p     *part
	cost  int64 // of the best cover
	cols  []int32
	local *local
	queue opt.Heap[*hardNode]
}

// hardNode holds the columns that were taken (k) or left out (^k), and the lowest cost of what follows.
type hardNode struct {
	fixed  []int32
	bound  int64
	serial int
	price  []int64 // of rows that the node's parent had left, to start with; shared
}

// hard finds the cheapest columns of a part, begun with a cover and a bound. The bound given back is below the cost only
// if the search was stopped.
func (s *search) hard(p *part, cols []int32, bound int64) (cost int64, best []int32, low int64) {
	h := &hard{search: s, p: p, cols: cols, cost: p.total(cols)}
	for _, perCost := range []bool{true, false} {
		h.offer(p.pruned(greedy(&p.cover, perCost)))
	}
	h.local = newLocal(&p.cover, h.cols)
	h.queue = opt.Heap[*hardNode]{Items: []*hardNode{{bound: bound}}, Less: func(a, b **hardNode) bool {
		return (*a).bound < (*b).bound || (*a).bound == (*b).bound && (*a).serial > (*b).serial
	}}
	for serial, turn := 1, 0; len(h.queue.Items) > 0; {
		n := h.queue.Pop()
		if n.bound >= h.cost {
			break
		}
		if s.stopped = s.stopped || s.stop(); s.stopped {
			return h.cost, h.cols, n.bound
		}
		s.nodes++
		children := h.expand(n)
		if s.stopped {
			return h.cost, h.cols, n.bound
		}
		for _, c := range children {
			c.serial = serial
			serial++
			h.queue.Push(c)
		}
		if turn++; turn&(turn-1) == 0 && len(h.queue.Items) > 0 && h.queue.Items[0].bound < h.cost { // 1, 2, 4, … nodes
			h.local.offer(h.cols, h.cost)
			h.local.run(4000*min(turn, 8)+300*turn, h.queue.Items[0].bound, s.stop)
			h.offer(slices.Clone(h.local.best), h.local.least)
		}
	}
	return h.cost, h.cols, h.cost
}

// offer takes a cover that is cheaper than the best so far.
func (h *hard) offer(cols []int32, cost int64) {
	if cost < h.cost {
		h.cols, h.cost = cols, cost
	}
}

// pruned removes redundant columns of a cover, and returns its cost.
func (c *cover) pruned(cols []int32) ([]int32, int64) {
	in := make([]bool, len(c.cost))
	for _, k := range cols {
		in[k] = true
	}
	cols = prune(c, in)
	return cols, c.total(cols)
}

// expand bounds a node, and returns the two nodes below it, if there can be a cheaper cover there.
func (h *hard) expand(n *hardNode) []*hardNode {
	d := newReducer(&h.p.cover)
	for _, k := range n.fixed {
		switch {
		case k < 0 && !d.colOut[^k]:
			d.dropCol(^k)
		case k >= 0 && !d.colOut[k]:
			d.choose(k)
		}
	}
	if !d.run() {
		return nil
	}
	base := d.c.total(d.taken)
	if base >= h.cost {
		return nil
	}
	q, rowOf := d.rest()
	if len(q.columns) == 0 {
		h.offer(slices.Clone(d.taken), base)
		return nil
	}
	dual := newDual(&q.cover)
	if n.price == nil {
		dual.ascend()
		dual.improve(h.cost-base, 3000, 1, h.stop)
	} else {
		for r, whole := range rowOf {
			dual.price[r] = min(n.price[whole], dual.most[r])
		}
		dual.improve(h.cost-base, 150, 0.3, h.stop)
	}
	h.round(d.taken, base, q, dual)
	bound := max(n.bound, base+dual.bound())
	if bound >= h.cost {
		return nil
	}
	return h.split(n, bound, base, q, rowOf, dual)
}

// round makes a cover from shares and reduced costs.
func (h *hard) round(taken []int32, base int64, q *part, dual *dual) {
	by := &cover{cost: make([]int64, len(q.columns)), start: q.start, col: q.col}
	for k := range q.columns {
		by.cost[k] = max(dual.reduced[k], 0) + int64(float64(dual.cost[k])*(1-dual.share[k])/8) + 1
	}
	cols := slices.Clone(taken)
	for _, k := range greedy(by, true) {
		cols = append(cols, q.columns[k])
	}
	h.offer(h.p.pruned(cols))
}

// split makes the two nodes below a node: with a column, and without it. Columns whose reduced cost alone puts them above
// or below the best cover are fixed in both.
func (h *hard) split(n *hardNode, bound, base int64, q *part, rowOf []int32, dual *dual) []*hardNode {
	fixed := slices.Clone(n.fixed)
	var at int32 = -1
	score := math.Inf(-1)
	for k, whole := range q.columns {
		rc := dual.reduced[k]
		switch {
		case rc > 0 && dual.above(rc, h.cost-base):
			fixed = append(fixed, ^whole)
			continue
		case rc < 0 && dual.above(-rc, h.cost-base):
			fixed = append(fixed, whole)
			continue
		}
		// Neither in nor out, and dear, so that both sides raise the bound.
		x := dual.share[k]
		if s := min(x, 1-x)*float64(dual.cost[k]) - math.Abs(float64(rc))/8; s > score {
			at, score = whole, s
		}
	}
	price := make([]int64, h.p.rows())
	for r, whole := range rowOf {
		price[whole] = dual.price[r]
	}
	fixed = slices.Clip(fixed)
	if at < 0 {
		return []*hardNode{{fixed: fixed, bound: bound, price: price}}
	}
	return []*hardNode{
		{fixed: append(fixed, ^at), bound: bound, price: price},
		{fixed: append(fixed, at), bound: bound, price: price},
	}
}

// rest is all that a reducer leaves, as one, and the rows of the whole that its rows are.
func (d *reducer) rest() (p *part, rowOf []int32) {
	p = &part{cover: cover{start: []int32{0}}}
	local := make([]int32, len(d.c.cost))
	for k := range d.c.cost {
		if !d.colOut[k] && d.colLen[k] > 0 {
			local[k] = int32(len(p.columns))
			p.columns = append(p.columns, int32(k))
			p.cost = append(p.cost, d.c.cost[k])
		}
	}
	for r, out := range d.rowOut {
		if out {
			continue
		}
		rowOf = append(rowOf, int32(r))
		for _, k := range d.c.row(r) {
			if !d.colOut[k] {
				p.col = append(p.col, local[k])
			}
		}
		p.start = append(p.start, int32(len(p.col)))
	}
	return p, rowOf
}
