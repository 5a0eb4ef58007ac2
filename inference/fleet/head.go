package fleet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/crc64"
	"math"
)

// HeaderKey is the key of the header, of a record, that holds its [Head].
const HeaderKey = "hopscope"

// Kind says what a record is.
type Kind uint8

// The kinds of records. Numbers are kept by logs, so they do not change.
const (
	_       Kind = iota
	Part         // windows: what a collector saw of a slice in a window; the value is a compressed partial
	Reports      // reports: reports of a window; the value is a compressed Arrow stream
	Mark         // reports: a collector has sent all reports of a window
	Close        // windows, reports: the window ends here
	Slice        // series: a slice of a window, merged; the value is a compressed partial
	Rows         // series: the hops of a slice as a compressed Arrow stream, for everybody
	Whole        // series: what needs all slices of a window; the value is JSON
	Chunk        // state: a part of a checkpoint
)

// Head says what a record is and where it belongs. A field that a kind does not need is zero.
type Head struct {
	Kind Kind
	// From, Boot and Seq name the record for good: the collector's name, a number that differs from run to run, and the
	// number of the record among those of the run in the partition, from 1. A record that was written twice has the same.
	From  string
	Boot  uint64
	Seq   uint64
	Slice uint32

	Start, End  int64  // of the window, ns since 1970; End is its label
	Part, Parts uint32 // the record is number Part, from 0, of Parts; the last one says that the collector is done
	Reports     uint64 // that the value stands for
	// Raw, in the last part, is how many reports of the window its sender sent to each partition of reports.
	Raw []uint64

	Revision   uint64   // how often the slice or the window was told before
	Sources    []Source // what was merged, up to which record
	Missing    []string // collectors that were waited for in vain
	Dead       []string // of these, the ones that are not waited for any more
	Owners     []uint32 // for each exporter of a merged slice, the index of its collector in Sources
	Generation int64    // of the group, when the record was written
	Offset     int64    // of the input up to which a checkpoint holds
	Sum        uint64   // [Sum] of the value
}

// Source is a run of a collector, and the last of its records that was merged.
type Source struct {
	From string
	Boot uint64
	Seq  uint64
}

// Sum is the checksum of a record's value.
func Sum(value []byte) uint64 { return crc64.Checksum(value, table) }

var table = crc64.MakeTable(crc64.ECMA)

// headVersion is the first byte of a head. Fields that are added later do not change it: a reader passes over fields
// that it does not know. It changes when an old reader would misunderstand.
const headVersion = 1

// The fields of a head, by their tag. A field is its tag<uvarint>, its length<uvarint> and its bytes; integers are
// uvarints, times are varints.
const (
	_ = iota
	tagKind
	tagFrom
	tagBoot
	tagSeq
	tagSlice
	tagStart
	tagEnd
	tagPart
	tagParts
	tagReports
	tagRaw
	tagRevision
	tagSources
	tagMissing
	tagDead
	tagOwners
	tagGeneration
	tagOffset
	tagSum
)

// A head begins with its version and its kind, by which strangers tell records apart. Then comes the check: the CRC-32C of all other
// bytes, in 4 bytes, least first. Former versions had none, and their fields were in the order of their tags. No two bits that flip make
// one of these of the tag of the check.
const (
	tagCheck = 96
	checkAt  = 1 + 3
	checked  = checkAt + 2 + crc32.Size
)

// Bounds of what a head may hold: a fleet has no more collectors and partitions, and nobody has a longer name.
const (
	MaxMembers = 1 << 14
	MaxSlices  = 1 << 10
	MaxName    = 253
	maxOwners  = 1 << 20
)

