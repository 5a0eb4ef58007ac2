package summary

import (
	"strings"
	"testing"
)

func TestSummaryTable(t *testing.T) {
	s := Summary{Reports: 1234567, Seconds: 2, ReportsPerSecond: 617283, ByFormat: map[string]uint64{"telemetry-report 2.0": 1234567}}
	s.Ledger.Received, s.Ledger.Stored = 1234567, 1234567
	var b strings.Builder
	if err := s.WriteTable(&b); err != nil {
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

// TestFigures checks that no value is written with more digits than its precision.
func TestFigures(t *testing.T) {
	flow := &Flow{Hops: []Hop{{Latency: &Quantiles{P99: 123_456}}, {}, {Latency: &Quantiles{P99: 51}}}}
	inferred := *flow
	inferred.Path.Digests = 10
	for want, got := range map[string]string{
		"120µs - 51ns":   p99Text(flow),
		"~120µs - ~51ns": p99Text(&inferred),
		" (27 % of packets, and 1 other paths)": strings.TrimPrefix(pathText(Path{NodeIDs: []*uint32{new(uint32)}, Complete: true, Share: .2734,
			Others: []OtherPath{{}}}, nil), "0"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
