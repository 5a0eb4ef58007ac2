package pcapfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is how far back a zstd stream may refer, and so about the memory that reading one takes at most. All
// levels up to 20 of the usual program need at most 32 MiB. The window of gzip is always 32 KiB.
const maxWindow = 32 << 20

// packing is a compression that captures come in.
type packing uint8

const (
	plain packing = iota
	packedGzip
	packedZstd
)

// packingBytes is the number of bytes of a file that show its packing.
const packingBytes = 4

// packingOf returns the packing by the first bytes of a file, which may be fewer than packingBytes.
func packingOf(b []byte) packing {
	switch {
	case len(b) >= 2 && b[0] == 0x1f && b[1] == 0x8b:
		return packedGzip
	case len(b) < packingBytes:
	case b[0] == 0x28 && b[1] == 0xb5 && b[2] == 0x2f && b[3] == 0xfd,
		b[0]&0xf0 == 0x50 && b[1] == 0x2a && b[2] == 0x4d && b[3] == 0x18: // a skippable frame, as parallel compressors write
		return packedZstd
	}
	return plain
}

// unpack puts the decompression before r.src, of which the window holds the first bytes. Concatenated streams are one.
func (r *Reader) unpack(p packing) error {
	r.under = &failing{r: r.src}
	src := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(r.buf[:r.end])), r.under), bufferBytes)
	r.end = 0
	switch p {
	case packedGzip:
		z, err := gzip.NewReader(src)
		if err != nil {
			return r.readError(0, err)
		}
		r.src = z
		r.closes = append(r.closes, z)
	case packedZstd:
		z, err := zstd.NewReader(src, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return r.readError(0, err)
		}
		stream := z.IOReadCloser()
		r.src = stream
		r.closes = append(r.closes, stream)
	}
	return nil
}

// failing keeps the error of a read below a decompression, so that it is distinguished from damaged data.
type failing struct {
	r   io.Reader
	err error
}

func (f *failing) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// unpackError returns the error in a compressed file, if there is one.
func (r *Reader) unpackError(err error) (detail string, kind error) {
	switch {
	case r.under == nil || r.under.err != nil:
		return "", err
	case err == io.ErrUnexpectedEOF:
		return "the compressed file ends early", ErrTruncated
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return "zstd with a window of more than 32 MiB is not read: compress it again without --long and at most at level 20", errFormat
	}
	return "the compressed file is damaged: " + err.Error(), errDamaged
}