// Append appends the bytes of h to b. Zero fields take none.
func (h *Head) Append(b []byte) []byte {
	start := len(b)
	b = append(b, headVersion, tagKind, 1, byte(h.Kind), tagCheck, crc32.Size, 0, 0, 0, 0)
	var one []byte
	field := func(tag uint64, value []byte) {
		b = binary.AppendUvarint(b, tag)
		b = binary.AppendUvarint(b, uint64(len(value)))
		b = append(b, value...)
	}
	number := func(tag, v uint64) {
		if v != 0 {
			one = binary.AppendUvarint(one[:0], v)
			field(tag, one)
		}
	}
	signed := func(tag uint64, v int64) {
		if v != 0 {
			one = binary.AppendVarint(one[:0], v)
			field(tag, one)
		}
	}
	names := func(tag uint64, list []string) {
		if len(list) > 0 {
			one = one[:0]
			for _, s := range list {
				one = appendName(one, s)
			}
			field(tag, one)
		}
	}
	if h.From != "" {
		field(tagFrom, []byte(h.From))
	}
	number(tagBoot, h.Boot)
	number(tagSeq, h.Seq)
	number(tagSlice, uint64(h.Slice))
	signed(tagStart, h.Start)
	signed(tagEnd, h.End)
	number(tagPart, uint64(h.Part))
	number(tagParts, uint64(h.Parts))
	number(tagReports, h.Reports)
	if len(h.Raw) > 0 {
		one = one[:0]
		for _, n := range h.Raw {
			one = binary.AppendUvarint(one, n)
		}
		field(tagRaw, one)
	}
	number(tagRevision, h.Revision)
	if len(h.Sources) > 0 {
		one = one[:0]
		for _, s := range h.Sources {
			one = appendName(one, s.From)
			one = binary.AppendUvarint(one, s.Boot)
			one = binary.AppendUvarint(one, s.Seq)
		}
		field(tagSources, one)
	}
	names(tagMissing, h.Missing)
	names(tagDead, h.Dead)
	if len(h.Owners) > 0 {
		one = one[:0]
		for _, i := range h.Owners {
			one = binary.AppendUvarint(one, uint64(i))
		}
		field(tagOwners, one)
	}
	signed(tagGeneration, h.Generation)
	signed(tagOffset, h.Offset)
	number(tagSum, h.Sum)
	binary.LittleEndian.PutUint32(b[start+checkAt+2:], headCheck(b[start:]))
	return b
}

