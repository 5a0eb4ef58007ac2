package show

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/planner/topo"
)

// This file draws the tables of a fabric.

const (
	maxTables = 2500  // pixels that all tables take downwards
	maxCells  = 24000 // above which rows and columns are bundled, to a quarter of it
	tableHead = 40    // above a table: its name and its contents
	tableGap  = 18
	nodeStrip = 12 // the row of the column's nodes, and the column of the row's
	rowNames  = 78 // beside a table, for the names of rows
)

// sheet is how the tables are arranged.
type sheet struct {
	across        int     // tables side by side
	width, height float64 // of the largest of them
	side          float64 // for the names of rows
}

// arrange finds the largest cells with which everything has room.
func (f *fabric) arrange() (s sheet) {
	columns, rows, cells := 1, 1, 0
	for _, t := range f.tables {
		columns, rows = max(columns, len(t.columns)), max(rows, t.rows())
		cells += len(t.columns) * t.rows()
	}
	f.bundle = 1
	if cells > maxCells {
		f.bundle = int(math.Ceil(math.Sqrt(4 * float64(cells) / maxCells)))
	}
	for ; ; f.bundle *= 2 {
		for _, f.size = range [...]float64{36, 30, 26, 22, 18, 15, 12, 10, 8, 7, 6, 5, 4, 3} {
			s.side = nodeStrip
			if f.size >= 10 {
				s.side += rowNames
			}
			s.width = s.side + float64(f.up(columns))*f.size + tableGap
			s.height = tableHead + nodeStrip + float64(f.up(rows))*f.size + tableGap
			s.across = min(len(f.tables), max(1, int(1700/s.width)))
			tall := float64((len(f.tables)+s.across-1)/s.across) * s.height
			// A screen is best, three are the limit; smaller cells could not be seen.
			smallest := f.size == 3 && (tall <= maxTables || f.up(rows)*f.up(columns) == 1)
			if s.width <= 1800 && (tall <= 1150 || smallest) {
				return f.level(s)
			}
		}
	}
}

// level makes the rows of tables equally long, which looks better than a rest.
func (f *fabric) level(s sheet) sheet {
	down := (len(f.tables) + s.across - 1) / s.across
	s.across = (len(f.tables) + down - 1) / down
	return s
}

// up is the number of cells for that many rows or columns.
func (f *fabric) up(n int) int { return (n + f.bundle - 1) / f.bundle }

func (f *fabric) write(c *canvas) {
	s := f.arrange()
	c.Width = max(760, 2*margin+float64(s.across)*s.width)
	y := float64(head)
	for _, line := range wrapText(f.explain(), 12, c.Width-40) {
		y += 16
		c.Text(20, y, 12, "dim", "start", line)
	}
	c.Desc += ". " + f.explain()
	y += tableGap
	labels := newLabelPlaces(box{0, 0, c.Width, MaxHeight})
	if f.levels == 3 {
		y = f.writePlanes(c, y)
	}
	for k, t := range f.tables {
		f.writeTable(c, labels, t, s, margin+float64(k%s.across)*s.width, y+float64(k/s.across)*s.height)
	}
	y += float64((len(f.tables)+s.across-1)/s.across) * s.height
	c.Height = f.writeOther(c, y) + 12
}

// explain is the legend of the tables.
func (f *fabric) explain() string {
	var b strings.Builder
	if f.bundle > 1 {
		fmt.Fprintf(&b, "Every cell is the links of %d columns and rows", f.bundle)
	} else {
		b.WriteString("Every cell is a link")
	}
	if f.levels == 3 {
		b.WriteString(". A pod has a column for each aggregation switch: above it are its links up to the cores of its plane, below it those down to the edge switches")
	} else {
		b.WriteString(" between the spine of its row and the leaf of its column")
	}
	b.WriteString(".")
	if slices.ContainsFunc(f.p.hops, func(list []hop) bool { return len(list) > 0 }) {
		b.WriteString(" A triangle points the way that something takes, up towards the cores or down; a cell with several is passed as often.")
	}
	return b.String()
}

