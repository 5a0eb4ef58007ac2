package summary

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink"
)

// MostDialects bounds how many senders are named that cannot be read.
const MostDialects = 8

// WriteTable writes the summary of a run as text.
func (s *Summary) WriteTable(w io.Writer) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	if s.Partial != "" {
		fmt.Fprintf(&b, "PARTIAL: %s\n", names.Printable(s.Partial))
	}
	fmt.Fprintf(t, "%s reports in %s (%s/s), %s malformed\n", inference.Count(s.Reports), seconds(s.Seconds), inference.Count(uint64(s.ReportsPerSecond)), inference.Count(s.Malformed))
	if s.CutFrames > 0 {
		fmt.Fprintf(t, "%s frames were captured in part: what is behind the cut is lost, and capturing with tcpdump -s 0 keeps it\n", inference.Count(s.CutFrames))
	}
	section := func(title string, n int) bool {
		t.Flush()
		if n > 0 {
			fmt.Fprintf(&b, "\n%s\n", title)
		}
		return n > 0
	}
	if section("By format", len(s.ByFormat)) {
		for _, k := range slices.Sorted(maps.Keys(s.ByFormat)) {
			fmt.Fprintf(t, "  %s\t%s\n", k, inference.Count(s.ByFormat[k]))
		}
		for _, k := range slices.Sorted(maps.Keys(s.ByKind)) {
			fmt.Fprintf(t, "  %s\t%s\n", k, inference.Count(s.ByKind[k]))
		}
	}
	if section("Malformed", len(s.MalformedReasons)) {
		for _, k := range slices.Sorted(maps.Keys(s.MalformedReasons)) {
			fmt.Fprintf(t, "  %s\t%s\n", k, inference.Count(s.MalformedReasons[k]))
		}
	}
	if d := s.Digests; d != nil {
		section("PINT digests", 1)
		fmt.Fprintf(t, "  %s digests\t%s unread, %s rejected, %s duplicate, %s strange%s\n", inference.Count(d.Digests), inference.Count(d.Unread), inference.Count(d.Rejected), inference.Count(d.Duplicate), inference.Count(d.Unexplained), elsewhere(d.Elsewhere))
		fmt.Fprintf(t, "  %s paths decoded\t%d flows undecided\n", inference.Count(d.Decoded), d.Undecided)
		if d.FewIDs.Flows > 0 {
			fmt.Fprintf(t, "  %s\n", d.FewIDs.String())
		}
	}
	if section(fmt.Sprintf("Slowest hops (%d of %d)", len(s.Hops), s.HopCount), len(s.Hops)) {
		fmt.Fprintf(t, "  node\tegress\treports\tp50\tp90\tp99\tmax\tqueue p99\n")
		for _, h := range s.Hops {
			k := inference.HopKey{Node: h.NodeID, EgressIf: h.EgressIf}
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", hopNode(h, s.Names), s.Names.HopEgress(k), inference.Count(h.Reports), latencyCells(h.Latency), queueCell(h.Queue))
		}
	}
	s.writeNameless(t, section)
	if section(fmt.Sprintf("Busiest flows (%d of %d)", len(s.Flows), s.FlowCount), len(s.Flows)) {
		fmt.Fprintf(t, "  packets\tflow\tpath\tp99 by hop, within 10 %%\n")
		for _, f := range s.Flows {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", inference.Count(f.Packets), f.Key, pathText(f.Path, s.Names), p99Text(&f))
		}
	}
	s.writeWhole(t, section)
	s.writeFrequent(t, section)
	exporters := "Exporters"
	if o := s.OtherExporters; o != nil && o.Exporters > 0 {
		exporters += fmt.Sprintf(" (%d of %d)", len(s.Exporters), uint64(len(s.Exporters))+o.Exporters)
	}
	if section(exporters, len(s.Exporters)) {
		fmt.Fprintf(t, "  address\tnode\thw\treports\tlost\tduplicated\treordered\tlate\trestarts\tmalformed\n")
		for _, e := range s.Exporters {
			lost := fmt.Sprint(e.Lost)
			if !e.Sequenced {
				lost = "not numbered"
			}
			node := "-"
			if e.NodeID != nil {
				node = s.Names.Node(*e.NodeID)
			}
			fmt.Fprintf(t, "  %s\t%s\t%d\t%s\t%s\t%d\t%d\t%d\t%d\t%d\n", e.Address, node, e.HWID, inference.Count(e.Reports), lost, e.Duplicated, e.Reordered, e.Late, e.Restarts, e.Malformed)
		}
		if o := s.OtherExporters; o != nil && o.Exporters > 0 {
			fmt.Fprintf(t, "  %d others\t\t\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", o.Exporters, inference.Count(o.Sums.Reports), o.Sums.Lost, o.Sums.Duplicated, o.Sums.Reordered, o.Sums.Late, o.Sums.Restarts, o.Sums.Malformed)
		}
		if o := s.OtherExporters; o != nil && o.Exporters > 0 {
			fmt.Fprintf(t, "  %s\n", o.text())
		}
		if o := s.OtherExporters; o != nil && o.Unfollowed > 0 {
			fmt.Fprintf(t, "  %s reports of exporters for which there was no place\n", inference.Count(o.Unfollowed))
		}
	}
	if section("Dialects", len(s.Dialects)) {
		for i, d := range s.Dialects {
			if i == MostDialects {
				fmt.Fprintf(t, "  and %d more senders\n", len(s.Dialects)-i)
				break
			}
			fmt.Fprintf(t, "  %s\n", d.Text)
		}
	}
	if section("Remarks", len(s.Remarks)) {
		for i, m := range s.Remarks {
			if i == MostDialects {
				fmt.Fprintf(t, "  and %d more\n", len(s.Remarks)-i)
				break
			}
			fmt.Fprintf(t, "  %s\n", m.Text)
		}
	}
	if section("Findings", len(s.Findings)) {
		for _, f := range s.Findings {
			state := "lasting"
			if f.End != 0 {
				state = "ended after " + time.Duration(f.End-f.Start).Round(time.Millisecond).String()
			}
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", time.Unix(0, f.Start).UTC().Format("15:04:05"), f.Severity, f.Kind, state, s.Names.Text(f.Text))
		}
	}
	section("Loss ledger: received = stored + in flight + dropped", 1)
	balances := s.Ledger.Sinks
	if len(balances) == 0 {
		balances = []sink.Balance{s.Ledger.Balance}
	}
	for i := range balances {
		fmt.Fprintf(t, "  %s\n", ledger.Line(&balances[i]))
		if line := ledger.PointsLine(&balances[i]); line != "" {
			fmt.Fprintf(t, "  %s\n", line)
		}
	}
	t.Flush()
	_, err := io.WriteString(w, b.String())
	return err
}

