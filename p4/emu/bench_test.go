package emu

import (
	"fmt"
	"syscall"
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
	for d := md21; d < Off; d++ {
		bench(d.String(), func(c *Config) { c.Dialect = d })
	}
	bench("pint", func(c *Config) { c.Dialect, c.Plan, c.PINTShare = Off, testPlan(b, pint.HashMix), 1 })
	bench("int-md-2.1/4-a-datagram", func(c *Config) { c.ReportsPerDatagram = 4 })
	bench("int-md-2.1/1000000-flows", func(c *Config) { c.Flows, c.Skew = 1_000_000, 0 })
	bench("int-md-2.1/loaded", func(c *Config) { c.LinkRate = 3e9 })
}

// BenchmarkFatTree1125 measures packet-hops a second of one core in a fat-tree of 1,125 switches and 6,750 hosts (k =
// 30). Its 100,000 flows are all alike, so that nothing is in a cache for long.
func BenchmarkFatTree1125(b *testing.B) {
	for _, bench := range []struct {
		name string
		edit func(*Config)
	}{
		{"forward", func(c *Config) { c.Dialect = Off }},
		{"int-md-2.1", func(*Config) {}},
		{"int-md-2.1/1-of-10", func(c *Config) { c.SampleEvery = 10 }},
		{"pint", func(c *Config) { c.Dialect, c.Plan, c.PINTShare = Off, testPlan(b, pint.HashMix), 1 }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			cfg := DefaultConfig()
			cfg.Topology, cfg.HostsPerEdge = "fat-tree:30", 15
			cfg.Flows, cfg.Skew, cfg.PacketRate, cfg.LinkRate = 100_000, 0, 1e7, 1e9
			bench.edit(&cfg)
			n := mustNew(b, cfg, 1)
			at := 2 * time.Millisecond
			n.Run(at, func(Datagram) {})
			before, events := n.hops, n.stats.Events
			used := processorTime(b)
			b.ReportAllocs()
			for b.Loop() { // a hundred microseconds: about a thousand packets
				at += 100 * time.Microsecond
				n.Run(at, func(Datagram) {})
			}
			hops := float64(n.hops - before)
			b.ReportMetric(hops/b.Elapsed().Seconds(), "packet-hops/s")
			b.ReportMetric(hops/(processorTime(b)-used).Seconds(), "packet-hops/cpu-s")
			b.ReportMetric(float64(n.stats.Events-events)/hops, "events/hop")
		})
	}
}

// BenchmarkProbes measures probes a second of one core, from host to host over five switches of a fat-tree.
func BenchmarkProbes(b *testing.B) {
	cfg := DefaultConfig()
	cfg.Flows, cfg.Probes, cfg.LinkRate = 0, someProbes(), 10e9
	for i := range cfg.Probes {
		cfg.Probes[i].Every = time.Millisecond
	}
	n := mustNew(b, cfg, 1)
	at := time.Millisecond
	n.Run(at, func(Datagram) {})
	before, used := n.stats.ProbesDelivered, processorTime(b)
	b.ReportAllocs()
	for b.Loop() {
		at += time.Millisecond
		n.Run(at, func(Datagram) {})
	}
	b.ReportMetric(float64(n.stats.ProbesDelivered-before)/(processorTime(b)-used).Seconds(), "probes/cpu-s")
}

// processorTime is what the process has used so far, which a busy machine changes less than the time on the clock.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
