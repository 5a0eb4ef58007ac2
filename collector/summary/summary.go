// Package summary makes the summary of a run, from its first report to its last, as text and as JSON.
package summary

import (
	"encoding/hex"
	"fmt"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/guess"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/digest"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink"
)

// Summary is the summary of a run, from its first report to its last.
type Summary struct {
	Reports          uint64            `json:"reports"` // well-formed
	Malformed        uint64            `json:"malformed"`
	ByFormat         map[string]uint64 `json:"by_format"`
	ByKind           map[string]uint64 `json:"by_kind"`
	MalformedReasons map[string]uint64 `json:"malformed_by_reason,omitempty"`
	Digests          *digest.Stats     `json:"digests,omitempty"` // PINT
	FlowCount        int               `json:"flow_count"`
	Flows            []Flow            `json:"flows"` // the busiest first
	HopCount         int               `json:"hop_count"`
	Hops             []Hop             `json:"hops"` // the slowest first
	Nameless         []Nameless        `json:"hops_without_node_id,omitempty"`
	Exporters        []Exporter        `json:"exporters"`
	OtherExporters   *OtherExporters   `json:"other_exporters,omitempty"`
	Dialects         []Dialect         `json:"dialects,omitempty"` // of exporters that their profiles did not read
	Remarks          []Remark          `json:"remarks,omitempty"`  // about what was read and is in no statistics
	Findings         []Finding         `json:"findings"`
	Ledger           Ledger            `json:"loss_ledger"`
	Seconds          float64           `json:"seconds"`
	ReportsPerSecond float64           `json:"reports_per_second"`

	// CutFrames counts the frames of captures that are shorter there than they were on the wire, where that costs any report a part.
	CutFrames uint64 `json:"cut_frames,omitempty"`

	Partial string `json:"partial,omitempty"` // why it is not that of all that was to be read

	Names *names.Names `json:"-"` // for programs that show the summary
}

// Flow is one flow.
type Flow struct {
	Key     decode.FlowKey `json:"-"`
	Flow    FlowKey        `json:"flow"`
	Packets uint64         `json:"packets"`
	Path    Path           `json:"path"`
	Hops    []Hop          `json:"hops"`
	Load    *Load          `json:"bottleneck_utilization,omitempty"` // PINT
	Whole   *PathValue     `json:"path_value,omitempty"`             // PINT
}

// PathValue is a value that each packet brings of its whole path, where a query asks for it.
type PathValue struct {
	Of      string `json:"of"` // "sum of latency" in ns, "max of queue" in bytes, "min of utilization" in parts of 65536
	Digests uint64 `json:"digests"`
	Quantiles
}