// text returns a sentence with the number of exporters left out.
func (o *OtherExporters) text() string {
	text := fmt.Sprintf("and %s more exporters", inference.Count(o.Exporters))
	switch o.Unread {
	case 0:
		return text
	case o.Exporters:
		return text + ", of which none sent a readable report"
	}
	return fmt.Sprintf("%s, of which %s sent no readable report", text, inference.Count(o.Unread))
}

// mostNameless bounds the lines of hops without a node id.
const mostNameless = 20

func (s *Summary) writeNameless(t io.Writer, section func(string, int) bool) {
	if !section("Hops without a node id", len(s.Nameless)) {
		return
	}
	fmt.Fprintf(t, "  exporter\tposition\treports\tp50\tp90\tp99\tmax\tqueue p99\n")
	for i := range s.Nameless {
		if i == mostNameless {
			fmt.Fprintf(t, "  and %d more\n", len(s.Nameless)-i)
			break
		}
		n := &s.Nameless[i]
		exporter, position := n.place()
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", exporter, position, inference.Count(n.Reports), latencyCells(n.Latency), queueCell(n.Queue))
	}
}

func hopNode(h Hop, n *names.Names) string {
	if h.Other {
		return "other"
	}
	return n.Node(h.NodeID)
}

func latencyCells(q *Quantiles) string {
	if q == nil {
		return "-\t-\t-\t-"
	}
	d := func(ns uint64) string { return inference.Nanoseconds(float64(ns)) }
	return d(q.P50) + "\t" + d(q.P90) + "\t" + d(q.P99) + "\t" + d(q.Max)
}

func queueCell(q *Quantiles) string {
	if q == nil {
		return "-"
	}
	return inference.Count(uint64(inference.Round(float64(q.P99))))
}

