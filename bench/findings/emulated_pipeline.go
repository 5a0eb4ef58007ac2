package findings

import (
	"fmt"
	"time"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/sequence"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/p4/emu"
)

// pipeline is a collector without goroutines.
type pipeline struct {
	epoch     int64
	decoder   *demux.Decoder
	tracker   *sequence.Tracker
	state     *shard.State
	limits    window.Limits
	batch     decode.Batch
	partial   window.Partial
	exporters []inference.ExporterStats
	reports   uint64
}

// fullPacket is how long a line is busy with a packet of 1500 bytes. Lines of the emulated network are slow, so that
// a latency of a few of these is usual. The floor for faster lines would publish packets that waited for one other.
const fullPacket = 1500 * 8 * time.Second / lineRate

// analysis is how the collector is set.
func analysis() *collector.Analysis {
	var a collector.Analysis
	a.SetDefaults()
	a.Flows.MemoryBytes = 16 << 20
	a.Events.LatencyFloor = fullPacket
	return &a
}

// EventsConfig returns the settings of detectors on the emulated network.
func EventsConfig() events.Config { return analysis().Events }

func newPipeline(a *collector.Analysis, n *emu.Network, plan *pint.Plan, epoch int64) (*pipeline, error) {
	profile, ok := demux.Lookup("auto")
	if !ok {
		return nil, fmt.Errorf("no profile called auto")
	}
	network := &collector.Network{Links: n.Graph().NodePairs(), Weights: n.Graph().PairWeights()}
	for i := range n.Graph().NumNodes() {
		network.Nodes = append(network.Nodes, n.NodeID(i))
	}
	state, err := collector.NewShard(a, collector.Options{Seed: 1, Network: network, Plans: []*pint.Plan{plan}}, 1)
	if err != nil {
		return nil, err
	}
	return &pipeline{
		epoch: epoch, decoder: demux.New(profile), tracker: sequence.New(sequence.DefaultConfig(), 1), state: state,
		limits: a.Flows.Limits(),
	}, nil
}

// batchReports are counted together.
const batchReports = 128

func (p *pipeline) datagram(d emu.Datagram) {
	p.decoder.Datagram(&p.batch, decode.AddrFrom(d.From.Addr()), d.Payload, p.epoch+int64(d.At))
	if len(p.batch.Reports) >= batchReports {
		p.count()
	}
}

func (p *pipeline) count() {
	p.reports += uint64(len(p.batch.Reports))
	for _, r := range p.batch.Reports {
		p.tracker.Observe(r)
	}
	p.state.Update(p.batch.Reports)
	p.batch.Reset()
}

// cut returns the window that ends now.
func (p *pipeline) cut(from, to time.Duration) inference.Window {
	p.count()
	end := p.epoch + int64(to)
	c := p.state.Cut(end)
	p.partial.Reset()
	p.partial.Span(p.epoch+int64(from), end)
	c.AddTo(&p.partial)
	p.state.Recycle(c)
	p.exporters = p.tracker.Cut(p.exporters[:0], end)
	p.partial.AddExporters(p.exporters)
	return p.partial.Window(p.limits)
}
