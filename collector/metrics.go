package collector

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hopscope/hopscope/collector/metrics"
	"github.com/hopscope/hopscope/collector/pipeline"
	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/spool"
)

// The metrics. Labels have few values, all known beforehand: never a flow, a port or an address.
var (
	mReports      = metrics.NewCounter("hopscope_decode_reports_total", "Well-formed reports, by format and kind.", "format", "kind")
	mMalformed    = metrics.NewCounter("hopscope_decode_errors_total", "Malformed reports, by format and reason.", "format", "reason")
	mForeign      = metrics.NewCounter("hopscope_decode_foreign_total", "Frames without telemetry, and data points of metrics that no rule reads.")
	mInside       = metrics.NewGauge("hopscope_sflow_inside", "Samples and notifications of sFlow that did not leave their devices: missing while no datagram is, or dropped by the agent's count.", "what")
	mTemplates    = metrics.NewGauge("hopscope_ipfix_templates", "Known templates of IPFIX and NetFlow 9.")
	mWaiting      = metrics.NewGauge("hopscope_ipfix_waiting_sets", "Data sets that wait for their template.")
	mIPFIX        = metrics.NewCounter("hopscope_ipfix_events_total", "Data sets before their template (parked) and without it (expired), and templates and exporters without room (refused) or that made room (evicted).", "what")
	mResets       = metrics.NewCounter("hopscope_metric_resets_total", "Resets of counters and histograms of OpenTelemetry metrics: the value fell, or its start moved.")
	mUnread       = metrics.NewGauge("hopscope_dialect_unread_reports", "Reports of exporters whose dialect their profile does not read; foreign is another family of formats.", "state")
	mRemarks      = metrics.NewCounter("hopscope_remarks_total", "Reports with a remark, and their hops: not all in statistics, or maybe copies (alike).", "remark")
	mDialects     = metrics.NewGauge("hopscope_dialect_exporters", "Exporters whose dialect their profile does not read, by state.", "state")
	mReread       = metrics.NewCounter("hopscope_dialect_reread_reports_total", "Dropped reports that were read again in an adopted dialect; they count as received twice.")
	mReceived     = metrics.NewCounter("hopscope_ledger_received_total", "Reports received, with those that the kernel dropped.", "sink")
	mStored       = metrics.NewCounter("hopscope_ledger_stored_total", "Reports whose windows the sink has stored.", "sink")
	mInFlight     = metrics.NewGauge("hopscope_ledger_in_flight", "Reports on their way, by stage.", "sink", "stage")
	mDropped      = metrics.NewCounter("hopscope_ledger_dropped_total", "Reports dropped, by stage.", "sink", "stage")
	mUnsettled    = metrics.NewGauge("hopscope_ledger_unsettled", "Received minus stored, in flight and dropped; anything but 0 is a defect.", "sink")
	mFlows        = metrics.NewGauge("hopscope_flows", "Flows in the tables.")
	mFlowBytes    = metrics.NewGauge("hopscope_flow_table_bytes", "Memory of the flow tables.")
	mEvicted      = metrics.NewCounter("hopscope_flows_evicted_total", "Flows evicted as idle, or from a full table.", "cause")
	mDigests      = metrics.NewCounter("hopscope_digests_total", "PINT digests; of these unread, rejected and duplicate ones, those on no path, and those of flows with few packet ids.", "outcome")
	mTraced       = metrics.NewCounter("hopscope_digest_paths_total", "Flows whose digests gave the path.")
	mUndecided    = metrics.NewGauge("hopscope_digest_flows_undecided", "Flows whose digests do not give the path yet.")
	mWatched      = metrics.NewGauge("hopscope_digest_flows_watched", "Flows whose digests are searched for errors of the topology.")
	mTraceBytes   = metrics.NewGauge("hopscope_digest_bytes", "Memory of traced paths and of the sketches of digests.")
	mShardQueue   = metrics.NewGauge("hopscope_shard_queue_reports", "Reports waiting for a shard.", "shard")
	mFolded       = metrics.NewCounter("hopscope_series_folded_total", "Records of hops, and rows of flows, exporters and findings, stored as \"other\" beyond the day's places.", "what")
	mLeftOut      = metrics.NewGauge("hopscope_left_out", "What limits left out in this run, by the setting to raise, in the units of the page and /readyz.", "setting")
	mLost         = metrics.NewGauge("hopscope_exporter_lost", "Reports lost before the collector, by sequence numbers; late ones are subtracted.")
	mFindings     = metrics.NewGauge("hopscope_findings_open", "Open findings, without those that another one explains.", "kind", "severity")
	mSeen         = metrics.NewGauge("hopscope_hops_seen", "Hops with records, in the last window with records.")
	mJudged       = metrics.NewGauge("hopscope_hops_judged", "Hops that were judged, in the last window with records.")
	mLearning     = metrics.NewGauge("hopscope_hops_learning", "Hops that are younger than their statistics need.")
	mUnknown      = metrics.NewGauge("hopscope_probe_paths_unknown", "Paths of a plan's probes whose losses were not judged in the last window, or not all: only one of their two agents reported them.")
	mSinkQueue    = metrics.NewGauge("hopscope_sink_queue_bytes", "Memory of batches waiting for the sink.", "sink")
	mAside        = metrics.NewGauge("hopscope_sink_aside_points", "Points set aside: the sink fails for them and takes others.", "sink")
	mPoints       = metrics.NewCounter("hopscope_sink_points_total", "Points, by outcome.", "sink", "outcome")
	mRaw          = metrics.NewCounter("hopscope_raw_reports_total", "Reports of the raw stream, by outcome.", "outcome")
	mSteps        = metrics.NewCounter("hopscope_clock_steps_total", "Steps of the wall clock in this run, sleep of the machine included.")
	mStep         = metrics.NewGauge("hopscope_clock_step_seconds", "Length of the last step of the wall clock, negative for back.")
	mClockHeld    = metrics.NewGauge("hopscope_clock_held", "1 while the last window is kept open: the clock is further back than corrections reach.")
	mCorrections  = metrics.NewGauge("hopscope_corrections_bytes", "Memory of the windows kept for corrections.")
	mMisplaced    = metrics.NewCounter("hopscope_window_misplaced_reports_total", "Reports counted in another window than that of their receipt.")
	mReady        = metrics.NewGauge("hopscope_ready", "1 while /readyz says yes, else 0.")
	mNames        = metrics.NewGauge("hopscope_inventory_names", "Nodes, interfaces and hosts of the inventory.")
	mNamesFailed  = metrics.NewCounter("hopscope_inventory_failures_total", "Failed reads of the inventory.")
	mSitesRefused = metrics.NewCounter("hopscope_site_refused_reports_total", "Reports of nodes whose number has no room beside the site; they count as malformed.")
	mRivals       = metrics.NewGauge("hopscope_instance_rivals", "Other runs that write under the name of this instance; anything but 0 is an error.")
	mRetries      = metrics.NewCounter("hopscope_sink_retries_total", "Writes that were tried again.", "sink")

	mPointsMade      = metrics.NewCounter("hopscope_ledger_points_made_total", "Points made of windows for the sink, or found in its spool.", "sink")
	mPointsStored    = metrics.NewCounter("hopscope_ledger_points_stored_total", "Points that the sink has stored.", "sink")
	mPointsInFlight  = metrics.NewGauge("hopscope_ledger_points_in_flight", "Points on their way, by stage.", "sink", "stage")
	mPointsDropped   = metrics.NewCounter("hopscope_ledger_points_dropped_total", "Points dropped, by stage; those that the sink refused are rejected.", "sink", "stage")
	mPointsUnsettled = metrics.NewGauge("hopscope_ledger_points_unsettled", "Points made minus stored, in flight and dropped; anything but 0 is a defect.", "sink")
	mSeriesPoints    = metrics.NewCounter("hopscope_sink_series_points_total", "Points, by series and outcome.", "sink", "series", "outcome")
	mRefusedBytes    = metrics.NewGauge("hopscope_sink_refused_bytes", "Bytes on disk of points that the sink refused.", "sink")
	mRefusedEvicted  = metrics.NewCounter("hopscope_sink_refused_lost_points_total", "Refused points that are not kept, for lack of room or errors of the disk.", "sink")
)

