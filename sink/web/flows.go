package web

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/sink"
)

// Bounds of what is kept of one flow.
const (
	maxPositions = 64 // hops of a path; longer ones are cut
	maxChanges   = 32 // path changes, the latest
)

type flowCell struct {
	packets float32
	seen    bool
	changed bool
}

// hopCell holds a flow's values at one position of its path.
type positionCell struct {
	seen          bool
	p50, p99, q99 float32
}

type position struct {
	node, egressIf string // in the last window
	last           uint64
	cells          []positionCell
}

// pathChange is a flow's move from one path to another.
type pathChange struct {
	At      int64    `json:"ms"`
	From    []string `json:"from"`
	To      []string `json:"to"`
	Packets float64  `json:"packets"` // reports on the path that it left
}

type flowSeries struct {
	key       string
	last      uint64
	cells     []flowCell
	positions []position
	nodes     []string // the path, where a change told it
	changes   uint64
	history   []pathChange // oldest first
}

func (f *flowSeries) lastSeen() uint64 { return f.last }

func (f *flowSeries) clear(slot int) {
	f.cells[slot] = flowCell{}
	for i := range f.positions {
		f.positions[i].cells[slot] = positionCell{}
	}
}

func (h *history) flow(n uint64, p *sink.Point) *flowSeries {
	key := tag(p, "flow")
	if !validName(key) {
		h.invalid++
		return nil
	}
	f, ok := h.flows.get(key)
	if !ok {
		if f, ok = h.flows.put(key, n, func() *flowSeries {
			return &flowSeries{key: key, cells: make([]flowCell, h.cap)}
		}); !ok {
			return nil
		}
	}
	f.last = max(f.last, n)
	return f
}

func (h *history) addFlow(n uint64, p *sink.Point) {
	at := 0
	if t := tag(p, "hop"); t != "" {
		v, err := strconv.ParseUint(t, 10, 16)
		if err != nil {
			h.invalid++
			return
		}
		at = int(v)
	}
	f := h.flow(n, p)
	if f == nil {
		return
	}
	slot := h.slot(n)
	f.cells[slot].seen = true
	var pos *position
	if at < maxPositions {
		for len(f.positions) <= at {
			f.positions = append(f.positions, position{cells: make([]positionCell, h.cap)})
		}
		pos = &f.positions[at]
		pos.last = max(pos.last, n)
		pos.cells[slot] = positionCell{true, absent, absent, absent}
	}
	for i := range p.Fields {
		field := &p.Fields[i]
		if pos != nil && pos.last == n {
			switch field.Key {
			case "node":
				pos.node = shorten(text(field))
				continue
			case "egress_if":
				pos.egressIf = shorten(text(field))
				continue
			}
		}
		v, ok := number(field)
		if !ok || v < 0 {
			continue
		}
		if field.Key == "packets" {
			f.cells[slot].packets = max(f.cells[slot].packets, float32(v))
		}
		if pos == nil {
			continue
		}
		switch c := &pos.cells[slot]; field.Key {
		case "latency_p50":
			c.p50 = float32(v)
		case "latency_p99":
			c.p99 = float32(v)
		case "queue_p99":
			c.q99 = float32(v)
		}
	}
}

func (h *history) addPath(n uint64, p *sink.Point) {
	f := h.flow(n, p)
	if f == nil {
		return
	}
	c := pathChange{At: p.Time / 1e6}
	for i := range p.Fields {
		switch field := &p.Fields[i]; field.Key {
		case "nodes":
			c.To = splitNodes(text(field))
		case "before":
			c.From = splitNodes(text(field))
		case "packets":
			c.Packets, _ = number(field)
		case "changes":
			if v, ok := number(field); ok && v > 0 {
				f.changes = max(f.changes, uint64(v))
			}
		}
	}
	if i := len(f.history) - 1; i >= 0 && f.history[i].At == c.At && slices.Equal(f.history[i].To, c.To) {
		return // the same point again
	}
	if c.From == nil && !slices.Equal(f.nodes, c.To) {
		c.From = f.nodes
	}
	f.cells[h.slot(n)].changed = true
	if f.nodes = c.To; len(f.history) == maxChanges {
		f.history = slices.Delete(f.history, 0, 1)
	}
	f.history = append(f.history, c)
	f.changes = max(f.changes, uint64(len(f.history)))
}

// current gives the positions of the path in the flow's last window.
func (f *flowSeries) current() []position {
	last := uint64(0)
	for i := range f.positions {
		last = max(last, f.positions[i].last)
	}
	n := 0
	for n < len(f.positions) && f.positions[n].last == last {
		n++
	}
	return f.positions[:n]
}

// chain gives the nodes of the current path, nil when none was seen.
func (f *flowSeries) chain() (nodes []string) {
	for _, p := range f.current() {
		nodes = append(nodes, p.node)
	}
	return nodes
}

// recentPackets sums the packets of the recent windows.
func (h *history) recentPackets(f *flowSeries) (sum float64) {
	for n := h.recent(); n <= h.newest; n++ {
		sum += float64(f.cells[h.slot(n)].packets)
	}
	return sum
}

// splitNodes reads a list of nodes with any of the usual separators.
func splitNodes(s string) []string {
	nodes := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == '>' || r == ' ' || r == '→' || r == ';' })
	return nodes[:min(len(nodes), maxPositions)]
}

// shorten cuts what is too long for a name.
func shorten(s string) string {
	if len(s) > maxName {
		s = strings.ToValidUTF8(s[:maxName], "")
	}
	return s
}

// text is the field as a short text.
func text(f *sink.Field) string {
	switch f.Kind {
	case sink.Int:
		return strconv.FormatInt(f.Int, 10)
	case sink.Float:
		return strconv.FormatFloat(f.Float, 'g', -1, 64)
	}
	s := f.Str
	if len(s) > maxName*maxPositions {
		s = s[:maxName*maxPositions]
	}
	return clean(s)
}
