package ask

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Page is the part of a list that a request asks for, and its order.
type Page struct {
	Offset, Limit int
	Sort          string // column that the whole list is sorted by, before the page is cut; "" for the list's own order
	Order         string // asc, desc, or "" for the direction of the column
}

// Orders are the directions of a sorted list.
var Orders = []string{"asc", "desc"}

// Column is a column that rows can be sorted by. It has one of Number and Text. Absent numbers (NaN) and empty texts come last in both
// directions.
type Column[R any] struct {
	Name   string
	Number func(*R) float64 // descends, unless the request has an order
	Text   func(*R) string  // ascends; numbers in it count as such, so that 10.0.0.9 is before 10.0.0.10
}

// ColumnNames lists the columns, for the description of the API.
func ColumnNames[R any](columns []Column[R]) (out []string) {
	for i := range columns {
		out = append(out, columns[i].Name)
	}
	return out
}

// ReadPage reads limit, offset, sort and order from a query. Sort has to be one of the columns; a list without columns has another
// reader for it.
func ReadPage[R any](q url.Values, columns []Column[R]) (p Page, err error) {
	limit, err := IntParam(q, "limit", 20, 1, 200)
	if err != nil {
		return p, err
	}
	offset, err := IntParam(q, "offset", 0, 0, 1<<31)
	if err != nil {
		return p, err
	}
	p = Page{Offset: int(offset), Limit: int(limit), Sort: q.Get("sort"), Order: q.Get("order")}
	switch names := ColumnNames(columns); {
	case p.Order != "" && !slices.Contains(Orders, p.Order):
		return p, fmt.Errorf("order: %.40q is not one of %v", p.Order, Orders)
	case len(columns) == 0:
	case p.Sort == "" && p.Order != "":
		return p, fmt.Errorf("order: needs sort, which is one of %v", names)
	case p.Sort != "" && !slices.Contains(names, p.Sort):
		return p, fmt.Errorf("sort: %.40q is not one of %v", p.Sort, names)
	}
	return p, nil
}

// IntParam reads a number between min and max from the query, or def where the query has none.
func IntParam(q url.Values, name string, def, min, max int64) (int64, error) {
	t := q.Get(name)
	if t == "" {
		return def, nil
	}
	n, err := strconv.ParseInt(t, 10, 64)
	if err != nil || n < min || n > max {
		return 0, fmt.Errorf("%s: %.40q is outside %d..%d", name, t, min, max)
	}
	return n, nil
}

// Ascends reports the direction of the page; usual is that of its column.
func (p *Page) Ascends(usual bool) bool { return p.Order == "asc" || p.Order == "" && usual }

// Cut returns the rows of the page.
func Cut[R any](rows []R, p Page) []R {
	return rows[min(p.Offset, len(rows)):min(p.Offset+p.Limit, len(rows))]
}

// Sort sorts rows, which are in the list's own order, by the column of the page. Equal rows keep their order.
func Sort[R, T any](rows []R, columns []Column[T], of func(*R) *T, p Page) {
	i := slices.IndexFunc(columns, func(c Column[T]) bool { return c.Name == p.Sort })
	if i < 0 {
		return
	}
	if number := columns[i].Number; number != nil {
		SortBy(rows, func(r *R) float64 { return number(of(r)) }, p.Ascends(false))
		return
	}
	text := columns[i].Text
	sortKeyed(rows, func(r *R) string { return text(of(r)) }, func(s string) bool { return s == "" }, compareText, p.Ascends(true))
}

// SortBy sorts rows by a number. Rows without one (NaN) come last, and equal rows keep their order.
func SortBy[R any](rows []R, number func(*R) float64, ascends bool) {
	sortKeyed(rows, number, math.IsNaN, cmp.Compare[float64], ascends)
}

// sortKeyed makes each key once.
func sortKeyed[R, K any](rows []R, key func(*R) K, absent func(K) bool, compare func(a, b K) int, ascends bool) {
	type keyed struct {
		key    K
		absent bool
		row    R
	}
	list := make([]keyed, len(rows))
	for i := range rows {
		k := key(&rows[i])
		list[i] = keyed{k, absent(k), rows[i]}
	}
	slices.SortStableFunc(list, func(a, b keyed) int {
		switch {
		case a.absent && b.absent:
			return 0
		case a.absent:
			return 1
		case b.absent:
			return -1
		case ascends:
			return compare(a.key, b.key)
		}
		return compare(b.key, a.key)
	})
	for i := range list {
		rows[i] = list[i].row
	}
}