// spoolValues returns the metrics of the spool of one sink.
func spoolValues(name string, st *spool.Stats) []metrics.Value {
	age := 0.0
	if !st.OldestUnacked.IsZero() {
		age = max(0, time.Since(st.OldestUnacked).Seconds())
	}
	evicted := metrics.NewCounter("hopscope_sink_spool_evicted_total", "Evicted from a full spool.", "sink", "unit")
	damaged := metrics.NewCounter("hopscope_sink_spool_damaged_total", "Could not be read back, or were missing.", "sink", "unit")
	return []metrics.Value{
		metrics.Of(metrics.NewGauge("hopscope_sink_spool_bytes", "Bytes of the spool's segments on disk.", "sink"), st.Bytes, name),
		metrics.Of(metrics.NewGauge("hopscope_sink_spool_unacknowledged_bytes", "Bytes of the records that the sink has not stored yet.", "sink"), st.UnackedBytes, name),
		metrics.Of(metrics.NewGauge("hopscope_sink_spool_oldest_age_seconds", "Age of the oldest record that the sink has not stored yet; 0 without one.", "sink"), age, name),
		metrics.Of(evicted, st.EvictedReports, name, "reports"),
		metrics.Of(evicted, st.EvictedPoints, name, "points"),
		metrics.Of(damaged, st.DamagedReports, name, "reports"),
		metrics.Of(damaged, st.DamagedPoints, name, "points"),
		metrics.Of(metrics.NewCounter("hopscope_sink_spool_torn_bytes_total", "Bytes behind the last whole record, left by a crash.", "sink"), st.TornBytes, name),
		metrics.Of(metrics.NewCounter("hopscope_sink_spool_missing_segments_total", "Segments that were gone or emptied.", "sink"), st.MissingSegments, name),
		metrics.Of(metrics.NewGauge("hopscope_sink_spool_quarantined_bytes", "Damaged bytes kept aside in the spool's directory.", "sink"), st.Quarantined, name),
		metrics.Of(metrics.NewCounter("hopscope_sink_spool_syncs_total", "Syncs of the spool.", "sink"), st.Syncs, name),
		metrics.Of(metrics.NewCounter("hopscope_sink_spool_sync_failures_total", "Failed syncs of the spool.", "sink"), st.SyncFailures, name),
		metrics.Of(metrics.NewCounter("hopscope_sink_spool_sync_seconds_total", "Time of all syncs of the spool.", "sink"), st.SyncSeconds, name),
	}
}

