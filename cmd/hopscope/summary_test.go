package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector"
)

func TestSummaryTable(t *testing.T) {
	s := collector.Summary{Reports: 1234567, Seconds: 2, ReportsPerSecond: 617283, ByFormat: map[string]uint64{"telemetry-report 2.0": 1234567}}
	s.Ledger.Received, s.Ledger.Stored = 1234567, 1234567
	var b strings.Builder
	if err := writeSummaryTable(&b, &s); err != nil {
		t.Fatal(err)
	}
	const want = `1 234 567 reports in 2s (617 283/s), 0 malformed

By format
  telemetry-report 2.0  1 234 567

Loss ledger: received = stored + in flight + dropped
  windows: 1234567 received = 1234567 stored + 0 in flight + 0 dropped
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestNeedRestart(t *testing.T) {
	old := defaultConfig()
	next := old
	next.Exporters.Profile = "onos"
	next.Events.FalseADay = 20
	next.Window = time.Second
	next.UDP.Workers = 7
	if got, want := needRestart(&old, &next), []string{"window", "udp.workers"}; !slices.Equal(got, want) {
		t.Errorf("needRestart = %q, want %q", got, want)
	}
}
