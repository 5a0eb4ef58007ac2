package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// serveWindows answers the matrix of the bitmap: for every hop one value of one metric per window, oldest first.
// With since=MS only the windows that end later. The body is built by hand; at 4096 hops and 180 windows it has 700 000
// numbers.
func (s *Server) serveWindows(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	m, err := metricParam(q, "metric", latencyP99)
	if refuse(w, err) {
		return
	}
	since, err := ask.IntParam(q, "since", -1, -1, math.MaxInt64)
	if refuse(w, err) {
		return
	}
	if s.servePast(w, r, func(ctx context.Context, t ask.Span) (any, error) {
		return s.deps.Past.Matrix(ctx, t, metricNames[m], m.unit())
	}) {
		return
	}
	data := s.history.appendMatrix(nil, m, since)
	s.sendPacked(w, r, data, "no-store")
}

// pack compresses data if that is worth it. It returns false if data is to be sent as it is.
func pack(r *http.Request, data []byte) ([]byte, bool) {
	if len(data) < gzipFrom || !acceptsGzip(r) || isLocal(r.RemoteAddr) {
		return nil, false
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err == nil {
		_, err = z.Write(data)
	}
	if err == nil {
		err = z.Close()
	}
	return packed.Bytes(), err == nil // the level exists, and memory takes every write
}

// gzipFrom is the size from which a matrix is worth packing for a client on another machine, in bytes.
const gzipFrom = 64 << 10

// acceptsGzip reads what browsers send; a client that sends weights gets the answer as it is.
func acceptsGzip(r *http.Request) bool {
	for _, e := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(e) == "gzip" {
			return true
		}
	}
	return false
}

func isLocal(remote string) bool {
	a, err := netip.ParseAddrPort(remote)
	return err == nil && a.Addr().Unmap().IsLoopback()
}

func (h *history) appendMatrix(b []byte, m metric, since int64) []byte {
	h.mu.RLock()
	defer h.mu.RUnlock()
	from, to := h.after(since), h.newest
	b = append(b, `{"metric":"`...)
	b = append(b, metricNames[m]...)
	b = append(b, `","unit":"`...)
	b = append(b, m.unit()...)
	b = append(b, `","windows":[`...)
	for n := from; n <= to; n++ {
		b = strconv.AppendInt(comma(b), h.ms(n), 10)
	}
	b = append(b, `],"reports":[`...)
	for n := from; n <= to; n++ {
		b = strconv.AppendUint(comma(b), h.window(n).reports, 10)
	}
	b = append(b, `],"hops":[`...)
	for _, s := range h.sortedHops() {
		b = append(comma(b), `{"id":`...)
		b = strconv.AppendUint(b, s.id, 10)
		b = append(b, `,"node":"`...)
		b = append(b, s.NodeName()...) // no character of a name needs to be escaped
		b = append(b, `","egress_if":"`...)
		b = append(b, s.EgressName()...)
		b = append(b, `","values":[`...)
		for n := from; n <= to; n++ {
			b = ask.Value(h.value(s, n, m)).Append(comma(b))
		}
		b = append(b, "]}"...)
	}
	b = append(b, ']')
	b = h.appendMissing(b, from, to)
	return append(b, '}')
}

// appendMissing appends the collectors that are missing in each window of a fleet, by the end of the window. It also
// appends how often windows before the newest were replaced. When that number changes, a client has to request all of
// them again.
func (h *history) appendMissing(b []byte, from, to uint64) []byte {
	missing := map[string][]string{}
	for n := from; n <= to; n++ {
		if list := h.window(n).missing; len(list) > 0 {
			missing[strconv.FormatInt(h.ms(n), 10)] = list
		}
	}
	if len(missing) > 0 {
		data, err := json.Marshal(missing)
		if err == nil { // texts can always be written
			b = append(append(b, `,"missing":`...), data...)
		}
	}
	if h.replaced > 0 {
		b = strconv.AppendUint(append(b, `,"replaced":`...), h.replaced, 10)
	}
	return b
}

// comma separates what follows from what stands before it in an array.
func comma(b []byte) []byte {
	if len(b) > 0 && b[len(b)-1] != '[' {
		b = append(b, ',')
	}
	return b
}

// sortedHops lists the hops by node and egress interface.
func (h *history) sortedHops() []*hopSeries {
	list := make([]*hopSeries, 0, len(h.hops.all))
	for _, s := range h.hops.all {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *hopSeries) int { return a.HopKey.Compare(b.HopKey) })
	return list
}

