package collector

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/decode"
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
func (p *pipeline) divert(w *worker) {
	n := uint64(len(w.diverted))
	if n == 0 {
		return
	}
	p.ledger.Move(Ring, Window, n)
	w.divertedNumber += n
	p.diversion.Divert(w.id, w.diverted)
	clear(w.diverted)
	w.diverted = w.diverted[:0]
}

// endDiversion ends the window of the diverted reports, of which it gives the number. Nobody may deliver meanwhile.
func (p *pipeline) endDiversion(end int64) (n uint64) {
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

// tellAcross makes windows tell what it takes to put together those of several collectors: which numbers of an exporter
// came, and which flows appeared. It is called before anything is restored or received.
func (p *pipeline) tellAcross() {
	p.exporters.tell()
	for _, s := range p.shards {
		s.state.TellArrivals()
	}
}

// serveDiversion lets diverted reports go that have waited long enough, until stop is called.
func (c *Collector) serveDiversion() {
	tick := time.NewTicker(divertTick)
	defer tick.Stop()
	d := c.pipeline.diversion
	for {
		select {
		case <-d.may.Done():
			return
		case <-tick.C:
		}
		now, _ := c.opt.Now()
		d.turn.Lock()
		d.Tick(now.UnixNano())
		d.turn.Unlock()
	}
}

// openFleet looks for a store that publishes to a fleet, and connects it with the workers.
func (c *Collector) openFleet() error {
	all := c.stores.All()
	for i, s := range all {
		w := s.Writer
		d, diverts := w.(sink.Diverter)
		e, windows := w.(sink.WindowEncoder)
		if !diverts && !windows {
			continue
		}
		if len(all) > 1 {
			other := all[(i+1)%len(all)]
			return stores.ErrBeside(s.Name(), other.Name(), other.Alerts)
		}
		if s.Encoder = e; windows {
			c.pipeline.tellAcross()
		}
		if diverts {
			v := &diversion{Diverter: d}
			v.may, v.stop = context.WithCancel(context.Background())
			c.pipeline.diversion = v
			d.Open(len(c.pipeline.workers), func(e sink.Encoded) {
				c.ledger.Close(e.Reports)
				// What finds no room, or comes when the queue is closed, is counted there.
				_ = s.PutEncoded(v.may, e)
			})
		}
	}
	return nil
}

// publishes reports whether windows go to a fleet.
func (c *Collector) publishes() bool {
	all := c.stores.All()
	return len(all) == 1 && all[0].Encoder != nil
}

// fleetLabel is the label under which a fleet keeps a window: the multiple of the window's length at which it ends, or
// would end had the run gone on.
func (c *Collector) fleetLabel(label int64) int64 {
	length := int64(c.cfg.Window)
	at := multipleBefore(label, length)
	if at < label && at <= math.MaxInt64-length {
		return at + length
	}
	return label
}

// takes reports whether a report is diverted.
func (p *pipeline) takes(r *decode.Report) bool { return p.diversion != nil && p.diversion.Takes(r) }
