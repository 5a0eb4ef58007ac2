package parquet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
)

// row is a row that was read back; null columns are missing.
type row map[string]any

// readFile reads a whole file and checks its metadata.
func readFile(t testing.TB, path string) (rows []row, groups int) {
	t.Helper()
	r, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer r.Close()
	meta := r.MetaData().KeyValueMetadata()
	if v := meta.FindValue("hopscope.schema_version"); v == nil || *v != schemaVersion {
		t.Errorf("%s: schema version %v", path, v)
	}
	if v := meta.FindValue("hopscope.dataset"); v == nil || *v != filepath.Base(filepath.Dir(path)) {
		t.Errorf("%s: dataset %v", path, v)
	}
	for g := range r.NumRowGroups() {
		rg := r.RowGroup(g)
		n := int(rg.NumRows())
		base := len(rows)
		for range n {
			rows = append(rows, row{})
		}
		for i := range r.MetaData().Schema.NumColumns() {
			col, err := rg.Column(i)
			if err != nil {
				t.Fatal(err)
			}
			name := r.MetaData().Schema.Column(i).Name()
			defs := make([]int16, n)
			var values []any
			switch c := col.(type) {
			case *file.Int64ColumnChunkReader:
				values = readColumn(t, c, n, defs, func(x int64) any { return x })
			case *file.Float64ColumnChunkReader:
				values = readColumn(t, c, n, defs, func(x float64) any { return x })
			case *file.ByteArrayColumnChunkReader:
				values = readColumn(t, c, n, defs, func(x parquet.ByteArray) any { return string(x) })
			}
			required := r.MetaData().Schema.Column(i).MaxDefinitionLevel() == 0
			for j := range n {
				if required || defs[j] == 1 {
					rows[base+j][name] = values[0]
					values = values[1:]
				}
			}
			if len(values) != 0 {
				t.Errorf("%s: %d values too many in %s", path, len(values), name)
			}
		}
	}
	return rows, r.NumRowGroups()
}

func readColumn[T any](t testing.TB, c interface {
	ReadBatch(batchSize int64, values []T, defLvls, repLvls []int16) (int64, int, error)
}, n int, defs []int16, value func(T) any) (out []any) {
	t.Helper()
	buf := make([]T, n)
	for done := 0; done < n; {
		levels, got, err := c.ReadBatch(int64(n-done), buf, defs[done:], nil)
		if err != nil || levels == 0 {
			t.Fatalf("ReadBatch = %d, %v", levels, err)
		}
		for _, x := range buf[:got] {
			out = append(out, value(x))
		}
		done += int(levels)
	}
	return out
}

// files lists the finished files of a dataset, and fails on unfinished ones.
func files(t testing.TB, dir, set string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, set))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".parquet" {
			t.Errorf("%s/%s is there", set, e.Name())
			continue
		}
		out = append(out, filepath.Join(dir, set, e.Name()))
	}
	slices.Sort(out)
	return out
}

func readAll(t testing.TB, dir, set string) (rows []row) {
	t.Helper()
	for _, f := range files(t, dir, set) {
		r, _ := readFile(t, f)
		rows = append(rows, r...)
	}
	return rows
}

// python is the interpreter that .ci/python.sh installed.
func python(t testing.TB) string {
	t.Helper()
	if p := os.Getenv("HOPSCOPE_TEST_PYTHON"); p != "" {
		return p
	}
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	p := filepath.Join(dir, ".cache", "python", "bin", "python")
	if _, err := os.Stat(p); err != nil {
		t.Fatal(fmt.Errorf("pyarrow and DuckDB are not installed: run `make python` (%w)", err))
	}
	return p
}
