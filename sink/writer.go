package sink

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"github.com/hopscope/hopscope/inference"
)

// Batch is the unit of a write: the points of one window or a part of it.
type Batch struct {
	Points []Point
	// Reports is the number of reports behind the points, for the ledger. When a window is cut into several batches,
	// one of them carries the number.
	Reports uint64
}

// Writer stores batches. Write returns nil once the batch is stored as safely as the store can promise. After an error
// for which [Permanent] holds, trying again is useless. After any other error the same batch may be tried again. A
// Writer is used from one goroutine.
type Writer interface {
	Name() string // "influx", "parquet": a word for metrics and logs
	Write(ctx context.Context, b *Batch) error
	Close() error
}

// Opened returns the result of a store's constructor as a Writer, which is nil after an error.
func Opened[W Writer](w W, err error) (Writer, error) {
	if err != nil {
		return nil, err
	}
	return w, nil
}

// PermanentError wraps an error that trying again will not mend: the store read the batch and refused points of it. All
// others were stored.
type PermanentError struct {
	Err      error
	Rejected int // points refused; 0 means all of the batch
	// Refused lists the refused points, to keep them and try again by hand. A writer that leaves it out cannot distinguish them from
	// the others.
	Refused []Refusal
}

// ErrNothing is returned by a Writer for a batch that holds nothing for it. The batch counts as stored. The store's
// state does not follow from it.
var ErrNothing = errors.New("sink: nothing of the batch is for this store")

// Refusal is a group of points that a store refused for one reason.
type Refusal struct {
	Payload []byte        // the points, in the encoding of the writer; WriteEncoded takes it
	Points  uint64        // in Payload
	Series  []SeriesCount // of these
	Reason  string        // in the words of the store
}

// SeriesCount is a number of points of one series.
type SeriesCount struct {
	Series string // the measurement
	Points uint64
}

// AddSeries adds n points of a series to counts.
func AddSeries(counts []SeriesCount, series string, n uint64) []SeriesCount {
	for i := range counts {
		if counts[i].Series == series {
			counts[i].Points += n
			return counts
		}
	}
	return append(counts, SeriesCount{series, n})
}

func (e *PermanentError) Error() string { return e.Err.Error() }

// Unwrap returns the store's own error.
func (e *PermanentError) Unwrap() error { return e.Err }

// Permanent reports whether err, or what it wraps, is a [PermanentError].
func Permanent(err error) bool {
	_, ok := errors.AsType[*PermanentError](err)
	return ok
}

// RetryError wraps an error that may pass, with what the store reported about it.
type RetryError struct {
	Err   error
	After time.Duration // the store asked not to be tried sooner; 0 where it did not say
	// Config is set when the cause is in the settings of hopscope or of the store: a wrong token, organisation or
	// bucket. Trying again helps only after an operator has fixed it, and an operator should be notified.
	Config bool
	// Progress is set when this try has done a part of the work, which the next one continues.
	Progress bool
	// Doubt is set when the cause may be the batch rather than the store, so that another batch may pass now.
	Doubt bool
	// Rest holds the points still to be written, when others of the batch were stored or refused; Refused are the
	// latter. A nil Rest means all of the batch.
	Rest    *Refusal
	Refused []Refusal
}

func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap returns the store's own error.
func (e *RetryError) Unwrap() error { return e.Err }

// NeedsPerson reports whether only an operator can fix an error of the file system, such as a directory that is
// missing or not writable. A full disk is not such an error.
func NeedsPerson(err error) bool {
	for _, e := range []error{fs.ErrPermission, fs.ErrNotExist, syscall.EROFS, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENAMETOOLONG} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Encoder is a Writer whose batches can be kept as bytes, in memory or in a spool, and written later, possibly by
// another process.
type Encoder interface {
	Writer
	// Encode appends b to dst. Points that cannot be encoded are left out, and left counts them. It is safe for use
	// beside WriteEncoded.
	Encode(dst []byte, b *Batch) (out []byte, left uint64)
	// WriteEncoded stores what Encode made, with the same promises and errors as Write.
	WriteEncoded(ctx context.Context, payload []byte) error
}

// Parter is an Encoder that can take points out of a payload, so that one which the store chokes on does not stop the
// others. Points with the same key have to be written in their order.
type Parter interface {
	Encoder
	// Part calls held with the key of each point of a payload, and divides the points by its answer. One that has no
	// points has no payload. It is used beside Encode and not beside the writing methods.
	Part(payload []byte, held func(key string) bool) (behind, rest Refusal, err error)
}

// Placer is a Parter whose keys are places of its store, such as the partitions of a log, each of which may be away
// alone. Points for a place that is away wait, in their order. Points for other places are written meanwhile. A
// payload is written to all its places at once.
type Placer interface {
	Parter
	// Places is the number of places.
	Places() int
}

// Keyed is a Writer without an encoding of its own that defines which points must be written in their order. Without
// it these are the points of one time.
type Keyed interface {
	Writer
	Key(p *Point) string
}

// Stager is a Writer that gathers batches and stores many of them at once, as one that writes files does. Its Write
// returns nil when it took the batch over; the batch is stored later, in the order of the writes.
type Stager interface {
	Writer
	// Stored is the number of batches, of all that Write took, that are durably stored. A batch of which Write
	// refused only some points counts as taken, one of which it refused all does not.
	Stored() uint64
	// Tick stores the points that are due at now. It is called about every second, between writes.
	Tick(ctx context.Context, now time.Time) error
	// Flush stores everything.
	Flush(ctx context.Context) error
}

// Witness is a Writer that returns which runs of a collector wrote to its store. Two collectors that write under one
// name replace each other's points, which no other answer of the store shows.
type Witness interface {
	Writer
	// Runs returns, for each run that wrote points of measurement collector for an instance after since, the latest
	// time of such a point. It is safe for use beside the other methods. An error for which [Permanent] holds means
	// that this store or these settings do not support the query; any other may pass.
	Runs(ctx context.Context, instance string, since time.Time) (map[string]time.Time, error)
}

// Limited is a writer of windows or points whose own settings limit what it takes. Limits lists all of them, also
// those that left nothing out. It may be called at any time.
type Limited interface{ Limits() []inference.Limit }

// Remover is a writer of points that removes what it stored, as by the number of its files. Removed counts since the start of the
// program, and may be called at any time.
type Remover interface {
	Removed() (files, points uint64)
}
