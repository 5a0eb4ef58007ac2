package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hopscope/hopscope/sink/flock"
)

var (
	errInUse      = flock.ErrLocked
	errNotRegular = errors.New("is no regular file; only standard output, which is -, can be something else")
)

// stampLayout is the moment in the name of a file that was put aside. All have the same length, so names sort by it.
const stampLayout = "20060102T150405.000000000Z"

// file is the file that is written to, with those that were put aside.
type file struct {
	conf  Config
	stats *counters
	now   func() time.Time
	// create opens a file for appending; tests put a disk that fills up in its place.
	create func(path string) (diskFile, error)

	f      diskFile // nil when it has to be opened
	info   os.FileInfo
	size   int64     // bytes of lines that are stored
	torn   bool      // behind those there may be a part of a write that failed
	period time.Time // the last write's, by Config.RotateInterval

	lines     uint64               // in the file, unless it was there before
	inherited bool                 // so it was, and lines are not known
	kept      map[time.Time]uint64 // lines of files that this process wrote whole and put aside
}

type diskFile interface {
	io.WriteCloser
	io.ReaderAt
	Fd() uintptr
	Stat() (os.FileInfo, error)
	Sync() error
	Truncate(size int64) error
}

// newFile opens the file.
func newFile(conf Config, stats *counters) (*file, error) {
	f := &file{conf: conf, stats: stats, now: time.Now, kept: map[time.Time]uint64{}}
	f.create = func(path string) (diskFile, error) {
		return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	}
	return f, f.open()
}

// write appends lines and forces them to the disk. After an error the file ends where it did before.
func (f *file) write(_ context.Context, lines []byte) error {
	now := f.now()
	if err := f.ready(now, int64(len(lines))); err != nil {
		return err
	}
	_, err := f.f.Write(lines)
	if err == nil && f.conf.Sync {
		err = f.f.Sync()
	}
	if err != nil {
		f.torn = true
		_ = f.cut() // if it fails, the next write begins with it
		return fmt.Errorf("write %s: %w", f.conf.Path, err)
	}
	f.size += int64(len(lines))
	f.lines += uint64(bytes.Count(lines, []byte{'\n'}))
	f.period = f.periodOf(now)
	return nil
}

// ready makes the file one that n bytes can be appended to now.
func (f *file) ready(now time.Time, n int64) error {
	if f.f != nil && !f.stillThere() {
		if err := f.close(); err != nil {
			return err
		}
	}
	if f.f == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	if err := f.cut(); err != nil {
		return fmt.Errorf("cut off a torn write: %w", err)
	}
	long := f.conf.RotateBytes > 0 && f.size+n > f.conf.RotateBytes
	old := f.conf.RotateInterval > 0 && f.periodOf(now).After(f.period) // a clock that is set back begins no interval
	if f.size == 0 || !long && !old {
		return nil
	}
	if err := f.putAside(now); err != nil {
		return err
	}
	return f.open()
}

// cut removes what a failed write left.
func (f *file) cut() error {
	if !f.torn {
		return nil
	}
	err := f.f.Truncate(f.size)
	f.torn = err != nil
	return err
}

// periodOf is the beginning of the interval that t lies in.
func (f *file) periodOf(t time.Time) time.Time { return t.UTC().Truncate(f.conf.RotateInterval) }

// stillThere reports whether the path names the open file as it was left. One whose length another program has changed has to be
// opened again, since it may now end in the middle of a line.
func (f *file) stillThere() bool {
	info, err := os.Stat(f.conf.Path)
	return err == nil && os.SameFile(info, f.info) && (info.Size() == f.size || f.torn && info.Size() > f.size)
}

// open opens the file, or a new one when it ends in the middle of a line.
func (f *file) open() error {
	if err := os.MkdirAll(filepath.Dir(f.conf.Path), 0o755); err != nil {
		return err
	}
	for {
		whole, err := f.openOnce()
		if err != nil {
			f.abandon()
			return err
		}
		if whole {
			return nil
		}
		if err := f.putAside(f.now()); err != nil {
			f.abandon()
			return err
		}
	}
}

