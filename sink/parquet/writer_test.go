package parquet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/flock"
)

const oneHour = int64(time.Hour)

// base is 2026-11-21 02:00 UTC.
var base = time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC).UnixNano()

func testConfig(dir string) Config {
	c := defaultConfig()
	c.Dir = dir
	return c
}

func mustNew(t testing.TB, c Config) *writer {
	t.Helper()
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func hopPoint(node int, at int64) sink.Point {
	return sink.Point{
		Measurement: "hop",
		Tags:        []sink.Tag{{Key: "egress_if", Value: "3"}, {Key: "instance", Value: "here"}, {Key: "node", Value: fmt.Sprint(node)}},
		Fields: []sink.Field{
			sink.IntField("count", int64(node)), sink.IntField("latency_p50", 1000), sink.IntField("latency_max", math.MaxInt64),
			sink.FloatField("tx_utilization_max", 0.25),
		},
		Time: at,
	}
}

// exampleOf is a point of a series with every field set.
func exampleOf(s *sink.Series, at int64) sink.Point {
	p := sink.Point{Measurement: s.Measurement, Time: at}
	for _, t := range s.Tags {
		p.Tags = append(p.Tags, sink.Tag{Key: t.Key, Value: t.Key + " é"})
	}
	for i, f := range s.Fields {
		p.Fields = append(p.Fields, sink.Field{Key: f.Key, Kind: f.Kind, Int: int64(i) - 5, Float: float64(i) / 4, Str: fmt.Sprint("text ", i)})
	}
	return p
}

func rowOf(p *sink.Point) row {
	r := row{"time": p.Time}
	for _, t := range p.Tags {
		r[t.Key] = t.Value
	}
	for _, f := range p.Fields {
		switch f.Kind {
		case sink.Int:
			r[f.Key] = f.Int
		case sink.Float:
			r[f.Key] = f.Float
		default:
			r[f.Key] = f.Str
		}
	}
	return r
}

func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	c := testConfig(dir)
	c.RowGroupRows = 1000
	w := mustNew(t, c)
	want := map[string][]row{}
	var b sink.Batch
	for i := range 2500 {
		for s := range sink.AllSeries {
			p := exampleOf(&sink.AllSeries[s], base+int64(i))
			// Every other point lacks fields, as a device that does not report them.
			if i%2 == 1 {
				p.Fields = p.Fields[:1+i%len(p.Fields)]
			}
			b.Points = append(b.Points, p)
			want[p.Measurement] = append(want[p.Measurement], rowOf(&p))
		}
	}
	if err := w.Write(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if w.Stored() != 0 {
		t.Error("stored before any file is written")
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for set, rows := range want {
		names := files(t, dir, set)
		if len(names) != 1 || filepath.Base(names[0]) != "2026-11-21T02-000.parquet" {
			t.Fatalf("%s: files %v", set, names)
		}
		got, groups := readFile(t, names[0])
		if groups != 3 || len(got) != len(rows) {
			t.Fatalf("%s: %d rows in %d groups, want %d in 3", set, len(got), groups, len(rows))
		}
		for i := range rows {
			if !reflect.DeepEqual(got[i], rows[i]) {
				t.Fatalf("%s row %d: %v, want %v", set, i, got[i], rows[i])
			}
		}
	}
	if st := w.Stats(); w.Stored() != 1 || st.Files != uint64(len(sink.AllSeries)) || st.Rows != 2500*st.Files || st.WaitingRows != 0 || st.WaitingBytes != 0 || st.Bytes == 0 {
		t.Errorf("Stored %d, Stats = %+v", w.Stored(), st)
	}
}

// DuckDB and pyarrow read exactly the written rows.
func TestOtherReaders(t *testing.T) {
	dir := t.TempDir()
	w := mustNew(t, testConfig(dir))
	var b sink.Batch
	for s := range sink.AllSeries {
		full := exampleOf(&sink.AllSeries[s], base+123456789)
		short := exampleOf(&sink.AllSeries[s], base+oneHour)
		short.Fields = short.Fields[:1]
		b.Points = append(b.Points, full, short)
	}
	if err := w.Write(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	const script = `
import json, sys, duckdb, pyarrow.parquet as pq, pyarrow.dataset as ds
out = {}
for name in sys.argv[2:]:
    files = sys.argv[1] + "/" + name
    table = ds.dataset(files, format="parquet").to_table().sort_by("time")
    assert str(table.schema.field("time").type) == "timestamp[ns]", table.schema
    meta = pq.read_schema(ds.dataset(files).files[0]).metadata
    assert meta[b"hopscope.schema_version"] == b"1", meta
    columns = table.column_names
    time = [t.value for t in table["time"]]
    rows = table.drop_columns(["time"]).to_pylist()
    cur = duckdb.sql(f"select epoch_ns(time) as ns, * exclude (time) from '{files}/*.parquet' order by ns")
    names = [d[0] for d in cur.description][1:]
    duck = cur.fetchall()
    assert [r[0] for r in duck] == time, (duck, time)
    assert [dict(zip(names, r[1:])) for r in duck] == rows, (duck, rows)
    out[name] = [dict(r, time=t) for r, t in zip(rows, time)]
json.dump(out, sys.stdout)
`
	args := []string{"-c", script, dir}
	for _, s := range sink.AllSeries {
		args = append(args, s.Measurement)
	}
	cmd := exec.Command(testkit.Python(t), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	got := map[string][]map[string]any{}
	dec := json.NewDecoder(bytes.NewReader(out))
	dec.UseNumber()
	if err := dec.Decode(&got); err != nil {
		t.Fatal(err)
	}
	for i := range b.Points {
		p := &b.Points[i]
		r := got[p.Measurement][i%2]
		for key, value := range rowOf(p) {
			if fmt.Sprint(r[key]) != fmt.Sprint(value) && !(fmt.Sprint(value) == "0" && fmt.Sprint(r[key]) == "0.0") {
				if f, ok := value.(float64); !ok || fmt.Sprint(r[key]) != fmt.Sprintf("%.1f", f) {
					t.Errorf("%s: %s = %v, want %v", p.Measurement, key, r[key], value)
				}
			}
			delete(r, key)
		}
		for key, value := range r {
			if value != nil {
				t.Errorf("%s: %s = %v, want null", p.Measurement, key, value)
			}
		}
	}
}

func TestRotation(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := testConfig(dir)
		c.RotateInterval = 10 * time.Minute
		w := mustNew(t, c)
		write := func(at int64) {
			t.Helper()
			if err := w.Write(t.Context(), &sink.Batch{Points: []sink.Point{hopPoint(1, at)}}); err != nil {
				t.Fatal(err)
			}
		}
		write(base)           // batch 1, 02h
		write(base + oneHour) // batch 2, 03h
		time.Sleep(5 * time.Minute)
		write(base + 2*oneHour) // batch 3, 04h
		write(base + 1)         // batch 4, 02h again
		if w.Stored() != 0 {
			t.Errorf("Stored = %d", w.Stored())
		}
		time.Sleep(5 * time.Minute)
		if err := w.Tick(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		// 02h and 03h are written; batch 4 is, but batch 3 before it is not.
		if n := w.Stored(); n != 2 {
			t.Errorf("Stored = %d, want 2", n)
		}
		write(base + 2)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := w.Stored(); n != 5 {
			t.Errorf("Stored = %d, want 5", n)
		}
		var names []string
		for _, f := range files(t, dir, "hop") {
			names = append(names, filepath.Base(f))
		}
		want := []string{"2026-11-21T02-000.parquet", "2026-11-21T02-001.parquet", "2026-11-21T03-000.parquet", "2026-11-21T04-000.parquet"}
		if !slices.Equal(names, want) {
			t.Errorf("files %v, want %v", names, want)
		}
		w.Close()

		// The next process goes on counting, and removes what was not finished.
		os.WriteFile(filepath.Join(dir, "hop", ".2026-11-21T02-002.parquet.tmp"), []byte("PAR1"), 0o600)
		w = mustNew(t, c)
		write(base)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := files(t, dir, "hop"); len(got) != 5 || filepath.Base(got[2]) != "2026-11-21T02-002.parquet" || w.Stats().Leftovers != 1 {
			t.Errorf("files %v, Stats %+v", got, w.Stats())
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	dir := t.TempDir()
	c := testConfig(dir)
	c.MemoryBytes = 1 << 20
	w := mustNew(t, c)
	const size = 1000
	batches := testkit.Rounds(60, 60)
	for i := range batches {
		var b sink.Batch
		for j := range size {
			b.Points = append(b.Points, hopPoint(j, base+int64(i)*oneHour/10))
		}
		if err := w.Write(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if n := w.Stats().WaitingBytes; n > c.MemoryBytes+size*200 {
			t.Fatalf("%d bytes are waiting", n)
		}
	}
	if w.Stats().Files == 0 {
		t.Error("nothing was written for want of memory")
	}
	w.Close()
	if n := len(readAll(t, dir, "hop")); n != batches*size {
		t.Errorf("%d rows, want %d", n, batches*size)
	}
}

// Points of very many hours do not open very many parts.
func TestPartsAreBounded(t *testing.T) {
	testkit.Long(t)
	dir := t.TempDir()
	w := mustNew(t, testConfig(dir))
	const n = 80
	for i := range int64(n) {
		if err := w.Write(t.Context(), &sink.Batch{Points: []sink.Point{hopPoint(1, base-i*oneHour)}}); err != nil {
			t.Fatal(err)
		}
		if len(w.parts) > maxParts {
			t.Fatalf("%d parts", len(w.parts))
		}
	}
	w.Close()
	if rows := len(readAll(t, dir, "hop")); rows != n {
		t.Errorf("%d rows, want %d", rows, n)
	}
}

// fullDisk takes some bytes and no more.
type fullDisk struct {
	room int
	open func(string) (diskFile, error)
}

type fullFile struct {
	diskFile
	d *fullDisk
}

func (d *fullDisk) create(path string) (diskFile, error) {
	f, err := d.open(path)
	return fullFile{f, d}, err
}

func (f fullFile) Write(p []byte) (int, error) {
	if f.d.room -= len(p); f.d.room < 0 {
		return 0, syscall.ENOSPC
	}
	return f.diskFile.Write(p)
}

func TestDiskFull(t *testing.T) {
	for _, room := range []int{0, 3, 100, 3000} {
		dir := t.TempDir()
		c := testConfig(dir)
		c.MemoryBytes = 1 << 20
		w := mustNew(t, c)
		d := &fullDisk{room: room, open: w.folder.create}
		w.folder.create = d.create
		var accepted int
		var err error
		for i := 0; i < 100 && err == nil; i++ {
			var b sink.Batch
			for j := range 1000 {
				b.Points = append(b.Points, hopPoint(i*1000+j, base))
			}
			if err = w.Write(t.Context(), &b); err == nil {
				accepted++
			}
		}
		if re, ok := errors.AsType[*sink.RetryError](err); !ok || !errors.Is(re, syscall.ENOSPC) || accepted == 0 {
			t.Fatalf("room %d: Write = %v after %d batches", room, err, accepted)
		}
		if err := w.Tick(t.Context(), time.Now().Add(time.Hour)); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("room %d: Tick = %v", room, err)
		}
		if w.Stored() != 0 || len(files(t, dir, "hop")) != 0 {
			t.Errorf("room %d: stored %d, files %v", room, w.Stored(), files(t, dir, "hop"))
		}
		d.room = 1 << 30
		if err := w.Flush(t.Context()); err != nil || w.Stored() != uint64(accepted) {
			t.Errorf("room %d: Flush = %v, stored %d of %d", room, err, w.Stored(), accepted)
		}
		if n := len(readAll(t, dir, "hop")); n != accepted*1000 {
			t.Errorf("room %d: %d rows, want %d", room, n, accepted*1000)
		}
	}
}

func TestStrangePoints(t *testing.T) {
	dir := t.TempDir()
	w := mustNew(t, testConfig(dir))
	odd := hopPoint(2, base)
	odd.Tags = append(odd.Tags, sink.Tag{Key: "unknown", Value: "x"}, sink.Tag{Key: "count", Value: "x"})
	odd.Fields = []sink.Field{sink.FloatField("count", 1), sink.IntField("unknown", 1), sink.IntField("time", 1), sink.IntField("queue_max", 5), sink.IntField("queue_max", 6)}
	noTags := hopPoint(3, base)
	noTags.Tags = nil
	err := w.Write(t.Context(), &sink.Batch{Points: []sink.Point{{Measurement: "unknown"}, hopPoint(1, base), odd, noTags}})
	if pe, ok := errors.AsType[*sink.PermanentError](err); !ok || pe.Rejected != 1 {
		t.Errorf("Write = %v", err)
	}
	err = w.Write(t.Context(), &sink.Batch{Points: []sink.Point{{Measurement: "unknown"}}})
	if pe, ok := errors.AsType[*sink.PermanentError](err); !ok || pe.Rejected != 1 {
		t.Errorf("Write = %v", err)
	}
	w.Flush(t.Context())
	if w.Stored() != 1 { // the second batch was refused whole
		t.Errorf("Stored = %d", w.Stored())
	}
	rows := readAll(t, dir, "hop")
	want := row{"time": base, "egress_if": "3", "instance": "here", "node": "2", "queue_max": int64(5)}
	if len(rows) != 3 || !reflect.DeepEqual(rows[1], want) || rows[2]["node"] != "" || rows[2]["count"] != int64(3) {
		t.Errorf("rows %v", rows)
	}
	if st := w.Stats(); st.Refused != 2 || st.FieldsLost != 5 {
		t.Errorf("Stats = %+v", st)
	}
}

func TestLock(t *testing.T) {
	c := testConfig(t.TempDir())
	w := mustNew(t, c)
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second New = %v", err)
	}
	w.Close()
	mustNew(t, c)
	if _, err := New(Config{}); err == nil {
		t.Error("New without a directory succeeds")
	}
	file := filepath.Join(c.Dir, "file")
	os.WriteFile(file, nil, 0o600)
	c.Dir = file
	if _, err := New(c); err == nil {
		t.Error("New on a file succeeds")
	}
}

// Open and OpenReports give no writer at all with an error, and the raw stream only when it is asked for.
func TestConfigOpen(t *testing.T) {
	var c Config
	c.SetDefaults()
	c.Dir = ""
	if w, err := c.Open(); w != nil || err == nil {
		t.Errorf("Open() without a directory = %v, %v", w, err)
	}
	c.Dir = t.TempDir()
	if c.Target() != c.Dir {
		t.Errorf("Target() = %q, want %q", c.Target(), c.Dir)
	}
	w, err := c.Open()
	if err != nil || w.Name() != "parquet" {
		t.Fatalf("Open() = %v, %v", w, err)
	}
	defer w.Close()
	if raw, err := c.OpenReports(sink.Drop); raw != nil || err != nil {
		t.Errorf("OpenReports() = %v, %v, though raw is off", raw, err)
	}
	c.Raw = true
	raw, err := c.OpenReports(sink.Drop)
	if err != nil || raw == nil {
		t.Fatalf("OpenReports() = %v, %v", raw, err)
	}
	if err := raw.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A column must not stand for two things.
func TestColumnsAreUnique(t *testing.T) {
	for i := range sink.AllSeries {
		if d := datasetOf(&sink.AllSeries[i]); len(d.index) != len(d.columns) {
			t.Errorf("%s has a tag and a field of one name: %v", d.name, d.columns)
		}
	}
}

func TestFlushStopsWithContext(t *testing.T) {
	w := mustNew(t, testConfig(t.TempDir()))
	w.Write(t.Context(), &sink.Batch{Points: []sink.Point{hopPoint(1, base)}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Flush(ctx); !errors.Is(err, context.Canceled) || w.Stored() != 0 {
		t.Errorf("Flush = %v", err)
	}
}

// A directory that cannot be synced stores nothing, however often it fails; the rows are in one file when it is mended.
func TestDirectorySyncFails(t *testing.T) {
	dir, failed := t.TempDir(), 0
	syncDir = func(string) error {
		if failed++; failed > 5 {
			return nil
		}
		return syscall.EIO
	}
	defer func() { syncDir = flock.SyncDir }()
	w := mustNew(t, testConfig(dir))
	if err := w.Write(t.Context(), &sink.Batch{Points: []sink.Point{hopPoint(1, base), hopPoint(2, base)}}); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		err := w.Flush(t.Context())
		files, _ := filepath.Glob(filepath.Join(dir, "hop", "*.parquet"))
		if i < 5 && (!errors.Is(err, syscall.EIO) || w.Stored() != 0 || w.Stats().Rows != 0 || len(files) != 0) {
			t.Fatalf("sync %d fails: %v, %d batches and %d rows stored, files %q", i+1, err, w.Stored(), w.Stats().Rows, files)
		}
		if i == 5 && (err != nil || w.Stored() != 1 || w.Stats().Rows != 2 || len(files) != 1) {
			t.Errorf("sync %d: %v, %d batches and %d rows stored, files %q", i+1, err, w.Stored(), w.Stats().Rows, files)
		}
	}
}

// One dataset of three cannot be written. The others are written. Its rows wait in half of the memory, and further
// rows are refused with their points.
func TestOneDatasetFails(t *testing.T) {
	dir := t.TempDir()
	c := testConfig(dir)
	c.MemoryBytes = 1 << 19
	w := mustNew(t, c)
	if err := os.WriteFile(filepath.Join(dir, "hop"), nil, 0o600); err != nil { // in place of the directory
		t.Fatal(err)
	}
	refused := 0
	batches := testkit.Rounds(20_000, 20_000)
	for i := range batches {
		b := &sink.Batch{Points: []sink.Point{hopPoint(1, base+int64(i)), exampleOf(&sink.AllSeries[0], base+int64(i)), exampleOf(&sink.AllSeries[1], base+int64(i))}}
		for j := range b.Points[1:] {
			if b.Points[1+j].Measurement == "hop" {
				b.Points[1+j] = exampleOf(&sink.AllSeries[2], base+int64(i))
			}
		}
		err := w.Write(t.Context(), b)
		if e, ok := errors.AsType[*sink.PermanentError](err); ok {
			if refused += e.Rejected; e.Rejected != 1 || e.Refused[0].Series[0].Series != "hop" {
				t.Fatalf("%+v", e)
			}
		} else if err != nil {
			t.Fatalf("batch %d: %v", i, err)
		}
	}
	_ = w.Flush(t.Context())
	st := w.Stats()
	if st.Rows != uint64(2*batches) || refused == 0 || st.WaitingRows+refused != batches || st.WaitingBytes > c.MemoryBytes {
		t.Errorf("%d rows of the others are written, want %d; %d refused, %d wait in %d bytes", st.Rows, 2*batches, refused, st.WaitingRows, st.WaitingBytes)
	}
}
