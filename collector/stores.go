package collector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hopscope/hopscope/collector/metrics"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/refused"
	"github.com/hopscope/hopscope/sink/spool"
)

// store is a store of series behind its queue.
type store struct {
	c            *Collector
	name, target string
	refusedDir   string // of the points that the store refuses, or ""
	queue        *sink.Queue
	windows      sink.WindowEncoder // nil for a store of points
	filled       func() uint64      // End of the spool; nil without one

	spool  *spool.Spool // nil without one
	alerts bool         // a receiver of alerts, which gets no windows

	told      string    // the last trouble that was logged
	toldTime  time.Time // and when
	toldDrops uint64

	toldRefused  uint64
	refusing     bool
	refusingTime time.Time // when that was logged
	toldUnkept   uint64

	toldSpool     uint64
	toldSpoolTime time.Time
}

// openStores puts queues and spools before the stores of the options. Nothing is written yet.
func (c *Collector) openStores() error {
	c.writeSeconds = metrics.NewDurations(mWriteSeconds)
	for i := range c.opt.Stores {
		s := &c.opt.Stores[i]
		opt := sink.QueueOptions{
			Policy: c.opt.Policy.full(), Account: c.ledger.Account(s.Name), Target: s.Target,
			Observe: c.writeSeconds.Observer(s.Name),
		}
		var filled func() uint64
		if s.Spool != nil {
			sp, err := spool.Open(*s.Spool)
			if err != nil {
				err = fmt.Errorf("%s: %w", s.Name, err)
				for _, rest := range c.opt.Stores[i:] { // the others have queues, which close them
					err = errors.Join(err, rest.Writer.Close())
				}
				return err
			}
			opt.Spool = sp
			filled = sp.End
			opt.Refused = refused.Open(s.RefusedDir(), s.RefusedBytes)
		}
		c.stores = append(c.stores, &store{c: c, name: s.Name, target: s.Target, refusedDir: s.RefusedDir(), queue: sink.NewQueue(s.Writer, s.Queue, opt), spool: opt.Spool, filled: filled, alerts: s.Alerts})
	}
	return nil
}

func (c *Collector) startStores() {
	for _, r := range c.opt.Reports {
		r.Start()
	}
	for _, s := range c.stores {
		s.tellSpool(c)
		if s.spool != nil { // before the queue starts to drain it
			if st := s.spool.Stats(); st.Reports > 0 {
				c.log.Info("an earlier run left windows in the spool", "sink", s.name, "reports", st.Reports)
			}
		}
		s.queue.Start()
	}
}

// Name implements [sink.WindowWriter].
func (s *store) Name() string { return s.name }

// WriteWindow puts the points of the window into the queue.
func (s *store) WriteWindow(ctx context.Context, w *sink.Window) error {
	err := s.queue.Put(ctx, w.Batch())
	s.tell(s.c)
	return err
}

// closeStores drains all stores and streams of reports at the same time, until ctx ends. What is lost by that is an error.
func (c *Collector) closeStores(ctx context.Context) error {
	before := make([]uint64, len(c.stores))
	for i, s := range c.stores {
		before[i] = s.queue.Stats().PointsDropped
	}
	errs := make(chan error, len(c.stores)+len(c.opt.Reports))
	for _, s := range c.stores {
		go func() { errs <- s.queue.Close(ctx) }()
	}
	for _, r := range c.opt.Reports {
		go func() { errs <- r.Close(ctx) }()
	}
	var err error
	for range cap(errs) {
		err = errors.Join(err, <-errs)
	}
	for i, s := range c.stores {
		s.tellSpool(c)
		st := s.queue.Stats()
		if lost := st.PointsDropped - before[i]; lost > 0 {
			err = errors.Join(err, fmt.Errorf("%s: %d points were lost, because the store did not take them before the end: %s", s.name, lost, cmp.Or(st.LastError, "there was no time left")))
		}
		if st.Spool != nil && st.Spool.Reports > 0 {
			c.log.Warn("left in the spool for the next run", "sink", s.name, "reports", st.Spool.Reports)
		}
	}
	return err
}

// tell logs what is wrong with the sink, once, and again every ten minutes as long as it lasts.
func (s *store) tell(c *Collector) {
	st := s.queue.Stats()
	trouble := s.problem()
	switch {
	case trouble == "" && s.told != "" && !st.Failing:
		c.log.Info("writing again", "sink", s.name)
		s.told = ""
	case st.Failing && (s.told == "" || time.Since(s.toldTime) > 10*time.Minute):
		s.told, s.toldTime = st.LastError, time.Now()
		level := c.log.Warn
		if st.Config {
			level = c.log.Error
		}
		level("cannot write, trying again", "sink", s.name, "target", s.target, "error", st.LastError)
	}
	if st.PointsDropped > s.toldDrops {
		c.log.Error("points lost", "sink", s.name, "count", st.PointsDropped-s.toldDrops, "error", st.LastError)
		s.toldDrops = st.PointsDropped
	}
	s.tellSpool(c)
	s.tellRefused(c, &st)
	if sp := st.Spool; sp != nil {
		// A record that the disk refused waits in memory; evicted and damaged ones are gone.
		trouble := sp.RefusedRecords + sp.EvictedReports + sp.DamagedReports
		if trouble > s.toldSpool && (s.toldSpool == 0 || time.Since(s.toldSpoolTime) > time.Minute) {
			c.log.Error("trouble with the spool: free some disk, or raise spool.max_bytes", "sink", s.name, "bytes", sp.Bytes,
				"refused_by_disk", sp.RefusedRecords, "reports_evicted", sp.EvictedReports, "reports_damaged", sp.DamagedReports, "error", sp.LastError)
			s.toldSpool, s.toldSpoolTime = trouble, time.Now()
		}
	}
}

