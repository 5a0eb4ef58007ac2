package window

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sketches/quantile"
)

// FORMAT.md draws the layout.
const (
	partialMagic   = "HWP"
	partialVersion = 3 // of the layout
	partialOldest  = 2 // that is read
	partialCodes   = 1 // the version of units and codes

	flowBytes = 2*len(decode.Addr{}) + 6
)

// The errors of the bytes of a partial.
var (
	ErrTruncated = errors.New("truncated")
	ErrVersion   = errors.New("unknown version")
	ErrCorrupt   = errors.New("corrupt")
	ErrLimit     = errors.New("more than the limit")
)

// errTooLong is the error of a section of 4 GiB and more.
var errTooLong = errors.New("inference: a section of a partial is too long for its length field")

// PartialError is an error of an encoded partial, with the offset of the byte.
type PartialError struct {
	Field  string
	Offset int
	Err    error // ErrTruncated, ErrVersion, ErrCorrupt or ErrLimit
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("partial window: %s at byte %d: %v", e.Field, e.Offset, e.Err)
}

func (e *PartialError) Unwrap() error { return e.Err }

// AppendBinary appends the bytes of p to b. They are the same for partials that saw the same, in whatever order and
// grouping that was merged. It fails only for a partial of gigabytes, and then returns b as it was.
func (p *Partial) AppendBinary(b []byte) ([]byte, error) {
	c := &coder{b: b, base: p.Start}
	c.b = append(c.b, partialMagic...)
	c.b = append(c.b, partialVersion, partialCodes)
	c.header(p, partialVersion)
	for i, k := range partialKinds[1:] {
		k.write(p, c, byte(i+1))
	}
	if c.err != nil {
		return b, c.err
	}
	return c.b, nil
}

// ReadBinary makes p the partial that AppendBinary wrote, and keeps nothing of b. Lists longer than the limits are
// refused, and so is anything that AppendBinary does not write. Then p is empty and the error is a [*PartialError].
// Sections that are not known here are passed over: a newer version may add them. Time and memory are in proportion to
// the length of b. A byte can take some 200 bytes of memory, and some 1000 in passing.
func (p *Partial) ReadBinary(b []byte, limits Limits) error {
	p.Reset()
	return p.read(b, &limits, p)
}

// MergeBinary is [Partial.ReadBinary] and [Partial.Merge] in one: it adds to p what AppendBinary wrote, and refuses
// what ReadBinary refuses. It takes far less time, because counters of hops and flows are added as they are read. The
// argument rest receives the content of b beside hops and flows. If MergeBinary fails, rest is empty and p has some of
// what b holds, so that it is good for [Partial.Reset] only.
func (p *Partial) MergeBinary(b []byte, limits Limits, rest *Partial) error {
	rest.Reset()
	if err := rest.read(b, &limits, p); err != nil {
		return err
	}
	p.Merge(rest)
	return nil
}

// read reads hops and flows into one partial, to what it has already, and everything else into p, which is empty.
func (p *Partial) read(b []byte, limits *Limits, into *Partial) error {
	c := &coder{b: b, reading: true, limits: limits}
	magic := c.nextBytes("version", len(partialMagic)+2)
	if c.err == nil {
		version, codes := magic[len(partialMagic)], magic[len(partialMagic)+1]
		switch {
		case string(magic[:len(partialMagic)]) != partialMagic || version < partialOldest || version > partialVersion:
			c.fail("version", 0, ErrVersion)
		case codes != partialCodes:
			c.fail("codes", len(partialMagic)+1, ErrVersion)
		}
		c.header(p, version)
		for last := byte(0); c.at < len(b) && c.err == nil; {
			last = c.section(p, into, version, last)
		}
	}
	if c.err != nil {
		p.Reset()
	}
	return c.err
}

// header codes the times and counters of a partial.
func (c *coder) header(p *Partial, version byte) {
	start, end := uint64(p.Start), uint64(p.End)
	c.fixed64("start", &start)
	c.fixed64("end", &end)
	p.Start, p.End = int64(start), int64(end)
	c.base = p.Start
	counters := p.counters()
	if version < 3 {
		c.uints("counters", counters[:len(counters)-1]...)
	} else {
		c.uints("counters", counters[:]...)
	}
}

