package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// Python returns the interpreter that .ci/python.sh installed, with pyarrow, DuckDB, HiGHS, scapy and networkx, or the
// one that HOPSCOPE_TEST_PYTHON names.
func Python(t testing.TB) string {
	t.Helper()
	if p := os.Getenv("HOPSCOPE_TEST_PYTHON"); p != "" {
		return p
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	p := filepath.Join(dir, ".cache", "python", "bin", "python")
	if _, err := os.Stat(p); err != nil {
		t.Fatalf("Python with what the tests need is not installed: run `make python` (%v)", err)
	}
	return p
}