// writePlanes draws the cores, those of a plane together, and returns where it ends.
func (f *fabric) writePlanes(c *canvas, y float64) float64 {
	most, all := 0, 0
	for _, plane := range f.planes {
		most, all = max(most, len(plane)), all+len(plane)
	}
	c.Text(margin, y+10, 12, "ink", "start", fmt.Sprintf("%d cores in %d planes of up to %d: a core of a plane is linked to one switch of every pod", all, len(f.planes), most))
	y += 26
	x, step := float64(margin), 11.0
	if f.bundle > 1 || all > 600 {
		step = 7
	}
	for k, plane := range f.planes {
		if width := step * float64(len(plane)); x+width > c.Width-20 && x > margin {
			x, y = margin, y+step+8
		}
		c.Add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"3\" class=\"faint\"><title>plane %d: %d cores</title></rect>\n", x-step/2-1, y-step/2-2, step*float64(len(plane))+2, step+4, k+1, len(plane))
		for _, v := range plane {
			if x > c.Width-20 {
				x, y = margin, y+step+4
			}
			f.p.node(c, v, x, y, 0.36*step)
			x += step
		}
		x += 10
	}
	return y + step + tableGap
}

// writeTable draws a pod.
func (f *fabric) writeTable(c *canvas, labels *labelPlaces, t *table, s sheet, x, y float64) {
	columns, upper, lower := f.up(len(t.columns)), f.up(len(t.upper)), f.up(len(t.lower))
	links, passed := 0, 0
	for _, list := range t.cells {
		links += len(list)
		for _, l := range list {
			passed += order(len(f.p.hops[l]) > 0)
		}
	}
	what := fmt.Sprintf("%s, %d spines", t.name, len(t.upper))
	if len(t.lower) > 0 {
		what = fmt.Sprintf("%s: %d + %d switches", t.name, len(t.columns), len(t.lower))
	}
	much := fmt.Sprintf("%d links", links)
	if passed > 0 {
		much = fmt.Sprintf("%d of %d links passed", passed, links)
	}
	left, room := x+s.side, s.width-4
	c.Text(x, y+9, 11, "ink", "start", clipTo(what, 11, room))
	c.Text(x, y+22, 11, "dim", "start", clipTo(much, 11, room))
	y += tableHead
	middle := y + float64(upper)*f.size // where the nodes of the columns are
	f.writeCells(c, t, left, y)
	radius := min(4.5, 0.38*f.size*float64(f.bundle), 0.42*nodeStrip)
	pitch := f.size / float64(f.bundle)
	for k, v := range t.columns {
		f.p.node(c, v, left+(float64(k)+0.5)*pitch, middle+nodeStrip/2, min(radius, 0.45*pitch))
	}
	heads := func(list []int, top float64) {
		for r, v := range list {
			if v < 0 || f.levels == 3 && f.p.g.Tier(v) == topo.Core {
				continue
			}
			cy := top + (float64(r)+0.5)*pitch
			f.p.node(c, v, left-nodeStrip/2, cy, min(radius, 0.45*pitch))
			if s.side > nodeStrip {
				name := clipTo(f.p.g.NodeName(v), 9, rowNames-6)
				if spot, ok := labels.Place(name, 9, spot{left - nodeStrip - 2, cy + 3, "end"}); ok {
					c.Text(spot.X, spot.Y, 9, "dim", "end", name)
				}
			}
		}
	}
	heads(t.upper, y)
	heads(t.lower, middle+nodeStrip)
	if f.size >= 10 {
		for k, v := range t.columns {
			name := f.p.g.NodeName(v)
			at := spot{left + (float64(k)+0.5)*pitch, y - 3, "middle"}
			if len(t.lower) == 0 {
				at.Y = middle + nodeStrip + 9
			}
			if spot, ok := labels.Place(name, 9, at); ok {
				c.Text(spot.X, spot.Y, 9, "dim", "middle", name)
			}
		}
	}
	c.Add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"pale\" stroke-width=\"0.5\"/>\n", left, y, float64(columns)*f.size, float64(upper+lower)*f.size+nodeStrip)
}

