package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/history"
)

// Past answers out of a history. The zero value has none.
type Past struct {
	Store *history.Store
	None  string // why there is no history, and what to set; "" where there never is one
}

// Err is why nothing can be answered, or nil.
func (p *Past) Err() error {
	if p.Store == nil {
		return errors.New(cmp.Or(p.None, "no history: this page keeps none; ask the page of a collector"))
	}
	return nil
}

// State is the account of the history.
func (p *Past) State() History {
	if err := p.Err(); err != nil {
		return History{Why: err.Error()}
	}
	s := p.Store.Stats()
	return History{Kept: true, OldestMS: s.Oldest / 1e6, NewestMS: s.Newest / 1e6, Bytes: s.Bytes, LostMinutes: s.LostMinutes, Damaged: s.Damaged, Problem: p.Store.Problem()}
}

// Span is a span of time that is asked for, in milliseconds since 1970, and how much earlier that begins which it is compared with, 0 for nothing.
type Span struct{ From, To, Back int64 }

// mostMS is the greatest time that is asked for, in the year 2109.
const mostMS = 1 << 42

// ParseSpan reads from= and to=. Without to= it ends now. It reports whether a range is asked for at all.
func ParseSpan(q url.Values, now time.Time) (r Span, asked bool, err error) {
	back, err := IntParam(q, "compare", 0, 0, mostMS)
	if q.Get("from") == "" && q.Get("to") == "" && err == nil {
		if back > 0 || strings.HasSuffix(q.Get("sort"), changeSuffix) {
			return r, true, errNoChanges
		}
		return r, false, nil
	}
	if err != nil {
		return r, true, err
	}
	read := func(name string, def int64) (int64, error) {
		text := q.Get(name)
		if text == "" && def >= 0 {
			return def, nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > mostMS {
			return 0, fmt.Errorf("%s: %.40q is outside 0..%d, milliseconds since 1970", name, text, int64(mostMS))
		}
		return n, nil
	}
	if r.From, err = read("from", -1); err != nil {
		return r, true, err
	}
	if r.To, err = read("to", now.UnixMilli()); err != nil {
		return r, true, err
	}
	if r.Back = back; r.Back > r.From {
		return r, true, fmt.Errorf("compare: %d before from, %d, is before 1970", r.Back, r.From)
	}
	if r.Back == 0 && strings.HasSuffix(q.Get("sort"), changeSuffix) {
		return r, true, errNoChanges
	}
	if r.From >= r.To {
		return r, true, fmt.Errorf("from: %d is not before to, %d", r.From, r.To)
	}
	return r, true, nil
}

func (r Span) ns() (from, to int64) { return r.From * 1e6, r.To * 1e6 }

// figures are the metrics by name.
var figures = map[string]history.Figure{
	"latency_min": history.LatencyMin, "latency_p50": history.LatencyP50, "latency_p90": history.LatencyP90, "latency_p99": history.LatencyP99, "latency_max": history.LatencyMax,
	"queue_min": history.QueueMin, "queue_p50": history.QueueP50, "queue_p99": history.QueueP99, "queue_max": history.QueueMax,
	"tx_utilization_max": history.UtilizationMax, "count": history.Records,
}

// ErrRange is the error of a range that no history can answer.
var ErrRange = history.ErrRange

// about returns the time of an answer, and what it lacks.
func (p *Past) about(r Span, c *history.Columns) *Range {
	out := &Range{FromMS: c.From / 1e6, ToMS: c.To / 1e6, ResolutionMS: c.Step.Milliseconds(), Merged: c.Merged(), Columns: c.Windows, Lacks: []string{}}
	add := func(format string, args ...any) { out.Lacks = append(out.Lacks, fmt.Sprintf(format, args...)) }
	step, oldest := c.Step, c.Oldest/1e6
	switch newest := p.Store.Stats().Newest / 1e6; {
	case c.Oldest == 0:
		add("the history is empty: a minute is written when it has ended")
	case oldest >= r.To || newest <= r.From:
		add("the history is from %s to %s", at(oldest), at(newest))
	default:
		if oldest > r.From+step.Milliseconds() {
			add("the history begins at %s", at(oldest))
		}
		first, last := max(c.From, c.Oldest/int64(step)*int64(step)), min(c.To, newest*1e6)
		gaps, all := 0, 0
		for i, n := range c.Windows {
			if end := c.End(i); end > first && end-int64(step) < last {
				all++
				if n == 0 {
					gaps++
				}
			}
		}
		if gaps > 0 {
			add("%d of %d columns are gaps: no window of that time was written", gaps, all)
		}
	}
	if c.Damaged > 0 {
		add("%d damaged records could not be read", c.Damaged)
	}
	return out
}

func at(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04 UTC") }

// idOf is an id of a hop that is the same in all answers.
func idOf(k inference.HopKey) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, k.Node, " ", k.EgressIf, " ", k.Other) // it takes every write
	return h.Sum64() >> 11                               // which numbers of JavaScript hold
}

