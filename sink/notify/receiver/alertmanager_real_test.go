//go:build check

package receiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/notify"
	"github.com/hopscope/hopscope/sink/spool"
)

// alertmanagerServer is a real Alertmanager, and what it sends to the receiver of its notifications.
type alertmanagerServer struct {
	t       *testing.T
	url     string
	address string
	config  string // its file
	args    []string
	cmd     *exec.Cmd

	mu       sync.Mutex
	reported []alertmanagerNotice
}

// alertmanagerNotice is an alert of a notification.
type alertmanagerNotice struct {
	Status string
	Labels map[string]string
}

func newAlertmanagerServer(t *testing.T) *alertmanagerServer {
	t.Helper()
	tool, err := filepath.Abs("../../../.cache/alertmanager/0.34.2/alertmanager")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tool); err != nil {
		t.Fatal("Alertmanager is not built: run `make alertmanager`")
	}
	s := &alertmanagerServer{t: t}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n struct{ Alerts []alertmanagerNotice }
		if json.NewDecoder(r.Body).Decode(&n) != nil { // the server is killed at the end of each test
			return
		}
		s.mu.Lock()
		s.reported = append(s.reported, n.Alerts...)
		s.mu.Unlock()
	}))
	t.Cleanup(receiver.Close)
	s.address = testkit.FreeAddr(t)
	s.url = "http://" + s.address
	dir := t.TempDir()
	s.config = filepath.Join(dir, "alertmanager.yml")
	s.configure(fmt.Sprintf("route:\n  receiver: us\n  group_by: ['...']\n  group_wait: 10ms\n  group_interval: 100ms\nreceivers:\n- name: us\n  webhook_configs:\n  - url: %s\n", receiver.URL))
	s.args = []string{tool, "--config.file=" + s.config, "--storage.path=" + dir, "--cluster.listen-address=", "--web.listen-address=" + s.address}
	t.Cleanup(s.stop)
	return s
}

func (s *alertmanagerServer) configure(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *alertmanagerServer) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	testkit.Until(s.t, "there is a server that is ready", func() bool {
		resp, err := http.Get(s.url + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

func (s *alertmanagerServer) stop() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.cmd = nil
	}
}

// held is an alert as the Alertmanager has it.
type held struct {
	Labels, Annotations         map[string]string
	StartsAt, EndsAt, UpdatedAt time.Time
	GeneratorURL                string
	Receivers                   []struct{ Name string }
}

// open returns the alerts that fire.
func (s *alertmanagerServer) open() (alerts []held) {
	s.t.Helper()
	resp, err := http.Get(s.url + "/api/v2/alerts")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(b, &alerts)
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s, %v", resp.Status, b, err)
	}
	return alerts
}

// heard waits until the receiver got a notification.
func (s *alertmanagerServer) heard(status string, labels map[string]string) {
	s.t.Helper()
	testkit.Until(s.t, fmt.Sprintf("there is a notification %s %v", status, labels), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.ContainsFunc(s.reported, func(n alertmanagerNotice) bool { return n.Status == status && maps.Equal(n.Labels, labels) })
	})
}

func postAlerts(t *testing.T, w *AlertmanagerWriter, alerts ...notify.Alert) {
	t.Helper()
	if err := w.Write(t.Context(), notify.Batch(alerts)); err != nil && !errors.Is(err, sink.ErrNothing) {
		t.Fatal(err)
	}
}

