package arrow

import (
	"errors"
	"fmt"
)

// The reasons for which a stream is refused.
var (
	ErrShort       = errors.New("is cut short")
	ErrRange       = errors.New("points out of its bounds")
	ErrMissing     = errors.New("is missing")
	ErrType        = errors.New("has another type than this program knows")
	ErrVersion     = errors.New("needs a later version of this program")
	ErrUnsupported = errors.New("is of a kind that this program does not read")
	ErrTooLarge    = errors.New("is larger than any that is written")
)

// Error is a failure to read a stream, with its offset in bytes, its element and its reason.
type Error struct {
	Offset int
	Field  string // a column, or a part of the stream
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("arrow stream of reports: %s at byte %d %v", e.Field, e.Offset, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
