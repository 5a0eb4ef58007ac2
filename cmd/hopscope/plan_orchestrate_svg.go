package main

import (
	"bufio"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hopscope/hopscope/planner/draw"
	"github.com/hopscope/hopscope/planner/orchestrate"
)

// drawOrchestrate draws a bar for every flow used, the fullest first: an outline as long as its capacity, and in it a
// block for every interface, as long as its items. The name of a block shows under the pointer, and in it if it fits.
func drawOrchestrate(w io.Writer, p *orchestrate.Problem, plan *orchestrate.Plan) error {
	const (
		left, width, row, bar = 190, 900, 22, 16
		letter                = 6.2 // width of one at 11 pixels, about
	)
	list := carriers(p, plan)
	if len(list) > draw.MaxNodes {
		return fmt.Errorf("%d flows are too many to draw, at most %d", len(list), draw.MaxNodes)
	}
	slices.SortStableFunc(list, func(x, y carried) int { return cmp.Compare(y.load, x.load) })
	color := make(map[string]string, len(p.Interfaces))
	for k, i := range p.Interfaces {
		color[i.ID] = draw.Color(k)
	}
	longest := int64(1)
	for _, c := range list {
		longest = max(longest, c.load)
	}
	// A capacity far beyond every load would leave nothing to be seen: its outline is left open.
	scale := longest
	for _, c := range list {
		scale = max(scale, min(c.flow.Capacity, 2*longest))
	}
	unit := float64(width) / float64(scale)
	b := bufio.NewWriter(w)
	height := 70 + row*len(list)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", left+width+110, height, left+width+110, height)
	fmt.Fprintln(b, `<style>.in{fill:#fff;stroke:#000;stroke-opacity:.5;stroke-width:2;paint-order:stroke;pointer-events:none}</style>`)
	fmt.Fprintln(b, `<rect width="100%" height="100%" fill="#fff"/>`)
	s := plan.Stats
	title := fmt.Sprintf("%s: %d of %d flows carry %d interfaces", plan.Objective, s.FlowsUsed, s.Flows, s.Interfaces)
	if plan.Topology != "" {
		title = plan.Topology + ", " + title
	}
	note := fmt.Sprintf("loads %d to %d items, mean %.1f; objective %g, lower bound %g", s.LoadMin, s.LoadMax, s.LoadMean, s.Objective, s.LowerBound)
	if plan.Partial {
		note += fmt.Sprintf("; partial, %d interfaces are not served", len(plan.Unserved))
	}
	fmt.Fprintf(b, `<text x="12" y="22" font-size="16">%s</text><text x="12" y="42" fill="#555">%s</text>`+"\n", escape(title), escape(note))
	for n, c := range list {
		y := 56 + row*n
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-8, y+12, escape(clip(c.flow.ID, 28)))
		x := float64(left)
		for k, i := range c.ifaces {
			length := float64(c.items[k]) * unit
			fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" stroke="#fff"><title>%s: %d items</title></rect>`, x, y, length, bar, color[i], escape(i), c.items[k])
			if fits := int((length - 6) / letter); fits >= min(5, len([]rune(i))) {
				fmt.Fprintf(b, `<text x="%.1f" y="%d" class="in">%s</text>`, x+3, y+12, escape(clip(i, fits)))
			}
			x += length
		}
		end := float64(left) + float64(min(c.flow.Capacity, scale))*unit
		if c.flow.Capacity <= scale {
			fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="none" stroke="#888"/>`, left, y, end-left, bar)
		} else {
			fmt.Fprintf(b, `<path d="M%.1f %dH%dv%dH%.1f" fill="none" stroke="#888"/>`, end, y, left, bar, end)
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%d" fill="#555">%d / %d</text>`+"\n", end+6, y+12, c.load, c.flow.Capacity)
	}
	fmt.Fprintln(b, "</svg>")
	return b.Flush()
}

func escape(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		return ""
	}
	return b.String()
}

func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
