package pipeline

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/sink"
)

// A collector of a fleet hands its windows, and some of its reports, to consumers that merge them with those of all
// collectors. Its store is a [sink.WindowEncoder], and perhaps a [sink.Diverter]. Diverted reports are in no window of
// the collector. Such a store is therefore the only one: the consumers of the fleet write the series. The page shows
// what is not diverted.

// divertTick is how long a diverted report waits for others.
const divertTick = 100 * time.Millisecond

// diversion is the way of diverted reports.
type diversion struct {
	sink.Diverter
	// turn is held while windows end and between them: Tick and EndWindow are called one at a time.
	turn sync.Mutex
	// may ends when nothing is put any more that has to wait for room.
	may  context.Context
	stop context.CancelFunc

	// Reports that are diverted while a window is being handed over go after it. The state file is written meanwhile.
	// Whether the window is on disk follows from whether anything came after that.
	mu   sync.Mutex
	hold bool
	held []sink.Encoded
}

// put hands over diverted reports, or holds them back.
func (d *diversion) put(e sink.Encoded, put func(sink.Encoded)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hold {
		d.held = append(d.held, e)
		return
	}
	put(e)
}

// release hands over the reports that were held back.
func (d *diversion) release(put func(sink.Encoded)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.held {
		put(e)
	}
	clear(d.held)
	d.hold, d.held = false, d.held[:0]
}

// divert hands over the reports that the worker put aside.
func (p *Pipeline) divert(w *Worker) {
	n := uint64(len(w.diverted))
	if n == 0 {
		return
	}
	p.ledger.Move(ledger.Ring, ledger.Window, n)
	w.divertedNumber += n
	p.diversion.Divert(w.id, w.diverted)
	clear(w.diverted)
	w.diverted = w.diverted[:0]
}

// openDiversion sets the window in which diverted reports count from now on: the one in which their exporters count
// them. Reports after the end of reception count in the last one.
func (p *Pipeline) openDiversion() {
	if p.diversion != nil && p.receipt.edge != math.MaxInt64 {
		p.diversion.OpenWindow(p.receipt.label)
	}
}

// endDiversion ends the window of the diverted reports, and returns their number. No worker may deliver meanwhile.
func (p *Pipeline) endDiversion(end int64) (n uint64) {
	if p.diversion == nil {
		return 0
	}
	for _, w := range p.workers {
		n += w.divertedNumber
		w.divertedNumber = 0
	}
	p.diversion.turn.Lock()
	p.diversion.EndWindow(end)
	p.diversion.mu.Lock()
	p.diversion.hold = true
	p.diversion.mu.Unlock()
	p.diversion.turn.Unlock()
	return n
}

// HandedOver lets diverted reports go on when the window that Cut ended was handed over, whose window ends under a label of the fleet.
func (p *Pipeline) HandedOver(label int64) {
	if p.diversion == nil {
		return
	}
	p.diversion.turn.Lock()
	defer p.diversion.turn.Unlock()
	p.diversion.MarkWindow(label)
	p.diversion.release(p.put)
}

// PublishAcross makes windows hold what the merge over several collectors needs: the numbers of an exporter that came, and the flows
// that appeared. It is called before anything is restored or received.
func (p *Pipeline) PublishAcross() {
	p.Exporters.listNumbers()
	for _, s := range p.shards {
		s.state.ListArrivals()
	}
}

// Divert lets d take reports out of the windows. What it makes of them goes to put, with a context that ends when nothing is
// put any more that has to wait for room. It is called before anything is received.
func (p *Pipeline) Divert(d sink.Diverter, put func(context.Context, sink.Encoded)) {
	v := &diversion{Diverter: d}
	v.may, v.stop = context.WithCancel(context.Background())
	p.diversion = v
	p.put = func(e sink.Encoded) {
		p.ledger.Close(e.Reports)
		put(v.may, e)
	}
	d.Open(len(p.workers), func(e sink.Encoded) { v.put(e, p.put) })
	p.openDiversion()
}

// ServeDiversion lets diverted reports go that have waited long enough, until StopDiversion is called.
func (p *Pipeline) ServeDiversion(now func() (wall time.Time, mono time.Duration)) {
	d := p.diversion
	if d == nil {
		return
	}
	tick := time.NewTicker(divertTick)
	defer tick.Stop()
	for {
		select {
		case <-d.may.Done():
			return
		case <-tick.C:
		}
		wall, _ := now()
		d.turn.Lock()
		d.Tick(wall.UnixNano())
		d.turn.Unlock()
	}
}

// StopDiversion ends ServeDiversion.
func (p *Pipeline) StopDiversion() {
	if p.diversion != nil {
		p.diversion.stop()
	}
}

// Diverts reports whether reports may be taken out of the windows.
func (p *Pipeline) Diverts() bool { return p.diversion != nil }
