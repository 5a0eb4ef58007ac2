package ask

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

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
	Several *severalPaths
}

func (f *Flow) nodes(called *names.Names) string {
	var path []inference.HopKey
	for _, h := range f.Path {
		path = append(path, h.Node.HopKey)
	}
	return called.Path(path)
}

// WriteFlows writes flows for people, with what nodes are called.
func WriteFlows(w io.Writer, flows []Flow, called *names.Names) error {
	if len(flows) == 0 {
		_, err := fmt.Fprintln(w, "No flow was reported yet.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "packets\tflow\tpath\tchanges")
	for _, f := range flows {
		fmt.Fprintf(t, "%.0f\t%s\t%s%s\t%d\n", f.Packets, f.Key, f.nodes(called), f.Several.note(), f.Changes)
	}
	return t.Flush()
}

// Write writes a flow for people, with what nodes are called.
func (f *Flow) Write(w io.Writer, k decode.FlowKey, called *names.Names) error {
	fmt.Fprintf(w, "%s\n", f.Key)
	if from, to := called.Host(k.SrcAddr()), called.Host(k.DstAddr()); from != "" || to != "" {
		fmt.Fprintf(w, "from %s to %s\n", cmp.Or(from, "?"), cmp.Or(to, "?"))
	}
	fmt.Fprintf(w, "%.0f packets lately, path %s%s, changed %d times\n\n", f.Packets, f.nodes(called), f.Several.note(), f.Changes)
	f.Several.print(w, called)
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "hop\tnode\tegress\tp50\tp99\tqueue p99")
	for i, h := range f.Path {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\n", i, called.HopNode(h.Node.HopKey), egressCell(called, h.Node, h.EgressIf), nsWithinCell(h.LatencyP50, h.ErrorP50), nsWithinCell(h.LatencyP99, h.ErrorP99), bytesCell(h.QueueP99))
	}
	return t.Flush()
}
