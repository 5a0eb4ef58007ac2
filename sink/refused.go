package sink

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/hopscope/hopscope/inference/state"
)

// RefusedEntry holds the refused points of one record of a spool. They stay until an operator has fixed the cause and
// sends them again, or until their folder is full. Each entry is one file, named by the batch and the place of the
// record in it:
//
//	00000001789012345678-000000.refused
//
// A record that is refused again after a crash thus replaces its former file. A file is the magic "hopsref1", the
// length of the body in eight bytes, its CRC-32C in four, and the body:
//
//	time<varint, ns> sink<string> target<string> batch<uvarint> part<uvarint> groups<uvarint> { group }
//	group:  points<uvarint> series<uvarint> { name<string> points<uvarint> } reason<string> payload<string>
//	string: length<uvarint> bytes
//
// It is written under another name, forced to the disk and renamed, so that it is there whole or not at all.
type RefusedEntry struct {
	Time   time.Time // when
	Sink   string    // the sink that refused it: "influx"
	Target string    // where that was, for display
	Batch  uint64    // of the record
	Part   uint64    // the record's place in the batch
	Groups []Refusal
}

// Points is the number of refused points.
func (e *RefusedEntry) Points() (n uint64) {
	for i := range e.Groups {
		n += e.Groups[i].Points
	}
	return n
}

// Name is the name of the entry's file.
func (e *RefusedEntry) Name() string {
	return fmt.Sprintf("%020d-%06d%s", e.Batch, e.Part, refusedSuffix)
}

const (
	refusedMagic     = "hopsref1"
	refusedHeaderLen = len(refusedMagic) + 8 + 4
	refusedSuffix    = ".refused"
	// maxRefusedFile bounds the read of one file. A record is far smaller.
	maxRefusedFile = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errRefusedDamaged is the error of a file that no collector wrote, or that changed since.
var errRefusedDamaged = errors.New("is damaged, or no file of refused points")

func (e *RefusedEntry) encode() []byte {
	return sealRefused(state.Append(make([]byte, refusedHeaderLen, 4096), e.code))
}

func (e *RefusedEntry) code(c *state.Coder) {
	at := e.Time.UnixNano()
	if state.Int(c, "time", &at); c.Reading() {
		e.Time = time.Unix(0, at)
	}
	c.Text("store", maxRefusedFile, &e.Sink, &e.Target)
	state.Uint(c, "record", &e.Batch, &e.Part)
	sum := uint64(0)
	state.List(c, "groups", maxRefusedFile, 4, &e.Groups, func(g *Refusal, c *state.Coder) {
		g.code(c)
		c.Check("points", g.Points <= math.MaxInt64-sum)
		sum += g.Points
	})
}

func (g *Refusal) code(c *state.Coder) {
	state.Uint(c, "points", &g.Points)
	state.List(c, "series", maxRefusedFile, 2, &g.Series, func(s *SeriesCount, c *state.Coder) {
		c.Text("series", maxRefusedFile, &s.Series)
		state.Uint(c, "series", &s.Points)
	})
	c.Text("reason", maxRefusedFile, &g.Reason)
	if c.Blob("payload", &g.Payload); c.Reading() {
		g.Payload = bytes.Clone(g.Payload)
	}
}

// sealRefused fills in the head before the body, for which b has room.
func sealRefused(b []byte) []byte {
	copy(b, refusedMagic)
	binary.BigEndian.PutUint64(b[len(refusedMagic):], uint64(len(b)-refusedHeaderLen))
	binary.BigEndian.PutUint32(b[len(refusedMagic)+8:], crc32.Checksum(b[refusedHeaderLen:], castagnoli))
	return b
}

// decodeRefused reads what encode wrote.
func decodeRefused(b []byte) (*RefusedEntry, error) {
	if len(b) < refusedHeaderLen || string(b[:len(refusedMagic)]) != refusedMagic ||
		binary.BigEndian.Uint64(b[len(refusedMagic):]) != uint64(len(b)-refusedHeaderLen) ||
		binary.BigEndian.Uint32(b[len(refusedMagic)+8:]) != crc32.Checksum(b[refusedHeaderLen:], castagnoli) {
		return nil, errRefusedDamaged
	}
	e := &RefusedEntry{}
	if err := state.Read("refused points", b[refusedHeaderLen:], e.code); err != nil {
		return nil, fmt.Errorf("%w: %w", errRefusedDamaged, err)
	}
	return e, nil
}
