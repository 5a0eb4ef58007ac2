package web

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/web/atlas"
)

// metric is one value of a hop in a window.
type metric uint8

const (
	latencyP50 metric = iota
	latencyP90
	latencyP99
	latencyMax
	queueP50
	queueP99
	queueMax
	utilizationMax
	count
	numMetrics
)

// metricNames are how the API calls the metrics. The fields of the stored series "hop" have the same names.
var metricNames = [numMetrics]string{
	"latency_p50", "latency_p90", "latency_p99", "latency_max", "queue_p50", "queue_p99", "queue_max",
	"tx_utilization_max", "count",
}

// MetricNames are the metrics that lists of hops can be sorted by.
func MetricNames() []string { return metricNames[:] }

// unit of a metric, as the API returns it.
func (m metric) unit() string {
	switch {
	case m <= latencyMax:
		return "ns"
	case m <= queueMax:
		return "B"
	case m == utilizationMax:
		return "ratio"
	}
	return "reports"
}

func metricByName(name string) (metric, bool) {
	i := slices.Index(metricNames[:], name)
	return metric(max(i, 0)), i >= 0
}

// absent is the value of a figure that was not reported. It is not zero.
var absent = float32(math.NaN())

// nothing holds the values of a hop without reports.
var nothing = func() (v [numMetrics]float32) {
	for i := range v {
		v[i] = absent
	}
	return v
}()

// recentWindows is the number of windows over which "recent" and "worst" look back.
const recentWindows = 12

// idleWindows is the number of windows without a report after which an exporter is called idle.
const idleWindows = 3

// maxWindow is longer than any window, in nanoseconds.
const maxWindow = int64(time.Hour)

// cell holds the values of one hop in one window; absent ones are NaN, and seen reports whether the hop was in the window.
type cell struct {
	seen bool
	v    [numMetrics]float32
}

type hopSeries struct {
	inference.HopKey
	id        uint64 // never used twice
	last      uint64 // number of the last window that had it
	learning  bool   // in that window
	judgement inference.Judgement
	cells     []cell // by window number modulo its length
}

func (h *hopSeries) lastSeen() uint64 { return h.last }

// window is one column of the history.
type window struct {
	end     int64 // ns since 1970
	reports uint64
	missing []string // collectors of a fleet
}

// history is the bounded memory of windows. Windows are numbered from 1 in the order of their ends.
type history struct {
	mu      sync.RWMutex
	cap     int      // windows kept
	windows []window // by number modulo cap
	newest  uint64   // number of the newest window, 0 before the first

	hops       table[inference.HopKey, *hopSeries]
	flows      table[decode.FlowKey, *flowSeries]
	exporters  table[inference.ExporterKey, *exporterSeries]
	interfaces table[inference.HopKey, *interfaceSeries]
	probed     table[inference.ProbeKey, *probedSeries]
	nameless   nameless
	links      atlas.Adjacency
	drops      table[uint32, *dropSeries] // by node
	nextID     uint64

	kept uint64 // windows
	late uint64 // windows and path changes that came too late to be kept

	replaced uint64 // windows before the newest that came again
}

func newHistory(c *Config) *history {
	return &history{
		cap: c.HistoryWindows, windows: make([]window, c.HistoryWindows),
		hops:       newTable[inference.HopKey, *hopSeries](c.MaxHops),
		flows:      newTable[decode.FlowKey, *flowSeries](c.MaxFlows),
		exporters:  newTable[inference.ExporterKey, *exporterSeries](c.MaxExporters),
		interfaces: newTable[inference.HopKey, *interfaceSeries](c.MaxHops),
		probed:     newTable[inference.ProbeKey, *probedSeries](c.MaxHops),
		links:      atlas.NewAdjacency(c.MaxHops),
		drops:      newTable[uint32, *dropSeries](c.MaxHops),
	}
}

// oldest is the number of the oldest kept window; oldest > newest means that there is none.
func (h *history) oldest() uint64 {
	if h.newest <= uint64(h.cap) {
		return 1
	}
	return h.newest - uint64(h.cap) + 1
}

func (h *history) slot(n uint64) int       { return int(n % uint64(h.cap)) }
func (h *history) window(n uint64) *window { return &h.windows[h.slot(n)] }
func (h *history) ms(n uint64) int64       { return h.window(n).end / 1e6 }
func (h *history) recent() uint64          { return max(h.oldest(), h.newest-min(h.newest, recentWindows-1)) }

// after is the number of the first kept window that ends later than ms.
func (h *history) after(ms int64) uint64 {
	n := h.oldest()
	for n <= h.newest && h.ms(n) <= ms {
		n++
	}
	return n
}

// number finds or opens the window that ends at end. It returns false for one that is older than the kept ones, or
// lies between two kept windows.
func (h *history) number(end int64) (uint64, bool) {
	if h.newest == 0 || end > h.window(h.newest).end {
		h.newest++
		*h.window(h.newest) = window{end: end}
		h.clear(h.slot(h.newest))
		return h.newest, true
	}
	for n := h.newest; n >= h.oldest(); n-- {
		if e := h.window(n).end; e == end {
			return n, true
		} else if e < end {
			break
		}
	}
	return 0, false
}

// clear empties a slot.
func (h *history) clear(slot int) {
	for _, s := range h.hops.all {
		s.cells[slot] = cell{}
	}
	for _, s := range h.flows.all {
		s.clear(slot)
	}
	for _, s := range h.exporters.all {
		s.cells[slot] = exporterCell{}
	}
}

