//go:build unix

package sink

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

func refusedEntry(batch uint64, bytes int) *RefusedEntry {
	return &RefusedEntry{
		Time: time.Unix(0, 1_700_000_000_000_000_005), Sink: "influx", Target: "http://127.0.0.1:8086, bucket b", Batch: batch, Part: 3,
		Groups: []Refusal{
			{Points: 2, Series: []SeriesCount{{"hop", 1}, {"flow", 1}}, Reason: "field type conflict: \"x\"\n", Payload: []byte(strings.Repeat("p", bytes))},
			{Points: 1, Reason: "too old", Payload: []byte{}},
		},
	}
}

func TestRefusedFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool", "refused")
	if names, err := ListRefused(dir); err != nil || names != nil {
		t.Errorf("List of nothing = %v, %v", names, err)
	}
	f := OpenRefused(dir, 10_000)
	if st := f.Stats(); st != (RefusedStats{}) {
		t.Errorf("Stats = %+v", st)
	}
	for i := range uint64(3) {
		for range 2 { // again after a crash: it takes the place of the first
			if err := f.Put(refusedEntry(i, 1000)); err != nil {
				t.Fatal(err)
			}
		}
	}
	names, err := ListRefused(dir)
	if err != nil || len(names) != 3 || names[0] != "00000000000000000000-000003.refused" {
		t.Fatalf("List = %v, %v", names, err)
	}
	e, err := ReadRefused(dir, names[1])
	if want := refusedEntry(1, 1000); err != nil || !reflect.DeepEqual(e, want) || e.Points() != 3 {
		t.Errorf("Read = %+v, %v, want %+v", e, err, want)
	}
	if st := f.Stats(); st.Entries != 3 || st.Bytes < 3000 || st.Kept != 6 || st.EvictedEntries != 0 {
		t.Errorf("Stats = %+v", st)
	}
	e.Groups = e.Groups[1:]
	if err := ReplaceRefused(dir, e); err != nil {
		t.Error(err)
	}
	if e, err := ReadRefused(dir, names[1]); err != nil || e.Points() != 1 {
		t.Errorf("after Replace: %+v, %v", e, err)
	}
	for range 2 {
		if err := RemoveRefused(dir, names[0]); err != nil {
			t.Error(err)
		}
	}
	if st := f.Stats(); st.Entries != 2 || st.Bytes > 2000 {
		t.Errorf("Stats after Remove = %+v", st)
	}
}

// The folder never holds more than its bound; the oldest entries go, and their points are counted.
func TestRefusedBound(t *testing.T) {
	dir := t.TempDir()
	f := OpenRefused(dir, 10_000)
	for i := range uint64(100) {
		if err := f.Put(refusedEntry(i, 1000)); err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		names, _ := ListRefused(dir)
		for _, name := range names {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			total += info.Size()
		}
		if st := f.Stats(); total > 10_000 || st.Bytes != total || st.Entries != len(names) || st.EvictedPoints != 3*st.EvictedEntries || st.EvictedEntries != i+1-uint64(len(names)) {
			t.Fatalf("%d bytes in %d entries: %+v", total, len(names), st)
		}
	}
	if err := f.Put(refusedEntry(99, 20_000)); err == nil || f.Stats().LostPoints != 3 {
		t.Errorf("an entry that never fits: %v, %+v", err, f.Stats())
	}
	if names, _ := ListRefused(dir); len(names) == 0 {
		t.Error("and it made the others go")
	}
}

