package main_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
)

// TestFrozenParquet holds the datasets of replays: names, schemas with their metadata, and rows.
func TestFrozenParquet(t *testing.T) {
	faults := writeCapture(t, between(readCapture(t, frozen("faults.pcap.gz")), 26*time.Second, 31*time.Second))
	for _, tt := range []struct {
		name, file, settings string
	}{
		{"fabric", captures + "fabric-report05.pcap", "window: 1s\nexporters: {profile: fabric-tna}\n"},
		{"onos", captures + "onos-int10-network.pcap", "window: 10s\nexporters: {profile: onos}\n"},
		{"malformed", captures + "hostint05-reports.pcap", "window: 10s\n"},
		{"int-path", "../../decode/srint/testdata/int-path.pcap", "window: 10s\nexporters: {profile: int-path}\n"},
		{"faults", faults, faultSettings},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rows := func(shards int) string {
				dir := t.TempDir()
				config := settingsFile(t, fmt.Sprintf("shards: %d\n%sparquet: {enabled: true, dir: %q, raw: true, spool: {dir: %q}}\n",
					shards, tt.settings, filepath.Join(dir, "series"), filepath.Join(dir, "spool")))
				must(t, "replay", tt.file, "--config", config)
				return parquetText(t, filepath.Join(dir, "series"))
			}
			one := rows(1)
			golden(t, "parquet/"+tt.name+".txt.gz", one)
			same(t, "rows of 4 shards", sortedLines(dropFlow(rows(4))), sortedLines(dropFlow(one)))
		})
	}
}

// parquetText returns the datasets of a directory as text: the schema of each, the names of its files, its rows in order.
func parquetText(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	seen := map[string]bool{}
	var rows []string
	for _, name := range files {
		dataset := filepath.Base(filepath.Dir(name))
		if dataset == "collector" {
			continue // what a run reports of itself differs from one to the next
		}
		schema, more := readParquet(t, name)
		if !seen[dataset] {
			seen[dataset] = true
			fmt.Fprintf(&b, "dataset %s: %s\n", dataset, schema)
		}
		fmt.Fprintf(&b, "file %s/%s\n", dataset, filepath.Base(name))
		for _, r := range more {
			rows = append(rows, dataset+" "+r)
		}
	}
	slices.Sort(rows)
	for _, r := range rows {
		b.WriteString(r + "\n")
	}
	return b.String()
}

// readParquet returns a file's schema and its rows, as "column=value" without the columns that are null.
func readParquet(t *testing.T, name string) (schema string, rows []string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pr, err := file.NewParquetReader(f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	ar, err := pqarrow.NewFileReader(pr, pqarrow.ArrowReadProperties{BatchSize: 1 << 16}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	rr, err := ar.GetRecordReader(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rr.Release()
	for rr.Next() {
		rec := rr.Record()
		for i := range int(rec.NumRows()) {
			var cells []string
			for c, field := range rec.Schema().Fields() {
				if col := rec.Column(c); col.IsValid(i) {
					cells = append(cells, field.Name+"="+col.ValueStr(i))
				}
			}
			rows = append(rows, strings.Join(cells, " "))
		}
	}
	if err := rr.Err(); err != nil && err != io.EOF && err.Error() != "EOF" {
		t.Fatal(err)
	}
	s, err := ar.Schema()
	if err != nil {
		t.Fatal(err)
	}
	meta := pr.MetaData().KeyValueMetadata()
	var keys []string
	for i, k := range meta.Keys() {
		if k != "ARROW:schema" {
			keys = append(keys, k+"="+meta.Values()[i])
		}
	}
	slices.Sort(keys)
	var fields []string
	for _, f := range s.Fields() {
		fields = append(fields, fmt.Sprintf("%s %s null=%v", f.Name, f.Type, f.Nullable))
	}
	return strings.Join(append(keys, fields...), ", "), rows
}
