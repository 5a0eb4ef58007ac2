package sink

import "github.com/hopscope/hopscope/decode"

// Encoded is the output of an [Encoder] that needs no further encoding: one record of a queue.
type Encoded struct {
	Payload []byte        // Encoder.WriteEncoded takes it
	Series  []SeriesCount // points of which series are in it
	Reports uint64        // that are stored with it
}

// WindowEncoder is an Encoder that stores what a window was made of rather than its points.
type WindowEncoder interface {
	Encoder
	// EncodeWindow gives the records of a window, in the order in which they are to be written. It keeps nothing of w,
	// of which Partial and Label are set, and which holds what was counted since the last call alone, also under a label
	// that was there before. Its reports go with the last record, as far as records do not say otherwise.
	EncodeWindow(w *Window) []Encoded
}

// Diverter is an Encoder that takes some reports out of the statistics of their collector, since another program makes these. What it
// takes is counted for its exporter all the same.
type Diverter interface {
	Encoder
	// Open is called once, before the others, with the number of workers and a function that several goroutines may call
	// and that waits for nothing slow.
	Open(workers int, put func(Encoded))
	// Takes reports whether a report is diverted. It depends on the report alone; all workers call it.
	Takes(r *decode.Report) bool
	// Divert copies what it keeps. Worker is the caller, from 0; a worker makes one call at a time. The hash of a flow is
	// set.
	Divert(worker int, reports []*decode.Report)
	// Tick is called about every 100 ms with the time, so that reports do not wait for others for long. It is called beside
	// Divert, by another goroutine, and not beside EndWindow.
	Tick(now int64)
	// OpenWindow is called when a window begins whose label is known to be end, or when that changes, and no call of Divert runs
	// meanwhile: what is diverted from then on counts in that window, whatever its times are. Where it is never called, as for captures, times say
	// which window a report is in.
	OpenWindow(end int64)
	// EndWindow is called when all reports of the window whose label is end were diverted, and before the first one of the next
	// window; it puts all of them before it returns. No call of Divert runs meanwhile. EncodeWindow for the same window follows.
	EndWindow(end int64)
	// MarkWindow is called when that window was handed over, with the label that EndWindow had. What it puts comes behind the window:
	// a reader that has it knows that the collector got that far.
	MarkWindow(end int64)
}
