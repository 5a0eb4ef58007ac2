package decode

import "strconv"

// Reason is the reason for which bytes were rejected. It is an error by itself, so that callers can test a decoding
// error with errors.Is(err, decode.Short).
type Reason uint8

// The closed list of reasons; String returns the spelling used in output and metrics.
const (
	_             Reason = iota
	Short                // less than a fixed header is there
	BadLength            // a length field disagrees with what encloses it
	BadVersion           // a version that is not known here, or that the header before it excludes
	BadType              // a type or protocol number outside of its list
	BadWidth             // the width of a hop's block disagrees with the instruction bitmap
	BadStack             // the stack is no multiple of a hop's block
	BadCount             // a counter disagrees with its items
	BadDigest            // a digest with bits outside of its lanes
	UnknownDomain        // domain specific words whose size is not configured
	Unsupported          // legal, and not read here (fragments, IPv4 options where the format forbids them)
	NotRead              // recognised by its first bytes, and the profile reads no such format
	BadValue             // a value that cannot be, or whose unit is not known
	Repeated             // came before, or is older than what came
	NoRoom               // the table that it belongs to is full
	reasonEnd
)

// NumReasons is one more than the largest Reason: the size of an array with an entry for each.
const NumReasons = int(reasonEnd)

var reasonNames = [NumReasons]string{
	"", "short", "bad-length", "bad-version", "bad-type", "bad-width", "bad-stack", "bad-count", "bad-digest",
	"unknown-domain", "unsupported", "not-read", "bad-value", "repeated", "no-room",
}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "reason(" + strconv.Itoa(int(r)) + ")"
}

// Error makes a Reason usable as the target of errors.Is.
func (r Reason) Error() string { return r.String() }

// Error is the rejection of a field, with its format, offset and reason. It lives inside a [Report] and is valid as
// long as the report is; copy the value to keep it.
type Error struct {
	Field  string // a name from the format's tables: "report_length", "hop_ml"
	Offset int    // of the field, in bytes from the first byte that was handed to the outermost decoder
	Format Format // the format whose header was rejected, which can be inside another's
	Reason Reason
}

// Error returns, for example, "int-md: hop_ml at byte 86: bad-width".
func (e *Error) Error() string {
	return e.Format.String() + ": " + e.Field + " at byte " + strconv.Itoa(e.Offset) + ": " + e.Reason.String()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }
