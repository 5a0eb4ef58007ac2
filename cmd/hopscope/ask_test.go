package main

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web"
)

// TestAsk asks a page that has seen one window.
func TestAsk(t *testing.T) {
	page, err := web.New(web.DefaultConfig(), web.Deps{Status: func() web.Status { return web.Status{} }, Ledger: func() []sink.Balance { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	key, err := decode.ParseFlow("10.0.0.1:80 > 10.0.0.2:53 udp")
	if err != nil {
		t.Fatal(err)
	}
	slow := inference.Summary{Count: 3, P50: 1000, P90: 1500, P99: 2000, Max: 2500}
	w := sink.NewWindow("here", &inference.Window{
		End: time.Unix(1_800_000_000, 0).UnixNano(), Reports: 3,
		Hops: []inference.HopStats{
			{HopKey: inference.HopKey{Node: 7, EgressIf: 3}, Count: 3, Latency: slow, Learning: true}, {HopKey: inference.HopKey{Other: true}, Count: 1},
		},
		Flows: []inference.FlowStats{{Key: key, Packets: 3, Hops: []inference.FlowHop{
			{HopKey: inference.HopKey{Node: 1, EgressIf: 2}}, {HopKey: inference.HopKey{Node: 7, EgressIf: 3}, Latency: slow},
		}}},
	}, nil)
	if err := page.WriteWindow(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(page.Handler())
	defer server.Close()

	flow := "10.0.0.1:80 > 10.0.0.2:53 udp\n3 packets lately, path 1 > 7, changed 0 times\n\n" +
		"hop  node  egress  p50         p99        queue p99\n0    1     2       -           -          -\n1    7     3       1µs ± 82 %  about 2µs  -\n"
	for _, c := range []struct {
		args   []string
		status int
		want   string // what is printed, or a part of the error
	}{
		{[]string{"flow"}, 0, "packets  flow                           path   changes\n3        10.0.0.1:80 > 10.0.0.2:53 udp  1 > 7  0\n"},
		{[]string{"flow", "10.0.0.1:80 > 10.0.0.2:53 udp"}, 0, flow},
		{[]string{"flow", "10.0.0.1:80 > 10.0.0.2:53/17"}, 0, flow}, // as the summary of a run writes it
		{[]string{"flow", "10.0.0.1:80>10.0.0.2:53 proto 17"}, 0, flow},
		{[]string{"flow", "10.0.0.2:53 > 10.0.0.1:80 udp"}, 1, `no flow 10.0.0.2:53 > 10.0.0.1:80 udp in the kept windows; it is written as in "10.0.0.1:80 > 10.0.0.2:5001 tcp"`},
		{[]string{"flow", "10.0.0.1"}, 64, `"10.0.0.1" is no flow such as "10.0.0.1:80 > 10.0.0.2:5001 tcp": there is no >; flows of a node or host: --filter`},
		{[]string{"flow", "--filter", "node 7 interface 3"}, 0, "packets  flow                           path   changes\n3        10.0.0.1:80 > 10.0.0.2:53 udp  1 > 7  0\n"},
		{[]string{"flow", "--filter", "10.0.0.0/24"}, 0, "packets  flow                           path   changes\n3        10.0.0.1:80 > 10.0.0.2:53 udp  1 > 7  0\n"},
		{[]string{"flow", "--filter", "node 7 interface 4"}, 0, "No flow of the kept windows fits \"node 7 interface 4\".\n"},
		{[]string{"flow", "10.0.0.1:80 > 10.0.0.2:53 udp", "--filter", "7"}, 64, "excludes --filter"},
		{[]string{"find", "10.0.0.2"}, 0, "kind  name                           about   page\nhost  10.0.0.2                       1 flow  " + server.URL + "/#flows=10.0.0.2\n" +
			"flow  10.0.0.1:80 > 10.0.0.2:53 udp          " + server.URL + "/#flow=10.0.0.1:80%20%3E%2010.0.0.2:53%20udp\n"},
		{[]string{"find", "7"}, 0, "kind       name      about   page\nnode       7         1 port  " + server.URL + "/#hop=7/\ninterface  7 port 3          " + server.URL + "/#hop=7/3\n"},
		{[]string{"find", "7:3", "--url", strings.Replace(server.URL, "//", "//user:secret@", 1) + "/"}, 0, "kind       name      about  page\ninterface  7 port 3         " + server.URL + "/#hop=7/3\n"},
		{[]string{"find", "no such thing"}, 0, "Nothing that the collector keeps or has a name for fits \"no such thing\".\n"},
		{[]string{"find", "7", "--limit", "0"}, 64, "--limit 0 is outside 1..50"},
		{[]string{"find"}, 64, "1"},
		{[]string{"top", "--interfaces"}, 0, "No counters of interfaces came yet.\n"},
		{[]string{"top", "--interfaces", "--sort", "node"}, 64, "--sort is for hops"},
		{[]string{"top", "--probes"}, 0, "No agent reported probes yet.\n"},
		{[]string{"top", "--probes", "--interfaces"}, 64, "are two tables"},
		{[]string{"top", "--sort", "latency"}, 64, `--sort "latency" is none of latency_p50, `},
	} {
		status := 0
		cmd := program(append([]string{c.args[0], "--url", server.URL}, c.args[1:]...)...)
		var failure strings.Builder
		cmd.Stderr = &failure
		out, err := cmd.Output()
		if err != nil {
			status = cmd.ProcessState.ExitCode()
		}
		if status != c.status || status == 0 && string(out) != c.want || status != 0 && !strings.Contains(failure.String(), c.want) {
			t.Errorf("hopscope %q: status %d\n%s%s\nwant status %d\n%s", c.args, status, out, failure.String(), c.status, c.want)
		}
	}
	top, err := program("top", "--url", server.URL).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"node   egress  worst latency p99 of 12 windows  reports  p50", "7      3       2µs                              3        1µs", "other  other   -                                1        -"} {
		if lines := strings.Split(string(top), "\n"); len(lines) != 4 || !strings.HasPrefix(lines[i], want) {
			t.Errorf("hopscope top: line %d does not begin with %q\n%s", i, want, top)
		} else if state := []string{"state", "learning", "-"}[i]; !strings.HasSuffix(lines[i], "  "+state) {
			t.Errorf("hopscope top: line %d does not end with %q\n%s", i, state, top)
		}
	}
}

// TestAskFindings asks a page that knows of one open finding and one that ended.
func TestAskFindings(t *testing.T) {
	var coverage atomic.Pointer[inference.Coverage]
	var problem atomic.Pointer[string]
	status := func() web.Status {
		s := web.Status{Coverage: coverage.Load()}
		if p := problem.Load(); p != nil {
			s.Settings = []web.Setting{{Name: "problem", Value: *p}}
		}
		return s
	}
	page, err := web.New(web.DefaultConfig(), web.Deps{Status: status, Ledger: func() []sink.Balance { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(page.Handler())
	defer server.Close()
	ask := func(args ...string) string {
		t.Helper()
		cmd := program(append([]string{"findings", "--url", server.URL}, args...)...)
		cmd.Env = append(cmd.Environ(), "TZ=UTC")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("hopscope findings %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	const none = "Nothing is wrong that hopscope knows of: no report came in the kept windows.\n"
	if got := ask(); got != none {
		t.Errorf("without findings: %q", got)
	}
	problem.Store(new("no consumer runs"))
	if got, want := ask(), none+"Problem: no consumer runs\n"; got != want {
		t.Errorf("without findings, and with a problem: %q, want %q", got, want)
	}
	problem.Store(nil)
	coverage.Store(&inference.Coverage{Seen: 100, Young: 100, Warmup: 15})
	if got, want := ask(), "Nothing is wrong that hopscope knows of: 100 hops seen, 0 judged: 100 had fewer than 15 windows to learn from.\n"; got != want {
		t.Errorf("without findings, and nothing judged: %q, want %q", got, want)
	}
	at := time.Unix(1_800_000_000, 0).UnixNano()
	found := []inference.Finding{
		{ID: 1, Kind: inference.HighLatency, Severity: inference.Critical, Start: at, Node: 7, EgressIf: 3, Value: 9e6, Baseline: 1e6, Text: "p99 latency is\t\x1b[31m9 ms."},
		{ID: 2, Kind: inference.PacketDrops, Severity: inference.Warning, Start: at, End: at + 5e9, Node: 9, Value: 10, Reason: 80, Text: "Ten packets."},
	}
	if err := page.WriteWindow(t.Context(), sink.NewWindow("here", &inference.Window{End: at}, found)); err != nil {
		t.Fatal(err)
	}
	open := "severity  kind          where    since                ended                headline                                       what\n" +
		"critical  high-latency  hop 7:3  2027-01-15 08:00:00  -                    Latency at node 7, port 3: 9 ms, usually 1 ms  p99 latency is\ufffd\ufffd[31m9 ms.\n"
	all := open + "warning   drops         node 9   2027-01-15 08:00:00  2027-01-15 08:00:05  Drops at node 9: was 10 a window, reason 80    Ten packets.\n"
	if got := ask("--ended"); got != all {
		t.Errorf("hopscope findings --ended\n%swant\n%s", got, all)
	}
	if got, want := ask(), strings.ReplaceAll(open, "ended                headline", "ended  headline"); got != strings.ReplaceAll(want, "-                    Latency", "-      Latency") {
		t.Errorf("hopscope findings\n%s", got)
	}
	for _, want := range []string{
		"  The busiest flows over it: hopscope flow --filter \"node 7 interface 3\" --url " + server.URL + "\n",
		"  The page of this kind: " + server.URL + "/docs/findings#high-latency\n",
	} {
		if got := ask("--explain", "0000000000000001"); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	resting := found[0]
	resting.Resting = true
	if err := page.WriteWindow(t.Context(), sink.NewWindow("here", &inference.Window{End: at + 1e9}, []inference.Finding{resting})); err != nil {
		t.Fatal(err)
	}
	if got, want := ask("--ended"), "rests                Latency at node 7, port 3: was 9 ms, usually 1 ms  p99"; !strings.Contains(got, want) {
		t.Errorf("while it rests\n%swant\n%s", got, want)
	}
	var answer struct{ Open, Ended []struct{ ID string } }
	if err := json.Unmarshal([]byte(ask("--format", "json")), &answer); err != nil || len(answer.Open) != 1 || len(answer.Ended) != 1 {
		t.Errorf("as JSON: %+v, %v", answer, err)
	}
}
