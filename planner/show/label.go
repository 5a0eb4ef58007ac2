package show

import "math"

// box is an area of a picture, in its pixels.
type box struct{ Left, Top, Right, Bottom float64 }

func (b box) meets(o box) bool {
	return b.Left < o.Right && o.Left < b.Right && b.Top < o.Bottom && o.Top < b.Bottom
}

// spot is a place for a label: x and base line, and whether x is its start, middle or end.
type spot struct {
	X, Y   float64
	Anchor string
}

// labelPlaces puts labels on free places. The first one to request a place gets it.
type labelPlaces struct {
	bounds       box
	taken, lines map[[2]int][]box // by tile
}

// newLabelPlaces starts with an empty area.
func newLabelPlaces(bounds box) *labelPlaces {
	return &labelPlaces{bounds, map[[2]int][]box{}, map[[2]int][]box{}}
}

const tile = 64 // pixels

// tiles calls each with every tile that b touches.
func tiles(b box, each func(t [2]int) bool) bool {
	for x := int(math.Floor(b.Left / tile)); x <= int(math.Floor(b.Right/tile)); x++ {
		for y := int(math.Floor(b.Top / tile)); y <= int(math.Floor(b.Bottom/tile)); y++ {
			if !each([2]int{x, y}) {
				return false
			}
		}
	}
	return true
}

// Block keeps labels away from b.
func (l *labelPlaces) Block(b box) { put(l.taken, b) }

func put(boxes map[[2]int][]box, b box) {
	tiles(b, func(t [2]int) bool {
		boxes[t] = append(boxes[t], b)
		return true
	})
}

// along makes labels keep away from a line where they can.
func (l *labelPlaces) along(x1, y1, x2, y2 float64) {
	const step = 8
	n := int(math.Hypot(x2-x1, y2-y1)/step) + 1
	for k := range n {
		at := (float64(k) + 0.5) / float64(n)
		x, y := x1+(x2-x1)*at, y1+(y2-y1)*at
		put(l.lines, box{x - step/4, y - step/4, x + step/4, y + step/4})
	}
}

// Free reports whether nothing is in b, and b within the bounds.
func (l *labelPlaces) Free(b box) bool {
	if b.Left < l.bounds.Left || b.Top < l.bounds.Top || b.Right > l.bounds.Right || b.Bottom > l.bounds.Bottom {
		return false
	}
	return count(l.taken, b) == 0
}

// count is how many of the boxes b meets.
func count(boxes map[[2]int][]box, b box) (n int) {
	tiles(b, func(t [2]int) bool {
		for _, o := range boxes[t] {
			if b.meets(o) {
				n++
			}
		}
		return true
	})
	return n
}

// Place takes the first spot where text of that size fits and lies on the fewest lines. The result ok reports whether
// there is one.
func (l *labelPlaces) Place(text string, size float64, spots ...spot) (best spot, ok bool) {
	least := 0
	for _, s := range spots {
		s.X, s.Y = math.Round(10*s.X)/10, math.Round(10*s.Y)/10 // as it is written
		b := textBox(text, size, s)
		if !l.Free(b) {
			continue
		}
		if n := count(l.lines, b); !ok || n < least {
			best, least, ok = s, n, true
		}
		if least == 0 {
			break
		}
	}
	if ok {
		l.Block(textBox(text, size, best))
	}
	return best, ok
}

// textBox is the area of text at a spot.
func textBox(text string, size float64, s spot) box {
	w := textWidth(text, size)
	b := box{Left: s.X, Top: s.Y - 0.85*size, Bottom: s.Y + 0.25*size}
	switch s.Anchor {
	case "middle":
		b.Left -= w / 2
	case "end":
		b.Left -= w
	}
	b.Right = b.Left + w
	return b
}

// around are the spots for the label of a disc: above, below, at its sides and at its corners.
func around(x, y, r, size float64) []spot {
	d := 0.75 * r
	return []spot{
		{x, y - r - 4, "middle"}, {x, y + r + size, "middle"}, {x + r + 4, y + 0.35*size, "start"}, {x - r - 4, y + 0.35*size, "end"},
		{x + d + 2, y - d - 2, "start"}, {x - d - 2, y - d - 2, "end"}, {x + d + 2, y + d + 0.8*size, "start"}, {x - d - 2, y + d + 0.8*size, "end"},
		{x, y - r - 4 - 1.2*size, "middle"}, {x, y + r + 2.2*size, "middle"},
	}
}
