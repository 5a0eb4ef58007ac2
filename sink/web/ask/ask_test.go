package ask

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestSeveralPaths holds how the paths of a sprayed flow are printed.
func TestSeveralPaths(t *testing.T) {
	var p severalPaths
	err := json.Unmarshal([]byte(`{"sprayed":true,"share":0.4012,"hops":[{"node":"17"},{"node":"100"}],"other_paths":[{"nodes":["17","101"],"share":0.5}],
		"inseparable_paths":[{"paths":[["17","200"],["17","201"]],"share":0.08}],"unexplained_share":0.0188}`), &p)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	p.print(&got, nil)
	want := "share  path, by digests\n40 %   17 > 100\n50 %   17 > 101\n8 %    17 > 200 (digests do not show whether it is used)\n" +
		"       17 > 201 (digests do not show whether it is used)\n1.9 %  no path of the topology, or digests are wrong\n\n"
	if got.String() != want || p.note() != " (one of several at once)" {
		t.Errorf("%s%q\nwant\n%s", got.String(), p.note(), want)
	}
	for text, want := range map[string]string{`{"unsettled":true,"hops":[{}]}`: " (digests contradict it)", `{"inseparable_paths":[]}`: " (several at once)", `null`: ""} {
		var p *severalPaths
		if err := json.Unmarshal([]byte(text), &p); err != nil || p.note() != want {
			t.Errorf("%s: %v, %q; want %q", text, err, p.note(), want)
		}
	}
}

// TestFiguresForPeople checks that no value is printed with more digits than its precision, and no share with an
// exponent.
func TestFiguresForPeople(t *testing.T) {
	v := 12.5
	count := 123456789.0
	for want, got := range map[string]string{
		"1250 %":    metricCell("tx_utilization_max", &v),
		"123456800": plainCell(&count),
		"27 %":      shareCell(.27345),
		"0.046 %":   shareCell(.000456),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Interfaces have "-" for a value that is not known, which is not 0, and speeds in the unit that makes them short.
func TestInterfaces(t *testing.T) {
	var a Interfaces
	err := json.Unmarshal([]byte(`{"total":4,"recent_windows":12,"interfaces":[
		{"node":"7","interface":"3","speed_bps":25000000000,"tx_utilization":0.257,"rx_utilization":0.031,"in_octets":5000000,"out_octets":0,"in_packets":1000,"out_packets":0,"in_errors":5,"out_errors":null,"in_discards":0,"out_discards":7,"queue_p99_bytes":null,"last_ms":1000},
		{"node":"0","interface":"9","speed_bps":0,"tx_utilization":null,"rx_utilization":null,"in_packets":null,"out_packets":null,"in_errors":null,"out_errors":null,"in_discards":null,"out_discards":null,"queue_p99_bytes":1500,"last_ms":1000}]}`), &a)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	if err := a.Write(&got, nil); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(got.String(), "\n")
	for i, want := range []string{
		"node interface speed use in out octets in out packets in out errors in out discards in out queue p99 last seen", "7 3 25 Gbit/s 3.1 % 25.7 % 5000000 0 1000 0 5 - 0 7 -", "0 9 - - - - - - - - - - - 1500", "and 2 more",
	} {
		if line := strings.Join(strings.Fields(lines[i]), " "); !strings.HasPrefix(line, want) {
			t.Errorf("line %d is %q, want %q", i, line, want)
		}
	}
	for bps, want := range map[float64]string{0: "-", 999: "999 bit/s", 1e3: "1 kbit/s", 2.5e9: "2.5 Gbit/s", 4e14: "400 Tbit/s", 4e16: "4e+04 Tbit/s"} {
		if s := speedCell(bps); s != want {
			t.Errorf("%v bit/s are %q, want %q", bps, s, want)
		}
	}
}

// TestHopsOfRange writes an answer out of the history: its time and what it lacks come first.
func TestHopsOfRange(t *testing.T) {
	var h Hops
	if err := json.Unmarshal([]byte(`{"sort":"latency_p99","total":1,"recent_windows":2,"hops":[{"node":"7","egress_if":"3","last_ms":1800000000000,"count":5,"latency_ns":{"p50":1000,"p90":1000,"p99":2000,"max":2000},"queue_bytes":{"p50":null,"p99":null,"max":null},"learning":false,"worst":2000}],
		"range":{"from_ms":1799913600000,"to_ms":1800000000000,"resolution_ms":3600000,"merged":13,"columns":[13],"lacks":["the history begins later"]}}`), &h); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	if err := h.Write(&got, "latency_p99", nil); err != nil {
		t.Fatal(err)
	}
	day := func(ms int64) string { return time.UnixMilli(ms).Format(time.DateTime) }
	lines := strings.Split(got.String(), "\n")
	if want := day(1799913600000) + " to " + day(1800000000000) + ", from 13 windows of the history; the history begins later"; lines[0] != want {
		t.Errorf("the first line is %q, want %q", lines[0], want)
	}
	if len(lines) != 4 || !strings.HasPrefix(lines[2], "7 ") || !strings.Contains(lines[2], day(1800000000000)) {
		t.Errorf("the rows are\n%s", got.String())
	}
	got.Reset()
	h.Hops[0].Latency.Max, h.Range = nil, nil
	if err := h.Write(&got, "latency_p99", nil); err != nil || !strings.HasSuffix(got.String(), "hopscope top --interfaces has the counters of interfaces.\n") {
		t.Errorf("without latencies: %q, %v", got.String(), err)
	}
	got.Reset()
	if err := json.Unmarshal([]byte(`{"range":{"from_ms":1799913600000,"to_ms":1800000000000,"merged":13,"lacks":["the history begins later"]}}`), &h); err != nil {
		t.Fatal(err)
	}
	h.Hops = nil
	if err := h.Write(&got, "latency_p99", nil); err != nil || got.String() != lines[0]+"\n" {
		t.Errorf("without hops: %q, %v", got.String(), err)
	}
}
