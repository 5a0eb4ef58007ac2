package ask

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

// Flow is one flow of the answer of the page.
type Flow struct {
	Key     string
	Packets float64
	Changes uint64
	Path    []struct {
		Node       inference.HopName
		EgressIf   string   `json:"egress_if"`
		LatencyP50 *float64 `json:"latency_p50_ns"`
		LatencyP99 *float64 `json:"latency_p99_ns"`
		QueueP99   *float64 `json:"queue_p99_bytes"`
		ErrorP50   *float64 `json:"latency_p50_error"` // absent in answers of pages of the version before
		ErrorP99   *float64 `json:"latency_p99_error"`
	}
	Octets float64
	Seen   []struct {
		Node      inference.HopName
		IngressIf string `json:"ingress_if"`
		EgressIf  string `json:"egress_if"`
		Packets   uint64
		Octets    uint64
		DelayMean *float64 `json:"path_delay_mean_ns"`
		DelayMin  *float64 `json:"path_delay_min_ns"`
		DelayMax  *float64 `json:"path_delay_max_ns"`
	}
	Several *severalPaths
}

func (f *Flow) nodes(called *names.Names) string {
	var path []inference.HopKey
	for _, h := range f.Path {
		path = append(path, h.Node.HopKey)
	}
	if len(path) == 0 && len(f.Seen) > 0 {
		return fmt.Sprintf("not known (places: %d)", len(f.Seen))
	}
	return called.Path(path)
}

// octets writes the octets of a flow, "-" if they are not known.
func octets(n float64) string {
	if n == 0 {
		return "-"
	}
	return bytesCell(&n)
}

