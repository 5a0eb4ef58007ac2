package show

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// MaxHeight is the greatest height of a picture: three screens of 1080 pixels.
const MaxHeight = 3 * 1080

// canvas collects the parts of a picture. The picture needs no script, font or other file. Parts that
// have one of the classes below instead of a color can be read on light and on dark ground.
//
//	ink, dim     text, and text that matters less
//	halo         text on lines, with a rim in the color of the ground
//	pale, faint  lines and areas without a statement
type canvas struct {
	Title, Desc   string // for screen readers
	Width, Height float64

	body strings.Builder
}

// The classes are spelt out for both grounds, without variables, because not all programs that show SVG have these.
const style = `<style>
.bg{fill:#fff}.ink{fill:#1f2328}.dim{fill:#59636e}.faint{fill:#eceef1}.pale{fill:none;stroke:#c8cdd3}
.halo{fill:#1f2328;stroke:#fff;stroke-width:3;stroke-linejoin:round;paint-order:stroke}.on{fill:#fff;stroke:#000;stroke-opacity:.4;stroke-width:1.5;paint-order:stroke}.rim{stroke:#fff}.node{fill:#3d444d}.dot{fill:#c8cdd3}
@media (prefers-color-scheme:dark){
.bg{fill:#14171c}.ink{fill:#e6e9ed}.dim{fill:#9aa4af}.faint{fill:#262b33}.pale{fill:none;stroke:#4a525c}
.halo{fill:#e6e9ed;stroke:#14171c}.rim{stroke:#14171c}.node{fill:#b3bac2}.dot{fill:#4a525c}
}
</style>
`

// Add appends elements.
func (c *canvas) Add(format string, args ...any) { fmt.Fprintf(&c.body, format, args...) }

// Text appends a line of text, the anchor one of start, middle and end, y its base line.
func (c *canvas) Text(x, y, size float64, class, anchor, text string) {
	c.Add("<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.4g\" class=\"%s\" text-anchor=\"%s\">%s</text>\n", x, y, size, class, anchor, escape(text))
}

// Titled appends what add appends, with a title that shows under the pointer.
func (c *canvas) Titled(title string, add func()) {
	c.Add("<g><title>%s</title>", escape(title))
	add()
	c.Add("</g>\n")
}

// Write writes the picture.
func (c *canvas) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" font-family="sans-serif" font-size="12" role="img" aria-labelledby="title desc">
<title id="title">%s</title>
<desc id="desc">%s</desc>
%s<rect width="100%%" height="100%%" class="bg"/>
%s</svg>
`, c.Width, c.Height, c.Width, c.Height, escape(c.Title), escape(c.Desc), style, c.body.String())
	return err
}

// escape makes text fit for an element or an attribute.
func escape(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String()
}

// textWidth returns the greatest width of text of that size, about: fonts differ, so that it is rather too much.
func textWidth(s string, size float64) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune("iljtfrI.,:;'|!()[] -", r):
			w += 0.4
		case strings.ContainsRune("mwMW@%", r), r >= 0x2e80:
			w += 1
		case unicode.IsUpper(r):
			w += 0.72
		default:
			w += 0.6
		}
	}
	return w * size
}

// clipTo shortens text to a width.
func clipTo(s string, size, width float64) string {
	if textWidth(s, size) <= width {
		return s
	}
	runes := []rune(s)
	for len(runes) > 0 && textWidth(string(runes)+"…", size) > width {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// wrapText breaks text into lines of a width at most, between words.
func wrapText(s string, size, width float64) (lines []string) {
	line := ""
	for _, word := range strings.Fields(s) {
		switch more := line + " " + word; {
		case line == "":
			line = word
		case textWidth(more, size) <= width:
			line = more
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
