package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// interfaceCell is the rise of the counters of one interface in one window.
type interfaceCell struct {
	has    decode.CounterField
	rx     uint16    // as decode.Counters.RxUtilization
	counts [6]uint32 // of packets, as in decode.Counters.All
	octets [2]uint64 // received, sent
}

// interfaceSeries is one interface whose counters come.
type interfaceSeries struct {
	inference.HopKey
	last  uint64
	cells recents[interfaceCell]
}

func (s *interfaceSeries) lastSeen() uint64 { return s.last }

func (h *history) addInterface(n uint64, stats *inference.InterfaceStats) {
	k := stats.Key()
	s, ok := h.interfaces.open(k, n, 1, func() *interfaceSeries { return &interfaceSeries{HopKey: k} })
	if !ok {
		return
	}
	c := s.cells.open(n)
	if c == nil {
		return // of no recent window
	}
	*c = interfaceCell{has: stats.Has, rx: stats.RxUtilization, octets: [2]uint64{stats.InOctets, stats.OutOctets}}
	all := stats.All()
	for i := range c.counts {
		c.counts[i] = count32(*all[i])
	}
	s.last = max(s.last, n)
}

// listInterfaces lists those first that damage or discard the greatest share of their packets, then those that are busiest in one direction.
func (h *history) listInterfaces(filter names.Search, n *names.Names, p ask.Page) ([]interfaceRow, int) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	rows := []interfaceRow{}
	for _, s := range h.interfaces.all {
		if s.last >= h.oldest() && filter.Hop(s.HopKey, n).Found() {
			row := h.interfaceRow(s)
			known, _ := n.FindInterface(s.Node, s.EgressIf)
			row.Speed = known.Speed
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b interfaceRow) int {
		return cmp.Or(cmp.Compare(b.lost, a.lost), cmp.Compare(b.busier(), a.busier()), a.key.Compare(b.key)) // what is absent is behind all else
	})
	ask.Sort(rows, ask.InterfaceColumns, func(r *interfaceRow) *ask.InterfaceRow { return &r.InterfaceRow }, p)
	return ask.Cut(rows, p), len(rows)
}

func (h *history) interfaceRow(s *interfaceSeries) interfaceRow {
	row := interfaceRow{
		key: s.HopKey, InterfaceRow: ask.InterfaceRow{
			Node: s.NodeName(), Interface: strconv.FormatUint(uint64(s.EgressIf), 10), LastMS: h.ms(s.last),
			Utilization: ask.Absent, Received: ask.Absent, QueueP99: ask.Absent,
		},
	}
	if hop, ok := h.hops.get(s.HopKey); ok {
		row.Utilization, row.QueueP99 = ask.Value(h.worst(hop, utilizationMax)), ask.Value(h.worst(hop, queueP99))
	}
	counts := [...]**uint64{&row.InPackets, &row.OutPackets, &row.InErrors, &row.OutErrors, &row.InDiscards, &row.OutDiscards}
	add := func(to **uint64, has bool, n uint64) {
		if has && *to == nil {
			*to = new(uint64)
		}
		if has {
			**to += n
		}
	}
	from := min(h.recent(), s.last)
	for c := range s.cells.since(from) {
		if c.has&decode.CountRxUtilization != 0 {
			row.Received = ask.Greater(row.Received, ask.Value(c.rx)/decode.WholeUtilization)
		}
		for which, to := range [...]**uint64{&row.InOctets, &row.OutOctets} {
			add(to, c.has&(decode.CountInOctets<<which) != 0, c.octets[which])
		}
		for which, to := range counts {
			add(to, c.has>>which&1 != 0, uint64(c.counts[which]))
		}
	}
	row.lost = row.LostShare()
	return row
}

// busier returns the greater utilisation of the two directions.
func (r *interfaceRow) busier() ask.Value { return ask.Greater(r.Utilization, r.Received) }

// serveInterfaces lists interfaces whose counters come, the worst first; q= keeps those that the text finds.
func (s *Server) serveInterfaces(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p, err := ask.ReadPage(q, ask.InterfaceColumns)
	if refuse(w, err) {
		return
	}
	filter, called := names.NewSearch(q.Get("q")), s.names()
	if s.servePast(w, r, func(ctx context.Context, t ask.Span) (any, error) {
		return s.deps.Past.Interfaces(ctx, t, filter, called, p)
	}) {
		return
	}
	rows, total := s.history.listInterfaces(filter, called, p)
	s.answer(w, interfaceList{Total: total, RecentWindows: recentWindows, Interfaces: rows})
}

// interfaceList holds some of the interfaces.
type interfaceList struct {
	Total         int            `json:"total"`
	RecentWindows int            `json:"recent_windows"` // over which is counted
	Interfaces    []interfaceRow `json:"interfaces"`
	Range         *ask.Range     `json:"range,omitempty"` // of an answer out of the history
}

// interfaceRow is an interface with what puts it in its place.
type interfaceRow struct {
	ask.InterfaceRow
	key  inference.HopKey
	lost float64 // share of errors and discards among the packets, of the worse direction
}
