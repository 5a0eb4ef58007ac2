package collector_test

import (
	"context"
	"fmt"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/ingest/pcapfile"
	"github.com/hopscope/hopscope/sink"
)

// places is a writer of windows. It prints where the packets of each window were.
type places struct{}

func (places) Name() string { return "places" }

func (places) WriteWindow(_ context.Context, w *sink.Window) error {
	fmt.Printf("%d reports of %d exporters\n", w.Reports, len(w.Exporters))
	for _, h := range w.Hops {
		fmt.Printf("  %s: %d packets\n", h.Place(), h.Count)
	}
	for _, f := range w.Findings {
		fmt.Printf("  %s: %s\n", f.Severity, f.Text)
	}
	return nil
}

// A program that embeds the engine gives it sources and receives windows. Here the source is a capture, so that nothing
// is dropped and the windows follow the clock of the capture.
func Example() {
	var settings collector.Config
	settings.SetDefaults()
	settings.Exporters.Profile = "fabric-tna"
	var analysis collector.Analysis
	analysis.SetDefaults()

	capture := pcapfile.NewSource(pcapfile.DefaultConfig(), "../decode/testdata/fabric-report05.pcap")
	c, err := collector.New(settings, analysis, collector.Options{
		Seed: 1, Policy: collector.Replay,
		Sources: []collector.Source{{Name: "capture", Source: capture}},
		Writers: []sink.WindowWriter{places{}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Run(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(collector.LedgerLine(&c.Balances()[0]))
	// Output:
	// 120 reports of 3 exporters
	//   node 1 interface 2: 40 packets
	//   node 2 interface 3: 40 packets
	//   node 3 interface 1: 40 packets
	// 0 reports of 3 exporters
	// 59 reports of 3 exporters
	//   node 1: 59 packets
	//   critical: node 1 dropped 59 packets for reason 29, the last of 10.0.1.1:1 > 10.0.9.9:2 tcp; at least 25 % of its packets
	//   critical: exporter 10.0.0.1 node 1 hardware 0 lost 450 of 509 reports since 2026-11-20 10:50:50, 88.4 %, at least 78 %
	//   critical: node 1 explains 2 findings: 1 exporter-loss, 1 drops; exporter 10.0.0.1 node 1 hardware 0 lost 450 of 509 reports since 2026-11-20 10:50:50, 88.4 %, at least 78 %
	// windows: 179 received = 179 stored + 0 in flight + 0 dropped
}
