package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// Document is the value of a record of kind Whole, as JSON. It holds the results of the owner of series from all slices
// of a window, for pages and for all other readers of the topic. Times are RFC 3339 with nanoseconds in UTC,
// identifiers are 16 hexadecimal digits, and a field that is absent does not apply. A later version of hopscope may add
// fields; version goes up when a field changes its meaning.
//
// The document of a window replaces those with a lower revision, except for the findings: they are published once, with
// revision 0.
type Document struct {
	Version  int       `json:"version"` // 1
	Fleet    string    `json:"fleet"`
	Start    time.Time `json:"start"` // of the window
	End      time.Time `json:"end"`   // excluded; the window's label
	Revision uint64    `json:"revision"`

	Collectors []collectorState `json:"collectors"` // by name
	// AbsentSlices are the slices of which nothing is in the window, by number. Usually there are none.
	AbsentSlices []int `json:"absent_slices,omitempty"`

	Totals Totals `json:"totals"`
	// LearningHops are the hops that are younger than their statistics need, egress interfaces by node. If there are
	// many, it holds the first of them. It is absent if all or none are, which hops_learning of the totals
	// distinguishes.
	LearningHops map[uint32][]uint32 `json:"learning_hops,omitempty"`
	Findings     []findingState      `json:"findings"` // that began, rose or ended with the window
}

// collectorState is the state of a collector in a window.
type collectorState struct {
	Name string `json:"name"`
	// State is "merged", "missing" or "dead". A missing collector was waited for in vain; what came of it is in the
	// window all the same. A dead one is not waited for any more until it is heard again.
	State string `json:"state"`
}

// Totals are sums over a window of the fleet.
type Totals struct {
	Reports    uint64 `json:"reports"`                 // that were counted
	Hops       int    `json:"hops"`                    // places in the network that were seen
	Learning   int    `json:"hops_learning,omitempty"` // of them, those that are younger than their statistics need
	Flows      uint64 `json:"flows"`                   // that were seen
	FlowBound  uint64 `json:"flow_bound"`              // reports that a flow can have had which no collector lists
	Exporters  int    `json:"exporters"`               // sequence number spaces
	Unheard    int    `json:"unheard_exporters"`       // of which nothing can be known, because their collector was missing
	Lost       int64  `json:"reports_lost"`            // on their way from exporters; below 0 where a window takes back losses of one before
	Duplicated uint64 `json:"reports_duplicated"`
	Malformed  uint64 `json:"reports_malformed"`
	Paths      uint64 `json:"path_changes"`
	Drops      uint64 `json:"drop_reports"`
	// OtherHops are records of hops that had no place in a table and are folded into the hop called other.
	OtherHops uint64 `json:"other_hop_records"`
}

// findingState is a finding as it was at the end of a window.
type findingState struct {
	ID       string     `json:"id"`
	Kind     string     `json:"kind"`     // such as "path-change"
	Severity string     `json:"severity"` // info, warning or critical
	Start    time.Time  `json:"start"`    // end of the window in which the cause was first seen
	Updated  time.Time  `json:"updated"`
	End      *time.Time `json:"end,omitempty"`  // absent as long as the cause lasts
	Node     *uint32    `json:"node,omitempty"` // 0 is written for findings about exporters alone
	EgressIf uint32     `json:"egress_if,omitempty"`
	Flow     *flowName  `json:"flow,omitempty"`
	Path     string     `json:"path,omitempty"`     // the flow's way, such as "13:1-6:2-14", of packets that vanish and of latencies of a flow
	Exporter string     `json:"exporter,omitempty"` // its address
	HWID     uint8      `json:"hw_id,omitempty"`
	Reason   uint8      `json:"drop_reason,omitempty"`
	Folded   bool       `json:"folded,omitempty"` // its node has no series of its own in stores
	Value    *float64   `json:"value"`            // what was seen, in the unit that the text names; null if it is no number
	Baseline *float64   `json:"baseline"`         // what was expected
	Text     string     `json:"text"`             // the evidence in one sentence

	Element   json.RawMessage `json:"element,omitempty"`   // an [inference.Element]: place of the fault
	Cause     string          `json:"cause,omitempty"`     // id of the finding that explains this one
	Evidence  int             `json:"evidence,omitempty"`  // findings that this one explains
	Learning  bool            `json:"learning,omitempty"`  // the usual values at this place are not learnt well yet
	Resting   bool            `json:"resting,omitempty"`   // the place is as usual at present, and what was found is expected to come back
	Statistic string          `json:"statistic,omitempty"` // what value is, such as "p99 latency"
	SeenAt    json.RawMessage `json:"seen_at,omitempty"`   // an [inference.Element]: of a cause, the place of the symptom that value and baseline are of
}

