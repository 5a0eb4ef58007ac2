package show

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/hopscope/hopscope/planner/orchestrate"
)

// The picture of a plan has a row for each of the fullest flows, and rows for all others together behind them.
const (
	flowRows    = 100 // rows of one flow each, if there are more flows than allRows
	groupRows   = 30
	allRows     = flowRows + groupRows
	flowsLeft   = 190
	flowsWide   = 900
	flowRow     = 22
	flowBar     = 16
	flowsHeight = 62 // above the first row
)

// DrawOrchestrate draws a bar for every flow used, the fullest first. Its outline is as long as the capacity, and it
// holds a block for every interface, as long as its items. The name of a block shows under the pointer, and in it if it
// fits. Where there are many flows, the emptiest of them share rows, whose bars are as long as their mean.
func DrawOrchestrate(w io.Writer, p *orchestrate.Problem, plan *orchestrate.Plan) error {
	list := carriers(p, plan)
	slices.SortStableFunc(list, func(x, y carried) int { return cmp.Compare(y.load, x.load) })
	color := make(map[string]string, len(p.Interfaces))
	for k, i := range p.Interfaces {
		color[i.ID] = palette(k)
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
	s := plan.Stats
	title := fmt.Sprintf("%s: %d of %d flows carry %d interfaces", plan.Objective, s.FlowsUsed, s.Flows, s.Interfaces)
	if plan.Topology != "" {
		title = plan.Topology + ", " + title
	}
	note := fmt.Sprintf("loads %d to %d items, mean %.1f; objective %g, lower bound %g", s.LoadMin, s.LoadMax, s.LoadMean, s.Objective, s.LowerBound)
	if plan.Partial {
		note += fmt.Sprintf("; partial, %d interfaces are not served", len(plan.Unserved))
	}
	pic := flowsPicture{c: &canvas{Title: title, Desc: note + ". A bar for each flow, its outline as long as its capacity; the blocks in it are interfaces, as long as their items.", Width: flowsLeft + flowsWide + 110},
		unit: flowsWide / float64(scale), scale: scale, color: color}
	pic.c.Text(12, 24, 16, "ink", "start", clipTo(title, 16, pic.c.Width-24))
	pic.c.Text(12, 44, 12, "dim", "start", clipTo(note, 12, pic.c.Width-24))
	single := list
	if len(list) > allRows {
		single = list[:flowRows]
	}
	y := float64(flowsHeight)
	for _, c := range single {
		pic.flow(y, c)
		y += flowRow
	}
	if rest := list[len(single):]; len(rest) > 0 {
		each := (len(rest) + groupRows - 1) / groupRows
		for group := range slices.Chunk(rest, each) {
			pic.group(y, group)
			y += flowRow
		}
	}
	pic.c.Height = y + 8
	return pic.c.Write(w)
}

// flowsPicture draws rows of flows.
type flowsPicture struct {
	c     *canvas
	unit  float64 // pixels an item
	scale int64   // items that have room
	color map[string]string
}

// flow draws the row of one flow.
func (pic *flowsPicture) flow(y float64, c carried) {
	pic.c.Titled(fmt.Sprintf("%s: %d of %d items", c.flow.ID, c.load, c.flow.Capacity), func() {
		pic.c.Text(flowsLeft-8, y+12, 11, "ink", "end", clipTo(c.flow.ID, 11, flowsLeft-16))
	})
	x := float64(flowsLeft)
	for k, i := range c.ifaces {
		length := float64(c.items[k]) * pic.unit
		pic.c.Titled(fmt.Sprintf("%s: %d items", i, c.items[k]), func() {
			pic.c.Add(`<rect x="%.1f" y="%.0f" width="%.1f" height="%d" fill="%s" class="rim"/>`, x, y, length, flowBar, pic.color[i])
			if name := clipTo(i, 11, length-6); length > 36 || name == i {
				pic.c.Text(x+3, y+12, 11, "on", "start", name)
			}
		})
		x += length
	}
	end := flowsLeft + float64(min(c.flow.Capacity, pic.scale))*pic.unit
	if c.flow.Capacity <= pic.scale {
		pic.c.Add(`<rect x="%d" y="%.0f" width="%.1f" height="%d" class="pale"/>`, flowsLeft, y, end-flowsLeft, flowBar)
	} else {
		pic.c.Add(`<path d="M%.1f %.0fH%dv%dH%.1f" class="pale"/>`, end, y, flowsLeft, flowBar, end)
	}
	pic.c.Text(end+6, y+12, 11, "dim", "start", fmt.Sprintf("%d / %d", c.load, c.flow.Capacity))
}

// group draws one row for several flows, of which the first is the fullest.
func (pic *flowsPicture) group(y float64, list []carried) {
	sum, least := int64(0), list[len(list)-1].load
	for _, c := range list {
		sum += c.load
	}
	mean := float64(sum) / float64(len(list))
	text := fmt.Sprintf("%d flow%s with %d to %d items, mean %.1f", len(list), plural(len(list)), least, list[0].load, mean)
	pic.c.Text(flowsLeft-8, y+12, 11, "dim", "end", fmt.Sprintf("%d flow%s more", len(list), plural(len(list))))
	pic.c.Add(`<rect x="%d" y="%.0f" width="%.1f" height="%d" class="dot"/>`, flowsLeft, y, mean*pic.unit, flowBar)
	pic.c.Text(flowsLeft+mean*pic.unit+6, y+12, 11, "dim", "start", text)
}

// clip returns the beginning of a text that is longer than most letters.
func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
