package collector

import (
	"github.com/hopscope/hopscope/collector/digests"
	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/collector/ledger"
	"github.com/hopscope/hopscope/collector/metrics"
	"github.com/hopscope/hopscope/sink"
)

// The names under which programs that embed a collector know what its inner packages define.

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
	DroppedMalformed  = ledger.DroppedMalformed
	DroppedForeign    = ledger.DroppedForeign
	DroppedShardQueue = ledger.DroppedShardQueue
	DroppedSinkQueue  = ledger.DroppedSinkQueue
	DroppedSpool      = ledger.DroppedSpool
	DroppedEncoding   = ledger.DroppedEncoding
	DroppedRejected   = ledger.DroppedRejected
	DroppedDown       = ledger.DroppedDown
)

// NewLedger makes an empty ledger for the named sinks.
func NewLedger(sinks ...string) *Ledger { return ledger.New(sinks...) }

// LedgerLine gives a balance in one line: "influx: 1000 received = 990 stored + 4 in flight (window 4) + 6 dropped (kernel 6)".
func LedgerLine(b *sink.Balance) string { return ledger.Line(b) }

// PointsLine gives a store's points in one line, with the series of which it has refused some: "influx: 3295 points made =
// 40 stored + 0 in flight + 0 dropped + 3255 refused (hop 3255)". It is empty for what is no store of series.
func PointsLine(b *sink.Balance) string { return ledger.PointsLine(b) }

// Exporters says how the senders of reports are read.
type (
	Exporters       = exporters.Config
	ExporterProfile = exporters.Profile
	Dialect         = exporters.Dialect
	DialectDomain   = exporters.DialectDomain
	DialectUnits    = exporters.DialectUnits
	DialectReason   = exporters.DialectReason
	Site            = exporters.Site
)

// PINT says what digests can stand for, and Network what paths can lead over.
type (
	PINT     = digests.Config
	PINTEdge = digests.Edge
	Network  = digests.Network
)

// DefaultPINT decodes nothing until it is told the nodes.
func DefaultPINT() PINT { return digests.DefaultConfig() }

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
