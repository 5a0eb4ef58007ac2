package refused

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hopscope/hopscope/sink/flock"
)

// Folder is the directory of one store's entries. Its methods may be called by several goroutines.
type Folder struct {
	dir string
	max int64

	mu      sync.Mutex
	changed time.Time // of the directory when it was last looked at
	stats   Stats
}

// Stats says what a folder holds and, since it was opened, what it took and gave up.
type Stats struct {
	Entries int // now
	Bytes   int64

	Kept           uint64 // entries
	EvictedEntries uint64 // to stay below the folder's bound
	EvictedPoints  uint64
	LostPoints     uint64 // that the disk did not take
	LastError      string
}

// Open returns a folder of at most max bytes. The directory is made when there is something to keep.
func Open(dir string, max int64) *Folder { return &Folder{dir: dir, max: max} }

// Dir is the directory.
func (f *Folder) Dir() string { return f.dir }

// Put keeps an entry, and removes the oldest ones when there are too many bytes.
func (f *Folder) Put(e *Entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.put(e); err != nil {
		f.stats.LostPoints += e.Points()
		f.stats.LastError = err.Error()
		return fmt.Errorf("keep refused points: %w", err)
	}
	f.stats.Kept++
	return nil
}

func (f *Folder) put(e *Entry) error {
	b := e.encode()
	if int64(len(b)) > f.max {
		return fmt.Errorf("%d bytes are more than the folder holds", len(b))
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	if err := f.makeRoom(int64(len(b)), e.Name()); err != nil {
		return err
	}
	if err := write(f.dir, e.Name(), b); err != nil {
		return err
	}
	f.look()
	return nil
}

// makeRoom removes the oldest entries until n bytes fit. One of the name is replaced and does not count.
func (f *Folder) makeRoom(n int64, name string) error {
	files, err := files(f.dir, time.Now())
	if err != nil {
		return err
	}
	total := n
	for _, file := range files {
		if file.Name() != name {
			total += file.Size()
		}
	}
	for _, file := range files {
		if total <= f.max {
			break
		}
		if file.Name() == name {
			continue
		}
		points := uint64(0)
		if e, err := Read(f.dir, file.Name()); err == nil {
			points = e.Points()
		}
		switch err := os.Remove(filepath.Join(f.dir, file.Name())); {
		case err == nil:
			f.stats.EvictedEntries++
			f.stats.EvictedPoints += points
		case !errors.Is(err, os.ErrNotExist): // another process has sent it again
			return err
		}
		total -= file.Size()
	}
	return nil
}

// look counts what is there.
func (f *Folder) look() {
	f.stats.Entries, f.stats.Bytes, f.changed = 0, 0, time.Time{}
	info, err := os.Stat(f.dir)
	if err != nil {
		return
	}
	files, err := files(f.dir, time.Time{})
	if err != nil {
		return
	}
	for _, file := range files {
		f.stats.Entries++
		f.stats.Bytes += file.Size()
	}
	f.changed = info.ModTime()
}

// Stats may be called at any time. What another process has removed since is noticed.
func (f *Folder) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	if info, err := os.Stat(f.dir); err != nil || !info.ModTime().Equal(f.changed) {
		f.look()
	}
	return f.stats
}

// List returns the names of the entries in dir, the oldest first. A directory that is not there has none.
func List(dir string) (names []string, err error) {
	list, err := files(dir, time.Time{})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, file := range list {
		names = append(names, file.Name())
	}
	return names, nil
}

// valid reports whether name can be that of an entry, and so of nothing outside the directory.
func valid(name string) bool {
	digits, ok := strings.CutSuffix(name, suffix)
	batch, part, ok2 := strings.Cut(digits, "-")
	return ok && ok2 && len(batch) == 20 && len(part) >= 6 && strings.Trim(batch+part, "0123456789") == ""
}

// Read reads an entry.
func Read(dir, name string) (*Entry, error) {
	if !valid(name) {
		return nil, fmt.Errorf("%q is not the name of an entry", name)
	}
	path := filepath.Join(dir, name)
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s %w", path, errDamaged)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return nil, err
	}
	e, err := decode(b)
	if err != nil || e.Name() != name {
		return nil, fmt.Errorf("%s %w", path, errDamaged)
	}
	return e, nil
}

// Remove removes an entry for good. It needs the lock; that another process was faster is no error.
func Remove(dir, name string) error {
	if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return flock.SyncDir(dir)
}

// Replace puts e in the place of the entry with its name. It needs the lock.
func Replace(dir string, e *Entry) error { return write(dir, e.Name(), e.encode()) }

const unfinished = ".tmp"

// write makes a file that is there whole or not at all.
func write(dir, name string, b []byte) error { return flock.ReplaceBytes(filepath.Join(dir, name), b) }

// files returns the entries in dir, the oldest first. With a time it removes unfinished files that no process can be writing any
// more.
func files(dir string, now time.Time) (list []os.FileInfo, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		switch name := entry.Name(); {
		case valid(name):
			list = append(list, info)
		case strings.HasSuffix(name, unfinished) && strings.Contains(name, suffix+".") && now.Sub(info.ModTime()) > time.Hour:
			_ = os.Remove(filepath.Join(dir, name)) // the next one tries again
		}
	}
	slices.SortFunc(list, func(a, b os.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}
