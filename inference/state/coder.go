package state

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/hopscope/hopscope/decode"
)

// Coder appends a state to bytes, or reads one from bytes. It has one user at a time.
type Coder struct {
	b       []byte // what was written, or what is read
	at      int    // the next byte to be read
	last    int    // the beginning of the value that was read last
	reading bool
	what    string
	err     *Error
}

// coders are those without a user: what code is given is on the heap.
var coders = sync.Pool{New: func() any { return new(Coder) }}

// Append appends what code writes.
func Append(dst []byte, code func(*Coder)) []byte {
	c := coders.Get().(*Coder)
	*c = Coder{b: dst}
	code(c)
	dst, c.b = c.b, nil
	coders.Put(c)
	return dst
}

// Read lets code read b, all of which it has to take. The name of the state is for the error, which is an [*Error].
func Read(what string, b []byte, code func(*Coder)) error {
	c := coders.Get().(*Coder)
	*c = Coder{b: b, what: what, reading: true}
	if code(c); c.at != len(b) {
		c.fail("end", c.at, ErrRange)
	}
	err := c.err
	*c = Coder{}
	if coders.Put(c); err != nil {
		return err
	}
	return nil
}

// Reading reports whether fields are read, and not written.
func (c *Coder) Reading() bool { return c.reading }

// OK reports whether nothing was wrong so far.
func (c *Coder) OK() bool { return c.err == nil }

// Left is the number of bytes that were not read yet.
func (c *Coder) Left() int { return len(c.b) - c.at }

// Check ends the reading if the value that was read last is not as it has to be.
func (c *Coder) Check(field string, ok bool) {
	if !ok {
		c.Fail(field, ErrRange)
	}
}

// Fail ends the reading because of the value that was read last. It does nothing while fields are written.
func (c *Coder) Fail(field string, err error) { c.fail(field, c.last, err) }

func (c *Coder) fail(field string, at int, err error) {
	if c.reading && c.err == nil {
		c.err = &Error{c.what, field, at, err}
	}
}

// Version is the first byte of a state: newest when it is written, and from oldest to newest when it is read.
func (c *Coder) Version(oldest, newest uint8) uint8 {
	v := newest
	Fixed(c, "version", &v)
	if v < oldest || v > newest {
		c.Fail("version", ErrVersion)
	}
	return v
}

// next returns the next bytes to be read, or nil if there are not so many.
func (c *Coder) next(field string, n int) []byte {
	if c.last = c.at; n < 0 || n > c.Left() {
		c.fail(field, c.at, ErrShort)
	}
	if c.err != nil {
		return nil
	}
	c.at += n
	return c.b[c.last:c.at:c.at]
}

// Bytes codes an array of bytes.
func (c *Coder) Bytes(field string, p []byte) {
	if !c.reading {
		c.b = append(c.b, p...)
	} else {
		copy(p, c.next(field, len(p)))
	}
}

// Text codes texts of at most so many bytes, each behind its length.
func (c *Coder) Text(field string, most int, all ...*string) {
	for _, p := range all {
		n := len(*p)
		UintTo(c, field, uint64(most), &n)
		if !c.reading {
			c.b = append(c.b, *p...)
		} else if b := c.next(field, n); b != nil {
			*p = string(b)
		}
	}
}

// Blob codes bytes behind their length. The bytes that it reads alias the state.
func (c *Coder) Blob(field string, p *[]byte) {
	n := len(*p)
	UintTo(c, field, math.MaxInt, &n)
	if !c.reading {
		c.b = append(c.b, *p...)
	} else if b := c.next(field, n); b != nil {
		*p = b
	}
}

// Rest codes all that follows. The bytes that it reads alias the state.
func (c *Coder) Rest(p *[]byte) {
	if !c.reading {
		c.b = append(c.b, *p...)
	} else {
		*p = c.next("rest", c.Left())
	}
}

// RestText is [Coder.Rest] of a text of at most so many bytes.
func (c *Coder) RestText(field string, most int, p *string) {
	if !c.reading {
		c.b = append(c.b, *p...)
		return
	}
	b := c.next(field, c.Left())
	c.Check(field, len(b) <= most)
	*p = string(b)
}

// Part codes a part of the state behind its length, and that is all of it. Offsets of errors count from the whole.
func (c *Coder) Part(field string, code func(*Coder)) {
	if !c.reading {
		part := Append(nil, code)
		c.Blob(field, &part)
		return
	}
	n := 0
	Uint(c, field, &n)
	c.Within(field, n, code)
}

