package collector

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/hopscope/hopscope/inference/shard"
)

// Metric describes one metric of /metrics; docs/metrics.md is written from the list.
type Metric struct {
	Name, Help string
	Labels     []string
	Counter    bool
}

// The metrics. Labels have few values, all known beforehand: never a flow, a port or an address.
var (
	mReports    = Metric{"hopscope_decode_reports_total", "Well-formed reports, by format and kind.", []string{"format", "kind"}, true}
	mMalformed  = Metric{"hopscope_decode_errors_total", "Malformed reports, by the format that was rejected and the reason.", []string{"format", "reason"}, true}
	mForeign    = Metric{"hopscope_decode_foreign_total", "Frames without telemetry.", nil, true}
	mReceived   = Metric{"hopscope_ledger_received_total", "Reports received, what the kernel dropped included.", []string{"sink"}, true}
	mStored     = Metric{"hopscope_ledger_stored_total", "Reports whose windows the sink has stored.", []string{"sink"}, true}
	mInFlight   = Metric{"hopscope_ledger_in_flight", "Reports on their way, by stage.", []string{"sink", "stage"}, false}
	mDropped    = Metric{"hopscope_ledger_dropped_total", "Reports dropped, by stage.", []string{"sink", "stage"}, true}
	mUnsettled  = Metric{"hopscope_ledger_unsettled", "Received minus stored, in flight and dropped; anything but 0 is a defect.", []string{"sink"}, false}
	mFrames     = Metric{"hopscope_udp_datagrams_total", "Datagrams received.", nil, true}
	mBytes      = Metric{"hopscope_udp_bytes_total", "Bytes in those.", nil, true}
	mKernel     = Metric{"hopscope_udp_kernel_dropped_total", "Datagrams that the kernel dropped because the socket buffer was full.", nil, true}
	mTruncated  = Metric{"hopscope_udp_truncated_total", "Datagrams longer than udp.max_datagram_bytes.", nil, true}
	mRefused    = Metric{"hopscope_udp_refused_total", "Datagrams from sources that udp.allow_sources does not name.", nil, true}
	mFlows      = Metric{"hopscope_flows", "Flows in the tables.", nil, false}
	mFlowBytes  = Metric{"hopscope_flow_table_bytes", "Memory of the flow tables.", nil, false}
	mEvicted    = Metric{"hopscope_flows_evicted_total", "Flows evicted, because they were idle or because the table was full.", []string{"cause"}, true}
	mDigests    = Metric{"hopscope_digests_total", "PINT digests; and those of them that were not read, rejected, duplicate, or that no path explains.", []string{"outcome"}, true}
	mTraced     = Metric{"hopscope_digest_paths_total", "Flows whose path became known from their digests.", nil, true}
	mUndecided  = Metric{"hopscope_digest_flows_undecided", "Flows whose digests do not tell the path yet.", nil, false}
	mTraceBytes = Metric{"hopscope_digest_bytes", "Memory of traced paths and of the sketches of digests.", nil, false}
	mShardQueue = Metric{"hopscope_shard_queue_reports", "Reports waiting for a shard.", []string{"shard"}, false}
	mLost       = Metric{"hopscope_exporter_lost", "Reports lost on the way to the collector, by their sequence numbers; late ones are taken back.", nil, false}
	mFindings   = Metric{"hopscope_findings_open", "Findings whose cause lasts, by kind and severity.", []string{"kind", "severity"}, false}
	mSinkQueue  = Metric{"hopscope_sink_queue_bytes", "Memory of batches waiting for the sink.", []string{"sink"}, false}
	mSpool      = Metric{"hopscope_sink_spool_bytes", "Bytes on disk waiting for the sink.", []string{"sink"}, false}
	mPoints     = Metric{"hopscope_sink_points_total", "Points, by what became of them.", []string{"sink", "outcome"}, true}
	mRaw        = Metric{"hopscope_raw_reports_total", "Reports of the raw stream, by what became of them.", []string{"outcome"}, true}
	mRetries    = Metric{"hopscope_sink_retries_total", "Writes that were tried again.", []string{"sink"}, true}
)

// The histogram of write times counts as writes happen; all other metrics are read when they are asked for.
const (
	writeSecondsName = "hopscope_sink_write_duration_seconds"
	writeSecondsHelp = "Time of one write to the sink."
)

