package p4rt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/hopscope/hopscope/p4"
)

// Op is the operation on an entry.
type Op uint8

// The kinds of updates.
const (
	Insert Op = 1 + iota // the entry must not be there
	Modify               // it must be there; default actions always are
	Delete               // its action does not matter; a default action is set back to that of the program
)

func (o Op) String() string {
	switch o {
	case Insert:
		return "insert"
	case Modify:
		return "modify"
	case Delete:
		return "delete"
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// Update is a change of one entry.
type Update struct {
	Op    Op
	Entry p4.Entry
}

// Counting is implemented by installers that read the counters of a switch.
type Counting interface {
	// Counters reads all cells of a counter of the program, in the order of their indices.
	Counters(ctx context.Context, name string) ([]counter, error)
}

// Installer keeps the entries of one switch. It is safe for concurrent use.
type Installer interface {
	// Write carries out updates, in an order in which none takes effect before those that it depends on. Additions and
	// changes come first, in the order of the tables, then deletions, in the reverse order. Two updates of one key in
	// one call are refused. After a refused update, later ones in that order are not tried.
	//
	// The slice errs has an error for each update, nil where that succeeded; it is nil if all did. A non-nil err is
	// about the whole call: the switch is gone, or another controller is primary. In that case errs, if not nil, has
	// the outcome of each update as far as it is known. An [ErrUnknown] there is of an update that may have been
	// carried out or not.
	Write(ctx context.Context, updates []Update) (errs []error, err error)

	// Read returns the entries of tables, or of all tables if none is named. The default action of a table comes last.
	Read(ctx context.Context, tables ...string) ([]p4.Entry, error)
}

// Why an update or a request did not work. Entries that are refused for what they are have the errors of package p4:
// [p4.ErrInvalid], [p4.ErrFull], [p4.ErrExists] and [p4.ErrNotFound].
var (
	ErrNotPrimary  = errors.New("another controller is primary for the switch")
	ErrUnreachable = errors.New("the switch cannot be reached")
	ErrUnknown     = errors.New("whether the switch carried it out is not known: read back")
	ErrSkipped     = errors.New("not tried, because an update before it was refused")
	errTwice       = errors.New("the key is in two updates")
	ErrElection    = errors.New("another controller has the same election id")
	ErrClosed      = errors.New("the client is closed")
)

// PipelineError is a switch that does not run the program that the controller was made for.
type PipelineError struct {
	Want, Have uint64 // cookies
	None       bool   // it has no program at all
}

func (e *PipelineError) Error() string {
	if e.None {
		return fmt.Sprintf("the switch has no pipeline, want that of cookie %#016x: commit it", e.Want)
	}
	return fmt.Sprintf("the switch has the pipeline of cookie %#016x, want %#016x: commit the right one, or use the controller of that version", e.Have, e.Want)
}

// switchError is the error of a switch for an update or request that it refuses. It is one of the errors of package p4
// as well, where its code has such a meaning.
type switchError struct {
	Code    codes.Code // the canonical one
	Message string     // at most 300 bytes
	Space   string     // of Number, such as "ALL-sswitch-p4org"
	Number  int32      // of the target; 0 for none

	full bool // the table was found to be full
}

func (e *switchError) Error() string {
	s := "the switch refuses: " + e.Code.String()
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.full {
		s += ": the table is full"
	}
	if e.Number != 0 {
		s += fmt.Sprintf(" (%s %d)", e.Space, e.Number)
	}
	return s
}

// Unwrap returns the meaning of the code.
func (e *switchError) Unwrap() error {
	if e.full {
		return p4.ErrFull
	}
	switch e.Code {
	case codes.ResourceExhausted:
		return p4.ErrFull
	case codes.AlreadyExists:
		return p4.ErrExists
	case codes.NotFound:
		return p4.ErrNotFound
	case codes.InvalidArgument, codes.OutOfRange, codes.Unimplemented:
		return p4.ErrInvalid
	case codes.PermissionDenied:
		return ErrNotPrimary
	}
	return nil
}

// answerError is an invalid answer of a switch. Nothing of the answer was used.
type answerError struct{ What string }

func (e *answerError) Error() string {
	return "the switch gave an answer that makes no sense: " + e.What
}

func badAnswer(format string, args ...any) error { return &answerError{fmt.Sprintf(format, args...)} }

// cut truncates text of a switch, so that it cannot fill a log.
func cut(s string) string {
	const most = 300
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..." // not within a character
	}
	return s
}