// Within lets code read the next bytes, and all of them.
func (c *Coder) Within(field string, n int, code func(*Coder)) {
	if c.next(field, n); c.err != nil {
		return
	}
	whole, start, end := c.b, c.last, c.at
	c.b, c.at = c.b[:end], start
	if code(c); c.at != end {
		c.fail(field, c.at, ErrRange)
	}
	c.b, c.last, c.at = whole, start, end
}

// Tag appends a tag, which is below 128, and leaves a byte for the length of what follows. It returns the place, which
// is for [Coder.EndTag].
func (c *Coder) Tag(tag uint8) (start int) {
	c.b = append(c.b, tag, 0)
	return len(c.b)
}

// EndTag stores the length of the value that begins at start. A tag with a value of zero is taken back.
func (c *Coder) EndTag(start int, zero bool) {
	n := len(c.b) - start
	switch {
	case zero:
		c.b = c.b[:start-2]
	case n < 0x80:
		c.b[start-1] = byte(n)
	default:
		c.b = slices.Replace(c.b, start-1, start, binary.AppendUvarint(nil, uint64(n))...)
	}
}

// Flag codes flags of a byte each, 0 or 1.
func (c *Coder) Flag(field string, all ...*bool) {
	for _, p := range all {
		var v uint8
		if *p {
			v = 1
		}
		FixedTo(c, field, 1, &v)
		*p = v == 1
	}
}

// Flags codes up to eight flags in a byte, the first one as the lowest bit.
func (c *Coder) Flags(field string, all ...*bool) {
	var v uint8
	for i, p := range all {
		if *p {
			v |= 1 << i
		}
	}
	FixedTo(c, field, 1<<len(all)-1, &v)
	for i, p := range all {
		*p = v>>i&1 == 1
	}
}

// Addr codes an address.
func (c *Coder) Addr(field string, p *decode.Addr) { c.Bytes(field, p[:]) }

// Flow codes the key of a flow in 38 bytes.
func (c *Coder) Flow(field string, k *decode.FlowKey) {
	c.Addr(field, &k.Src)
	c.Addr(field, &k.Dst)
	Fixed(c, field, &k.SrcPort, &k.DstPort)
	Fixed(c, field, &k.Proto, &k.IPVersion)
}

// Float64 codes numbers within a range, which no NaN is.
func (c *Coder) Float64(field string, least, most float64, all ...*float64) {
	for _, p := range all {
		v := math.Float64bits(*p)
		Fixed(c, field, &v)
		*p = math.Float64frombits(v)
		c.Check(field, *p >= least && *p <= most)
	}
}

// Float32 is [Coder.Float64] of numbers of half the width.
func (c *Coder) Float32(field string, least, most float32, all ...*float32) {
	for _, p := range all {
		v := math.Float32bits(*p)
		Fixed(c, field, &v)
		*p = math.Float32frombits(v)
		c.Check(field, *p >= least && *p <= most)
	}
}

// unsigned is a type of whole numbers that are not negative.
type unsigned interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Fixed codes numbers in the bytes of their type, the least one first.
func Fixed[T unsigned | ~int64](c *Coder, field string, all ...*T) {
	for _, p := range all {
		fixed(c, field, p)
	}
}

// FixedTo is [Fixed] of numbers of at most so much.
func FixedTo[T unsigned](c *Coder, field string, most T, all ...*T) {
	for _, p := range all {
		v := *p
		if fixed(c, field, &v); v > most {
			c.Fail(field, ErrRange)
		} else {
			*p = v
		}
	}
}

func fixed[T unsigned | ~int64](c *Coder, field string, p *T) {
	n := 8
	if v := ^T(0); v > 0 { // of an unsigned type
		n = bits.Len64(uint64(v)) / 8
	}
	var b [8]byte
	if !c.reading {
		binary.LittleEndian.PutUint64(b[:], uint64(*p))
		c.b = append(c.b, b[:n]...)
	} else if copy(b[:], c.next(field, n)); c.err == nil {
		*p = T(binary.LittleEndian.Uint64(b[:]))
	}
}

// Uint codes numbers that are not negative, in as few bytes as they need.
func Uint[T unsigned | ~int](c *Coder, field string, all ...*T) {
	UintTo(c, field, math.MaxUint64, all...)
}

