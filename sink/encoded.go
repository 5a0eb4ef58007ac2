package sink

import "github.com/hopscope/hopscope/decode"

// Encoded is the output of an [Encoder] that needs no further encoding: one record of a queue.
type Encoded struct {
	Payload []byte        // Encoder.WriteEncoded takes it
	Series  []SeriesCount // points of which series are in it
	Reports uint64        // that are stored with it
}

// WindowEncoder is an Encoder that stores the partial window rather than its points.
type WindowEncoder interface {
	Encoder
	// EncodeWindow returns the records of a window, in the order in which they are to be written. Partial and Label
	// of w are set. w holds only what was counted since the last call, also under a repeated label. EncodeWindow
	// retains nothing of w. The reports of w go with the last record, as far as records do not say otherwise.
	EncodeWindow(w *Window) []Encoded
}

// Diverter is an Encoder that takes some reports out of the statistics of their collector, because another program
// computes these. Diverted reports still count for their exporter.
type Diverter interface {
	Encoder
	// Open is called once, before the other methods, with the number of workers. put may be called by several
	// goroutines and waits for nothing slow.
	Open(workers int, put func(Encoded))
	// Takes reports whether a report is diverted. It depends on the report alone; all workers call it.
	Takes(r *decode.Report) bool
	// Divert takes reports, and copies what it keeps of them. Worker is the number of the caller, from 0; a worker
	// makes one call at a time. The hash of the flow is set in each report.
	Divert(worker int, reports []*decode.Report)
	// Tick is called about every 100 ms with the time, so that reports do not wait long for a batch to fill. It runs
	// beside Divert, in another goroutine, and not beside EndWindow.
	Tick(now int64)
	// OpenWindow is called when a window begins whose label is known to be end, or when that label changes. No call
	// of Divert runs meanwhile. Reports that are diverted from then on count in that window, whatever their times. If
	// it is never called, as for captures, the time of a report determines its window.
	OpenWindow(end int64)
	// EndWindow is called when all reports of the window with label end were diverted, before the first one of the
	// next window. It puts all of them before it returns. No call of Divert runs meanwhile. EncodeWindow for the same
	// window follows.
	EndWindow(end int64)
	// MarkWindow is called after the window was handed over, with the label that EndWindow had. It puts its records
	// behind the window: a reader of them knows that the collector got that far.
	MarkWindow(end int64)
}
