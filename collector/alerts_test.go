package collector

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/notify"
	"github.com/hopscope/hopscope/sink/spool"
)

// listener is a store that keeps what it gets.
type listener struct {
	name string
	mu   sync.Mutex
	got  []string // alerts, without heartbeats
	life int
	rest map[string]int // points of other measurements
}

func (l *listener) Name() string { return l.name }
func (l *listener) Close() error { return nil }

func (l *listener) Write(_ context.Context, b *sink.Batch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	alerts, err := notify.Alerts(b)
	for _, a := range alerts {
		if a.Status == notify.Heartbeat {
			l.life++
		} else {
			l.got = append(l.got, a.Status.String()+" "+a.Key)
		}
	}
	for i := range b.Points {
		if b.Points[i].Measurement != notify.Measurement {
			l.rest[b.Points[i].Measurement]++
		}
	}
	return err
}

func (l *listener) alerts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.got)
}

// script finds what a test puts into it.
type script struct{ news chan inference.Finding }

func (s *script) Step(w *inference.Window) (found []inference.Finding) {
	for {
		select {
		case f := <-s.news:
			if f.Start == 0 {
				f.Start = w.End
			}
			f.Updated = w.End
			if f.End != 0 {
				f.End = w.End
			}
			found = append(found, f)
		default:
			return found
		}
	}
}

// alarmed is a collector with a receiver of alerts and a store of series.
type alarmed struct {
	*running
	script    *script
	receiver  *listener
	store     *listener
	dir, file string
	log       logText
}

// logText gathers the log.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logText) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), s)
}

// A receiver of alerts is not said to get series.
func TestLogOfReceiver(t *testing.T) {
	t.Parallel()
	a := startAlarmed(t, t.TempDir())
	for _, text := range []string{`msg="sending alerts" sink=alertmanager`, `msg="writing series" sink=memory`} {
		a.waitFor(text, func() bool { return a.log.has(text) })
	}
}

