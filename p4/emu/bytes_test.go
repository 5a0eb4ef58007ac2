package emu

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode/pint"
)

var updateBytes = flag.Bool("update", false, "write testdata/bytes.txt anew")

// TestBytes compares the output of the network with hashes of earlier output. It covers every dialect and marker,
// reports with and without Ethernet, IPv6, digests, loops, faults and probes. After a change of a byte on purpose, run
// it with -update.
func TestBytes(t *testing.T) {
	cases := []struct {
		name string
		edit func(*Config)
	}{
		{"md21", func(*Config) {}},
		{"md21 port", func(c *Config) { c.Marker = MarkPort }},
		{"md21 complement", func(c *Config) { c.Instructions |= insComplement }},
		{"md21 everything", func(c *Config) { c.Instructions, c.MaxHops = 0xff81, 3 }},
		{"md21 sink in header", func(c *Config) { c.SinkInHeader, c.Instructions = true, 0xff80 }},
		{"md21 ip", func(c *Config) { c.IPReports, c.Marker = true, MarkPort }},
		{"md21 payload", func(c *Config) { c.InnerBytes, c.ReportsPerDatagram = 700, 9 }},
		{"md10", func(c *Config) { c.Dialect, c.MaxHops = md10, 3 }},
		{"md10 complement", func(c *Config) { c.Dialect, c.Instructions = md10, 0xff01 }},
		{"md10 sink in header", func(c *Config) { c.Dialect, c.SinkInHeader, c.IPReports = md10, true, true }},
		{"mx21", func(c *Config) { c.Dialect = mx21 }},
		{"mx21 port", func(c *Config) { c.Dialect, c.Marker = mx21, MarkPort }},
		{"xd20", func(c *Config) { c.Dialect, c.Instructions = XD20, 0xff81 }},
		{"local05", func(c *Config) { c.Dialect, c.InnerBytes = local05, 40 }},
		{"mixed", func(c *Config) {
			c.Dialects = map[string]Dialect{"edge-0-0": md10, "edge-1-0": XD20, "agg-2-0": Off, "edge-2-1": mx21}
		}},
		{"pint mix", func(c *Config) { c.Plan, c.PINTShare = testPlan(t, pint.HashMix), 0.7 }},
		{"fant", func(c *Config) { c.Dialect = FANT }},
		{"source reports", func(c *Config) { c.SourceReports, c.SampleEvery = true, 3 }},
		{"pint source reports", func(c *Config) {
			c.Plan, c.PINTShare, c.SourceReports, c.SampleEvery, c.HardwareIDs = testPlan(t, pint.HashMix), 0.5, true, 2, 3
		}},
		{"pint crc", func(c *Config) { c.Plan, c.PINTShare, c.IPReports = testPlan(t, pint.HashCRC), 0.7, true }},
	}
	var got strings.Builder
	for _, c := range cases {
		cfg := busyConfig()
		c.edit(&cfg)
		fmt.Fprintf(&got, "%s: %s\n", c.name, fingerprint(t, cfg, 11, 1))
	}
	const path = "testdata/bytes.txt"
	if *updateBytes {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(want), "\n")
	for i, line := range strings.Split(got.String(), "\n") {
		if i >= len(lines) || line != lines[i] {
			t.Errorf("bytes have changed: %s", line)
		}
	}
}
