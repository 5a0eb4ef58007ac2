package collector

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/sink"
)

// Summary is what a run saw, from its first report to its last.
type Summary struct {
	Reports          uint64             `json:"reports"` // well-formed
	Malformed        uint64             `json:"malformed"`
	ByFormat         map[string]uint64  `json:"by_format"`
	ByKind           map[string]uint64  `json:"by_kind"`
	MalformedReasons map[string]uint64  `json:"malformed_by_reason,omitempty"`
	Digests          *shard.DigestStats `json:"digests,omitempty"` // PINT
	FlowCount        int                `json:"flow_count"`
	Flows            []FlowSummary      `json:"flows"` // the busiest first
	HopCount         int                `json:"hop_count"`
	Hops             []HopSummary       `json:"hops"` // the slowest first
	Exporters        []ExporterSummary  `json:"exporters"`
	Findings         []FindingSummary   `json:"findings"`
	Ledger           LedgerSummary      `json:"loss_ledger"`
	Seconds          float64            `json:"seconds"`
	ReportsPerSecond float64            `json:"reports_per_second"`
}

// FlowSummary is one flow.
type FlowSummary struct {
	Flow    FlowJSON     `json:"flow"`
	Packets uint64       `json:"packets"`
	Path    PathSummary  `json:"path"`
	Hops    []HopSummary `json:"hops"`
	Load    *LoadSummary `json:"bottleneck_utilization,omitempty"` // PINT
}

// LoadSummary is the utilisation of the fullest link on a flow's path over its last ten seconds; 1 is a full link.
type LoadSummary struct {
	Last float64 `json:"last"`
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

// FlowJSON is a flow key with the keys of "hopscope decode".
type FlowJSON struct {
	Src     string `json:"src"`
	Dst     string `json:"dst"`
	Proto   uint8  `json:"proto"`
	SrcPort uint16 `json:"src_port"`
	DstPort uint16 `json:"dst_port"`
}

// PathSummary is the path that a flow took last.
type PathSummary struct {
	NodeIDs    []*uint32  `json:"node_ids"` // null for hops that are not known yet
	Complete   bool       `json:"complete"`
	Confidence float64    `json:"confidence"` // 1 for paths that were reported whole
	Digests    uint64     `json:"digests"`    // PINT digests that it was inferred from
	Changes    uint32     `json:"changes"`
	Others     [][]uint32 `json:"other_paths,omitempty"`   // that digests told of, too
	Inferred   []int      `json:"inferred_hops,omitempty"` // hops, from 1, that no digest was written by: the topology leaves no other node
}

// HopSummary is one hop, of a flow or of the network.
type HopSummary struct {
	NodeID   uint32     `json:"node_id"`
	EgressIf uint32     `json:"egress_if"`
	Other    bool       `json:"other,omitempty"` // all hops that had no place in the table
	Reports  uint64     `json:"reports"`
	Latency  *Quantiles `json:"latency_ns,omitempty"`
	Queue    *Quantiles `json:"queue_bytes,omitempty"`
}

// Quantiles of a distribution.
type Quantiles struct {
	P50 uint64 `json:"p50"`
	P90 uint64 `json:"p90"`
	P99 uint64 `json:"p99"`
	Max uint64 `json:"max"`
}

// ExporterSummary is one sequence number space over the whole run.
type ExporterSummary struct {
	Address    string `json:"address"`
	NodeID     uint32 `json:"node_id"`
	HWID       uint8  `json:"hw_id"`
	Sequenced  bool   `json:"sequenced"`
	Reports    uint64 `json:"reports"`
	Lost       int64  `json:"lost"`
	Duplicated uint64 `json:"duplicated"`
	Reordered  uint64 `json:"reordered"`
	Restarts   uint64 `json:"restarts"`
	Malformed  uint64 `json:"malformed"`
}

// FindingSummary is one finding in its last state.
type FindingSummary struct {
	ID       string  `json:"id"`
	Kind     string  `json:"kind"`
	Severity string  `json:"severity"`
	Start    int64   `json:"start"`
	End      int64   `json:"end"` // 0 when the cause lasts
	NodeID   uint32  `json:"node_id"`
	Value    float64 `json:"value"`
	Baseline float64 `json:"baseline"`
	Text     string  `json:"text"`
}

// LedgerSummary is the balance of the run: of its first sink, and of every sink where there are more.
type LedgerSummary struct {
	sink.Balance
	Sinks []sink.Balance `json:"sinks,omitempty"`
}

func quantiles(s *inference.Summary) *Quantiles {
	if s.Count == 0 {
		return nil
	}
	return &Quantiles{s.P50, s.P90, s.P99, s.Max}
}

func flowSummary(f *inference.FlowStats) FlowSummary {
	out := FlowSummary{
		Flow:    FlowJSON{f.Key.SrcString(), f.Key.DstString(), f.Key.Proto, f.Key.SrcPort, f.Key.DstPort},
		Packets: f.Packets,
		Path:    PathSummary{NodeIDs: []*uint32{}, Complete: f.PathID != 0 && !f.Partial, Changes: f.Changes},
		Hops:    []HopSummary{},
	}
	if out.Path.Complete {
		out.Path.Confidence = 1
	}
	if f.Load.Digests > 0 {
		out.Load = &LoadSummary{f.Load.Last, f.Load.Mean, f.Load.Max}
	}
	if f.Digests > 0 {
		out.Path.Digests, out.Path.Confidence, out.Path.Others = f.Digests, f.Confidence, f.Others
	}
	for i := range f.Hops {
		h := &f.Hops[i]
		if h.Unknown {
			out.Path.NodeIDs = append(out.Path.NodeIDs, nil)
			continue
		}
		out.Path.NodeIDs = append(out.Path.NodeIDs, &h.Node)
		if h.Inferred {
			out.Path.Inferred = append(out.Path.Inferred, i+1)
		}
		out.Hops = append(out.Hops, HopSummary{NodeID: h.Node, EgressIf: h.EgressIf, Reports: h.Latency.Count,
			Latency: quantiles(&h.Latency), Queue: quantiles(&h.Queue)})
	}
	return out
}

func findingSummary(f *inference.Finding) FindingSummary {
	return FindingSummary{ID: f.IDText(), Kind: f.Kind.String(), Severity: f.Severity.String(), Start: f.Start, End: f.End,
		NodeID: f.Node, Value: f.Value, Baseline: f.Baseline, Text: f.Text}
}

// exporterTotals sums windows by exporter.
type exporterTotals map[inference.ExporterKey]*ExporterSummary

func (t exporterTotals) add(stats []inference.ExporterStats) {
	for i := range stats {
		e := &stats[i]
		s := t[e.ExporterKey]
		if s == nil {
			s = &ExporterSummary{Address: e.Addr.String(), NodeID: e.Node, HWID: e.HWID}
			t[e.ExporterKey] = s
		}
		s.Sequenced = s.Sequenced || e.Sequenced
		s.Reports += e.Reports
		s.Lost += e.Lost
		s.Duplicated += e.Duplicated
		s.Reordered += e.Reordered
		s.Restarts += e.Restarts
		s.Malformed += e.Malformed
	}
}

func (t exporterTotals) list() []ExporterSummary {
	out := make([]ExporterSummary, 0, len(t))
	for _, s := range t {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b ExporterSummary) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.NodeID, b.NodeID), cmp.Compare(a.HWID, b.HWID))
	})
	return out
}

