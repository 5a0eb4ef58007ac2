package collector

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/sink"
)

// emulation is a source of the report datagrams of an emulated network, in its own time.
type emulation struct {
	network *emu.Network
	epoch   time.Time
	until   time.Duration
}

func (e *emulation) Workers() int        { return 1 }
func (e *emulation) Waits() bool         { return true }
func (e *emulation) Stats() ingest.Stats { return ingest.Stats{} }

func (e *emulation) Run(ctx context.Context, handle func(worker int, b *ingest.Batch)) error {
	for at := time.Duration(0); at < e.until && ctx.Err() == nil; at += 100 * time.Millisecond {
		var b ingest.Batch
		e.network.Run(at, func(d emu.Datagram) {
			data := append([]byte(nil), d.Payload...)
			b.Frames = append(b.Frames, ingest.Frame{Data: data, Length: len(data), Link: ingest.LinkUDP,
				Src: d.From, Time: e.epoch.Add(d.At).UnixNano()})
		})
		handle(0, &b)
	}
	return nil
}

// lastStates is a writer that keeps the last state of all findings.
type lastStates map[uint64]inference.Finding

func (lastStates) Name() string { return "last states" }

func (k lastStates) WriteWindow(_ context.Context, w *sink.Window) error {
	for _, f := range w.Findings {
		k[f.ID] = f
	}
	return nil
}

// TestDemoRecovers runs the demonstration for ten minutes of its own time, and a quarter of a minute more without a
// fault. Every fault is published once at its element, as one cause or as a finding without one. The exporter that
// loses reports and the one that falls silent are found, and no other exporter is ever critical. At the end no finding
// is open.
func TestDemoRecovers(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	emulated, err := scenario.PINTDemo()
	if err != nil {
		t.Fatal(err)
	}
	if testkit.Race && !testkit.Night() { // TestDemoNetwork races all packets, and TestLoopDemoRecovers of cmd/hopscope has all in this time
		emulated.PacketRate /= 4
	}
	emulated.Epoch = time.Unix(1_700_000_000, 0)
	network, err := emu.New(emulated, 1)
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig()
	cfg.Window = time.Second
	cfg.Events.Warmup = 15
	cfg.Exporters.Profiles = []ExporterProfile{{Prefix: "127.17.0.0/16", Profile: "int-path"}}
	ids := make([]uint32, network.Graph().NumNodes())
	for i := range ids {
		ids[i] = network.NodeID(i)
	}
	repeats := testkit.Rounds(1, 3)
	e := &emulation{network, emulated.Epoch, time.Duration(repeats)*emulated.Repeat + 15*time.Second}
	c, err := New(cfg.Config, cfg.Analysis, Options{
		Sources: []Source{{Name: "emulation", Source: e}}, Policy: Replay,
		Network: &Network{Nodes: ids, Links: network.Graph().NodePairs()}, Plans: []*pint.Plan{emulated.Plan},
	})
	if err != nil {
		t.Fatal(err)
	}
	found := lastStates{}
	c.AddWriter(found)
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkRecovered(t, found)
	elements := []string{ // of the faults, in the order of the script; a switch that diverts flows, or the link to which
		"interface 5:3", "link 7–15", "node 10", "node 4", "exporter 127.16.0.19 node 19 hardware 0", "exporter 127.16.0.18 node 18 hardware 0", "node 14", "link 2–11 or node 11",
	}
	if len(elements) != len(emulated.Script) {
		t.Fatalf("the script has %d faults, and %d are known here", len(emulated.Script), len(elements))
	}
	for round := range repeats {
		for i, f := range emulated.Script {
			from := emulated.Epoch.Add(time.Duration(round)*emulated.Repeat + f.At).UnixNano()
			until, n := from+int64(f.For)+5e9, 0
			for _, x := range found {
				if x.Cause == 0 && x.Start >= from && x.Start <= until && (x.Severity > inference.Info || f.Kind == emu.DivertFlows) && slices.Contains(strings.Split(elements[i], " or "), x.Element.String()) { // few flows may be diverted
					n++
				}
			}
			if f.Kind == emu.SilenceReports && round > 1 {
				continue // a silence that comes back is one of the exporter's pauses
			}
			if n != 1 {
				t.Errorf("round %d: %v is reported %d times at %s, want once", round+1, f, n, elements[i])
			}
		}
	}
}

// checkRecovered wants that everything has ended, and that no healthy exporter was published as one that is not.
func checkRecovered(t *testing.T, found lastStates) {
	t.Helper()
	causes := 0
	for _, f := range found {
		if f.End == 0 {
			t.Errorf("it is open at the end: %s %s %s", f.Kind, f.Severity, f.Text)
		}
		if f.Cause == 0 && f.Severity > inference.Info {
			causes++
		}
		if f.Kind != inference.ExporterLoss && f.Kind != inference.ExporterSilence || f.Exporter == (decode.Addr{}) {
			continue
		}
		lossy, silent := f.Kind == inference.ExporterLoss && f.Node == 19, f.Kind == inference.ExporterSilence && f.Node == 18
		probes := f.Kind == inference.ExporterSilence && f.Node == 0 && f.Severity < inference.Critical // hosts whose probes meet the failed link
		if !lossy && !silent && !probes {
			t.Errorf("a healthy exporter is reported: %s %s", f.Severity, f.Text)
		}
	}
	t.Logf("%d findings, %d of them causes or alone", len(found), causes)
}