// Metrics lists every metric but that histogram.
func Metrics() []Metric {
	return []Metric{mReports, mMalformed, mForeign, mReceived, mStored, mInFlight, mDropped, mUnsettled, mFrames, mBytes, mKernel,
		mTruncated, mFlows, mFlowBytes, mEvicted, mDigests, mTraced, mUndecided, mTraceBytes, mShardQueue, mLost, mFindings, mSinkQueue, mSpool, mPoints, mRetries, mRaw, mRefused}
}

// registry makes a registry that reads the collector when it is scraped.
func (c *Collector) registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), scrape{c}, c.writeSeconds)
	return r
}

type scrape struct{ c *Collector }

var descriptions = func() map[string]*prometheus.Desc {
	m := map[string]*prometheus.Desc{}
	for _, x := range Metrics() {
		m[x.Name] = prometheus.NewDesc(x.Name, x.Help, x.Labels, nil)
	}
	return m
}()

// Describe implements prometheus.Collector.
func (s scrape) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s scrape) Collect(ch chan<- prometheus.Metric) {
	c := s.c
	emit := func(m Metric, v float64, labels ...string) {
		kind := prometheus.GaugeValue
		if m.Counter {
			kind = prometheus.CounterValue
		}
		ch <- prometheus.MustNewConstMetric(descriptions[m.Name], kind, v, labels...)
	}
	t := c.pipeline.totals()
	for key, n := range t.ByKind {
		format, kind, _ := strings.Cut(key, " ")
		emit(mReports, float64(n), format, kind)
	}
	for key, n := range t.Malformed {
		format, reason, _ := strings.Cut(key, " ")
		emit(mMalformed, float64(n), format, reason)
	}
	emit(mForeign, float64(t.Foreign))
	for _, b := range c.ledger.Snapshot() {
		emit(mReceived, float64(b.Received), b.Sink)
		emit(mStored, float64(b.Stored), b.Sink)
		emit(mUnsettled, float64(b.Unsettled), b.Sink)
		for stage, n := range b.InFlight {
			emit(mInFlight, float64(n), b.Sink, stage)
		}
		for stage, n := range b.Dropped {
			emit(mDropped, float64(n), b.Sink, stage)
		}
	}
	if c.udp != nil {
		u := c.udp.Stats()
		emit(mFrames, float64(u.Frames))
		emit(mBytes, float64(u.Bytes))
		emit(mKernel, float64(u.KernelDropped))
		emit(mTruncated, float64(u.Truncated))
		emit(mRefused, float64(u.Refused))
	}
	var sum shard.Stats
	for i, q := range c.pipeline.shards {
		emit(mShardQueue, float64(q.depth.Load()), strconv.Itoa(i))
		if st := q.stats.Load(); st != nil {
			sum.Flows += st.Flows
			sum.MemoryBytes += st.MemoryBytes
			sum.EvictedIdle += st.EvictedIdle
			sum.EvictedPressure += st.EvictedPressure
			sum.Digests.Add(st.Digests)
		}
	}
	emit(mFlows, float64(sum.Flows))
	emit(mFlowBytes, float64(sum.MemoryBytes))
	emit(mEvicted, float64(sum.EvictedIdle), "idle")
	emit(mEvicted, float64(sum.EvictedPressure), "pressure")
	d := &sum.Digests
	emit(mDigests, float64(d.Digests), "received")
	emit(mDigests, float64(d.Unread), "unread")
	emit(mDigests, float64(d.Rejected), "rejected")
	emit(mDigests, float64(d.Duplicate), "duplicate")
	emit(mDigests, float64(d.Strange), "strange")
	emit(mTraced, float64(d.Decoded))
	emit(mUndecided, float64(d.Undecided))
	emit(mTraceBytes, float64(d.Bytes))

	c.stateMu.Lock()
	lost := int64(0)
	for _, e := range c.exporters {
		lost += e.Lost
	}
	open := map[[2]string]float64{}
	for _, f := range c.findings {
		if f.End == 0 {
			open[[2]string{f.Kind.String(), f.Severity.String()}]++
		}
	}
	c.stateMu.Unlock()
	emit(mLost, float64(lost))
	for k, n := range open {
		emit(mFindings, n, k[0], k[1])
	}
	c.collectSinks(emit)
}
