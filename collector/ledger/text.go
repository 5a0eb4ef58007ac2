package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hopscope/hopscope/sink"
)

// Line returns a balance in one line: "influx: 1000 received = 990 stored + 4 in flight (window 4) + 6 dropped (kernel 6)".
func Line(b *sink.Balance) string {
	parts := func(m map[string]int64) (sum int64, text string) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if n := m[k]; n != 0 {
				sum += n
				text += fmt.Sprintf(", %s %d", k, n)
			}
		}
		if text != "" {
			text = " (" + text[2:] + ")"
		}
		return sum, text
	}
	flying, flyingText := parts(b.InFlight)
	dropped, droppedText := parts(b.Dropped)
	name := b.Sink
	if name == "" {
		name = "windows"
	}
	line := fmt.Sprintf("%s: %d received = %d stored + %d in flight%s + %d dropped%s", name, b.Received, b.Stored, flying, flyingText, dropped, droppedText)
	if b.Carried > 0 {
		line += fmt.Sprintf("; %d of them from an earlier run", b.Carried)
	}
	if b.Unsettled != 0 {
		line += fmt.Sprintf("; UNSETTLED %d, please report this", b.Unsettled)
	}
	return line
}

// PointsLine returns a store's points in one line, with the series of which it refused some: "influx: 3295 points made
// = 40 stored + 0 in flight + 0 dropped + 3255 refused (hop 3255)". It is empty unless the sink is a store of series.
func PointsLine(b *sink.Balance) string {
	p := b.Points
	if p == nil {
		return ""
	}
	flying, dropped := int64(0), int64(0)
	for _, n := range p.InFlight {
		flying += n
	}
	for _, n := range p.Dropped {
		dropped += n
	}
	line := fmt.Sprintf("%s: %d points made = %d stored + %d in flight + %d dropped + %d refused", b.Sink, p.Made, p.Stored, flying, dropped, p.Refused)
	var series string
	for _, k := range slices.Sorted(maps.Keys(p.Series)) {
		if n := p.Series[k].Refused; n > 0 {
			series += fmt.Sprintf(", %s %d", k, n)
		}
	}
	if series != "" {
		line += " (" + series[2:] + ")"
	}
	if p.Unsettled != 0 {
		line += fmt.Sprintf("; UNSETTLED %d, please report this", p.Unsettled)
	}
	return line
}
