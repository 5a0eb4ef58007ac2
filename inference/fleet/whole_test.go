package fleet

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
)

// exampleDocument has every field of a document.
func exampleDocument() (*Document, []inference.Finding) {
	findings := []inference.Finding{
		{
			ID: 0xabc, Kind: inference.HighLatency, Severity: inference.Warning, Start: 1_700_000_000_123_456_789, Updated: 1_700_000_010_123_456_789,
			Node: 7, EgressIf: 3, Folded: true, Value: 2.5, Baseline: 1, Text: "p99 of node 7 interface 3 is 2.5 ms",
			Element: inference.ElementOfLink(9, 7), Cause: 0xdef, Learning: true, Resting: true, Statistic: "p99 latency",
		},
		{
			ID: math.MaxUint64, Kind: inference.PathChanged, Severity: inference.Critical, Start: 1, Updated: 2, End: 3, Flow: flowKey(5),
			Path:     []inference.HopKey{{Node: 13, EgressIf: 1}, {Node: 6}, {Node: 14, EgressIf: 2}},
			Exporter: decode.AddrFrom4([]byte{10, 0, 0, 1}), HWID: 2, Nameless: true, Reason: 9, Text: "a flow", Evidence: 3, SeenAt: inference.ElementOfNode(3),
		},
	}
	a := &Assembled{
		Start: 1_700_000_000e9, End: 1_700_000_010e9, Revision: 2, Absent: []int{4},
		Sources: []Source{{"a", 1, 2}, {"a", 2, 1}, {"b", 1, 1}, {PseudoName(1), 0, 1}}, Missing: []string{"b", "c"}, Dead: []string{"c"},
		Unheard: []inference.ExporterKey{{Node: 1}},
	}
	w := &inference.Window{
		Reports: 100, FlowCount: 9, FlowBound: 3, OtherHops: 5, OtherPaths: 1, OtherDrops: 2,
		Hops: make([]inference.HopStats, 6), Paths: make([]inference.PathChange, 2), Drops: []inference.DropStats{{Count: 4}, {Count: 1}},
		Exporters: []inference.ExporterStats{{Lost: -2, Duplicated: 1}, {Lost: 5, Malformed: 7}},
	}
	return NewDocument("fabric", a, w, findings), findings
}

// TestDocument holds what strangers read, byte by byte, and that findings come back as they were.
func TestDocument(t *testing.T) {
	d, findings := exampleDocument()
	got, err := d.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"version":1,"fleet":"fabric","start":"2023-11-14T22:13:20Z","end":"2023-11-14T22:13:30Z","revision":2,` +
		`"collectors":[{"name":"a","state":"merged"},{"name":"b","state":"missing"},{"name":"c","state":"dead"},{"name":"reports-1","state":"merged"}],` +
		`"absent_slices":[4],` +
		`"totals":{"reports":100,"hops":6,"flows":9,"flow_bound":3,"exporters":2,"unheard_exporters":1,"reports_lost":3,"reports_duplicated":1,` +
		`"reports_malformed":7,"path_changes":3,"drop_reports":7,"other_hop_records":5},` +
		`"findings":[{"id":"0000000000000abc","kind":"high-latency","severity":"warning","start":"2023-11-14T22:13:20.123456789Z",` +
		`"updated":"2023-11-14T22:13:30.123456789Z","node":7,"egress_if":3,"folded":true,"value":2.5,"baseline":1,"text":"p99 of node 7 interface 3 is 2.5 ms",` +
		`"element":{"kind":"link","node":7,"peer":9,"text":"link 7–9"},"cause":"0000000000000def","learning":true,"resting":true,"statistic":"p99 latency"},` +
		`{"id":"ffffffffffffffff","kind":"path-change","severity":"critical","start":"1970-01-01T00:00:00.000000001Z","updated":"1970-01-01T00:00:00.000000002Z",` +
		`"end":"1970-01-01T00:00:00.000000003Z","flow":{"src":"10.0.0.5","dst":"10.255.0.1","src_port":5,"dst_port":80,"protocol":6,"ip_version":4},"path":"13:1-6-14:2",` +
		`"exporter":"10.0.0.1","hw_id":2,"drop_reason":9,"value":0,"baseline":0,"text":"a flow","evidence":3,"seen_at":{"kind":"node","node":3,"text":"node 3"}}]}`
	if string(got) != want {
		t.Errorf("the document is\n%s\nwant\n%s", got, want)
	}
	codec := NewCodec(0, wide)
	out, err := EncodeWhole(codec, "me", d)
	if err != nil || out.Head.Kind != Whole || out.Head.End != 1_700_000_010e9 || out.Head.Revision != 2 || out.Head.Sum != Sum(out.Value) {
		t.Fatalf("%+v, %v", out.Head, err)
	}
	back, err := DecodeWhole(codec, out.Value)
	if err != nil || !reflect.DeepEqual(back, d) {
		t.Fatalf("read as %+v, %v", back, err)
	}
	for i := range findings {
		f, err := back.Findings[i].Finding()
		if err != nil || !reflect.DeepEqual(f, findings[i]) {
			t.Errorf("finding %d is %+v, %v; want %+v", i, f, err, findings[i])
		}
	}
	none := newFindingState(&inference.Finding{Value: math.NaN(), Baseline: math.Inf(1)})
	if none.Value != nil || none.Baseline != nil {
		t.Error("what is no number is reported as one")
	}
	for _, change := range []func(*findingState){
		func(s *findingState) { s.ID = "x" }, func(s *findingState) { s.Kind = "x" }, func(s *findingState) { s.Severity = "x" },
		func(s *findingState) { s.Flow.Src = "x" }, func(s *findingState) { s.Flow.Dst = "" }, func(s *findingState) { s.Exporter = "x" },
		func(s *findingState) { s.Cause = "x" }, func(s *findingState) { s.Element = []byte(`{"kind":"planet"}`) },
	} {
		s := newFindingState(&findings[1])
		change(&s)
		if f, err := s.Finding(); err == nil || !reflect.DeepEqual(f, inference.Finding{}) {
			t.Errorf("%+v is read as %+v", s, f)
		}
	}
	var value *valueError
	if _, err := readDocument([]byte(`{"version":2}`)); !errors.Is(err, errDocument) || !errors.As(err, &value) {
		t.Errorf("a later version: %v", err)
	}
	if _, err := readDocument([]byte(`{"version":1,"later":true}`)); err != nil {
		t.Errorf("a field of a later version: %v", err)
	}
	if _, err := readDocument([]byte(`{`)); !errors.As(err, &value) {
		t.Errorf("half a document: %v", err)
	}
}
