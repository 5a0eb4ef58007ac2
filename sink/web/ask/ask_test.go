package ask

import (
	"encoding/json"
	"strings"
	"testing"
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
	want := "share  path, as digests tell\n40 %   17 > 100\n50 %   17 > 101\n8 %    17 > 200 (digests do not tell whether it is used)\n" +
		"       17 > 201 (digests do not tell whether it is used)\n1.9 %  no path of the topology, or digests are wrong\n\n"
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

// TestFiguresForPeople holds that nothing is printed with more digits than it is good for, and no share with an exponent.
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
