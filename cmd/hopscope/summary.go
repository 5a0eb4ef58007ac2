package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
)

// writeSummaryTable writes the summary of a run for people.
func writeSummaryTable(w io.Writer, s *collector.Summary) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	fmt.Fprintf(t, "%s reports in %s (%s/s), %s malformed\n", count(s.Reports), seconds(s.Seconds), count(uint64(s.ReportsPerSecond)), count(s.Malformed))
	section := func(title string, n int) bool {
		t.Flush()
		if n > 0 {
			fmt.Fprintf(&b, "\n%s\n", title)
		}
		return n > 0
	}
	if section("By format", len(s.ByFormat)) {
		for _, k := range slices.Sorted(maps.Keys(s.ByFormat)) {
			fmt.Fprintf(t, "  %s\t%s\n", k, count(s.ByFormat[k]))
		}
		for _, k := range slices.Sorted(maps.Keys(s.ByKind)) {
			fmt.Fprintf(t, "  %s\t%s\n", k, count(s.ByKind[k]))
		}
	}
	if section("Malformed", len(s.MalformedReasons)) {
		for _, k := range slices.Sorted(maps.Keys(s.MalformedReasons)) {
			fmt.Fprintf(t, "  %s\t%s\n", k, count(s.MalformedReasons[k]))
		}
	}
	if d := s.Digests; d != nil {
		section("PINT digests", 1)
		fmt.Fprintf(t, "  %s digests\t%s unread, %s rejected, %s duplicate, %s strange\n", count(d.Digests), count(d.Unread), count(d.Rejected), count(d.Duplicate), count(d.Strange))
		fmt.Fprintf(t, "  %s paths decoded\t%d flows undecided\n", count(d.Decoded), d.Undecided)
	}
	if section(fmt.Sprintf("Slowest hops (%d of %d)", len(s.Hops), s.HopCount), len(s.Hops)) {
		fmt.Fprintf(t, "  node\tegress\treports\tp50\tp90\tp99\tmax\tqueue p99\n")
		for _, h := range s.Hops {
			fmt.Fprintf(t, "  %s\t%d\t%s\t%s\t%s\n", nodeName(h), h.EgressIf, count(h.Reports), latencyCells(h.Latency), queueCell(h.Queue))
		}
	}
	if section(fmt.Sprintf("Busiest flows (%d of %d)", len(s.Flows), s.FlowCount), len(s.Flows)) {
		fmt.Fprintf(t, "  packets\tflow\tpath\tp99 by hop\n")
		for _, f := range s.Flows {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", count(f.Packets), f.Key, pathText(f.Path), p99Text(f.Hops))
		}
	}
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
			fmt.Fprintf(t, "  %s\t%d\t%d\t%s\t%s\t%d\t%d\t%d\t%d\t%d\n", e.Address, e.NodeID, e.HWID, count(e.Reports), lost, e.Duplicated, e.Reordered, e.Late, e.Restarts, e.Malformed)
		}
		if o := s.OtherExporters; o != nil && o.Exporters > 0 {
			fmt.Fprintf(t, "  %d others\t\t\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", o.Exporters, count(o.Sums.Reports), o.Sums.Lost, o.Sums.Duplicated, o.Sums.Reordered, o.Sums.Late, o.Sums.Restarts, o.Sums.Malformed)
		}
		if o := s.OtherExporters; o != nil && o.Unfollowed > 0 {
			fmt.Fprintf(t, "  %s reports of exporters for which there was no place\n", count(o.Unfollowed))
		}
	}
	if section("Findings", len(s.Findings)) {
		for _, f := range s.Findings {
			state := "lasting"
			if f.End != 0 {
				state = "ended after " + time.Duration(f.End-f.Start).Round(time.Millisecond).String()
			}
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", time.Unix(0, f.Start).UTC().Format("15:04:05"), f.Severity, f.Kind, state, f.Text)
		}
	}
	section("Loss ledger: received = stored + in flight + dropped", 1)
	balances := s.Ledger.Sinks
	if len(balances) == 0 {
		balances = []sink.Balance{s.Ledger.Balance}
	}
	for i := range balances {
		fmt.Fprintf(t, "  %s\n", collector.LedgerLine(&balances[i]))
		if line := collector.PointsLine(&balances[i]); line != "" {
			fmt.Fprintf(t, "  %s\n", line)
		}
	}
	t.Flush()
	_, err := io.WriteString(w, b.String())
	return err
}

func nodeName(h collector.HopSummary) string {
	if h.Other {
		return "other"
	}
	return fmt.Sprint(h.NodeID)
}

func latencyCells(q *collector.Quantiles) string {
	if q == nil {
		return "-\t-\t-\t-"
	}
	d := func(ns uint64) string { return shortNS(ns) }
	return d(q.P50) + "\t" + d(q.P90) + "\t" + d(q.P99) + "\t" + d(q.Max)
}

func queueCell(q *collector.Quantiles) string {
	if q == nil {
		return "-"
	}
	return count(q.P99)
}

// shortNS gives three significant digits: "1.23ms".
func shortNS(ns uint64) string {
	for _, u := range []struct {
		unit uint64
		name string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
		if ns >= u.unit {
			return fmt.Sprintf("%.3g%s", float64(ns)/float64(u.unit), u.name)
		}
	}
	return fmt.Sprintf("%dns", ns)
}

func pathText(p collector.PathSummary) string {
	if len(p.NodeIDs) == 0 {
		return "-"
	}
	nodes := make([]string, len(p.NodeIDs))
	for i, n := range p.NodeIDs {
		nodes[i] = "?"
		if n != nil {
			nodes[i] = fmt.Sprint(*n)
		}
	}
	s := inference.JoinNodes(nodes)
	switch {
	case p.Digests > 0:
		s += fmt.Sprintf(" (from %s digests)", count(p.Digests))
	case !p.Complete:
		s += " (in part)"
	}
	if p.Changes > 0 {
		s += fmt.Sprintf(" (changed %d×)", p.Changes)
	}
	return s
}

func p99Text(hops []collector.HopSummary) string {
	var cells []string
	for _, h := range hops {
		if h.Latency == nil {
			cells = append(cells, "-")
			continue
		}
		cells = append(cells, shortNS(h.Latency.P99))
	}
	return strings.Join(cells, " ")
}

// count groups digits by three: 1 234 567.
func count(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}
