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
}

// Write writes the hops as text, in the order of sort, with the names of nodes.
func (h *Hops) Write(w io.Writer, sort string, called *names.Names) error {
	if len(h.Hops) == 0 {
		_, err := fmt.Fprintln(w, "No hop was reported yet.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	by := sort // the column that the rows are in the order of
	if sort == "node" {
		by = h.Sort
	}
	fmt.Fprintf(t, "node\tegress\tworst %s of %d windows\treports\tp50\tp90\tp99\tmax\tqueue p50\tqueue p99\tlast seen\tstate\n", strings.ReplaceAll(by, "_", " "), h.RecentWindows)
	for _, x := range h.Hops {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", called.HopNode(x.Node.HopKey), egressCell(called, x.Node, x.EgressIf), metricCell(by, x.Worst), plainCell(x.Count), nsCell(x.Latency.P50), nsCell(x.Latency.P90),
			nsCell(x.Latency.P99), nsCell(x.Latency.Max), bytesCell(x.Queue.P50), bytesCell(x.Queue.P99), time.UnixMilli(x.LastMS).Format("15:04:05"), stateCell(x.Learning))
	}
	return t.Flush()
}