// Load is the utilisation of the fullest link on a flow's path over its last ten seconds; 1 is a full link.
type Load struct {
	Last float64 `json:"last"`
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

// FlowKey is a flow key with the keys of "hopscope decode".
type FlowKey struct {
	Src     string `json:"src"`
	Dst     string `json:"dst"`
	Proto   uint8  `json:"proto"`
	SrcPort uint16 `json:"src_port"`
	DstPort uint16 `json:"dst_port"`
}

// Path is the path that a flow took last.
type Path struct {
	NodeIDs    []*uint32   `json:"node_ids"` // null for hops that are not known yet
	Complete   bool        `json:"complete"`
	Confidence float64     `json:"confidence"` // 1 for paths that were reported whole
	Digests    uint64      `json:"digests"`    // PINT digests that it was inferred from
	Changes    uint32      `json:"changes"`
	Share      float64     `json:"share,omitempty"`         // of the packets that take it, of flows that use several paths at once
	Others     []OtherPath `json:"other_paths,omitempty"`   // that digests show, too
	Inferred   []int       `json:"inferred_hops,omitempty"` // hops, from 1, that rest on the topology: digests have not confirmed them well enough

	Inseparable []PathSet `json:"inseparable_paths,omitempty"` // paths of which the digests do not say which are used
	Unexplained float64   `json:"unexplained_share,omitempty"` // of packets that take none of the paths, where several are used at once
}

// OtherPath is one of several paths of a flow.
type OtherPath struct {
	NodeIDs    []uint32 `json:"node_ids"`
	Share      float64  `json:"share,omitempty"` // of the packets that take it, if the paths are used at once
	Confidence float64  `json:"confidence"`
}

// PathSet is paths of which some are used. If it is one, it may be used or not.
type PathSet struct {
	Paths [][]uint32 `json:"paths"`
	Share float64    `json:"share"`
}

// Hop is one hop, of a flow or of the network.
type Hop struct {
	NodeID   uint32     `json:"node_id"`
	EgressIf uint32     `json:"egress_if"`
	Other    bool       `json:"other,omitempty"` // all hops that had no place in the table
	Reports  uint64     `json:"reports"`
	Latency  *Quantiles `json:"latency_ns,omitempty"`
	Queue    *Quantiles `json:"queue_bytes,omitempty"`
	Frequent *Frequent  `json:"frequent,omitempty"` // of a flow with PINT digests, where a query asks for it
}

// Frequent is the values that come most often in the digests of one hop of a flow.
type Frequent struct {
	Of     string          `json:"of"` // latency, in ns, or queue, in bytes
	Values []FrequentValue `json:"values"`
}

// FrequentValue is one of them, with bounds of the share of digests that carry it.
type FrequentValue struct {
	Value float64 `json:"value"`
	Least float64 `json:"least_share"`
	Most  float64 `json:"most_share"`
}

func frequentOf(of string, list []inference.FrequentValue) *Frequent {
	if len(list) == 0 {
		return nil
	}
	f := &Frequent{Of: of}
	for _, v := range list {
		f.Values = append(f.Values, FrequentValue(v))
	}
	return f
}

// Nameless is the hops whose records held no node id, at one position in the reports of one exporter. They are those of no node.
type Nameless struct {
	Exporter string     `json:"exporter,omitempty"` // none for packets of the network
	Position uint8      `json:"position,omitempty"` // in the report, from 1; none for all that had no place
	Reports  uint64     `json:"reports"`
	Latency  *Quantiles `json:"latency_ns,omitempty"`
	Queue    *Quantiles `json:"queue_bytes,omitempty"`
}

func namelessOf(s *inference.NamelessStats) Nameless {
	n := Nameless{Position: s.Position, Reports: s.Count, Latency: quantiles(&s.Latency), Queue: quantiles(&s.Queue)}
	if s.Exporter != (decode.Addr{}) {
		n.Exporter = s.Exporter.String()
	}
	return n
}

// place names it in a table.
func (n *Nameless) place() (exporter, position string) {
	switch {
	case n.Position == 0:
		return "other", "-"
	case n.Exporter == "":
		return "the network's packets", fmt.Sprint(n.Position)
	}
	return n.Exporter, fmt.Sprint(n.Position)
}

// Quantiles of a distribution.
type Quantiles struct {
	P50 uint64 `json:"p50"`
	P90 uint64 `json:"p90"`
	P99 uint64 `json:"p99"`
	Max uint64 `json:"max"`

	// Where a device counts in buckets: the least that quantiles can be, and values beyond the last bucket.
	P50Low uint64 `json:"p50_low,omitempty"`
	P99Low uint64 `json:"p99_low,omitempty"`
	Beyond uint64 `json:"beyond,omitempty"`
}

// Exporter is one sequence number space over the whole run.
type Exporter struct {
	Address    string  `json:"address"`           // empty in sums
	NodeID     *uint32 `json:"node_id,omitempty"` // absent where the reports hold none
	HWID       uint8   `json:"hw_id"`
	Sequenced  bool    `json:"sequenced"`
	Reports    uint64  `json:"reports"`
	Lost       int64   `json:"lost"`
	Duplicated uint64  `json:"duplicated"`
	Reordered  uint64  `json:"reordered"`
	Late       uint64  `json:"late"`
	Down       uint64  `json:"down"`
	Restarts   uint64  `json:"restarts"`
	Malformed  uint64  `json:"malformed"`
}

// OtherExporters are those that the list leaves out.
type OtherExporters struct {
	Exporters  uint64   `json:"exporters"`        // one that came back after it was forgotten counts again
	Unread     uint64   `json:"unread,omitempty"` // of these, those that sent no readable report
	Unfollowed uint64   `json:"unfollowed"`       // reports of exporters for which there was no place; in no sum
	Sums       Exporter `json:"sums"`
}

// Finding is one finding in its last state.
type Finding struct {
	ID       string  `json:"id"`
	Kind     string  `json:"kind"`
	Severity string  `json:"severity"`
	Start    int64   `json:"start"`
	End      int64   `json:"end"`               // 0 when the cause lasts
	NodeID   *uint32 `json:"node_id,omitempty"` // absent where it is about no node
	Value    float64 `json:"value"`
	Baseline float64 `json:"baseline"`
	Text     string  `json:"text"`

	Element   *inference.Element `json:"element,omitempty"`  // what has to be looked at
	Cause     string             `json:"cause,omitempty"`    // id of the finding that explains this one
	Evidence  int                `json:"evidence,omitempty"` // findings that this one explains
	Learning  bool               `json:"learning,omitempty"` // what is normal at this place is not known well yet
	Statistic string             `json:"statistic,omitempty"`
}

// Ledger is the balance of the run: of its first sink, and of every sink where there are more.
type Ledger struct {
	sink.Balance
	Sinks   []sink.Balance `json:"sinks,omitempty"`
	AllRuns *AllRuns       `json:"all_runs,omitempty"` // with a state file
}

// AllRuns are the balances over all runs since the state file began.
type AllRuns struct {
	Runs  uint64         `json:"runs"`
	Since int64          `json:"since"` // ns since 1970
	Sinks []sink.Balance `json:"sinks"`
}

func quantiles(s *inference.Summary) *Quantiles {
	if s.Count == 0 {
		return nil
	}
	q := &Quantiles{P50: s.P50, P90: s.P90, P99: s.P99, Max: s.Max}
	if b := s.Bounds; b != nil {
		q.P50Low, q.P99Low, q.Beyond = b.P50, b.P99, b.Open
	}
	return q
}

// FlowOf is the summary of a flow.
func FlowOf(f *inference.FlowStats) Flow {
	out := Flow{
		Key:     f.Key,
		Flow:    FlowKey{f.Key.SrcString(), f.Key.DstString(), f.Key.Proto, f.Key.SrcPort, f.Key.DstPort},
		Packets: f.Packets,
		Path:    Path{NodeIDs: []*uint32{}, Complete: f.PathID != 0 && !f.Partial, Changes: f.Changes},
		Hops:    []Hop{},
	}
	if out.Path.Complete {
		out.Path.Confidence = 1
	}
	if f.Load.Digests > 0 {
		out.Load = &Load{f.Load.Last, f.Load.Mean, f.Load.Max}
	}
	if f.Path.Count > 0 {
		out.Whole = &PathValue{f.Path.Of, f.Path.Count, *quantiles(&f.Path.Summary)}
	}
	if f.Digests > 0 {
		out.Path.Digests, out.Path.Confidence = f.Digests, f.Confidence
	}
	for _, p := range f.Others {
		out.Path.Others = append(out.Path.Others, OtherPath{p.Nodes, p.Share, p.Confidence})
	}
	if out.Path.Share = f.Share; f.Share > 0 {
		out.Path.Complete = !f.Partial
	}
	for _, s := range f.Inseparable {
		out.Path.Inseparable = append(out.Path.Inseparable, PathSet(s))
	}
	out.Path.Unexplained = f.Unexplained
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
		out.Hops = append(out.Hops, Hop{NodeID: h.Node, EgressIf: h.EgressIf, Reports: h.Latency.Count,
			Latency: quantiles(&h.Latency), Queue: quantiles(&h.Queue), Frequent: frequentOf(f.Frequent, h.Frequent)})
	}
	return out
}

