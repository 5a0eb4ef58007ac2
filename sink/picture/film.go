package picture

import (
	"fmt"
	"math"

	"github.com/hopscope/hopscope/sink/web/ask"
)

// Film holds one value of all directions of links in a series of windows.
type Film struct {
	Metric     string        `json:"metric"`
	Unit       string        `json:"unit"`
	Nodes      []Node        `json:"nodes"`          // of rows and columns, in their order
	Directions [][2]int      `json:"directions"`     // row and column of each direction of a link
	Windows    []int64       `json:"windows"`        // their ends in ms since 1970, oldest first
	Values     [][]ask.Value `json:"values"`         // of each window, by direction
	Omitted    int           `json:"omitted"`        // windows that were kept, and would make the answer too large
	Unplaced   int           `json:"hops_elsewhere"` // hops that are on no link of the map, as those to hosts
	Source     string        `json:"source"`         // of the map: topology, flows, or "" where there is none
}

// Node is a switch.
type Node struct {
	ID   uint32 `json:"id"`
	Name string `json:"name,omitempty"`
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