// Metrics lists every metric of a collector with the sources that have a section in the settings struct cfg points to.
func Metrics(cfg any) []Metric {
	return append(read(pipeline.Sections(cfg)), mWriteSeconds)
}

// read lists the metrics that are read when they are asked for: all but the histogram, which counts as writes happen.
func read(sources []Source) []Metric {
	own := []Metric{mReports, mMalformed, mForeign, mResets, mInside, mTemplates, mWaiting, mIPFIX, mUnread, mRemarks, mDialects, mReread, mReceived, mStored, mInFlight, mDropped, mUnsettled, mFlows, mFlowBytes, mEvicted, mDigests, mTraced, mUndecided, mWatched, mTraceBytes, mShardQueue, mFolded, mLeftOut, mLost, mFindings, mSeen, mJudged, mLearning, mUnknown, mSinkQueue}
	for _, v := range spoolValues("", &spool.Stats{}) {
		if v.Name != own[len(own)-1].Name {
			own = append(own, v.Metric)
		}
	}
	own = append(own, mPoints, mSeriesPoints, mPointsMade, mPointsStored, mPointsInFlight, mPointsDropped, mPointsUnsettled, mRefusedBytes, mRefusedEvicted, mRetries, mRaw, mSteps, mStep, mClockHeld, mCorrections, mMisplaced, mNames, mNamesFailed, mSitesRefused, mRivals, mReady, mAside)
	own = append(own, stores.AlertMetrics...)
	own = append(own, stores.RemovedMetrics...)
	return slices.Insert(own, 14, sourceMetrics(sources)...)
}

// Registry makes a registry that reads the collector when it is scraped.
func (c *Collector) Registry() *prometheus.Registry {
	return metrics.Registry(read(c.opt.Sources), c.emit, c.writeSeconds)
}

