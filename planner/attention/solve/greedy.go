package solve

import (
	"cmp"

	"github.com/hopscope/hopscope/planner/opt"
)

// greedy takes columns until all rows are covered. It takes the column with the most uncovered rows per cost, or simply
// with the most; ties go to the cheaper, then to the first. As published, columns that become superfluous stay.
func greedy(c *cover, perCost bool) []int32 {
	start, rows := c.transpose()
	q := opt.Heap[greedyItem]{Less: func(a, b *greedyItem) bool {
		ca, cb := c.cost[a.col], c.cost[b.col]
		x, y := float64(a.fresh), float64(b.fresh)
		if perCost {
			x, y = x*float64(cb), y*float64(ca)
		}
		return cmp.Or(cmp.Compare(y, x), cmp.Compare(ca, cb), cmp.Compare(a.col, b.col)) < 0
	}}
	fresh := make([]int32, len(c.cost)) // uncovered rows
	for k := range c.cost {
		fresh[k] = start[k+1] - start[k]
		if fresh[k] > 0 {
			q.Items = append(q.Items, greedyItem{int32(k), fresh[k]})
		}
	}
	q.Init()
	covered := make([]bool, c.rows())
	var cols []int32
	for left := c.rows(); left > 0; {
		it := &q.Items[0]
		if it.fresh != fresh[it.col] { // has lost rows since it was put there
			if it.fresh = fresh[it.col]; it.fresh == 0 {
				q.Pop()
			} else {
				q.FixTop()
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