// flowName names a flow.
type flowName struct {
	Src       string `json:"src"` // address
	Dst       string `json:"dst"`
	SrcPort   uint16 `json:"src_port"`
	DstPort   uint16 `json:"dst_port"`
	Protocol  uint8  `json:"protocol"`
	IPVersion uint8  `json:"ip_version"`
}

// documentVersion is the version of a [Document].
const documentVersion = 1

// NewDocument makes the document of a window and of the findings that were published with it.
func NewDocument(fleet string, a *Assembled, w *inference.Window, findings []inference.Finding) *Document {
	d := &Document{
		Version: documentVersion, Fleet: fleet, Start: moment(a.Start), End: moment(a.End), Revision: a.Revision, AbsentSlices: a.Absent,
		Totals: Totals{
			Reports: w.Reports, Hops: len(w.Hops), Flows: uint64(max(w.FlowCount, 0)), FlowBound: w.FlowBound, Exporters: len(w.Exporters),
			Unheard: len(a.Unheard), Paths: uint64(len(w.Paths)) + w.OtherPaths, Drops: w.OtherDrops, OtherHops: w.OtherHops,
		},
		Collectors: []collectorState{}, Findings: []findingState{},
	}
	for i := range w.Exporters {
		e := &w.Exporters[i]
		d.Totals.Lost += e.Lost
		d.Totals.Duplicated += e.Duplicated
		d.Totals.Malformed += e.Malformed
	}
	d.learning(w.Hops)
	for i := range w.Drops {
		d.Totals.Drops += w.Drops[i].Count
	}
	state := map[string]string{}
	for _, s := range a.Sources {
		state[s.From] = "merged"
	}
	for _, name := range a.Missing {
		state[name] = "missing"
	}
	for _, name := range a.Dead {
		state[name] = "dead"
	}
	names := make(map[string]bool, len(state))
	for name := range state {
		names[name] = true
	}
	for _, name := range sortedNames(names) {
		d.Collectors = append(d.Collectors, collectorState{name, state[name]})
	}
	for i := range findings {
		d.Findings = append(d.Findings, newFindingState(&findings[i]))
	}
	return d
}

