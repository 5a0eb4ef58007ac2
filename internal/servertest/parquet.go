package servertest

import (
	"maps"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/schema"
)

// ParquetFile is the content of a Parquet file whose columns are flat integers, numbers, texts and times.
type ParquetFile struct {
	Schema   *schema.Schema
	Metadata map[string]string
	Groups   int              // row groups
	Rows     []map[string]any // int64, also of a time, float64 or string by column; a null is missing
}

// ReadParquet reads a whole file.
func ReadParquet(t testing.TB, path string) ParquetFile {
	t.Helper()
	r, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer r.Close()
	meta := r.MetaData()
	out := ParquetFile{Schema: meta.Schema, Groups: r.NumRowGroups(), Metadata: map[string]string{}}
	kv := meta.KeyValueMetadata()
	for i, k := range kv.Keys() {
		out.Metadata[k] = kv.Values()[i]
	}
	for g := range out.Groups {
		group := r.RowGroup(g)
		rows := make([]map[string]any, group.NumRows())
		for i := range rows {
			rows[i] = map[string]any{}
		}
		for i := range meta.Schema.NumColumns() {
			chunk, err := group.Column(i)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			c := meta.Schema.Column(i)
			switch chunk := chunk.(type) {
			case *file.Int64ColumnChunkReader:
				parquetColumn(t, chunk, c, rows, func(x int64) any { return x })
			case *file.Float64ColumnChunkReader:
				parquetColumn(t, chunk, c, rows, func(x float64) any { return x })
			case *file.ByteArrayColumnChunkReader:
				parquetColumn(t, chunk, c, rows, func(x parquet.ByteArray) any { return string(x) })
			default:
				t.Fatalf("%s: column %s has type %s", path, c.Name(), c.PhysicalType())
			}
		}
		out.Rows = append(out.Rows, rows...)
	}
	return out
}

// parquetColumn sets the cells of a column in all rows of its group.
func parquetColumn[T any](t testing.TB, chunk interface {
	ReadBatch(batchSize int64, values []T, defLvls, repLvls []int16) (int64, int, error)
}, c *schema.Column, rows []map[string]any, value func(T) any) {
	t.Helper()
	buf, defs := make([]T, len(rows)), make([]int16, len(rows))
	for done := 0; done < len(rows); {
		levels, n, err := chunk.ReadBatch(int64(len(rows)-done), buf, defs[done:], nil)
		if err != nil || levels == 0 {
			t.Fatalf("column %s: %d rows after %d of %d, %v", c.Name(), levels, done, len(rows), err)
		}
		values := buf[:n]
		for j := done; j < done+int(levels); j++ {
			if c.MaxDefinitionLevel() == 0 || defs[j] == 1 {
				rows[j][c.Name()] = value(values[0])
				values = values[1:]
			}
		}
		if len(values) != 0 {
			t.Errorf("column %s: %d values without a row", c.Name(), len(values))
		}
		done += int(levels)
	}
}

// MetadataText lists the metadata as "key=value", in the order of the keys.
func (f ParquetFile) MetadataText() (out []string) {
	for _, k := range slices.Sorted(maps.Keys(f.Metadata)) {
		out = append(out, k+"="+f.Metadata[k])
	}
	return out
}
