package digests

import (
	"bufio"
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"strings"

	"github.com/hopscope/hopscope/bench/harness"
)

// Chart is a plot of lines, drawn as self-contained SVG.
type Chart struct {
	File   string // without extension
	Title  string
	X, Y   string // labels of the axes
	logX   bool
	logY   bool
	Series []Series

	Width, Height int // px; 0 are 720 and 400
}

// Series is a line of a chart.
type Series struct {
	Name   string
	X, Y   []float64
	dashed bool // published, not ours
}

// okabe are the colors of M. Okabe and K. Ito, "Color Universal Design", 2008: distinguishable with any kind of
// sight. Their yellow is darker here, and there is a grey.
var okabe = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#a8a100", "#999999"}

const (
	chartWidth, chartHeight = 720, 400
	chartLeft, chartRight   = 64, 230
	chartTop, chartBottom   = 40, 48
)

// axis maps values to pixels.
type axis struct {
	low, high float64
	log       bool
	from, to  float64
}

func (a *axis) at(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		low, high, v = math.Log10(low), math.Log10(high), math.Log10(max(v, a.low))
	}
	return a.from + (v-low)/(high-low)*(a.to-a.from)
}

// ticks are about six round values, or for logarithms the powers of ten and values between.
func (a *axis) ticks() []float64 {
	var t []float64
	if a.log {
		between := []float64{1, 2, 5}
		if a.high > 1e4*a.low {
			between = between[:1]
		}
		for p := math.Pow(10, math.Floor(math.Log10(a.low))); p <= a.high*1.0001; p *= 10 {
			for _, m := range between {
				if v := p * m; v >= a.low*0.9999 && v <= a.high*1.0001 {
					t = append(t, v)
				}
			}
		}
		return t
	}
	step := math.Pow(10, math.Floor(math.Log10((a.high-a.low)/6)))
	for _, m := range []float64{1, 2, 5, 10} {
		if (a.high-a.low)/(step*m) <= 7 {
			step *= m
			break
		}
	}
	for k := math.Ceil(a.low / step); k*step <= a.high*1.0001; k++ {
		t = append(t, k*step)
	}
	return t
}

// Write draws the chart.
func (c *Chart) Write(w io.Writer) error {
	width, height := cmp.Or(c.Width, chartWidth), cmp.Or(c.Height, chartHeight)
	x, y := c.axes(width, height)
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="#333">`+"\n", width, height)
	fmt.Fprintf(b, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"%d\" y=\"22\" font-size=\"15\">%s</text>\n", chartLeft, html.EscapeString(c.Title))
	for _, t := range x.ticks() {
		fmt.Fprintf(b, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#ddd\"/><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", x.at(t), y.from, y.to, x.at(t), y.from+16, harness.Number(t))
	}
	for _, t := range y.ticks() {
		fmt.Fprintf(b, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#ddd\"/><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", x.from, y.at(t), x.to, x.from-6, y.at(t)+4, harness.Number(t))
	}
	fmt.Fprintf(b, "<path d=\"M%.1f %.1fV%.1fH%.1f\" fill=\"none\" stroke=\"#333\"/>\n", x.from, y.to, y.from, x.to)
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", (x.from+x.to)/2, height-10, html.EscapeString(c.X))
	fmt.Fprintf(b, "<text transform=\"translate(16 %.1f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n", (y.from+y.to)/2, html.EscapeString(c.Y))
	for i, s := range c.Series {
		var line strings.Builder
		pen := byte('M')
		for j := range s.X {
			if c.logY && s.Y[j] <= 0 || math.IsNaN(s.Y[j]) {
				pen = 'M'
				continue
			}
			fmt.Fprintf(&line, "%c%.1f %.1f", pen, x.at(s.X[j]), y.at(s.Y[j]))
			pen = 'L'
		}
		style := fmt.Sprintf(`fill="none" stroke="%s" stroke-width="2"`, okabe[i%len(okabe)])
		if s.dashed {
			style += ` stroke-dasharray="6 3"`
		}
		at := chartTop + 12 + 20*i
		fmt.Fprintf(b, "<path d=\"%s\" %s/>\n", line.String(), style)
		fmt.Fprintf(b, "<path d=\"M%d %dh24\" %s/><text x=\"%d\" y=\"%d\">%s</text>\n", width-chartRight+14, at, style, width-chartRight+44, at+4, html.EscapeString(s.Name))
	}
	fmt.Fprintln(b, "</svg>")
	return b.Flush()
}

// axes begin at 0, or where the smallest value is if they are logarithmic.
func (c *Chart) axes(width, height int) (x, y axis) {
	x = axis{low: math.Inf(1), high: math.Inf(-1), from: chartLeft, to: float64(width - chartRight), log: c.logX}
	y = axis{low: math.Inf(1), high: math.Inf(-1), from: float64(height - chartBottom), to: chartTop, log: c.logY}
	for _, s := range c.Series {
		for j := range s.X {
			x.low, x.high = min(x.low, s.X[j]), max(x.high, s.X[j])
			if v := s.Y[j]; !math.IsNaN(v) && (v > 0 || !c.logY) {
				y.low, y.high = min(y.low, v), max(y.high, v)
			}
		}
	}
	if !c.logY {
		y.low = min(y.low, 0)
	}
	for _, a := range []*axis{&x, &y} {
		if !(a.low < a.high) { // one value or none
			if math.IsInf(a.low, 0) {
				a.low = 1
			}
			a.high = a.low + 1
		}
	}
	return x, y
}