// A disk that takes nothing costs the refused points, which are counted, and leaves no half file.
func TestRefusedDisk(t *testing.T) {
	base := t.TempDir()
	if err := os.WriteFile(filepath.Join(base, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := OpenRefused(filepath.Join(base, "file", "refused"), 10_000)
	if err := f.Put(refusedEntry(1, 1)); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("Put = %v", err)
	}
	if st := f.Stats(); st.LostPoints != 3 || st.LastError == "" || st.Kept != 0 {
		t.Errorf("Stats = %+v", st)
	}
}

// Whatever lies in the folder, nothing but whole entries is read, and nothing else is removed.
func TestRefusedHostileFolder(t *testing.T) {
	dir := t.TempDir()
	good := refusedEntry(7, 100)
	b := good.encode()
	put := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	name := func(n int) string { return fmt.Sprintf("%020d-%06d.refused", n, 3) }
	put(name(7), b)
	put(name(8), b) // under another name than its own
	put(name(9), nil)
	put(name(10), append(bytes.Clone(b), 'x'))
	put("other", []byte("mine"))
	put(name(11)+".123.tmp", b)
	if err := os.Mkdir(filepath.Join(dir, name(12)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, name(13))); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, name(14)), 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := ListRefused(dir)
	if err != nil || len(names) != 4 {
		t.Errorf("List = %v, %v", names, err)
	}
	for n := 7; n <= 14; n++ {
		if e, err := ReadRefused(dir, name(n)); (err == nil) != (n == 7) {
			t.Errorf("Read(%d) = %+v, %v", n, e, err)
		}
	}
	for _, bad := range []string{"", "lock", "../" + name(7), name(7) + "/..", strings.Repeat("1", 20) + "-.refused", "0000000000000000000x-000001.refused"} {
		if validRefused(bad) {
			t.Errorf("%q is valid", bad)
		}
		if _, err := ReadRefused(dir, bad); err == nil {
			t.Errorf("Read(%q) succeeded", bad)
		}
	}
	for i := range b {
		for _, damaged := range [][]byte{b[:i], append(append(bytes.Clone(b[:i]), b[i]^1), b[i+1:]...)} {
			if _, err := decodeRefused(damaged); err == nil {
				t.Fatalf("damage at %d is not seen", i)
			}
		}
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, name(11)+".123.tmp"), old, old); err != nil {
		t.Fatal(err)
	}
	f := OpenRefused(dir, 1000)
	for i := range uint64(20) {
		if err := f.Put(refusedEntry(100+i, 300)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "other")); err != nil || string(got) != "mine" {
		t.Errorf("another file: %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, name(11)+".123.tmp")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an unfinished file stays: %v", err)
	}
}

func TestRefusedLock(t *testing.T) {
	dir := t.TempDir()
	l, err := LockRefused(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LockRefused(dir); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("second Lock = %v", err)
	}
	if err := OpenRefused(dir, 10_000).Put(refusedEntry(1, 1)); err != nil { // the collector is not kept waiting
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = LockRefused(dir); err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func FuzzDecodeRefused(f *testing.F) {
	f.Add(refusedEntry(1, 10).encode())
	f.Add([]byte(refusedMagic))
	f.Fuzz(func(t *testing.T, body []byte) {
		b := sealRefused(append(make([]byte, refusedHeaderLen), body...))
		e, err := decodeRefused(b)
		if err != nil {
			return
		}
		if second, err := decodeRefused(e.encode()); err != nil || second.Points() != e.Points() || len(second.Groups) != len(e.Groups) {
			t.Fatalf("%+v became %+v, %v", e, second, err)
		}
	})
}

// A folder that fails to keep every third entry keeps all others, each once. The points of the failed entries are
// counted as lost.
func TestRefusedThirdFails(t *testing.T) {
	for name, fail := range map[string]func(t *testing.T, dir string, e *RefusedEntry){
		"too large": func(_ *testing.T, _ string, e *RefusedEntry) { e.Groups[0].Payload = make([]byte, 1<<20) },
		"no place": func(t *testing.T, dir string, e *RefusedEntry) { // something of another program has its name
			if err := os.MkdirAll(filepath.Join(dir, e.Name(), "x"), 0o700); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := OpenRefused(dir, 1<<19)
			var want []string
			for i := range uint64(60) {
				e := refusedEntry(i, 100)
				if i%3 != 0 {
					want = append(want, e.Name())
				} else {
					fail(t, dir, e)
				}
				if err := f.Put(e); (err == nil) != (i%3 != 0) {
					t.Fatalf("entry %d: %v", i, err)
				}
			}
			var kept []string
			names, err := ListRefused(dir)
			for _, n := range names {
				if _, err := ReadRefused(dir, n); err == nil {
					kept = append(kept, n)
				}
			}
			if err != nil || !reflect.DeepEqual(kept, want) {
				t.Errorf("%d of %d entries are there: %v", len(kept), len(want), err)
			}
			if st := f.Stats(); st.Kept != 40 || st.EvictedEntries != 0 || st.LostPoints != 20*3 || st.LastError == "" {
				t.Errorf("Stats = %+v", st)
			}
		})
	}
}