// WriteTo writes the summary for people.
func (s *Summary) WriteTo(w io.Writer) (int64, error) {
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
		for _, k := range sorted(s.ByFormat) {
			fmt.Fprintf(t, "  %s\t%s\n", k, count(s.ByFormat[k]))
		}
		for _, k := range sorted(s.ByKind) {
			fmt.Fprintf(t, "  %s\t%s\n", k, count(s.ByKind[k]))
		}
	}
	if section("Malformed", len(s.MalformedReasons)) {
		for _, k := range sorted(s.MalformedReasons) {
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
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", count(f.Packets), flowText(f.Flow), pathText(f.Path), p99Text(f.Hops))
		}
	}
	if section("Exporters", len(s.Exporters)) {
		fmt.Fprintf(t, "  address\tnode\thw\treports\tlost\tduplicated\treordered\trestarts\tmalformed\n")
		for _, e := range s.Exporters {
			lost := fmt.Sprint(e.Lost)
			if !e.Sequenced {
				lost = "not numbered"
			}
			fmt.Fprintf(t, "  %s\t%d\t%d\t%s\t%s\t%d\t%d\t%d\t%d\n", e.Address, e.NodeID, e.HWID, count(e.Reports), lost, e.Duplicated, e.Reordered, e.Restarts, e.Malformed)
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
		fmt.Fprintf(t, "  %s\n", LedgerLine(&balances[i]))
	}
	t.Flush()
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// LedgerLine gives a balance in one line: "influx: 1000 received = 990 stored + 4 in flight (window 4) + 6 dropped (kernel 6)".
func LedgerLine(b *sink.Balance) string {
	parts := func(m map[string]int64) (sum int64, text string) {
		for _, k := range sorted(m) {
			if n := m[k]; n != 0 {
				sum += n
				text += fmt.Sprintf(", %s %d", k, n)
			}
		}
		if text != "" {
			text = " (" + text[2:] + ")"
		}
		return sum, text
	}
	flying, flyingText := parts(b.InFlight)
	dropped, droppedText := parts(b.Dropped)
	name := b.Sink
	if name == "" {
		name = "windows"
	}
	line := fmt.Sprintf("%s: %d received = %d stored + %d in flight%s + %d dropped%s", name, b.Received, b.Stored, flying, flyingText, dropped, droppedText)
	if b.Carried > 0 {
		line += fmt.Sprintf("; %d of them from an earlier run", b.Carried)
	}
	if b.Unsettled != 0 {
		line += fmt.Sprintf("; UNSETTLED %d, please report this", b.Unsettled)
	}
	return line
}

func nodeName(h HopSummary) string {
	if h.Other {
		return "other"
	}
	return fmt.Sprint(h.NodeID)
}

func latencyCells(q *Quantiles) string {
	if q == nil {
		return "-\t-\t-\t-"
	}
	d := func(ns uint64) string { return shortNS(ns) }
	return d(q.P50) + "\t" + d(q.P90) + "\t" + d(q.P99) + "\t" + d(q.Max)
}

func queueCell(q *Quantiles) string {
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

func flowText(f FlowJSON) string {
	return fmt.Sprintf("%s:%d > %s:%d/%d", f.Src, f.SrcPort, f.Dst, f.DstPort, f.Proto)
}

func pathText(p PathSummary) string {
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
	s := strings.Join(nodes, ">")
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

func p99Text(hops []HopSummary) string {
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

// sorted gives the keys of m in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