// series reads one figure of the hops that keep lets pass.
func (p *Past) series(ctx context.Context, r Span, f history.Figure, keep func(inference.HopKey) bool) (map[inference.HopKey][]Value, history.Columns, error) {
	type value struct {
		column int
		v      float32
	}
	found := map[inference.HopKey][]value{}
	from, to := r.ns()
	c, err := p.Store.Series(ctx, from, to, func(i int, k inference.HopKey, all *history.Figures) {
		if keep == nil || keep(k) {
			found[k] = append(found[k], value{i, all[f]})
		}
	})
	out := make(map[inference.HopKey][]Value, len(found))
	for k, list := range found {
		row := absent(len(c.Windows))
		for _, x := range list {
			row[x.column] = Value(x.v)
		}
		out[k] = row
	}
	return out, c, err
}

func absent(n int) []Value {
	row := make([]Value, n)
	for i := range row {
		row[i] = Absent
	}
	return row
}

func ends(c *history.Columns) []int64 {
	out := make([]int64, len(c.Windows))
	for i := range out {
		out[i] = c.End(i) / 1e6
	}
	return out
}

// Matrix is a metric of all hops over the columns of a range.
func (p *Past) Matrix(ctx context.Context, r Span, metric, unit string) (*Matrix, error) {
	rows, c, err := p.series(ctx, r, figures[metric], nil)
	if err != nil {
		return nil, err
	}
	m := &Matrix{Metric: metric, Unit: unit, Windows: ends(&c), Reports: c.Reports, Hops: []MatrixRow{}, Range: p.about(r, &c)}
	for _, k := range slices.SortedFunc(keys(rows), inference.HopKey.Compare) {
		m.Hops = append(m.Hops, MatrixRow{ID: idOf(k), Node: k.NodeName(), EgressIf: k.EgressName(), Values: rows[k]})
	}
	return m, nil
}