// alerting is nil without receivers.
func (c *Collector) alerting() *stores.Alerting {
	if c.alerts == nil {
		return nil
	}
	return c.alerts.Alerting
}

// emitDialects emits the findings about exporters that their profiles do not read.
func (c *Collector) emitDialects(emit metrics.Emit) {
	remarks := map[string]uint64{}
	for _, m := range c.pipeline.Remarks.List() {
		remarks[m.Name()] += m.Count
	}
	metrics.Map(emit, mRemarks, remarks)
	exporters, reports := map[string]int{}, map[string]uint64{}
	for _, f := range c.dialects() {
		exporters[f.State.String()]++
		reports[f.State.String()] += f.Unread
	}
	missing, dropped := c.pipeline.Inside()
	emit(mInside, float64(missing), "missing")
	emit(mInside, float64(dropped), "dropped")
	if c.ipfix != nil {
		f := c.ipfix.Figures()
		emit(mTemplates, float64(f.Templates))
		emit(mWaiting, float64(f.Waiting))
		for what, n := range map[string]uint64{"parked": f.Parked, "expired": f.Expired, "refused": f.Refused, "evicted": f.Evicted} {
			emit(mIPFIX, float64(n), what)
		}
	}
	metrics.Map(emit, mDialects, exporters)
	metrics.Map(emit, mUnread, reports)
	emit(mReread, float64(c.pipeline.Dialects.Reread()))
}

// emitPoints emits the ledger in points.
func emitPoints(emit metrics.Emit, name string, p *sink.PointBalance) {
	emit.All(
		metrics.Of(mPointsMade, p.Made, name),
		metrics.Of(mPointsStored, p.Stored, name),
		metrics.Of(mPointsUnsettled, p.Unsettled, name),
	)
	metrics.Map(emit, mPointsInFlight, p.InFlight, name)
	metrics.Map(emit, mPointsDropped, p.Dropped, name)
	emit(mPointsDropped, float64(p.Refused), name, DroppedRejected.String())
	for series, s := range p.Series {
		emit.All(
			metrics.Of(mSeriesPoints, s.Made, name, series, "made"),
			metrics.Of(mSeriesPoints, s.Stored, name, series, "stored"),
			metrics.Of(mSeriesPoints, s.Refused, name, series, "refused"),
		)
	}
}

