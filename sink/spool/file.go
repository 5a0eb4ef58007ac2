package spool

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// disk is what the spool needs of a directory. Tests put a disk that fills up or breaks in its place.
type disk interface {
	open(name string, create bool) (file, error)
	size(name string) (int64, error)
	list() ([]string, error)
	remove(name string) error
	lock() (io.Closer, error)
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

func (d osDisk) path(name string) string { return filepath.Join(string(d), name) }

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

func (d osDisk) size(name string) (int64, error) {
	fi, err := os.Stat(d.path(name))
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

func (d osDisk) list() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (d osDisk) remove(name string) error { return os.Remove(d.path(name)) }

// lock keeps other processes out. The kernel drops the lock when the process ends, however it ends.
func (d osDisk) lock() (io.Closer, error) {
	f, err := os.OpenFile(d.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if busy, err := lockFile(f); err != nil {
		f.Close()
		if busy {
			return nil, fmt.Errorf("spool %s is in use by another process", string(d))
		}
		return nil, fmt.Errorf("lock spool %s: %w", string(d), err)
	}
	return f, nil
}

func segmentName(n uint64) string { return fmt.Sprintf("%020d.seg", n) }

// segmentNumbers finds the segments among names, in order.
func segmentNumbers(names []string) []uint64 {
	var out []uint64
	for _, name := range names {
		digits, ok := strings.CutSuffix(name, ".seg")
		n, err := strconv.ParseUint(digits, 10, 64)
		if ok && err == nil && name == segmentName(n) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}