// One cause is one open alert from firing over a rise of its severity to its end, and the receiver gets all of it.
func TestOneAlertForOneCause(t *testing.T) {
	s := newAlertmanagerServer(t)
	s.start()
	w := alertmanagerWriter(t, s.url, func(c *Alertmanager) { c.Labels, c.Page = []string{"team=net"}, "http://page:8080/" })
	start := time.Now().Add(-time.Minute).UTC().Truncate(time.Millisecond)
	labels := func(severity string) map[string]string {
		return map[string]string{"alertname": "high-latency", "severity": severity, "element": "link 7–9", "instance": "here", "team": "net"}
	}
	postAlerts(t, w, alertmanagerAlert(notify.Firing, "warning", "link 7–9", start))
	s.heard("firing", labels("warning"))
	postAlerts(t, w, alertmanagerAlert(notify.Firing, "critical", "link 7–9", start))
	s.heard("firing", labels("critical"))
	s.heard("resolved", labels("warning"))
	before := s.open()
	if len(before) != 1 || !maps.Equal(before[0].Labels, labels("critical")) || !before[0].StartsAt.Equal(start) || before[0].GeneratorURL != "http://page:8080/" ||
		before[0].Annotations["runbook_url"] != "http://page:8080/docs/findings#high-latency" ||
		before[0].Annotations["description"] != "latency of link 7–9 has risen" || before[0].Annotations["summary"] != "high-latency link 7–9 (critical)" {
		t.Fatalf("open: %+v", before)
	}
	postAlerts(t, w, alertmanagerAlert(notify.Open, "critical", "link 7–9", start))
	after := s.open()
	if len(after) != 1 || !after[0].EndsAt.After(before[0].EndsAt) {
		t.Errorf("a refresh does not put the end off: %+v, before %+v", after, before)
	}
	postAlerts(t, w, alertmanagerAlert(notify.Resolved, "critical", "link 7–9", start))
	s.heard("resolved", labels("critical"))
	if open := s.open(); len(open) != 0 {
		t.Errorf("still open: %+v", open)
	}
}

// A heartbeat fires, and ends some time after the last one. An old one from a spool does not fire.
func TestHeartbeat(t *testing.T) {
	s := newAlertmanagerServer(t)
	s.start()
	w := alertmanagerWriter(t, s.url, nil)
	at := time.Now().UTC().Truncate(time.Millisecond)
	beat := func(at time.Time) notify.Alert {
		return notify.Alert{Status: notify.Heartbeat, Instance: "here", Severity: "info", Start: at.Add(-24 * time.Hour), Updated: at.Add(-time.Hour), Time: at, Text: "at work"}
	}
	postAlerts(t, w, beat(at.Add(-time.Hour)))
	if open := s.open(); len(open) != 0 {
		t.Errorf("an old one fires: %+v", open)
	}
	postAlerts(t, w, beat(at.Add(-time.Minute)), beat(at))
	open := s.open()
	if len(open) != 1 || open[0].Labels["alertname"] != "hopscope-heartbeat" || !open[0].EndsAt.Equal(at.Add(15*time.Minute)) {
		t.Errorf("open: %+v", open)
	}
	off := alertmanagerWriter(t, s.url, func(c *Alertmanager) { c.Heartbeats = false })
	other := beat(at)
	other.Instance = "there"
	postAlerts(t, off, other)
	if n := len(s.open()); n != 1 {
		t.Errorf("%d alerts are open", n)
	}
}

// Whatever stands in the texts, the API takes the alert; what cannot be read is refused alone.
func TestStrangeTexts(t *testing.T) {
	s := newAlertmanagerServer(t)
	s.start()
	w := alertmanagerWriter(t, s.url, nil)
	start := time.Now().Add(-time.Minute).UTC()
	var alerts []notify.Alert
	for i, text := range []string{"", "\"}]", "{{ .Labels }}", "a\nb\x00c", "\xff\xfe", "=~\".*\"", string(make([]byte, 100_000)), "\u2028"} {
		a := alertmanagerAlert(notify.Firing, text, fmt.Sprint(i, text), start)
		a.Kind, a.Instance, a.Text, a.Finding = text, text, text, text
		a.Key = a.Kind + " " + a.Element
		ended := a
		ended.Status, ended.End, ended.Key = notify.Resolved, start.Add(-time.Hour), "other "+a.Key // ends before it starts
		ended.Element = "other " + a.Element
		alerts = append(alerts, a, ended)
	}
	b := notify.Batch(alerts)
	b.Points = append(b.Points, sink.Point{Measurement: notify.Measurement, Fields: []sink.Field{sink.StringField("alert", "{")}})
	err := w.Write(t.Context(), b)
	p, ok := err.(*sink.PermanentError)
	if !ok || p.Rejected != 1 || len(p.Refused) != 1 {
		t.Errorf("Write = %v", err)
	}
	if n := len(s.open()); n != len(alerts)/2 {
		t.Errorf("%d alerts are open, want %d", n, len(alerts)/2)
	}
}

