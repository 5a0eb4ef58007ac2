package parquet

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

// TestNames runs the query of docs/inventory.md over files: hops come under the latest names of their nodes, also those that have
// none.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	w := mustNew(t, testConfig(dir))
	for i, rows := range [][]names.Row{
		{{Node: 17, Name: "old"}, {Node: 17, EgressIf: 3, Name: "old", Interface: "Ethernet3", Speed: 1e10}},
		{{Node: 17, Name: "leaf-3"}},
	} {
		window := sink.NewWindow("here", &inference.Window{End: base + int64(i)}, nil)
		for _, n := range []uint32{17, 19} {
			window.Hops = append(window.Hops, inference.HopStats{HopKey: inference.HopKey{Node: n, EgressIf: 3}, Count: 1, Latency: inference.Summary{Count: 1, P99: uint64(n)}})
		}
		window.Names = rows
		if err := w.Write(t.Context(), window.Batch()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/inventory.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "DuckDB, over Parquet files:\n\n```sql\n")
	query, _, ok := strings.Cut(after, "```")
	if !ok {
		t.Fatal("docs/inventory.md has no query for DuckDB")
	}
	cmd := exec.Command(testkit.Python(t), "-c", "import sys, duckdb\nprint([r[1:] for r in duckdb.sql(sys.argv[1]).fetchall()])", query)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if want := "[('leaf-3', '17', '3', 17), (None, '19', '3', 19), ('leaf-3', '17', '3', 17), (None, '19', '3', 19)]\n"; err != nil || string(out) != want {
		t.Errorf("%s, %v, want %s", out, err, want)
	}
}
