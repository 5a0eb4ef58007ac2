package collector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/influx"
	"github.com/hopscope/hopscope/sink/parquet"
	"github.com/hopscope/hopscope/sink/spool"
)

// store is a sink behind its queue.
type store struct {
	name, target string // "influx", "http://127.0.0.1:8086, bucket hopscope"
	queue        *sink.Queue

	told      string    // the last trouble that was logged
	toldTime  time.Time // and when
	toldDrops uint64

	toldSpool     uint64
	toldSpoolTime time.Time
}

// openStores opens the sinks that the settings switch on, with their spools. Nothing is written yet.
func (c *Collector) openStores() error {
	cfg := &c.cfg
	var names []string
	if cfg.Influx.Enabled {
		names = append(names, "influx")
	}
	if cfg.Parquet.Enabled {
		names = append(names, "parquet")
	}
	c.ledger = NewLedger(names...)
	c.writeSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: writeSecondsName, Help: writeSecondsHelp,
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}, []string{"sink", "ok"})

	if cfg.Influx.Enabled {
		w, err := influx.New(cfg.Influx.Config)
		if err != nil {
			return fmt.Errorf("influx: %w", err)
		}
		target := fmt.Sprintf("%s, bucket %s", cfg.Influx.URL, cfg.Influx.Bucket)
		if err := c.addStore(w, target, cfg.Influx.Queue, cfg.Influx.Spool); err != nil {
			return err
		}
	}
	if cfg.Parquet.Enabled {
		w, err := parquet.New(cfg.Parquet.Config)
		if err != nil {
			return fmt.Errorf("parquet: %w", err)
		}
		if err := c.addStore(w, cfg.Parquet.Dir, cfg.Parquet.Queue, cfg.Parquet.Spool); err != nil {
			return err
		}
		if cfg.Parquet.Raw {
			if c.raw, err = parquet.NewRaw(cfg.Parquet.Config, c.policy()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Collector) addStore(w sink.Writer, target string, conf sink.QueueConfig, sc SpoolConfig) error {
	name := w.Name()
	opt := sink.QueueOptions{
		Policy: c.policy(), Account: c.ledger.Account(name),
		Observe: func(d time.Duration, err error) {
			c.writeSeconds.WithLabelValues(name, fmt.Sprint(err == nil)).Observe(d.Seconds())
		},
	}
	if sc.Enabled {
		s, err := spool.Open(sc.Config)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", name, err), w.Close())
		}
		opt.Spool = s
	}
	c.sinks = append(c.sinks, &store{name: name, target: target, queue: sink.NewQueue(w, conf, opt)})
	return nil
}

// policy is what full queues do: a live source cannot be slowed down, a capture can.
func (c *Collector) policy() sink.Policy {
	if c.replay {
		return sink.Block
	}
	return sink.Drop
}

func (c *Collector) startStores() {
	if c.raw != nil {
		c.raw.Start()
	}
	for _, s := range c.sinks {
		s.queue.Start()
		if st := s.queue.Stats(); st.Spool != nil && st.Spool.Reports > 0 {
			c.log.Info("an earlier run left windows in the spool", "sink", s.name, "reports", st.Spool.Reports)
		}
	}
}

// putStores hands the window to every sink.
func (c *Collector) putStores(b *sink.Batch) {
	for _, s := range c.sinks {
		if err := s.queue.Put(context.Background(), b); err != nil {
			c.log.Error("window not taken", "sink", s.name, "error", err.Error())
		}
		s.tell(c)
	}
}

// closeStores drains all sinks at the same time, until ctx ends.
func (c *Collector) closeStores(ctx context.Context) error {
	errs := make(chan error, len(c.sinks))
	for _, s := range c.sinks {
		go func() { errs <- s.queue.Close(ctx) }()
	}
	var err error
	if c.raw != nil {
		err = c.raw.Close(ctx)
	}
	for range c.sinks {
		err = errors.Join(err, <-errs)
	}
	for _, s := range c.sinks {
		st := s.queue.Stats()
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
	drops := st.PointsDropped + st.PointsRejected
	if drops > s.toldDrops {
		c.log.Error("points lost", "sink", s.name, "count", drops-s.toldDrops, "error", st.LastError)
		s.toldDrops = drops
	}
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

// problem says why the sink is not ready, or "". A store that is away is no problem as long as its spool has room.
func (s *store) problem() string {
	st := s.queue.Stats()
	switch {
	case st.Failing && st.Config:
		return st.LastError
	case st.Failing && st.Spool == nil:
		return "not writing, and there is no spool: " + st.LastError
	}
	return ""
}

func (c *Collector) collectSinks(emit func(m Metric, v float64, labels ...string)) {
	if c.raw != nil {
		st := c.raw.Stats()
		emit(mRaw, float64(st.Reports), "taken")
		emit(mRaw, float64(st.Dropped), "dropped")
	}
	for _, s := range c.sinks {
		st := s.queue.Stats()
		emit(mSinkQueue, float64(st.Bytes), s.name)
		if st.Spool != nil {
			emit(mSpool, float64(st.Spool.Bytes), s.name)
		}
		emit(mPoints, float64(st.PointsWritten), s.name, "written")
		emit(mPoints, float64(st.PointsRejected), s.name, "rejected")
		emit(mPoints, float64(st.PointsDropped), s.name, "dropped")
		emit(mRetries, float64(st.Retries), s.name)
	}
}
