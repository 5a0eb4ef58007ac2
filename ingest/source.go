package ingest

import "context"

// Source produces batches of frames. A source is built inert; Run opens nothing that New did not announce.
type Source interface {
	// Run reads until ctx ends, the input ends, or reading fails, and calls handle for every batch. The batch and its
	// bytes belong to the source again when handle returns. Handle is called from one goroutine per worker; worker
	// counts from 0 to Workers()-1. An end of input or of ctx is no error.
	Run(ctx context.Context, handle func(worker int, b *Batch)) error
	// Workers is the number of goroutines that call handle.
	Workers() int
	// Stats may be called at any time.
	Stats() Stats
}
