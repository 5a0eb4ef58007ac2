package sink

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

// RefusedFolder is the directory of one store's entries. Its methods may be called by several goroutines.
//
// The collector adds files, and removes the oldest when there are too many bytes. Any process may read them beside it, and the
// holder of the folder's lock may remove or replace them.
type RefusedFolder struct {
	dir string
	max int64

	mu      sync.Mutex
	changed time.Time // of the directory when it was last looked at
	stats   RefusedStats
}

// RefusedStats holds the content of a folder and, since it was opened, its entries kept and evicted.
type RefusedStats struct {
	Entries int // now
	Bytes   int64

	Kept           uint64 // entries
	EvictedEntries uint64 // to stay below the folder's bound
	EvictedPoints  uint64
	LostPoints     uint64 // that the disk did not take
	LastError      string
}

// OpenRefused returns a folder of at most max bytes. The directory is made when there is something to keep.
func OpenRefused(dir string, max int64) *RefusedFolder { return &RefusedFolder{dir: dir, max: max} }

// Dir is the directory.
func (f *RefusedFolder) Dir() string { return f.dir }

// Put keeps an entry, and removes the oldest ones when there are too many bytes.
func (f *RefusedFolder) Put(e *RefusedEntry) error {
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

func (f *RefusedFolder) put(e *RefusedEntry) error {
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
	if err := writeRefused(f.dir, e.Name(), b); err != nil {
		return err
	}
	f.look()
	return nil
}

// makeRoom removes the oldest entries until n bytes fit. One of the name is replaced and does not count.
func (f *RefusedFolder) makeRoom(n int64, name string) error {
	files, err := refusedFiles(f.dir, time.Now())
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
		if e, err := ReadRefused(f.dir, file.Name()); err == nil {
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

// look counts the entries that exist.
func (f *RefusedFolder) look() {
	f.stats.Entries, f.stats.Bytes, f.changed = 0, 0, time.Time{}
	info, err := os.Stat(f.dir)
	if err != nil {
		return
	}
	files, err := refusedFiles(f.dir, time.Time{})
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
func (f *RefusedFolder) Stats() RefusedStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	if info, err := os.Stat(f.dir); err != nil || !info.ModTime().Equal(f.changed) {
		f.look()
	}
	return f.stats
}

// ListRefused returns the names of the entries in dir, the oldest first. A directory that is not there has none.
func ListRefused(dir string) (names []string, err error) {
	list, err := refusedFiles(dir, time.Time{})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, file := range list {
		names = append(names, file.Name())
	}
	return names, nil
}

// validRefused reports whether name can be that of an entry, and so of nothing outside the directory.
func validRefused(name string) bool {
	digits, ok := strings.CutSuffix(name, refusedSuffix)
	batch, part, ok2 := strings.Cut(digits, "-")
	return ok && ok2 && len(batch) == 20 && len(part) >= 6 && strings.Trim(batch+part, "0123456789") == ""
}

// ReadRefused reads an entry.
func ReadRefused(dir, name string) (*RefusedEntry, error) {
	if !validRefused(name) {
		return nil, fmt.Errorf("%q is not the name of an entry", name)
	}
	path := filepath.Join(dir, name)
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxRefusedFile {
		return nil, fmt.Errorf("%s %w", path, errRefusedDamaged)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxRefusedFile))
	if err != nil {
		return nil, err
	}
	e, err := decodeRefused(b)
	if err != nil || e.Name() != name {
		return nil, fmt.Errorf("%s %w", path, errRefusedDamaged)
	}
	return e, nil
}

// RemoveRefused removes an entry. It needs the lock. It is no error if another process has removed the entry.
func RemoveRefused(dir, name string) error {
	if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return flock.SyncDir(dir)
}

// LockRefused keeps others from removing and replacing entries in dir. The system drops the lock when the process ends, however it
// ends. The collector, which only adds, does not need it.
func LockRefused(dir string) (io.Closer, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := flock.Lock(f); {
	case errors.Is(err, flock.ErrLocked):
		return nil, errors.Join(fmt.Errorf("another process is sending what is in %s; wait until that has ended", dir), f.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
	}
	return f, nil
}

// ReplaceRefused puts e in the place of the entry with its name. It needs the lock.
func ReplaceRefused(dir string, e *RefusedEntry) error {
	return writeRefused(dir, e.Name(), e.encode())
}

const unfinished = ".tmp"

// writeRefused writes a file that exists whole or not at all.
func writeRefused(dir, name string, b []byte) error {
	return flock.ReplaceBytes(filepath.Join(dir, name), b)
}

// refusedFiles returns the entries in dir, the oldest first. With a time it removes unfinished files that no process can be writing any
// more.
func refusedFiles(dir string, now time.Time) (list []os.FileInfo, err error) {
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
		case validRefused(name):
			list = append(list, info)
		case strings.HasSuffix(name, unfinished) && strings.Contains(name, refusedSuffix+".") && now.Sub(info.ModTime()) > time.Hour:
			_ = os.Remove(filepath.Join(dir, name)) // the next one tries again
		}
	}
	slices.SortFunc(list, func(a, b os.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}
