package fleet

import (
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hopscope/hopscope/collector/metrics"
	"github.com/hopscope/hopscope/collector/stores"
)

// The metrics of a consumer. Labels have few values: partitions are a fixed number for the fleet.
var (
	mLag        = metrics.NewGauge("hopscope_consume_lag_records", "Records of a partition that are not read yet.", "topic", "partition")
	mRecords    = metrics.NewCounter("hopscope_consume_records_total", "Records read.", "topic", "partition")
	mBytes      = metrics.NewCounter("hopscope_consume_bytes_total", "Bytes of the values of records read.", "topic", "partition")
	mHeld       = metrics.NewGauge("hopscope_consume_held", "1 for a partition that this consumer has.", "topic", "partition")
	mOpen       = metrics.NewGauge("hopscope_consume_open_windows", "Open windows of a partition.", "topic", "partition")
	mWindow     = metrics.NewGauge("hopscope_consume_window_seconds", "End of the last window that was published, since 1970.", "topic", "partition")
	mWindows    = metrics.NewCounter("hopscope_consume_windows_total", "Windows published for the first time.", "topic")
	mLate       = metrics.NewCounter("hopscope_consume_late_total", "Late records, whose window is published again.", "topic")
	mDuplicate  = metrics.NewCounter("hopscope_consume_duplicates_total", "Records written twice.", "topic")
	mConflict   = metrics.NewCounter("hopscope_consume_conflicts_total", "Records refused since another one has their number: a run is there twice.", "topic")
	mUnknown    = metrics.NewCounter("hopscope_consume_unknown_total", "Records of a later version, passed over.", "topic")
	mRefused    = metrics.NewCounter("hopscope_consume_refused_total", "Invalid records, passed over.", "topic")
	mGone       = metrics.NewCounter("hopscope_consume_gone_total", "Records removed by retention before they were read.", "topic")
	mReread     = metrics.NewCounter("hopscope_consume_read_again_total", "Records read again at the close of their window, beyond held_bytes.", "topic")
	mMissing    = metrics.NewGauge("hopscope_consume_missing_collectors", "Collectors missing in the last window of the owner.")
	mForced     = metrics.NewCounter("hopscope_consume_forced_total", "Windows published without some slices.")
	mRestarts   = metrics.NewCounter("hopscope_consume_restarts_total", "Restarts of a partition from its checkpoint after a failure.", "topic")
	mSaves      = metrics.NewCounter("hopscope_consume_checkpoints_total", "Checkpoints written.", "topic")
	mStateBytes = metrics.NewGauge("hopscope_consume_checkpoint_bytes", "Size of the last checkpoints, all partitions together.", "topic")
	mPublished  = metrics.NewCounter("hopscope_consume_published_total", "Records written to Kafka: ends of windows, merged slices and whole windows.")
	mGeneration = metrics.NewGauge("hopscope_consume_generation", "Generation of the group; 0 outside of one.")
	mMerged     = metrics.NewCounter("hopscope_consume_merged_total", "Reports of merged windows.", "sink")
	mStored     = metrics.NewCounter("hopscope_consume_stored_total", "Reports of merged windows that the store has confirmed.", "sink")
	mInFlight   = metrics.NewGauge("hopscope_consume_in_flight", "Reports of merged windows on their way, by stage.", "sink", "stage")
	mDropped    = metrics.NewCounter("hopscope_consume_dropped_total", "Reports of merged windows that were dropped, by stage.", "sink", "stage")
	mLeftOut    = metrics.NewGauge("hopscope_left_out", "What limits left out in this run, by the setting to raise, in the units of /readyz and the console.", "setting")
	mWrite      = metrics.Metric{Name: "hopscope_consume_write_seconds", Help: "Time of one write to a store.", Labels: []string{"sink", "ok"}, Kind: metrics.Histogram}

	// Metrics are all of them.
	Metrics = []metrics.Metric{
		mLag, mRecords, mBytes, mHeld, mOpen, mWindow, mWindows, mLate, mDuplicate, mConflict, mUnknown, mRefused, mGone, mReread, mMissing, mForced,
		mRestarts, mSaves, mStateBytes, mPublished, mGeneration, mMerged, mStored, mInFlight, mDropped, mLeftOut, mWrite,
	}
)

// Registry returns all metrics of the consumer, and those of the process. Further ones can be added to it.
func (c *Consumer) Registry() *prometheus.Registry {
	return metrics.Registry(slices.Concat(Metrics, stores.AlertMetrics, stores.RemovedMetrics), c.emit, c.writeSeconds)
}

// emit emits the present metrics.
func (c *Consumer) emit(emit metrics.Emit) {
	bySetting := map[string]uint64{}
	list := c.limitsHit()
	for _, l := range c.limited {
		list = append(list, l.Limits()...)
	}
	for _, l := range list {
		bySetting[l.Setting] += l.N
	}
	metrics.Map(emit, mLeftOut, bySetting)
	sums := map[string][]metrics.Value{}
	forced := uint64(0)
	for _, s := range c.Partitions() {
		n := strconv.Itoa(s.Partition)
		if s.held {
			emit.All(
				metrics.Of(mLag, s.lag, s.Topic, n),
				metrics.Of(mOpen, s.Open, s.Topic, n),
				metrics.Of(mWindow, float64(s.Label)/1e9, s.Topic, n),
			)
		} else {
			s.stateBytes = 0
		}
		emit.All(
			metrics.Of(mHeld, metrics.Bool(s.held), s.Topic, n),
			metrics.Of(mRecords, s.records, s.Topic, n),
			metrics.Of(mBytes, s.Bytes, s.Topic, n),
		)
		sum := sums[s.Topic]
		for i, v := range topicValues(&s) {
			if i == len(sum) {
				sum = append(sum, v)
			} else {
				sum[i].V += v.V
			}
		}
		sums[s.Topic] = sum
		forced += s.forced
	}
	for _, sum := range sums {
		emit.All(sum...)
	}
	c.mu.Lock()
	missing := len(c.last.missing)
	c.mu.Unlock()
	c.alerting.Emit(emit)
	c.series.EmitRemoved(emit)
	emit.All(
		metrics.Of(mMissing, missing),
		metrics.Of(mForced, forced),
		metrics.Of(mPublished, c.published.Load()),
		metrics.Of(mGeneration, c.Generation()),
	)
	for _, b := range c.Balances() {
		emit.All(
			metrics.Of(mMerged, b.Received, b.Sink),
			metrics.Of(mStored, b.Stored, b.Sink),
		)
		metrics.Map(emit, mInFlight, b.InFlight, b.Sink)
		metrics.Map(emit, mDropped, b.Dropped, b.Sink)
	}
}

// topicValues returns the metrics of a topic that one partition contributes to.
func topicValues(s *partitionStatus) []metrics.Value {
	return []metrics.Value{
		metrics.Of(mWindows, s.Closed, s.Topic),
		metrics.Of(mLate, s.Late, s.Topic),
		metrics.Of(mDuplicate, s.duplicates, s.Topic),
		metrics.Of(mConflict, s.Conflicts, s.Topic),
		metrics.Of(mUnknown, s.Unknown+s.gateUnknown, s.Topic),
		metrics.Of(mRefused, s.refused+s.gateRefused, s.Topic),
		metrics.Of(mGone, s.Gone, s.Topic),
		metrics.Of(mReread, s.Reread, s.Topic),
		metrics.Of(mRestarts, s.restarts, s.Topic),
		metrics.Of(mSaves, s.checkpoints, s.Topic),
		metrics.Of(mStateBytes, s.stateBytes, s.Topic),
	}
}
