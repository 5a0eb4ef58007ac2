package web

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

// flowHopRow is one hop of a flow's path in the last window in which the flow was seen.
type flowHopRow struct {
	Node       string `json:"node"`
	EgressIf   string `json:"egress_if,omitempty"`
	LatencyP50 value  `json:"latency_p50_ns"`
	LatencyP99 value  `json:"latency_p99_ns"`
	QueueP99   value  `json:"queue_p99_bytes"`
	ErrorP50   value  `json:"latency_p50_error"` // as a share of it
	ErrorP99   value  `json:"latency_p99_error"`
}

// sightRow is a node's view of a flow, by samples or flow records, in the last window in which any node saw it.
type sightRow struct {
	Node      string `json:"node"`
	IngressIf string `json:"ingress_if,omitempty"`
	EgressIf  string `json:"egress_if,omitempty"`
	Packets   uint64 `json:"packets"`
	Octets    uint64 `json:"octets,omitempty"`
	DelayMean value  `json:"path_delay_mean_ns"`
	DelayMin  value  `json:"path_delay_min_ns"`
	DelayMax  value  `json:"path_delay_max_ns"`
	Delayed   uint64 `json:"path_delay_packets,omitempty"` // that the mean is of
}

type flowRow struct {
	Key       string       `json:"key"`
	Packets   float64      `json:"packets"`          // in the recent windows
	Octets    float64      `json:"octets,omitempty"` // in the recent windows, of the node that saw the most; absent where none says it
	Seen      []sightRow   `json:"seen,omitempty"`   // by samples and flow records, which do not say in which order
	LastMS    int64        `json:"last_ms"`
	Changes   uint64       `json:"changes"`    // of the path, since the flow was first seen
	ChangedMS int64        `json:"changed_ms"` // the last of them, 0 if none was seen
	Before    []string     `json:"before,omitempty"`
	Path      []flowHopRow `json:"path"`
	Trend     []value      `json:"trend"`             // packets, the kept windows, oldest first
	Several   *pathRow     `json:"several,omitempty"` // what digests say, where the path is not all there is

	key decode.FlowKey
}

// serveFlows lists flows, the busiest of the recent windows first; q= keeps those that the text finds.
func (s *Server) serveFlows(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	offset, limit, err := pageParams(q)
	if refuse(w, err) {
		return
	}
	rows, total := s.history.listFlows(newSearch(q.Get("q")), s.names(), offset, limit)
	var keys []decode.FlowKey
	for i := range rows {
		keys = append(keys, rows[i].key)
	}
	if several, asked := s.several(keys); asked {
		for i := range rows {
			rows[i].Several = several[rows[i].key]
		}
	}
	s.answer(w, flowList{total, recentWindows, rows})
}

// flowList holds some of the flows.
type flowList struct {
	Total         int       `json:"total"`
	RecentWindows int       `json:"recent_windows"` // over which packets are counted
	Flows         []flowRow `json:"flows"`
}

func (h *history) listFlows(filter search, n *names.Names, offset, limit int) ([]flowRow, int) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	type entry struct {
		f       *flowSeries
		name    string
		packets float64
	}
	var list []entry
	for _, f := range h.flows.all {
		if f.last < h.oldest() {
			continue
		}
		if filter.findsFlow(f, n) {
			list = append(list, entry{f, f.key.String(), h.recentPackets(f)})
		}
	}
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.packets, a.packets), cmp.Compare(a.name, b.name))
	})
	rows := []flowRow{}
	for _, e := range list[min(offset, len(list)):min(offset+limit, len(list))] {
		rows = append(rows, h.flowRow(e.f, e.packets))
	}
	return rows, len(list)
}

func (h *history) flowRow(f *flowSeries, packets float64) flowRow {
	row := flowRow{key: f.key, Key: f.key.String(), Packets: packets, Changes: f.changes, Path: []flowHopRow{}, Trend: []value{}, Several: f.several}
	if f.last >= h.oldest() {
		row.LastMS = h.ms(f.last)
	}
	row.Octets = h.recentOctets(f)
	for i := range f.sights {
		if f.sighted >= h.oldest() {
			row.Seen = append(row.Seen, newSightRow(&f.sights[i]))
		}
	}
	for _, p := range f.current() {
		c, e50, e99 := noPosition, float32(absent), float32(absent)
		if p.last >= h.oldest() {
			c, e50, e99 = p.cells[h.slot(p.last)], p.e50, p.e99
		}
		row.Path = append(row.Path, flowHopRow{p.hop.NodeName(), p.hop.EgressName(), value(c.p50), value(c.p99), value(c.q99), value(e50), value(e99)})
	}
	if len(row.Path) == 0 { // only changes were reported
		for _, n := range nodeNames(f.nodes) {
			row.Path = append(row.Path, flowHopRow{n, "", value(absent), value(absent), value(absent), value(absent), value(absent)})
		}
	}
	if n := len(f.history); n > 0 {
		row.ChangedMS, row.Before = f.history[n-1].at, nodeNames(f.history[n-1].from)
	}
	for n := h.oldest(); n <= h.newest; n++ {
		row.Trend = append(row.Trend, f.packetsIn(h.slot(n)))
	}
	return row
}

