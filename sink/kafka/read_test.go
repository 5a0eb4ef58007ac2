package kafka

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/decode"
	rows "github.com/hopscope/hopscope/decode/arrow"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
)

const readDoc = "../../docs/reports-arrow.md"

// snippets are the pieces of Python in the document, in order.
func snippets(t testing.TB) (list []string) {
	t.Helper()
	doc, err := os.ReadFile(readDoc)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
		list = append(list, m[1])
	}
	return list
}

// The tables of the document list the columns that there are, in their order, with their types.
func TestReadDoc(t *testing.T) {
	doc, err := os.ReadFile(readDoc)
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(strings.TrimSpace(cells[1]), "-") || strings.Contains(line, "unit, meaning") || !strings.ContainsAny(line, "abcdefghijklmnopqrstuvwxyz") {
			continue
		}
		for name := range strings.SplitSeq(cells[1], ",") {
			listed = append(listed, strings.TrimSpace(name)+" "+strings.TrimSpace(cells[2]))
		}
	}
	listed = slices.DeleteFunc(listed, func(s string) bool { return regexp.MustCompile("^([0-9]|kind topic)").MatchString(s) })
	var e rows.Encoder
	r, err := ipc.NewReader(bytes.NewReader(e.AppendStream(nil)))
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	var hops []arrow.Field
	for _, f := range r.Schema().Fields() {
		there = append(there, f.Name+" "+typeName(f.Type))
		if l, ok := f.Type.(*arrow.ListType); ok {
			hops = l.Elem().(*arrow.StructType).Fields()
		}
	}
	for _, f := range append(hops, rowsSchema().Fields()...) {
		there = append(there, f.Name+" "+typeName(f.Type))
	}
	if !slices.Equal(listed, there) {
		t.Errorf("the document lists\n%s\nthere are\n%s", strings.Join(listed, "\n"), strings.Join(there, "\n"))
	}
}

func typeName(t arrow.DataType) string {
	switch t := t.(type) {
	case *arrow.TimestampType:
		return "timestamp[ns, UTC]"
	case *arrow.DictionaryType:
		return "dictionary of string"
	case *arrow.FixedSizeBinaryType:
		return fmt.Sprintf("fixed_size_binary[%d]", t.ByteWidth)
	case *arrow.ListType:
		return "list of struct"
	}
	return map[string]string{"utf8": "string", "float64": "double"}[t.Name()] + map[bool]string{true: t.Name()}[t.Name() != "utf8" && t.Name() != "float64"]
}

