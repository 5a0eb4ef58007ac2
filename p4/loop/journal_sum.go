package loop

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hopscope/hopscope/planner/control"
)

// The last key of a line is its checksum: CRC-32C of all bytes before the comma, as eight hexadecimal digits. Lines of earlier versions have
// none, and are read unchecked as long as no line before them in the file has one.
const (
	sumKey = `,"crc":"`
	sumEnd = "\"}\n"
	sumLen = len(sumKey) + 8 + len(sumEnd)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Damage is a line of a journal that is not believed.
type Damage struct {
	File   string
	Line   int   // from 1
	Offset int64 // of its first byte in the file
	Err    error
}

func (d *Damage) Error() string {
	return fmt.Sprintf("%s, line %d (byte %d of the file): %v", d.File, d.Line, d.Offset, d.Err)
}

// Unwrap returns the reason.
func (d *Damage) Unwrap() error { return d.Err }

var errNoSum = errors.New("it has no checksum, and lines before it have")

// sumError is a line whose checksum is another one.
type sumError struct{ bit int } // that makes it right when it is flipped, from the first of the line; -1 for none

func (e *sumError) Error() string {
	if e.bit < 0 {
		return "its checksum is another one"
	}
	return fmt.Sprintf("its checksum is another one: bit %d of its byte %d is flipped", e.bit%8, e.bit/8)
}

// appendLine appends a record, its checksum, and the end of the line.
func appendLine(b []byte, r *control.Record) []byte {
	from := len(b)
	b = appendRecord(b, r)
	b = b[:len(b)-1] // its brace
	sum := crc32.Checksum(b[from:], castagnoli)
	b = append(b, sumKey...)
	return append(appendSum(b, sum), sumEnd...)
}

func appendSum(b []byte, sum uint32) []byte {
	var big [4]byte
	binary.BigEndian.PutUint32(big[:], sum)
	return hex.AppendEncode(b, big[:])
}

// lineSum is the result of checking a line by its checksum.
type lineSum uint8

const (
	noSum lineSum = iota
	checkedLine
	wrongSum
)

// parseLine reads a line with its end.
func parseLine(line []byte) (r control.Record, sum lineSum, err error) {
	if sum, err = checkLine(line); err == nil {
		err = json.Unmarshal(line, &r)
	}
	r.Unchecked = sum == noSum
	return r, sum, err
}

func checkLine(line []byte) (lineSum, error) {
	at := len(line) - sumLen
	if at < 0 || !bytes.HasPrefix(line[at:], []byte(sumKey)) || !bytes.HasSuffix(line, []byte(sumEnd)) {
		return noSum, nil
	}
	sum := crc32.Checksum(line[:at], castagnoli)
	text := line[at+len(sumKey) : at+len(sumKey)+8]
	if bytes.Equal(text, appendSum(nil, sum)) {
		return checkedLine, nil
	}
	var want [4]byte
	if _, err := hex.Decode(want[:], text); err != nil {
		return wrongSum, &sumError{-1}
	}
	return wrongSum, &sumError{flipped(sum^binary.BigEndian.Uint32(want[:]), at)}
}

// flipped returns the one bit, of a text of some bytes, whose flip changes a checksum by diff; -1 for none.
func flipped(diff uint32, length int) int {
	var by [8]uint32 // change by each bit of the byte that is looked at
	for k := range by {
		by[k] = castagnoli[1<<k]
	}
	for at := length - 1; at >= 0; at-- {
		for k := range by {
			if by[k] == diff {
				return 8*at + k
			}
			by[k] = castagnoli[byte(by[k])] ^ by[k]>>8
		}
	}
	return -1
}
