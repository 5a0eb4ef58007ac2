package collector

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hopscope/hopscope/collector/settings"
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
	for i, s := range c.stores {
		w := c.opt.Stores[i].Writer
		d, diverts := w.(sink.Diverter)
		e, windows := w.(sink.WindowEncoder)
		if !diverts && !windows {
			continue
		}
		if len(c.stores) > 1 {
			other := c.stores[(i+1)%len(c.stores)]
			return errOtherStore(s.name, other.name, other.alerts)
		}
		if s.windows = e; windows {
			c.pipeline.tellAcross()
		}
		if diverts {
			v := &diversion{Diverter: d}
			v.may, v.stop = context.WithCancel(context.Background())
			c.pipeline.diversion = v
			d.Open(len(c.pipeline.workers), func(e sink.Encoded) {
				c.ledger.Close(e.Reports)
				// What finds no room, or comes when the queue is closed, is counted there.
				_ = s.queue.PutEncoded(v.may, e)
			})
		}
	}
	return nil
}

// publishes reports whether windows go to a fleet.
func (c *Collector) publishes() bool {
	return len(c.stores) == 1 && c.stores[0].windows != nil
}

func errOtherStore(publisher, other string, alerts bool) error {
	if alerts {
		return fmt.Errorf("%s: is enabled beside %s, but the alerts of a fleet are sent by its consumers, once for all collectors: enable %s there and disable it here",
			other, publisher, other)
	}
	return fmt.Errorf("%s: is enabled beside %s, but the series of a fleet are written by its consumers: enable %s there and disable it here",
		other, publisher, other)
}

// CheckStores says which stores that are switched on in the settings struct cfg points to exclude each other.
func CheckStores(cfg any) error {
	publisher, other, alerts := "", "", false
	for _, part := range settings.Parts(cfg) {
		section, ok := part.Value.(storeSection)
		if !ok {
			continue
		}
		switch enabled, publishes := section.use(); {
		case publishes:
			publisher = part.Key
		case enabled && other == "":
			other, alerts = part.Key, section.alerts()
		}
	}
	if publisher == "" || other == "" {
		return nil
	}
	return errOtherStore(publisher, other, alerts)
}

// publishes reports whether the settings struct that cfg points to has a store switched on that publishes to a fleet.
func publishes(cfg any) bool {
	for _, part := range settings.Parts(cfg) {
		if s, ok := part.Value.(storeSection); ok {
			if _, publishes := s.use(); publishes {
				return true
			}
		}
	}
	return false
}

// use says whether a store is switched on, and whether it publishes to a fleet: its settings have a method Publishes.
func (s *StoreConfig[C]) use() (enabled, publishes bool) {
	p, ok := any(&s.Config).(interface{ Publishes() bool })
	return s.Enabled, s.Enabled && ok && p.Publishes()
}

// writePartial puts the records that a store makes of a window, all reports of which are in some record.
func (s *store) writePartial(ctx context.Context, w *sink.Window) (err error) {
	records, rest := s.windows.EncodeWindow(w), w.Reports
	for i := range records {
		records[i].Reports = min(records[i].Reports, rest)
		if rest -= records[i].Reports; i == len(records)-1 {
			records[i].Reports += rest
		}
	}
	if len(records) == 0 {
		s.c.ledger.Account(s.name).Move(sink.InMemory, sink.DroppedEncoding, rest, 0)
	}
	for _, e := range records {
		if perr := s.queue.PutEncoded(ctx, e); err == nil {
			err = perr
		}
	}
	s.tell(s.c)
	return err
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
