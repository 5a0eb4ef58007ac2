package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/web/ask"
)

// probedCell is the outcome of the probes of one path in one window.
type probedCell struct {
	sent, received, late, twice, corrupt, reordered uint32
	lost, forward, back                             int32
	p50, p99                                        float32 // ns; absent without a delay
}

// probedSeries is one path of probes.
type probedSeries struct {
	inference.ProbeKey
	last      uint64
	judgement inference.Judgement
	cells     recents[probedCell]
}

func (s *probedSeries) lastSeen() uint64 { return s.last }

func (h *history) addProbed(n uint64, stats *inference.ProbeStats) {
	if stats.Other() {
		return // many paths, and not the same ones in every window
	}
	s, ok := h.probed.open(stats.ProbeKey, n, 1, func() *probedSeries { return &probedSeries{ProbeKey: stats.ProbeKey} })
	if !ok {
		return
	}
	c := s.cells.open(n)
	if c == nil {
		return // of no recent window
	}
	*c = probedCell{
		sent: count32(stats.Sent), received: count32(stats.Received), late: count32(stats.Late), twice: count32(stats.Twice), corrupt: count32(stats.Corrupt),
		reordered: count32(stats.Reordered), lost: clamp32(stats.Lost()), forward: clamp32(stats.Forward), back: clamp32(stats.Back), p50: float32(absent), p99: float32(absent),
	}
	if d := &stats.Delay; d.Count > 0 {
		c.p50, c.p99 = float32(d.P50), float32(d.P99)
	}
	if n >= s.last {
		s.last, s.judgement = n, stats.Judgement
	}
}

func clamp32(n int64) int32 { return int32(max(min(n, 1<<31-1), -1<<31)) }

// listProbed lists those first that lose or damage the greatest share of their probes, then those with the greatest delay.
func (h *history) listProbed(filter names.Search, n *names.Names, p ask.Page) ([]probedRow, int) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	rows := []probedRow{}
	for _, s := range h.probed.all {
		if s.last >= h.oldest() && filter.Probe(&s.ProbeKey, n).Found() {
			rows = append(rows, h.probedRow(s))
		}
	}
	slices.SortFunc(rows, func(a, b probedRow) int {
		return cmp.Or(cmp.Compare(b.lost, a.lost), cmp.Compare(b.DelayP99, a.DelayP99), a.key.Compare(b.key)) // what is absent is behind all else
	})
	ask.Sort(rows, ask.ProbedColumns, func(r *probedRow) *ask.ProbedRow { return &r.ProbedRow }, p)
	return ask.Cut(rows, p), len(rows)
}

func (h *history) probedRow(s *probedSeries) probedRow {
	row := probedRow{
		key: s.ProbeKey, ProbedRow: ask.ProbedRow{
			From: s.From.String(), To: s.To.String(), Path: s.Path, Epoch: s.Epoch, DelayP50: ask.Absent, DelayP99: ask.Absent,
			Judgement: s.judgement.String(), LastMS: h.ms(s.last),
		},
	}
	from := min(h.recent(), s.last)
	for c := range s.cells.since(from) {
		row.Sent += uint64(c.sent)
		row.Received += uint64(c.received)
		row.Late += uint64(c.late)
		row.Twice += uint64(c.twice)
		row.Corrupt += uint64(c.corrupt)
		row.Reordered += uint64(c.reordered)
		row.Lost += int64(c.lost)
		row.Forward += int64(c.forward)
		row.Back += int64(c.back)
		row.DelayP50, row.DelayP99 = ask.Greater(row.DelayP50, ask.Value(c.p50)), ask.Greater(row.DelayP99, ask.Value(c.p99))
	}
	if bad := float64(max(row.Lost, 0)) + float64(row.Corrupt); bad > 0 {
		row.lost = bad / (bad + float64(row.Received))
	}
	return row
}

// serveProbed lists paths of probes, the worst first; q= keeps those that the text finds.
func (s *Server) serveProbed(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p, err := ask.ReadPage(q, ask.ProbedColumns)
	if refuse(w, err) {
		return
	}
	filter, called := names.NewSearch(q.Get("q")), s.names()
	if s.servePast(w, r, func(ctx context.Context, t ask.Span) (any, error) {
		return s.deps.Past.Probed(ctx, t, filter, called, p)
	}) {
		return
	}
	rows, total := s.history.listProbed(filter, called, p)
	s.answer(w, probedList{Total: total, RecentWindows: recentWindows, Paths: rows})
}

// probedList holds some of the paths of probes.
type probedList struct {
	Total         int         `json:"total"`
	RecentWindows int         `json:"recent_windows"` // over which is counted
	Paths         []probedRow `json:"paths"`
	Range         *ask.Range  `json:"range,omitempty"` // of an answer out of the history
}

// probedRow is a path of probes with what puts it in its place.
type probedRow struct {
	ask.ProbedRow
	key  inference.ProbeKey
	lost float64 // share of lost and damaged ones
}
