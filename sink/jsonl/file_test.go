package jsonl

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/sink"
)

// testConfig writes to series.jsonl in a directory of its own, which New has to make. No new file begins at midnight.
func testConfig(t *testing.T) Config {
	c := DefaultConfig()
	c.RotateInterval = 0
	c.Path = filepath.Join(t.TempDir(), "out", "series.jsonl")
	return c
}

func mustNew(t *testing.T, c Config) *writer {
	t.Helper()
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// clock sets the clock of a writer's file.
func (w *writer) clock(now time.Time) { w.out.(*file).now = func() time.Time { return now } }

func batch(nodes ...int) *sink.Batch {
	b := &sink.Batch{}
	for _, n := range nodes {
		b.Points = append(b.Points, hopPoint(n))
	}
	return b
}

func encoded(b *sink.Batch) []byte {
	out, _ := (&writer{}).Encode(nil, b)
	return out
}

func lines(nodes ...int) string {
	return string(encoded(batch(nodes...)))
}

func mustWrite(t *testing.T, w *writer, nodes ...int) {
	t.Helper()
	if err := w.Write(t.Context(), batch(nodes...)); err != nil {
		t.Fatal(err)
	}
}

// contents returns the files next to path, in the order of their names; the one that is written to is the last.
func contents(t *testing.T, path string) (names, texts []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(path), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		names, texts = append(names, e.Name()), append(texts, string(b))
	}
	return names, texts
}

func expect(t *testing.T, path string, want ...string) {
	t.Helper()
	if names, got := contents(t, path); !slices.Equal(got, want) {
		t.Fatalf("files %q hold %q, want %q", names, got, want)
	}
}