// UintTo is [Uint] of numbers of at most so much.
func UintTo[T unsigned | ~int](c *Coder, field string, most uint64, all ...*T) {
	for _, p := range all {
		if !c.reading {
			c.b = binary.AppendUvarint(c.b, uint64(*p))
			continue
		}
		v, n := binary.Uvarint(c.b[c.at:])
		v = c.number(field, v, n)
		// Negative numbers of type int are those that do not fit.
		if t := T(v); v > most || uint64(t) != v || t < 0 {
			c.Fail(field, ErrRange)
		} else if c.err == nil {
			*p = t
		}
	}
}

// Int codes numbers of any sign, in as few bytes as they need.
func Int[T ~int64](c *Coder, field string, all ...*T) {
	for _, p := range all {
		if !c.reading {
			c.b = binary.AppendVarint(c.b, int64(*p))
			continue
		}
		v, n := binary.Varint(c.b[c.at:])
		if v = int64(c.number(field, uint64(v), n)); c.err == nil {
			*p = T(v)
		}
	}
}

// number takes the n bytes of a number of the value v, which have to be as few as it needs.
func (c *Coder) number(field string, v uint64, n int) uint64 {
	if c.last = c.at; n == 0 {
		c.fail(field, c.at, ErrShort)
	} else if n < 0 || n > 1 && c.b[c.at+n-1] == 0 {
		c.fail(field, c.at, ErrRange)
	}
	if c.err != nil {
		return 0
	}
	c.at += n
	return v
}

// Len codes the number of items of a list, at most so many, each of which takes so many bytes or more. While it is
// read, it is 0 after an error.
func (c *Coder) Len(field string, most, size int, n *int) {
	UintTo(c, field, uint64(max(most, 0)), n)
	if c.reading && *n > c.Left()/size {
		c.Fail(field, ErrShort)
	}
	if c.err != nil {
		*n = 0
	}
}

// List codes a list behind its length, see [Coder.Len].
func List[T any](c *Coder, field string, most, size int, list *[]T, code func(*T, *Coder)) {
	n := len(*list)
	c.Len(field, most, size, &n)
	Repeat(c, n, list, code)
}

// Repeat codes a list of a length that was coded before.
func Repeat[T any](c *Coder, n int, list *[]T, code func(*T, *Coder)) {
	items(c, list, code, func() bool { return len(*list) < n })
}

// Items codes a list that takes all the bytes that are left, at most so many items.
func Items[T any](c *Coder, field string, most int, list *[]T, code func(*T, *Coder)) {
	items(c, list, code, func() bool {
		if len(*list) == most && c.Left() > 0 {
			c.fail(field, c.at, ErrRange)
		}
		return c.Left() > 0
	})
}

func items[T any](c *Coder, list *[]T, code func(*T, *Coder), more func() bool) {
	if !c.reading {
		for i := range *list {
			code(&(*list)[i], c)
		}
		return
	}
	var empty T
	for *list = (*list)[:0]; more() && c.err == nil; {
		n := len(*list)
		*list = append(*list, empty)[:n] // in its place, and not there before it is whole
		code(&(*list)[:n+1][n], c)
		*list = (*list)[:n+1]
	}
}

// Pointers is [List] of pointers.
func Pointers[T any](c *Coder, field string, most, size int, list *[]*T, code func(*T, *Coder)) {
	List(c, field, most, size, list, func(p **T, c *Coder) {
		if *p == nil {
			*p = new(T)
		}
		code(*p, c)
	})
}

// Map codes a map behind its length, see [Coder.Len], in the order of its keys.
func Map[K comparable, V any](c *Coder, field string, most, size int, m map[K]V, compare func(a, b K) int, code func(*K, *V, *Coder)) {
	n := len(m)
	c.Len(field, most, size, &n)
	if !c.reading {
		keys := make([]K, 0, len(m))
		for k := range m {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, compare)
		for _, k := range keys {
			v := m[k]
			code(&k, &v, c)
		}
		return
	}
	var before K
	for i := range n {
		start := c.at
		var k K
		var v V
		if code(&k, &v, c); i > 0 && compare(before, k) >= 0 {
			c.fail(field, start, ErrRange)
		}
		if c.err != nil {
			return
		}
		m[k], before = v, k
	}
}