func newSightRow(s *inference.FlowSight) sightRow {
	port := func(n uint32) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatUint(uint64(n), 10)
	}
	row := sightRow{
		Node: inference.HopKey{Node: s.Node}.NodeName(), IngressIf: port(s.Ingress), EgressIf: port(s.Egress), Packets: s.Packets, Octets: s.Octets,
		DelayMean: value(absent), DelayMin: value(absent), DelayMax: value(absent), Delayed: s.Delayed,
	}
	if s.Delayed > 0 {
		row.DelayMean = value(s.DelayMean())
	}
	if s.HasDelayBounds() {
		row.DelayMin, row.DelayMax = value(s.DelayMin), value(s.DelayMax)
	}
	return row
}

// nodeNames writes the nodes of a path.
func nodeNames(path []uint32) []string {
	names := make([]string, len(path))
	for i, n := range path {
		names[i] = inference.HopKey{Node: n}.NodeName()
	}
	return names
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

// changeRow is a flow's move from one path to another.
type changeRow struct {
	AtMS    int64    `json:"ms"`
	From    []string `json:"from"`
	To      []string `json:"to"`
	Packets uint64   `json:"packets"` // reports on the path that it left
}

// flowAnswer is one flow over the kept windows.
type flowAnswer struct {
	Row       flowRow        `json:"flow"`
	Windows   []int64        `json:"windows"` // their ends
	Packets   []value        `json:"packets"` // of each window
	Positions []flowPosition `json:"positions"`
	Changes   []changeRow    `json:"changes"` // oldest first
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
	out := flowAnswer{h.flowRow(f, h.recentPackets(f)), []int64{}, []value{}, []flowPosition{}, []changeRow{}}
	for _, c := range f.history {
		out.Changes = append(out.Changes, changeRow{c.at, nodeNames(c.from), nodeNames(c.to), c.packets})
	}
	for n := h.oldest(); n <= h.newest; n++ {
		out.Windows = append(out.Windows, h.ms(n))
		out.Packets = append(out.Packets, f.packetsIn(h.slot(n)))
	}
	for i := range f.positions {
		p := &f.positions[i]
		o := flowPosition{Node: p.hop.NodeName()}
		for n := h.oldest(); n <= h.newest; n++ {
			c := p.cells[h.slot(n)]
			if !c.seen {
				c = noPosition
			}
			o.LatencyP50 = append(o.LatencyP50, value(c.p50))
			o.LatencyP99 = append(o.LatencyP99, value(c.p99))
			o.QueueP99 = append(o.QueueP99, value(c.q99))
		}
		out.Positions = append(out.Positions, o)
	}
	h.mu.RUnlock()
	if several, asked := s.several([]decode.FlowKey{key}); asked {
		out.Row.Several = several[key]
	}
	s.answer(w, out)
}

type exporterRow struct {
	Address string `json:"address"`
	Node    string `json:"node"` // empty where its reports name none
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
	Nameless      []namelessRow `json:"hops_without_node_id,omitempty"` // of the newest window that had some, while it is recent
}

// listExporters lists the silent ones first, then those that lose most, then by name.
func (h *history) listExporters(filter search, n *names.Names, silent map[inference.ExporterKey]bool, offset, limit int) exporterList {
	h.mu.RLock()
	defer h.mu.RUnlock()
	type entry struct {
		e   *exporterSeries
		row exporterRow
	}
	list := make([]entry, 0, len(h.exporters.all))
	for _, e := range h.exporters.all {
		if !filter.findsExporter(e.ExporterKey, n) {
			continue
		}
		r := exporterRow{
			Address: e.Addr.String(), HWID: strconv.Itoa(int(e.HWID)),
			exporterTotals: e.exporterTotals, LastMS: e.at, Silent: silent[e.ExporterKey], Idle: h.idle(e), Trend: []value{},
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
	total := len(list)
	rows := []exporterRow{}
	for _, x := range list[min(offset, total):min(offset+limit, total)] {
		for n := h.oldest(); n <= h.newest; n++ {
			v := value(absent)
			if c := &x.e.cells[h.slot(n)]; c.seen {
				v = value(c.reports)
			}
			x.row.Trend = append(x.row.Trend, v)
		}
		rows = append(rows, x.row)
	}
	return exporterList{total, recentWindows, idleWindows, rows, h.listNameless()}
}

// lossRatio is lost / (reports + lost) in the recent windows.
func lossRatio(r *exporterRow) float64 {
	lost := float64(max(r.RecentLost, 0))
	if lost == 0 {
		return 0
	}
	return lost / (lost + float64(r.RecentReports))
}