func TestFile(t *testing.T) {
	c := testConfig(t)
	w := mustNew(t, c)
	mustWrite(t, w, 1, 2)
	if err := w.WriteEncoded(t.Context(), []byte(lines(3))); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), &sink.Batch{Points: []sink.Point{{Measurement: "hop"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := New(c); !errors.Is(err, errInUse) || !strings.Contains(err.Error(), c.Path) {
		t.Errorf("a second writer: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := Stats{Lines: 3, Bytes: uint64(len(lines(1, 2, 3))), PointsDropped: 1}
	if got := w.Stats(); got != want {
		t.Errorf("Stats() = %+v, want %+v", got, want)
	}
	mustWrite(t, mustNew(t, c), 4) // the next run goes on
	expect(t, c.Path, lines(1, 2, 3, 4))
}

func TestRotationBySize(t *testing.T) {
	c := testConfig(t)
	c.KeepFiles = 2
	c.RotateBytes = int64(len(lines(1, 2)))
	w := mustNew(t, c)
	at := time.Date(2026, 11, 22, 1, 0, 0, 123456, time.UTC)
	w.clock(at)
	mustWrite(t, w, 1)
	mustWrite(t, w, 2)
	mustWrite(t, w, 3)
	expect(t, c.Path, lines(1, 2), lines(3))
	mustWrite(t, w, 4, 5, 6) // more than fits into one file stays together
	w.clock(at.Add(-time.Hour))
	mustWrite(t, w, 7) // and the clock was set back
	expect(t, c.Path, lines(3), lines(4, 5, 6), lines(7))
	names, _ := contents(t, c.Path)
	want := []string{"series-20261122T010000.000123457Z.jsonl", "series-20261122T010000.000123458Z.jsonl", "series.jsonl"}
	if !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
	if got := w.Stats(); got.Rotations != 3 || got.Removed != 1 || got.RemovedLines != 2 || got.Unremoved != 0 {
		t.Errorf("Stats() = %+v", got)
	}
}

// Ten times as many files as are kept come, over two runs: each line that was removed is counted.
func TestRemoved(t *testing.T) {
	c := testConfig(t)
	c.KeepFiles, c.RotateBytes = 4, 1
	removed := uint64(0)
	for run := range 2 {
		w := mustNew(t, c)
		for i := range 20 {
			mustWrite(t, w, i, i, i)
		}
		w.Close()
		files, points := w.Removed()
		if want := uint64(15 + 5*run); files != want || points != 3*want { // the second run has the files of the first
			t.Errorf("run %d: %d files and %d points are removed", run, files, points)
		}
		removed += points
	}
	names, text := contents(t, c.Path)
	if got := uint64(strings.Count(strings.Join(text, ""), "\n")); len(names) != 5 || removed+got != 2*20*3 {
		t.Errorf("%d points were written, %d removed, and %d are in %q", 2*20*3, removed, got, names)
	}
}

func TestRotationByTime(t *testing.T) {
	c := testConfig(t)
	c.RotateInterval = time.Hour
	w := mustNew(t, c)
	at := time.Date(2026, 11, 22, 1, 59, 59, 0, time.UTC)
	for i, now := range []time.Time{at, at.Add(999 * time.Millisecond), at.Add(time.Second), at.Add(30 * time.Minute)} {
		w.clock(now)
		mustWrite(t, w, i)
	}
	expect(t, c.Path, lines(0, 1), lines(2, 3))
	w.Close()

	// Another run that begins in a later hour goes by when the file was last written.
	if err := os.Chtimes(c.Path, at, at); err != nil {
		t.Fatal(err)
	}
	w = mustNew(t, c)
	w.clock(at.Add(time.Minute))
	mustWrite(t, w, 4)
	expect(t, c.Path, lines(0, 1), lines(2, 3), lines(4))
}

// Only files that this writer named are counted and removed.
func TestOtherFilesStay(t *testing.T) {
	c := testConfig(t)
	c.KeepFiles, c.RotateBytes = 1, 1
	w := mustNew(t, c)
	others := []string{"series-2026.jsonl", "series-20261122T010000.000123456Z.jsonl.gz", "series-x20261122T010000.000123456Z.jsonl",
		"series-20261122T010000Z.jsonl", "other-20261122T010000.000123456Z.jsonl", "series-.jsonl"}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(filepath.Dir(c.Path), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		mustWrite(t, w, i)
	}
	names, _ := contents(t, c.Path)
	for _, name := range others {
		if !slices.Contains(names, name) {
			t.Errorf("%s is gone", name)
		}
	}
	if len(names) != len(others)+2 || w.Stats().Removed != 2 {
		t.Errorf("files %q, %+v", names, w.Stats())
	}
}

// A crash in the middle of a write leaves a torn line. It stays the last of its file.
func TestTornEnd(t *testing.T) {
	c := testConfig(t)
	w := mustNew(t, c)
	mustWrite(t, w, 1)
	w.Close()
	torn := lines(1) + lines(2)[:20]
	if err := os.WriteFile(c.Path, []byte(torn), 0o600); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, mustNew(t, c), 2)
	expect(t, c.Path, torn, lines(2))
}

// Moving the file away, removing or emptying it does not make the writer write into nowhere.
func TestFileMovedAway(t *testing.T) {
	c := testConfig(t)
	w := mustNew(t, c)
	mustWrite(t, w, 1)
	if err := os.Rename(c.Path, c.Path+".1"); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, w, 2)
	expect(t, c.Path, lines(2), lines(1))
	if err := os.RemoveAll(filepath.Dir(c.Path)); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, w, 3)
	expect(t, c.Path, lines(3))
	if err := os.Truncate(c.Path, 0); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, w, 4)
	expect(t, c.Path, lines(4))
}

// Where another program cuts the file in the middle of a line, or appends a part of one, no lines come behind it.
func TestFileTornByOthers(t *testing.T) {
	c := testConfig(t)
	w := mustNew(t, c)
	mustWrite(t, w, 1, 2)
	if err := os.Truncate(c.Path, int64(len(lines(1))+20)); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, w, 3)
	expect(t, c.Path, lines(1)+lines(2)[:20], lines(3))
	if err := os.WriteFile(c.Path, []byte(lines(3, 4)+"5"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, w, 6)
	expect(t, c.Path, lines(1)+lines(2)[:20], lines(3, 4)+"5", lines(6))
	if err := os.WriteFile(c.Path, []byte(lines(6, 7)), 0o600); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, w, 8) // whole lines of others stay where they are
	expect(t, c.Path, lines(1)+lines(2)[:20], lines(3, 4)+"5", lines(6, 7, 8))
}

// flaky is a file on a disk that fails by the rules of a test.
type flaky struct {
	*os.File
	room     *int // bytes that can still be written
	sync     *error
	truncate *error
}

func (f flaky) Write(b []byte) (int, error) {
	n, err := f.File.Write(b[:min(len(b), *f.room)])
	if *f.room -= n; err == nil && n < len(b) {
		err = syscall.ENOSPC
	}
	return n, err
}