// emit emits the present metrics of the collector.
func (c *Collector) emit(emit metrics.Emit) {
	t := c.pipeline.Totals()
	for key, n := range t.ByKind {
		format, kind, _ := strings.Cut(key, " ")
		emit(mReports, float64(n), format, kind)
	}
	for key, n := range t.Malformed {
		format, reason, _ := strings.Cut(key, " ")
		emit(mMalformed, float64(n), format, reason)
	}
	c.emitDialects(emit)
	c.alerting().Emit(emit)
	for name, p := range c.ledger.AsidePoints() {
		emitPoints(emit, name, p)
	}
	for _, b := range c.ledger.Snapshot() {
		emit.All(
			metrics.Of(mReceived, b.Received, b.Sink),
			metrics.Of(mStored, b.Stored, b.Sink),
			metrics.Of(mUnsettled, b.Unsettled, b.Sink),
		)
		metrics.Map(emit, mInFlight, b.InFlight, b.Sink)
		metrics.Map(emit, mDropped, b.Dropped, b.Sink)
		if b.Points != nil {
			emitPoints(emit, b.Sink, b.Points)
		}
	}
	for _, src := range c.opt.Sources {
		st := src.Stats()
		for _, m := range src.Metrics {
			emit(Metric{Name: sourceMetricName(src.Name, m), Kind: Counter}, float64(m.Value(&st)))
		}
	}
	figures, open := c.tally.Figures()
	clock := c.windows.ClockState()
	sum, waiting := c.pipeline.ShardStats()
	d := &sum.Digests
	for i, n := range waiting {
		emit(mShardQueue, float64(n), strconv.Itoa(i))
	}
	for k, n := range open {
		emit(mFindings, float64(n), k[0], k[1])
	}
	if c.sites != nil {
		emit(mDigests, float64(d.Elsewhere), "other_site")
	}
	emit.All(
		metrics.Of(mForeign, t.Foreign),
		metrics.Of(mResets, t.Resets),
		metrics.Of(mNames, c.Names().Len()),
		metrics.Of(mNamesFailed, c.names.Failures()),
		metrics.Of(mSitesRefused, c.sites.Refusals()),
		metrics.Of(mSeen, figures.Coverage.Seen),
		metrics.Of(mJudged, figures.Coverage.Judged),
		metrics.Of(mLearning, figures.Learning),
		metrics.Of(mUnknown, figures.Coverage.PathsUnknown),
		metrics.Of(mFlows, sum.Flows),
		metrics.Of(mFlowBytes, sum.MemoryBytes),
		metrics.Of(mEvicted, sum.EvictedIdle, "idle"),
		metrics.Of(mEvicted, sum.EvictedPressure, "pressure"),
		metrics.Of(mDigests, d.Digests, "received"),
		metrics.Of(mDigests, d.Unread, "unread"),
		metrics.Of(mDigests, d.Rejected, "rejected"),
		metrics.Of(mDigests, d.Duplicate, "duplicate"),
		metrics.Of(mDigests, d.Unexplained, "strange"),
		metrics.Of(mDigests, d.FewIDs.Digests, "few_ids"),
		metrics.Of(mTraced, d.Decoded),
		metrics.Of(mUndecided, d.Undecided),
		metrics.Of(mWatched, d.Watched),
		metrics.Of(mTraceBytes, d.Bytes),
		metrics.Of(mMisplaced, c.pipeline.Misplaced()),
		metrics.Of(mRivals, len(c.rivals.Problems())),
		metrics.Of(mReady, metrics.Bool(len(c.NotReady()) == 0)),
		metrics.Of(mSteps, clock.Steps),
		metrics.Of(mStep, clock.Last.Seconds()),
		metrics.Of(mClockHeld, metrics.Bool(clock.Held)),
		metrics.Of(mCorrections, clock.Bytes),
		metrics.Of(mLost, figures.Lost),
		metrics.Of(mFolded, figures.Folded.Hops, "hops"),
		metrics.Of(mFolded, figures.Folded.Flows, "flows"),
		metrics.Of(mFolded, figures.Folded.Rest, "rest"),
	)
	bySetting := map[string]uint64{}
	for _, l := range c.allLeftOut() {
		bySetting[l.Setting] += l.N
	}
	metrics.Map(emit, mLeftOut, bySetting)
	c.collectSinks(emit)
}

func (c *Collector) collectSinks(emit metrics.Emit) {
	if len(c.opt.Reports) > 0 {
		var taken, dropped uint64
		for _, r := range c.opt.Reports {
			t, d := r.Counts()
			taken, dropped = taken+t, dropped+d
		}
		emit.All(
			metrics.Of(mRaw, taken, "taken"),
			metrics.Of(mRaw, dropped, "dropped"),
		)
	}
	c.stores.EmitRemoved(emit)
	for _, s := range c.stores.All() {
		st := s.Stats()
		if st.Spool != nil {
			emit.All(spoolValues(s.Name(), st.Spool)...)
		}
		if r := st.Refused; r != nil {
			emit.All(
				metrics.Of(mRefusedBytes, r.Bytes, s.Name()),
				metrics.Of(mRefusedEvicted, r.EvictedPoints+r.LostPoints, s.Name()),
			)
		}
		emit.All(
			metrics.Of(mPoints, st.PointsWritten, s.Name(), "written"),
			metrics.Of(mPoints, st.PointsRejected, s.Name(), "rejected"),
			metrics.Of(mPoints, st.PointsDropped, s.Name(), "dropped"),
			metrics.Of(mRetries, st.Retries, s.Name()),
			metrics.Of(mSinkQueue, st.Bytes, s.Name()),
			metrics.Of(mAside, st.Aside.Points, s.Name()),
		)
	}
}

// sourceMetrics lists the metrics of sources by the names under which they are published.
func sourceMetrics(sources []Source) (metrics []Metric) {
	for _, s := range sources {
		for _, m := range s.Metrics {
			metrics = append(metrics, Metric{Name: sourceMetricName(s.Name, m), Help: m.Help, Kind: Counter})
		}
	}
	return metrics
}

func sourceMetricName(source string, m ingest.Metric) string {
	return "hopscope_" + source + "_" + m.Name
}
