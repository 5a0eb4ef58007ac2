package fleet

import (
	"errors"
	"fmt"
)

// EventKind is the outcome of a record.
type EventKind uint8

// The outcomes of a record.
const (
	Nothing   EventKind = iota // it was taken, or is of no matter here
	Closed                     // a window closed
	Late                       // it belongs to a window that is closed: that one is to be made again
	Duplicate                  // it was written twice
	Conflict                   // its number was given to another record: the run it names is there twice and draws a new boot
	Unknown                    // its kind is unknown to this version
	Refused                    // it is not right, or there is no room for it
)

var eventNames = [...]string{"nothing", "closed", "late", "duplicate", "conflict", "unknown", "refused"}

func (k EventKind) String() string { return eventNames[min(int(k), len(eventNames)-1)] }

// The reasons for which a record is refused.
var (
	errLabel   = errors.New("its label is not the end of a window")
	errPart    = errors.New("its number among the parts of its window cannot be")
	errName    = errors.New("its sender has no name, or too long a one")
	errSlice   = errors.New("it belongs to another slice")
	ErrFuture  = errors.New("its window is too far in the future: too many are open")
	ErrOld     = errors.New("its window is older than corrections go back")
	errMembers = errors.New("there are more collectors than a fleet has")
	ErrFull    = errors.New("its window has more bytes than it may have")
	ErrGone    = errors.New("records of the window are not in the log any more")
	errBehind  = errors.New("it is so far behind others of its run that it may be a copy of one that came")
	errAhead   = errors.New("it closes a window that no collector can be in")
)

// LeftOut reports whether a record that was refused for a reason could be read, and belongs to its sender. It came too
// late, or there was no room for it.
func LeftOut(err error) bool {
	for _, reason := range []error{ErrOld, ErrFull, ErrFuture, errMembers, errBehind} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// recordError is the error of a record that was refused, with its place and the reason.
type recordError struct {
	Offset  int64
	From    string
	End     int64
	Err     error
	Reports uint64 // that it stands for, where it was taken before
}

func (e *recordError) Error() string {
	return fmt.Sprintf("record of %q at offset %d for the window to %d: %v", e.From, e.Offset, e.End, e.Err)
}

// Unwrap returns the reason.
func (e *recordError) Unwrap() error { return e.Err }

// Event is the result of a record.
type Event struct {
	Kind EventKind
	From string // of the record
	Boot uint64
	End  int64 // label of the window that is meant

	// Evicted are the reports of records that were taken before and gave way to this one, by the label of their window.
	Evicted map[int64]uint64

	Closed *Merged      // by a [Merger], with Closed: the window
	Whole  []*Assembled // by an [Assembler]: the windows that are complete now, the earliest first
}
