package solve

import (
	"slices"

	"github.com/hopscope/hopscope/planner/opt"
)

// cover is a weighted set cover: every row wants one of its columns taken, and the taken columns should cost least.
type cover struct {
	cost  []int64 // by column, not negative
	start []int32 // by row, into col
	col   []int32
}

func (c *cover) rows() int { return len(c.start) - 1 }

func (c *cover) row(r int) []int32 { return c.col[c.start[r]:c.start[r+1]] }

// transpose gives the rows of every column.
func (c *cover) transpose() (start, row []int32) {
	return opt.Transpose(c.start, c.col, len(c.cost))
}

// reducer takes rows and columns away that do not change the least cost:
//   - a row with one column takes it,
//   - a row that contains another row is covered with it,
//   - a column whose rows are all in another column that costs no more is not needed.
type reducer struct {
	c            *cover
	start, row   []int32 // rows by column
	rowOut       []bool
	colOut       []bool
	rowLen       []int32 // columns left
	colLen       []int32 // rows left
	rowQ, colQ   []int32 // to be looked at
	inRowQ, inCQ []bool
	mark         []int32 // by column
	stamp        int32
	taken        []int32
}

func newReducer(c *cover) *reducer {
	n, m := len(c.cost), c.rows()
	d := &reducer{c: c}
	d.start, d.row = c.transpose()
	flags := make([]bool, 2*(n+m))
	d.rowOut, d.inRowQ, d.colOut, d.inCQ = flags[:m], flags[m:2*m], flags[2*m:2*m+n], flags[2*m+n:]
	ints := make([]int32, 3*n+2*m)
	d.rowLen, d.rowQ = ints[:m], ints[m:m:2*m]
	d.colLen, d.mark, d.colQ = ints[2*m:2*m+n], ints[2*m+n:2*m+2*n], ints[2*m+2*n:2*m+2*n]
	for r := range m {
		d.rowLen[r] = c.start[r+1] - c.start[r]
		d.pushRow(int32(r))
	}
	for k := range n {
		d.colLen[k] = d.start[k+1] - d.start[k]
		d.pushCol(int32(k))
	}
	return d
}

func (d *reducer) rowsOf(k int32) []int32 { return d.row[d.start[k]:d.start[k+1]] }

func (d *reducer) pushRow(r int32) {
	if !d.inRowQ[r] {
		d.inRowQ[r] = true
		d.rowQ = append(d.rowQ, r)
	}
}

func (d *reducer) pushCol(k int32) {
	if !d.inCQ[k] {
		d.inCQ[k] = true
		d.colQ = append(d.colQ, k)
	}
}

// dropRow takes a row away that needs no more care.
func (d *reducer) dropRow(r int32) {
	d.rowOut[r] = true
	for _, k := range d.c.row(int(r)) {
		if !d.colOut[k] {
			d.colLen[k]--
			d.pushCol(k)
		}
	}
}

// dropCol takes a column away that will not be taken.
func (d *reducer) dropCol(k int32) {
	d.colOut[k] = true
	for _, r := range d.rowsOf(k) {
		if !d.rowOut[r] {
			d.rowLen[r]--
			d.pushRow(r)
		}
	}
}

// choose takes a column and covers its rows.
func (d *reducer) choose(k int32) {
	d.taken = append(d.taken, k)
	d.colOut[k] = true
	for _, r := range d.rowsOf(k) {
		if !d.rowOut[r] {
			d.dropRow(r)
		}
	}
}

// run reduces until nothing more can be. It is false if a row has lost all its columns.
func (d *reducer) run() bool {
	for len(d.rowQ)+len(d.colQ) > 0 {
		for len(d.rowQ) > 0 {
			r := d.rowQ[len(d.rowQ)-1]
			d.rowQ = d.rowQ[:len(d.rowQ)-1]
			d.inRowQ[r] = false
			if !d.rowOut[r] && !d.lookRow(r) {
				return false
			}
		}
		if n := len(d.colQ); n > 0 {
			k := d.colQ[n-1]
			d.colQ = d.colQ[:n-1]
			d.inCQ[k] = false
			if !d.colOut[k] && (d.colLen[k] == 0 || d.dominated(k)) {
				d.dropCol(k)
			}
		}
	}
	return true
}

// lookRow takes the column of a row that has one, or drops the rows that contain this one.
func (d *reducer) lookRow(r int32) bool {
	if d.rowLen[r] == 0 {
		return false
	}
	d.stamp++
	var few int32 = -1 // column with the fewest rows
	for _, k := range d.c.row(int(r)) {
		if d.colOut[k] {
			continue
		}
		if d.rowLen[r] == 1 {
			d.choose(k)
			return true
		}
		d.mark[k] = d.stamp
		if few < 0 || d.colLen[k] < d.colLen[few] {
			few = k
		}
	}
	for _, s := range d.rowsOf(few) {
		if d.rowOut[s] || s == r || d.rowLen[s] < d.rowLen[r] {
			continue
		}
		var n int32
		for _, k := range d.c.row(int(s)) {
			if d.mark[k] == d.stamp && !d.colOut[k] {
				n++
			}
		}
		if n == d.rowLen[r] {
			d.dropRow(s)
		}
	}
	return true
}

// dominated reports whether another column covers all that column k does at no higher cost.
func (d *reducer) dominated(k int32) bool {
	var short int32 = -1 // shortest row
	for _, r := range d.rowsOf(k) {
		if !d.rowOut[r] && (short < 0 || d.rowLen[r] < d.rowLen[short]) {
			short = r
		}
	}
candidates:
	for _, j := range d.c.row(int(short)) {
		if j == k || d.colOut[j] || d.c.cost[j] > d.c.cost[k] || d.colLen[j] < d.colLen[k] {
			continue
		}
	rows:
		for _, r := range d.rowsOf(k) {
			if d.rowOut[r] {
				continue
			}
			for _, i := range d.c.row(int(r)) {
				if i == j {
					continue rows
				}
			}
			continue candidates
		}
		return true
	}
	return false
}

// part is a component of what is left, and its columns as those of the whole.
type part struct {
	cover
	columns []int32
}

// parts gives the connected components of what is left.
func (d *reducer) parts() []*part {
	n := len(d.c.cost)
	const none = -1
	comp, local := slices.Repeat([]int32{none}, n), make([]int32, n)
	var parts []*part
	var stack []int32
	rowDone := d.inRowQ // empty again after run
	for k := range n {
		if d.colOut[k] || comp[k] != none || d.colLen[k] == 0 {
			continue
		}
		p := &part{cover: cover{start: []int32{0}}}
		enter := func(k int32) {
			comp[k], local[k] = int32(len(parts)), int32(len(p.columns))
			p.columns = append(p.columns, k)
			p.cost = append(p.cost, d.c.cost[k])
			stack = append(stack, k)
		}
		enter(int32(k))
		for len(stack) > 0 {
			j := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, r := range d.rowsOf(j) {
				if d.rowOut[r] || rowDone[r] {
					continue
				}
				rowDone[r] = true
				for _, i := range d.c.row(int(r)) {
					if d.colOut[i] {
						continue
					}
					if comp[i] == none {
						enter(i)
					}
					p.col = append(p.col, local[i])
				}
				p.start = append(p.start, int32(len(p.col)))
			}
		}
		parts = append(parts, p)
	}
	return parts
}
