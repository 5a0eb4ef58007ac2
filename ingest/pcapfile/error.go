package pcapfile

import (
	"errors"
	"strconv"
)

// What can be wrong with a capture; the Err of an [*Error], unless reading itself failed.
var (
	errFormat    = errors.New("not a capture")     // neither pcap nor pcapng, or a version that is not read here
	ErrTruncated = errors.New("truncated capture") // the file ends inside of a record
	errDamaged   = errors.New("damaged capture")   // a record that contradicts itself, or is absurdly long
)

// Error is the place at which a capture stopped being readable. Everything before it has been handed over.
type Error struct {
	File   string
	Record uint64 // number that the frame would have had, from 1; 0 in the header of the file
	Offset int64  // of the record or block, in bytes from the start of the (decompressed) capture
	Detail string // what is wrong there; empty when reading failed
	Err    error  // ErrFormat, ErrTruncated, ErrDamaged, or what the operating system said
}

// Error returns, for example, "probes.pcap: record 17 at byte 4312: file ends after 20 of 76 bytes".
func (e *Error) Error() string {
	s := e.File + ": "
	if e.Record > 0 {
		s += "record " + strconv.FormatUint(e.Record, 10) + " at "
	}
	s += "byte " + strconv.FormatInt(e.Offset, 10) + ": "
	if e.Detail != "" {
		return s + e.Detail
	}
	return s + e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
