package fleet

import (
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/hopscope/hopscope/collector"
)

// The metrics of a consumer. Labels have few values: partitions are a fixed number for the fleet.
var (
	mLag        = collector.Metric{Name: "hopscope_consume_lag_records", Help: "Records of a partition that are not read yet.", Labels: []string{"topic", "partition"}, Kind: collector.Gauge}
	mRecords    = collector.Metric{Name: "hopscope_consume_records_total", Help: "Records read.", Labels: []string{"topic", "partition"}, Kind: collector.Counter}
	mBytes      = collector.Metric{Name: "hopscope_consume_bytes_total", Help: "Bytes of the values of records read.", Labels: []string{"topic", "partition"}, Kind: collector.Counter}
	mHeld       = collector.Metric{Name: "hopscope_consume_held", Help: "1 for a partition that this consumer has.", Labels: []string{"topic", "partition"}, Kind: collector.Gauge}
	mOpen       = collector.Metric{Name: "hopscope_consume_open_windows", Help: "Windows of a partition that have begun and did not end.", Labels: []string{"topic", "partition"}, Kind: collector.Gauge}
	mWindow     = collector.Metric{Name: "hopscope_consume_window_seconds", Help: "End of the last window that was told, since 1970.", Labels: []string{"topic", "partition"}, Kind: collector.Gauge}
	mWindows    = collector.Metric{Name: "hopscope_consume_windows_total", Help: "Windows told for the first time.", Labels: []string{"topic"}, Kind: collector.Counter}
	mLate       = collector.Metric{Name: "hopscope_consume_late_total", Help: "Records that came behind the end of their window, which was then told again.", Labels: []string{"topic"}, Kind: collector.Counter}
	mDuplicate  = collector.Metric{Name: "hopscope_consume_duplicates_total", Help: "Records that were written twice, and counted once.", Labels: []string{"topic"}, Kind: collector.Counter}
	mConflict   = collector.Metric{Name: "hopscope_consume_conflicts_total", Help: "Records refused because another one has their number: a run is there twice.", Labels: []string{"topic"}, Kind: collector.Counter}
	mUnknown    = collector.Metric{Name: "hopscope_consume_unknown_total", Help: "Records of a later version, passed over.", Labels: []string{"topic"}, Kind: collector.Counter}
	mRefused    = collector.Metric{Name: "hopscope_consume_refused_total", Help: "Records that are not right, passed over.", Labels: []string{"topic"}, Kind: collector.Counter}
	mGone       = collector.Metric{Name: "hopscope_consume_gone_total", Help: "Records that were to be read, and that retention had removed.", Labels: []string{"topic"}, Kind: collector.Counter}
	mAgain      = collector.Metric{Name: "hopscope_consume_read_again_total", Help: "Records read once more when their window closed, because held_bytes had no room for them.", Labels: []string{"topic"}, Kind: collector.Counter}
	mMissing    = collector.Metric{Name: "hopscope_consume_missing_collectors", Help: "Collectors that the last window of the owner was told without.", Kind: collector.Gauge}
	mForced     = collector.Metric{Name: "hopscope_consume_forced_total", Help: "Windows told although slices had not told theirs.", Kind: collector.Counter}
	mRestarts   = collector.Metric{Name: "hopscope_consume_restarts_total", Help: "Times that work on a partition began anew from its checkpoint, because something failed.", Labels: []string{"topic"}, Kind: collector.Counter}
	mSaves      = collector.Metric{Name: "hopscope_consume_checkpoints_total", Help: "Checkpoints written.", Labels: []string{"topic"}, Kind: collector.Counter}
	mStateBytes = collector.Metric{Name: "hopscope_consume_checkpoint_bytes", Help: "Size of the last checkpoints, all partitions together.", Labels: []string{"topic"}, Kind: collector.Gauge}
	mPublished  = collector.Metric{Name: "hopscope_consume_published_total", Help: "Records written to Kafka: ends of windows, merged slices and whole windows.", Kind: collector.Counter}
	mGeneration = collector.Metric{Name: "hopscope_consume_generation", Help: "Generation of the group; 0 outside of one.", Kind: collector.Gauge}
	mMerged     = collector.Metric{Name: "hopscope_consume_merged_total", Help: "Reports of merged windows.", Labels: []string{"sink"}, Kind: collector.Counter}
	mStored     = collector.Metric{Name: "hopscope_consume_stored_total", Help: "Of these, those that the store has confirmed.", Labels: []string{"sink"}, Kind: collector.Counter}
	mInFlight   = collector.Metric{Name: "hopscope_consume_in_flight", Help: "Of these, those that are on their way, by stage.", Labels: []string{"sink", "stage"}, Kind: collector.Gauge}
	mDropped    = collector.Metric{Name: "hopscope_consume_dropped_total", Help: "Of these, those that were dropped, by stage.", Labels: []string{"sink", "stage"}, Kind: collector.Counter}
	mWrite      = collector.Metric{Name: "hopscope_consume_write_seconds", Help: "How long writes to a store took.", Labels: []string{"sink", "ok"}, Kind: collector.Histogram}

	// Metrics are all of them.
	Metrics = []collector.Metric{
		mLag, mRecords, mBytes, mHeld, mOpen, mWindow, mWindows, mLate, mDuplicate, mConflict, mUnknown, mRefused, mGone, mAgain, mMissing, mForced,
		mRestarts, mSaves, mStateBytes, mPublished, mGeneration, mMerged, mStored, mInFlight, mDropped, mWrite,
	}
)

