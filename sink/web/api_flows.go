package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// flowHopRow is one hop of a flow's path in the last window in which the flow was seen.
type flowHopRow struct {
	Node       string `json:"node"`
	EgressIf   string `json:"egress_if,omitempty"`
	LatencyP50 value  `json:"latency_p50_ns"`
	LatencyP99 value  `json:"latency_p99_ns"`
	QueueP99   value  `json:"queue_p99_bytes"`
}

type flowRow struct {
	Key       string       `json:"key"`
	Packets   float64      `json:"packets"` // in the recent windows
	LastMS    int64        `json:"last_ms"`
	Changes   uint64       `json:"changes"`    // of the path, since the flow was first seen
	ChangedMS int64        `json:"changed_ms"` // the last of them, 0 if none was seen
	Before    []string     `json:"before,omitempty"`
	Path      []flowHopRow `json:"path"`
	Trend     []value      `json:"trend"` // packets, the kept windows, oldest first
}

// serveFlows lists flows, the busiest of the recent windows first; q= keeps those whose key or path has the text.
func (s *Server) serveFlows(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	offset, limit, err := pageParams(q)
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error())
		return
	}
	rows, total := s.history.listFlows(q.Get("q"), offset, limit)
	s.answer(w, struct {
		Total         int       `json:"total"`
		RecentWindows int       `json:"recent_windows"`
		Flows         []flowRow `json:"flows"`
	}{total, recentWindows, rows})
}

func (h *history) listFlows(filter string, offset, limit int) ([]flowRow, int) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	type entry struct {
		f       *flowSeries
		packets float64
	}
	filter = strings.ToLower(filter)
	var list []entry
	for _, f := range h.flows.all {
		if f.last < h.oldest() || filter != "" && !strings.Contains(strings.ToLower(f.key), filter) && !slices.Contains(f.chain(), filter) {
			continue
		}
		list = append(list, entry{f, h.recentPackets(f)})
	}
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.packets, a.packets), cmp.Compare(a.f.key, b.f.key))
	})
	rows := []flowRow{}
	for _, e := range list[min(offset, len(list)):min(offset+limit, len(list))] {
		rows = append(rows, h.flowRow(e.f, e.packets))
	}
	return rows, len(list)
}

func (h *history) flowRow(f *flowSeries, packets float64) flowRow {
	row := flowRow{Key: f.key, Packets: packets, Changes: f.changes, Path: []flowHopRow{}, Trend: []value{}}
	if f.last >= h.oldest() {
		row.LastMS = h.ms(f.last)
	}
	for _, p := range f.current() {
		c := positionCell{p50: absent, p99: absent, q99: absent}
		if p.last >= h.oldest() {
			c = p.cells[h.slot(p.last)]
		}
		row.Path = append(row.Path, flowHopRow{p.node, p.egressIf, value(c.p50), value(c.p99), value(c.q99)})
	}
	if len(row.Path) == 0 { // only changes were told
		for _, n := range f.nodes {
			row.Path = append(row.Path, flowHopRow{n, "", value(absent), value(absent), value(absent)})
		}
	}
	if n := len(f.history); n > 0 {
		row.ChangedMS, row.Before = f.history[n-1].At, f.history[n-1].From
	}
	for n := h.oldest(); n <= h.newest; n++ {
		row.Trend = append(row.Trend, f.packetsIn(h.slot(n)))
	}
	return row
}

func (f *flowSeries) packetsIn(slot int) value {
	if c := f.cells[slot]; c.seen {
		return value(c.packets)
	}
	return value(absent)
}

// flowPosition is one hop of a flow over the kept windows.
type flowPosition struct {
	Node       string  `json:"node"` // in the last window
	LatencyP50 []value `json:"latency_p50_ns"`
	LatencyP99 []value `json:"latency_p99_ns"`
	QueueP99   []value `json:"queue_p99_bytes"`
}