// replace forgets the rows of the window that ends when w does, and opens it if only for its missing collectors.
func (h *history) replace(w *inference.Window, missing []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !hasRows(w) && len(missing) == 0 {
		return
	}
	before := h.newest
	n, ok := h.number(w.End)
	if !ok {
		return // add counts it as late
	}
	slot := h.slot(n)
	if n <= before {
		for _, e := range h.exporters.all {
			e.sum(&e.cells[slot], -1)
		}
		h.clear(slot)
		for _, s := range h.interfaces.all {
			s.cells.forget(n)
		}
		for _, s := range h.probed.all {
			s.cells.forget(n)
		}
	}
	if n < before {
		h.replaced++
	}
	list := make([]string, min(len(missing), maxMissing))
	for i := range list {
		list[i] = readable(missing[i])
	}
	*h.window(n) = window{end: w.End, missing: list}
}

// add takes what the page shows of w and keeps no reference to it. A window that has nothing to show opens no column.
func (h *history) add(w *inference.Window) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hasRows(w) {
		if n, ok := h.number(w.End); ok {
			h.kept++
			h.addRows(n, w)
		} else {
			h.late++
		}
	}
	// A path change carries the time at which it was seen, so it belongs to the window around that time, which is open by
	// now.
	for i := range w.Paths {
		h.addPath(&w.Paths[i])
	}
}

// hasRows reports whether w contains hops, interfaces, paths of probes, flows or exporters.
func hasRows(w *inference.Window) bool {
	return len(w.Hops) > 0 || len(w.Exporters) > 0 || len(w.Interfaces) > 0 || len(w.Probes) > 0 || len(w.Nameless) > 0 || slices.ContainsFunc(w.Flows, shown)
}

// shown reports whether anything of a flow is known but its existence.
func shown(f inference.FlowStats) bool { return len(f.Hops) > 0 || len(f.Sights) > 0 }

// addRows puts the rows of w into window n. A window may come in parts: their reports add up, and the values of a row that
// comes again replace those that it had.
func (h *history) addRows(n uint64, w *inference.Window) {
	h.window(n).reports += w.Reports
	for i := range w.Hops {
		h.addHop(n, &w.Hops[i])
	}
	for i := range w.Flows {
		if f := &w.Flows[i]; shown(*f) {
			h.addFlow(n, f)
		}
	}
	for i := range w.Exporters {
		h.addExporter(n, &w.Exporters[i])
	}
	for i := range w.Interfaces {
		h.addInterface(n, &w.Interfaces[i])
	}
	for i := range w.Probes {
		h.addProbed(n, &w.Probes[i])
	}
	h.addNameless(n, w)
	h.links.Learn(n, h.oldest(), w)
	h.addDrops(n, w)
}

func (h *history) addHop(n uint64, stats *inference.HopStats) {
	s, ok := h.hops.open(stats.HopKey, n, 1, func() *hopSeries {
		h.nextID++
		return &hopSeries{HopKey: stats.HopKey, id: h.nextID, cells: make([]cell, h.cap)}
	})
	if !ok {
		return
	}
	if n >= s.last {
		s.last, s.learning, s.judgement = n, stats.Learning, stats.Judgement
	}
	c := &s.cells[h.slot(n)]
	if !c.seen {
		*c = cell{seen: true, v: nothing}
	}
	c.v[count] = float32(stats.Count)
	if l := &stats.Latency; l.Count > 0 {
		c.v[latencyP50], c.v[latencyP90], c.v[latencyP99], c.v[latencyMax] = float32(l.P50), float32(l.P90), float32(l.P99), float32(l.Max)
	}
	if q := &stats.Queue; q.Count > 0 {
		c.v[queueP50], c.v[queueP99], c.v[queueMax] = float32(q.P50), float32(q.P99), float32(q.Max)
	}
	if u := stats.Utilization; stats.HasUtilization && u >= 0 && !math.IsInf(u, 1) {
		c.v[utilizationMax] = float32(u)
	}
}

// learning marks the hops whose last window ends at end.
func (h *history) learning(end int64, learns func(inference.HopKey) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.newest == 0 {
		return
	}
	for n := h.newest; n >= h.oldest(); n-- {
		if h.window(n).end != end {
			continue
		}
		for _, s := range h.hops.all {
			if s.last == n {
				s.learning = learns(s.HopKey)
			}
		}
		return
	}
}

// at returns the cell of window n, nil if the hop was not seen in it.
func (h *history) at(s *hopSeries, n uint64) *cell {
	if c := &s.cells[h.slot(n)]; c.seen {
		return c
	}
	return nil
}

// value of a metric in window n, or absent.
func (h *history) value(s *hopSeries, n uint64, m metric) float32 {
	if c := h.at(s, n); c != nil {
		return c.v[m]
	}
	return absent
}

// worst is the largest value of a metric in the recent windows, or absent.
func (h *history) worst(s *hopSeries, m metric) float32 {
	w := absent
	for n := h.recent(); n <= h.newest; n++ {
		if v := h.value(s, n, m); v == v && !(w >= v) {
			w = v
		}
	}
	return w
}

// neighbours lists which node follows which hop in the windows that are kept, and a number that changes with the list.
func (h *history) neighbours() ([]atlas.Neighbour, uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.links.Neighbours(h.oldest())
}