// headCheck is what the check of a head has to be.
func headCheck(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:checkAt], castagnoli), castagnoli, b[checked:])
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendName(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// HeadError says at which byte of a head reading it failed, and why.
type HeadError struct {
	Offset int
	Field  string
	Err    error
}

func (e *HeadError) Error() string {
	return fmt.Sprintf("head of a record: %s at byte %d: %v", e.Field, e.Offset, e.Err)
}

// Unwrap gives the reason.
func (e *HeadError) Unwrap() error { return e.Err }

// The reasons for which a head is refused.
var (
	ErrShort   = errors.New("is cut short")
	ErrVersion = errors.New("is of a version that this program does not know")
	ErrRange   = errors.New("is out of range")
	ErrCheck   = errors.New("does not fit to the other bytes")
)

// ReadHead reads what Append wrote, by this version or by another one that says the same of itself.
func ReadHead(b []byte) (Head, error) {
	r := headReader{b: b}
	var h Head
	if len(b) == 0 {
		return Head{}, &HeadError{0, "version", ErrShort}
	}
	if b[0] != headVersion {
		return Head{}, &HeadError{0, "version", ErrVersion}
	}
	// A head says when and whose a record is: one that is damaged and read nevertheless would be somebody else's news.
	switch {
	case len(b) < checkAt:
		return Head{}, &HeadError{len(b), "kind", ErrShort}
	case b[1] != tagKind || b[2] != 1:
		return Head{}, &HeadError{1, "kind", ErrCheck}
	}
	h.Kind, r.at = Kind(b[checkAt-1]), checkAt
	if former := len(b) > checkAt && b[checkAt] > tagKind && b[checkAt] <= tagSum; !former {
		if len(b) < checked {
			return Head{}, &HeadError{len(b), "check", ErrShort}
		}
		if b[checkAt] != tagCheck || b[checkAt+1] != crc32.Size || binary.LittleEndian.Uint32(b[checkAt+2:]) != headCheck(b) {
			return Head{}, &HeadError{checkAt, "check", ErrCheck}
		}
		r.at = checked
	}
	for r.err == nil && r.at < len(b) {
		tag := r.uint("tag", math.MaxUint64)
		n := r.uint("length", uint64(len(b)))
		if r.err == nil && n > uint64(len(b)-r.at) {
			r.fail("length", ErrShort)
		}
		if r.err != nil {
			break
		}
		end := r.at + int(n)
		f := headReader{b: b[:end], at: r.at}
		f.field(&h, tag)
		if f.err == nil && f.at != end {
			f.fail("length", ErrRange)
		}
		r.at, r.err = end, f.err
	}
	if r.err == nil && h.Kind == 0 {
		r.fail("kind", ErrShort)
	}
	if r.err != nil {
		return Head{}, r.err
	}
	return h, nil
}

type headReader struct {
	b   []byte
	at  int
	err error
}

func (r *headReader) fail(field string, err error) {
	if r.err == nil {
		r.err = &HeadError{r.at, field, err}
	}
}

func (r *headReader) more() bool { return r.err == nil && r.at < len(r.b) }

func (r *headReader) uint(field string, most uint64) uint64 {
	v, n := binary.Uvarint(r.b[min(r.at, len(r.b)):])
	switch {
	case n == 0:
		r.fail(field, ErrShort)
	case n < 0 || v > most:
		r.fail(field, ErrRange)
	}
	if r.err != nil {
		return 0
	}
	r.at += n
	return v
}

func (r *headReader) int(field string) int64 {
	v, n := binary.Varint(r.b[r.at:])
	switch {
	case n == 0:
		r.fail(field, ErrShort)
	case n < 0:
		r.fail(field, ErrRange)
	}
	if r.err != nil {
		return 0
	}
	r.at += n
	return v
}

func (r *headReader) name(field string) string {
	n := int(r.uint(field, MaxName))
	if r.err == nil && n > len(r.b)-r.at {
		r.fail(field, ErrShort)
	}
	if r.err != nil {
		return ""
	}
	s := string(r.b[r.at : r.at+n])
	r.at += n
	return s
}

func (r *headReader) names(field string) (list []string) {
	for r.more() {
		if len(list) == MaxMembers {
			r.fail(field, ErrRange)
		}
		list = append(list, r.name(field))
	}
	return list
}

// field reads the field of a tag, which is all that is left of r.
func (r *headReader) field(h *Head, tag uint64) {
	switch tag {
	case tagKind:
		h.Kind = Kind(r.uint("kind", math.MaxUint8))
	case tagFrom:
		if len(r.b)-r.at > MaxName {
			r.fail("from", ErrRange)
			return
		}
		h.From, r.at = string(r.b[r.at:]), len(r.b)
	case tagBoot:
		h.Boot = r.uint("boot", math.MaxUint64)
	case tagSeq:
		h.Seq = r.uint("seq", math.MaxUint64)
	case tagSlice:
		h.Slice = uint32(r.uint("slice", MaxSlices))
	case tagStart:
		h.Start = r.int("start")
	case tagEnd:
		h.End = r.int("end")
	case tagPart:
		h.Part = uint32(r.uint("part", math.MaxUint16))
	case tagParts:
		h.Parts = uint32(r.uint("parts", math.MaxUint16))
	case tagReports:
		h.Reports = r.uint("reports", math.MaxUint64)
	case tagRaw:
		for h.Raw = nil; r.more(); {
			if len(h.Raw) == MaxSlices {
				r.fail("raw", ErrRange)
			}
			h.Raw = append(h.Raw, r.uint("raw", math.MaxUint64))
		}
	case tagRevision:
		h.Revision = r.uint("revision", math.MaxUint64)
	case tagSources:
		for h.Sources = nil; r.more(); {
			if len(h.Sources) == MaxMembers {
				r.fail("sources", ErrRange)
			}
			s := Source{From: r.name("sources")}
			s.Boot = r.uint("sources", math.MaxUint64)
			s.Seq = r.uint("sources", math.MaxUint64)
			h.Sources = append(h.Sources, s)
		}
	case tagMissing:
		h.Missing = r.names("missing")
	case tagDead:
		h.Dead = r.names("dead")
	case tagOwners:
		for h.Owners = nil; r.more(); {
			if len(h.Owners) == maxOwners {
				r.fail("owners", ErrRange)
			}
			h.Owners = append(h.Owners, uint32(r.uint("owners", MaxMembers)))
		}
	case tagGeneration:
		h.Generation = r.int("generation")
	case tagOffset:
		h.Offset = r.int("offset")
	case tagSum:
		h.Sum = r.uint("sum", math.MaxUint64)
	default: // of a later version
		r.at = len(r.b)
	}
}
