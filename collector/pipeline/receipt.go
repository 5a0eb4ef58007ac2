package pipeline

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/ingest"
)

// The windows of a live collector are cut by the time at which this machine received a report, not by when a worker
// handled it. A window that ends at a label holds what was received before it. Workers therefore hold back reports of
// the next window. The goroutine that ends a window asks the sources whether they have handed over everything before.
// It waits only a little while for the answers. Later reports count in the window that is open then, and in a metric.
//
// This applies to sources that are an [ingest.Prompter]. Frames of others, such as captures that are read while they
// grow, count when they come.

const (
	// receiptGrace is the time between the end of a window and the question to the sources. A datagram gets its time
	// before it is in the socket's queue.
	receiptGrace = time.Millisecond
	// receiptPatience bounds the wait for the answers, beside half a window. They take microseconds, unless the machine is too busy
	// to let a worker run.
	receiptPatience = time.Second
	// HeldReports is the most that a worker holds back. It waits when that is reached, and its socket buffers.
	HeldReports = 2048
	// heldPatience bounds that wait, beside a tenth of a window: a report counted in the wrong window is better than
	// a dropped one.
	heldPatience = 100 * time.Millisecond
)

// byReceipt is the border between windows by the time of receipt.
type byReceipt struct {
	// Guarded by border; the goroutine that ends windows writes them, and may read them without.
	edge  int64         // where the open window ends
	label int64         // under which it will be kept
	since int64         // where it began; the least time if that is unknown
	ended chan struct{} // closed when the border has moved

	length    int64         // of a window
	early     chan struct{} // a worker holds something back for the first time in this window
	answers   chan struct{} // of a worker
	misplaced atomic.Uint64 // reports that count in another window than they belong to
}

// receiptWorker is a worker's part.
type receiptWorker struct {
	on             bool         // its frames have the time of receipt
	oldest, newest int64        // of the frames of the present batch
	until          atomic.Int64 // all was handed over that was received before

	// Guarded by border.
	held decode.LazyBatch // of the next window
	rest decode.LazyBatch // memory
}

func newByReceipt(length time.Duration) byReceipt {
	return byReceipt{
		edge: math.MaxInt64, since: math.MinInt64, ended: make(chan struct{}), length: int64(length),
		early: make(chan struct{}, 1), answers: make(chan struct{}, 1),
	}
}

// sortOut holds back those reports in w.in that belong to the next window, and counts those that come too late. It is
// called with the border shared, and shares it again when it had to wait.
func (p *Pipeline) sortOut(w *Worker) {
	r := &p.receipt
	if w.receipt.newest >= r.edge {
		select {
		case r.early <- struct{}{}:
		default:
		}
		if len(w.receipt.held.List)+len(w.in.List) > HeldReports && p.belongsNext(w.receipt.newest) {
			p.awaitEnd()
		}
	}
	wrong, room := uint64(0), HeldReports-len(w.receipt.held.List)
	w.in.Scatter(func(x *decode.Lazy) *decode.LazyBatch {
		switch {
		case x.Time >= r.since && x.Time < r.edge:
		case room > 0 && p.belongsNext(x.Time):
			room--
			return &w.receipt.held
		default:
			wrong++
		}
		return &w.receipt.rest
	})
	w.in, w.receipt.rest = w.receipt.rest, w.in
	if wrong > 0 {
		r.misplaced.Add(wrong)
	}
}

// belongsNext reports whether a time is in the next window. Times behind that are of a clock that was set, and nothing to
// wait for.
func (p *Pipeline) belongsNext(t int64) bool {
	r := &p.receipt
	return t >= r.edge && uint64(t)-uint64(r.edge) < uint64(r.length)
}

// awaitEnd releases the border until it has moved, for a short time only.
func (p *Pipeline) awaitEnd() {
	ended := p.receipt.ended
	p.border.RUnlock()
	defer p.border.RLock()
	timer := time.NewTimer(min(heldPatience, time.Duration(p.receipt.length)/10))
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// openNext moves the border to the end of the next window, and delivers the reports held back for it. No other
// goroutine may deliver meanwhile.
func (p *Pipeline) openNext(end *End) {
	since := int64(math.MinInt64) // the clock was set
	if end.Label == p.receipt.edge {
		since = end.Label
	}
	p.setEdge(since, end.Next, end.NextLabel)
}

// MoveEdge sets the end of the open window and the label under which it will be kept. It is called when the clock was
// set, or when reception has ended.
func (p *Pipeline) MoveEdge(edge, label int64) {
	p.border.Lock()
	defer p.border.Unlock()
	p.setEdge(math.MinInt64, edge, label)
}

func (p *Pipeline) setEdge(since, edge, label int64) {
	r := &p.receipt
	r.since, r.edge, r.label = since, edge, label
	p.openDiversion()
	close(r.ended)
	r.ended = make(chan struct{})
	for _, w := range p.workers {
		p.deliver(w, &w.receipt.held)
		w.receipt.held.Reset()
	}
}

// Edge returns the end of the open window, for reports that were received here. The goroutine that ends windows calls it.
func (p *Pipeline) Edge() int64 { return p.receipt.edge }

// Open reports whether the open window ends at an edge and will be kept under a label. The goroutine that ends windows calls it.
func (p *Pipeline) Open(edge, label int64) bool {
	return p.receipt.edge == edge && p.receipt.label == label
}

// StartEdge sets where the first window ends, and its label, before anything is received.
func (p *Pipeline) StartEdge(edge, label int64) {
	p.receipt.edge, p.receipt.label = edge, label
	p.openDiversion()
}

// Early returns a value when a report of the next window comes for the first time in this one.
func (p *Pipeline) Early() <-chan struct{} { return p.receipt.early }

// Misplaced counts reports that count in another window than they belong to.
func (p *Pipeline) Misplaced() uint64 { return p.receipt.misplaced.Load() }

// answered notes that a worker has handed over all that was received before a time.
func (p *Pipeline) answered(w *Worker, until int64) {
	w.receipt.until.Store(until)
	select {
	case p.receipt.answers <- struct{}{}:
	default:
	}
}

// Gather waits, for a short time only, until all workers have handed over what was received before the end of a
// window.
func (p *Pipeline) Gather(end int64) {
	waiting := func() (any bool) {
		for _, w := range p.workers {
			any = any || w.receipt.on && w.receipt.until.Load() < end
		}
		return any
	}
	for _, w := range p.workers {
		// An answer may be from before the clock was set back. A source that has ended has answered for all times.
		if t := w.receipt.until.Load(); t != math.MaxInt64 {
			w.receipt.until.CompareAndSwap(t, math.MinInt64)
		}
	}
	if !waiting() {
		return
	}
	time.Sleep(receiptGrace)
	for _, s := range p.sources {
		if a, ok := s.Source.Source.(ingest.Prompter); ok {
			a.Prompt(end)
		}
	}
	timer := time.NewTimer(min(receiptPatience, time.Duration(p.receipt.length)/2))
	defer timer.Stop()
	for waiting() {
		select {
		case <-p.receipt.answers:
		case <-timer.C:
			return
		}
	}
}