// serveHops lists hops, the worst of a metric in the recent windows first (sort=METRIC), or by name (sort=node), or the other way
// around (order=); q= keeps those that the text finds.
func (s *Server) serveHops(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p, err := ask.ReadPage[ask.HopRow](q, nil)
	byName := q.Get("sort") == "node"
	q.Set("sort", ask.ChangeOf(strings.TrimPrefix(q.Get("sort"), "node")))
	m, merr := metricParam(q, "sort", latencyP99)
	if refuse(w, cmp.Or(err, merr)) {
		return
	}
	filter, called := names.NewSearch(q.Get("q")), s.names()
	if s.servePast(w, r, func(ctx context.Context, t ask.Span) (any, error) {
		return s.deps.Past.Hops(ctx, t, metricNames[m], byName, func(k inference.HopKey) bool { return filter.Hop(k, called).Found() }, p)
	}) {
		return
	}
	rows, total := s.history.listHops(filter, called, m, byName, p)
	s.answer(w, ask.HopList{Sort: metricNames[m], Total: total, RecentWindows: recentWindows, Hops: rows})
}

func (h *history) listHops(filter names.Search, n *names.Names, m metric, byName bool, p ask.Page) ([]ask.HopRow, int) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	list := slices.DeleteFunc(h.sortedHops(), func(s *hopSeries) bool { return !filter.Hop(s.HopKey, n).Found() })
	switch {
	case !byName:
		ask.SortBy(list, func(s **hopSeries) float64 { return float64(h.worst(*s, m)) }, p.Ascends(false))
	case !p.Ascends(true):
		slices.Reverse(list)
	}
	rows := []ask.HopRow{}
	for _, s := range ask.Cut(list, p) {
		rows = append(rows, h.hopRow(s, m))
	}
	return rows, len(list)
}

func (h *history) hopRow(s *hopSeries, m metric) ask.HopRow {
	row := ask.HopRow{ID: s.id, Node: s.NodeName(), EgressIf: s.EgressName(), Learning: s.learning, Judgement: s.judgement.String(), Worst: ask.Value(h.worst(s, m)), Trend: []ask.Value{}}
	v := nothing
	if s.last >= h.oldest() {
		if c := h.at(s, s.last); c != nil {
			v, row.LastMS = c.v, h.ms(s.last)
		}
	}
	row.Count, row.Utilization = ask.Value(v[count]), ask.Value(v[utilizationMax])
	row.Latency = ask.LatencyValues{P50: ask.Value(v[latencyP50]), P90: ask.Value(v[latencyP90]), P99: ask.Value(v[latencyP99]), Max: ask.Value(v[latencyMax])}
	row.Queue = ask.QueueValues{P50: ask.Value(v[queueP50]), P99: ask.Value(v[queueP99]), Max: ask.Value(v[queueMax])}
	for n := h.oldest(); n <= h.newest; n++ {
		row.Trend = append(row.Trend, ask.Value(h.value(s, n, m)))
	}
	return row
}

// hopParam reads the hop of a query. node= takes a hop in every form in which hops are written, such as 7:3. It also
// takes a node alone; egress_if= then has the interface, as in the answers.
func hopParam(q url.Values) (inference.HopKey, error) {
	node, egressIf := q.Get("node"), q.Get("egress_if")
	if node == "" {
		return inference.HopKey{}, errors.New("node: required, as in node=7:3 (node 7, egress interface 3) or node=7&egress_if=3")
	}
	if other := (inference.HopKey{Other: true}); node == other.NodeName() && egressIf == other.EgressName() {
		return other, nil
	}
	if egressIf != "" {
		node += ":" + egressIf
	}
	k, err := inference.ParseHop(shorten(node))
	if err != nil {
		return k, fmt.Errorf("node: %w", err)
	}
	return k, nil
}

// serveHop answers all metrics of one hop over the kept windows.
func (s *Server) serveHop(w http.ResponseWriter, r *http.Request) {
	k, err := hopParam(r.URL.Query())
	if refuse(w, err) {
		return
	}
	if s.servePast(w, r, func(ctx context.Context, t ask.Span) (any, error) {
		return s.deps.Past.Hop(ctx, t, k)
	}) {
		return
	}
	h := s.history
	h.mu.RLock()
	series, ok := h.hops.get(k)
	if !ok {
		h.mu.RUnlock()
		problem(w, http.StatusNotFound, fmt.Sprintf("no hop %s in the kept windows; it is written as in 7:3 (node 7, egress interface 3)", k))
		return
	}
	out := ask.HopAnswer{Row: h.hopRow(series, latencyP99), Windows: []int64{}, Series: map[string][]ask.Value{}}
	for n := h.oldest(); n <= h.newest; n++ {
		out.Windows = append(out.Windows, h.ms(n))
		for m := range numMetrics {
			out.Series[metricNames[m]] = append(out.Series[metricNames[m]], ask.Value(h.value(series, n, m)))
		}
	}
	h.mu.RUnlock()
	s.answer(w, out)
}
