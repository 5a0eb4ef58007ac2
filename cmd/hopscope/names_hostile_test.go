package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/hopscope/hopscope/collector/inventory"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/influx"
	"github.com/hopscope/hopscope/sink/jsonl"
	"github.com/hopscope/hopscope/sink/notify"
	"github.com/hopscope/hopscope/sink/web"
)

// TestHostileNamesOutside holds that whatever an inventory says, a store gets one point of one line a name, which reads back as it is
// shown, and the page's API and the log have it in their own form.
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
	points := w.Points()
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

	var log bytes.Buffer
	for i := range list {
		sentence := n.Text(fmt.Sprintf("latency of node %d interface 3: p99 2.35ms", 100+i))
		slog.New(slog.NewTextHandler(&log, nil)).Warn("finding", "text", sentence)
		alert, err := json.Marshal(notify.Alert{Text: sentence})
		var got notify.Alert
		if err != nil || json.Unmarshal(alert, &got) != nil || got.Text != sentence || bytes.ContainsFunc(alert, unicode.IsControl) {
			t.Errorf("an alert of %q: %v, %q", sentence, err, alert)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != len(list) || strings.ContainsAny(log.String(), "\x1b\u202e\x00") {
		t.Errorf("%d lines in the log: %q", lines, log.String())
	}
}
