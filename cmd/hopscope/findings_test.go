package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/notify"
	"github.com/hopscope/hopscope/sink/web"
)

// inProcess runs the command in this process.
func inProcess(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(io.Discard)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// TestFindingsChangeRules acknowledges, mutes and unmutes what a page knows of, and lists it.
func TestFindingsChangeRules(t *testing.T) {
	page, err := web.New(web.DefaultConfig(), web.Deps{Status: func() web.Status { return web.Status{} }, Ledger: func() []sink.Balance { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(page.Handler())
	defer server.Close()
	at := time.Now().Add(-time.Minute).UnixNano()
	link := inference.ElementOfLink(7, 9)
	found := []inference.Finding{{ID: 0xa1, Kind: inference.HighQueue, Severity: inference.Critical, Start: at, Element: link, Evidence: 5, Value: 53800, Text: "The cause."}}
	for i := range uint64(5) {
		found = append(found, inference.Finding{ID: 0xb1 + i, Kind: inference.HighLatency, Severity: inference.Warning, Start: at, Element: inference.ElementOfNode(7), Node: 7, Cause: 0xa1, Text: "Evidence."})
	}
	found = append(found, inference.Finding{ID: 0xc1, Kind: inference.PacketDrops, Severity: inference.Warning, Start: at, Node: 3, Element: inference.ElementOfNode(3), Text: "Drops."})
	if err := page.WriteWindow(t.Context(), sink.NewWindow("here", &inference.Window{End: at}, found)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "alerts.yaml")
	must := func(args ...string) string {
		t.Helper()
		out, err := inProcess(t, append(append([]string{"findings"}, args...), "--file", file)...)
		if err != nil {
			t.Fatalf("hopscope findings %q: %v", args, err)
		}
		return out
	}
	if out := must("accept", "00000000000000a1", "--url", server.URL, "--by", "ann"); out != "accepted as normal: high-latency node 7 ("+file+")\naccepted as normal: high-queue link 7–9 ("+file+")\n"+
		file+" is a new file: it counts if it is alerts.file of the collector's settings, else name that one with --file\n" {
		t.Errorf("accept says %q", out)
	}
	if out := must("accept", "low-utilization interface 3:1", "--by", "ann"); strings.Contains(out, "is a new file") {
		t.Errorf("accept in a file that was there says %q", out)
	}
	if rules, err := notify.ReadRules(file); err != nil || len(rules.Accepted) != 3 || rules.Accepted[2].Alert != "low-utilization interface 3:1" || rules.Accepted[0].By != "ann" {
		t.Errorf("accepted are %+v, %v", rules, err)
	}
	for _, id := range []string{"00000000000000c1", "drops node 3", "00000000000000ff"} {
		if _, err := inProcess(t, "findings", "accept", id, "--url", server.URL, "--file", file); err == nil {
			t.Errorf("accept %s does not fail", id)
		}
	}
	must("ack", "00000000000000b2", "--url", server.URL, "--by", "ann", "--note", "is looked at") // evidence stands for its cause
	must("ack", "00000000000000b2", "--url", server.URL, "--by", "bob")                           // once
	must("mute", "--element", "node 3", "--kind", "drops", "--for", "2h")
	must("mute", "--kind", "routing-loop", "--until", "2120-01-01T00:00:00Z")
	rules, err := notify.ReadRules(file)
	if err != nil || len(rules.Acknowledged) != 1 || rules.Acknowledged[0].Alert != "high-queue link 7–9" || rules.Acknowledged[0].By != "bob" || len(rules.Mutes) != 2 {
		t.Fatalf("%+v, %v", rules, err)
	}
	got := must("--url", server.URL)
	for _, want := range []string{`(?m)^critical +high-queue +link 7–9 .* Queue on link node 7 – node 9: 53\.8 kB, usually empty +acknowledged by bob +The cause\.\n  warning +high-latency +node 7 `, `(?m)^  … 2 more \(--all\)`, `(?m)^warning +drops +node 3 .* muted until 20`} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if all := must("--url", server.URL, "--all"); strings.Count(all, "  warning") != 5 {
		t.Errorf("--all\n%s", all)
	}
	must("unmute", "--element", "node 3", "--kind", "drops")
	if rules, _ = notify.ReadRules(file); len(rules.Mutes) != 1 || rules.Mutes[0].Kind != "routing-loop" {
		t.Errorf("%+v", rules)
	}
	for _, id := range []string{"00000000000000ff", "high-latency node 99"} {
		if _, err := inProcess(t, "findings", "ack", id, "--url", server.URL, "--file", file); exitStatus(err) != 64 || !strings.Contains(err.Error(), id+" is open: these are: high-queue link 7–9, ") {
			t.Errorf("%s, which is not open: %v", id, err)
		}
	}
	must("ack", "high-latency node 7", "--url", server.URL, "--by", "eve") // by name, evidence stands for its cause, too
	if rules, _ = notify.ReadRules(file); len(rules.Acknowledged) != 1 || rules.Acknowledged[0].Alert != "high-queue link 7–9" || rules.Acknowledged[0].By != "eve" {
		t.Errorf("%+v", rules)
	}
	server.Close() // without the page a name counts as it is
	must("ack", "drops node 3", "--url", server.URL)
	if rules, _ = notify.ReadRules(file); len(rules.Acknowledged) != 2 || rules.Acknowledged[1].Alert != "drops node 3" {
		t.Errorf("%+v", rules)
	}
	if _, err := inProcess(t, "findings", "ack", "00000000000000ff", "--url", server.URL, "--file", file); exitStatus(err) != 1 {
		t.Errorf("an id without a page: %v", err)
	}
}

// TestFindingsTest sends a test to one receiver that takes it and one that does not.
func TestFindingsTest(t *testing.T) {
	body := make(chan string, 10)
	good := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body <- string(b)
	}))
	defer good.Close()
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }))
	defer bad.Close()
	settings := filepath.Join(t.TempDir(), "s.yaml")
	text := "webhook: {enabled: true, url: \"" + good.URL + "/x\"}\n"
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := inProcess(t, "findings", "test", "--config", settings)
	if err != nil || !strings.HasPrefix(out, "webhook: ") || !strings.Contains(out, "took the alert") {
		t.Errorf("%q, %v", out, err)
	}
	if got := <-body; !strings.Contains(got, `"status":"test"`) {
		t.Errorf("sent %s", got)
	}
	if err := os.WriteFile(settings, []byte(text+"alertmanager: {enabled: true, url: \""+bad.URL+"\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err = inProcess(t, "findings", "test", "--config", settings)
	if exitStatus(err) != 1 || !strings.Contains(out, "webhook: ") || !strings.Contains(out, "\nalertmanager: ") || !strings.Contains(err.Error(), "1 of 2 receivers") {
		t.Errorf("%q, %v", out, err)
	}
}

// TestFindingsFailOn checks the exit status of a check by its open findings. Evidence, and acknowledged or muted
// findings, do not count. An answer without findings is an error.
func TestFindingsFailOn(t *testing.T) {
	page, err := web.New(web.DefaultConfig(), web.Deps{Status: func() web.Status { return web.Status{} }, Ledger: func() []sink.Balance { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(page.Handler())
	defer server.Close()
	file := filepath.Join(t.TempDir(), "alerts.yaml")
	check := func(want int, args ...string) {
		t.Helper()
		for _, format := range []string{"table", "json"} {
			out, err := inProcess(t, append([]string{"findings", "--url", server.URL, "--format", format}, args...)...)
			if exitStatus(err) != want {
				t.Errorf("%q in %s: status %d (%v), want %d", args, format, exitStatus(err), err, want)
			}
			if want != exitUsage && out == "" {
				t.Errorf("%q in %s: nothing is printed", args, format)
			}
		}
	}
	check(0, "--fail-on", "info") // nothing is open
	at := time.Now().Add(-time.Minute).UnixNano()
	found := []inference.Finding{
		{ID: 0xa1, Kind: inference.HighQueue, Severity: inference.Warning, Start: at, Element: inference.ElementOfLink(7, 9), Evidence: 1, Text: "The cause."},
		{ID: 0xb1, Kind: inference.HighLatency, Severity: inference.Critical, Start: at, Element: inference.ElementOfNode(7), Node: 7, Cause: 0xa1, Text: "Evidence."},
	}
	if err := page.WriteWindow(t.Context(), sink.NewWindow("here", &inference.Window{End: at}, found)); err != nil {
		t.Fatal(err)
	}
	check(0)
	check(0, "--fail-on", "critical") // the evidence is no alert of its own
	check(1, "--fail-on", "warning")
	check(1, "--fail-on", "info", "--all")
	check(exitUsage, "--fail-on", "fatal")
	check(exitUsage, "--fail-on", "")
	if _, err := inProcess(t, "findings", "ack", "00000000000000a1", "--url", server.URL, "--file", file, "--by", "ann"); err != nil {
		t.Fatal(err)
	}
	check(0, "--fail-on", "warning", "--file", file)
	check(1, "--fail-on", "warning") // the file is not asked
	for _, answer := range []string{"{}", "null", `{"open":null}`, `{"status":"ok"}`, "[]", "ok"} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
		for _, format := range []string{"table", "json"} {
			if _, err := inProcess(t, "findings", "--url", other.URL, "--format", format, "--fail-on", "critical"); exitStatus(err) != 1 {
				t.Errorf("%s for an answer %s: status %d (%v), want 1", format, answer, exitStatus(err), err)
			}
		}
		other.Close()
	}
}

// TestKindsAreExplained holds that docs/findings.md has a section for every kind.
func TestKindsAreExplained(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "findings.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range inference.Kinds() {
		_, section, ok := strings.Cut(string(page), "\n### `"+k.String()+"`\n")
		if !ok {
			t.Errorf("%s is not explained", k)
			continue
		}
		section, _, _ = strings.Cut(section, "\n#")
		for _, part := range []string{"*Evidence*", "*What to do*", "*Thresholds*"} {
			if !strings.Contains(section, part) {
				t.Errorf("%s: has no %s", k, part)
			}
		}
	}
}

// TestExplain holds that a finding is explained by its id and by the name of its alert, with its symptoms, the section of
// its kind and the settings in force.
func TestExplain(t *testing.T) {
	cfg := defaultConfig()
	cfg.Events.QueueFloor = 12345
	page, err := web.New(web.DefaultConfig(), web.Deps{
		Status: func() web.Status {
			return web.Status{Coverage: &inference.Coverage{Seen: 3, Judged: 2, Young: 1, Warmup: 60}}
		},
		Ledger:  func() []sink.Balance { return nil },
		Setting: func(key string) (string, string, bool) { return settings.Value(&cfg, key) },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(page.Handler())
	defer server.Close()
	at := time.Now().Add(-time.Minute).UnixNano()
	port := inference.ElementOfHop(inference.HopKey{Node: 5, EgressIf: 3})
	if err := page.WriteWindow(t.Context(), sink.NewWindow("here", &inference.Window{End: at}, []inference.Finding{
		{ID: 0xa1, Kind: inference.HighQueue, Severity: inference.Warning, Start: at, Element: port, SeenAt: port, Node: 5, EgressIf: 3, Evidence: 1, Value: 53800,
			Learning: true, Text: "interface 5:3 explains 1 high-latency"},
		{ID: 0xb1, Kind: inference.HighLatency, Severity: inference.Critical, Start: at, Element: port, Node: 5, EgressIf: 3, Cause: 0xa1, Value: 9e6, Baseline: 1e6, Text: "Evidence."},
	})); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"00000000000000a1", "high-queue interface 5:3"} {
		out, err := inProcess(t, "findings", "--explain", id, "--url", server.URL)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"Queue at node 5, port 3: 53.8 kB, usually empty\n", "interface 5:3 explains 1 high-latency\n", "critical, high-latency: Latency at node 5, port 3: 9 ms, usually 1 ms\n",
			"\nWhat to do: look for what is sent there now", "  events.queue_floor_bytes  12345  ", "  events.false_a_day ", "usual values of this place are still being learnt",
			"3 hops seen, 2 judged", ": hopscope top --url " + server.URL + "\n", server.URL + "/docs/findings#high-queue\n",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", id, want, out)
			}
		}
	}
	out, err := inProcess(t, "findings", "--explain", "00000000000000b1", "--url", server.URL, "--format", "json")
	if err != nil || !strings.Contains(out, `"cause":{"id":"00000000000000a1"`) {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := inProcess(t, "findings", "--explain", "00000000000000c1", "--url", server.URL); err == nil || !strings.Contains(err.Error(), "no finding 00000000000000c1 is kept") {
		t.Errorf("an unknown id: %v", err)
	}
	if _, err := inProcess(t, "findings", "--explain", "00000000000000b1", "--all", "--url", server.URL); exitStatus(err) != exitUsage {
		t.Errorf("with --all: %v", err)
	}
}
