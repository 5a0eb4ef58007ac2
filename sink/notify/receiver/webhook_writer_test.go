package receiver

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/notify"
)

// webhookReceiver keeps the posted documents.
type webhookReceiver struct {
	mu     sync.Mutex
	bodies []string
	answer func(n int, body string) int // status of the nth request; nil for 200
	seen   int
}

func (r *webhookReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	b, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	if r.answer != nil {
		if status := r.answer(r.seen, string(b)); status != http.StatusOK {
			w.WriteHeader(status)
			return
		}
	}
	r.bodies = append(r.bodies, string(b))
}

func (r *webhookReceiver) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.bodies)
}

func webhookWriter(t *testing.T, url string, change func(*Webhook)) *WebhookWriter {
	t.Helper()
	var c Webhook
	c.SetDefaults()
	c.URL = url
	if change != nil {
		change(&c)
	}
	w, err := newWebhook(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func webhookAlert(status notify.Status, element string) notify.Alert {
	at := time.Date(2026, 11, 22, 16, 0, 0, 0, time.UTC)
	return notify.Alert{Status: status, Instance: "here", Key: "high-latency " + element, Kind: "high-latency", Severity: "warning", Element: element,
		Start: at, Updated: at.Add(time.Second), Value: 2, Baseline: 1, Text: "latency of \"" + element + "\" has risen"}
}

// Each alert is a request, with itself as JSON; what only refreshes is not sent, and signs of life only where wanted.
func TestJSON(t *testing.T) {
	r := &webhookReceiver{}
	s := httptest.NewServer(r)
	defer s.Close()
	alerts := []notify.Alert{webhookAlert(notify.Firing, "node 1"), webhookAlert(notify.Open, "node 2"), webhookAlert(notify.Repeated, "node 3"),
		webhookAlert(notify.Heartbeat, ""), webhookAlert(notify.Resolved, "node 4"), webhookAlert(notify.Test, "node 5")}
	for _, heartbeats := range []bool{false, true} {
		r.bodies = nil
		if err := webhookWriter(t, s.URL, func(c *Webhook) { c.Heartbeats = heartbeats }).Write(t.Context(), notify.Batch(alerts)); err != nil {
			t.Fatal(err)
		}
		var want []notify.Alert
		for _, a := range alerts {
			if a.Status != notify.Open && (heartbeats || a.Status != notify.Heartbeat) {
				want = append(want, a)
			}
		}
		var got []notify.Alert
		for _, b := range r.got() {
			var a notify.Alert
			if err := json.Unmarshal([]byte(b), &a); err != nil {
				t.Fatal(err)
			}
			got = append(got, a)
		}
		if !slices.Equal(got, want) {
			t.Errorf("heartbeats %t: got %+v\nwant %+v", heartbeats, got, want)
		}
	}
}

// An alert that fails, or is refused, does not hold up later ones. The error holds the remaining and the refused
// alerts.
func TestGoesOn(t *testing.T) {
	r := &webhookReceiver{answer: func(n int, body string) int {
		switch {
		case n == 3:
			return http.StatusServiceUnavailable
		case strings.Contains(body, "node 1"):
			return http.StatusUnprocessableEntity
		}
		return http.StatusOK
	}}
	s := httptest.NewServer(r)
	defer s.Close()
	w := webhookWriter(t, s.URL, nil)
	var alerts []notify.Alert
	for i := range 5 {
		alerts = append(alerts, webhookAlert(notify.Firing, fmt.Sprint("node ", i)))
	}
	b := notify.Batch(alerts)
	err := w.Write(t.Context(), b)
	re, ok := errors.AsType[*sink.RetryError](err)
	if !ok || !re.Progress || !re.Doubt || re.Config || re.Rest == nil || len(re.Refused) != 1 || re.Refused[0].Points != 1 ||
		re.Refused[0].Series[0] != (sink.SeriesCount{Series: notify.Measurement, Points: 1}) {
		t.Fatalf("Write = %v, %+v", err, re)
	}
	if got := r.got(); len(got) != 3 || r.seen != 5 {
		t.Errorf("%d requests, got %q", r.seen, got)
	}
	if err := w.Write(t.Context(), decoded(t, re.Rest)); err != nil || r.seen != 6 {
		t.Errorf("what was left: %v, %d requests", err, r.seen)
	}
	if err := w.Write(t.Context(), b); !sink.Permanent(err) || r.seen != 11 {
		t.Errorf("the same batch once more: %v, %d requests", err, r.seen)
	}
}

// A receiver that fails for all alerts gets requests for only few of a batch. The others come first the next time.
func TestFailsForAll(t *testing.T) {
	r := &webhookReceiver{answer: func(int, string) int { return http.StatusInternalServerError }}
	s := httptest.NewServer(r)
	defer s.Close()
	var alerts []notify.Alert
	for i := range 10 {
		alerts = append(alerts, webhookAlert(notify.Firing, fmt.Sprint("node ", i)))
	}
	alerts = append(alerts, webhookAlert(notify.Resolved, "node 1"))
	err := webhookWriter(t, s.URL, nil).Write(t.Context(), notify.Batch(alerts))
	re, ok := errors.AsType[*sink.RetryError](err)
	if !ok || re.Progress || !re.Doubt || re.Rest == nil || r.seen != 3 {
		t.Fatalf("Write = %v after %d requests", err, r.seen)
	}
	left, err := notify.Alerts(decoded(t, re.Rest))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, a := range left {
		order = append(order, a.Status.String()+" "+a.Element)
	}
	want := "firing node 3,firing node 4,firing node 5,firing node 6,firing node 7,firing node 8,firing node 9,firing node 0,firing node 1,firing node 2,resolved node 1"
	if got := strings.Join(order, ","); got != want {
		t.Errorf("left: %s, want %s", got, want)
	}
}

func decoded(t *testing.T, r *sink.Refusal) *sink.Batch {
	t.Helper()
	var b sink.Batch
	if err := sink.DecodeBatch(r.Payload, &b); err != nil || uint64(len(b.Points)) != r.Points {
		t.Fatalf("%d points, %v", len(b.Points), err)
	}
	return &b
}

// Headers, the token and the address come from files and the environment, and are in no error, also where the receiver
// repeats them.
func TestSecrets(t *testing.T) {
	var got http.Header
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.WriteHeader(status)
		fmt.Fprint(w, r.URL, r.Header)
	}))
	defer s.Close()
	t.Setenv("HOPSCOPE_TEST_KEY", "secret-env")
	w := webhookWriter(t, "", func(c *Webhook) {
		c.URLFile, c.TokenFile, c.Headers = file(t, s.URL+"/secret-path\n"), file(t, "secret-token\n"), []string{"X-Team: net works"}
		c.HeaderFiles, c.HeaderEnv = []string{"X-Secret: " + file(t, "secret-file")}, []string{"X-Api-Key: HOPSCOPE_TEST_KEY"}
	})
	b := notify.Batch([]notify.Alert{webhookAlert(notify.Firing, "node 1")})
	if err := w.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Authorization": "Bearer secret-token", "X-Team": "net works", "X-Secret": "secret-file",
		"X-Api-Key": "secret-env", "Content-Type": "application/json"} {
		if got.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.Get(name), want)
		}
	}
	status = http.StatusForbidden
	err := w.Write(t.Context(), b)
	if re, ok := errors.AsType[*sink.RetryError](err); !ok || !re.Config || strings.Contains(err.Error(), "secret-") || !strings.Contains(err.Error(), "[secret]") {
		t.Errorf("Write = %v", err)
	}
	s.Close()
	if err := w.Write(t.Context(), b); err == nil || strings.Contains(err.Error(), "secret-") {
		t.Errorf("Write = %v", err)
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(&webhookReceiver{})
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	ca := file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	b := notify.Batch([]notify.Alert{webhookAlert(notify.Firing, "node 1")})
	if err := webhookWriter(t, s.URL, func(c *Webhook) { c.CAFile = ca }).Write(t.Context(), b); err != nil {
		t.Error(err)
	}
	err := webhookWriter(t, s.URL, nil).Write(t.Context(), b)
	if re, ok := errors.AsType[*sink.RetryError](err); !ok || !re.Config {
		t.Errorf("an unknown authority: %v", err)
	}
}

// A receiver that is away and comes back gets every alert once, in order.
func TestAwayAndBackOfWebhook(t *testing.T) {
	address := testkit.FreeAddr(t)
	conf := sink.DefaultQueueConfig()
	conf.RetryMin, conf.RetryMax = time.Millisecond, 20*time.Millisecond
	tally := &sink.Tally{}
	q := sink.NewQueue(webhookWriter(t, "http://"+address, nil), conf, sink.QueueOptions{Account: tally})
	q.Start()
	const n = 20
	for i := range n {
		if err := q.Put(t.Context(), notify.Batch([]notify.Alert{webhookAlert(notify.Firing, fmt.Sprintf("node %02d", i)), webhookAlert(notify.Open, "node")})); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Until(t, "the receiver was missed", func() bool { return q.Stats().Retries >= 3 })
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	r := &webhookReceiver{}
	s := &http.Server{Handler: r}
	go s.Serve(l)
	defer s.Close()
	testkit.Until(t, "all alerts are stored", func() bool { return tally.PointsAt(sink.Stored) == 2*n })
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := r.got()
	if len(got) != n || !slices.IsSorted(got) {
		t.Errorf("got %d: %q", len(got), got)
	}
}
