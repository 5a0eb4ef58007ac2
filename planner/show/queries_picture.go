package show

import (
	"fmt"
	"io"

	"github.com/hopscope/hopscope/planner/querymix"
)

// DrawQueries draws the packets from left to right, each set as wide as its share. The digest goes from bit 0 at the
// bottom upwards, with the queries that share the bits. Names show under the pointer, and inside where they fit; below
// is a list of queries.
func DrawQueries(w io.Writer, plan *querymix.Plan) error {
	const (
		left, top, width, height = 60, 64, 900, 320
		row, most                = 22, 100 // in the list of queries
	)
	color := map[string]string{}
	for k := range plan.Queries {
		color[plan.Queries[k].Name] = palette(k)
	}
	bit := float64(height) / float64(plan.Bits)
	s := plan.Stats
	note := fmt.Sprintf("worst ratio of packets to goal %.4g, lower bound %.4g; epoch %d", s.Objective, s.LowerBound, plan.Epoch)
	if plan.Partial {
		note += "; partial"
	}
	c := &canvas{Title: fmt.Sprintf("%d queries share %d bits of a packet", s.Queries, plan.Bits), Width: left + width + 40}
	c.Desc = note + ". From left to right the packets, from the bottom up the bits of the digest."
	c.Text(12, 24, 16, "ink", "start", c.Title)
	c.Text(12, 44, 12, "dim", "start", clipTo(note, 12, c.Width-24))
	for n := 0; n <= plan.Bits; n += max(1, plan.Bits/8) {
		c.Text(left-8, top+height-float64(n)*bit+4, 12, "dim", "end", fmt.Sprint(n))
	}
	c.Add(`<text x="%d" y="%d" text-anchor="middle" class="dim" transform="rotate(-90 16 %d)">bits</text>`+"\n", 16, top+height/2, top+height/2)
	x := float64(left)
	for _, set := range plan.Sets {
		wide := set.Share * width
		c.Add(`<rect x="%.2f" y="%d" width="%.2f" height="%d" class="faint"><title>%s of packets: free bits</title></rect>`+"\n", x, top, wide, height, percent(set.Share))
		for _, slot := range set.Slots {
			y := top + height - float64(slot.Shift+slot.Bits)*bit
			high := float64(slot.Bits) * bit
			c.Titled(fmt.Sprintf("%s: bits %d to %d of %s of packets", slot.Query, slot.Shift, slot.Shift+slot.Bits-1, percent(set.Share)), func() {
				c.Add(`<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s" class="rim" stroke-width="%.1f"/>`, x, y, wide, high, color[slot.Query], min(1, wide/4))
				if name := clipTo(slot.Query, 12, wide-6); high >= 14 && (wide > 42 || name == slot.Query) {
					c.Text(x+wide/2, y+high/2+4, 12, "on", "middle", name)
				}
			})
		}
		if text := percent(set.Share); wide > textWidth(text, 12)+4 {
			c.Text(x+wide/2, top+height+18, 12, "ink", "middle", text)
		}
		x += wide
	}
	c.Text(left+width/2, top+height+38, 12, "dim", "middle", "share of packets")
	y := float64(top + height + 60)
	for k := range plan.Queries {
		if k == most-1 && len(plan.Queries) > most {
			c.Text(left+22, y+12, 12, "dim", "start", fmt.Sprintf("and %d more", len(plan.Queries)-k))
			y += row
			break
		}
		q := &plan.Queries[k]
		text := fmt.Sprintf("%s: %s on %s of packets; %.4g packets to the answer, %s", clip(q.Name, 40), inBits(q.Width()), percent(q.Share), q.Packets, compare(q))
		c.Add(`<rect x="%d" y="%.0f" width="14" height="14" fill="%s"/>`, left, y, color[q.Name])
		c.Text(left+22, y+12, 12, "ink", "start", clipTo(text, 12, width))
		y += row
	}
	c.Height = y + 16
	return c.Write(w)
}
