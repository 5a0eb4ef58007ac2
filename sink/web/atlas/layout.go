package atlas

import (
	"cmp"
	"math"
	"slices"
)

// layOut sets the places of the nodes of a map, and returns the method. The nodes of in and out are the same.
func layOut(in []Node, out []nodeDoc, links []linkDoc, index map[uint32]int) string {
	tiers, placed := 0, 0
	spots := map[[2]float64]bool{}
	for _, n := range in {
		if tierRow[n.Tier] != 0 {
			tiers++
		}
		if n.Placed {
			placed++
			spots[[2]float64{n.Longitude, n.Latitude}] = true
		}
	}
	switch {
	case tiers == len(in) && len(in) > 1:
		layTiers(out)
		return Tiers
	case 2*placed >= len(in) && len(spots) >= 3:
		layPlaces(in, out, links, index)
		return places
	}
	return Force
}

// tierRow is where the tiers of a fabric stand, counted from above.
var tierRow = map[string]int{"core": 1, "aggregation": 2, "edge": 3}

// layTiers puts the cores above, by planes, and the pods below them side by side, their aggregation switches above their
// edge switches. A switch is one unit wide.
func layTiers(nodes []nodeDoc) {
	type block struct{ rows [4][]int } // nodes by row
	pods, planes := map[int]*block{}, map[int]*block{}
	has := [4]bool{}
	for i := range nodes {
		row := tierRow[nodes[i].Tier]
		has[row] = true
		of, key := pods, nodes[i].Pod
		if row == 1 {
			of, key = planes, nodes[i].Plane
		}
		if of[key] == nil {
			of[key] = &block{}
		}
		of[key].rows[row] = append(of[key].rows[row], i)
	}
	line, y := [4]float64{}, 0.0
	for row := range line {
		if has[row] {
			line[row] = y
			y++
		}
	}
	const gap = 1.2 // between blocks
	order := func(of map[int]*block) (list []*block) {
		keys := make([]int, 0, len(of))
		for k := range of {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			list = append(list, of[k])
		}
		return list
	}
	widest := func(b *block) (w float64) {
		for _, row := range b.rows {
			w = max(w, float64(len(row)))
		}
		return w
	}
	total := func(list []*block) (w float64) {
		for _, b := range list {
			w += widest(b) + gap
		}
		return w - gap
	}
	below, above := order(pods), order(planes)
	width := max(total(below), total(above))
	for _, list := range [2][]*block{below, above} {
		if len(list) == 0 {
			continue
		}
		// The narrower half is stretched to the width of the other.
		stretch := 1.0
		if w := total(list); w > 0 && w < width {
			stretch = width / w
		}
		x := 0.0
		for _, b := range list {
			w := widest(b) * stretch
			for row, members := range b.rows {
				slices.SortStableFunc(members, func(i, j int) int { return cmp.Compare(i, j) })
				for k, i := range members {
					nodes[i].X, nodes[i].Y = round3(x+w*(float64(k)+0.5)/float64(len(members))), line[row]
				}
			}
			x += w + gap*stretch
		}
	}
}

func round3(v float64) float64 { return math.Round(v*1000) / 1000 }

// layPlaces puts nodes at their places on the earth. They are degrees to the east, narrowed by the cosine of the mean
// latitude, and degrees to the south. The widest stretch without a node becomes the edge of the map. Nodes without a
// known place are put amid their neighbours, and those in one place in a spiral around it.
func layPlaces(in []Node, out []nodeDoc, links []linkDoc, index map[uint32]int) {
	x, y, known := make([]float64, len(in)), make([]float64, len(in)), make([]bool, len(in))
	mean, count := 0.0, 0.0
	for i, n := range in {
		if n.Placed {
			x[i], y[i], known[i] = n.Longitude, -n.Latitude, true
			mean += n.Latitude
			count++
		}
	}
	unwrap(x, known)
	narrow := max(0.2, math.Cos(mean/count*math.Pi/180))
	for i := range x {
		x[i] *= narrow
	}
	amid(x, y, known, links, index)
	spread(x, y)
	for i := range out {
		out[i].X, out[i].Y = round3(x[i]), round3(y[i])
	}
}

// unwrap moves longitudes by 360 degrees such that the widest stretch without nodes is the edge.
func unwrap(lon []float64, known []bool) {
	var sorted []float64
	for i, ok := range known {
		if ok {
			sorted = append(sorted, lon[i])
		}
	}
	slices.Sort(sorted)
	edge, widest := sorted[0], sorted[0]+360-sorted[len(sorted)-1]
	for k := 1; k < len(sorted); k++ {
		if d := sorted[k] - sorted[k-1]; d > widest {
			edge, widest = sorted[k], d
		}
	}
	for i := range lon {
		if known[i] && lon[i] < edge {
			lon[i] += 360
		}
	}
}

// amid places each unknown node at the mean of its neighbours, from neighbour to neighbour, and otherwise at the mean
// of all.
func amid(x, y []float64, known []bool, links []linkDoc, index map[uint32]int) {
	beside := make([][]int, len(x))
	for _, l := range links {
		a, b := index[l.A], index[l.B]
		beside[a], beside[b] = append(beside[a], b), append(beside[b], a)
	}
	sum := func(list []int, known []bool) (sx, sy, n float64) {
		for _, j := range list {
			if known[j] {
				sx, sy, n = sx+x[j], sy+y[j], n+1
			}
		}
		return sx, sy, n
	}
	all := make([]int, len(x))
	for i := range all {
		all[i] = i
	}
	mx, my, mn := sum(all, known)
	known = slices.Clone(known)
	for changed := true; changed; {
		changed = false
		next := slices.Clone(known)
		for i := range x {
			if known[i] {
				continue
			}
			if sx, sy, n := sum(beside[i], known); n > 0 {
				x[i], y[i], next[i], changed = sx/n, sy/n, true, true
			}
		}
		known = next
	}
	for i, ok := range known {
		if !ok {
			x[i], y[i] = mx/mn, my/mn
		}
	}
}

// spread puts nodes that are in one place into a spiral around it.
func spread(x, y []float64) {
	extent := max(slices.Max(x)-slices.Min(x), slices.Max(y)-slices.Min(y))
	turns := map[[2]float64]int{}
	for i := range x {
		at := [2]float64{math.Round(x[i] / extent * 500), math.Round(y[i] / extent * 500)}
		k := turns[at]
		turns[at]++
		if k > 0 {
			r := 0.012 * extent * math.Sqrt(float64(k))
			x[i] += r * math.Cos(2.4*float64(k))
			y[i] += r * math.Sin(2.4*float64(k))
		}
	}
}
