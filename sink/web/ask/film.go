package ask

import (
	"fmt"
	"math"

	"github.com/hopscope/hopscope/sink/web/atlas"
)

// Film is a series of pictures of a network (INT-path, INFOCOM 2019, figure 6): one value of all directions of links in a
// series of windows. The cell at row a and column b is the value of the link from switch a to switch b, of parallel links the
// greatest. Neighbours are near each other ([atlas.Order]). A cell without a link or a report is absent, which is not zero.
type Film struct {
	Metric     string     `json:"metric"`
	Unit       string     `json:"unit"`
	Nodes      []FilmNode `json:"nodes"`          // of rows and columns, in their order
	Directions [][2]int   `json:"directions"`     // row and column of each direction of a link
	Windows    []int64    `json:"windows"`        // their ends in ms since 1970, oldest first
	Values     [][]Value  `json:"values"`         // of each window, by direction
	Omitted    int        `json:"omitted"`        // kept windows beyond the size of the answer
	Unplaced   int        `json:"hops_elsewhere"` // hops on no link of the map, as those to hosts
	Source     string     `json:"source"`         // of the map: topology, flows, or "" where there is none
}

// FilmNode is a switch: a row and a column.
type FilmNode struct {
	ID   uint32 `json:"id"`
	Name string `json:"name,omitempty"`
}

// tiers are those of a fabric as [atlas.Spot] counts them.
var tiers = map[string]int{"edge": 1, "aggregation": 2, "core": 3}

// NewFilm returns a film without windows of the links of a map. Its directions have the numbers that the map gives them.
func NewFilm(metric, unit string, m *atlas.Document) *Film {
	index := make(map[uint32]int, len(m.Nodes))
	spots := make([]atlas.Spot, len(m.Nodes))
	for i := range m.Nodes {
		n := &m.Nodes[i]
		index[n.ID] = i
		spots[i] = atlas.Spot{Tier: tiers[n.Tier], Pod: n.Pod, Plane: n.Plane}
	}
	directions := make([][2]int, 0, 2*len(m.Links))
	for i := range m.Links {
		a, b := index[m.Links[i].A], index[m.Links[i].B]
		directions = append(directions, [2]int{a, b}, [2]int{b, a})
	}
	f := &Film{Metric: metric, Unit: unit, Source: m.Source, Nodes: make([]FilmNode, len(spots)), Directions: directions}
	row := make([]int, len(spots))
	for at, i := range atlas.Order(spots, directions) {
		row[i] = at
		f.Nodes[at] = FilmNode{m.Nodes[i].ID, m.Nodes[i].Name}
	}
	for i := range directions {
		directions[i] = [2]int{row[directions[i][0]], row[directions[i][1]]}
	}
	return f
}

// Bounds of a film that is read from elsewhere.
const (
	maxNodes = 1 << 15
	maxCells = 1 << 30 // of the whole tensor: 4 GB
)

// Check returns the first contradiction in a film, which may come from anywhere.
func (f *Film) Check() error {
	n := len(f.Nodes)
	switch {
	case n > maxNodes:
		return fmt.Errorf("film: %d nodes, at most %d", n, maxNodes)
	case len(f.Values) != len(f.Windows):
		return fmt.Errorf("film: %d windows with values, of %d", len(f.Values), len(f.Windows))
	case n > 0 && len(f.Windows) > maxCells/(n*n):
		return fmt.Errorf("film: %d windows of %d x %d switches are too many values: request fewer windows", len(f.Windows), n, n)
	}
	for i, d := range f.Directions {
		if d[0] < 0 || d[0] >= n || d[1] < 0 || d[1] >= n {
			return fmt.Errorf("film: direction %d from %d to %d, of %d switches", i, d[0], d[1], n)
		}
	}
	for w, values := range f.Values {
		if len(values) != len(f.Directions) {
			return fmt.Errorf("film: window %d has %d values for %d directions", w, len(values), len(f.Directions))
		}
	}
	return nil
}

// Matrix returns window w as a matrix by rows. It overwrites dst where that has room. Absent cells are NaN.
func (f *Film) Matrix(w int, dst []float32) []float32 {
	n := len(f.Nodes)
	if cap(dst) < n*n {
		dst = make([]float32, n*n)
	}
	dst = dst[:n*n]
	for i := range dst {
		dst[i] = float32(math.NaN())
	}
	for i, d := range f.Directions {
		if at, v := d[0]*n+d[1], float32(f.Values[w][i]); !(dst[at] >= v) && v == v {
			dst[at] = v
		}
	}
	return dst
}

// Range returns the least and the greatest value of a film. It returns false for a film without values.
func (f *Film) Range() (least, greatest float32, ok bool) {
	for _, values := range f.Values {
		for _, v := range values {
			x := float32(v)
			switch {
			case x != x:
			case !ok:
				least, greatest, ok = x, x, true
			default:
				least, greatest = min(least, x), max(greatest, x)
			}
		}
	}
	return least, greatest, ok
}
