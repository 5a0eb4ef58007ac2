package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hopscope/hopscope/collector/inventory"
	"github.com/hopscope/hopscope/collector/metrics"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/influx"
	"github.com/hopscope/hopscope/sink/jsonl"
	"github.com/hopscope/hopscope/sink/notify"
	"github.com/hopscope/hopscope/sink/web"
)

// TestHostileNamesOutside holds that the names of any inventory are harmless outside. A store gets one point of one
// line a name, which reads back as it is shown. The page's API and the log have it in their own form.
func TestHostileNamesOutside(t *testing.T) {
	list := []string{`"\e]0;title\a\e[2J"`, `"a\nflow,flow=x count=1i 1"`, `"b,c=d \"e\\"`, "\"\xff\xfe\"", `"</script><img src=x onerror=alert(1)>"`, `"\u202efdp.exe"`, `"}, \"x\": {"`, `17`, `"back\\slash\\"`}
	var b strings.Builder
	b.WriteString("nodes:\n")
	for i, name := range list {
		fmt.Fprintf(&b, "  - {id: %d, name: %s, interfaces: [{id: 3, name: %s}]}\n", 100+i, name, name)
	}
	n, err := inventory.Read("f", strings.NewReader(b.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	w := sink.NewWindow("here", &inference.Window{End: time.Unix(1_800_000_000, 0).UnixNano()}, nil)
	w.Names = n.Rows()
	points, lines := w.Points(), []byte(nil)
	if len(points) != 2*len(list) {
		t.Fatalf("%d points of %d names", len(points), 2*len(list))
	}
	for i := range points {
		line, _ := influx.AppendPoint(nil, &points[i])
		if bytes.Count(line, []byte{'\n'}) != 1 || bytes.ContainsFunc(line[:len(line)-1], unicode.IsControl) {
			t.Errorf("%q is not one line", line)
		}
		var got struct{ Fields struct{ Name string } }
		text, _ := jsonl.AppendPoint(nil, &points[i])
		lines = append(lines, text...)
		if err := json.Unmarshal(text, &got); err != nil || got.Fields.Name != w.Names[i].Name || bytes.Count(text, []byte{'\n'}) != 1 {
			t.Errorf("%q reads as %q, %v", text, got.Fields.Name, err)
		}
	}

	page, err := web.New(web.DefaultConfig(), web.Deps{Status: func() web.Status { return web.Status{} }, Ledger: func() []sink.Balance { return nil }, Names: func() *names.Names { return n }})
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	page.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "http://127.0.0.1/api/names", nil))
	var d names.Document
	if err := json.Unmarshal(answer.Body.Bytes(), &d); err != nil || !d.Names().Equal(n) || !strings.HasPrefix(answer.Header().Get("Content-Type"), "application/json") ||
		strings.Contains(answer.Body.String(), "</script>") {
		t.Errorf("/api/names: %v, %s, %.200q", err, answer.Header().Get("Content-Type"), answer.Body.String())
	}

	for what, text := range map[string][]byte{"/api/names": answer.Body.Bytes(), "a line of series": lines} {
		if unprinted(text) {
			t.Errorf("%s holds raw %q", what, text)
		}
	}

	var log bytes.Buffer
	for i := range list {
		sentence := n.Text(fmt.Sprintf("latency of node %d interface 3: p99 2.35ms", 100+i))
		slog.New(slog.NewTextHandler(&log, nil)).Warn("finding", "text", sentence)
		alert, err := json.Marshal(notify.Alert{Text: sentence}.Screened())
		var got notify.Alert
		if err != nil || json.Unmarshal(alert, &got) != nil || got.Text != names.Printable(sentence) || unprinted(alert) {
			t.Errorf("an alert of %q: %v, %q", sentence, err, alert)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != len(list) || strings.ContainsAny(log.String(), "\x1b\u202e\x00") {
		t.Errorf("%d lines in the log: %q", lines, log.String())
	}
}

// unprinted reports whether a text has anything that steers a terminal or turns the direction of what follows.
func unprinted(text []byte) bool {
	return bytes.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) })
}

// Labels of metrics, and what a program answers to /readyz, hold nothing raw that others chose, and nothing that breaks a scrape.
func TestHostileMetrics(t *testing.T) {
	m := metrics.NewGauge("hopscope_test", "A test.", "name")
	registry := metrics.Registry([]metrics.Metric{m}, func(emit metrics.Emit) { emit(m, 1, hostileText+"\xff") })
	page, err := web.New(web.DefaultConfig(), web.Deps{
		Status: func() web.Status { return web.Status{} }, Ledger: func() []sink.Balance { return nil },
		Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		Ready: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, hostileText, http.StatusServiceUnavailable)
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, status := range map[string]int{"/metrics": 200, "/readyz": 503} {
		answer := httptest.NewRecorder()
		page.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "http://127.0.0.1"+path, nil))
		if answer.Code != status || unprinted(answer.Body.Bytes()) || !strings.Contains(answer.Body.String(), "gpj.exe") {
			t.Errorf("%s: %d %q", path, answer.Code, answer.Body)
		}
	}
}