func moment(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// newFindingState makes the form in which a finding is published.
func newFindingState(f *inference.Finding) findingState {
	out := findingState{
		ID: f.IDText(), Kind: f.Kind.String(), Severity: f.Severity.String(), Start: moment(f.Start), Updated: moment(f.Updated),
		EgressIf: f.EgressIf, HWID: f.HWID, Reason: f.Reason, Folded: f.Folded,
		Value: number64(f.Value), Baseline: number64(f.Baseline), Text: strings.ToValidUTF8(f.Text, "\uFFFD"),
		Cause: f.CauseText(), Evidence: f.Evidence, Learning: f.Learning, Resting: f.Resting, Statistic: f.Statistic,
	}
	if f.Element.Kind != inference.NoElement {
		out.Element, _ = f.Element.MarshalJSON() // it fails for kinds that do not exist
	}
	if f.SeenAt.Kind != inference.NoElement {
		out.SeenAt, _ = f.SeenAt.MarshalJSON()
	}
	if f.End != 0 {
		end := moment(f.End)
		out.End = &end
	}
	if f.Flow.IPVersion != 0 {
		k := &f.Flow
		out.Flow = &flowName{k.SrcString(), k.DstString(), k.SrcPort, k.DstPort, k.Proto, k.IPVersion}
	}
	out.Path = f.PathText()
	if f.Exporter != (decode.Addr{}) {
		out.Exporter = f.Exporter.String()
	}
	if f.Node != 0 || out.Exporter != "" && !f.Nameless {
		out.Node = &f.Node
	}
	return out
}

func number64(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Finding returns the finding of the form.
func (s *findingState) Finding() (inference.Finding, error) {
	f := inference.Finding{
		Start: s.Start.UnixNano(), Updated: s.Updated.UnixNano(), EgressIf: s.EgressIf, HWID: s.HWID, Reason: s.Reason,
		Folded: s.Folded, Value: math.NaN(), Baseline: math.NaN(), Text: s.Text,
		Evidence: s.Evidence, Learning: s.Learning, Resting: s.Resting, Statistic: s.Statistic,
	}
	var errs [10]error
	f.ID, errs[0] = inference.ParseID(s.ID)
	f.Kind, errs[1] = inference.ParseKind(s.Kind)
	f.Severity, errs[2] = inference.ParseSeverity(s.Severity)
	if s.Cause != "" {
		f.Cause, errs[6] = inference.ParseID(s.Cause)
	}
	if len(s.Element) > 0 {
		errs[7] = f.Element.UnmarshalJSON(s.Element)
	}
	f.Path, errs[8] = inference.ParsePath(s.Path)
	if len(s.SeenAt) > 0 {
		errs[9] = f.SeenAt.UnmarshalJSON(s.SeenAt)
	}
	if s.End != nil {
		f.End = s.End.UnixNano()
	}
	if s.Value != nil {
		f.Value = *s.Value
	}
	if s.Baseline != nil {
		f.Baseline = *s.Baseline
	}
	if s.Flow != nil {
		f.Flow = decode.FlowKey{SrcPort: s.Flow.SrcPort, DstPort: s.Flow.DstPort, Proto: s.Flow.Protocol, IPVersion: s.Flow.IPVersion}
		f.Flow.Src, errs[3] = decode.ParseAddr(s.Flow.Src)
		f.Flow.Dst, errs[4] = decode.ParseAddr(s.Flow.Dst)
	}
	if s.Exporter != "" {
		f.Exporter, errs[5] = parseAddr(s.Exporter)
		f.Nameless = s.Node == nil
		if e := &f.Element; f.Nameless && e.Kind == inference.ExporterElement && e.Node == 0 { // earlier versions wrote it with the node 0
			e.Nameless = true
		}
	}
	if s.Node != nil {
		f.Node = *s.Node
	}
	if err := errors.Join(errs[:]...); err != nil {
		return inference.Finding{}, fmt.Errorf("finding %q: %w", s.ID, err)
	}
	return f, nil
}

func parseAddr(s string) (decode.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return decode.Addr{}, err
	}
	return decode.Addr(a.WithZone("").As16()), nil
}

// errDocument is the error of a value that is no [Document] of a known version.
var errDocument = errors.New("is no document of a version that this program knows")

// AppendJSON appends the document to b.
func (d *Document) AppendJSON(b []byte) ([]byte, error) {
	text, err := json.Marshal(d)
	return append(b, text...), err
}

// readDocument reads a document that AppendJSON wrote, in this version or one that is declared compatible.
func readDocument(b []byte) (*Document, error) {
	d := &Document{}
	if err := json.Unmarshal(b, d); err != nil {
		return nil, &valueError{"document", err}
	}
	if d.Version != documentVersion {
		return nil, &valueError{"document", errDocument}
	}
	d.boundLearning()
	return d, nil
}

// EncodeWhole makes the record of a document for the topic series. Its value is compressed as all others are.
func EncodeWhole(c *Codec, from string, d *Document) (Out, error) {
	text, err := d.AppendJSON(nil)
	if err != nil {
		return Out{}, err
	}
	value := c.Compress(nil, text)
	return Out{Head: Head{
		Kind: Whole, From: from, Start: d.Start.UnixNano(), End: d.End.UnixNano(), Part: 0, Parts: 1, Revision: d.Revision,
		Reports: d.Totals.Reports, Sum: Sum(value),
	}, Value: value}, nil
}

// DecodeWhole reads the value of a record that EncodeWhole made.
func DecodeWhole(c *Codec, value []byte) (*Document, error) {
	text, err := c.Decompress(nil, value)
	if err != nil {
		return nil, err
	}
	return readDocument(text)
}
