package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/planner/attention"
	"github.com/hopscope/hopscope/planner/cover"
	"github.com/hopscope/hopscope/planner/delivery"
	"github.com/hopscope/hopscope/planner/orchestrate"
	"github.com/hopscope/hopscope/planner/querymix"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web"
)

// measuredPage is the page of a collector that has seen a square of switches for two windows of five seconds. Its paths
// are a-b-d and a-c-d; the link from a to b is full and has an open finding.
func measuredPage(t *testing.T) string {
	t.Helper()
	called := names.New([]names.Node{{ID: 11, Name: "a"}, {ID: 12, Name: "b"}, {ID: 13, Name: "c"}, {ID: 14, Name: "d"}}, nil, nil)
	page, err := web.New(web.DefaultConfig(), web.Deps{
		Status: func() web.Status { return web.Status{Window: 5 * time.Second} },
		Ledger: func() []sink.Balance { return nil },
		Names:  func() *names.Names { return called },
	})
	if err != nil {
		t.Fatal(err)
	}
	flow := func(text string, packets uint64, hops ...inference.HopKey) inference.FlowStats {
		key, err := decode.ParseFlow(text)
		if err != nil {
			t.Fatal(err)
		}
		f := inference.FlowStats{Key: key, Packets: packets}
		for _, h := range hops {
			f.Hops = append(f.Hops, inference.FlowHop{HopKey: h})
		}
		return f
	}
	hop := func(node, egress uint32) inference.HopKey { return inference.HopKey{Node: node, EgressIf: egress} }
	start := time.Unix(1_800_000_000, 0)
	for i := range 2 {
		w := &inference.Window{
			Start: start.Add(time.Duration(i) * 5 * time.Second).UnixNano(), End: start.Add(time.Duration(i+1) * 5 * time.Second).UnixNano(),
			Hops: []inference.HopStats{
				{HopKey: hop(11, 1), Count: 9, Utilization: 1, HasUtilization: true}, {HopKey: hop(11, 2), Count: 9, Utilization: .25, HasUtilization: true},
				{HopKey: hop(12, 2), Count: 9}, {HopKey: hop(13, 2), Count: 9}, {HopKey: hop(14, 9), Count: 9}, {HopKey: hop(12, 7), Count: 1},
			},
			Flows: []inference.FlowStats{
				flow("10.0.0.1:80 > 10.0.0.2:53 udp", 500, hop(11, 1), hop(12, 2), hop(14, 9)),
				flow("10.0.0.3:80 > 10.0.0.4:53 udp", 100, hop(11, 2), hop(13, 2), hop(14, 9)),
			},
			Exporters: []inference.ExporterStats{{ExporterKey: inference.ExporterKey{Addr: decode.Addr{15: 1}, Node: 11}, Reports: 5000}},
		}
		var findings []inference.Finding
		if i == 0 {
			findings = []inference.Finding{
				{ID: 1, Kind: inference.HighQueue, Severity: inference.Critical, Start: w.End, Updated: w.End, Element: inference.ElementOfHop(hop(11, 1))},
				{ID: 2, Kind: inference.HighLatency, Severity: inference.Warning, Start: w.End, Updated: w.End, Cause: 1, Element: inference.ElementOfHop(hop(11, 2))},
				{ID: 3, Kind: inference.ExporterLoss, Severity: inference.Warning, Start: w.End, Updated: w.End, Element: inference.ElementOfAddress(decode.Addr{15: 1})},
			}
		}
		if err := page.WriteWindow(t.Context(), sink.NewWindow("here", w, findings)); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(page.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

// Plans of every family are made of what a collector measured, and say on standard error what that was.
func TestPlanFromCollector(t *testing.T) {
	collector, dir := measuredPage(t), t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(plan any, said string, args ...string) {
		t.Helper()
		cmd := program(append([]string{"plan", args[0], "--from-collector", collector, "--format", "json"}, args[1:]...)...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, plan)
		}
		if err != nil || !strings.Contains(stderr.String(), said) {
			t.Fatalf("plan %q: %v\n%s\nwant %q", args, err, stderr.String(), said)
		}
	}
	square := file("square.txt", "a b\na c\nb d\nc d\n")

	var flows orchestrate.Plan
	run(&flows, "measured in the last 10s: 2 flows over 5 interfaces; 1 more interfaces are on none of these flows, and are left out\n", "orchestrate")
	if len(flows.Assignment) != 5 || flows.Assignment["a:1"] != "10.0.0.1:80 > 10.0.0.2:53 udp" || flows.Assignment["c:2"] != "10.0.0.3:80 > 10.0.0.4:53 udp" {
		t.Errorf("assignment %v", flows.Assignment)
	}
	if r := flows.Stats.Renewal; r == nil || r.Min < 19 || r.Min > 21 { // 100 packets in each window of 5 s
		t.Errorf("renewal %+v, want 20 a second at least", r)
	}

	var probes cover.Plan
	run(&probes, "measured: the use of 2 of 8 directions of links; others are taken to be idle\n", "cover", "--topology", square, "--depots", "a,d", "--minimise", "cost")
	if busy, idle := probes.Stats.Objective, 4.; busy <= idle || busy >= 130 {
		t.Errorf("a cover costs %v, want more than %v of an idle network, and the full direction not passed", busy, idle)
	}
	list, err := json.Marshal(probes)
	if err != nil {
		t.Fatal(err)
	}

	var detail attention.Plan
	run(&detail, "1 links are suspicious by open findings; 1 open findings are about no link of the topology\n", "attention", "--topology", square, "--probes", file("probes.json", string(list)))
	if len(detail.Probes) != 1 || !slices.Equal(detail.Probes[0].Suspicious, []string{"a:1--b:1"}) {
		t.Errorf("detailed probes %+v, want one, for a--b", detail.Probes)
	}

	instance := file("network.json", `{"nodes":[{"id":"a","kind":"point","rate_gbps":0.5,"deadline_ms":10,"loss":0.1},{"id":"b","kind":"point","rate_gbps":0.5,"deadline_ms":10,"loss":0.1},
		{"id":"s","kind":"server","capacity_gbps":10}],"links":[{"a":"a","port_a":2,"b":"s","port_b":1,"latency_ms":1,"capacity_gbps":2},{"a":"b","b":"s","port_b":2,"latency_ms":1,"capacity_gbps":2}]}`)
	var delivered delivery.Plan
	run(&delivered, "measured in the last 10s: the rates of 1 points and the loads of 1 links; others are those of the instance\n", "delivery", "--instance", instance, "--report-bytes", "125")
	if len(delivered.Assignment) != 2 || delivered.Assignment[0].Rate != 0.001 { // 1,000 reports a second
		t.Errorf("assignment %+v, want 0.001 Gbit/s of a", delivered.Assignment)
	}

	var queries querymix.Plan
	run(&queries, "measured: paths of at most 3 hops over 4 nodes\n", "queries", file("queries.yaml", "bits: 8\nqueries:\n- {name: path, value: node, aggregation: static, widths: [8]}\n"))

	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"orchestrate", "--topology", "fat-tree:4", "--items", "2"}, "--items goes with --from-collector"},
		{[]string{"orchestrate", "--topology", "fat-tree:4", "--from-collector", collector}, "one of --instance, --topology and --from-collector is wanted"},
		{[]string{"orchestrate", "--from-collector", "there"}, `--from-collector "there" is not http://HOST:PORT`},
		{[]string{"attention", "--instance", instance, "--from-collector", collector}, "--suspicious and --from-collector do not go with it"},
		{[]string{"cover", "--topology", "fat-tree:4", "--from-collector", collector}, "it goes with --minimise cost"},
		{[]string{"delivery", "--topology", "fat-tree:4", "--from-collector", collector}, "--from-collector goes with --instance"},
	} {
		out, err := program(append([]string{"plan"}, tt.args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("plan %q: %v\n%s\nwant %q", tt.args, err, out, tt.want)
		}
	}
}
