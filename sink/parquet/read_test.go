package parquet

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/internal/servertest"
)

// row is a row that was read back; null columns are missing.
type row = map[string]any

// readFile reads a whole file and checks its metadata.
func readFile(t testing.TB, path string) (rows []row, groups int) {
	t.Helper()
	f := servertest.ReadParquet(t, path)
	if v := f.Metadata["hopscope.schema_version"]; v != schemaVersion {
		t.Errorf("%s: schema version %q", path, v)
	}
	if v := f.Metadata["hopscope.dataset"]; v != filepath.Base(filepath.Dir(path)) {
		t.Errorf("%s: dataset %q", path, v)
	}
	return f.Rows, f.Groups
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