func (f flaky) Sync() error { return errors.Join(*f.sync, f.File.Sync()) }

func (f flaky) Truncate(n int64) error {
	if *f.truncate != nil {
		return *f.truncate
	}
	return f.File.Truncate(n)
}

// A write that fails leaves the file as it was, however it fails, and the next one is there once.
func TestFailedWrites(t *testing.T) {
	c := testConfig(t)
	c.RotateBytes = int64(len(lines(1, 2, 3)))
	room, sync, truncate := 1<<20, error(nil), error(nil)
	w := mustNew(t, c)
	f := w.out.(*file)
	open := f.create
	f.create = func(path string) (diskFile, error) {
		d, err := open(path)
		if err != nil {
			return nil, err
		}
		return flaky{d.(*os.File), &room, &sync, &truncate}, nil
	}
	f.close()
	refused := func(config bool, nodes ...int) {
		t.Helper()
		err := w.Write(t.Context(), batch(nodes...))
		if re, ok := errors.AsType[*sink.RetryError](err); !ok || re.Config != config || !strings.Contains(err.Error(), c.Path) {
			t.Fatalf("Write = %v (%T), want a RetryError that names the file, Config %v", err, err, config)
		}
	}
	mustWrite(t, w, 1)
	room = 30
	refused(false, 2)
	expect(t, c.Path, lines(1))
	room = 1 << 20
	mustWrite(t, w, 2)
	expect(t, c.Path, lines(1, 2))

	sync = syscall.EIO // what was written may or may not be on the disk
	refused(false, 3)
	expect(t, c.Path, lines(1, 2))
	sync = nil

	room, truncate = 30, syscall.EIO // then the end is torn, and the next write has to begin with that
	refused(false, 3)
	expect(t, c.Path, lines(1, 2)+lines(3)[:30])
	room = 1 << 20
	if err := w.Write(t.Context(), batch(3)); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Fatalf("Write behind a torn line = %v", err)
	}
	truncate = nil
	mustWrite(t, w, 3)
	expect(t, c.Path, lines(1, 2, 3))
	mustWrite(t, w, 4)
	expect(t, c.Path, lines(1, 2, 3), lines(4))
	if got := w.Stats(); got.Lines != 4 {
		t.Errorf("Stats() = %+v, want 4 lines", got)
	}
}

// What cannot be opened is said at the start; what goes wrong later is tried again.
func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", dir + "/", dir, pipe, "/dev/null/series.jsonl"} {
		c := DefaultConfig()
		c.Path = path
		if w, err := c.Open(); err == nil || w != nil {
			t.Errorf("Open() of %q = %v, %v", path, w, err)
		}
	}

	c := testConfig(t)
	w := mustNew(t, c)
	if err := os.Remove(c.Path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(c.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	err := w.Write(t.Context(), batch(1))
	if re, ok := errors.AsType[*sink.RetryError](err); !ok || !re.Config {
		t.Errorf("Write = %v, want a RetryError with Config", err)
	}
	if err := os.Remove(c.Path); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, w, 1)
	expect(t, c.Path, lines(1))
}

func TestConfig(t *testing.T) {
	var c Config
	c.SetDefaults()
	if err := c.Validate(); err != nil || c.Target() != "standard output" {
		t.Errorf("defaults: Validate() = %v, Target() = %q", err, c.Target())
	}
	c.Path = "a/b.jsonl"
	if err := c.Validate(); err != nil || c.Target() != "a/b.jsonl" {
		t.Errorf("with a path: Validate() = %v, Target() = %q", err, c.Target())
	}
	for _, path := range []string{"", "a/"} {
		c.Path = path
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), "path: ") {
			t.Errorf("path %q: Validate() = %v", path, err)
		}
	}
}

// Behind a queue, encoded batches are written in order, and everything is there after Close.
func TestBehindQueue(t *testing.T) {
	c := testConfig(t)
	q := sink.NewQueue(mustNew(t, c), sink.DefaultQueueConfig(), sink.QueueOptions{})
	q.Start()
	var want bytes.Buffer
	for i := range 100 {
		if err := q.Put(t.Context(), batch(i, i+1)); err != nil {
			t.Fatal(err)
		}
		io.WriteString(&want, lines(i, i+1))
	}
	if err := q.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	expect(t, c.Path, want.String())
}