// serveFlow answers one flow (key=) over the kept windows, with its latest path changes, oldest first.
func (s *Server) serveFlow(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("key")
	if key == "" {
		problem(w, http.StatusBadRequest, "key: required")
		return
	}
	h := s.history
	h.mu.RLock()
	f, ok := h.flows.get(key)
	if !ok {
		h.mu.RUnlock()
		problem(w, http.StatusNotFound, "no such flow in the kept windows")
		return
	}
	out := struct {
		Row       flowRow        `json:"flow"`
		Windows   []int64        `json:"windows"`
		Packets   []value        `json:"packets"`
		Positions []flowPosition `json:"positions"`
		Changes   []pathChange   `json:"changes"`
	}{h.flowRow(f, h.recentPackets(f)), []int64{}, []value{}, []flowPosition{}, append([]pathChange{}, f.history...)}
	for n := h.oldest(); n <= h.newest; n++ {
		out.Windows = append(out.Windows, h.ms(n))
		out.Packets = append(out.Packets, f.packetsIn(h.slot(n)))
	}
	for i := range f.positions {
		p := &f.positions[i]
		o := flowPosition{Node: p.node}
		for n := h.oldest(); n <= h.newest; n++ {
			c := p.cells[h.slot(n)]
			if !c.seen {
				c = positionCell{p50: absent, p99: absent, q99: absent}
			}
			o.LatencyP50 = append(o.LatencyP50, value(c.p50))
			o.LatencyP99 = append(o.LatencyP99, value(c.p99))
			o.QueueP99 = append(o.QueueP99, value(c.q99))
		}
		out.Positions = append(out.Positions, o)
	}
	h.mu.RUnlock()
	s.answer(w, out)
}

type exporterRow struct {
	Address string `json:"address"`
	Node    string `json:"node"`
	HWID    string `json:"hw_id"`
	exporterTotals
	RecentReports int64   `json:"recent_reports"` // in the recent windows
	RecentLost    int64   `json:"recent_lost"`
	LastMS        int64   `json:"last_ms"` // end of the last window with a report, 0 if there was none
	Silent        bool    `json:"silent"`  // says an open finding
	Idle          bool    `json:"idle"`    // no report in the latest windows, which may be its way
	Trend         []value `json:"trend"`   // reports, the kept windows, oldest first
}

type exporterList struct {
	Total         int           `json:"total"`
	RecentWindows int           `json:"recent_windows"`
	IdleWindows   int           `json:"idle_windows"`
	Exporters     []exporterRow `json:"exporters"`
}

// listExporters lists the silent ones first, then those that lose most, then by name.
func (h *history) listExporters(silent map[exporterKey]bool, offset, limit int) exporterList {
	h.mu.RLock()
	defer h.mu.RUnlock()
	rows := make([]exporterRow, 0, len(h.exporters.all))
	series := make(map[exporterKey]*exporterSeries, len(h.exporters.all))
	for _, e := range h.exporters.all {
		r := exporterRow{
			Address: e.address, Node: e.node, HWID: e.hwID, exporterTotals: e.exporterTotals, LastMS: e.at,
			Silent: silent[e.exporterKey], Idle: h.idle(e),
			Trend: []value{},
		}
		for n := h.recent(); n <= h.newest; n++ {
			c := &e.cells[h.slot(n)]
			r.RecentReports += int64(c.reports)
			r.RecentLost += int64(c.lost)
		}
		rows = append(rows, r)
		series[e.exporterKey] = e
	}
	slices.SortFunc(rows, func(a, b exporterRow) int {
		if a.Silent != b.Silent {
			if a.Silent {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(lossRatio(&b), lossRatio(&a)), compareNames(a.Node, b.Node), cmp.Compare(a.Address, b.Address),
			compareNames(a.HWID, b.HWID))
	})
	total := len(rows)
	rows = rows[min(offset, total):min(offset+limit, total)]
	for i := range rows {
		r := &rows[i]
		e := series[exporterKey{r.Address, r.Node, r.HWID}]
		for n := h.oldest(); n <= h.newest; n++ {
			v := value(absent)
			if c := &e.cells[h.slot(n)]; c.seen {
				v = value(c.reports)
			}
			r.Trend = append(r.Trend, v)
		}
	}
	return exporterList{total, recentWindows, idleWindows, rows}
}

// lossRatio is lost / (reports + lost) in the recent windows.
func lossRatio(r *exporterRow) float64 {
	lost := float64(max(r.RecentLost, 0))
	if lost == 0 {
		return 0
	}
	return lost / (lost + float64(r.RecentReports))
}
