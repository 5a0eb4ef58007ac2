package solve

import (
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// pairFlow is the largest flow for the rows of two columns. Where these rows two-colour their columns, a column is one
// node, left or right, and counts whole. Otherwise it is two nodes, one on each side, and each is half a column.
type pairFlow struct {
	*bipartite
	bound           int64
	whole           bool    // columns count whole
	long            int     // rows of more than two columns
	leftOf, rightOf []int32 // node of a column, or -1
	left, right     []side  // side of the cut that a node is on
}

func newPairFlow(c *cover) *pairFlow {
	n := len(c.cost)
	f := &pairFlow{leftOf: make([]int32, n), rightOf: make([]int32, n)}
	var a, b []int32
	for i := range c.rows() {
		if row := c.row(i); len(row) == 2 {
			a, b = append(a, row[0]), append(b, row[1])
		} else {
			f.long++
		}
	}
	colour, ok := twoColour(n, a, b)
	if f.whole = ok; ok {
		f.bipartite = f.wholeColumns(c.cost, colour, a, b)
		f.bound = f.run()
	} else {
		for k := range f.leftOf {
			f.leftOf[k], f.rightOf[k] = int32(k), int32(k)
		}
		f.bipartite = newBipartite(slices.Clone(c.cost), slices.Clone(c.cost), slices.Concat(a, b), slices.Concat(b, a))
		f.bound = (f.run() + 1) / 2
	}
	f.left, f.right = f.sides()
	return f
}

// wholeColumns places columns by their colours. It changes a and b, the columns of each row, to nodes.
func (f *pairFlow) wholeColumns(cost []int64, colour []int8, a, b []int32) *bipartite {
	var left, right []int64
	for k, c := range cost {
		f.leftOf[k], f.rightOf[k] = -1, -1
		if colour[k] == 1 {
			f.leftOf[k] = int32(len(left))
			left = append(left, c)
		} else {
			f.rightOf[k] = int32(len(right))
			right = append(right, c)
		}
	}
	for i := range a {
		if colour[a[i]] != 1 {
			a[i], b[i] = b[i], a[i]
		}
		a[i], b[i] = f.leftOf[a[i]], f.rightOf[b[i]]
	}
	return newBipartite(left, right, a, b)
}

// value is that of a column in halves, and whether cheapest cuts differ in it.
func (f *pairFlow) value(k int32) (v int8, open bool) {
	if u := f.leftOf[k]; u >= 0 {
		if f.left[u] == sink {
			v++
		}
		open = f.left[u] == free
	}
	if u := f.rightOf[k]; u >= 0 {
		if f.right[u] == source {
			v++
		}
		open = open || f.right[u] == free
	}
	if f.whole {
		v *= 2
	}
	return v, open
}

// inWhole reports whether a column is in the cover whole.
func (f *pairFlow) inWhole(k int32) bool {
	v, _ := f.value(k)
	return v == 2
}

// coverLong looks among the cheapest covers of the short rows for one that covers long rows as well.
func (f *pairFlow) coverLong(c *cover) {
	taken := f.inWhole
	for i := range c.rows() {
		row := c.row(i)
		if len(row) == 2 || slices.ContainsFunc(row, taken) {
			continue
		}
		for _, k := range row {
			if _, open := f.value(k); !open {
				continue
			}
			if u := f.leftOf[k]; u >= 0 && f.left[u] == free {
				f.toSink(f.left, f.right, u)
			}
			if u := f.rightOf[k]; u >= 0 && f.right[u] == free {
				f.toSource(f.left, f.right, ^u)
			}
			if taken(k) {
				break
			}
		}
	}
}

// close puts what is still free on the side of the source.
func (f *pairFlow) close() {
	for _, nodes := range [...][]side{f.left, f.right} {
		for u := range nodes {
			if nodes[u] == free {
				nodes[u] = source
			}
		}
	}
}

// twoColour colours columns with 1 and 2 so that the ends of no pair are alike, if that can be.
func twoColour(n int, a, b []int32) (colour []int8, ok bool) {
	ends := slices.Concat(a, b)
	start, at := opt.Group(ends, n)
	colour = make([]int8, n)
	var stack []int32
	for k := range colour {
		if colour[k] != 0 {
			continue
		}
		colour[k] = 1
		stack = append(stack, int32(k))
		for len(stack) > 0 {
			j := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, e := range at[start[j]:start[j+1]] {
				i := ends[(int(e)+len(a))%len(ends)] // the other end
				switch colour[i] {
				case 0:
					colour[i] = 3 - colour[j]
					stack = append(stack, i)
				case colour[j]:
					return colour, false
				}
			}
		}
	}
	return colour, true
}