func pathText(p Path, called *names.Names) string {
	if len(p.NodeIDs) == 0 {
		return "-"
	}
	nodes := make([]string, len(p.NodeIDs))
	for i, n := range p.NodeIDs {
		nodes[i] = "?"
		if n != nil {
			nodes[i] = called.Node(*n)
		}
	}
	s := inference.JoinNodes(nodes)
	switch {
	case p.Digests > 0:
		s += fmt.Sprintf(" (from %s digests)", inference.Count(p.Digests))
	case !p.Complete:
		s += " (in part)"
	}
	if len(p.Others) > 0 && p.Share > 0 {
		s += fmt.Sprintf(" (%s of packets, and %d other paths)", inference.Percent(p.Share, 2), len(p.Others))
	}
	if len(p.Inseparable) > 0 {
		s += fmt.Sprintf(" (and %d paths that digests do not distinguish)", inseparable(p.Inseparable))
	}
	if p.Changes > 0 {
		s += fmt.Sprintf(" (changed %d×)", p.Changes)
	}
	return s
}

func inseparable(sets []PathSet) (n int) {
	for _, s := range sets {
		n += len(s.Paths)
	}
	return n
}

// p99Text writes the latencies of a flow's hops. Over the life of a flow there is a small sketch, which is good for
// two digits. Values from digests were rounded by switches, and only some packets had one.
func p99Text(f *Flow) string {
	about := ""
	if f.Path.Digests > 0 {
		about = "~"
	}
	var cells []string
	for _, h := range f.Hops {
		if h.Latency == nil {
			cells = append(cells, "-")
			continue
		}
		cells = append(cells, about+inference.RoughNanoseconds(float64(h.Latency.P99)))
	}
	return strings.Join(cells, " ")
}

// writeWhole lists what the packets of the busiest flows bring of their whole paths.
func (s *Summary) writeWhole(t io.Writer, section func(title string, n int) bool) {
	n := 0
	for i := range s.Flows {
		if s.Flows[i].Whole != nil {
			n++
		}
	}
	if !section("Values of the whole paths of these flows", n) {
		return
	}
	fmt.Fprintf(t, "  flow\tof\tdigests\tp50\tp90\tp99\tmax\n")
	for i := range s.Flows {
		if v := s.Flows[i].Whole; v != nil {
			fmt.Fprintf(t, "  %s\t%s\t%s", s.Flows[i].Key, v.Of, inference.Count(v.Digests))
			for _, q := range []uint64{v.P50, v.P90, v.P99, v.Max} {
				fmt.Fprintf(t, "\t%s", coded(v.Of, float64(q)))
			}
			fmt.Fprintln(t)
		}
	}
}

// coded writes a value of a digest with two digits, the precision of its code, in the unit of its quantity.
func coded(of string, v float64) string {
	switch {
	case strings.HasSuffix(of, "latency"):
		return inference.RoughNanoseconds(v)
	case strings.HasSuffix(of, "utilization"):
		return inference.Percent(v/pint.UtilizationUnit, 2)
	}
	return inference.Count(uint64(inference.Round(v))) + " B"
}

// writeFrequent lists the frequent values of the hops of the busiest flows.
func (s *Summary) writeFrequent(t io.Writer, section func(title string, n int) bool) {
	n := 0
	for i := range s.Flows {
		for _, h := range s.Flows[i].Hops {
			if h.Frequent != nil {
				n++
			}
		}
	}
	if !section("Frequent values of these flows", n) {
		return
	}
	fmt.Fprintf(t, "  flow\tnode\tof\tvalues, and the share of digests that carry them\n")
	for i := range s.Flows {
		for _, h := range s.Flows[i].Hops {
			if h.Frequent != nil {
				fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", s.Flows[i].Key, s.Names.Node(h.NodeID), h.Frequent.Of, h.Frequent)
			}
		}
	}
}

// String writes the values with their shares.
func (f *Frequent) String() string {
	cells := make([]string, len(f.Values))
	for i, v := range f.Values {
		share := inference.Percent(v.Most, 2)
		if low := inference.Percent(v.Least, 2); low != share {
			share = low + " to " + share
		}
		cells[i] = coded(f.Of, v.Value) + " " + share
	}
	return strings.Join(cells, ", ")
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}

// elsewhere describes digests of another site than that of pint.site.
func elsewhere(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %s of other sites and not read", inference.Count(n))
}