// Alerts that name no element have the labels of their keys: two causes are two alerts.
func TestKeysDistinguishAlerts(t *testing.T) {
	s := newAlertmanagerServer(t)
	s.start()
	w := alertmanagerWriter(t, s.url, nil)
	start := time.Now().Add(-time.Minute).UTC()
	a, b := alertmanagerAlert(notify.Firing, "warning", "node 1", start), alertmanagerAlert(notify.Firing, "warning", "node 2", start)
	a.Element, b.Element = "", ""
	postAlerts(t, w, a, b)
	if n := len(s.open()); n != 2 {
		t.Errorf("%d alerts are open", n)
	}
}

// An Alertmanager that is away gets everything when it is back, in order: what ended meanwhile does not fire.
func TestAwayAndBackOfAlertmanager(t *testing.T) {
	s := newAlertmanagerServer(t)
	w := alertmanagerWriter(t, s.url, nil)
	sc := spool.DefaultConfig()
	sc.Dir = t.TempDir()
	sp, err := spool.Open(sc)
	if err != nil {
		t.Fatal(err)
	}
	conf := sink.DefaultQueueConfig()
	conf.RetryMin, conf.RetryMax = time.Millisecond, 20*time.Millisecond
	tally := &sink.Tally{}
	q := sink.NewQueue(w, conf, sink.QueueOptions{Spool: sp, Account: tally})
	q.Start()
	start := time.Now().Add(-time.Minute).UTC()
	for _, a := range []notify.Alert{alertmanagerAlert(notify.Firing, "warning", "node 1", start), alertmanagerAlert(notify.Firing, "warning", "node 2", start),
		alertmanagerAlert(notify.Open, "warning", "node 1", start), alertmanagerAlert(notify.Resolved, "warning", "node 1", start)} {
		if err := q.Put(t.Context(), notify.Batch([]notify.Alert{a})); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Until(t, "there is a try that fails", func() bool { return q.Stats().Retries > 2 })
	s.start()
	testkit.Until(t, "there is an empty queue", func() bool { return tally.PointsAt(sink.Stored) == 4 })
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if err := q.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if open := s.open(); len(open) != 1 || open[0].Labels["element"] != "node 2" {
		t.Errorf("open: %+v", open)
	}
}

// The settings that the page shows are ones that an Alertmanager starts with, and it sends signs of life where they say.
func TestPageOfAlertmanager(t *testing.T) {
	page, err := os.ReadFile("../../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\nroute:")
	text, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("docs/alerts.md shows no route")
	}
	s := newAlertmanagerServer(t)
	s.configure("route:" + text)
	s.start()
	at := time.Now().UTC()
	w := alertmanagerWriter(t, s.url, nil)
	low, high := alertmanagerAlert(notify.Firing, "warning", "node 1", at), alertmanagerAlert(notify.Firing, "critical", "node 1", at)
	high.Key = "another" // as from another run
	postAlerts(t, w, notify.Alert{Status: notify.Heartbeat, Instance: "here", Start: at, Updated: at}, low, high)
	receivers := map[string]string{}
	for _, a := range s.open() {
		receivers[a.Labels["alertname"]+" "+a.Labels["severity"]] = a.Receivers[0].Name
	}
	if want := map[string]string{"hopscope-heartbeat ": "watchdog", "high-latency warning": "network", "high-latency critical": "network"}; !maps.Equal(receivers, want) {
		t.Errorf("receivers are %v, want %v", receivers, want)
	}
}
