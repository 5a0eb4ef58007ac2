package fleet

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/window"
)

var update = flag.Bool("update", false, "write the golden files of this version")

// goldenLog is a partition of windows as version 1 wrote it. It has a window of two collectors, its close, a late part,
// and the first half of the next window.
const goldenLog = "testdata/version1.log"

func goldenPartial(n uint32) *window.Partial {
	p := &window.Partial{Start: 10e9, End: 20e9, Reports: uint64(n), FlowCount: 1}
	h := p.Hop(inference.HopKey{Node: 7, EgressIf: n})
	h.Latency.Add(uint16(100 + 10*n))
	h.Queue.Add(5)
	h.Utilization, h.HasUtilization = 0.5, true
	p.AddDrops(&inference.DropStats{Node: 7, Reason: 3, Count: uint64(n), Last: 12e9})
	p.AddExporters([]inference.ExporterStats{{
		ExporterKey: inference.ExporterKey{Addr: decode.AddrFrom4([]byte{192, 0, 2, 1}), Node: n}, Reports: uint64(n), Lost: 1, Last: 15e9, Sequenced: true,
	}})
	return p
}

func writeGoldenLog(t *testing.T) {
	t.Helper()
	var text strings.Builder
	offset := 0
	put := func(h Head, value []byte) {
		fmt.Fprintf(&text, "%d %x %x\n", offset, h.Append(nil), value)
		offset++
	}
	slicer := window.NewSlicer(1, 1)
	a := NewPublisher(PublisherConfig{From: "a", Boot: 11, Slicer: slicer, Window: 10e9})
	b := NewPublisher(PublisherConfig{From: "b", Boot: 12, Slicer: slicer, Window: 10e9})
	window := func(p *Publisher, part *window.Partial, end int64) {
		out, err := p.Window(nil, part, end, []uint64{0}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range out {
			put(o.Head, o.Value)
		}
	}
	window(a, goldenPartial(1), 20e9)
	window(b, goldenPartial(2), 20e9)
	put(Head{
		Kind: Close, From: "consumer", Start: 10e9, End: 20e9, Sources: []Source{{"a", 11, 1}, {"b", 12, 1}}, Missing: []string{"c"}, Generation: 3,
	}, nil)
	window(b, goldenPartial(4), 20e9)
	window(a, goldenPartial(3), 30e9)
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(goldenLog, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readGoldenLog(t *testing.T) (log []Record) {
	t.Helper()
	text, err := os.ReadFile(goldenLog)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var r Record
		fields := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		if _, err := fmt.Sscan(fields[0], &r.Offset); err != nil {
			t.Fatal(err)
		}
		head, err := hex.DecodeString(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		if r.Head, err = ReadHead(head); err != nil {
			t.Fatal(err)
		}
		if r.Value, err = hex.DecodeString(fields[2]); err != nil {
			t.Fatal(err)
		}
		log = append(log, r)
	}
	return log
}

// Logs outlive the programs that wrote them: what version 1 wrote is read by all later ones, and so is the state of
// their readers.
func TestVersion1(t *testing.T) {
	const state = "testdata/version1.state"
	cfg := Options{Name: "consumer", Window: 10e9, Limits: window.Limits{Hops: 9, Exporters: 9, Flows: 9, Paths: 9, Drops: 9, Faults: 9}}
	m, err := NewMerger(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		writeGoldenLog(t)
	}
	want := &window.Partial{}
	want.Merge(goldenPartial(1))
	want.Merge(goldenPartial(2))
	closed, late := 0, 0
	log := readGoldenLog(t)
	for i := range log {
		e, err := m.Add(&log[i])
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if e.Kind == Late {
			late++
		}
		if e.Closed == nil {
			continue
		}
		closed++
		same(t, e.Closed.Partial, want)
		if len(e.Closed.Bad) > 0 || len(e.Closed.Missing) != 1 || e.Closed.Missing[0] != "c" || len(e.Closed.Sources) != 2 {
			t.Errorf("closed with %+v", e.Closed)
		}
	}
	if closed != 1 || late != 1 {
		t.Fatalf("%d windows closed and %d records came late, want one each", closed, late)
	}
	r := m.Rebuild(20e9)
	if r == nil {
		t.Fatal("the window cannot be made again")
	}
	for i := range log {
		if err := r.Add(&log[i]); err != nil {
			t.Fatal(err)
		}
	}
	second, err := r.Merged()
	if err != nil {
		t.Fatal(err)
	}
	want.Merge(goldenPartial(4))
	same(t, second.Partial, want)

	if *update {
		if err := os.WriteFile(state, m.AppendState(nil), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewMerger(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.ReadState(kept); err != nil {
		t.Fatalf("state of version 1: %v", err)
	}
	if other.Gate.Last() != 20e9 || other.Gate.Open() != 1 || other.Floor() != 4 {
		t.Errorf("the state of version 1 says: closed to %d, %d open, floor %d", other.Gate.Last(), other.Gate.Open(), other.Floor())
	}
}

func same(t *testing.T, got, want *window.Partial) {
	t.Helper()
	a, err := got.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := want.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Errorf("merged\n%x, want\n%x", a, b)
	}
}