func startAlarmed(t *testing.T, dir string) *alarmed {
	t.Helper()
	a := &alarmed{script: &script{make(chan inference.Finding, 16)}, dir: dir, file: filepath.Join(dir, "alerts.yaml"),
		receiver: &listener{name: "alertmanager", rest: map[string]int{}}, store: &listener{name: "memory", rest: map[string]int{}}}
	cfg := testConfig()
	cfg.Alerts.File, cfg.Alerts.Heartbeat = a.file, time.Millisecond
	cfg.StateFile = filepath.Join(dir, "state")
	spooled := func(name string) *spool.Config {
		c := spool.DefaultConfig()
		c.Dir = filepath.Join(dir, name)
		return &c
	}
	sources, err := OpenSources(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(cfg.Config, cfg.Analysis, Options{Sources: sources, Log: slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &a.log), nil)), Seed: 1, Detectors: []Detector{a.script}, Stores: []Store{
		{Name: "alertmanager", Writer: a.receiver, Queue: sink.DefaultQueueConfig(), Alerts: true, Spool: spooled("a")},
		{Name: "memory", Writer: a.store, Queue: sink.DefaultQueueConfig(), Spool: spooled("b")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.running = &running{c, t, cancel, make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.done <- c.Run(ctx)
	}()
	t.Cleanup(func() { // it writes into its folder until it ends
		cancel()
		<-ended
	})
	return a
}

func (a *alarmed) find(node uint32, ended bool) {
	f := inference.Finding{ID: uint64(node), Kind: inference.HighLatency, Severity: inference.Critical, Node: node, Element: inference.ElementOfNode(node), Text: "slow"}
	if ended {
		f.End = 1
	}
	a.script.news <- f
}

func (a *alarmed) until(want ...string) {
	a.t.Helper()
	a.waitFor(strings.Join(want, ", "), func() bool { return slices.Equal(a.receiver.alerts(), want) })
}

// value is that of a metric without labels.
func (a *alarmed) value(name string) float64 {
	a.t.Helper()
	all, err := a.Registry().Gather()
	if err != nil {
		a.t.Fatal(err)
	}
	for _, m := range all {
		if m.GetName() == name {
			return m.Metric[0].GetGauge().GetValue() + m.Metric[0].GetCounter().GetValue()
		}
	}
	a.t.Fatalf("no metric %s", name)
	return 0
}

// TestAlerts lets a collector find, mute, end and restart. Its receiver gets alerts and nothing else, and its store
// none. A restart neither repeats nor forgets an alert.
func TestAlerts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := startAlarmed(t, dir)
	a.find(1, false)
	a.until("firing high-latency node 1")
	if err := os.WriteFile(a.file, []byte("mutes: [{element: node 2}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.waitFor("the mute", func() bool { return a.log.has("acknowledgements and mutes read") })
	if err := os.WriteFile(a.file, []byte("mutes: [{element: spine}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.waitFor("the error", func() bool { return a.value("hopscope_alerts_rules_failures_total") == 1 })
	if p := strings.Join(a.Status().Problems, "\n"); !strings.Contains(p, "spine") {
		t.Errorf("problems: %q", p)
	}
	a.find(2, false) // is muted by the rules of before
	a.waitFor("the finding", func() bool { return a.value("hopscope_alerts_open") == 2 })
	a.find(3, false)
	a.until("firing high-latency node 1", "firing high-latency node 3")
	if err := os.WriteFile(a.file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a.until("firing high-latency node 1", "firing high-latency node 3", "firing high-latency node 2")
	a.stop()
	if b := a.Balances(); len(b) != 1 || b[0].Sink != "memory" || b[0].Unsettled != 0 {
		t.Errorf("the ledger counts reports of %+v", b)
	}
	if p := a.ledger.AsidePoints()["alertmanager"]; p == nil || p.Stored == 0 || p.Unsettled != 0 || p.Stored != p.Made {
		t.Errorf("points of the receiver: %+v", p)
	}
	if len(a.receiver.rest) != 0 || len(a.store.got) != 0 || a.store.life != 0 || len(a.store.rest) == 0 || a.receiver.life < 3 {
		t.Errorf("receiver: %d signs of life, and %v; store: %v, %v", a.receiver.life, a.receiver.rest, a.store.rest, a.store.got)
	}

	b := startAlarmed(t, dir)
	b.waitFor("signs of life", func() bool { b.receiver.mu.Lock(); defer b.receiver.mu.Unlock(); return b.receiver.life > 0 })
	b.find(1, false)
	b.find(3, true)
	b.find(4, false)
	b.until("resolved high-latency node 3", "firing high-latency node 4")
	b.stop()
}

// TestNoAlertsOfCaptures checks that a capture sends no alert of past findings.
func TestNoAlertsOfCaptures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := &listener{name: "webhook", rest: map[string]int{}}
	cfg := testConfig()
	cfg.Alerts.File = filepath.Join(dir, "alerts.yaml")
	at := time.Unix(1_700_000_000, 0)
	src := &canned{workers: 1, batches: 5, frames: datagrams(t, 5), times: func(_, n int) int64 { return at.Add(time.Duration(n) * time.Second).UnixNano() }}
	s := &script{make(chan inference.Finding, 1)}
	s.news <- inference.Finding{ID: 1, Kind: inference.HighLatency, Severity: inference.Critical, Node: 1, Element: inference.ElementOfNode(1)}
	c, err := New(cfg.Config, cfg.Analysis, Options{Policy: Replay, Sources: []Source{{Name: "canned", Source: src}}, Detectors: []Detector{s},
		Stores: []Store{{Name: "webhook", Writer: l, Queue: sink.DefaultQueueConfig(), Alerts: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(l.got) != 0 || l.life != 0 || len(c.Summary(1, 1).Findings) == 0 {
		t.Errorf("reported %v, %d signs of life", l.got, l.life)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("left %v", files)
	}
}
