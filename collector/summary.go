package collector

import (
	"cmp"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
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
	OtherExporters   *OtherExporters    `json:"other_exporters,omitempty"`
	Dialects         []DialectSummary   `json:"dialects,omitempty"` // of exporters that their profiles did not read
	Findings         []FindingSummary   `json:"findings"`
	Ledger           LedgerSummary      `json:"loss_ledger"`
	Seconds          float64            `json:"seconds"`
	ReportsPerSecond float64            `json:"reports_per_second"`

	Names *names.Names `json:"-"` // for whoever shows the summary to people
}

// FlowSummary is one flow.
type FlowSummary struct {
	Key     decode.FlowKey `json:"-"`
	Flow    FlowJSON       `json:"flow"`
	Packets uint64         `json:"packets"`
	Path    PathSummary    `json:"path"`
	Hops    []HopSummary   `json:"hops"`
	Load    *LoadSummary   `json:"bottleneck_utilization,omitempty"` // PINT
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
	NodeIDs    []*uint32   `json:"node_ids"` // null for hops that are not known yet
	Complete   bool        `json:"complete"`
	Confidence float64     `json:"confidence"` // 1 for paths that were reported whole
	Digests    uint64      `json:"digests"`    // PINT digests that it was inferred from
	Changes    uint32      `json:"changes"`
	Share      float64     `json:"share,omitempty"`         // of the packets that take it, of flows that use several paths at once
	Others     []OtherPath `json:"other_paths,omitempty"`   // that digests told of, too
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
	Address    string `json:"address"` // empty in sums
	NodeID     uint32 `json:"node_id"`
	HWID       uint8  `json:"hw_id"`
	Sequenced  bool   `json:"sequenced"`
	Reports    uint64 `json:"reports"`
	Lost       int64  `json:"lost"`
	Duplicated uint64 `json:"duplicated"`
	Reordered  uint64 `json:"reordered"`
	Late       uint64 `json:"late"`
	Down       uint64 `json:"down"`
	Restarts   uint64 `json:"restarts"`
	Malformed  uint64 `json:"malformed"`
}

// OtherExporters are those that the list leaves out.
type OtherExporters struct {
	Exporters  uint64          `json:"exporters"`  // one that came back after it was forgotten counts again
	Unfollowed uint64          `json:"unfollowed"` // reports of exporters for which there was no place; in no sum
	Sums       ExporterSummary `json:"sums"`
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

	Element   *inference.Element `json:"element,omitempty"`  // what has to be looked at
	Cause     string             `json:"cause,omitempty"`    // id of the finding that explains this one
	Evidence  int                `json:"evidence,omitempty"` // findings that this one explains
	Learning  bool               `json:"learning,omitempty"` // what is normal at this place is not known well yet
	Statistic string             `json:"statistic,omitempty"`
}

// LedgerSummary is the balance of the run: of its first sink, and of every sink where there are more.
type LedgerSummary struct {
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
	return &Quantiles{s.P50, s.P90, s.P99, s.Max}
}

func flowSummary(f *inference.FlowStats) FlowSummary {
	out := FlowSummary{
		Key:     f.Key,
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
		out.Hops = append(out.Hops, HopSummary{NodeID: h.Node, EgressIf: h.EgressIf, Reports: h.Latency.Count,
			Latency: quantiles(&h.Latency), Queue: quantiles(&h.Queue)})
	}
	return out
}

func findingSummary(f *inference.Finding) FindingSummary {
	s := FindingSummary{ID: f.IDText(), Kind: f.Kind.String(), Severity: f.Severity.String(), Start: f.Start, End: f.End,
		NodeID: f.Node, Value: f.Value, Baseline: f.Baseline, Text: f.Text,
		Cause: f.CauseText(), Evidence: f.Evidence, Learning: f.Learning, Statistic: f.Statistic}
	if f.Element.Kind != inference.NoElement {
		s.Element = &f.Element
	}
	return s
}

