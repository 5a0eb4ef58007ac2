package ask

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

// Hops are the worst hops of a collector.
type Hops struct {
	Sort          string
	Total         int
	RecentWindows int `json:"recent_windows"`
	Hops          []struct {
		Node     inference.HopName
		EgressIf string `json:"egress_if"`
		LastMS   int64  `json:"last_ms"`
		Count    *float64
		Latency  struct{ P50, P90, P99, Max *float64 } `json:"latency_ns"`
		Queue    struct{ P50, P99, Max *float64 }      `json:"queue_bytes"`
		Learning bool
		Worst    *float64
	}
	Range *Range // of an answer out of the history
}

// Write writes the hops as text, in the order of sort, with the names of nodes.
func (h *Hops) Write(w io.Writer, sort string, called *names.Names) error {
	seen, of := "15:04:05", "windows"
	switch {
	case h.Range != nil:
		seen, of = time.DateTime, "columns"
		fmt.Fprintf(w, "%s to %s, from %d windows of the history", time.UnixMilli(h.Range.FromMS).Format(time.DateTime), time.UnixMilli(h.Range.ToMS).Format(time.DateTime), h.Range.Merged)
		for _, s := range h.Range.Lacks {
			fmt.Fprintf(w, "; %s", names.Printable(s))
		}
		if _, err := fmt.Fprintln(w); err != nil || len(h.Hops) == 0 {
			return err
		}
	case len(h.Hops) == 0:
		_, err := fmt.Fprintln(w, "No hop was reported yet.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	by := sort // the column that the rows are in the order of
	if sort == "node" {
		by = h.Sort
	}
	fmt.Fprintf(t, "node\tegress\tworst %s of %d %s\treports\tp50\tp90\tp99\tmax\tqueue p50\tqueue p99\tlast seen\tstate\n", strings.ReplaceAll(by, "_", " "), h.RecentWindows, of)
	bare := true // so are devices that send counters and samples alone
	for _, x := range h.Hops {
		last := "-"
		if x.LastMS != 0 {
			last = time.UnixMilli(x.LastMS).Format(seen)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", called.HopNode(x.Node.HopKey), egressCell(called, x.Node, x.EgressIf), metricCell(by, x.Worst), plainCell(x.Count), nsCell(x.Latency.P50), nsCell(x.Latency.P90),
			nsCell(x.Latency.P99), nsCell(x.Latency.Max), bytesCell(x.Queue.P50), bytesCell(x.Queue.P99), last, stateCell(x.Learning))
		bare = bare && x.Latency.Max == nil && x.Queue.Max == nil
	}
	if err := t.Flush(); err != nil || !bare {
		return err
	}
	_, err := fmt.Fprintln(w, "None of these hops has a latency or a queue; hopscope top --interfaces has the counters of interfaces.")
	return err
}

// LatencyValues are the quantiles of the latency of a hop, in nanoseconds.
type LatencyValues struct {
	P50 Value `json:"p50"`
	P90 Value `json:"p90"`
	P99 Value `json:"p99"`
	Max Value `json:"max"`
}

// QueueValues are the quantiles of the queue of a hop, in bytes.
type QueueValues struct {
	P50 Value `json:"p50"`
	P99 Value `json:"p99"`
	Max Value `json:"max"`
}

// HopRow is a hop in its last window.
type HopRow struct {
	ID          uint64        `json:"id"`
	Node        string        `json:"node"`
	EgressIf    string        `json:"egress_if"`
	LastMS      int64         `json:"last_ms"` // end of the window that the values are of
	Count       Value         `json:"count"`
	LatencyMin  *Value        `json:"latency_min_ns,omitempty"` // of a range of the history
	Latency     LatencyValues `json:"latency_ns"`
	Queue       QueueValues   `json:"queue_bytes"`
	Utilization Value         `json:"tx_utilization"`
	Learning    bool          `json:"learning"`            // younger than its statistics need
	Judgement   string        `json:"judgement,omitempty"` // "judged", or why it was not: "too-young", "too-few"
	Worst       Value         `json:"worst"`               // of the metric of the list, in the recent windows
	Trend       []Value       `json:"trend"`               // of the same metric, the kept windows, oldest first
	Compared
}

func (r *HopRow) key() string { return r.Node + ":" + r.EgressIf }

// HopColumns are the values of hops that have differences.
var HopColumns = withChanges([]Column[HopRow]{
	{Name: "latency_p50", Number: func(h *HopRow) float64 { return float64(h.Latency.P50) }},
	{Name: "latency_p90", Number: func(h *HopRow) float64 { return float64(h.Latency.P90) }},
	{Name: "latency_p99", Number: func(h *HopRow) float64 { return float64(h.Latency.P99) }},
	{Name: "latency_max", Number: func(h *HopRow) float64 { return float64(h.Latency.Max) }},
	{Name: "queue_p50", Number: func(h *HopRow) float64 { return float64(h.Queue.P50) }},
	{Name: "queue_p99", Number: func(h *HopRow) float64 { return float64(h.Queue.P99) }},
	{Name: "queue_max", Number: func(h *HopRow) float64 { return float64(h.Queue.Max) }},
	{Name: "tx_utilization_max", Number: func(h *HopRow) float64 { return float64(h.Utilization) }},
	{Name: "count", Number: func(h *HopRow) float64 { return float64(h.Count) }},
}, (*HopRow).compared)

// HopList holds some of the hops.
type HopList struct {
	Sort          string   `json:"sort"` // the metric of worst and trend
	Total         int      `json:"total"`
	RecentWindows int      `json:"recent_windows"` // windows or columns that worst covers
	Hops          []HopRow `json:"hops"`
	Range         *Range   `json:"range,omitempty"` // of an answer out of the history
}

// HopAnswer is one hop over the kept windows.
type HopAnswer struct {
	Row     HopRow             `json:"hop"`
	Windows []int64            `json:"windows"`         // their ends
	Series  map[string][]Value `json:"series"`          // by metric, a value of each window
	Range   *Range             `json:"range,omitempty"` // of an answer out of the history
}

// Matrix is a metric of all hops over the kept windows.
type Matrix struct {
	Metric   string              `json:"metric"`
	Unit     string              `json:"unit"`    // ns, B, ratio or reports
	Windows  []int64             `json:"windows"` // their ends
	Reports  []uint64            `json:"reports"` // of each window
	Hops     []MatrixRow         `json:"hops"`
	Missing  map[string][]string `json:"missing,omitempty"`  // of a fleet: the collectors that a window is without, by its end
	Replaced uint64              `json:"replaced,omitempty"` // corrected windows before the newest: if it grows, request all
	Range    *Range              `json:"range,omitempty"`    // of an answer out of the history
}

// MatrixRow is a hop of a [Matrix].
type MatrixRow struct {
	ID       uint64  `json:"id"` // of a hop for as long as it is kept
	Node     string  `json:"node"`
	EgressIf string  `json:"egress_if"`
	Values   []Value `json:"values"` // of each window
}