func (f *file) openOnce() (whole bool, err error) {
	path := f.conf.Path
	if f.f, err = f.create(path); err != nil {
		return false, err
	}
	if f.info, err = f.f.Stat(); err != nil {
		return false, err
	}
	if !f.info.Mode().IsRegular() {
		return false, fmt.Errorf("%s %w", path, errNotRegular)
	}
	switch err := flock.Lock(f.f); {
	case errors.Is(err, flock.ErrLocked):
		return false, fmt.Errorf("%s %w", path, errInUse)
	case err != nil:
		return false, fmt.Errorf("lock %s: %w", path, err)
	}
	// The process that had the lock until now may have put the file aside in between.
	if now, err := os.Stat(path); err != nil || !os.SameFile(now, f.info) {
		return false, fmt.Errorf("%s %w", path, errInUse)
	}
	if f.conf.Sync {
		if err := flock.SyncDir(filepath.Dir(path)); err != nil {
			return false, err
		}
	}
	f.size, f.torn, f.period = f.info.Size(), false, f.periodOf(f.info.ModTime())
	f.lines, f.inherited = 0, f.size > 0
	if f.size == 0 {
		return true, nil
	}
	var last [1]byte
	if _, err := f.f.ReadAt(last[:], f.size-1); err != nil {
		return false, err
	}
	return last[0] == '\n', nil
}

// abandon closes what could not be opened to the end.
func (f *file) abandon() {
	if f.f != nil {
		_ = f.f.Close() // nothing was written
		f.f = nil
	}
}

// putAside renames the file and closes it, and removes files that are too many.
func (f *file) putAside(now time.Time) error {
	aside, err := f.aside()
	if err != nil {
		return err
	}
	if n := len(aside); n > 0 && !now.After(aside[n-1]) { // the clock was set back
		now = aside[n-1].Add(1)
	}
	if err := os.Rename(f.conf.Path, f.nameAt(now)); err != nil {
		return err
	}
	f.stats.rotations.Add(1)
	if !f.inherited {
		f.kept[now] = f.lines
	}
	if err := f.close(); err != nil {
		return err
	}
	aside = append(aside, now)
	for _, t := range aside[:max(0, len(aside)-f.conf.KeepFiles)] {
		name := f.nameAt(t)
		lines, known := f.kept[t]
		if !known {
			lines = flock.Lines(name)
		}
		if err := os.Remove(name); err != nil {
			f.stats.unremoved.Add(1) // the next rotation tries again
			continue
		}
		delete(f.kept, t)
		f.stats.removed.Add(1)
		f.stats.removedLines.Add(lines)
	}
	if f.conf.Sync {
		return flock.SyncDir(filepath.Dir(f.conf.Path))
	}
	return nil
}

// aside returns when files were put aside, the earliest first.
func (f *file) aside() ([]time.Time, error) {
	entries, err := os.ReadDir(filepath.Dir(f.conf.Path))
	if err != nil {
		return nil, err
	}
	var out []time.Time
	prefix, suffix := f.around()
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), prefix)
		stamp, ok2 := strings.CutSuffix(rest, suffix)
		if t, err := time.Parse(stampLayout, stamp); ok && ok2 && err == nil && len(stamp) == len(stampLayout) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out, nil
}

// nameAt is the path of the file that was put aside at t.
func (f *file) nameAt(t time.Time) string {
	prefix, suffix := f.around()
	return filepath.Join(filepath.Dir(f.conf.Path), prefix+t.UTC().Format(stampLayout)+suffix)
}

// around returns the parts before and after the time in the name of a file that was put aside.
func (f *file) around() (prefix, suffix string) {
	base := filepath.Base(f.conf.Path)
	suffix = filepath.Ext(base)
	return strings.TrimSuffix(base, suffix) + "-", suffix
}

func (f *file) close() error {
	if f.f == nil {
		return nil
	}
	err := f.f.Close()
	f.f = nil
	return err
}
