package web

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/hopscope/hopscope/sink"
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

// metricNames are the field keys of the stored series.
var metricNames = [numMetrics]string{
	"latency_p50", "latency_p90", "latency_p99", "latency_max", "queue_p50", "queue_p99", "queue_max",
	"tx_utilization_max", "count",
}

// unit of a metric, as the API gives it.
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

// absent stands for a value that was not reported. It is not zero.
var absent = float32(math.NaN())

// recentWindows is the number of windows over which "recent" and "worst" look back.
const recentWindows = 12

// idleWindows is the number of windows without a report after which an exporter is called idle.
const idleWindows = 3

// maxWindow is longer than any window, in nanoseconds.
const maxWindow = int64(time.Hour)

// maxName bounds the names that points bring along, in bytes.
const maxName = 256

// cell holds the values of one hop in one window; absent ones are NaN, and seen tells whether there was a point.
type cell struct {
	seen bool
	v    [numMetrics]float32
}

type hopKey struct{ node, egressIf string }

type hopSeries struct {
	hopKey
	id    uint64 // never used twice
	last  uint64 // number of the last window with a point
	cells []cell // by window number modulo its length
}

func (h *hopSeries) lastSeen() uint64 { return h.last }

// window is one column of the history.
type window struct {
	end     int64 // ns since 1970
	reports uint64
}

// history is the bounded memory of points. Windows are numbered from 1 in the order of their ends.
type history struct {
	mu      sync.RWMutex
	cap     int      // windows kept
	windows []window // by number modulo cap
	newest  uint64   // number of the newest window, 0 before the first

	hops      table[hopKey, *hopSeries]
	flows     table[string, *flowSeries]
	exporters table[exporterKey, *exporterSeries]
	nextID    uint64

	points, late, unknown, invalid uint64
}

func newHistory(c *Config) *history {
	return &history{
		cap: c.HistoryWindows, windows: make([]window, c.HistoryWindows),
		hops:      newTable[hopKey, *hopSeries](c.MaxHops),
		flows:     newTable[string, *flowSeries](c.MaxFlows),
		exporters: newTable[exporterKey, *exporterSeries](c.MaxExporters),
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

// number finds or opens the window that ends at end. It is false for one that is older than what is kept, or lies
// between two kept windows.
func (h *history) number(end int64) (uint64, bool) {
	if h.newest == 0 || end > h.window(h.newest).end {
		h.newest++
		*h.window(h.newest) = window{end: end}
		i := h.slot(h.newest)
		for _, s := range h.hops.all {
			s.cells[i] = cell{}
		}
		for _, s := range h.flows.all {
			s.clear(i)
		}
		for _, s := range h.exporters.all {
			s.cells[i] = exporterCell{}
		}
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

// add takes the points of a batch.
func (h *history) add(b *sink.Batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	counted := false
	for i := range b.Points {
		p := &b.Points[i]
		switch p.Measurement {
		case "hop", "flow", "exporter":
		case "path", "event": // the former come below; the latter as findings, by another way
			continue
		default:
			h.unknown++
			continue
		}
		n, ok := h.number(p.Time)
		if !ok {
			h.late++
			continue
		}
		if !counted { // a batch is a window or a part of one
			h.window(n).reports += b.Reports
			counted = true
		}
		h.points++
		switch p.Measurement {
		case "hop":
			h.addHop(n, p)
		case "flow":
			h.addFlow(n, p)
		case "exporter":
			h.addExporter(n, p)
		}
	}
	// A path change may carry the time at which it was seen, so it belongs to the window around that time, which the
	// other points have opened by now.
	for i := range b.Points {
		p := &b.Points[i]
		if p.Measurement != "path" {
			continue
		}
		if h.newest == 0 || p.Time < h.window(h.oldest()).end-maxWindow {
			h.late++
			continue
		}
		h.points++
		h.addPath(min(h.after(p.Time/1e6-1), h.newest), p)
	}
}

func (h *history) addHop(n uint64, p *sink.Point) {
	k := hopKey{tag(p, "node"), tag(p, "egress_if")}
	if !validName(k.node) || len(k.egressIf) > maxName {
		h.invalid++
		return
	}
	s, ok := h.hops.get(k)
	if !ok {
		if s, ok = h.hops.put(k, n, func() *hopSeries {
			h.nextID++
			return &hopSeries{hopKey: k, id: h.nextID, cells: make([]cell, h.cap)}
		}); !ok {
			return
		}
	}
	s.last = max(s.last, n)
	c := &s.cells[h.slot(n)]
	if !c.seen {
		c.seen = true
		for i := range c.v {
			c.v[i] = absent
		}
	}
	for i := range p.Fields {
		if m, ok := metricByName(p.Fields[i].Key); ok {
			if v, ok := number(&p.Fields[i]); ok && v >= 0 {
				c.v[m] = float32(v)
			}
		}
	}
}

// at gives the cell of window n, nil if the hop was not seen in it.
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

// clean makes a text from the network fit to be shown: valid UTF-8 without control characters and without the invisible
// ones that turn the direction of what follows.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\u2028' || r == '\u2029' || unicode.In(r, unicode.Cc, unicode.Cf) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// tag gives the value of a tag, cleaned, "" if p has none.
func tag(p *sink.Point, key string) string {
	for i := range p.Tags {
		if p.Tags[i].Key == key {
			return clean(p.Tags[i].Value)
		}
	}
	return ""
}

func validName(s string) bool { return s != "" && len(s) <= maxName }

// number is the field as a finite number.
func number(f *sink.Field) (float64, bool) {
	switch f.Kind {
	case sink.Int:
		return float64(f.Int), true
	case sink.Float:
		return f.Float, !math.IsNaN(f.Float) && !math.IsInf(f.Float, 0)
	}
	return 0, false
}
