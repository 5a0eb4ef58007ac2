package fleet

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"hash/crc64"
	"math"

	"github.com/hopscope/hopscope/inference/state"
)

// HeaderKey is the key of the header, of a record, that holds its [Head].
const HeaderKey = "hopscope"

// Names of topics, without the prefix.
const (
	Windows    = "windows"
	RawReports = "reports"
	Series     = "series"
)

// Kind is the kind of a record.
type Kind uint8

// The kinds of records. Numbers are kept by logs, so they do not change.
const (
	_       Kind = iota
	Part         // windows: what a collector saw of a slice in a window; the value is a compressed partial
	Reports      // reports: reports of a window; the value is a compressed Arrow stream
	Mark         // reports: a collector has sent all reports of a window
	Close        // windows, reports: the window ends here
	Slice        // series: a slice of a window, merged; the value is a compressed partial
	Rows         // series: the hops of a slice as a compressed Arrow stream, for all readers
	Whole        // series: what needs all slices of a window; the value is JSON
	Chunk        // state: a part of a checkpoint
)

// Head identifies a record and its place. A field that a kind does not need is zero.
type Head struct {
	Kind Kind
	// From, Boot and Seq name the record for good. They are the collector's name, a number that differs from run to
	// run, and the number of the record. Seq counts the records of the run in the partition, from 1. A record that was
	// written twice has the same three.
	From  string
	Boot  uint64
	Seq   uint64
	Slice uint32

	Start, End  int64  // of the window, ns since 1970; End is its label
	Part, Parts uint32 // the record is number Part, from 0, of Parts; the last one ends the collector's window
	Reports     uint64 // that the value stands for
	// Total is the number of reports that the run has sent to the partition, with those of this record. If the next
	// Total is larger by more than that record's own reports, the rest was in records in between. It is 0 from senders
	// that do not count them.
	Total uint64
	// Raw, in the last part, is how many reports of the window its sender sent to each partition of reports.
	Raw []uint64

	Revision uint64 // how often the slice or the window was published before
	// Sources are the merged inputs, up to which record. In a part it is the one run for which a worker of reports
	// gives the statistics of exporters, see [Statement].
	Sources    []Source
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

// Version is the first byte of a head. Fields that are added later do not change it: a reader passes over fields
// that it does not know. It changes when an old reader would misunderstand.
const Version = 1

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
	tagTotal
	numTags
)

// A head begins with its version and its kind, by which other programs distinguish records. Then comes the check: the
// CRC-32C of all other bytes, in 4 bytes, least first. Former versions had none, and their fields were in the order of
// their tags. No two bits that flip make one of these of the tag of the check.
const (
	tagCheck = 96
	checkAt  = 1 + 3
	checked  = checkAt + 2 + crc32.Size
)

// Bounds of the fields of a head: a fleet has no more collectors and partitions, and no longer names.
const (
	MaxMembers = 1 << 14
	MaxSlices  = 1 << 10
	MaxName    = 253
	maxOwners  = 1 << 20
)

// Append appends the bytes of h to b. Zero fields take none.
func (h *Head) Append(b []byte) []byte {
	start := len(b)
	b = append(b, Version, tagKind, 1, byte(h.Kind), tagCheck, crc32.Size, 0, 0, 0, 0)
	b = state.Append(b, func(c *state.Coder) {
		for tag := uint64(tagFrom); tag < numTags; tag++ {
			start := c.Tag(uint8(tag))
			c.EndTag(start, h.code(c, tag))
		}
	})
	binary.LittleEndian.PutUint32(b[start+checkAt+2:], headCheck(b[start:]))
	return b
}

// headCheck returns the right check sum of a head.
func headCheck(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:checkAt], castagnoli), castagnoli, b[checked:])
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errCheck is the error of a head that is damaged.
var errCheck = errors.New("does not fit to the other bytes")

