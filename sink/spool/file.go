package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hopscope/hopscope/sink/flock"
)

// disk is the part of a directory's interface that the spool needs. Tests replace it by a disk that fills up, breaks
// or forgets. Names are relative to the directory, with a slash for a folder in it.
type disk interface {
	open(name string, create bool) (file, error)
	stat(name string) (info, error)
	list(dir string) ([]string, error)
	remove(name string) error
	rename(from, to string) error
	mkdir(name string) error
	sync(dir string) error // forces the entries of a folder to the disk
	lock() (io.Closer, error)
}

type info struct {
	size    int64
	changed time.Time
	dir     bool
}

type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// osDisk is a directory of the operating system.
type osDisk string

func (d osDisk) path(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

func (d osDisk) open(name string, create bool) (file, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := os.OpenFile(d.path(name), flags, 0o600)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d osDisk) stat(name string) (info, error) {
	fi, err := os.Stat(d.path(name))
	if err != nil {
		return info{}, err
	}
	return info{fi.Size(), fi.ModTime(), !fi.Mode().IsRegular()}, nil
}

func (d osDisk) list(dir string) ([]string, error) {
	entries, err := os.ReadDir(d.path(dir))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (d osDisk) remove(name string) error     { return os.Remove(d.path(name)) }
func (d osDisk) rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }
func (d osDisk) mkdir(name string) error      { return os.Mkdir(d.path(name), 0o700) }
func (d osDisk) sync(dir string) error        { return flock.SyncDir(d.path(dir)) }

// lock keeps other processes out. The kernel drops the lock when the process ends, however it ends.
func (d osDisk) lock() (io.Closer, error) {
	f, err := os.OpenFile(d.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock.Lock(f); err != nil {
		f.Close()
		if errors.Is(err, flock.ErrLocked) {
			return nil, fmt.Errorf("spool %s %w", string(d), err)
		}
		return nil, fmt.Errorf("lock spool %s: %w", string(d), err)
	}
	return f, nil
}

// memory is a file of a segment that no disk took.
type memory []byte

var errMemory = errors.New("records in memory are not written to")

func (m memory) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(m)) {
		return 0, io.EOF
	}
	n := copy(p, m[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m memory) WriteAt([]byte, int64) (int, error) { return 0, errMemory }
func (m memory) Truncate(int64) error               { return errMemory }
func (m memory) Sync() error                        { return errMemory }
func (m memory) Close() error                       { return nil }

// A program of version 1 does not take the names of version 2 for segments, and so leaves them alone.
const (
	suffixV1 = ".seg"
	suffixV2 = ".v2.seg"
	suffixMk = ".v2.new" // being written; it is renamed when it is whole
)

func segmentName(n uint64) string   { return fmt.Sprintf("%020d%s", n, suffixV2) }
func segmentNameV1(n uint64) string { return fmt.Sprintf("%020d%s", n, suffixV1) }

// parseSegmentName returns number and version of the segment that is called name, and version 0 for other files.
func parseSegmentName(name string) (n uint64, version int) {
	if len(name) < 20 {
		return 0, 0
	}
	n, err := strconv.ParseUint(name[:20], 10, 64)
	if err != nil || strings.ContainsAny(name[:20], "+-_") {
		return 0, 0
	}
	switch name[20:] {
	case suffixV1:
		return n, 1
	case suffixV2:
		return n, 2
	}
	return 0, 0
}