func keys[V any](m map[inference.HopKey]V) func(func(inference.HopKey) bool) {
	return func(yield func(inference.HopKey) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// Hops lists hops of a range, those first whose worst column is worst, unless at has another order. Their values are those of all windows of the range together.
// A sort of at that is one of [HopColumns] goes before byNode.
func (p *Past) Hops(ctx context.Context, r Span, metric string, byNode bool, keep func(inference.HopKey) bool, at Page) (*HopList, error) {
	trends, c, err := p.series(ctx, r, figures[metric], keep)
	if err != nil {
		return nil, err
	}
	from, to := r.ns()
	w, sum, err := p.Store.Sum(ctx, from, to)
	if err != nil {
		return nil, err
	}
	c.Damaged += sum.Damaged
	list := slices.SortedFunc(keys(trends), inference.HopKey.Compare)
	switch {
	case !byNode:
		SortBy(list, func(k *inference.HopKey) float64 { return float64(worst(trends[*k])) }, at.Ascends(false))
	case !at.Ascends(true):
		slices.Reverse(list)
	}
	out := &HopList{Sort: metric, Total: len(list), RecentWindows: len(c.Windows), Hops: []HopRow{}, Range: p.about(r, &c)}
	if r.Back == 0 { // no row but those of the page is needed
		list = Cut(list, at)
		at.Offset = 0
	}
	for _, k := range list {
		out.Hops = append(out.Hops, rowOf(k, &w, trends[k], &c))
	}
	if err := compare(ctx, p, r, out.Range, out.Hops, HopColumns, func(w *inference.Window) (rows []HopRow) {
		for i := range w.Hops {
			if keep(w.Hops[i].HopKey) {
				rows = append(rows, rowOf(w.Hops[i].HopKey, w, nil, nil))
			}
		}
		return rows
	}); err != nil {
		return nil, err
	}
	if r.Back > 0 && at.Sort != ChangeOf(at.Sort) {
		Sort(out.Hops, HopColumns, func(h *HopRow) *HopRow { return h }, at)
	}
	out.Hops = Cut(out.Hops, at)
	return out, nil
}

// worst is the largest value of a row, absent where it has none.
func worst(row []Value) Value {
	w := Absent
	for _, v := range row {
		if !(w >= v) && v == v {
			w = v
		}
	}
	return w
}

// rowOf is a hop in all windows of a range.
func rowOf(k inference.HopKey, w *inference.Window, trend []Value, c *history.Columns) HopRow {
	f := history.NoFigures()
	if i, ok := slices.BinarySearchFunc(w.Hops, k, func(h inference.HopStats, k inference.HopKey) int { return h.HopKey.Compare(k) }); ok {
		f = history.FiguresOf(&w.Hops[i])
	}
	v := func(i history.Figure) Value { return Value(f[i]) }
	least := v(history.LatencyMin)
	row := HopRow{
		ID: idOf(k), Node: k.NodeName(), EgressIf: k.EgressName(), Count: v(history.Records), Utilization: v(history.UtilizationMax), LatencyMin: &least,
		Latency: LatencyValues{P50: v(history.LatencyP50), P90: v(history.LatencyP90), P99: v(history.LatencyP99), Max: v(history.LatencyMax)},
		Queue:   QueueValues{P50: v(history.QueueP50), P99: v(history.QueueP99), Max: v(history.QueueMax)}, Worst: Absent, Trend: trend,
	}
	if x := worst(trend); x >= 0 {
		row.Worst = x
	}
	for i, x := range trend { // c is nil where there is none
		if x == x {
			row.LastMS = c.End(i) / 1e6
		}
	}
	return row
}

// Hop is one hop over a range. Without a report in the range it has gaps alone.
func (p *Past) Hop(ctx context.Context, r Span, k inference.HopKey) (*HopAnswer, error) {
	from, to := r.ns()
	type column struct {
		i int
		f history.Figures
	}
	var found []column
	c, err := p.Store.Series(ctx, from, to, func(i int, x inference.HopKey, f *history.Figures) {
		if x == k {
			found = append(found, column{i, *f})
		}
	})
	if err != nil {
		return nil, err
	}
	w, sum, err := p.Store.Sum(ctx, from, to)
	if err != nil {
		return nil, err
	}
	c.Damaged += sum.Damaged
	out := &HopAnswer{Windows: ends(&c), Series: map[string][]Value{}, Range: p.about(r, &c)}
	for name, f := range figures {
		row := absent(len(c.Windows))
		for _, x := range found {
			row[x.i] = Value(x.f[f])
		}
		out.Series[name] = row
	}
	out.Row = rowOf(k, &w, out.Series["latency_p99"], &c)
	return out, nil
}

// Findings are those that lasted in a range, as they were at its end. isOpen reports whether a finding is open now.
func (p *Past) Findings(ctx context.Context, r Span, isOpen func(id uint64) bool) (open, ended []inference.Finding, about *Range, err error) {
	from, to := r.ns()
	h, c, err := p.Store.Happened(ctx, from, to)
	if err != nil {
		return nil, nil, nil, err
	}
	about = p.about(r, &c)
	later := map[uint64]bool{}
	if newest := p.Store.Stats().Newest; newest > c.To {
		next, err := p.Store.After(ctx, c.To)
		if err != nil {
			return nil, nil, nil, err
		}
		for _, id := range next {
			later[id] = true
		}
	}
	unknown := 0
	for _, f := range h.Findings {
		switch {
		case f.End != 0:
			ended = append(ended, f)
		case f.Updated >= c.From || later[f.ID] || isOpen(f.ID):
			open = append(open, f)
		default:
			unknown++
		}
	}
	if unknown > 0 {
		about.Lacks = append(about.Lacks, fmt.Sprintf("%d findings of earlier runs are left out, because their end is not known", unknown))
	}
	if h.LeftOut > 0 {
		about.Lacks = append(about.Lacks, fmt.Sprintf("%d findings had no place in the records", h.LeftOut))
	}
	SortOpen(open)
	slices.SortFunc(ended, func(a, b inference.Finding) int { return cmp.Or(cmp.Compare(b.End, a.End), cmp.Compare(b.ID, a.ID)) })
	return open, ended, about, nil
}

// otherTime is the stage of reports that were received in a range and settled in another time, less those the other way round.
const otherTime = "other-time"

// Ledger is what was counted in a range, by sink.
func (p *Past) Ledger(ctx context.Context, r Span) ([]sink.Balance, *Range, error) {
	from, to := r.ns()
	h, c, err := p.Store.Happened(ctx, from, to)
	if err != nil {
		return nil, nil, err
	}
	list := []sink.Balance{}
	for name, a := range h.Ledger {
		b := sink.Balance{Sink: name, Received: a.Received, Stored: a.Stored, Dropped: map[string]int64{}, InFlight: map[string]int64{}}
		rest := int64(a.Received) - int64(a.Stored)
		for stage, n := range a.Dropped {
			b.Dropped[stage] = int64(n)
			rest -= int64(n)
		}
		b.InFlight[otherTime] = rest
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b sink.Balance) int { return cmp.Compare(a.Sink, b.Sink) })
	return list, p.about(r, &c), nil
}
