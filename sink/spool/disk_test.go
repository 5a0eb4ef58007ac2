package spool

import (
	"bytes"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// memDisk is a disk in memory that can be full or broken. It records what was forced to it: data by the sync of a
// file, names by the sync of a directory.
type memDisk struct {
	mu       sync.Mutex
	files    map[string]*memFile // as a process sees them
	dirs     map[string]bool
	durable  map[string]*memFile // names that a crash leaves
	capacity int64               // bytes over all files; writes are cut where it ends
	noCut    bool                // Truncate fails
	noSync   bool                // Sync fails
	ops      int
	read     int64 // bytes
	opened   int   // files that are not closed
	// fault is asked before the operation with that number; partial lets a write that fails write half.
	fault func(n int, what, name string) error
	// done is called behind every operation that changes something or forces it to the disk.
	done func(what, name string)
}

func newMemDisk() *memDisk {
	return &memDisk{files: map[string]*memFile{}, dirs: map[string]bool{}, durable: map[string]*memFile{}, capacity: 1 << 40}
}

type memFile struct {
	d       *memDisk
	name    string
	b       []byte
	synced  []byte
	pending []memWrite
}

// memWrite is a write, or a cut where b is nil, that was not forced to the disk.
type memWrite struct {
	off int64
	b   []byte
}

func (d *memDisk) used() (n int64) {
	for _, f := range d.files {
		n += int64(len(f.b))
	}
	return n
}

// begin counts an operation and returns its fault.
func (d *memDisk) begin(what, name string) error {
	d.mu.Lock()
	n := d.ops
	d.ops++
	fault := d.fault
	d.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(n, what, name)
}

func (d *memDisk) end(what, name string) {
	if d.done != nil {
		d.done(what, name)
	}
}

func (d *memDisk) open(name string, create bool) (file, error) {
	if err := d.begin("open", name); err != nil {
		return nil, err
	}
	d.mu.Lock()
	f := d.files[name]
	var err error
	switch {
	case d.dirs[name]:
		err = syscall.EISDIR
	case create && f != nil:
		err = os.ErrExist
	case create && d.used() >= d.capacity:
		err = syscall.ENOSPC
	case create:
		f = &memFile{d: d, name: name}
		d.files[name] = f
	case f == nil:
		err = os.ErrNotExist
	}
	if err == nil {
		d.opened++
	}
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if create {
		d.end("create", name)
	}
	return f, nil
}

func (d *memDisk) stat(name string) (info, error) {
	if err := d.begin("stat", name); err != nil {
		return info{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dirs[name] {
		return info{dir: true}, nil
	}
	if f := d.files[name]; f != nil {
		return info{size: int64(len(f.b)), changed: time.Unix(1, 0)}, nil
	}
	return info{}, os.ErrNotExist
}

func folder(name string) string {
	if dir := path.Dir(name); dir != "." {
		return dir
	}
	return ""
}

func (d *memDisk) list(dir string) (names []string, err error) {
	if err := d.begin("list", dir); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if dir != "" && !d.dirs[dir] {
		return nil, os.ErrNotExist
	}
	for name := range d.files {
		if folder(name) == dir {
			names = append(names, path.Base(name))
		}
	}
	for name := range d.dirs {
		if folder(name) == dir {
			names = append(names, path.Base(name))
		}
	}
	return names, nil
}

func (d *memDisk) remove(name string) error {
	if err := d.begin("remove", name); err != nil {
		return err
	}
	d.mu.Lock()
	f := d.files[name]
	delete(d.files, name)
	d.mu.Unlock()
	if f == nil {
		return os.ErrNotExist
	}
	d.end("remove", name)
	return nil
}

func (d *memDisk) rename(from, to string) error {
	if err := d.begin("rename", from); err != nil {
		return err
	}
	d.mu.Lock()
	f, dir := d.files[from], d.dirs[from]
	delete(d.files, from)
	delete(d.dirs, from)
	if f != nil {
		d.files[to] = f
	}
	if dir {
		d.dirs[to] = true
	}
	d.mu.Unlock()
	if f == nil && !dir {
		return os.ErrNotExist
	}
	d.end("rename", from)
	return nil
}

func (d *memDisk) mkdir(name string) error {
	if err := d.begin("mkdir", name); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[name] != nil || d.dirs[name] {
		return os.ErrExist
	}
	d.dirs[name] = true
	return nil
}

func (d *memDisk) sync(dir string) error {
	if err := d.begin("sync", dir); err != nil {
		return err
	}
	d.mu.Lock()
	for name := range d.durable {
		if folder(name) == dir {
			delete(d.durable, name)
		}
	}
	for name, f := range d.files {
		if folder(name) == dir {
			d.durable[name] = f
		}
	}
	d.mu.Unlock()
	d.end("sync", dir)
	return nil
}

func (d *memDisk) lock() (io.Closer, error) { return io.NopCloser(nil), nil }

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.d.begin("read", f.name); err != nil {
		return 0, err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if off >= int64(len(f.b)) {
		return 0, io.EOF
	}
	n := copy(p, f.b[off:])
	f.d.read += int64(n)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func apply(b []byte, w memWrite) []byte {
	if w.b == nil {
		return b[:min(w.off, int64(len(b)))]
	}
	if end := w.off + int64(len(w.b)); end > int64(len(b)) {
		b = append(b, make([]byte, end-int64(len(b)))...)
	}
	copy(b[w.off:], w.b)
	return b
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	err := f.d.begin("write", f.name)
	f.d.mu.Lock()
	n := len(p)
	if err != nil {
		n /= 2
	}
	grow := max(off+int64(n)-int64(len(f.b)), 0)
	if room := max(f.d.capacity-f.d.used(), 0); grow > room {
		n = max(n-int(grow-room), 0)
	}
	w := memWrite{off, append([]byte{}, p[:n]...)}
	f.b = apply(f.b, w)
	f.pending = append(f.pending, w)
	f.d.mu.Unlock()
	f.d.end("write", f.name)
	if n < len(p) {
		if err == nil {
			err = syscall.ENOSPC
		}
		return n, err
	}
	return n, err
}

func (f *memFile) Truncate(size int64) error {
	if err := f.d.begin("truncate", f.name); err != nil {
		return err
	}
	f.d.mu.Lock()
	if f.d.noCut {
		f.d.mu.Unlock()
		return syscall.EIO
	}
	f.b = f.b[:size]
	f.pending = append(f.pending, memWrite{size, nil})
	f.d.mu.Unlock()
	f.d.end("truncate", f.name)
	return nil
}

// A failed Sync forgets the written bytes, as kernels do: they can still be read, and no later sync writes them.
func (f *memFile) Sync() error {
	err := f.d.begin("sync", f.name)
	f.d.mu.Lock()
	if f.d.noSync && err == nil {
		err = syscall.EIO
	}
	if err == nil {
		for _, w := range f.pending {
			f.synced = apply(f.synced, w)
		}
	}
	f.pending = nil
	f.d.mu.Unlock()
	if err == nil {
		f.d.end("sync", f.name)
	}
	return err
}

func (f *memFile) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.d.opened--
	return nil
}

// put makes a file that is on the disk.
func (d *memDisk) put(name string, b []byte) {
	f := &memFile{d: d, name: name, b: slices.Clone(b), synced: slices.Clone(b)}
	d.files[name], d.durable[name] = f, f
	if dir := folder(name); dir != "" {
		d.dirs[dir] = true
	}
}

// clone is the disk as another process sees it.
func (d *memDisk) clone() *memDisk {
	c := newMemDisk()
	for name, f := range d.files {
		c.put(name, f.b)
	}
	for dir := range d.dirs {
		c.dirs[dir] = true
	}
	return c
}

// crashes returns the states that a crash of the machine may leave of bytes that were not forced to the disk.
var crashes = []string{"nothing", "all", "names", "data", "prefix", "torn", "zeros", "some files", "other files"}

// crash is the disk as the next boot finds it.
func (d *memDisk) crash(variant string) *memDisk {
	c := newMemDisk()
	for dir := range d.dirs {
		c.dirs[dir] = true
	}
	names := d.files
	if variant == "nothing" || variant == "data" {
		names = d.durable
	}
	for name, f := range names {
		b := bytes.Clone(f.synced)
		all := false
		switch variant {
		case "all", "data":
			all = true
		case "some files":
			all = strings.Contains(name, "state")
		case "other files":
			all = !strings.Contains(name, "state")
		case "prefix":
			for _, w := range f.pending[:len(f.pending)/2] {
				b = apply(b, w)
			}
		case "torn":
			for i, w := range f.pending {
				if i == len(f.pending)-1 && w.b != nil {
					w.b = w.b[:len(w.b)/2]
				}
				b = apply(b, w)
			}
		case "zeros":
			for _, w := range f.pending {
				if w.b != nil && w.off >= int64(len(b)) {
					w.b = make([]byte, len(w.b))
					b = apply(b, w)
				}
			}
		}
		if all {
			b = f.b
		}
		c.put(name, b)
	}
	return c
}
