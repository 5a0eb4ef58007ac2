package web

import (
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// Bounds of the memory of one flow.
const (
	maxPositions = 64 // hops of a path; longer ones are cut
	maxChanges   = 32 // path changes, the latest
)

type flowCell struct {
	packets float32
	octets  float32 // of the node that saw the most; 0 if none reports them
	seen    bool
	changed bool
}

// positionCell holds a flow's values at one position of its path in one window.
type positionCell struct {
	seen          bool
	p50, p99, q99 float32
}

// noPosition is the cell of a position without reports.
var noPosition = positionCell{p50: absent, p99: absent, q99: absent}

type position struct {
	hop   inference.HopKey // in the last window
	e50   float32          // relative errors of the quantiles of the latency, likewise
	e99   float32
	last  uint64
	cells []positionCell
}

// pathChange is a flow's move from one path to another.
type pathChange struct {
	at       int64    // ms since 1970
	from, to []uint32 // nodes, first hop first
	packets  uint64   // reports on the path that it left
}

type flowSeries struct {
	key       decode.FlowKey
	last      uint64
	cells     []flowCell
	positions []position
	nodes     []uint32 // the path, where a change had it
	changes   uint64
	history   []pathChange          // oldest first
	sights    []inference.FlowSight // of the last window with any, where sighted is its number
	sighted   uint64
	several   *ask.PathRow // other paths in the last window; nil if the flow has one
}

func (f *flowSeries) lastSeen() uint64 { return f.last }

func (f *flowSeries) clear(slot int) {
	f.cells[slot] = flowCell{}
	for i := range f.positions {
		f.positions[i].cells[slot] = positionCell{}
	}
}

// flow finds or adds a flow that has some rows in window n. It returns nil if there is no room for it.
func (h *history) flow(n uint64, key *decode.FlowKey, rows int) *flowSeries {
	f, ok := h.flows.open(*key, n, rows, func() *flowSeries { return &flowSeries{key: *key, cells: make([]flowCell, h.cap)} })
	if !ok {
		return nil
	}
	f.last = max(f.last, n)
	return f
}

func (h *history) addFlow(n uint64, stats *inference.FlowStats) {
	f := h.flow(n, &stats.Key, len(stats.Hops))
	if f == nil {
		return
	}
	if f.last == n {
		f.several = nil
		if stats.Sprayed() || stats.Unsettled {
			row := ask.NewPathRow(stats, 0)
			f.several = &row
		}
	}
	slot := h.slot(n)
	f.cells[slot].seen = true
	f.cells[slot].packets = max(f.cells[slot].packets, float32(stats.Packets))
	for i := range stats.Sights {
		f.cells[slot].octets = max(f.cells[slot].octets, float32(stats.Sights[i].Octets))
	}
	if len(stats.Sights) > 0 && n >= f.sighted {
		f.sights, f.sighted = append(f.sights[:0], stats.Sights...), n
	}
	hops := stats.Hops[:min(len(stats.Hops), maxPositions)]
	for len(f.positions) < len(hops) {
		f.positions = append(f.positions, position{cells: make([]positionCell, h.cap)})
	}
	for i := range hops {
		hop, p := &hops[i], &f.positions[i]
		if p.last = max(p.last, n); p.last == n {
			p.hop = hop.HopKey
		}
		c, e50, e99 := noPosition, float32(absent), float32(absent)
		c.seen = true
		if hop.Latency.Count > 0 {
			c.p50, c.p99 = float32(hop.Latency.P50), float32(hop.Latency.P99)
			e50, e99 = float32(hop.Latency.P50Error()), float32(hop.Latency.P99Error())
		}
		if hop.Queue.Count > 0 {
			c.q99 = float32(hop.Queue.P99)
		}
		if p.cells[slot] = c; p.last == n {
			p.e50, p.e99 = e50, e99
		}
	}
}

func (h *history) addPath(in *inference.PathChange) {
	if h.newest == 0 || in.Time < h.window(h.oldest()).end-maxWindow {
		h.late++
		return
	}
	at := in.Time / 1e6
	n := min(h.after(at-1), h.newest)
	f := h.flow(n, &in.Flow, 1)
	if f == nil {
		return
	}
	f.changes = max(f.changes, uint64(in.Changes))
	c := pathChange{at, nodes(in.From), nodes(in.To), in.Packets}
	f.cells[h.slot(n)].changed = true
	if slices.ContainsFunc(f.history, func(old pathChange) bool { return old.at == c.at && slices.Equal(old.to, c.to) }) {
		return // the same change again
	}
	i := len(f.history)
	for i > 0 && f.history[i-1].at > c.at { // of a window that comes again
		i--
	}
	if i == len(f.history) {
		f.nodes = c.to
	}
	f.history = slices.Insert(f.history, i, c)
	if len(f.history) > maxChanges {
		f.history = slices.Delete(f.history, 0, 1)
	}
	f.changes = max(f.changes, uint64(len(f.history)))
}

// nodes returns the nodes of a path in new memory.
func nodes(path []inference.HopKey) []uint32 {
	list := make([]uint32, min(len(path), maxPositions))
	for i := range list {
		list[i] = path[i].Node
	}
	return list
}

// current returns the positions of the path in the flow's last window.
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

// recentOctets sums what nodes saw of the flow in the recent windows, each time the one that saw the most.
func (h *history) recentOctets(f *flowSeries) (sum float64) {
	for n := h.recent(); n <= h.newest; n++ {
		sum += float64(f.cells[h.slot(n)].octets)
	}
	return sum
}

// slowest returns the greatest p99 of the nodes on the path, absent without one.
func (h *history) slowest(f *flowSeries) (most ask.Value) {
	most = ask.Absent
	for _, p := range f.current() {
		if p.last >= h.oldest() {
			most = ask.Greater(most, ask.Value(p.cells[h.slot(p.last)].p99))
		}
	}
	return most
}

// recentPackets sums the packets of the recent windows.
func (h *history) recentPackets(f *flowSeries) (sum float64) {
	for n := h.recent(); n <= h.newest; n++ {
		sum += float64(f.cells[h.slot(n)].packets)
	}
	return sum
}