// WriteFlows writes flows as text, with the names of nodes.
func WriteFlows(w io.Writer, flows []Flow, called *names.Names) error {
	if len(flows) == 0 {
		_, err := fmt.Fprintln(w, "No flow was reported yet.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	head, cell := "", func(*Flow) string { return "" } // INT reports no octets
	if slices.ContainsFunc(flows, func(f Flow) bool { return f.Octets > 0 }) {
		head, cell = "\toctets", func(f *Flow) string { return "\t" + octets(f.Octets) }
	}
	fmt.Fprintf(t, "packets%s\tflow\tpath\tchanges\n", head)
	for _, f := range flows {
		fmt.Fprintf(t, "%.0f%s\t%s\t%s%s\t%d\n", f.Packets, cell(&f), f.Key, f.nodes(called), f.Several.note(), f.Changes)
	}
	return t.Flush()
}

// Write writes a flow as text, with the names of nodes.
func (f *Flow) Write(w io.Writer, k decode.FlowKey, called *names.Names) error {
	fmt.Fprintf(w, "%s\n", f.Key)
	if from, to := called.Host(k.SrcAddr()), called.Host(k.DstAddr()); from != "" || to != "" {
		fmt.Fprintf(w, "from %s to %s\n", cmp.Or(from, "?"), cmp.Or(to, "?"))
	}
	fmt.Fprintf(w, "%.0f packets lately, path %s%s, changed %d times\n\n", f.Packets, f.nodes(called), f.Several.note(), f.Changes)
	f.Several.print(w, called)
	if err := f.writeSeen(w, called); err != nil || len(f.Path) == 0 {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "hop\tnode\tegress\tp50\tp99\tqueue p99")
	for i, h := range f.Path {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\n", i, called.HopNode(h.Node.HopKey), egressCell(called, h.Node, h.EgressIf), nsWithinCell(h.LatencyP50, h.ErrorP50), nsWithinCell(h.LatencyP99, h.ErrorP99), bytesCell(h.QueueP99))
	}
	return t.Flush()
}

// writeSeen writes the places at which nodes saw the flow, by samples or flow records.
func (f *Flow) writeSeen(w io.Writer, called *names.Names) error {
	if len(f.Seen) == 0 {
		return nil
	}
	fmt.Fprintln(w, "seen by samples or flow records, which do not say in which order, and whose delays have no quantiles:")
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "node\tingress\tegress\tpackets\toctets\tpath delay mean\tmin\tmax")
	for _, s := range f.Seen {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", called.HopNode(s.Node.HopKey), egressCell(called, s.Node, s.IngressIf), egressCell(called, s.Node, s.EgressIf), s.Packets,
			octets(float64(s.Octets)), nsCell(s.DelayMean), nsCell(s.DelayMin), nsCell(s.DelayMax))
	}
	if err := t.Flush(); err != nil || len(f.Path) == 0 {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// FlowHopRow is one hop of a flow's path in the last window in which the flow was seen.
type FlowHopRow struct {
	Node       string `json:"node"`
	EgressIf   string `json:"egress_if,omitempty"`
	LatencyP50 Value  `json:"latency_p50_ns"`
	LatencyP99 Value  `json:"latency_p99_ns"`
	QueueP99   Value  `json:"queue_p99_bytes"`
	ErrorP50   Value  `json:"latency_p50_error"` // as a share of it
	ErrorP99   Value  `json:"latency_p99_error"`
}

// SightRow is a node's view of a flow, by samples or flow records, in the last window in which any node saw it.
type SightRow struct {
	Node      string `json:"node"`
	IngressIf string `json:"ingress_if,omitempty"`
	EgressIf  string `json:"egress_if,omitempty"`
	Packets   uint64 `json:"packets"`
	Octets    uint64 `json:"octets,omitempty"`
	DelayMean Value  `json:"path_delay_mean_ns"`
	DelayMin  Value  `json:"path_delay_min_ns"`
	DelayMax  Value  `json:"path_delay_max_ns"`
	Delayed   uint64 `json:"path_delay_packets,omitempty"` // that the mean is of
}

// FlowPosition is one hop of a flow over the kept windows.
type FlowPosition struct {
	Node       string  `json:"node"` // in the last window
	LatencyP50 []Value `json:"latency_p50_ns"`
	LatencyP99 []Value `json:"latency_p99_ns"`
	QueueP99   []Value `json:"queue_p99_bytes"`
}

// ChangeRow is a flow's move from one path to another.
type ChangeRow struct {
	AtMS    int64    `json:"ms"`
	From    []string `json:"from"`
	To      []string `json:"to"`
	Packets uint64   `json:"packets"` // reports on the path that it left
}

// FlowRow is a flow in the recent windows.
type FlowRow struct {
	Key       string       `json:"key"`
	Packets   float64      `json:"packets"`          // in the recent windows
	Octets    float64      `json:"octets,omitempty"` // in the recent windows, of the node that saw the most
	Seen      []SightRow   `json:"seen,omitempty"`   // by samples and flow records, without their order
	LastMS    int64        `json:"last_ms"`
	Changes   uint64       `json:"changes"`    // of the path, since the flow was first seen
	ChangedMS int64        `json:"changed_ms"` // the last of them, 0 if none was seen
	Before    []string     `json:"before,omitempty"`
	Path      []FlowHopRow `json:"path"`
	Trend     []Value      `json:"trend"`             // packets, the kept windows, oldest first
	Several   *PathRow     `json:"several,omitempty"` // from digests, where they say more than the path
}

// NewSightRow returns a sight in the form of the API.
func NewSightRow(s *inference.FlowSight) SightRow {
	port := func(n uint32) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatUint(uint64(n), 10)
	}
	row := SightRow{
		Node: inference.HopKey{Node: s.Node}.NodeName(), IngressIf: port(s.Ingress), EgressIf: port(s.Egress), Packets: s.Packets, Octets: s.Octets,
		DelayMean: Absent, DelayMin: Absent, DelayMax: Absent, Delayed: s.Delayed,
	}
	if s.Delayed > 0 {
		row.DelayMean = Value(s.DelayMean())
	}
	if s.HasDelayBounds() {
		row.DelayMin, row.DelayMax = Value(s.DelayMin), Value(s.DelayMax)
	}
	return row
}

// NodeNames returns the nodes of a path.
func NodeNames(path []uint32) []string {
	names := make([]string, len(path))
	for i, n := range path {
		names[i] = inference.HopKey{Node: n}.NodeName()
	}
	return names
}
