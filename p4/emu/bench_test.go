package emu

import (
	"fmt"
	"testing"
	"time"
)

// The time of one report, with all that it takes: traffic, queues, five switches, the datagram.
func BenchmarkReports(b *testing.B) {
	bench := func(name string, edit func(*Config)) {
		b.Run(name, func(b *testing.B) {
			cfg := DefaultConfig()
			cfg.PacketRate, cfg.LinkRate = 1e6, 10e9
			edit(&cfg)
			n := mustNew(b, cfg, 1)
			n.Run(10*time.Millisecond, func(Datagram) {})
			before, at, bytes := n.Stats(), n.Now(), 0
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				want := n.stats.Reports.Written + 1
				for n.stats.Reports.Written < want {
					at += 500 * time.Nanosecond
					n.Run(at, func(d Datagram) { bytes += len(d.Payload) })
				}
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
