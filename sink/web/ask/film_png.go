package ask

import (
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
)

// Sizes of a picture in pixels.
const (
	side    = 768 // that a picture of few switches has at most
	maxCell = 24
)

// palette is that of a picture: 0 for an absent cell, 1 for a diagonal one, and levels from the least to the greatest
// value. Its lightness rises evenly, so that it reads the same in grey and for people that see few colours.
var palette = func() color.Palette {
	p := color.Palette{color.RGBA{0xff, 0xff, 0xff, 0xff}, color.RGBA{0xdd, 0xdd, 0xdd, 0xff}}
	stops := [][3]float64{{253, 231, 190}, {246, 173, 110}, {228, 103, 79}, {175, 41, 87}, {92, 15, 95}, {20, 8, 50}}
	for i := range levels {
		at := float64(i) / (levels - 1) * float64(len(stops)-1)
		k := min(int(at), len(stops)-2)
		part := at - float64(k)
		var c [3]uint8
		for j := range c {
			c[j] = uint8(math.Round(stops[k][j]*(1-part) + stops[k+1][j]*part))
		}
		p = append(p, color.RGBA{c[0], c[1], c[2], 0xff})
	}
	return p
}()

const levels = 254

// WritePNG writes window w as a picture, light for the least value of the film and dark for the greatest, by their
// logarithms. Row 0 is above, column 0 on the left; the diagonal is grey, and absent cells are white.
func (f *Film) WritePNG(out io.Writer, w int) error {
	n := len(f.Nodes)
	cell := max(1, min(maxCell, side/max(n, 1)))
	least, greatest, _ := f.Range()
	low, high := math.Log1p(float64(max(least, 0))), math.Log1p(float64(max(greatest, 0)))
	img := image.NewPaletted(image.Rect(0, 0, max(n*cell, 1), max(n*cell, 1)), palette)
	for i, v := range f.Matrix(w, nil) {
		index := uint8(0)
		switch {
		case v == v:
			at := 0.0
			if high > low {
				at = (math.Log1p(float64(max(v, 0))) - low) / (high - low)
			}
			index = uint8(2 + math.Round(at*(levels-1)))
		case i/n == i%n:
			index = 1
		default:
			continue
		}
		for y := range cell {
			row := img.Pix[(i/n*cell+y)*img.Stride+i%n*cell:]
			for x := range cell {
				row[x] = index
			}
		}
	}
	return png.Encode(out, img)
}
