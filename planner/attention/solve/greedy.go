package solve

import "container/heap"

// greedy takes columns until all rows are covered: the one with most uncovered rows per cost, or simply with most, the
// cheaper and then the first of equals. What it no longer needs in the end it keeps, as published.
func greedy(c *cover, perCost bool) []int32 {
	start, rows := c.transpose()
	q := &greedyQueue{cost: c.cost, perCost: perCost}
	fresh := make([]int32, len(c.cost)) // uncovered rows
	for k := range c.cost {
		fresh[k] = start[k+1] - start[k]
		if fresh[k] > 0 {
			q.item = append(q.item, greedyItem{int32(k), fresh[k]})
		}
	}
	heap.Init(q)
	covered := make([]bool, c.rows())
	var cols []int32
	for left := c.rows(); left > 0; {
		it := &q.item[0]
		if it.fresh != fresh[it.col] { // has lost rows since it was put there
			if it.fresh = fresh[it.col]; it.fresh == 0 {
				heap.Pop(q)
			} else {
				heap.Fix(q, 0)
			}
			continue
		}
		k := it.col
		cols = append(cols, k)
		for _, r := range rows[start[k]:start[k+1]] {
			if covered[r] {
				continue
			}
			covered[r] = true
			left--
			for _, j := range c.row(int(r)) {
				fresh[j]--
			}
		}
	}
	return cols
}

type greedyItem struct{ col, fresh int32 }

type greedyQueue struct {
	item    []greedyItem
	cost    []int64
	perCost bool
}

func (q *greedyQueue) Len() int      { return len(q.item) }
func (q *greedyQueue) Swap(i, j int) { q.item[i], q.item[j] = q.item[j], q.item[i] }
func (q *greedyQueue) Push(x any)    { q.item = append(q.item, x.(greedyItem)) }
func (q *greedyQueue) Pop() any {
	x := q.item[len(q.item)-1]
	q.item = q.item[:len(q.item)-1]
	return x
}

func (q *greedyQueue) Less(i, j int) bool {
	a, b := q.item[i], q.item[j]
	ca, cb := q.cost[a.col], q.cost[b.col]
	x, y := float64(a.fresh), float64(b.fresh)
	if q.perCost {
		x, y = x*float64(cb), y*float64(ca)
	}
	switch {
	case x != y:
		return x > y
	case ca != cb:
		return ca < cb
	}
	return a.col < b.col
}
