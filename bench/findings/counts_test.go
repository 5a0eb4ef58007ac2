package findings

import (
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/demux"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/p4/probe"
)

// A port that drops packets, none of which its switch reports, is found by its counters in FANT probes. A finding
// names this port, and no other, and attention follows from it. Nothing else in the network sends reports.
func TestDropsThatProbesRead(t *testing.T) {
	cfg := emu.DefaultConfig()
	cfg.Dialect, cfg.DropReports, cfg.SampleEvery, cfg.QueueBytes = emu.FANT, false, 1_000_000, 20_000
	cfg.Script = []emu.Fault{{Kind: emu.CrossTraffic, At: 60 * time.Second, For: 40 * time.Second, Node: "agg-1-0", Peer: "core-1", Value: 1.2}}
	for _, pod := range []string{"0", "1", "2", "3"} {
		cfg.Agents = append(cfg.Agents, emu.Agent{Switch: "edge-" + pod + "-0"}, emu.Agent{Switch: "edge-" + pod + "-1"})
	}
	n, err := emu.New(cfg, 4)
	if err != nil {
		t.Fatal(err)
	}
	plan, _, err := scenario.CoverPlan(n, 1, probe.FANT, 200*time.Millisecond, 8, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range cfg.Agents {
		n.SendPlan(a.Switch, plan)
	}
	g := n.Graph()
	at, _ := g.Lookup("agg-1-0")
	wrong := inference.HopKey{Node: n.NodeID(at)}
	lo, hi := g.Interfaces(at)
	for i := lo; i < hi; i++ {
		if v := g.Neighbor(i); v >= 0 && g.NodeName(v) == "core-1" {
			wrong.EgressIf = uint32(g.Port(i))
		}
	}
	profile, _ := demux.Lookup("fant")
	d, batch, s, detector := demux.New(profile), decode.Batch{}, shard.New(shard.DefaultConfig(), 1), events.New(events.DefaultConfig())
	begun, ended, dropped := time.Duration(0), time.Duration(0), uint64(0)
	for now := time.Duration(0); now < 150*time.Second; now += time.Second {
		n.Run(now+time.Second, func(x emu.Datagram) {
			batch.Reset()
			d.Datagram(&batch, decode.AddrFrom(x.From.Addr()), x.Payload, cfg.Epoch.UnixNano()+int64(x.At))
			s.Update(batch.Reports)
		})
		var p window.Partial
		p.Span(cfg.Epoch.UnixNano()+int64(now), cfg.Epoch.UnixNano()+int64(now+time.Second))
		c := s.Cut(p.End)
		c.AddTo(&p)
		s.Recycle(c)
		w := p.Window(window.NoLimits())
		for _, x := range w.Interfaces {
			if x.Key() == wrong {
				dropped += x.OutDiscards
			} else if x.OutDiscards > 0 && now < 60*time.Second {
				t.Errorf("after %v node %d drops %d packets at port %d", now, x.Node, x.OutDiscards, x.Interface)
			}
		}
		for _, f := range detector.Step(&w) {
			if f.Kind != inference.InterfaceDiscards {
				continue
			}
			if f.Node != wrong.Node || f.EgressIf != wrong.EgressIf {
				t.Errorf("after %v: %v: %s", now, f.Element, f.Text)
			} else if begun == 0 {
				begun = now
			}
			if f.End != 0 {
				ended = now
			}
		}
	}
	if begun < 60*time.Second || begun > 65*time.Second || ended < 100*time.Second {
		t.Errorf("found after %v, ended after %v; packets were dropped from 60s to 100s", begun, ended)
	}
	truth := uint64(n.Counts(g.ByPort(at, int(wrong.EgressIf))).DroppedPackets)
	if truth < 1000 || dropped > truth || dropped < truth*99/100 {
		t.Errorf("windows have %d dropped packets, the port %d", dropped, truth)
	}
}
