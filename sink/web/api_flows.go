package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// serveFlows lists flows, the busiest of the recent windows first; q= keeps those that the text finds.
func (s *Server) serveFlows(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p, err := ask.ReadPage(q, ask.FlowColumns)
	if refuse(w, err) {
		return
	}
	if s.servePast(w, r, func(ctx context.Context, t ask.Span) (any, error) { return s.deps.Past.Flows(ctx, t) }) {
		return
	}
	rows, total := s.history.listFlows(names.NewSearch(q.Get("q")), s.names(), p)
	var keys []decode.FlowKey
	for i := range rows {
		keys = append(keys, rows[i].key)
	}
	if several, asked := s.several(keys); asked {
		for i := range rows {
			rows[i].Several = several[rows[i].key]
		}
	}
	s.answer(w, flowList{Total: total, RecentWindows: recentWindows, Flows: rows})
}

// flowList holds some of the flows.
type flowList struct {
	Total         int        `json:"total"`
	RecentWindows int        `json:"recent_windows"` // over which packets are counted
	Flows         []flowRow  `json:"flows"`
	Range         *ask.Range `json:"range,omitempty"` // of an answer out of the history, which keeps no flows
}

func (h *history) listFlows(filter names.Search, n *names.Names, p ask.Page) ([]flowRow, int) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	type entry struct {
		f *flowSeries
		ask.FlowPlace
	}
	var list []entry
	for _, f := range h.flows.all {
		if f.last < h.oldest() {
			continue
		}
		if filter.Flow(&f.key, n).Found() || slices.ContainsFunc(f.current(), func(p position) bool { return filter.Passes(p.hop, n) }) {
			list = append(list, entry{f, ask.FlowPlace{Key: f.key.String(), Packets: h.recentPackets(f), Changes: f.changes, Latency: h.slowest(f)}})
		}
	}
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), cmp.Compare(a.Key, b.Key))
	})
	ask.Sort(list, ask.FlowColumns, func(e *entry) *ask.FlowPlace { return &e.FlowPlace }, p)
	rows := []flowRow{}
	for _, e := range ask.Cut(list, p) {
		rows = append(rows, h.flowRow(e.f, e.Packets))
	}
	return rows, len(list)
}

func (h *history) flowRow(f *flowSeries, packets float64) flowRow {
	row := flowRow{key: f.key, FlowRow: ask.FlowRow{Key: f.key.String(), Packets: packets, Changes: f.changes, Path: []ask.FlowHopRow{}, Trend: []ask.Value{}, Several: f.several}}
	if f.last >= h.oldest() {
		row.LastMS = h.ms(f.last)
	}
	row.Octets = h.recentOctets(f)
	for i := range f.sights {
		if f.sighted >= h.oldest() {
			row.Seen = append(row.Seen, ask.NewSightRow(&f.sights[i]))
		}
	}
	for _, p := range f.current() {
		c, e50, e99 := noPosition, float32(absent), float32(absent)
		if p.last >= h.oldest() {
			c, e50, e99 = p.cells[h.slot(p.last)], p.e50, p.e99
		}
		row.Path = append(row.Path, ask.FlowHopRow{Node: p.hop.NodeName(), EgressIf: p.hop.EgressName(), LatencyP50: ask.Value(c.p50), LatencyP99: ask.Value(c.p99), QueueP99: ask.Value(c.q99), ErrorP50: ask.Value(e50), ErrorP99: ask.Value(e99)})
	}
	if len(row.Path) == 0 { // only changes were reported
		for _, n := range ask.NodeNames(f.nodes) {
			row.Path = append(row.Path, ask.FlowHopRow{Node: n, EgressIf: "", LatencyP50: ask.Absent, LatencyP99: ask.Absent, QueueP99: ask.Absent, ErrorP50: ask.Absent, ErrorP99: ask.Absent})
		}
	}
	if n := len(f.history); n > 0 {
		row.ChangedMS, row.Before = f.history[n-1].at, ask.NodeNames(f.history[n-1].from)
	}
	for n := h.oldest(); n <= h.newest; n++ {
		row.Trend = append(row.Trend, f.packetsIn(h.slot(n)))
	}
	return row
}

func (f *flowSeries) packetsIn(slot int) ask.Value {
	if c := f.cells[slot]; c.seen {
		return ask.Value(c.packets)
	}
	return ask.Absent
}

// flowAnswer is one flow over the kept windows.
type flowAnswer struct {
	Row       flowRow            `json:"flow"`
	Windows   []int64            `json:"windows"` // their ends
	Packets   []ask.Value        `json:"packets"` // of each window
	Positions []ask.FlowPosition `json:"positions"`
	Changes   []ask.ChangeRow    `json:"changes"` // oldest first
}

