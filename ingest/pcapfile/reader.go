package pcapfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"sync/atomic"

	"github.com/hopscope/hopscope/ingest"
)

// maxCapture is the longest record that is accepted, in bytes: the largest snapshot length that capture programs write.
const maxCapture = 256 << 10

// bufferBytes is the initial size of the window on the file, which grows to hold the longest record. A size of 64 KiB
// measured a fifth slower, 256 KiB to 4 MiB the same. The smallest of those leaves most of the cache to others.
const bufferBytes = 256 << 10

// Known reports whether link is a link type that decoders can walk: Ethernet, Linux cooked, loopback, PPP, or raw IP.
func Known(link uint16) bool {
	switch link {
	case ingest.LinkNull, ingest.LinkEthernet, ingest.LinkPPP, ingest.LinkRaw, ingest.LinkLoop, ingest.LinkLinuxSLL, ingest.LinkIPv4, ingest.LinkIPv6, ingest.LinkLinuxSLL2:
		return true
	}
	return false
}

// Reader reads the frames of one capture. It is for one goroutine, except Progress.
type Reader struct {
	name      string
	src       io.Reader
	under     *failing // what is decompressed; nil for a plain file
	closes    []io.Closer
	size      int64
	bytesRead atomic.Int64 // bytes read from the file, compressed where it is

	// buf[pos:end] is what was read and not yet parsed; base is the capture's offset of buf[0]. The parser sets need
	// when it wants more than that, and skip when it wants to see nothing of the next bytes.
	buf      []byte
	pos, end int
	base     int64
	need     int
	skip     int64
	skipFrom int64 // where the block began that is skipped

	ng     bool
	swap   bool // multi-byte values are big-endian
	scale  int64
	link   uint16
	ifaces []iface // pcapng only
	number uint64
	err    error // sticky
	one    ingest.Batch
}

// Open opens the capture at path and reads its header. The path "-" is standard input. Compression is recognised by
// its content, not by the name.
func Open(path string) (*Reader, error) { return OpenContext(context.Background(), path) }