func findingOf(f *inference.Finding) Finding {
	s := Finding{ID: f.IDText(), Kind: f.Kind.String(), Severity: f.Severity.String(), Start: f.Start, End: f.End,
		Value: f.Value, Baseline: f.Baseline, Text: f.Text,
		Cause: f.CauseText(), Evidence: f.Evidence, Learning: f.Learning, Statistic: f.Statistic}
	if f.Element.Kind != inference.NoElement {
		s.Element = &f.Element
	}
	if f.HasNode() {
		s.NodeID = &f.Node
	}
	return s
}

// Dialect is one sender whose frames its profile did not read.
type Dialect struct {
	Address  string   `json:"address"`
	State    string   `json:"state"` // adopted, suggested, tied, mixed, unknown, foreign
	Profile  string   `json:"profile"`
	Explains []string `json:"explained_by"`
	Unread   uint64   `json:"unread"`
	AtLeast  bool     `json:"at_least,omitempty"`
	Stored   uint64   `json:"stored_unread"` // of those, in statistics all the same
	Text     string   `json:"text"`
	Sample   string   `json:"sample,omitempty"` // hex: the beginning of a frame that was not read, without what users sent
}

// Dialects are senders whose frames their profiles did not read.
func Dialects(list []guess.Finding) (out []Dialect) {
	for i := range list {
		f := &list[i]
		out = append(out, Dialect{f.Src.String(), f.State.String(), f.Profile, append([]string{}, f.Profiles...), f.Unread, f.AtLeast, f.Stored, f.String(), ""})
		if f.State != guess.Adopted {
			out[i].Sample = hex.EncodeToString(f.Sample)
		}
	}
	return out
}

// Remark is a note on reports of one exporter that were read, and are not all in statistics.
type Remark struct {
	Address string `json:"address,omitempty"` // none for packets of the network
	What    string `json:"what"`              // copies, unset-times, unflagged-int, stack-in-mx, domain-data, more-data, unset-delays, alike, more
	Count   uint64 `json:"count"`
	Text    string `json:"text"`
}

// Remarks are those of a list.
func Remarks(list []guess.Remark) (out []Remark) {
	for i := range list {
		m := &list[i]
		address := ""
		if m.Src != (decode.Addr{}) {
			address = m.Src.String()
		}
		out = append(out, Remark{address, m.Name(), m.Count, m.String()})
	}
	return out
}

// DialectProblems returns those that an operator has to decide, a few of them.
func DialectProblems(list []Dialect) (out []string) {
	const most = 5
	more := 0
	for i := range list {
		switch {
		case list[i].State == guess.Adopted.String():
		case len(out) < most:
			out = append(out, "dialect: "+list[i].Text)
		default:
			more++
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("dialect: and %d more exporters", more))
	}
	return out
}
