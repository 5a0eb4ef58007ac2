package collector

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/sink"
)

// gearSource is a source of what gear sends, in its own time.
type gearSource struct {
	network *scenario.Gear
	until   time.Duration
}

func (g *gearSource) Workers() int        { return 1 }
func (g *gearSource) Waits() bool         { return true }
func (g *gearSource) Stats() ingest.Stats { return ingest.Stats{} }

func (g *gearSource) Run(ctx context.Context, handle func(worker int, b *ingest.Batch)) error {
	epoch := time.Unix(1_700_000_000, 0)
	for at := time.Duration(0); at < g.until && ctx.Err() == nil; at += scenario.Step {
		var b ingest.Batch
		g.network.Next(func(device int, payload []byte) {
			data := append([]byte(nil), payload...)
			b.Frames = append(b.Frames, ingest.Frame{Data: data, Length: len(data), Link: ingest.LinkUDP, Src: netip.AddrPortFrom(scenario.GearSource(device), 40_000), Time: epoch.Add(at).UnixNano()})
		})
		handle(0, &b)
	}
	return nil
}

// gearFinds is what is found in a network of gear, and its elements. Node 167772161 is 10.0.0.1, and 2131886081 is 127.18.0.1.
func gearFinds(name string) []string {
	if name == "juniper" {
		return []string{"drops node 2131886081", "drops node 2131886085", "exporter-silence exporter 127.18.0.4 node 2131886084 hardware 0"}
	}
	return []string{
		"drops node 167772161", "drops node 167772165", "interface-discards interface 167772161:4", "high-utilization interface 167772161:4",
		"interface-errors interface 167772163:2", "exporter-silence exporter 10.0.0.4 node 167772164 hardware 0",
	}
}

// uses counts the interfaces of windows with half the use inwards that they have outwards, as gear has it, and all
// others.
type uses struct{ half, other int }

func (*uses) Name() string { return "uses" }

func (u *uses) WriteWindow(_ context.Context, w *sink.Window) error {
	out := map[inference.HopKey]float64{}
	for i := range w.Hops {
		if h := &w.Hops[i]; h.HasUtilization {
			out[h.HopKey] = h.Utilization
		}
	}
	for i := range w.Interfaces {
		s := &w.Interfaces[i]
		sent, known := out[s.Key()]
		if in, ok := s.Received(); !ok || !known || math.Abs(in-sent/2) > 2e-4 || s.InOctets == 0 {
			u.other++
		} else {
			u.half++
		}
	}
	return nil
}

// A network with sFlow alone shows the use of its interfaces in both directions. It also shows a congested port, drops
// with their reason, damaged packets and a silent agent, each at its element. One with IPFIX alone shows drops and a
// silent router. Neither shows latencies or paths where samples hold none.
func TestGear(t *testing.T) {
	for _, name := range scenario.GearKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			network, err := scenario.NewGear(name, 1)
			if err != nil {
				t.Fatal(err)
			}
			cfg := testConfig()
			cfg.Window = time.Second
			cfg.Events.Warmup = 15
			c, err := New(cfg.Config, cfg.Analysis, Options{Sources: []Source{{Name: "gear", Source: &gearSource{network, scenario.Repeat}}}, Policy: Replay})
			if err != nil {
				t.Fatal(err)
			}
			found := lastStates{}
			c.AddWriter(found)
			var used uses
			c.AddWriter(&used)
			if err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if (used.half > 1000) != (name != "juniper") || used.other > 0 {
				t.Errorf("%d interfaces receive half of what they send, and %d do not", used.half, used.other)
			}
			var got []string
			for _, f := range found {
				if f.Severity > inference.Info && f.Evidence == 0 {
					got = append(got, fmt.Sprintf("%s %s", f.Kind, f.Element))
				}
				if f.End == 0 {
					t.Errorf("still open: %s", f.Text)
				}
			}
			slices.Sort(got)
			t.Log(strings.Join(got, "\n"))
			for _, want := range gearFinds(name) {
				if !slices.Contains(got, want) {
					t.Errorf("no %q among\n%s", want, strings.Join(got, "\n"))
				}
			}
			s := c.Summary(100, 100)
			if s.Malformed != 0 || len(s.Exporters) != 6 {
				t.Errorf("%d malformed, %d exporters", s.Malformed, len(s.Exporters))
			}
			for _, h := range s.Hops {
				if (h.Latency != nil) != (name == "arista") {
					t.Errorf("hop %d:%d has the latency %v", h.NodeID, h.EgressIf, h.Latency)
				}
			}
		})
	}
}
