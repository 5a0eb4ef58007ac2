package pipeline

import (
	"sync/atomic"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference/names"
)

// decodeCounts counts what one worker decoded. The worker writes, any goroutine reads.
type decodeCounts struct {
	reports   [decode.NumFormats][decode.NumKinds]atomic.Uint64
	versions  [decode.NumFormats][32]atomic.Uint64 // by report or INT version, well-formed or not
	malformed [decode.NumFormats][decode.NumReasons]atomic.Uint64
	foreign   atomic.Uint64
	resets    atomic.Uint64
	_         [64]byte // workers do not share the last cache line
}

func (c *decodeCounts) add(r *decode.Report) {
	bump(&c.versions[r.Format][r.Version&31])
	if r.Err.Reason != 0 {
		bump(&c.malformed[r.Err.Format][r.Err.Reason])
		return
	}
	bump(&c.reports[r.Format][r.Kind])
}

// bump adds one where only one goroutine writes: a load and a store are a fifth of a locked add.
func bump(n *atomic.Uint64) { n.Store(n.Load() + 1) }

// DecodeTotals counts what all workers decoded.
type DecodeTotals struct {
	ByKind    map[string]uint64 // "telemetry-report int-stack"
	ByFormat  map[string]uint64 // "telemetry-report 2.0", malformed ones included
	Malformed map[string]uint64 // "int-md bad-width"
	Reports   uint64            // well-formed
	Bad       uint64
	Foreign   uint64
	Resets    uint64 // of counters and histograms of metrics
}

// Totals sums the counters of all workers.
func (p *Pipeline) Totals() DecodeTotals {
	t := DecodeTotals{ByKind: map[string]uint64{}, ByFormat: map[string]uint64{}, Malformed: map[string]uint64{}}
	for _, w := range p.workers {
		c := &w.counts
		t.Foreign += c.foreign.Load()
		t.Resets += c.resets.Load()
		for f := range decode.NumFormats {
			name := decode.Format(f).String()
			for k := range decode.NumKinds {
				if n := c.reports[f][k].Load(); n > 0 {
					t.ByKind[name+" "+decode.Kind(k).String()] += n
					t.Reports += n
				}
			}
			for v := range 32 {
				if n := c.versions[f][v].Load(); n > 0 {
					key := name
					if v > 0 {
						key += " " + decode.Version(v).String()
					}
					t.ByFormat[key] += n
				}
			}
			for r := range decode.NumReasons {
				if n := c.malformed[f][r].Load(); n > 0 {
					t.Malformed[name+" "+decode.Reason(r).String()] += n
					t.Bad += n
				}
			}
		}
	}
	return t
}

// Inside returns the samples that by the figures of sFlow agents did not leave their devices, since the decoders were made: see
// [demux.Router.Inside].
func (p *Pipeline) Inside() (missing, dropped uint64) {
	for _, w := range p.workers {
		m, d := w.decoder.Load().Inside()
		missing, dropped = missing+m, dropped+d
	}
	return missing, dropped
}

// Learned returns what sFlow agents and metrics reported of themselves and their interfaces since the last call, and the
// addresses of routers on the ways of probes.
func (p *Pipeline) Learned() (nodes []names.Node) {
	nodes = p.routers.drain()
	var ports []demux.SFlowPort
	for _, w := range p.workers {
		ports = append(ports, w.decoder.Load().Learned()...)
	}
	for _, x := range ports {
		if x.Why != "" {
			nodes = append(nodes, names.Node{ID: x.Node, DropReasons: map[uint8]string{x.Reason: x.Why}})
			continue
		}
		nodes = append(nodes, names.Node{ID: x.Node, Name: x.Agent.String(), Interfaces: []names.Interface{{ID: x.Index, Name: x.Name, Speed: float64(x.Speed)}}})
	}
	for _, w := range p.workers {
		if m := w.metrics.Load(); m != nil {
			for _, x := range m.Learned() {
				nodes = append(nodes, names.Node{ID: x.Node, Name: x.Host, Interfaces: []names.Interface{{ID: x.Index, Name: x.Name, Speed: x.Speed}}})
			}
		}
	}
	return nodes
}
