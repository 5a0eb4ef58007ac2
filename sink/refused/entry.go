package refused

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

// Entry holds the refused points of one record.
type Entry struct {
	Time   time.Time // when
	Sink   string    // the sink that refused it: "influx"
	Target string    // where that was, for display
	Batch  uint64    // of the record
	Part   uint64    // the record's place in the batch
	Groups []Group
}

// Group are points that were refused for one reason.
type Group struct {
	Points  uint64
	Series  []Series
	Reason  string // in the store's words
	Payload []byte // in the encoding of the store's writer
}

// Series is a number of points of one series.
type Series struct {
	Name   string
	Points uint64
}

// Points is the number of refused points.
func (e *Entry) Points() (n uint64) {
	for i := range e.Groups {
		n += e.Groups[i].Points
	}
	return n
}

// Name is the name of the entry's file.
func (e *Entry) Name() string { return fmt.Sprintf("%020d-%06d%s", e.Batch, e.Part, suffix) }

const (
	magic     = "hopsref1"
	headerLen = len(magic) + 8 + 4
	suffix    = ".refused"
	// maxFile bounds what is read of one file. A record is smaller by far.
	maxFile = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged is the error of a file that no collector wrote, or that changed since.
var errDamaged = errors.New("is damaged, or no file of refused points")

func (e *Entry) encode() []byte {
	return seal(state.Append(make([]byte, headerLen, 4096), e.code))
}

func (e *Entry) code(c *state.Coder) {
	at := e.Time.UnixNano()
	if state.Int(c, "time", &at); c.Reading() {
		e.Time = time.Unix(0, at)
	}
	c.Text("store", maxFile, &e.Sink, &e.Target)
	state.Uint(c, "record", &e.Batch, &e.Part)
	sum := uint64(0)
	state.List(c, "groups", maxFile, 4, &e.Groups, func(g *Group, c *state.Coder) {
		g.code(c)
		c.Check("points", g.Points <= math.MaxInt64-sum)
		sum += g.Points
	})
}

func (g *Group) code(c *state.Coder) {
	state.Uint(c, "points", &g.Points)
	state.List(c, "series", maxFile, 2, &g.Series, func(s *Series, c *state.Coder) {
		c.Text("series", maxFile, &s.Name)
		state.Uint(c, "series", &s.Points)
	})
	c.Text("reason", maxFile, &g.Reason)
	if c.Blob("payload", &g.Payload); c.Reading() {
		g.Payload = bytes.Clone(g.Payload)
	}
}

// seal fills in what stands before the body, for which b has room.
func seal(b []byte) []byte {
	copy(b, magic)
	binary.BigEndian.PutUint64(b[len(magic):], uint64(len(b)-headerLen))
	binary.BigEndian.PutUint32(b[len(magic)+8:], crc32.Checksum(b[headerLen:], castagnoli))
	return b
}

// decode reads what encode wrote.
func decode(b []byte) (*Entry, error) {
	if len(b) < headerLen || string(b[:len(magic)]) != magic ||
		binary.BigEndian.Uint64(b[len(magic):]) != uint64(len(b)-headerLen) ||
		binary.BigEndian.Uint32(b[len(magic)+8:]) != crc32.Checksum(b[headerLen:], castagnoli) {
		return nil, errDamaged
	}
	e := &Entry{}
	if err := state.Read("refused points", b[headerLen:], e.code); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return e, nil
}
