package show

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/hopscope/hopscope/planner/topo"
)

// Fabrics with more nodes or links than these are drawn as tables: as lines they are a grey mesh.
const (
	meshNodes = 60
	meshLinks = 400
)

// maxColumns is how many leaves share a table.
const maxColumns = 250

// fabric is a fabric as tables. A table of a pod has a column for every aggregation switch. Its upper rows are links to
// the cores; its lower rows are links to the edge switches, one row each. A fabric of two tiers is one table, with a
// column for every leaf and a row for every spine.
type fabric struct {
	p      *picture
	tables []*table
	planes [][]int // cores grouped by their neighbours
	other  []int   // links that are in no table
	levels int     // tiers
	bundle int     // so many rows and columns make one cell
	size   float64 // of a cell, in pixels
	in     []spotIn
}

// spotIn is where a node is: its table and column, or row.
type spotIn struct{ table, column, row int }

type table struct {
	name    string
	columns []int
	upper   []int // nodes of the upper rows, -1 where there is one for each column
	lower   []int
	cells   map[[2]int][]int // links by row and column
}

func (t *table) rows() int { return len(t.upper) + len(t.lower) }

// fabric divides a large fabric into tables; for others it returns nil.
func (p *picture) fabric() *fabric {
	g := p.g
	if !tiered(g) || g.NumNodes() <= meshNodes && g.NumLinks() <= meshLinks {
		return nil
	}
	count := tierCounts(g)
	if count[topo.Core] == 0 || count[topo.Edge] == 0 {
		return nil
	}
	f := &fabric{p: p, levels: 2, in: make([]spotIn, g.NumNodes())}
	if count[topo.Aggregation] > 0 {
		f.levels = 3
	}
	f.findPods()
	f.findPlanes()
	f.fill()
	return f
}

// findPods makes a table of what holds together without the cores. Edge switches that are linked to cores alone share
// tables.
func (f *fabric) findPods() {
	g := f.p.g
	pod := make([]int, g.NumNodes())
	var leaves []int
	for v := range pod {
		f.in[v] = spotIn{-1, -1, -1}
	}
	for v := range pod {
		if pod[v] != 0 || g.Tier(v) == topo.Core {
			continue
		}
		t := &table{}
		pod[v] = len(f.tables) + 1
		for stack := []int{v}; len(stack) > 0; {
			u := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if g.Tier(u) == topo.Aggregation {
				t.columns = append(t.columns, u)
			} else {
				t.lower = append(t.lower, u)
			}
			lo, hi := g.Interfaces(u)
			for i := lo; i < hi; i++ {
				if w := g.Neighbor(i); w >= 0 && pod[w] == 0 && g.Tier(w) != topo.Core {
					pod[w] = pod[v]
					stack = append(stack, w)
				}
			}
		}
		if len(t.columns) == 0 {
			leaves = append(leaves, t.lower...)
			continue
		}
		f.tables = append(f.tables, t)
		t.name = fmt.Sprintf("pod %d", len(f.tables))
	}
	slices.Sort(leaves)
	for part := range slices.Chunk(leaves, maxColumns) {
		f.tables = append(f.tables, &table{name: fmt.Sprintf("%d leaves", len(part)), columns: part})
	}
	for k, t := range f.tables {
		slices.Sort(t.columns)
		slices.Sort(t.lower)
		for c, v := range t.columns {
			f.in[v] = spotIn{k, c, -1}
		}
		for r, v := range t.lower {
			f.in[v] = spotIn{k, -1, r}
		}
	}
}

// cores returns the cores that a node is linked to, in their order.
func (f *fabric) cores(v int) (list []int) {
	g := f.p.g
	lo, hi := g.Interfaces(v)
	for i := lo; i < hi; i++ {
		if w := g.Neighbor(i); w >= 0 && g.Tier(w) == topo.Core {
			list = append(list, w)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// findPlanes puts cores together that are linked to the same switches.
func (f *fabric) findPlanes() {
	g := f.p.g
	by := map[string]int{}
	for v := range g.NumNodes() {
		if g.Tier(v) != topo.Core {
			continue
		}
		var to []int
		lo, hi := g.Interfaces(v)
		for i := lo; i < hi; i++ {
			to = append(to, g.Neighbor(i))
		}
		slices.Sort(to)
		key := fmt.Sprint(to)
		k, there := by[key]
		if !there {
			k = len(f.planes)
			by[key] = k
			f.planes = append(f.planes, nil)
		}
		f.planes[k] = append(f.planes[k], v)
	}
}

// fill puts every link into a cell, or with those that no table has a place for.
func (f *fabric) fill() {
	g := f.p.g
	rank := map[[2]int]int{} // of a core among those of a column
	for _, t := range f.tables {
		t.cells = map[[2]int][]int{}
		most, all := 0, map[int]bool{}
		for _, v := range t.columns {
			list := f.cores(v)
			most = max(most, len(list))
			for r, core := range list {
				rank[[2]int{v, core}] = r
				all[core] = true
			}
		}
		if len(all) == most { // the rows are the same nodes in every column
			t.upper = slices.Sorted(maps.Keys(all))
			for _, v := range t.columns {
				for r, core := range t.upper {
					rank[[2]int{v, core}] = r
				}
			}
			continue
		}
		for range most {
			t.upper = append(t.upper, -1)
		}
	}
	for l := range g.NumLinks() {
		i, j := g.Ends(l)
		u, v := g.Node(i), g.Node(j)
		if g.Tier(u) > g.Tier(v) {
			u, v = v, u
		}
		low, high := f.in[u], f.in[v]
		switch {
		case g.Tier(v) == topo.Core && g.Tier(u) != topo.Core && low.column >= 0:
			t := f.tables[low.table]
			at := [2]int{rank[[2]int{u, v}], low.column}
			t.cells[at] = append(t.cells[at], l)
		case low.row >= 0 && high.column >= 0 && low.table == high.table:
			t := f.tables[low.table]
			at := [2]int{len(t.upper) + low.row, high.column}
			t.cells[at] = append(t.cells[at], l)
		default:
			f.other = append(f.other, l)
		}
	}
}

// crossing collects what passes the links of a cell, by color and way; a link that nothing passes counts by its color.
type crossing struct {
	color, label, title string
	up, plain           bool
	count               int
}

// crossings returns the crossings of links, those that go up first.
func (f *fabric) crossings(links []int) (list []crossing) {
	g := f.p.g
	add := func(x crossing) {
		if f.bundle > 1 {
			for k := range list {
				if y := &list[k]; y.color == x.color && y.up == x.up && y.plain == x.plain {
					y.count++
					return
				}
			}
		}
		x.count = 1
		list = append(list, x)
	}
	for _, l := range links {
		first, second := g.Ends(l)
		if m := f.p.links[l]; len(f.p.hops[l]) == 0 {
			add(crossing{color: m.color, title: m.title, plain: true})
			continue
		}
		for _, h := range f.p.hops[l] {
			from, to := first, second
			if !h.forward {
				from, to = second, first
			}
			add(crossing{color: h.color, label: h.label, title: g.LinkName(l) + ": " + h.title, up: g.Tier(g.Node(from)) < g.Tier(g.Node(to))})
		}
	}
	slices.SortStableFunc(list, func(x, y crossing) int {
		return cmp.Or(order(y.up)-order(x.up), order(x.plain)-order(y.plain), y.count-x.count)
	})
	return list
}

func order(b bool) int {
	if b {
		return 1
	}
	return 0
}
