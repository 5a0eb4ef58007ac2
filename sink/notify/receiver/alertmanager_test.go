package receiver

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/notify"
)

func TestConfigOfAlertmanager(t *testing.T) {
	for _, tt := range []struct {
		change func(*Alertmanager)
		want   string // "" for what is right
	}{
		{func(*Alertmanager) {}, ""},
		{func(c *Alertmanager) { c.URL = "https://am/prefix/" }, ""},
		{func(c *Alertmanager) { c.URL = "http://u:secret@am" }, "url: must not hold"},
		{func(c *Alertmanager) { c.URL = "am:9093" }, "url: must be"},
		{func(c *Alertmanager) { c.URL = "http://am/api/v2/alerts" }, "url: must end before"},
		{func(c *Alertmanager) { c.URL = "http://am?x=secret" }, "url: must end before"},
		{func(c *Alertmanager) { c.CAFile = "x" }, "url: is http"},
		{func(c *Alertmanager) { c.TokenFile, c.TokenEnv = "a", "b" }, "token_file: token_env"},
		{func(c *Alertmanager) { c.Page = "page" }, "page: must be"},
		{func(c *Alertmanager) { c.Labels = []string{"team=net", "site=a=b"} }, ""},
		{func(c *Alertmanager) { c.Labels = []string{"team"} }, "labels: entry 1: must be"},
		{func(c *Alertmanager) { c.Labels = []string{"a-b=c"} }, "labels: entry 1: \"a-b\""},
		{func(c *Alertmanager) { c.Labels = []string{"__x=c"} }, "labels: entry 1: \"__x\""},
		{func(c *Alertmanager) { c.Labels = []string{"severity=page"} }, "labels: entry 1: every alert"},
		{func(c *Alertmanager) { c.Labels = []string{"a=b", "a=c"} }, "labels: entry 2: a is set twice"},
		{func(c *Alertmanager) { c.Labels = []string{"a=\xff"} }, "labels: entry 1: the value"},
	} {
		var c Alertmanager
		c.SetDefaults()
		tt.change(&c)
		err := c.Validate()
		if (err == nil) != (tt.want == "") || err != nil && (!strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("Validate(%+v) = %v, want %q", c, err, tt.want)
		}
		if w, err := c.Open(); (err == nil) != (tt.want == "") || (w == nil) != (err != nil) {
			t.Errorf("Open(%+v) = %v, %v", c, w, err)
		}
	}
	var c Alertmanager
	c.SetDefaults()
	c.URL = "https://am:9093/secret"
	if c.Target() != "https://am:9093" || !c.Alerts() || c.Doc("enabled") == "" {
		t.Errorf("Target = %q", c.Target())
	}
	c.TokenFile = filepath.Join(t.TempDir(), "none")
	if err := c.CheckFiles(); err == nil || !strings.Contains(err.Error(), "token_file") {
		t.Errorf("CheckFiles = %v", err)
	}
}

// A server that refuses a whole request takes the good alerts of it one by one. The token goes with every request and is
// in no error.
func TestRefusedOne(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("abracadabra\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		if _, err := r.Body.Read(body); r.Header.Get("Authorization") != "Bearer abracadabra" || r.URL.Path != "/am/api/v2/alerts" {
			t.Errorf("%s %v, %v", r.URL, r.Header, err)
		}
		if strings.Contains(string(body), "node 3") {
			http.Error(w, "I know "+r.Header.Get("Authorization"), http.StatusBadRequest)
			return
		}
		taken += strings.Count(string(body), "startsAt")
	}))
	defer s.Close()
	w := alertmanagerWriter(t, s.URL+"/am/", func(c *Alertmanager) { c.TokenFile = token })
	var alerts []notify.Alert
	for i := range 5 {
		alerts = append(alerts, alertmanagerAlert(notify.Firing, "warning", fmt.Sprint("node ", i), time.Now()))
	}
	err := w.Write(t.Context(), notify.Batch(alerts))
	p, ok := err.(*sink.PermanentError)
	if !ok || p.Rejected != 1 || taken != 4 || strings.Contains(err.Error(), "abra") || !strings.Contains(err.Error(), "[secret]") {
		t.Fatalf("Write = %v, %d were taken", err, taken)
	}
	var kept sink.Batch
	if err := sink.DecodeBatch(p.Refused[0].Payload, &kept); err != nil {
		t.Fatal(err)
	}
	if got, err := notify.Alerts(&kept); err != nil || len(got) != 1 || got[0].Element != "node 3" {
		t.Errorf("kept %+v, %v", got, err)
	}
}

// A portal that answers everything with a page has not taken an alert.
func TestPortal(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>Please log in") }))
	defer s.Close()
	err := alertmanagerWriter(t, s.URL, nil).Write(t.Context(), notify.Batch([]notify.Alert{alertmanagerAlert(notify.Firing, "warning", "node 1", time.Now())}))
	if re, ok := errors.AsType[*sink.RetryError](err); !ok || !re.Config {
		t.Errorf("Write = %v", err)
	}
}

func alertmanagerWriter(t *testing.T, url string, change func(*Alertmanager)) *AlertmanagerWriter {
	t.Helper()
	var c Alertmanager
	c.SetDefaults()
	c.URL = url
	if change != nil {
		change(&c)
	}
	w, err := newAlertmanager(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func alertmanagerAlert(status notify.Status, severity, element string, start time.Time) notify.Alert {
	a := notify.Alert{Status: status, Instance: "here", Key: "high-latency " + element, Finding: "7-1", Kind: "high-latency", Severity: severity,
		Element: element, Start: start, Updated: start.Add(time.Second), Value: 2, Baseline: 1, Runbook: "/docs/findings#high-latency", Text: "latency of " + element + " has risen"}
	if status == notify.Resolved {
		a.End = start.Add(2 * time.Second)
	}
	return a
}
