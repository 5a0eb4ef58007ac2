package fleet

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/hopscope/hopscope/inference/window"
)

// maxValue is the greatest length of a value, in bytes before compression, unless a [Codec] sets another one.
const maxValue = 64 << 20

// Errors of the value of a record, beside those of [window.Partial.ReadBinary].
var (
	errZstd    = errors.New("is no zstd frame")
	errTooLong = errors.New("is longer than the limit when it is not compressed")
	ErrSum     = errors.New("has another checksum than its head says")
)

// valueError is the error of the value of a record.
type valueError struct {
	what string // "partial", "record"
	Err  error
}

func (e *valueError) Error() string { return fmt.Sprintf("value of a record: %s %v", e.what, e.Err) }

// Unwrap returns the reason.
func (e *valueError) Unwrap() error { return e.Err }

// Codec makes values of partials and partials of values: zstd level 1, one frame a value, on the goroutine that calls it.
// It has one user at a time.
type Codec struct {
	enc    *zstd.Encoder
	dec    *zstd.Decoder
	limits window.Limits
	plain  []byte
}

// NewCodec makes a codec. It reads values of at most most bytes when they are not compressed (maxValue if most is 0),
// and partials within the limits.
func NewCodec(most int, limits window.Limits) *Codec {
	if most <= 0 {
		most = maxValue
	}
	// The options are right, which is all that can make these fail.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(most)), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err)
	}
	return &Codec{enc: enc, dec: dec, limits: limits}
}

// Compress appends the frame of b to dst.
func (c *Codec) Compress(dst, b []byte) []byte { return c.enc.EncodeAll(b, dst) }

// Decompress appends what a frame holds to dst. The error is a [*ValueError].
func (c *Codec) Decompress(dst, frame []byte) ([]byte, error) {
	out, err := c.dec.DecodeAll(frame, dst)
	switch {
	case err == nil && len(frame) > 0:
		return out, nil
	case errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded):
		return dst, &valueError{"record", errTooLong}
	}
	return dst, &valueError{"record", errZstd}
}

// Encode appends the value of p to dst.
func (c *Codec) Encode(dst []byte, p *window.Partial) ([]byte, error) {
	plain, err := p.AppendBinary(c.plain[:0])
	if err != nil {
		return dst, err
	}
	c.plain = plain
	return c.Compress(dst, plain), nil
}

// Decode makes p what a value holds. The error is a [*ValueError] or a [*window.PartialError], and then p is empty.
func (c *Codec) Decode(p *window.Partial, value []byte) error {
	plain, err := c.Decompress(c.plain[:0], value)
	if err != nil {
		p.Reset()
		return err
	}
	c.plain = plain
	return p.ReadBinary(plain, c.limits)
}

// adder adds up the values of records. Those that are broken add nothing.
type adder struct {
	codec *Codec
	sum   *window.Partial
	one   *window.Partial // what the value that was added last holds beside hops and flows, and perhaps these
	whole bool            // values are read as a whole before they are added, which takes longer
	added [][]byte
}

// add adds a value, which must not change later. The error is that of [Codec.Decode].
func (a *adder) add(value []byte) error {
	plain, err := a.codec.Decompress(a.codec.plain[:0], value)
	if err != nil {
		a.one.Reset()
		return err
	}
	a.codec.plain = plain
	if a.whole {
		if err := a.one.ReadBinary(plain, a.codec.limits); err != nil {
			return err
		}
		a.sum.Merge(a.one)
		return nil
	}
	if err := a.sum.MergeBinary(plain, a.codec.limits, a.one); err != nil {
		a.repeat()
		return err
	}
	a.added = append(a.added, value)
	return nil
}

// repeat makes the sum of the added values again, because it has a part of a broken one. That happens once, however
// many such values a sender has.
func (a *adder) repeat() {
	a.whole = true
	a.sum.Reset()
	for _, value := range a.added {
		_ = a.add(value) // it could be read before, so it can be read now
	}
	a.added = nil
	a.one.Reset()
}
