package ask

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/history"
)

// The tables of a range hold the sums over all windows in it. A row is not known by window, and so when it was last seen is not
// either, except for exporters.

// InterfaceTable holds some of the interfaces of a range.
type InterfaceTable struct {
	Total         int            `json:"total"`
	RecentWindows int            `json:"recent_windows"`
	Interfaces    []InterfaceRow `json:"interfaces"`
	Range         *Range         `json:"range"`
}

// ProbedTable holds some of the paths of probes of a range.
type ProbedTable struct {
	Total         int         `json:"total"`
	RecentWindows int         `json:"recent_windows"`
	Paths         []ProbedRow `json:"paths"`
	Range         *Range      `json:"range"`
}

// FlowTable is the answer to a range of flows, of which the history keeps none.
type FlowTable struct {
	Total         int       `json:"total"`
	RecentWindows int       `json:"recent_windows"`
	Flows         []FlowRow `json:"flows"`
	Range         *Range    `json:"range"`
}

// sum merges the windows of a range.
func (p *Past) sum(ctx context.Context, r Span) (inference.Window, *Range, error) {
	from, to := r.ns()
	w, c, err := p.Store.Sum(ctx, from, to)
	if err != nil {
		return w, nil, err
	}
	return w, p.about(r, &c), nil
}

// Flows has no rows, and the reason.
func (p *Past) Flows(ctx context.Context, r Span) (*FlowTable, error) {
	from, to := r.ns()
	c, err := p.Store.Series(ctx, from, to, func(int, inference.HopKey, *history.Figures) {})
	if err != nil {
		return nil, err
	}
	about := p.about(r, &c)
	about.Lacks = append(about.Lacks, "the history keeps hops, interfaces, exporters and probes, and no flows")
	return &FlowTable{Flows: []FlowRow{}, Range: about}, nil
}

// Exporters lists exporters of a range, those that lose most first.
func (p *Past) Exporters(ctx context.Context, r Span, filter names.Search, n *names.Names, at Page) (*ExporterList, error) {
	w, about, err := p.sum(ctx, r)
	if err != nil {
		return nil, err
	}
	list := func(w *inference.Window) []ExporterRow {
		rows := []ExporterRow{}
		for i := range w.Exporters {
			if e := &w.Exporters[i]; filter.Exporter(e.ExporterKey, n).Found() {
				rows = append(rows, exporterRow(e))
			}
		}
		return rows
	}
	rows := list(&w)
	if err := compare(ctx, p, r, about, rows, ExporterColumns, list); err != nil {
		return nil, err
	}
	SortBy(rows, func(e *ExporterRow) float64 { return share(float64(e.Lost), float64(e.Reports)) }, false)
	Sort(rows, ExporterColumns, func(e *ExporterRow) *ExporterRow { return e }, at)
	return &ExporterList{Total: len(rows), RecentWindows: len(about.Columns), Exporters: Cut(rows, at), Range: about}, nil
}

// exporterRow is an exporter in all windows of a range.
func exporterRow(e *inference.ExporterStats) ExporterRow {
	count := func(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
	row := ExporterRow{Address: e.Addr.String(), HWID: strconv.Itoa(int(e.HWID)), LastMS: e.Last / 1e6, RecentReports: count(e.Reports), RecentLost: e.Lost, Trend: []Value{}, ExporterTotals: ExporterTotals{
		Reports: count(e.Reports), Lost: e.Lost, Duplicated: count(e.Duplicated), Reordered: count(e.Reordered), Late: count(e.Late), Down: count(e.Down),
		Provisional: count(e.Provisional), Restarts: count(e.Restarts), Malformed: count(e.Malformed)}}
	if !e.Nameless {
		row.Node = strconv.FormatUint(uint64(e.Node), 10)
	}
	return row
}

// Interfaces lists interfaces of a range, those first that damage or discard the greatest share of their packets.
func (p *Past) Interfaces(ctx context.Context, r Span, filter names.Search, n *names.Names, at Page) (*InterfaceTable, error) {
	w, about, err := p.sum(ctx, r)
	if err != nil {
		return nil, err
	}
	list := func(w *inference.Window) []InterfaceRow {
		rows := []InterfaceRow{}
		for i := range w.Interfaces {
			if x := &w.Interfaces[i]; filter.Hop(x.Key(), n).Found() {
				rows = append(rows, interfaceRow(x, w, n))
			}
		}
		return rows
	}
	rows := list(&w)
	if err := compare(ctx, p, r, about, rows, InterfaceColumns, list); err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b InterfaceRow) int {
		return cmp.Or(cmp.Compare(b.LostShare(), a.LostShare()), cmp.Compare(Greater(b.Utilization, b.Received), Greater(a.Utilization, a.Received)))
	})
	Sort(rows, InterfaceColumns, func(r *InterfaceRow) *InterfaceRow { return r }, at)
	return &InterfaceTable{len(rows), len(about.Columns), Cut(rows, at), about}, nil
}

