package sink

import "context"

// Batch is what is written at once: the points of one window or a part of it.
type Batch struct {
	Points []Point
	// Reports is the number of reports that the points stand for, for the ledger. When a window is cut into several
	// batches one of them carries the number.
	Reports uint64
}

// Writer stores batches. Write returns nil once the batch is stored as safely as the store can promise. An error for
// which [Permanent] holds says that trying again is useless; any other may be tried again with the same batch.
// A Writer is used from one goroutine.
type Writer interface {
	Name() string // "influx", "parquet": a word for metrics and logs
	Write(ctx context.Context, b *Batch) error
	Close() error
}

// PermanentError wraps an error that trying again will not mend: the store read the batch and refused it.
type PermanentError struct {
	Err      error
	Rejected int // points refused; the others of the batch were stored
}

func (e *PermanentError) Error() string { return e.Err.Error() }

// Unwrap gives the store's own error.
func (e *PermanentError) Unwrap() error { return e.Err }