// exporterTotals sums windows by exporter, of as many as the tracker has places for. Those that it has forgotten make
// room, the longest forgotten first, and are summed up together.
type exporterTotals struct {
	most    int
	window  uint64 // number of the last one
	of      map[inference.ExporterKey]*exporterTotal
	other   ExporterSummary
	folded  uint64 // exporters in other
	refused uint64 // reports of exporters that had no place
}

type exporterTotal struct {
	ExporterSummary
	window uint64 // the last that named it
}

func newExporterTotals(most int) exporterTotals {
	return exporterTotals{most: most, of: map[inference.ExporterKey]*exporterTotal{}}
}

func (t *exporterTotals) add(stats []inference.ExporterStats, refused uint64) {
	t.window++
	t.refused = refused
	for i := range stats {
		e := &stats[i]
		s := t.of[e.ExporterKey]
		if s == nil {
			s = &exporterTotal{ExporterSummary: ExporterSummary{Address: e.Addr.String(), NodeID: e.Node, HWID: e.HWID}}
			t.of[e.ExporterKey] = s
		}
		s.window = t.window
		s.add(&ExporterSummary{Sequenced: e.Sequenced, Reports: e.Reports, Lost: e.Lost, Duplicated: e.Duplicated, Reordered: e.Reordered,
			Late: e.Late, Down: e.Down, Restarts: e.Restarts, Malformed: e.Malformed})
	}
	if len(t.of) > t.most {
		t.fold()
	}
}

// fold makes room: a quarter of the places, as far as the tracker has forgotten as many.
func (t *exporterTotals) fold() {
	var gone []inference.ExporterKey
	for k, s := range t.of {
		if s.window < t.window {
			gone = append(gone, k)
		}
	}
	slices.SortFunc(gone, func(a, b inference.ExporterKey) int {
		return cmp.Or(cmp.Compare(t.of[a].window, t.of[b].window), a.Compare(b))
	})
	for _, k := range gone[:min(len(gone), len(t.of)-t.most+t.most/4)] {
		t.other.add(&t.of[k].ExporterSummary)
		t.folded++
		delete(t.of, k)
	}
}

func (s *ExporterSummary) add(o *ExporterSummary) {
	s.Sequenced = s.Sequenced || o.Sequenced
	s.Reports += o.Reports
	s.Lost += o.Lost
	s.Duplicated += o.Duplicated
	s.Reordered += o.Reordered
	s.Late += o.Late
	s.Down += o.Down
	s.Restarts += o.Restarts
	s.Malformed += o.Malformed
}

// lost is what all exporters lost.
func (t *exporterTotals) lost() int64 {
	lost := t.other.Lost
	for _, s := range t.of {
		lost += s.Lost
	}
	return lost
}

// listedExporters is the length of a summary's list of exporters.
const listedExporters = 1000

// list gives the exporters with the most reports, in order, and the sum of the others, nil if there are none.
func (t *exporterTotals) list() ([]ExporterSummary, *OtherExporters) {
	out := make([]ExporterSummary, 0, len(t.of))
	for _, s := range t.of {
		out = append(out, s.ExporterSummary)
	}
	byName := func(a, b ExporterSummary) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.NodeID, b.NodeID), cmp.Compare(a.HWID, b.HWID))
	}
	other := OtherExporters{Exporters: t.folded, Sums: t.other, Unfollowed: t.refused}
	if len(out) > listedExporters {
		slices.SortFunc(out, func(a, b ExporterSummary) int { return cmp.Or(cmp.Compare(b.Reports, a.Reports), byName(a, b)) })
		for i := range out[listedExporters:] {
			other.Exporters++
			other.Sums.add(&out[listedExporters+i])
		}
		out = out[:listedExporters]
	}
	slices.SortFunc(out, byName)
	if other.Exporters == 0 && other.Unfollowed == 0 {
		return out, nil
	}
	return out, &other
}