func (c *Consumer) metrics() {
	c.writeSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: mWrite.Name, Help: mWrite.Help, Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}, mWrite.Labels)
}

// Registry gives all metrics of the consumer, and those of the process. Further ones can be added to it.
func (c *Consumer) Registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), c.writeSeconds, &gatherer{c, map[string]*prometheus.Desc{}})
	return r
}

// gatherer reads what there is when it is asked.
type gatherer struct {
	c     *Consumer
	descs map[string]*prometheus.Desc
}

// Describe implements [prometheus.Collector].
func (g *gatherer) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range slices.Concat(Metrics, collector.AlertMetrics) {
		if m.Kind != collector.Histogram {
			g.descs[m.Name] = prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
			ch <- g.descs[m.Name]
		}
	}
}

// Collect implements [prometheus.Collector].
func (g *gatherer) Collect(ch chan<- prometheus.Metric) {
	emit := func(m collector.Metric, v float64, labels ...string) {
		kind := prometheus.GaugeValue
		if m.Kind == collector.Counter {
			kind = prometheus.CounterValue
		}
		ch <- prometheus.MustNewConstMetric(g.descs[m.Name], kind, v, labels...)
	}
	sums := map[string]*PartitionStatus{}
	forced := uint64(0)
	for _, s := range g.c.Partitions() {
		n := strconv.Itoa(s.Partition)
		held := 0.0
		if s.Held {
			held = 1
			emit(mLag, float64(s.Lag), s.Topic, n)
			emit(mOpen, float64(s.Open), s.Topic, n)
			emit(mWindow, float64(s.Label)/1e9, s.Topic, n)
		}
		emit(mHeld, held, s.Topic, n)
		emit(mRecords, float64(s.Records), s.Topic, n)
		emit(mBytes, float64(s.Bytes), s.Topic, n)
		sum := sums[s.Topic]
		if sum == nil {
			sum = &PartitionStatus{}
			sums[s.Topic] = sum
		}
		sum.Closed += s.Closed
		sum.Late += s.Late
		sum.Duplicates += s.Duplicates
		sum.Conflicts += s.Conflicts
		sum.Unknown += s.Unknown + s.GateUnknown
		sum.Refused += s.Refused + s.GateRefused
		sum.Gone += s.Gone
		sum.Again += s.Again
		sum.Restarts += s.Restarts
		sum.Checkpoints += s.Checkpoints
		if s.Held {
			sum.StateBytes += s.StateBytes
		}
		forced += s.Forced
	}
	for topic, s := range sums {
		emit(mWindows, float64(s.Closed), topic)
		emit(mLate, float64(s.Late), topic)
		emit(mDuplicate, float64(s.Duplicates), topic)
		emit(mConflict, float64(s.Conflicts), topic)
		emit(mUnknown, float64(s.Unknown), topic)
		emit(mRefused, float64(s.Refused), topic)
		emit(mGone, float64(s.Gone), topic)
		emit(mAgain, float64(s.Again), topic)
		emit(mRestarts, float64(s.Restarts), topic)
		emit(mSaves, float64(s.Checkpoints), topic)
		emit(mStateBytes, float64(s.StateBytes), topic)
	}
	g.c.mu.Lock()
	missing := len(g.c.last.missing)
	g.c.mu.Unlock()
	g.c.alerting.Emit(emit)
	emit(mMissing, float64(missing))
	emit(mForced, float64(forced))
	emit(mPublished, float64(g.c.published.Load()))
	emit(mGeneration, float64(g.c.Generation()))
	for _, b := range g.c.Balances() {
		emit(mMerged, float64(b.Received), b.Sink)
		emit(mStored, float64(b.Stored), b.Sink)
		for stage, n := range b.InFlight {
			emit(mInFlight, float64(n), b.Sink, stage)
		}
		for stage, n := range b.Dropped {
			emit(mDropped, float64(n), b.Sink, stage)
		}
	}
}
