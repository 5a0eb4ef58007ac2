package collector

import (
	"context"
	"log/slog"
	"time"

	"github.com/hopscope/hopscope/collector/exporters"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/guess"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
)

// Options holds the dependencies of a [Collector] that are not settings: sources, stores, clock, logger.
type Options struct {
	Log  *slog.Logger // nil logs nothing
	Seed uint64       // of all randomness: flow hashes, sketches
	// Hurry, when it ends, ends the draining of a collector that is stopping; nil never does.
	Hurry   context.Context
	Policy  Policy
	Version string // of the program; stores keep it
	// Now reads the wall clock, and in the same instant a clock that is never set. Several goroutines call it. nil reads those of the
	// machine.
	Now func() (wall time.Time, mono time.Duration)

	Sources   []Source
	Stores    []Store
	Writers   []sink.WindowWriter
	Reports   []sink.ReportWriter
	Detectors []Detector // beside those that [Analysis] configures

	// Profile goes before the dialects of the settings, for all frames.
	Profile *demux.Profile
	// Adopted are the known dialects of single senders, and Recognised the findings about them.
	Adopted    *demux.Adopted
	Recognised []guess.Finding
	// Looked has the dialects of senders in captures that are going to be read beside the sockets, nil without any.
	// The collector starts from these, and can drop a dialect as one that it adopted itself.
	Looked *guess.Watch
	// Ports is the only kind of reports at each UDP port in frames of captures. Sockets have their own kinds.
	Ports map[uint16]demux.Kind
	// Network and Plans go before the settings of PINT. LoadNetwork and LoadPlan read what those settings name.
	Network     *Network
	Plans       []*pint.Plan
	LoadNetwork func(topology string) (*Network, error)
	LoadPlan    func(file string) (*pint.Plan, error)
	// Sites are those of the settings, for [NewShard]; a collector has them in its own.
	Sites []Site
	// Ways are those that flows may take, for [NewShard]; a collector reads what its settings name.
	Ways *inference.Policy
}

func (o *Options) digestInputs() *exporters.DigestInputs {
	return &exporters.DigestInputs{Network: o.Network, Plans: o.Plans, LoadNetwork: o.LoadNetwork, LoadPlan: o.LoadPlan, Log: o.Log}
}
