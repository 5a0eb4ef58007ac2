package parquet

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

// TestSeveralPaths runs the query of docs/pint.md over files: the paths of a flow in its last window, and their shares.
func TestSeveralPaths(t *testing.T) {
	dir := t.TempDir()
	w := mustNew(t, testConfig(dir))
	key, err := decode.ParseFlow("10.0.0.1:80 > 10.0.0.2:5001 tcp")
	if err != nil {
		t.Fatal(err)
	}
	for i, share := range []float64{.25, .75} {
		window := sink.NewWindow("here", &inference.Window{End: base + int64(i), Flows: []inference.FlowStats{{
			Key: key, PathID: 1, Share: share, Confidence: 1, Hops: []inference.FlowHop{{HopKey: inference.HopKey{Node: 1}}, {HopKey: inference.HopKey{Node: 7}}},
			Others:      []inference.FlowPath{{Nodes: []uint32{1, 8}, Share: .125, Confidence: .5}},
			Inseparable: []inference.FlowPaths{{Paths: [][]uint32{{1, 9}}, Share: .0625}},
		}}}, nil)
		if err := w.Write(t.Context(), window.Batch()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/pint.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```sql\n")
	query, _, ok := strings.Cut(after, "```")
	if !ok {
		t.Fatal("docs/pint.md has no query for DuckDB")
	}
	cmd := exec.Command(testkit.Python(t), "-c", "import sys, duckdb\nprint([r[1:] for r in duckdb.sql(sys.argv[1]).fetchall()])\n"+
		"print(duckdb.sql(\"SELECT path, node, share, paths FROM 'flow/*.parquet' ORDER BY time, node\").fetchall()[2:])", query)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if want := "[(0, '1 > 7', 0.75, 1.0, None), (1, '1 > 8', 0.125, 0.5, None), (2, '1 > 9', 0.0625, None, 1)]\n" +
		"[('0000000000000001', '1', 0.75, 3), ('0000000000000001', '7', 0.75, 3)]\n"; err != nil || string(out) != want {
		t.Errorf("%s, %v, want %s", out, err, want)
	}
}