// interfaceRow is an interface in all windows of a range.
func interfaceRow(x *inference.InterfaceStats, w *inference.Window, n *names.Names) InterfaceRow {
	known, _ := n.FindInterface(x.Node, x.Interface)
	row := InterfaceRow{Node: x.Key().NodeName(), Interface: x.Name(), Speed: known.Speed, Utilization: Absent, Received: Absent, QueueP99: Absent}
	if i, ok := slices.BinarySearchFunc(w.Hops, x.Key(), func(h inference.HopStats, k inference.HopKey) int { return h.HopKey.Compare(k) }); ok {
		f := history.FiguresOf(&w.Hops[i])
		row.Utilization, row.QueueP99 = Value(f[history.UtilizationMax]), Value(f[history.QueueP99])
	}
	if x.Has&decode.CountRxUtilization != 0 {
		row.Received = Value(x.RxUtilization) / decode.WholeUtilization
	}
	for which, to := range [...]**uint64{&row.InPackets, &row.OutPackets, &row.InErrors, &row.OutErrors, &row.InDiscards, &row.OutDiscards} {
		if x.Has>>which&1 != 0 {
			n := *x.All()[which]
			*to = &n
		}
	}
	if x.Has&decode.CountInOctets != 0 {
		row.InOctets = &x.InOctets
	}
	if x.Has&decode.CountOutOctets != 0 {
		row.OutOctets = &x.OutOctets
	}
	return row
}

// LostShare is the share of errors and discards among them and the packets, of the worse direction.
func (r *InterfaceRow) LostShare() float64 {
	of := func(packets, errors, discards *uint64) float64 {
		n := func(n *uint64) float64 {
			if n == nil {
				return 0
			}
			return float64(*n)
		}
		return share(n(errors)+n(discards), n(packets))
	}
	return max(of(r.InPackets, r.InErrors, r.InDiscards), of(r.OutPackets, r.OutErrors, r.OutDiscards))
}

// Greater returns the greater of two values, of which one may be absent.
func Greater(a, b Value) Value {
	if cmp.Compare(a, b) < 0 {
		return b
	}
	return a
}

// Probed lists paths of probes of a range, those first that lose or damage the greatest share of their probes.
func (p *Past) Probed(ctx context.Context, r Span, filter names.Search, n *names.Names, at Page) (*ProbedTable, error) {
	w, about, err := p.sum(ctx, r)
	if err != nil {
		return nil, err
	}
	list := func(w *inference.Window) []ProbedRow {
		rows := []ProbedRow{}
		for i := range w.Probes {
			if x := &w.Probes[i]; !x.Other() && filter.Probe(&x.ProbeKey, n).Found() {
				rows = append(rows, probedRowOf(x))
			}
		}
		return rows
	}
	rows := list(&w)
	if err := compare(ctx, p, r, about, rows, ProbedColumns, list); err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b ProbedRow) int {
		bad := func(r *ProbedRow) float64 {
			return share(float64(max(r.Lost, 0))+float64(r.Corrupt), float64(r.Received))
		}
		return cmp.Or(cmp.Compare(bad(&b), bad(&a)), cmp.Compare(b.DelayP99, a.DelayP99))
	})
	Sort(rows, ProbedColumns, func(r *ProbedRow) *ProbedRow { return r }, at)
	return &ProbedTable{len(rows), len(about.Columns), Cut(rows, at), about}, nil
}

// probedRowOf is a path of probes in all windows of a range.
func probedRowOf(x *inference.ProbeStats) ProbedRow {
	row := ProbedRow{From: x.From.String(), To: x.To.String(), Path: x.Path, Epoch: x.Epoch, Sent: x.Sent, Received: x.Received, Lost: x.Lost(), Forward: x.Forward, Back: x.Back,
		Late: x.Late, Twice: x.Twice, Corrupt: x.Corrupt, Reordered: x.Reordered, DelayP50: Absent, DelayP99: Absent}
	if d := &x.Delay; d.Count > 0 {
		row.DelayP50, row.DelayP99 = Value(d.P50), Value(d.P99)
	}
	return row
}

// Places is what a map shows of a range.
type Places struct {
	Values   map[inference.HopKey]Value // of a metric, of all windows together
	Drops    map[uint32]uint64          // packets, by node
	Findings []inference.Finding        // that lasted
	Range    *Range

	Before map[inference.HopKey]Value // of the time that the range is compared with; nil without one
}

// Places returns what a map shows of a range.
func (p *Past) Places(ctx context.Context, r Span, metric string, isOpen func(id uint64) bool) (*Places, error) {
	w, about, err := p.sum(ctx, r)
	if err != nil {
		return nil, err
	}
	open, ended, _, err := p.Findings(ctx, r, isOpen)
	if err != nil {
		return nil, err
	}
	out := &Places{Drops: map[uint32]uint64{}, Findings: append(open, ended...), Range: about}
	values := func(w *inference.Window) map[inference.HopKey]Value {
		list := make(map[inference.HopKey]Value, len(w.Hops))
		for i := range w.Hops {
			f := history.FiguresOf(&w.Hops[i])
			list[w.Hops[i].HopKey] = Value(f[figures[metric]])
		}
		return list
	}
	out.Values = values(&w)
	if r.Back > 0 {
		earlier, was, err := p.sum(ctx, r.before())
		if err != nil {
			return nil, err
		}
		out.Before, about.Compared = values(&earlier), &Earlier{was.FromMS, was.ToMS, was.Merged, 0, was.Lacks}
	}
	for i := range w.Drops {
		out.Drops[w.Drops[i].Node] += w.Drops[i].Count
	}
	return out, nil
}
