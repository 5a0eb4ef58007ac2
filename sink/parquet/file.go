package parquet

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/metadata"

	"github.com/hopscope/hopscope/sink/flock"
)

// An hour is a number of hours since 1970.
type hour int64

// hourOf is the hour that a time in ns since 1970 belongs to.
func hourOf(ns int64) hour {
	h := ns / int64(time.Hour)
	if ns%int64(time.Hour) < 0 {
		h--
	}
	return hour(h)
}

// String is the hour in UTC, as file names have it.
func (h hour) String() string { return time.Unix(int64(h)*3600, 0).UTC().Format("2006-01-02T15") }

// folder is the directory of the datasets.
type folder struct {
	dir  string
	lock io.Closer
	next map[partKey]int // number of the next part
	// create makes a file; tests put a disk that fills up in its place.
	create func(path string) (diskFile, error)
}

type diskFile interface {
	io.WriteCloser
	Sync() error
}

// openFolder makes the directory and locks it.
func openFolder(dir, lock string) (*folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	l, err := os.OpenFile(filepath.Join(dir, lock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock.Lock(l); err != nil {
		l.Close()
		if errors.Is(err, flock.ErrLocked) {
			return nil, fmt.Errorf("%s %w: parquet.dir is for one", dir, err)
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	create := func(path string) (diskFile, error) {
		return os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	}
	return &folder{dir: dir, lock: l, next: map[partKey]int{}, create: create}, nil
}

// removeLeftovers removes the files of a dataset that an earlier process could not finish.
func (f *folder) removeLeftovers(set string) (n int, err error) {
	old, err := filepath.Glob(filepath.Join(f.dir, set, ".*.parquet.tmp"))
	if err != nil {
		return 0, err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// part finds the number of the next part.
func (f *folder) part(key partKey) (int, error) {
	if n, ok := f.next[key]; ok {
		return n, nil
	}
	entries, err := os.ReadDir(filepath.Join(f.dir, key.set))
	if err != nil {
		return 0, err
	}
	n := 0
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), key.hour.String()+"-")
		digits, ok2 := strings.CutSuffix(rest, ".parquet")
		if i, err := strconv.Atoi(digits); ok && ok2 && err == nil {
			n = max(n, i+1)
		}
	}
	if len(f.next) > 1000 { // hours of long ago
		clear(f.next)
	}
	f.next[key] = n
	return n, nil
}

// syncDir is replaced by tests of a disk that fails.
var syncDir = flock.SyncDir

// write writes t as the next part of its dataset and hour. Only a whole file gets its final name.
func (f *folder) write(t *table, h hour, rowGroup int) (bytes int64, err error) {
	key := partKey{t.set.name, h}
	dir := filepath.Join(f.dir, key.set)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	number, err := f.part(key)
	if err != nil {
		return 0, err
	}
	name := fmt.Sprintf("%v-%03d.parquet", h, number)
	tmp := filepath.Join(dir, "."+name+".tmp")
	out, err := f.create(tmp)
	if err != nil {
		return 0, err
	}
	sink := &latch{w: bufio.NewWriterSize(out, 256<<10)}
	err = writeTable(sink, t, rowGroup)
	if err = errors.Join(err, sink.flush()); err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = os.Rename(tmp, filepath.Join(dir, name))
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(tmp))
	}
	f.next[key]++
	// A later sync that succeeds would not prove that this name is on the disk: the rows are written again under another.
	if err := syncDir(dir); err != nil {
		return 0, errors.Join(err, os.Remove(filepath.Join(dir, name)))
	}
	return sink.n, nil
}

// latch remembers the first error instead of returning it: the Parquet writer panics when its first bytes cannot be
// written, and loses errors later.
type latch struct {
	w   *bufio.Writer
	n   int64
	err error
}

func (l *latch) Write(p []byte) (int, error) {
	if l.err == nil {
		_, l.err = l.w.Write(p)
		l.n += int64(len(p))
	}
	return len(p), nil
}

func (l *latch) flush() error {
	if l.err == nil {
		l.err = l.w.Flush()
	}
	return l.err
}

// level is that of Zstandard. The library makes encoders for each page, whose tables were most of the garbage of a file:
// level 3 leaves 78 MB for 6000 rows, level 1 30 MB. Numbers take no more bytes, and a third of the time.
const level = 1

// writeTable writes a whole Parquet file.
func writeTable(sink *latch, t *table, rowGroup int) error {
	sc, err := t.set.schema()
	if err != nil {
		return err
	}
	options := []parquet.WriterProperty{
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithCompressionLevel(level),
		parquet.WithVersion(parquet.V2_6), // nanoseconds
		parquet.WithMaxRowGroupLength(int64(rowGroup)),
		parquet.WithCreatedBy("hopscope"),
		parquet.WithDictionaryDefault(false),
	}
	for _, c := range t.set.columns {
		if c.kind == text {
			options = append(options, parquet.WithDictionaryFor(c.name, true))
		}
	}
	props := parquet.NewWriterProperties(options...)
	meta := metadata.NewKeyValueMetadata()
	for _, kv := range [][2]string{{"hopscope.schema_version", schemaVersion}, {"hopscope.dataset", t.set.name}} {
		if err := meta.Append(kv[0], kv[1]); err != nil {
			return err
		}
	}
	w := file.NewParquetWriter(sink, sc, file.WithWriterProps(props), file.WithWriteMetadata(meta))
	at := make([]int, len(t.columns)) // values written of each column
	for row := 0; row < t.rows && sink.err == nil; row += rowGroup {
		end := min(row+rowGroup, t.rows)
		g := w.AppendRowGroup()
		for i := range t.columns {
			c, err := g.NextColumn()
			if err == nil {
				at[i], err = writeColumn(c, &t.columns[i], at[i], row, end)
			}
			if err != nil {
				return fmt.Errorf("column %s: %w", t.set.columns[i].name, err)
			}
		}
		if err := g.Close(); err != nil {
			return err
		}
	}
	return w.Close()
}

// writeColumn writes the rows row..end of one column, whose values begin at from, and returns where the next begin.
func writeColumn(c file.ColumnChunkWriter, v *values, from, row, end int) (to int, err error) {
	to = from + end - row
	var defs []int16
	if v.defs != nil {
		defs = v.defs[row:end]
		to = from
		for _, d := range defs {
			to += int(d)
		}
	}
	switch c := c.(type) {
	case *file.Int64ColumnChunkWriter:
		_, err = c.WriteBatch(v.ints[from:to], defs, nil)
	case *file.Float64ColumnChunkWriter:
		_, err = c.WriteBatch(v.floats[from:to], defs, nil)
	case *file.ByteArrayColumnChunkWriter:
		_, err = c.WriteBatch(v.texts[from:to], defs, nil)
	default:
		err = fmt.Errorf("no values for a %T", c)
	}
	return to, err
}
