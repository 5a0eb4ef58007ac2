package pcapfile

import (
	"context"
	"io"
	"os"
	"sync/atomic"
	"syscall"
)

// openFile opens path without waiting. The size is that of a regular file, or -1 where reading may have to wait.
func openFile(path string) (f *os.File, name string, size int64, err error) {
	if path == "-" {
		f, name = os.Stdin, "standard input"
	} else if f, err = os.OpenFile(path, os.O_RDONLY|nonBlocking, 0); err != nil { // a named pipe has no writer yet
		return nil, path, 0, err
	} else {
		name = path
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, name, 0, err
	case info.Mode().IsRegular():
		return f, name, info.Size(), nil
	case info.IsDir():
		f.Close()
		return nil, name, 0, &os.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	return f, name, -1, nil
}

// pollMillis is how long a read waits before it checks its context again.
const pollMillis = 50

// waiting reads from a pipe or terminal, and stops when ctx ends. Standard input is usually in blocking mode and
// shared with other processes, so neither a deadline nor a change of mode is possible.
type waiting struct {
	ctx  context.Context
	f    *os.File
	gone func() bool // asked while there is nothing to read: whether nothing will come any more; may be nil
}

func (w *waiting) Read(b []byte) (int, error) {
	for {
		if w.ctx.Err() != nil {
			return 0, context.Cause(w.ctx)
		}
		if ok, err := readable(w.f); err != nil {
			return 0, err
		} else if ok {
			return w.f.Read(b)
		}
		if w.gone != nil && w.gone() {
			return 0, io.EOF
		}
	}
}

// counting adds up the bytes read.
type counting struct {
	r io.Reader
	n *atomic.Int64
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}
