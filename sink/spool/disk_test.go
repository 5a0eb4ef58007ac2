package spool

import (
	"io"
	"os"
	"sync"
	"syscall"
)

// memDisk is a disk in memory that can be full or broken, and that forgets what was not forced to it.
type memDisk struct {
	mu       sync.Mutex
	files    map[string]*memFile
	capacity int64 // bytes over all files; writes are cut where it ends
	noCut    bool  // Truncate fails
	noSync   bool  // Sync fails
}

func newMemDisk() *memDisk { return &memDisk{files: map[string]*memFile{}, capacity: 1 << 40} }

type memFile struct {
	d *memDisk
	b []byte
}

func (d *memDisk) used() (n int64) {
	for _, f := range d.files {
		n += int64(len(f.b))
	}
	return n
}

func (d *memDisk) open(name string, create bool) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[name]
	switch {
	case create && f != nil:
		return nil, os.ErrExist
	case create && d.used() >= d.capacity:
		return nil, syscall.ENOSPC
	case create:
		f = &memFile{d: d}
		d.files[name] = f
	case f == nil:
		return nil, os.ErrNotExist
	}
	return f, nil
}

func (d *memDisk) size(name string) (int64, error) {
	if f := d.files[name]; f != nil {
		return int64(len(f.b)), nil
	}
	return 0, os.ErrNotExist
}

func (d *memDisk) list() (names []string, err error) {
	for name := range d.files {
		names = append(names, name)
	}
	return names, nil
}

func (d *memDisk) remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[name] == nil {
		return os.ErrNotExist
	}
	delete(d.files, name)
	return nil
}

func (d *memDisk) lock() (io.Closer, error) { return io.NopCloser(nil), nil }

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if off >= int64(len(f.b)) {
		return 0, io.EOF
	}
	n := copy(p, f.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n := len(p)
	grow := max(off+int64(n)-int64(len(f.b)), 0)
	if room := max(f.d.capacity-f.d.used(), 0); grow > room {
		n = max(n-int(grow-room), 0)
	}
	if end := off + int64(n); end > int64(len(f.b)) {
		f.b = append(f.b, make([]byte, end-int64(len(f.b)))...)
	}
	copy(f.b[off:], p[:n])
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func (f *memFile) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.noCut {
		return syscall.EIO
	}
	f.b = f.b[:size]
	return nil
}

func (f *memFile) Sync() error {
	if f.d.noSync {
		return syscall.EIO
	}
	return nil
}

func (f *memFile) Close() error { return nil }