// section reads a section, which comes behind the one with the number last, and returns its own number.
func (c *coder) section(p, into *Partial, version, last byte) byte {
	at, end := c.at, len(c.b)
	var number byte
	var length uint32
	c.byte("section", &number)
	c.fixed32("section", &length)
	c.check("section", at, number > last)
	if c.err == nil && int64(length) > int64(end-c.at) {
		c.fail("section", c.at, ErrTruncated)
	}
	if c.err != nil {
		return number
	}
	from := c.b
	c.b = c.b[:c.at+int(length)]
	if known := int(number) < len(partialKinds) && (number < firstOfVersion3 || version >= 3); known {
		partialKinds[number].read(p, into, c)
		c.check("section", c.at, c.at == len(c.b))
	}
	c.at, c.b = len(c.b), from
	return number
}

// coder appends the parts of a partial to b, or reads them from it. After an error it reads nothing more, and keeps the
// error.
type coder struct {
	b       []byte
	at      int   // the next byte to be read
	base    int64 // what times are relative to
	err     error
	reading bool
	limits  *Limits

	// Of the section that is coded.
	late   bool             // it is the second one of its kind
	order  []int32          // memory
	before inference.HopKey // of hops
	next   uint64           // the least number that a run can begin with
	most   uint64           // the greatest number of runs
	left   int              // paths of a spread
}

// open begins a section of n items, and returns the place where it begins.
func (c *coder) open(section byte, n int) int {
	c.b = append(c.b, section, 0, 0, 0, 0)
	at := len(c.b)
	c.count("", 0, 0, n)
	return at
}

// close ends the section that began at a place.
func (c *coder) close(at int) {
	n := len(c.b) - at
	if n > math.MaxUint32 {
		c.err = errTooLong
	}
	binary.LittleEndian.PutUint32(c.b[at-4:], uint32(n))
}

func (c *coder) fail(field string, at int, err error) {
	if c.reading && c.err == nil {
		c.at, c.err = at, &PartialError{field, at, err}
	}
}

// check refuses what was read from a place on if it is not as it is written, and reports whether all was right so far.
func (c *coder) check(field string, at int, ok bool) bool {
	if !ok {
		c.fail(field, at, ErrCorrupt)
	}
	return c.err == nil
}

// nextBytes returns the next n bytes that are read, or nil.
func (c *coder) nextBytes(field string, n int) []byte {
	if n > len(c.b)-c.at {
		c.fail(field, c.at, ErrTruncated)
	}
	if c.err != nil {
		return nil
	}
	c.at += n
	return c.b[c.at-n : c.at]
}

// raw codes bytes.
func (c *coder) raw(field string, v []byte) {
	if c.reading {
		copy(v, c.nextBytes(field, len(v)))
	} else {
		c.b = append(c.b, v...)
	}
}

func (c *coder) byte(field string, v *uint8) {
	b := [...]byte{*v}
	c.raw(field, b[:])
	*v = b[0]
}

func (c *coder) fixed32(field string, v *uint32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], *v)
	c.raw(field, b[:])
	*v = binary.LittleEndian.Uint32(b[:])
}

func (c *coder) fixed64(field string, v *uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], *v)
	c.raw(field, b[:])
	*v = binary.LittleEndian.Uint64(b[:])
}

func (c *coder) uint(field string, v *uint64) {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, *v)
	} else if c.err == nil {
		n := 0
		*v, n = binary.Uvarint(c.b[c.at:])
		c.varint(field, n)
	}
}

func (c *coder) uints(field string, all ...*uint64) {
	for _, v := range all {
		c.uint(field, v)
	}
}

func (c *coder) int(field string, v *int64) {
	if !c.reading {
		c.b = binary.AppendVarint(c.b, *v)
	} else if c.err == nil {
		n := 0
		*v, n = binary.Varint(c.b[c.at:])
		c.varint(field, n)
	}
}

// varint takes a varint of n bytes, as package encoding/binary counts them. One that could be shorter is never written.
func (c *coder) varint(field string, n int) {
	switch {
	case n == 0:
		c.fail(field, c.at, ErrTruncated)
	case n < 0 || n > 1 && c.b[c.at+n-1] == 0:
		c.fail(field, c.at, ErrCorrupt)
	default:
		c.at += n
	}
}

func (c *coder) time(field string, t *int64) {
	d := *t - c.base
	c.int(field, &d)
	*t = c.base + d
}