// compareText compares texts in which runs of digits count as whole numbers.
func compareText(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x > 0 && y > 0 {
			m, n := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
			if c := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n)); c != 0 {
				return c
			}
			a, b = a[x:], b[y:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits is how many digits a text begins with.
func digits(s string) int {
	return len(s) - len(strings.TrimLeft(s, "0123456789"))
}

// number returns a count as a column has it, NaN where it was not reported.
func number(n *uint64) float64 {
	if n == nil {
		return math.NaN()
	}
	return float64(*n)
}

// share returns part of part and rest.
func share(part, rest float64) float64 {
	if part <= 0 {
		return 0
	}
	return part / (part + rest)
}

// FlowPlace is what flows are sorted by.
type FlowPlace struct {
	Key     string
	Packets float64
	Changes uint64
	Latency Value // p99, the greatest of the nodes on the path
}

// FlowColumns are the columns of the list of flows.
var FlowColumns = []Column[FlowPlace]{
	{Name: "key", Text: func(f *FlowPlace) string { return f.Key }},
	{Name: "packets", Number: func(f *FlowPlace) float64 { return f.Packets }},
	{Name: "latency_p99_ns", Number: func(f *FlowPlace) float64 { return float64(f.Latency) }},
	{Name: "changes", Number: func(f *FlowPlace) float64 { return float64(f.Changes) }},
}

// ExporterColumns are the columns of the list of exporters. State has those first that need attention most; loss is the share of lost
// reports.
var ExporterColumns = withChanges([]Column[ExporterRow]{
	{Name: "state", Number: func(e *ExporterRow) float64 {
		recent := share(float64(e.RecentLost), float64(e.RecentReports))
		switch {
		case e.Silent:
			return 3
		case recent > 0:
			return 1 + recent
		case e.Idle:
			return 1
		}
		return 0
	}},
	{Name: "address", Text: func(e *ExporterRow) string { return e.Address }},
	{Name: "node", Text: func(e *ExporterRow) string { return e.Node }},
	{Name: "hw_id", Text: func(e *ExporterRow) string { return e.HWID }},
	{Name: "reports", Number: func(e *ExporterRow) float64 { return float64(e.Reports) }},
	{Name: "lost", Number: func(e *ExporterRow) float64 { return float64(e.Lost) }},
	{Name: "loss", Number: func(e *ExporterRow) float64 { return share(float64(e.Lost), float64(e.Reports)) }},
	{Name: "duplicated", Number: func(e *ExporterRow) float64 { return float64(e.Duplicated) }},
	{Name: "reordered", Number: func(e *ExporterRow) float64 { return float64(e.Reordered) }},
	{Name: "restarts", Number: func(e *ExporterRow) float64 { return float64(e.Restarts) }},
	{Name: "malformed", Number: func(e *ExporterRow) float64 { return float64(e.Malformed) }},
	{Name: "last_ms", Number: func(e *ExporterRow) float64 { return float64(e.LastMS) }},
}, (*ExporterRow).compared)

// InterfaceColumns are the columns of the list of interfaces.
var InterfaceColumns = withChanges([]Column[InterfaceRow]{
	{Name: "interface", Text: func(r *InterfaceRow) string { return r.Node + ":" + r.Interface }},
	{Name: "speed_bps", Number: func(r *InterfaceRow) float64 {
		if r.Speed == 0 {
			return math.NaN()
		}
		return r.Speed
	}},
	{Name: "rx_utilization", Number: func(r *InterfaceRow) float64 { return float64(r.Received) }},
	{Name: "tx_utilization", Number: func(r *InterfaceRow) float64 { return float64(r.Utilization) }},
	{Name: "in_packets", Number: func(r *InterfaceRow) float64 { return number(r.InPackets) }},
	{Name: "out_packets", Number: func(r *InterfaceRow) float64 { return number(r.OutPackets) }},
	{Name: "in_errors", Number: func(r *InterfaceRow) float64 { return number(r.InErrors) }},
	{Name: "out_errors", Number: func(r *InterfaceRow) float64 { return number(r.OutErrors) }},
	{Name: "in_discards", Number: func(r *InterfaceRow) float64 { return number(r.InDiscards) }},
	{Name: "out_discards", Number: func(r *InterfaceRow) float64 { return number(r.OutDiscards) }},
	{Name: "queue_p99_bytes", Number: func(r *InterfaceRow) float64 { return float64(r.QueueP99) }},
	{Name: "last_ms", Number: func(r *InterfaceRow) float64 { return float64(r.LastMS) }},
}, (*InterfaceRow).compared)

// ProbedColumns are the columns of the list of paths of probes. Lost is the share of lost probes.
var ProbedColumns = withChanges([]Column[ProbedRow]{
	{Name: "from", Text: func(r *ProbedRow) string { return r.From + " " + r.To }},
	{Name: "path", Text: func(r *ProbedRow) string { return fmt.Sprint(r.Path, " of ", r.Epoch) }},
	{Name: "sent", Number: func(r *ProbedRow) float64 { return float64(r.Sent) }},
	{Name: "received", Number: func(r *ProbedRow) float64 { return float64(r.Received) }},
	{Name: "lost", Number: func(r *ProbedRow) float64 { return share(float64(r.Lost), float64(r.Received)) }},
	{Name: "late", Number: func(r *ProbedRow) float64 { return float64(r.Late) }},
	{Name: "duplicated", Number: func(r *ProbedRow) float64 { return float64(r.Twice) }},
	{Name: "reordered", Number: func(r *ProbedRow) float64 { return float64(r.Reordered) }},
	{Name: "corrupt", Number: func(r *ProbedRow) float64 { return float64(r.Corrupt) }},
	{Name: "delay_p50_ns", Number: func(r *ProbedRow) float64 { return float64(r.DelayP50) }},
	{Name: "delay_p99_ns", Number: func(r *ProbedRow) float64 { return float64(r.DelayP99) }},
	{Name: "last_ms", Number: func(r *ProbedRow) float64 { return float64(r.LastMS) }},
}, (*ProbedRow).compared)