// OpenContext is Open for captures that may never end, such as a pipe from a capture program. When ctx ends, a waiting
// read fails with its cause.
func OpenContext(ctx context.Context, path string) (*Reader, error) {
	f, name, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	src := io.Reader(f)
	if size < 0 {
		src = &waiting{ctx: ctx, f: f}
	}
	r := &Reader{name: name, size: max(size, 0)}
	if f != os.Stdin {
		r.closes = append(r.closes, f)
	}
	if err := r.start(src); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// newReader reads a capture from src, whose name appears in errors. Close does not close src.
func newReader(src io.Reader, name string) (*Reader, error) {
	r := &Reader{name: name}
	if err := r.start(src); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// start finds out what src holds and reads the header.
func (r *Reader) start(src io.Reader) error {
	r.src = &counting{r: src, n: &r.bytesRead}
	r.buf = make([]byte, bufferBytes)
	if err := r.header(4); err != nil {
		return err
	}
	if p := packingOf(r.buf[:r.end]); p != plain {
		if err := r.unpack(p); err != nil {
			return err
		}
		if err := r.header(4); err != nil {
			return err
		}
	}
	switch magic := binary.LittleEndian.Uint32(r.buf); magic {
	case magicMicro, magicNano:
		return r.startPcap(magic)
	case magicSection:
		r.ng = true
		return nil
	default:
		if m := bits.ReverseBytes32(magic); m == magicMicro || m == magicNano {
			r.swap = true
			return r.startPcap(m)
		}
		return &Error{File: r.name, Err: errFormat, Detail: fmt.Sprintf("neither pcap nor pcapng (magic number %x)", r.buf[:4])}
	}
}

// header makes the first n bytes of the capture available.
func (r *Reader) header(n int) error {
	switch err := r.refill(n); err {
	case nil:
		return nil
	case io.EOF:
		return &Error{File: r.name, Err: ErrTruncated, Detail: "empty file"}
	case errShort:
		return &Error{File: r.name, Err: ErrTruncated, Detail: fmt.Sprintf("file ends after %d of %d bytes of its header", r.end, n)}
	default:
		return r.readError(0, err)
	}
}

// readError is a failure of reading itself, with the number of the frame that comes next.
func (r *Reader) readError(record uint64, err error) *Error {
	e := &Error{File: r.name, Record: record, Offset: r.at(r.end)}
	e.Detail, e.Err = r.unpackError(err)
	return e
}

// Next returns the next frame, or io.EOF after the last. The frame's Data is valid until the next call of Next or ReadBatch. After an
// error every further call gives the same one.
func (r *Reader) Next() (ingest.Frame, error) {
	if err := r.ReadBatch(&r.one, 1); err != nil {
		return ingest.Frame{}, err
	}
	return r.one.Frames[0], nil
}

// ReadBatch overwrites b with the next frames: at least one, at most limit. It does not wait for more input once it
// has a frame. Their Data is valid until the next call of Next or ReadBatch. At the end it leaves b empty and returns
// io.EOF, or an [*Error].
func (r *Reader) ReadBatch(b *ingest.Batch, limit int) error {
	b.Frames = b.Frames[:0]
	for r.err == nil {
		r.discard()
		if r.ng {
			r.parseNG(b, limit)
		} else {
			r.parsePcap(b, limit)
		}
		if len(b.Frames) > 0 {
			return nil // a failure is for the next call
		}
		if r.err == nil {
			r.more()
		}
	}
	return r.err
}

// Progress returns the bytes read from the file so far, and its size or 0 where it is unknown. It may be called at any time from any
// goroutine.
func (r *Reader) Progress() (read, size int64) { return r.bytesRead.Load(), r.size }

// Close releases the file. Frames that were handed out must not be used any more.
func (r *Reader) Close() error {
	var errs []error
	for i := len(r.closes) - 1; i >= 0; i-- {
		errs = append(errs, r.closes[i].Close())
	}
	r.closes = nil
	if r.err == nil {
		r.err = &Error{File: r.name, Offset: r.at(r.pos), Err: os.ErrClosed}
	}
	return errors.Join(errs...)
}

// at returns the capture's offset of buf[pos].
func (r *Reader) at(pos int) int64 { return r.base + int64(pos) }

// fail records damage in the record or block that starts at the capture's byte offset.
func (r *Reader) fail(offset int64, err error, format string, args ...any) {
	r.err = &Error{File: r.name, Record: r.number + 1, Offset: offset, Err: err, Detail: fmt.Sprintf(format, args...)}
}

// discard drops the bytes that r.skip counts, as far as they are in the window.
func (r *Reader) discard() {
	n := min(r.skip, int64(r.end-r.pos))
	r.pos += int(n)
	r.skip -= n
}

// more brings the bytes that the parser asked for into the window, or sets r.err.
func (r *Reader) more() {
	need := r.need
	if r.skip > 0 {
		need = 1
	}
	switch err := r.refill(need); {
	case err == nil:
	case err != io.EOF && err != errShort:
		r.err = r.readError(r.number+1, err)
	case r.skip > 0:
		have := r.at(r.end) - r.skipFrom
		r.fail(r.skipFrom, ErrTruncated, "file ends after %d of %d bytes", have, have+r.skip)
	case r.end > r.pos:
		r.fail(r.at(r.pos), ErrTruncated, "file ends after %d of %d bytes", r.end-r.pos, need)
	default:
		r.err = io.EOF
	}
}

// errShort is the end of the input inside of something.
var errShort = errors.New("short")

// refill reads until the window holds n bytes from pos on, and moves the remaining bytes to its front. At the end of
// the input it returns io.EOF if no byte is left, errShort if some are.
func (r *Reader) refill(n int) error {
	copy(r.buf, r.buf[r.pos:r.end])
	r.base += int64(r.pos)
	r.pos, r.end = 0, r.end-r.pos
	if n > len(r.buf) {
		r.buf = append(r.buf, make([]byte, n-len(r.buf))...)
	}
	for empty := 0; r.end < n; {
		m, err := r.src.Read(r.buf[r.end:])
		r.end += m
		switch {
		case r.end >= n:
		case err == io.EOF && r.end == 0:
			return io.EOF
		case err == io.EOF:
			return errShort
		case err != nil:
			return err
		case m > 0:
			empty = 0
		default:
			if empty++; empty == 100 {
				return io.ErrNoProgress
			}
		}
	}
	return nil
}