// id codes a number of 32 bits in as few bytes as it needs.
func (c *coder) id(field string, v *uint32) {
	at, n := c.at, uint64(*v)
	c.uint(field, &n)
	c.check(field, at, n <= math.MaxUint32)
	*v = uint32(n)
}

// flags codes a byte of flags, the first one as its lowest bit. The other bits are not set.
func (c *coder) flags(field string, all ...*bool) {
	f := byte(0)
	for i, v := range all {
		if *v {
			f |= 1 << i
		}
	}
	at := c.at
	c.byte(field, &f)
	c.check(field, at, f>>len(all) == 0)
	for i, v := range all {
		*v = f>>i&1 != 0
	}
}

// share codes a part of the whole. A number that is none becomes the nearest one when it is written.
func (c *coder) share(field string, v *float64) {
	x := *v
	if !(x > 0) {
		x = 0
	}
	at, bits := c.at, math.Float64bits(min(x, 1))
	c.fixed64(field, &bits)
	if c.reading {
		*v = math.Float64frombits(bits)
		c.check(field, at, *v >= 0 && *v <= 1 && !math.Signbit(*v))
	}
}

// count codes the number of items that follow. When they are written it is n. When they are read it is at most limit,
// and no more than can be there, each of size bytes or more.
func (c *coder) count(field string, limit, size, n int) int {
	at, v := c.at, uint64(n)
	c.uint(field, &v)
	if !c.reading {
		return n
	}
	if c.err == nil && v > uint64(len(c.b)-c.at)/uint64(size) {
		c.fail(field, at, ErrTruncated)
	}
	if v > uint64(max(limit, 0)) {
		c.fail(field, at, ErrLimit)
	}
	if c.err != nil {
		return 0
	}
	return int(v)
}

// codeList codes n items. Those that are read are in memory.
func codeList[T any](c *coder, n int, memory, list *[]T, code func(*coder, *T)) {
	if !c.reading {
		for i := range *list {
			code(c, &(*list)[i])
		}
		return
	}
	from := len(*memory)
	*memory = slices.Grow(*memory, n)
	for ; n > 0 && c.err == nil; n-- {
		var zero T
		*memory = append(*memory, zero)
		code(c, &(*memory)[len(*memory)-1])
	}
	*list = (*memory)[from:len(*memory):len(*memory)]
}

func (c *coder) flow(field string, k *decode.FlowKey) {
	c.raw(field, k.Src[:])
	c.raw(field, k.Dst[:])
	ports := uint32(k.SrcPort) | uint32(k.DstPort)<<16
	c.fixed32(field, &ports)
	k.SrcPort, k.DstPort = uint16(ports), uint16(ports>>16)
	c.byte(field, &k.Proto)
	c.byte(field, &k.IPVersion)
}

func (c *coder) exporter(field string, k *inference.ExporterKey) {
	c.raw(field, k.Addr[:])
	at := c.at
	c.id(field, &k.Node)
	c.byte(field, &k.HWID)
	if c.reading {
		k.Nameless = !c.late && k.Node == 0 && k.Addr != decode.Addr{}
		c.check(field, at, k.OfNode0() == c.late)
	}
}

// place codes a place in the network, of which most are no other.
func (c *coder) place(k *inference.HopKey) {
	c.id("place", &k.Node)
	at, n := c.at, uint64(k.EgressIf)<<1
	if k.Other {
		n |= 1
	}
	c.uint("place", &n)
	c.check("place", at, n>>1 <= math.MaxUint32)
	k.EgressIf, k.Other = uint32(n>>1), n&1 != 0
}

func (c *coder) path(field string, memory, path *[]inference.HopKey) {
	codeList(c, c.count(field, math.MaxInt, 2, len(*path)), memory, path, (*coder).place)
}

// sketch codes the distributions of a hop. Those that are read are added to it.
func (c *coder) sketch(field string, h *HopSketch) {
	c.histogram(field, &h.Latency)
	c.histogram(field, &h.Queue)
}

func (c *coder) histogram(field string, h *quantile.Histogram) {
	if !c.reading {
		c.b = h.Append(c.b)
		return
	}
	if c.err != nil {
		return
	}
	n, err := h.MergeBytes(c.b[c.at:])
	c.at += n
	switch err {
	case nil:
	case quantile.ErrTruncated:
		c.fail(field, c.at, ErrTruncated)
	default:
		c.fail(field, c.at, ErrCorrupt)
	}
}
