package collector

import (
	"context"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/p4/emu"
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

// TestDemoRecovers lets the demonstration run a round in its own time: the exporter that loses reports and the one that
// falls silent are told and no others, and nothing is open at its end, though switches speak of drops and queues only
// while there are any.
func TestDemoRecovers(t *testing.T) {
	emulated := emu.DemoConfig()
	emulated.Epoch = time.Unix(1_700_000_000, 0)
	emulated.Probes = nil
	network, err := emu.New(emulated, 1)
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig()
	cfg.Window = time.Second
	e := &emulation{network, emulated.Epoch, emulated.Repeat}
	c, err := New(cfg.Config, cfg.Analysis, Options{Sources: []Source{{Name: "emulation", Source: e}}, Policy: Replay})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := map[string]uint32{}
	for _, f := range c.Summary(1, 1).Findings {
		if f.Kind != inference.ExporterLoss.String() && f.Kind != inference.ExporterSilence.String() {
			continue
		}
		t.Log(f.Kind, f.Severity, time.Duration(f.Start-emulated.Epoch.UnixNano()), time.Duration(f.End-emulated.Epoch.UnixNano()), f.Text)
		if f.End == 0 || told[f.Kind] != 0 {
			t.Errorf("there is another, or it does not end: %s", f.Text)
		}
		told[f.Kind] = f.NodeID
	}
	// edge-3-0 and edge-2-1
	if told[inference.ExporterLoss.String()] != 19 || told[inference.ExporterSilence.String()] != 18 {
		t.Errorf("told of the exporters %v", told)
	}
}
