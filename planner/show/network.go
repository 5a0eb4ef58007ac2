package show

import (
	"cmp"
	"math"
	"slices"
)

// lane is one of the strokes between two nodes, a and b, a being the one with the lower number.
type lane struct {
	hop
	way   int  // 1 from a to b, -1 back, 0 without a direction
	plain bool // the link itself: nothing passes it
	paint string
}

// writeNetwork draws nodes as discs and links as lines.
func (p *picture) writeNetwork(c *canvas) {
	f := place(p.g)
	c.Width, c.Height = f.width+2*margin, f.height+2*margin+head
	x, y := f.x, f.y
	for v := range x {
		x[v], y[v] = margin+x[v]*f.width, head+margin+y[v]*f.height
	}
	radius := 7.0
	if len(x) > 150 {
		radius = 4
	}
	labels := newLabelPlaces(box{4, head, c.Width - 4, c.Height - 4})
	for v := range x {
		labels.Block(box{x[v] - radius, y[v] - radius, x[v] + radius, y[v] + radius})
	}
	between := p.lanes()
	pairs := make([][2]int, 0, len(between))
	for pair := range between {
		pairs = append(pairs, pair)
	}
	slices.SortFunc(pairs, func(s, t [2]int) int { return cmp.Or(s[0]-t[0], s[1]-t[1]) })
	var numbers []numbered
	for _, pair := range pairs {
		a, b := pair[0], pair[1]
		if a == b {
			loops(c, between[pair], x[a], y[a], radius)
			continue
		}
		numbers = append(numbers, strokes(c, between[pair], x[a], y[a], x[b], y[b], radius)...)
		labels.along(x[a], y[a], x[b], y[b])
	}
	for v := range x {
		p.node(c, v, x[v], y[v], radius)
	}
	p.names(c, labels, x, y, radius)
	for _, n := range numbers {
		if s, ok := labels.Place(n.text, 9, n.spots...); ok {
			c.Text(s.X, s.Y, 9, "halo", s.Anchor, n.text)
		}
	}
}

// lanes collects the strokes between every two nodes. Backward strokes come first, then those without a direction, then
// forward ones, so that traffic keeps to the right.
func (p *picture) lanes() map[[2]int][]lane {
	between := map[[2]int][]lane{}
	for l := range p.links {
		i, j := p.g.Ends(l)
		u, v := p.g.Node(i), p.g.Node(j)
		pair := [2]int{min(u, v), max(u, v)}
		if len(p.hops[l]) == 0 {
			m := p.links[l]
			between[pair] = append(between[pair], lane{hop: hop{color: m.color, title: m.title}, plain: true})
		}
		for _, h := range p.hops[l] {
			way := -1
			if h.forward == (u <= v) {
				way = 1
			}
			h.title = p.g.LinkName(l) + ": " + h.title
			between[pair] = append(between[pair], lane{hop: h, way: way})
		}
	}
	for _, list := range between {
		slices.SortStableFunc(list, func(s, t lane) int { return s.way - t.way })
		for k := range list {
			list[k].paint = stroke(list[k].color)
		}
	}
	return between
}

// numbered is a label of a stroke that waits for its place.
type numbered struct {
	text  string
	spots []spot
}

// strokes draws lanes side by side from (ax, ay) to (bx, by).
func strokes(c *canvas, list []lane, ax, ay, bx, by, radius float64) (numbers []numbered) {
	length := math.Hypot(bx-ax, by-ay) + 1e-9
	dx, dy := (bx-ax)/length, (by-ay)/length
	gap := min(7, 28/float64(len(list)))
	width := max(0.8, min(2.2, 0.55*gap))
	trim := min(radius+1, 0.3*length)
	for k, s := range list {
		off := (float64(k) - float64(len(list)-1)/2) * gap
		ox, oy := -dy*off, dx*off // to the right of the way from a to b
		x1, y1, x2, y2 := ax+ox+dx*trim, ay+oy+dy*trim, bx+ox-dx*trim, by+oy-dy*trim
		ux, uy := dx, dy
		if s.way < 0 {
			x1, y1, x2, y2, ux, uy = x2, y2, x1, y1, -dx, -dy
		}
		c.Add("<g fill=\"none\" stroke-width=\"%.1f\" %s><title>%s</title><path class=\"lane\" d=\"M%.1f %.1fL%.1f %.1f\"/>", width, s.paint, escape(s.title), x1, y1, x2, y2)
		if s.way != 0 {
			size := max(2.5, min(5.5, 0.9*gap, 0.25*length))
			// Arrows of neighbouring lanes stand one behind the other where lanes are close.
			at := 0.66 + 0.07*float64(k%3-1)
			mx, my := x1+(x2-x1)*at, y1+(y2-y1)*at
			arrow(c, mx, my, ux, uy, size, s.color)
			if s.start {
				c.Add("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\" stroke=\"none\"/>", x1+ux*3, y1+uy*3, max(2.5, 1.8*width), s.color)
			}
			if s.label != "" && length > 30 {
				numbers = append(numbers, numbered{s.label, beside(x1, y1, x2, y2, ux, uy)})
			}
		}
		c.Add("</g>\n")
	}
	return numbers
}

// beside are spots for the number of a stroke: close to its start rather than to its end, on its right, then on its left.
func beside(x1, y1, x2, y2, ux, uy float64) (spots []spot) {
	for _, at := range [...]float64{0.36, 0.24, 0.46, 0.72} {
		x, y := x1+(x2-x1)*at, y1+(y2-y1)*at
		for _, side := range [...]float64{7, -7} {
			spots = append(spots, spot{x - uy*side, y + ux*side + 3, "middle"})
		}
	}
	return spots
}

// arrow draws a head at (x, y) that points to (ux, uy).
func arrow(c *canvas, x, y, ux, uy, size float64, color string) {
	c.Add("<path class=\"arrow\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fz\" fill=\"%s\" stroke=\"none\"/>",
		x+ux*size, y+uy*size, x-ux*size-uy*size*0.8, y-uy*size+ux*size*0.8, x-ux*size+uy*size*0.8, y-uy*size-ux*size*0.8, color)
}

// loops draws links from a node to itself, one around the other. All of them go round the same way.
func loops(c *canvas, list []lane, x, y, radius float64) {
	for k, s := range list {
		r := radius + 8 + float64(k)*min(5, 40/float64(len(list)))
		c.Add("<g fill=\"none\" stroke-width=\"1.6\" %s><title>%s</title><path class=\"lane\" d=\"M%.1f %.1fc%.1f %.1f %.1f %.1f 0 0\"/>", s.paint, escape(s.title), x, y, -1.4*r, -2*r, 1.4*r, -2*r)
		if s.way != 0 {
			arrow(c, x, y-1.5*r, 1, 0, 3.5, s.color)
		}
		c.Add("</g>\n")
	}
}

// names writes the names of nodes where they fit: first nodes with a mark of the plan, then those with many links.
func (p *picture) names(c *canvas, labels *labelPlaces, x, y []float64, radius float64) {
	order := make([]int, len(x))
	for v := range order {
		order[v] = v
	}
	labelled := func(v int) int {
		if p.nodes[v].color != "" {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(u, v int) int {
		return cmp.Or(labelled(v)-labelled(u), p.g.Degree(v)-p.g.Degree(u))
	})
	for _, v := range order {
		name := clipTo(p.g.NodeName(v), 10, 160)
		if s, ok := labels.Place(name, 10, around(x[v], y[v], radius, 10)...); ok {
			c.Text(s.X, s.Y, 10, "halo", s.Anchor, name)
		}
	}
}
