package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/hopscope/hopscope/planner/draw"
	"github.com/hopscope/hopscope/planner/querymix"
)

// drawQueries draws the packets from left to right, each set as wide as its share, and the digest from bit 0 at the
// bottom upwards: who shares the bits. Names show under the pointer, and inside where they fit; below is a list of queries.
func drawQueries(w io.Writer, plan *querymix.Plan) error {
	const (
		left, top, width, height = 60, 64, 900, 320
		row                      = 22
		letter                   = 7.0 // width of one at 12 pixels, about
	)
	color := map[string]string{}
	for k := range plan.Queries {
		color[plan.Queries[k].Name] = draw.Color(k)
	}
	bit := float64(height) / float64(plan.Bits)
	full := top + height + 60 + row*len(plan.Queries) + 16
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", left+width+40, full, left+width+40, full)
	fmt.Fprintln(b, `<style>.in{fill:#fff;stroke:#000;stroke-opacity:.5;stroke-width:2;paint-order:stroke;pointer-events:none;text-anchor:middle}</style>`)
	fmt.Fprintln(b, `<rect width="100%" height="100%" fill="#fff"/>`)
	s := plan.Stats
	note := fmt.Sprintf("worst ratio of packets to goal %.4g, lower bound %.4g; epoch %d", s.Objective, s.LowerBound, plan.Epoch)
	if plan.Partial {
		note += "; partial"
	}
	fmt.Fprintf(b, `<text x="12" y="24" font-size="16">%d queries share %d bits of a packet</text><text x="12" y="44" fill="#555">%s</text>`+"\n", s.Queries, plan.Bits, escape(note))
	for n := 0; n <= plan.Bits; n += max(1, plan.Bits/8) {
		y := top + height - float64(n)*bit
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end" fill="#555">%d</text>`, left-8, y+4, n)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" fill="#555" transform="rotate(-90 16 %d)">bits</text>`+"\n", 16, top+height/2, top+height/2)
	x := float64(left)
	for _, set := range plan.Sets {
		wide := set.Share * width
		fmt.Fprintf(b, `<rect x="%.2f" y="%d" width="%.2f" height="%d" fill="#eee"><title>%s of packets: free bits</title></rect>`, x, top, wide, height, percent(set.Share))
		for _, slot := range set.Slots {
			y := top + height - float64(slot.Shift+slot.Bits)*bit
			high := float64(slot.Bits) * bit
			fmt.Fprintf(b, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s" stroke="#fff" stroke-width="%.1f"><title>%s: bits %d to %d of %s of packets</title></rect>`,
				x, y, wide, high, color[slot.Query], min(1, wide/4), escape(slot.Query), slot.Shift, slot.Shift+slot.Bits-1, percent(set.Share))
			if fits := int((wide - 6) / letter); high >= 14 && fits >= min(4, len([]rune(slot.Query))) {
				fmt.Fprintf(b, `<text x="%.1f" y="%.1f" class="in">%s</text>`, x+wide/2, y+high/2+4, escape(clip(slot.Query, fits)))
			}
		}
		if wide > 8*letter {
			fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, x+wide/2, top+height+18, percent(set.Share))
		}
		fmt.Fprintln(b)
		x += wide
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" fill="#555">share of packets</text>`+"\n", left+width/2, top+height+36)
	for k := range plan.Queries {
		q := &plan.Queries[k]
		y := top + height + 60 + row*k
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="14" height="14" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n", left, y, color[q.Name], left+22, y+12,
			escape(fmt.Sprintf("%s: %s bits on %s of packets; %.4g packets to the answer, %s", clip(q.Name, 40), queryWidth(q), percent(q.Share), q.Packets, compare(q))))
	}
	fmt.Fprintln(b, "</svg>")
	return b.Flush()
}
