package world

import (
	"fmt"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
)

// pipeline is a collector with its defaults, without goroutines and clocks.
type pipeline struct {
	decoder   *demux.Decoder
	tracker   *sequence.Tracker
	state     *shard.State
	limits    window.Limits
	detector  *events.Detector
	batch     decode.Batch
	partial   window.Partial
	exporters []inference.ExporterStats
	reports   int
	refused   int // reports with an error, and datagrams that are none
}

func newPipeline() (*pipeline, error) {
	profile, ok := demux.Lookup("auto")
	if !ok {
		return nil, fmt.Errorf("no profile called auto")
	}
	var a collector.Analysis
	a.SetDefaults()
	a.Flows.MemoryBytes = 8 << 20
	state, err := collector.NewShard(&a, collector.Options{Seed: 1}, 1)
	if err != nil {
		return nil, err
	}
	return &pipeline{
		decoder: demux.New(profile), tracker: sequence.New(sequence.DefaultConfig(), 1), state: state, limits: a.Flows.Limits(),
		detector: events.New(a.Events),
	}, nil
}

// datagram counts a datagram that arrives at a time, in ns.
func (p *pipeline) datagram(d *datagram, at int64) {
	before := len(p.batch.Reports)
	p.decoder.Datagram(&p.batch, decode.AddrFrom(d.from), d.payload, at)
	if len(p.batch.Reports) == before {
		p.refused++
	}
	if len(p.batch.Reports) >= 128 {
		p.count()
	}
}

func (p *pipeline) count() {
	p.reports += len(p.batch.Reports)
	for _, r := range p.batch.Reports {
		if r.Err.Reason != 0 {
			p.refused++
		}
		p.tracker.Observe(r)
	}
	p.state.Update(p.batch.Reports)
	p.batch.Reset()
}

// cut ends a window and returns its findings.
func (p *pipeline) cut(from, to int64) []inference.Finding {
	p.count()
	c := p.state.Cut(to)
	p.partial.Reset()
	p.partial.Span(from, to)
	c.AddTo(&p.partial)
	p.state.Recycle(c)
	p.exporters = p.tracker.Cut(p.exporters[:0], to)
	p.partial.AddExporters(p.exporters)
	w := p.partial.Window(p.limits)
	return p.detector.Step(&w)
}
