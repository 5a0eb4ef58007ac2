package flock

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// Whatever fails on the way, the file is the old one or the new one, whole, and nothing is left beside it. A sync that fails is an
// error, of the file or of its folder.
func TestReplace(t *testing.T) {
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		file, dir, write error
		want             string
	}{
		"whole":                {want: "new"},
		"the writer fails":     {write: broken, want: "old"},
		"the file's sync":      {file: syscall.EIO, want: "old"},
		"the folder's sync":    {dir: syscall.EIO, want: "new"},
		"everything goes awry": {write: broken, file: syscall.EIO, dir: syscall.EIO, want: "old"},
	} {
		t.Run(name, func(t *testing.T) {
			syncFile = func(*os.File) error { return tt.file }
			syncDir = func(string) error { return tt.dir }
			defer func() { syncFile, syncDir = (*os.File).Sync, SyncDir }()
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := Replace(path, 0o640, func(w io.Writer) error {
				_, err := io.WriteString(w, "new")
				return errors.Join(err, tt.write)
			})
			for _, want := range []error{tt.write, tt.file, tt.dir} {
				if want != nil {
					if !errors.Is(err, want) {
						t.Errorf("error %v, want %v", err, want)
					}
					break
				}
			}
			if tt.file == nil && tt.dir == nil && tt.write == nil && err != nil {
				t.Error(err)
			}
			got, err := os.ReadFile(path)
			if string(got) != tt.want || err != nil {
				t.Errorf("the file holds %q, %v; want %q", got, err, tt.want)
			}
			list, _ := os.ReadDir(filepath.Dir(path))
			if len(list) != 1 {
				t.Errorf("%d files are left, want 1", len(list))
			}
		})
	}
}

// A folder that is not there is an error, and a file is there only for its owner.
func TestReplaceBytes(t *testing.T) {
	dir := t.TempDir()
	if err := ReplaceBytes(filepath.Join(dir, "no", "file"), nil); err == nil {
		t.Error("no error")
	}
	path := filepath.Join(dir, "file")
	if err := ReplaceBytes(path, []byte("all")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || info.Size() != 3 {
		t.Errorf("%v, %v", info, err)
	}
}

// What a killed program left goes, once it is old enough; what others have beside the file stays.
func TestRemoveUnfinished(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a[1].state")
	now := time.Now()
	for name, age := range map[string]time.Duration{
		"a[1].state": time.Hour, "a[1].state.17.tmp": time.Hour, "a[1].state.18446744073709551615.tmp": 2 * time.Minute, "a[1].state.18.tmp": time.Second,
		"a[1].state.x.tmp": time.Hour, "a[1].state.19": time.Hour, "a1.state.20.tmp": time.Hour, "b.a[1].state.21.tmp": time.Hour, "a[1].state.bad": time.Hour,
	} {
		at := now.Add(-age)
		if err := errors.Join(os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600), os.Chtimes(filepath.Join(dir, name), at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveUnfinished(path, now); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(dir)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	if want := []string{"a1.state.20.tmp", "a[1].state", "a[1].state.18.tmp", "a[1].state.19", "a[1].state.bad", "a[1].state.x.tmp", "b.a[1].state.21.tmp"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%q stay, want %q, %v", names, want, err)
	}
	if err := RemoveUnfinished(filepath.Join(dir, "none", "b"), now); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