// tellSpool logs what the spool found in its directory and what the disk did to it.
func (s *store) tellSpool(c *Collector) {
	if s.spool == nil {
		return
	}
	for _, e := range s.spool.Events() {
		level := c.log.Warn
		if e.Records > 0 {
			level = c.log.Error
		}
		level("spool: "+e.Message, "sink", s.name, "kind", e.Kind, "segment", e.Segment, "offset", e.Offset, "bytes", e.Bytes,
			"records_gone", e.Records, "reports_gone", e.Lost.Reports, "points_gone", e.Lost.Points)
	}
}

// tellRefused logs points that the store refused: the first, and then every minute as long as there are more.
func (s *store) tellRefused(c *Collector, st *sink.QueueStats) {
	if n := st.PointsRejected - s.toldRefused; n > 0 && (!s.refusing || time.Since(s.refusingTime) > time.Minute) {
		s.refusing, s.refusingTime, s.toldRefused = true, time.Now(), st.PointsRejected
		c.log.Error("the store refuses points", "sink", s.name, "target", s.target, "points", n, "reason", st.LastRefusal.Reason, "kept_in", s.refusedDir)
	}
	if s.refusing && !st.Rejecting {
		s.refusing = false
		c.log.Info("the store refuses no more points", "sink", s.name)
	}
	if r := st.Refused; r != nil && r.EvictedPoints+r.LostPoints > s.toldUnkept {
		c.log.Error("refused points are not kept", "sink", s.name, "evicted", r.EvictedPoints, "not_written", r.LostPoints, "error", r.LastError)
		s.toldUnkept = r.EvictedPoints + r.LostPoints
	}
}

// problem says why the sink is not ready, or "". A store that is away is no problem as long as its spool has room.
func (s *store) problem() string {
	st := s.queue.Stats()
	switch {
	case st.Failing && st.Config:
		return st.LastError
	case st.Failing && st.Spool == nil:
		return "not writing, and there is no spool: " + st.LastError
	case st.Rejecting:
		return s.refusal(&st)
	case st.Evicting:
		return fmt.Sprintf("the spool is full, and its oldest %s are lost (%d %s so far): raise spool.max_bytes, or mend the store: %s",
			s.holds(), s.evicted(st.Spool), s.counts(), cmp.Or(st.LastError, "it is too slow"))
	case st.Dropping:
		return fmt.Sprintf("the queue is full, and the oldest %s are lost (%d points so far): enable the spool, raise queue.max_bytes, or mend the store: %s",
			s.holds(), st.PointsDropped, cmp.Or(st.LastError, "it is too slow"))
	}
	return ""
}

// holds says what the store gets.
func (s *store) holds() string {
	if s.alerts {
		return "alerts"
	}
	return "windows"
}

// counts and evicted say what is counted of it, and how much of that the spool lost: a receiver of alerts gets no reports.
func (s *store) counts() string {
	if s.alerts {
		return "points"
	}
	return "reports"
}

func (s *store) evicted(st *spool.Stats) uint64 {
	if s.alerts {
		return st.EvictedPoints
	}
	return st.EvictedReports
}

// refusal says in a sentence that the store refuses points, why, and where they are.
func (s *store) refusal(st *sink.QueueStats) string {
	last := &st.LastRefusal
	where := "without a spool they are lost"
	if s.refusedDir != "" {
		where = "they are kept: hopscope spool list " + s.refusedDir
	}
	return fmt.Sprintf("the store refused %d of %d points at %s (%d so far): %s; %s", last.Points, last.Of,
		last.Time.UTC().Format(time.TimeOnly), st.PointsRejected, last.Reason, where)
}

func (c *Collector) collectSinks(emit metrics.Emit) {
	if len(c.opt.Reports) > 0 {
		var taken, dropped uint64
		for _, r := range c.opt.Reports {
			t, d := r.Counts()
			taken, dropped = taken+t, dropped+d
		}
		emit(mRaw, float64(taken), "taken")
		emit(mRaw, float64(dropped), "dropped")
	}
	for _, s := range c.stores {
		st := s.queue.Stats()
		emit(mSinkQueue, float64(st.Bytes), s.name)
		for _, m := range spoolMetrics {
			if st.Spool != nil {
				m.emit(st.Spool, func(v float64, labels ...string) { emit(m.Metric, v, append([]string{s.name}, labels...)...) })
			}
		}
		if r := st.Refused; r != nil {
			emit(mRefusedBytes, float64(r.Bytes), s.name)
			emit(mRefusedEvicted, float64(r.EvictedPoints+r.LostPoints), s.name)
		}
		emit(mPoints, float64(st.PointsWritten), s.name, "written")
		emit(mPoints, float64(st.PointsRejected), s.name, "rejected")
		emit(mPoints, float64(st.PointsDropped), s.name, "dropped")
		emit(mRetries, float64(st.Retries), s.name)
	}
}
