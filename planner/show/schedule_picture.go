package show

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/hopscope/hopscope/planner/schedule"
)

// These limits keep a picture of a schedule below three screens in height, and below many megabytes.
const (
	maxLanes = 150
	maxTicks = 20_000
)

// The colours of classes, which can be distinguished on white and on black.
var classColors = []string{"#3b82f6", "#f97316", "#22a06b", "#d6409f", "#8b5cf6", "#b08900", "#06a0b5", "#e5484d"}

// start is one start of a probe.
type start struct {
	at    float64 // ms
	probe *schedule.Timed
}

// agentLane is an agent with what it starts.
type agentLane struct {
	name   string
	starts []start
	bytes  float64 // a second
}

// DrawSchedule draws time from left to right and a lane for every agent. A tick for every start is coloured by the
// class of the links for which the probe is sent. Below is the load of all probes on links together, by their starts.
func DrawSchedule(w io.Writer, p *schedule.Problem, plan *schedule.Plan) error {
	const left, top, width, right = 170, 96, 1000, 140
	lanes, shown, more := scheduleLanes(plan)
	high := min(34, max(14, 1800/float64(max(1, len(lanes)))))
	body := high * float64(len(lanes))
	colors, legend := scheduleColors(p, plan)
	under := top + body + 30.0
	full := under + 130
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f" font-family="sans-serif" font-size="12" role="img" aria-labelledby="title desc">`+"\n", left+width+right, full, left+width+right, full)
	fmt.Fprintln(b, `<style>.bg{fill:#fff}.t{fill:#222}.d{fill:#667}.lane{fill:#f4f5f8}.grid{stroke:#d4d7de}.load{fill:#8b95a7}`+
		`@media(prefers-color-scheme:dark){.bg{fill:#14161b}.t{fill:#e6e8ee}.d{fill:#98a0b0}.lane{fill:#1d2027}.grid{stroke:#363b46}.load{fill:#6b7588}}</style>`)
	fmt.Fprintln(b, `<rect class="bg" width="100%" height="100%"/>`)
	s := plan.Stats
	title := "Schedule"
	if plan.Topology != "" {
		title += ": " + plan.Topology
	}
	note := fmt.Sprintf("%d of %d probes are sent, %.6g bytes/s (lower bound %.6g), repeats after %g ms", s.Sent, s.Probes, s.Objective, s.LowerBound, plan.Hyperperiod)
	if shown < plan.Hyperperiod {
		note += fmt.Sprintf("; the first %g ms are shown", shown)
	}
	if more > 0 {
		note += fmt.Sprintf("; %d more agents send fewer bytes", more)
	}
	if plan.Partial {
		note += "; partial"
	}
	fmt.Fprintf(b, `<title id="title">%s</title><desc id="desc">%s. Time runs from left to right; an agent has a lane, and a start of a probe a tick in it.</desc>`+"\n", escape(title), escape(note))
	fmt.Fprintf(b, `<text class="t" x="12" y="26" font-size="18">%s</text><text class="d" x="12" y="46">%s</text>`+"\n", escape(title), escape(note))
	x := 12.0
	for _, e := range legend {
		fmt.Fprintf(b, `<rect x="%.0f" y="60" width="4" height="14" fill="%s"/><text class="t" x="%.0f" y="72">%s</text>`, x, e.color, x+10, escape(e.text))
		x += 30 + 7*float64(len([]rune(e.text)))
	}
	fmt.Fprintln(b)
	fmt.Fprintf(b, `<text class="d" x="%d" y="%d">on all links</text>`+"\n", left+width+8, top-8)
	scale := width / shown
	for t, step := 0.0, niceStep(shown); t <= shown*(1+1e-9); t += step {
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%.0f"/><text class="d" x="%.1f" y="%.0f" text-anchor="middle">%g ms</text>`+"\n",
			left+t*scale, top, left+t*scale, under+84, left+t*scale, under+102, t)
	}
	tick := min(3, max(1, 0.6*plan.Slot*scale))
	for k, l := range lanes {
		y := top + float64(k)*high
		fmt.Fprintf(b, `<rect class="lane" x="%d" y="%.1f" width="%d" height="%.1f"/><text class="t" x="%d" y="%.1f" text-anchor="end">%s</text><text class="d" x="%d" y="%.1f">%s</text>`+"\n",
			left, y+1, width, high-2, left-8, y+high/2+4, escape(clip(l.name, 22)), left+width+8, y+high/2+4, escape(BitRate(8*l.bytes)))
		for i := 0; i < len(l.starts); {
			j := i + 1 // those of one slot share the height
			for j < len(l.starts) && l.starts[j].at-l.starts[i].at < plan.Slot/2 {
				j++
			}
			part := (high - 4) / float64(j-i)
			for n, st := range l.starts[i:j] {
				fmt.Fprintf(b, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s"><title>%s</title></rect>`, left+st.at*scale, y+2+float64(n)*part, tick, max(1, part-0.5),
					colors[st.probe.Class], escape(fmt.Sprintf("%s at %g ms: every %g ms from %g ms on, for class %s", st.probe.ID, st.at, st.probe.Interval, st.probe.Phase, st.probe.Class)))
			}
			i = j
		}
		fmt.Fprintln(b)
	}
	drawLoad(b, plan, shown, left, width, under)
	fmt.Fprintln(b, "</svg>")
	return b.Flush()
}