// ReadHead reads a head that Append wrote, in this version or one that is declared compatible. Other bytes are refused
// with a [*state.Error].
func ReadHead(b []byte) (Head, error) {
	var h Head
	err := state.Read("head of a record", b, func(c *state.Coder) {
		c.Version(Version, Version)
		var kind [checkAt - 1]byte
		if c.Bytes("kind", kind[:]); kind[0] != tagKind || kind[1] != 1 {
			c.Fail("kind", errCheck)
		}
		// A head identifies the window and the sender of a record. If a damaged one were read, it would be another
		// record's.
		former := len(b) > checkAt && b[checkAt] > tagKind && b[checkAt] <= tagSum
		var check [checked - checkAt]byte
		if !former {
			c.Bytes("check", check[:])
			if c.OK() && (check[0] != tagCheck || check[1] != crc32.Size || binary.LittleEndian.Uint32(check[2:]) != headCheck(b)) {
				c.Fail("check", errCheck)
			}
		}
		for h.Kind = Kind(kind[2]); c.OK() && c.Left() > 0; {
			var tag uint64
			var length int
			state.Uint(c, "tag", &tag)
			state.Uint(c, "length", &length)
			c.Within("length", length, func(c *state.Coder) { h.code(c, tag) })
		}
		if h.Kind == 0 {
			c.Fail("kind", state.ErrShort)
		}
	})
	if err != nil {
		return Head{}, err
	}
	return h, nil
}

// code codes the field of a tag, which is all that c has, and reports whether it is zero.
func (h *Head) code(c *state.Coder, tag uint64) (zero bool) {
	switch tag {
	case tagKind:
		state.Uint(c, "kind", &h.Kind)
		return h.Kind == 0
	case tagFrom:
		c.RestText("from", MaxName, &h.From)
		return h.From == ""
	case tagBoot:
		state.Uint(c, "boot", &h.Boot)
		return h.Boot == 0
	case tagSeq:
		state.Uint(c, "seq", &h.Seq)
		return h.Seq == 0
	case tagSlice:
		state.UintTo(c, "slice", MaxSlices, &h.Slice)
		return h.Slice == 0
	case tagStart:
		state.Int(c, "start", &h.Start)
		return h.Start == 0
	case tagEnd:
		state.Int(c, "end", &h.End)
		return h.End == 0
	case tagPart:
		state.UintTo(c, "part", math.MaxUint16, &h.Part)
		return h.Part == 0
	case tagParts:
		state.UintTo(c, "parts", math.MaxUint16, &h.Parts)
		return h.Parts == 0
	case tagReports:
		state.Uint(c, "reports", &h.Reports)
		return h.Reports == 0
	case tagRaw:
		state.Items(c, "raw", MaxSlices, &h.Raw, func(n *uint64, c *state.Coder) { state.Uint(c, "raw", n) })
		return len(h.Raw) == 0
	case tagRevision:
		state.Uint(c, "revision", &h.Revision)
		return h.Revision == 0
	case tagSources:
		state.Items(c, "sources", MaxMembers, &h.Sources, func(s *Source, c *state.Coder) {
			c.Text("sources", MaxName, &s.From)
			state.Uint(c, "sources", &s.Boot, &s.Seq)
		})
		return len(h.Sources) == 0
	case tagMissing:
		state.Items(c, "missing", MaxMembers, &h.Missing, func(s *string, c *state.Coder) { c.Text("missing", MaxName, s) })
		return len(h.Missing) == 0
	case tagDead:
		state.Items(c, "dead", MaxMembers, &h.Dead, func(s *string, c *state.Coder) { c.Text("dead", MaxName, s) })
		return len(h.Dead) == 0
	case tagOwners:
		state.Items(c, "owners", maxOwners, &h.Owners, func(i *uint32, c *state.Coder) { state.UintTo(c, "owners", MaxMembers, i) })
		return len(h.Owners) == 0
	case tagGeneration:
		state.Int(c, "generation", &h.Generation)
		return h.Generation == 0
	case tagOffset:
		state.Int(c, "offset", &h.Offset)
		return h.Offset == 0
	case tagSum:
		state.Uint(c, "sum", &h.Sum)
		return h.Sum == 0
	case tagTotal:
		state.Uint(c, "total", &h.Total)
		return h.Total == 0
	}
	var later []byte // a field of a later version
	c.Rest(&later)
	return true
}
