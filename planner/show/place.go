package show

import (
	"fmt"
	"math"

	"github.com/hopscope/hopscope/planner/topo"
)

// frame holds the positions of nodes, from 0 to 1 each, in an area of that many pixels.
type frame struct {
	x, y          []float64
	width, height float64
}

const (
	maxWidth = 2000 // of the area of nodes
	maxSide  = 1400 // its height
)

// place sets the position of every node.
func place(g *topo.Graph) (f frame) {
	n := float64(g.NumNodes())
	side := min(max(440, 105*math.Sqrt(n)), maxSide)
	switch {
	case tiered(g):
		f.x, f.y = layers(g)
		most := 0.0
		for _, c := range tierCounts(g) {
			most = max(most, float64(c))
		}
		return frame{f.x, f.y, min(max(520, 64*most), maxWidth), 520}
	case mapped(g, &f, side), gridded(g, &f):
		return f
	}
	f.x, f.y = forces(g)
	f.width, f.height = min(1.4*side, maxWidth), side
	return f
}

// gridded places the nodes of generated grids in rows and columns, from the names of the graphs. In a torus the links
// that lead back would cover the others.
func gridded(g *topo.Graph, f *frame) bool {
	var rows, columns int
	if n, err := fmt.Sscanf(g.Name(), "grid:%d,%d", &rows, &columns); n != 2 || err != nil || rows*columns != g.NumNodes() {
		return false
	}
	step := min(90, maxWidth/float64(columns), maxSide/float64(rows))
	f.width, f.height = max(300, step*float64(columns)), max(200, step*float64(rows))
	for v := range g.NumNodes() {
		f.x = append(f.x, (float64(v%columns)+0.5)/float64(columns))
		f.y = append(f.y, (float64(v/columns)+0.5)/float64(rows))
	}
	return true
}

// tiered reports whether all nodes have a tier.
func tiered(g *topo.Graph) bool {
	for v := range g.NumNodes() {
		if g.Tier(v) == topo.NoTier {
			return false
		}
	}
	return g.NumNodes() > 1
}

func tierCounts(g *topo.Graph) (count [topo.Core + 1]int) {
	for v := range g.NumNodes() {
		count[g.Tier(v)]++
	}
	return count
}

// layers puts every tier on a line, the nodes in the order of their numbers, which in generated fabrics is by pods.
func layers(g *topo.Graph) (x, y []float64) {
	n := g.NumNodes()
	x, y = make([]float64, n), make([]float64, n)
	count := tierCounts(g)
	var next [topo.Core + 1]int
	line := [...]float64{topo.Edge: 1, topo.Aggregation: 0.5, topo.Core: 0}
	for v := range n {
		t := g.Tier(v)
		x[v], y[v] = (float64(next[t])+0.5)/float64(count[t]), line[t]
		next[t]++
	}
	return x, y
}

// rounds is how often the forces act; every round costs the square of the number of nodes.
const rounds = 20_000_000

// forces starts from a spiral and lets links pull and nodes push, ever more gently.
func forces(g *topo.Graph) (x, y []float64) {
	n := g.NumNodes()
	x, y = make([]float64, n), make([]float64, n)
	for v := range n {
		r := math.Sqrt((float64(v) + 0.5) / float64(n))
		x[v], y[v] = r*math.Cos(2.4*float64(v)), r*math.Sin(2.4*float64(v))
	}
	dx, dy := make([]float64, n), make([]float64, n)
	k := 2 / math.Sqrt(float64(n)) // the distance at which pull and push are equal
	steps := min(300, max(20, rounds/(n*n+1)))
	for step := range steps {
		clear(dx)
		clear(dy)
		for u := range n {
			for v := range u {
				ax, ay := x[u]-x[v], y[u]-y[v]
				f := k * k / (ax*ax + ay*ay + 1e-6)
				dx[u] += ax * f
				dy[u] += ay * f
				dx[v] -= ax * f
				dy[v] -= ay * f
			}
		}
		for l := range g.NumLinks() {
			i, j := g.Ends(l)
			u, v := g.Node(i), g.Node(j)
			ax, ay := x[u]-x[v], y[u]-y[v]
			f := math.Hypot(ax, ay) / k
			dx[u] -= ax * f
			dy[u] -= ay * f
			dx[v] += ax * f
			dy[v] += ay * f
		}
		heat := 0.15 * (1 - float64(step)/float64(steps))
		for v := range n {
			// A weak pull to the middle keeps components together.
			ax, ay := dx[v]-0.05*x[v], dy[v]-0.05*y[v]
			d := math.Hypot(ax, ay) + 1e-9
			x[v] += ax / d * min(d, heat)
			y[v] += ay / d * min(d, heat)
		}
	}
	stretch(x)
	stretch(y)
	return x, y
}

// stretch maps values to 0..1.
func stretch(x []float64) {
	lo, hi := x[0], x[0]
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	for i := range x {
		if hi > lo {
			x[i] = (x[i] - lo) / (hi - lo)
		} else {
			x[i] = 0.5
		}
	}
}