// writeCells draws the links of a table on a common ground.
func (f *fabric) writeCells(c *canvas, t *table, left, top float64) {
	byCell := map[[2]int][]int{}
	for row := range t.rows() {
		for column := range t.columns {
			if links := t.cells[[2]int{row, column}]; links != nil {
				at := [2]int{row / f.bundle, column / f.bundle}
				if row >= len(t.upper) {
					at[0] = f.up(len(t.upper)) + (row-len(t.upper))/f.bundle
				}
				byCell[at] = append(byCell[at], links...)
			}
		}
	}
	var ground strings.Builder // of all cells, in one path, so that the picture stays small
	cells := &canvas{}
	upper := f.up(len(t.upper))
	for row := range upper + f.up(len(t.lower)) {
		y := top + float64(row)*f.size
		if row >= upper {
			y += nodeStrip
		}
		for column := range f.up(len(t.columns)) {
			links := byCell[[2]int{row, column}]
			if len(links) == 0 {
				continue
			}
			x := left + float64(column)*f.size
			fmt.Fprintf(&ground, "M%.1f %.1fh%.1fv%.1fh-%.1fz", x+0.05*f.size, y+0.05*f.size, 0.9*f.size, 0.9*f.size, 0.9*f.size)
			f.writeCell(cells, f.crossings(links), len(links), x, y)
		}
	}
	c.Add("<path class=\"faint\" d=\"%s\"/>\n%s", ground.String(), cells.body.String())
}

// These are how many crossings a cell shows; its title states how many there are.
const (
	maxSlices  = 16
	maxBundled = 6 // of a cell of several links
)

// writeCell draws the crossings of a cell side by side.
func (f *fabric) writeCell(c *canvas, list []crossing, links int, x, y float64) {
	shown := list[:0:0]
	for _, x := range list {
		if x.color != "" && x.color != quiet {
			shown = append(shown, x)
		}
	}
	if len(shown) == 0 {
		return
	}
	most := maxSlices
	if f.bundle > 1 {
		most = maxBundled
		slices.SortStableFunc(shown, func(x, y crossing) int { return y.count - x.count })
	}
	more := len(shown) - most
	shown = shown[:min(len(shown), most)]
	wide := f.size / float64(len(shown))
	for _, s := range shown {
		title := s.title
		if f.bundle > 1 {
			title = fmt.Sprintf("%d of %d links: %s", s.count, links, s.title)
		}
		if more > 0 {
			title += fmt.Sprintf(" (%d more pass here)", more)
		}
		m, h := 0.08*wide, 0.92*f.size
		shape := fmt.Sprintf("M%.1f %.1fh%.1fv%.1fh-%.1fz", x+m, y+0.08*f.size, wide-2*m, h-0.08*f.size, wide-2*m)
		class := "cell"
		switch {
		case s.plain:
		case s.up:
			class, shape = "arrow up", fmt.Sprintf("M%.1f %.1fL%.1f %.1fL%.1f %.1fz", x+m, y+h, x+wide-m, y+h, x+wide/2, y+0.08*f.size)
		default:
			class, shape = "arrow down", fmt.Sprintf("M%.1f %.1fL%.1f %.1fL%.1f %.1fz", x+m, y+0.08*f.size, x+wide-m, y+0.08*f.size, x+wide/2, y+h)
		}
		c.Add("<path class=\"%s\" d=\"%s\" fill=\"%s\"><title>%s</title></path>\n", class, shape, s.color, escape(title))
		if s.label != "" && f.bundle == 1 && f.size >= 15 && textWidth(s.label, 8) <= wide {
			at := y + 0.5*f.size + 3.5
			if s.up {
				at = y + h - 1
			} else if !s.plain {
				at = y + 9
			}
			c.Text(x+wide/2, at, 8, "on", "middle", s.label)
		}
		x += wide
	}
}

// writeOther draws links that no table has a place for as a row of cells, and returns where it ends.
func (f *fabric) writeOther(c *canvas, y float64) float64 {
	if len(f.other) == 0 {
		return y
	}
	c.Text(margin, y+10, 11, "ink", "start", fmt.Sprintf("%d links beside the tables", len(f.other)))
	y += 18
	x, size, bundle := float64(margin), f.size, f.bundle
	f.size, f.bundle = max(6, min(f.size, 14)), 1
	for k, l := range f.other {
		if x+f.size > c.Width-20 {
			x, y = margin, y+f.size
		}
		if y+2*f.size > MaxHeight-20 {
			c.Text(x, y+f.size+10, 11, "ink", "start", fmt.Sprintf("and %d more", len(f.other)-k))
			y += f.size
			break
		}
		c.Add("<rect class=\"faint\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>%s</title></rect>", x+0.5, y+0.5, f.size-1, f.size-1, escape(f.p.links[l].title))
		f.writeCell(c, f.crossings([]int{l}), 1, x, y)
		x += f.size
	}
	y += f.size
	f.size, f.bundle = size, bundle
	return y
}
