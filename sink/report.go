package sink

import (
	"context"

	"github.com/hopscope/hopscope/decode"
)

// ReportWriter receives all reports one by one, before anything is concluded from them.
type ReportWriter interface {
	// Start is called before the first report, Close after the last one. Close writes the remaining reports until ctx
	// ends.
	Start()
	Close(ctx context.Context) error
	// AppendReports copies what it keeps. Several goroutines call it at the same time. The policy of the constructor
	// decides whether it waits for room, or drops and counts.
	AppendReports(reports []*decode.Report)
	// Counts returns the reports taken and dropped so far.
	Counts() (taken, dropped uint64)
}

// WindowWriter receives every window with its findings as soon as it has ended, in order, from one goroutine. It must
// not wait for anything slow. It may keep the window and must not change it.
type WindowWriter interface {
	Name() string // a word for metrics and logs
	WriteWindow(ctx context.Context, w *Window) error
}

// PartialWriter is a [WindowWriter] that takes windows as the partial windows that they were made of: AddPartial is called in place of
// WriteWindow, and Window.Partial is set in its call. A window whose label comes again has only what is new.
type PartialWriter interface {
	WindowWriter
	AddPartial(ctx context.Context, w *Window) error
}
