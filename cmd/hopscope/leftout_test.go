package main

import (
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/internal/testkit"
)

// Whatever limits leave out appears in three places: the text of /readyz, which stays ready, the page, and one line of
// the log each.
func TestLeftOut(t *testing.T) {
	c := program("collect", "--config", writeFile(t, "window: 1s\nudp: {listen: [\"127.0.0.1:0\"]}\nexporters: {tracking: {max_exporters: 4}}\n"+
		"web: {listen: \"127.0.0.1:0\", max_hops: 16}\nlog: {format: json}\notlp: {enabled: true, grpc: \"\", http: \"127.0.0.1:0\"}\n"+
		"parquet: {enabled: true, raw: true, dir: series}\nwebhook: {enabled: true, url: \"http://127.0.0.1:1/\"}\n"))
	c.Dir = t.TempDir()
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	log := newLogReader(t, stderr)
	addr, err := net.ResolveUDPAddr("udp", log.wait("receiving reports")["address"].(string))
	if err != nil {
		t.Fatal(err)
	}
	url := log.wait("serving the page")["url"].(string)
	gen, err := traffic.New(traffic.Config{Seed: 1, Flows: 400, Hops: 5, Exporters: 40, Bytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := traffic.Send(t.Context(), traffic.SendConfig{To: addr.AddrPort(), Rate: 10_000, Count: 4000}, gen); err != nil {
		t.Fatal(err)
	}
	wants := []string{"exporters are not watched, and their losses are not counted: raise exporters.tracking.max_exporters", "raise web.max_hops"}
	for _, path := range []string{"readyz", "api/ledger"} {
		for _, want := range wants {
			text := ""
			if !testkit.Await(func() bool {
				text = get(t, url+path, http.StatusOK)
				return strings.Contains(text, want)
			}) {
				t.Fatalf("no %q in /%s:\n%s", want, path, text)
			}
		}
	}
	known := settingsNames()
	labels := regexp.MustCompile(`(?m)^hopscope_left_out\{setting="(.*)"\}`).FindAllStringSubmatch(get(t, url+"metrics", http.StatusOK), -1)
	for _, label := range labels {
		for name := range strings.SplitSeq(label[1], " and ") {
			if !known[name] {
				t.Errorf("hopscope_left_out names %s, which is no setting", name)
			}
		}
	}
	if len(labels) < 25 {
		t.Errorf("hopscope_left_out has %d settings", len(labels))
	}
	for what := ""; !strings.HasSuffix(what, "raise exporters.tracking.max_exporters"); {
		what = log.wait("left out by a limit")["what"].(string) // a busy machine may fill queues too
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// settingsNames are the names of all settings of a collector, with those of their sections before them.
func settingsNames() map[string]bool {
	cfg := defaultConfig()
	names := map[string]bool{}
	for name := range settings.Keys(&cfg) {
		names[name] = true
	}
	return names
}
