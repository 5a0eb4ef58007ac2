package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// choosy is an InfluxDB that refuses the lines of one measurement, as 2.7 does where another program has made a field of
// another type.
type choosy struct {
	*httptest.Server
	mu      sync.Mutex
	refuses string
	stored  map[string]int
}

func newChoosy(t *testing.T, refuses string) *choosy {
	c := &choosy{refuses: refuses, stored: map[string]int{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		bad := 0
		for line := range strings.Lines(string(body)) {
			if c.refuses != "" && strings.HasPrefix(line, c.refuses+",") {
				bad++
			} else {
				c.stored[line]++
			}
		}
		w.Header().Set("X-Influxdb-Version", "v2.7.12")
		if bad == 0 {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprintf(w, `{"code":"unprocessable entity","message":"failure writing points to database: partial write: field type conflict dropped=%d"}`, bad)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *choosy) of(measurement string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for line := range c.stored {
		if strings.HasPrefix(line, measurement+",") {
			n++
		}
	}
	return n
}

func (c *choosy) accept() {
	c.mu.Lock()
	c.refuses = ""
	c.mu.Unlock()
}

// refusedEntry and resent are what the command says as JSON.
type refusedEntry struct {
	Name, Dir, Sink, Target string
	Points                  uint64
	Series                  map[string]uint64
	Reasons                 []string
}

type resent struct{ Stored, Refused, Left uint64 }

// Points that a store refuses are listed, shown and sent again, beside the running collector. Nothing goes while the
// store still refuses, and everything once it does not.
func TestSpoolCommand(t *testing.T) {
	t.Parallel()
	server := newChoosy(t, "exporter") // which every window has, so that the store is not taken for mended in between
	settings := settingsFile(t, fmt.Sprintf("window: 300ms\ninflux: {enabled: true, url: %q, spool: {dir: spool/influx}}\n", server.URL)+live)
	dir := filepath.Join(filepath.Dir(settings), "spool", "influx")
	inside := func(args ...string) (stdout, stderr string, status int) {
		t.Helper()
		return run(t, filepath.Dir(settings), append([]string{"spool"}, args...)...)
	}
	c := start(t, settings)
	if out, _, status := inside("list", "--config", settings); out != "no points are refused\n" || status != 0 {
		t.Errorf("list of nothing: %q, %d", out, status)
	}
	c.send(between(readCapture(t, frozen("faults.pcap.gz")), 0, 3*time.Second))
	c.until("refused points", func() bool {
		return c.metric(`hopscope_sink_series_points_total{outcome="refused",series="exporter",sink="influx"}`) > 0
	})
	if status, body := c.get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "field type conflict") || !strings.Contains(body, "hopscope spool list spool/influx/refused") {
		t.Errorf("/readyz: %d %s", status, body)
	}
	var ledger struct{ Problems []string }
	if c.json("/api/ledger", &ledger); len(ledger.Problems) != 1 || !strings.Contains(ledger.Problems[0], "the store refused") {
		t.Errorf("the page says %q", ledger.Problems)
	}

	out, _, status := inside("list", dir, "--format", "json")
	var entries []refusedEntry
	if err := json.Unmarshal([]byte(out), &entries); err != nil || status != 0 || len(entries) == 0 {
		t.Fatalf("list: %v, %d, %s", err, status, out)
	}
	e := entries[0]
	if e.Sink != "influx" || e.Points == 0 || e.Series["exporter"] != e.Points || !strings.Contains(e.Target, server.URL) || !strings.Contains(e.Reasons[0], "field type conflict") {
		t.Errorf("%+v", e)
	}
	if out, _, _ := inside("list", "--dir", filepath.Join(dir, "refused")); !regexp.MustCompile(`(?m)^` + e.Name + `  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  influx  \d+ +exporter \d+ +influx: 422 `).MatchString(out) {
		t.Errorf("list: %s", out)
	}
	if out, _, status := inside("show", "--config", settings, e.Name); status != 0 || strings.Count(out, "\nexporter,") != int(e.Points) || !strings.Contains(out, "refused by influx, "+server.URL) {
		t.Errorf("show: %d, %s", status, out)
	}

	out, stderr, status := inside("resend", "--config", settings, e.Name)
	if want := fmt.Sprintf("influx: 0 points stored, %d refused again, 0 not tried\n", e.Points); status != 1 || out != want || !strings.Contains(stderr, "still refused") {
		t.Errorf("resend: %d, %q, %q", status, out, stderr)
	}
	if out, _, status := inside("show", "--config", settings, e.Name); status != 0 || strings.Count(out, "\nexporter,") != int(e.Points) {
		t.Errorf("show after a resend that was refused: %d, %s", status, out)
	}
	server.accept()
	c.until("readiness", func() bool { status, _ := c.get("/readyz"); return status == http.StatusOK })
	out, stderr, status = inside("resend", "--config", settings, "--format", "json")
	var results []resent
	if err := json.Unmarshal([]byte(out), &results); err != nil || status != 0 || len(results) != 1 || results[0].Stored == 0 || results[0].Refused+results[0].Left != 0 {
		t.Errorf("resend: %v, %d, %s%s", err, status, out, stderr)
	}
	if out, _, _ := inside("list", "--config", settings); out != "no points are refused\n" {
		t.Errorf("list after resend: %s", out)
	}
	if status := c.stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	var summary struct {
		Ledger struct {
			Unsettled int64
			Points    struct {
				Made, Stored, Refused uint64
				Series                map[string]struct{ Made, Stored, Refused uint64 }
			}
		} `json:"loss_ledger"`
	}
	if err := json.Unmarshal(c.out.Bytes(), &summary); err != nil {
		t.Fatal(err)
	}
	p := summary.Ledger.Points
	if x := p.Series["exporter"]; x.Refused != results[0].Stored || x.Made != uint64(server.of("exporter")) || p.Made != p.Stored+p.Refused || summary.Ledger.Unsettled != 0 {
		t.Errorf("the store has %d points of exporters: %+v", server.of("exporter"), summary)
	}
	for line, n := range server.stored {
		if strings.HasPrefix(line, "exporter,") && n != 1 {
			t.Errorf("stored %d times: %s", n, line)
		}
	}
}

// A store that is away, damaged entries and hostile text cost nothing, and the command says what is wrong.
func TestSpoolCommandInTrouble(t *testing.T) {
	t.Parallel()
	server := newChoosy(t, "hop")
	settings := settingsFile(t, fmt.Sprintf("window: 300ms\ninflux: {enabled: true, url: %q, spool: {dir: %q}}\n", server.URL, filepath.Join(t.TempDir(), "s"))+live)
	c := start(t, settings)
	c.send(between(readCapture(t, frozen("faults.pcap.gz")), 0, time.Second))
	c.until("refused points", func() bool {
		return c.metric(`hopscope_sink_series_points_total{outcome="refused",series="hop",sink="influx"}`) > 0
	})
	c.stop()
	out, _, _ := run(t, "", "spool", "list", "--config", settings, "--format", "json")
	var entries []refusedEntry
	if err := json.Unmarshal([]byte(out), &entries); err != nil || len(entries) == 0 {
		t.Fatal(err, out)
	}
	e := entries[0]
	server.Close()
	stdout, stderr, status := run(t, "", "spool", "resend", "--config", settings)
	if status != 1 || !strings.Contains(stderr, "no answer") || !strings.Contains(stdout, " not tried") {
		t.Errorf("resend to a store that is away: %d, %s%s", status, stdout, stderr)
	}
	path := filepath.Join(e.Dir, e.Name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal("the entry has gone: ", err)
	}
	b[len(b)-3] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, status := run(t, "", "spool", "list", "--config", settings); status != 0 || !strings.Contains(out, "is damaged") {
		t.Errorf("list: %d, %s", status, out)
	}
	for _, tt := range []struct {
		args  []string
		words string
		usage bool
	}{
		{[]string{"show", "--config", settings, e.Name}, "is damaged", false},
		{[]string{"show", "--config", settings, "../../etc/passwd"}, "there is no entry", false},
		{[]string{"show", "--config", settings}, "wants the names", true},
		{[]string{"list"}, "say where the spool is", true},
		{[]string{"list", "--config", settings, "--dir", "/"}, "choose one", true},
		{[]string{"list", "--config", settings, "--format", "xml"}, "neither table nor json", true},
		{[]string{"list", filepath.Join(e.Dir, "nope")}, "no such file", true},
		{[]string{"resend"}, "--config FILE", true},
		{[]string{"nonsense"}, "", true},
	} {
		_, stderr, status := run(t, "", append([]string{"spool"}, tt.args...)...)
		if status == 0 || !strings.Contains(stderr, tt.words) || tt.usage != (status != 1) {
			t.Errorf("%v: %d, %s", tt.args, status, stderr)
		}
	}
}
