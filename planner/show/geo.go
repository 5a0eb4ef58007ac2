package show

import (
	"cmp"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/topo"
)

// mapped places nodes as on a map if at least half of them have coordinates, at three distinct places or more. Nodes
// without coordinates are placed amid their neighbours.
func mapped(g *topo.Graph, f *frame, side float64) bool {
	n := g.NumNodes()
	lon, lat, known := make([]float64, n), make([]float64, n), make([]bool, n)
	places, count := map[topo.Place]bool{}, 0
	for v := range n {
		p, ok := g.Place(v)
		if !ok {
			continue
		}
		lon[v], lat[v], known[v] = p.Longitude, p.Latitude, true
		places[p] = true
		count++
	}
	if 2*count < n || len(places) < 3 {
		return false
	}
	unwrap(lon, known)
	amid(g, lon, known)
	amid(g, lat, known)
	middle := 0.0
	for _, v := range lat {
		middle += v / float64(n)
	}
	narrow := max(0.2, math.Cos(middle*math.Pi/180)) // of a degree of longitude against one of latitude
	for v := range n {
		lon[v] *= narrow
		lat[v] = -lat[v]
	}
	// The shape is that of the region, within reason.
	ratio := min(2.2, max(0.6, extent(lon)/max(extent(lat), 1e-9)))
	f.width = min(side*math.Sqrt(1.4*ratio), maxWidth)
	f.height = min(side*math.Sqrt(1.4/ratio), maxSide)
	f.x, f.y = even(lon), even(lat)
	apart(g, f)
	return true
}

// unwrap moves longitudes by 360 degrees such that the widest stretch without nodes is the edge of the map.
func unwrap(lon []float64, known []bool) {
	var sorted []float64
	for v, ok := range known {
		if ok {
			sorted = append(sorted, lon[v])
		}
	}
	slices.Sort(sorted)
	edge, widest := sorted[0], sorted[0]+360-sorted[len(sorted)-1]
	for k := range sorted[1:] {
		if d := sorted[k+1] - sorted[k]; d > widest {
			edge, widest = sorted[k+1], d
		}
	}
	for v := range lon {
		if known[v] && lon[v] < edge {
			lon[v] += 360
		}
	}
}

// amid sets unknown values to the mean of the neighbours, from neighbour to neighbour, or else to that of all.
func amid(g *topo.Graph, value []float64, known []bool) {
	known = slices.Clone(known)
	mean, count := 0.0, 0.0
	for v, ok := range known {
		if ok {
			mean += value[v]
			count++
		}
	}
	mean /= count
	for changed := true; changed; {
		changed = false
		next := slices.Clone(known)
		for v := range value {
			if known[v] {
				continue
			}
			sum, n := 0.0, 0.0
			lo, hi := g.Interfaces(v)
			for i := lo; i < hi; i++ {
				if w := g.Neighbor(i); w >= 0 && known[w] {
					sum += value[w]
					n++
				}
			}
			if n > 0 {
				value[v], next[v], changed = sum/n, true, true
			}
		}
		known = next
	}
	for v, ok := range known {
		if !ok {
			value[v] = mean
		}
	}
}

func extent(v []float64) float64 { return slices.Max(v) - slices.Min(v) }

// even maps values to 0..1, half by value and half by rank. Regions with many nodes get more room, and the order stays.
func even(value []float64) []float64 {
	n := len(value)
	order := make([]int, n)
	for v := range order {
		order[v] = v
	}
	slices.SortStableFunc(order, func(u, v int) int { return cmp.Compare(value[u], value[v]) })
	rank := make([]float64, n)
	for k := 0; k < n; {
		end := k
		for end < n && value[order[end]] == value[order[k]] {
			end++
		}
		for _, v := range order[k:end] {
			rank[v] = float64(k+end-1) / 2
		}
		k = end
	}
	out := slices.Clone(value)
	stretch(out)
	stretch(rank)
	for v := range out {
		out[v] = (out[v] + rank[v]) / 2
	}
	stretch(out)
	return out
}

// apart pushes nodes from each other that would cover each other.
func apart(g *topo.Graph, f *frame) {
	n := len(f.x)
	for v := range n {
		f.x[v] *= f.width
		f.y[v] *= f.height
	}
	least := min(46, 0.7*math.Sqrt(f.width*f.height/float64(n)))
	swirl(g, f, 0.75*least)
	x, y := f.x, f.y
	for range min(200, max(10, 40_000_000/(n*n+1))) {
		moved := false
		for u := range n {
			for v := range u {
				dx, dy := x[u]-x[v], y[u]-y[v]
				d := math.Hypot(dx, dy)
				if d >= least {
					continue
				}
				if d < 1e-6 {
					dx, d = 1e-6, 1e-6
				}
				push := (least - d + 0.5) / 2 / d
				x[u] += dx * push
				y[u] += dy * push
				x[v] -= dx * push
				y[v] -= dy * push
				moved = true
			}
		}
		if !moved {
			break
		}
	}
	stretch(x)
	stretch(y)
}

// swirl puts nodes that are in one place into a spiral around it, the ones with most links inside.
func swirl(g *topo.Graph, f *frame, step float64) {
	order := make([]int, len(f.x))
	for v := range order {
		order[v] = v
	}
	slices.SortStableFunc(order, func(u, v int) int {
		return cmp.Or(cmp.Compare(f.x[u], f.x[v]), cmp.Compare(f.y[u], f.y[v]), g.Degree(v)-g.Degree(u))
	})
	x, y, turn := 0.0, 0.0, 0
	for k, v := range order {
		if k == 0 || f.x[v] != x || f.y[v] != y {
			x, y, turn = f.x[v], f.y[v], 0
			continue
		}
		turn++
		r := step * math.Sqrt(float64(turn))
		f.x[v], f.y[v] = x+r*math.Cos(2.4*float64(turn)), y+r*math.Sin(2.4*float64(turn))
	}
}