// Records of Diverter and HopRows, after Kafka, are read by pyarrow and DuckDB as the document describes.
func TestReadByOthers(t *testing.T) {
	t.Parallel()
	broker := servertest.StartBroker(t, servertest.BrokerOptions{})
	const partitions = 4
	broker.CreateTopic("reports", partitions)
	broker.CreateTopic("series", 1)
	produce := func(topic string, partition int, h *fleet.Head, value []byte) {
		t.Helper()
		broker.Write(topic, partition, servertest.Message{Value: value, Headers: []kafka.Header{{Key: fleet.HeaderKey, Value: h.Append(nil)}}})
	}

	d, l := testDiverter(t, func(c *DivertConfig) { c.Slices = partitions })
	var list []*decode.Report
	for i := range uint32(5000) {
		list = append(list, flowReport(i%700, int64(i)))
	}
	rng := rand.New(rand.NewPCG(1, 1))
	list = append(list, &decode.Report{Time: 6000, Format: decode.PINT, Kind: decode.KindDigest, Has: decode.HasDigest, Digest: decode.Digest{Value: rng.Uint64()},
		Units: &decode.Units{LatencyNS: 1, DropReasons: &decode.DropReasons{5: "no route"}}})
	d.Divert(0, list)
	d.EndWindow(int64(divertWindow))
	d.MarkWindow(int64(divertWindow))
	for i := range l.records {
		r := &l.records[i]
		produce("reports", r.partition, &r.head, r.value)
	}
	p := testPartial()
	value, err := HopRows(p, 0, int64(divertWindow), 0)
	if err != nil {
		t.Fatal(err)
	}
	produce("series", 0, &fleet.Head{Kind: fleet.Slice, End: 1}, []byte("hopscope's own"))
	produce("series", 0, &fleet.Head{Kind: fleet.Rows, End: int64(divertWindow)}, value)

	// Another program distinguishes the kinds by the fourth byte of the header.
	dir := t.TempDir()
	fetch := func(topic string, partitions int, kind fleet.Kind) (files int) {
		for p := range partitions {
			for _, m := range broker.Read(topic, p, 0) {
				if h := m.Header("hopscope"); len(h) < 4 || h[3] != byte(kind) {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%04d", topic, files)), m.Value, 0o644); err != nil {
					t.Fatal(err)
				}
				files++
			}
		}
		return files
	}
	if n := fetch("reports", partitions, fleet.Reports); n < partitions {
		t.Fatalf("%d records of reports", n)
	}
	if n := fetch("series", 1, fleet.Rows); n != 1 {
		t.Fatalf("%d records of rows", n)
	}

	code := snippets(t)
	if len(code) != 3 {
		t.Fatalf("%d pieces of Python in the document, want 3", len(code))
	}
	load := func(topic string) string {
		return fmt.Sprintf("import glob\nvalues = [open(f, 'rb').read() for f in sorted(glob.glob(%q))]\n", filepath.Join(dir, topic+"-*"))
	}
	script := strings.Join([]string{
		load("reports"), code[0], code[1],
		"print('rows', reports.num_rows, reports.schema.metadata[b'hopscope.schema_version'].decode(), reports.column('digest').null_count)",
		"print(duckdb.sql(\"SELECT count(*), count(DISTINCT src), sum(len(hops)), max(time) = TIMESTAMPTZ '1970-01-01 00:00:00.000006+00' FROM reports WHERE true\").fetchone())",
		"print(duckdb.sql(\"SELECT kind, digest FROM reports WHERE digest IS NOT NULL\").fetchall())",
		load("series"), code[2],
	}, "\n")
	out, err := exec.Command(testkit.Python(t), "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")

	// The same, as Go has it.
	type hop struct{ records, max int }
	hops := map[[2]int]hop{}
	for _, r := range list {
		for _, h := range r.Hops {
			k := [2]int{int(h.NodeID), int(h.EgressIf)}
			hops[k] = hop{hops[k].records + 1, max(hops[k].max, int(h.Latency))}
		}
	}
	var slowest [][2]int
	for k := range hops {
		slowest = append(slowest, k)
	}
	slices.SortFunc(slowest, func(a, b [2]int) int {
		if c := hops[b].max - hops[a].max; c != 0 {
			return c
		}
		return slices.Compare(a[:], b[:])
	})
	var want []string
	for _, k := range slowest[:10] {
		want = append(want, fmt.Sprintf("(%d, %d, %d, %d)", k[0], k[1], hops[k].records, hops[k].max))
	}
	want = append(want, "rows 5001 1 5000", "(5001, 700, 25000, True)", fmt.Sprintf("[('digest', %d)]", list[5000].Digest.Value))
	var busiest [][4]int
	for h := range p.AllHops() {
		if s := h.Stats(); !s.Other {
			busiest = append(busiest, [4]int{int(s.Node), int(s.EgressIf), int(s.Count), int(s.Latency.Max)})
		}
	}
	slices.SortStableFunc(busiest, func(a, b [4]int) int { return b[2] - a[2] })
	for _, b := range busiest[:5] {
		want = append(want, fmt.Sprintf("(%d, %d, %d, %d, 1)", b[0], b[1], b[2], b[3]))
	}
	if !slices.Equal(got[1:], want) {
		t.Errorf("Python printed\n%s\nwant\n(the first report)\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	first := l.decode(t, &l.records[slices.IndexFunc(l.records, func(r diverted) bool { return r.partition == 0 })])[0]
	var latencies []string
	for _, h := range first.Hops {
		latencies = append(latencies, fmt.Sprint(h.Latency))
	}
	if line := fmt.Sprintf("%d int-stack %s [%s]", first.Time, first.Flow.SrcString(), strings.Join(latencies, ", ")); got[0] != line {
		t.Errorf("the first report is %q, want %q", got[0], line)
	}
}
