package state

import (
	"errors"
	"fmt"
)

// The reasons for which bytes are refused. A package may have further ones.
var (
	ErrShort   = errors.New("is cut short")
	ErrVersion = errors.New("is of a version that this program does not know")
	ErrRange   = errors.New("is out of range")
)

// Error is the first thing that is wrong with bytes that were read.
type Error struct {
	What   string // the state: "state of a tracker"
	Field  string
	Offset int // of the field, in bytes
	Err    error
}

// Error returns, for example, "state of a tracker: width at byte 30: is out of range".
func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s at byte %d: %v", e.What, e.Field, e.Offset, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
