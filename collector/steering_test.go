package collector

import (
	"flag"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/ingest/udp"
)

// The long form of TestSteering: go test ./collector -run TestSteering -count 20 -steering.count 1500000 -steering.rate 150000
var (
	steeringCount = flag.Uint64("steering.count", 60_000, "datagrams that TestSteering sends in each way")
	steeringRate  = flag.Float64("steering.rate", 0, "datagrams a second that TestSteering sends; 0 sends as fast as the machine can")
)

// onePerPort sends the reports of one exporter from several source ports in turn, under one sequence of numbers.
type onePerPort struct {
	*traffic.Generator
	ports int
}

func (o onePerPort) Exporters() int { return o.ports }

func (o onePerPort) NextFrom(_ int, buf []byte) []byte { return o.Generator.NextFrom(0, buf) }

// TestSteering sends the reports of one exporter to four workers, which see them out of order. Exactly the kernel's
// drops count as lost, and the exporter never began anew.
func TestSteering(t *testing.T) {
	for name, tt := range map[string]struct {
		steering string
		ports    int
	}{
		"spread":                {udp.SteerSpread, 1},
		"spread of eight ports": {udp.SteerSpread, 8},
		"hash of eight ports":   {udp.SteerHash, 8},
		"hash of a single port": {udp.SteerHash, 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig()
			cfg.UDP.Listen = []string{"127.0.0.1:0"}
			cfg.UDP.Workers, cfg.UDP.Steering = 4, tt.steering
			r := start(t, cfg)
			gen, err := traffic.New(traffic.Config{Seed: 1, Flows: 100, Hops: 3, Exporters: 1, Bytes: 200})
			if err != nil {
				t.Fatal(err)
			}
			sent := uint64(0)
			send := func(cfg traffic.SendConfig) {
				t.Helper()
				cfg.To = r.Addrs()[0]
				result, err := traffic.Send(t.Context(), cfg, onePerPort{gen, tt.ports})
				if err != nil {
					t.Fatal(err)
				}
				sent += result.Sent
			}
			settled := func() {
				t.Helper()
				r.waitFor("all reports", func() bool {
					b := r.ledger.Snapshot()[0]
					return b.Received == sent
				})
			}
			// A few slow ones at both ends arrive, so that each number that is dropped has one before and one behind it.
			send(traffic.SendConfig{Rate: 1000, Count: 50})
			settled()
			send(traffic.SendConfig{Rate: *steeringRate, Count: *steeringCount})
			settled()
			send(traffic.SendConfig{Rate: 1000, Count: 50})
			settled()
			s := r.stop()
			kernel := s.Ledger.Dropped["kernel"]
			t.Logf("%d sent, %d dropped by the kernel, %d late", sent, kernel, s.Exporters[0].Late)
			if len(s.Exporters) != 1 {
				t.Fatalf("%d exporters", len(s.Exporters))
			}
			e := s.Exporters[0]
			if e.Lost != kernel || e.Restarts != 0 || e.Duplicated != 0 || e.Reports+uint64(e.Lost) != sent {
				t.Errorf("%+v, want %d lost of %d", e, kernel, sent)
			}
			for _, f := range s.Findings { // what a starved worker reads late is missing until then, and is taken back
				if back := e.Late > 0 && strings.Contains(f.Text, " lost 0 of "); kernel == 0 && !back && f.Kind == inference.ExporterLoss.String() {
					t.Errorf("nothing was lost, and yet: %s", f.Text)
				}
			}
		})
	}
}
