package emu

import (
	"fmt"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode/pint"
)

// Reports a second of one core, with all that a report takes: traffic, queues, one to five switches, the datagram.
func BenchmarkReports(b *testing.B) {
	bench := func(name string, edit func(*Config)) {
		b.Run(name, func(b *testing.B) {
			cfg := DefaultConfig()
			cfg.PacketRate, cfg.LinkRate = 1e6, 10e9
			edit(&cfg)
			n := mustNew(b, cfg, 1)
			bytes, at := 0, 10*time.Millisecond
			emit := func(d Datagram) { bytes += len(d.Payload) }
			n.Run(at, emit)
			before := n.Stats()
			bytes = 0
			b.ReportAllocs()
			for b.Loop() { // a millisecond: about a thousand packets
				at += time.Millisecond
				n.Run(at, emit)
			}
			reports := float64(n.stats.Reports.Written - before.Reports.Written)
			b.ReportMetric(reports/b.Elapsed().Seconds(), "reports/s")
			b.ReportMetric(float64(n.stats.Events-before.Events)/reports, "events/report")
			b.ReportMetric(float64(bytes)/reports, "B/report")
		})
	}
	for d := MD21; d < Off; d++ {
		bench(d.String(), func(c *Config) { c.Dialect = d })
	}
	bench("pint", func(c *Config) { c.Dialect, c.Plan, c.PINTShare = Off, testPlan(b, pint.HashMix), 1 })
	bench("int-md-2.1/4-a-datagram", func(c *Config) { c.ReportsPerDatagram = 4 })
	bench("int-md-2.1/1000000-flows", func(c *Config) { c.Flows, c.Skew = 1_000_000, 0 })
	bench("int-md-2.1/loaded", func(c *Config) { c.LinkRate = 3e9 })
}

func BenchmarkRenumber(b *testing.B) {
	cfg := DefaultConfig()
	r, err := Record(mustNew(b, cfg, 1), 10_000)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Renumber()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*r.Len()), "ns/datagram")
}

// ExampleNetwork_Run counts what the switches of a small fabric report in a tenth of a second.
func ExampleNetwork_Run() {
	cfg := DefaultConfig()
	cfg.Topology = "leaf-spine:2,4"
	n, err := New(cfg, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	exporters := map[string]bool{}
	n.Run(100*time.Millisecond, func(d Datagram) { exporters[d.From.String()] = true })
	s := n.Stats()
	fmt.Println(len(exporters), "leaves report;", s.Sent == s.Delivered+s.InFlight, "that nothing is lost")
	// Output: 4 leaves report; true that nothing is lost
}