// serveFlow answers one flow (key=, in any form that [decode.ParseFlow] reads) over the kept windows, with its latest path changes, oldest first.
func (s *Server) serveFlow(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("key")
	if text == "" {
		problem(w, http.StatusBadRequest, `key: required, as in "10.0.0.1:80 > 10.0.0.2:5001 tcp"`)
		return
	}
	key, err := decode.ParseFlow(shorten(text))
	if err != nil {
		problem(w, http.StatusBadRequest, "key: "+err.Error())
		return
	}
	h := s.history
	h.mu.RLock()
	f, ok := h.flows.get(key)
	if !ok {
		h.mu.RUnlock()
		problem(w, http.StatusNotFound, fmt.Sprintf("no flow %s in the kept windows; it is written as in \"10.0.0.1:80 > 10.0.0.2:5001 tcp\", "+
			"and each direction is a flow of its own", key))
		return
	}
	out := flowAnswer{h.flowRow(f, h.recentPackets(f)), []int64{}, []ask.Value{}, []ask.FlowPosition{}, []ask.ChangeRow{}}
	for _, c := range f.history {
		out.Changes = append(out.Changes, ask.ChangeRow{AtMS: c.at, From: ask.NodeNames(c.from), To: ask.NodeNames(c.to), Packets: c.packets})
	}
	for n := h.oldest(); n <= h.newest; n++ {
		out.Windows = append(out.Windows, h.ms(n))
		out.Packets = append(out.Packets, f.packetsIn(h.slot(n)))
	}
	for i := range f.positions {
		p := &f.positions[i]
		o := ask.FlowPosition{Node: p.hop.NodeName()}
		for n := h.oldest(); n <= h.newest; n++ {
			c := p.cells[h.slot(n)]
			if !c.seen {
				c = noPosition
			}
			o.LatencyP50 = append(o.LatencyP50, ask.Value(c.p50))
			o.LatencyP99 = append(o.LatencyP99, ask.Value(c.p99))
			o.QueueP99 = append(o.QueueP99, ask.Value(c.q99))
		}
		out.Positions = append(out.Positions, o)
	}
	h.mu.RUnlock()
	if several, asked := s.several([]decode.FlowKey{key}); asked {
		out.Row.Several = several[key]
	}
	s.answer(w, out)
}

// listExporters lists the silent ones first, then those that lose most, then by name.
func (h *history) listExporters(filter names.Search, n *names.Names, silent map[inference.ExporterKey]bool, p ask.Page) ask.ExporterList {
	h.mu.RLock()
	defer h.mu.RUnlock()
	type entry struct {
		e   *exporterSeries
		row ask.ExporterRow
	}
	list := make([]entry, 0, len(h.exporters.all))
	for _, e := range h.exporters.all {
		if !filter.Exporter(e.ExporterKey, n).Found() {
			continue
		}
		r := ask.ExporterRow{
			Address: e.Addr.String(), HWID: strconv.Itoa(int(e.HWID)),
			ExporterTotals: e.ExporterTotals, LastMS: e.at, Silent: silent[e.ExporterKey], Idle: h.idle(e), Trend: []ask.Value{},
		}
		if !e.Nameless {
			r.Node = strconv.FormatUint(uint64(e.Node), 10)
		}
		for n := h.recent(); n <= h.newest; n++ {
			c := &e.cells[h.slot(n)]
			r.RecentReports += int64(c.reports)
			r.RecentLost += int64(c.lost)
		}
		list = append(list, entry{e, r})
	}
	slices.SortFunc(list, func(a, b entry) int {
		if a.row.Silent != b.row.Silent {
			if a.row.Silent {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(lossRatio(&b.row), lossRatio(&a.row)), cmp.Compare(a.e.Node, b.e.Node),
			cmp.Compare(a.row.Node, b.row.Node), a.e.ExporterKey.Compare(b.e.ExporterKey))
	})
	ask.Sort(list, ask.ExporterColumns, func(e *entry) *ask.ExporterRow { return &e.row }, p)
	rows := []ask.ExporterRow{}
	for _, x := range ask.Cut(list, p) {
		for n := h.oldest(); n <= h.newest; n++ {
			v := ask.Absent
			if c := &x.e.cells[h.slot(n)]; c.seen {
				v = ask.Value(c.reports)
			}
			x.row.Trend = append(x.row.Trend, v)
		}
		rows = append(rows, x.row)
	}
	return ask.ExporterList{Total: len(list), RecentWindows: recentWindows, IdleWindows: idleWindows, Exporters: rows, Nameless: h.listNameless()}
}

// lossRatio is lost / (reports + lost) in the recent windows.
func lossRatio(r *ask.ExporterRow) float64 {
	lost := float64(max(r.RecentLost, 0))
	if lost == 0 {
		return 0
	}
	return lost / (lost + float64(r.RecentReports))
}

// flowRow is a flow with its key.
type flowRow struct {
	ask.FlowRow
	key decode.FlowKey
}
