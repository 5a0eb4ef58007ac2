package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/sink"
)

// A collector of a fleet hands its windows, and some of its reports, to others that merge them with those of all
// collectors: its store is a [sink.WindowEncoder], and perhaps a [sink.Diverter]. What is diverted is in no window of the
// collector, so a collector has no other store beside such a one: the consumers of the fleet write the series. The page
// shows what is not diverted.

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

// endDiversion ends the window of the diverted reports, of which it gives the number. Nobody may deliver meanwhile.
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
	p.diversion.turn.Unlock()
	return n
}

// TellAcross makes windows tell what it takes to put together those of several collectors: which numbers of an exporter
// came, and which flows appeared. It is called before anything is restored or received.
func (p *Pipeline) TellAcross() {
	p.Exporters.tell()
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
	d.Open(len(p.workers), func(e sink.Encoded) {
		p.ledger.Close(e.Reports)
		put(v.may, e)
	})
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
