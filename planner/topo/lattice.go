package topo

import "fmt"

// Grid generates switches in rows and columns, each joined to its neighbours in the row and in the column. Names are
// n-ROW-COLUMN, counted from 0, and nodes are numbered row by row.
func Grid(rows, columns int) (*Graph, error) { return lattice("grid", rows, columns, false) }

// Torus is a grid in which the last of every row and column is joined to the first as well. In a row or column of two
// these are parallel links, and in one of a single switch a link from the switch to itself.
func Torus(rows, columns int) (*Graph, error) { return lattice("torus", rows, columns, true) }

func lattice(kind string, rows, columns int, wrap bool) (*Graph, error) {
	name := fmt.Sprintf("%s:%d,%d", kind, rows, columns)
	switch {
	case rows < 1 || columns < 1:
		return nil, fmt.Errorf("topology %s: at least one row and one column are needed", name)
	case rows > MaxNodes || columns > MaxNodes || rows*columns > MaxNodes:
		return nil, fmt.Errorf("topology %s: more than %d nodes", name, MaxNodes)
	}
	b := NewBuilder(name)
	for r := range rows {
		for c := range columns {
			b.AddNode(fmt.Sprintf("n-%d-%d", r, c), NoTier)
		}
	}
	for r := range rows {
		for c := range columns {
			from := LinkEnd{Node: r*columns + c}
			if wrap || c+1 < columns {
				b.AddLink(from, LinkEnd{Node: r*columns + (c+1)%columns})
			}
			if wrap || r+1 < rows {
				b.AddLink(from, LinkEnd{Node: (r+1)%rows*columns + c})
			}
		}
	}
	return b.Build()
}
