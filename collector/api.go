package collector

import (
	"log/slog"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/collector/metrics"
	"github.com/hopscope/hopscope/collector/pipeline"
	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/collector/summary"
	"github.com/hopscope/hopscope/collector/windows"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/notify"
)

// The names under which programs that embed a collector use the types of its inner packages.

// Ledger and Stage are those of package ledger.
type (
	Ledger = ledger.Ledger
	Stage  = ledger.Stage
)

// The stages of a ledger.
const (
	Ring              = ledger.Ring
	ShardQueue        = ledger.ShardQueue
	Window            = ledger.Window
	SinkQueue         = ledger.SinkQueue
	SpoolQueue        = ledger.SpoolQueue
	Stored            = ledger.Stored
	DroppedKernel     = ledger.DroppedKernel
	DroppedRing       = ledger.DroppedRing
	DroppedCut        = ledger.DroppedCut
	DroppedMalformed  = ledger.DroppedMalformed
	DroppedForeign    = ledger.DroppedForeign
	DroppedShardQueue = ledger.DroppedShardQueue
	DroppedSinkQueue  = ledger.DroppedSinkQueue
	DroppedSpool      = ledger.DroppedSpool
	DroppedEncoding   = ledger.DroppedEncoding
	DroppedDuplicate  = ledger.DroppedDuplicate
	DroppedRejected   = ledger.DroppedRejected
	DroppedDown       = ledger.DroppedDown
)

// NewLedger makes an empty ledger for the named sinks.
func NewLedger(sinks ...string) *Ledger { return ledger.New(sinks...) }

// LedgerLine returns a balance in one line: "influx: 1000 received = 990 stored + 4 in flight (window 4) + 6 dropped (kernel 6)".
func LedgerLine(b *sink.Balance) string { return ledger.Line(b) }

// PointsLine returns a store's points in one line, with the series of which it refused some: "influx: 3295 points made
// = 40 stored + 0 in flight + 0 dropped + 3255 refused (hop 3255)". It is empty unless the sink is a store of series.
func PointsLine(b *sink.Balance) string { return ledger.PointsLine(b) }

// Exporters has the settings by which reports of each sender are read.
type (
	Exporters       = exporters.Config
	IPFIX           = exporters.IPFIX
	ExporterProfile = exporters.Profile
	Dialect         = exporters.Dialect
	DialectDomain   = exporters.DialectDomain
	DialectUnits    = exporters.DialectUnits
	DialectReason   = exporters.DialectReason
	Site            = exporters.Site
	MetricRule      = exporters.MetricRule
)

// PINT defines the meaning of digests, and Network the links that paths can use.
type (
	PINT     = exporters.DigestConfig
	PINTEdge = exporters.DigestEdge
	Network  = exporters.DigestNetwork
)

// DefaultPINT returns settings that decode nothing until the nodes are set.
func DefaultPINT() PINT { return exporters.DefaultDigestConfig() }

// Source is an origin of frames, and InputStatus one place of them.
type (
	Source       = pipeline.Source
	InputStatus  = pipeline.Input
	DecodeTotals = pipeline.DecodeTotals
	UnreadMetric = pipeline.UnreadMetric
)

// KindOf returns the only kind of datagrams at a port of a kind, as for [Options.Ports].
func KindOf(k ingest.Kind) demux.Kind { return pipeline.KindOf(k) }

// OpenSources opens the sources that have a section in the settings struct cfg points to. Nothing is read yet.
func OpenSources(cfg any) ([]Source, error) { return pipeline.OpenSources(cfg) }

// FirstSpool returns the directory of the first spool of a store of series that is switched on in the settings struct cfg points to, or "".
func FirstSpool(cfg any) string { return stores.FirstSpool(cfg) }

// CloseSources closes sources that are not run after all.
func CloseSources(sources []Source) error { return pipeline.CloseSources(sources) }

// Detector turns windows into findings.
type Detector = windows.Detector

// Summary is the summary of a run, from its first report to its last, and the others are its parts.
type (
	Summary         = summary.Summary
	FlowSummary     = summary.Flow
	FlowJSON        = summary.FlowKey
	LoadSummary     = summary.Load
	PathSummary     = summary.Path
	OtherPath       = summary.OtherPath
	PathSet         = summary.PathSet
	HopSummary      = summary.Hop
	Quantiles       = summary.Quantiles
	ExporterSummary = summary.Exporter
	OtherExporters  = summary.OtherExporters
	FindingSummary  = summary.Finding
	DialectSummary  = summary.Dialect
	LedgerSummary   = summary.Ledger
	AllRuns         = summary.AllRuns
)

// Store and the others are those of package stores.
type (
	Store              = stores.Store
	StoreConfig[C any] = stores.Config[C]
	SpoolConfig        = stores.SpoolConfig
)

// RefusedDir is the directory of refused points of a spool.
func RefusedDir(spool string) string { return stores.RefusedDir(spool) }

// OpenStores opens the stores that are switched on in the settings struct cfg points to, and the streams of reports that
// belong to them. Nothing is written yet.
func OpenStores(cfg any, policy Policy) ([]Store, []sink.ReportWriter, error) {
	return stores.Open(cfg, policy.full())
}

// OpenStore opens the store of one section of the settings struct cfg points to, for series alone.
func OpenStore(cfg any, name string) (*Store, error) { return stores.OpenOne(cfg, name) }

// OpenReceivers opens the receivers of alerts that are switched on, and returns the error of each that cannot be opened by
// its name.
func OpenReceivers(cfg any) (receivers []Store, failed map[string]error) {
	return stores.OpenReceivers(cfg)
}

// CheckStores returns which stores that are switched on in the settings struct cfg points to exclude each other.
func CheckStores(cfg any) error { return stores.Check(cfg) }

// Spools returns the directories of the spools that are switched on in the settings struct cfg points to, by the name of their store.
func Spools(cfg any) map[string]string { return stores.Spools(cfg) }

// StoreNames lists the stores that have a section in the settings struct cfg points to, whether they are switched on or
// not. Receivers of alerts are none of them.
func StoreNames(cfg any) (names []string) { return stores.Names(cfg, false) }

// ReceiverNames lists the receivers of alerts in the same way.
func ReceiverNames(cfg any) (names []string) { return stores.Names(cfg, true) }

// Alerting makes alerts of findings.
type Alerting = stores.Alerting

// AlertMetrics are the metrics of alerts.
var AlertMetrics = stores.AlertMetrics

// RemovedMetrics are the metrics of stores that remove what they stored.
var RemovedMetrics = stores.RemovedMetrics

// NewAlerting reads the file of rules, if there is one. A wrong file is logged, and nothing is muted.
func NewAlerting(cfg notify.Config, instance string, log *slog.Logger) (*Alerting, error) {
	return stores.NewAlerting(cfg, instance, log)
}

// BatchFor is the batch for a receiver. One that is away gets no signs of life meanwhile: they would be old when it is back.
func BatchFor(list []notify.Alert, away bool) *sink.Batch { return stores.BatchFor(list, away) }

// Metric describes one metric of /metrics, and MetricKind is a type of Prometheus.
type (
	Metric     = metrics.Metric
	MetricKind = metrics.Kind
)

// The kinds of metrics.
const (
	Gauge     = metrics.Gauge
	Counter   = metrics.Counter
	Histogram = metrics.Histogram
)