// drawLoad draws the bytes of all probes by when they start, in a hundred steps.
func drawLoad(b *bufio.Writer, plan *schedule.Plan, shown float64, left, width int, top float64) {
	const steps, high = 100, 80
	var sum [steps]float64
	most := 0.0
	for k := range plan.Probes {
		x := &plan.Probes[k]
		for t := x.Phase; t < shown-1e-9; t += x.Interval {
			i := min(steps-1, int(t/shown*steps))
			sum[i] += x.BytesPerSecond * x.Interval / 1000
			most = max(most, sum[i])
		}
	}
	if most == 0 {
		return
	}
	fmt.Fprintf(b, `<text class="t" x="%d" y="%.0f" text-anchor="end">bytes on all links,</text><text class="t" x="%d" y="%.0f" text-anchor="end">by start</text><text class="d" x="%d" y="%.0f">most: %.4g in %.3g ms</text>`+"\n",
		left-8, top+34, left-8, top+50, left+width+8, top+10, most, shown/steps)
	for i, n := range sum {
		h := n / most * high
		fmt.Fprintf(b, `<rect class="load" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%.6g bytes</title></rect>`, float64(left)+float64(i*width)/steps, top+high-h, float64(width)/steps-1, h, n)
	}
	fmt.Fprintln(b)
}

// scheduleLanes lists agents with the starts in the time that is shown. That is the hyperperiod, or as much of it as
// has no more ticks than can be drawn. Where there are too many agents it leaves out those that send least.
func scheduleLanes(plan *schedule.Plan) (lanes []*agentLane, shown float64, more int) {
	byName := map[string]*agentLane{}
	for k := range plan.Probes {
		x := &plan.Probes[k]
		l := byName[x.Agent]
		if l == nil {
			l = &agentLane{name: x.Agent}
			if x.Agent == "" {
				l.name = "(no agent)"
			}
			byName[x.Agent] = l
			lanes = append(lanes, l)
		}
		l.bytes += x.BytesPerSecond
	}
	if len(lanes) > maxLanes {
		bytes := make([]float64, len(lanes))
		for k, l := range lanes {
			bytes[k] = l.bytes
		}
		slices.Sort(bytes)
		least := bytes[len(bytes)-maxLanes]
		var kept []*agentLane
		for _, l := range lanes {
			if l.bytes >= least && len(kept) < maxLanes {
				kept = append(kept, l)
			}
		}
		more, lanes = len(lanes)-len(kept), kept
	}
	kept := map[*agentLane]bool{}
	for _, l := range lanes {
		kept[l] = true
	}
	rate := 0.0 // starts a millisecond
	for k := range plan.Probes {
		if x := &plan.Probes[k]; kept[byName[x.Agent]] {
			rate += 1 / x.Interval
		}
	}
	shown = plan.Hyperperiod
	if rate*shown > maxTicks {
		shown = max(plan.Slot, math.Floor(maxTicks/rate/plan.Slot)*plan.Slot)
	}
	for k := range plan.Probes {
		x := &plan.Probes[k]
		if l := byName[x.Agent]; kept[l] {
			for t := x.Phase; t < shown-1e-9; t += x.Interval {
				l.starts = append(l.starts, start{t, x})
			}
		}
	}
	for _, l := range lanes {
		slices.SortStableFunc(l.starts, func(a, b start) int {
			switch {
			case a.at < b.at:
				return -1
			case a.at > b.at:
				return 1
			}
			return 0
		})
	}
	return lanes, shown, more
}

// legendEntry explains a colour.
type legendEntry struct{ color, text string }

// scheduleColors assigns colours to classes, in the order of the problem.
func scheduleColors(p *schedule.Problem, plan *schedule.Plan) (colors map[string]string, legend []legendEntry) {
	count := map[string]int{}
	for k := range plan.Probes {
		count[plan.Probes[k].Class]++
	}
	colors = map[string]string{}
	add := func(name string, period float64) {
		if count[name] == 0 {
			return
		}
		colors[name] = classColors[len(colors)%len(classColors)]
		if len(legend) < 8 {
			legend = append(legend, legendEntry{colors[name], fmt.Sprintf("%s, every %g ms: %d probe%s", clip(name, 20), period, count[name], plural(count[name]))})
		}
	}
	add(schedule.DefaultClass, p.Period)
	for _, c := range p.Classes {
		add(c.Name, c.Period)
	}
	return colors, legend
}

// niceStep divides a time into five to ten steps of 1, 2 or 5 times a power of ten.
func niceStep(span float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(span/5)))
	for _, k := range []float64{5, 2} {
		if step*k <= span/5 {
			return step * k
		}
	}
	return step
}
