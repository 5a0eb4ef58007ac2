package main_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/schema"

	"github.com/hopscope/hopscope/internal/servertest"
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
	f := servertest.ReadParquet(t, name)
	parts := f.MetadataText()
	for i := range f.Schema.NumColumns() {
		c := f.Schema.Column(i)
		parts = append(parts, fmt.Sprintf("%s %s null=%v", c.Name(), columnType(c), c.MaxDefinitionLevel() > 0))
	}
	for _, row := range f.Rows {
		var cells []string
		for i := range f.Schema.NumColumns() {
			c := f.Schema.Column(i)
			v, ok := row[c.Name()]
			if !ok {
				continue
			}
			if columnType(c) == timestamp {
				v = time.Unix(0, v.(int64)).UTC().Format("2006-01-02 15:04:05.999999999Z0700")
			}
			cells = append(cells, fmt.Sprintf("%s=%v", c.Name(), v))
		}
		rows = append(rows, strings.Join(cells, " "))
	}
	return strings.Join(parts, ", "), rows
}

// timestamp is the name of a column of times, which are UTC though the file marks them as without zone.
const timestamp = "timestamp[ns, tz=UTC]"

// columnType names a column's type as Arrow does.
func columnType(c *schema.Column) string {
	switch logical := c.LogicalType().(type) {
	case *schema.TimestampLogicalType:
		if logical.TimeUnit() == schema.TimeUnitNanos {
			return timestamp
		}
	case schema.StringLogicalType:
		return "utf8"
	case schema.NoLogicalType:
		switch c.PhysicalType() {
		case parquet.Types.Int64:
			return "int64"
		case parquet.Types.Double:
			return "float64"
		}
	}
	return fmt.Sprintf("%s of %s", c.LogicalType(), c.PhysicalType())
}
