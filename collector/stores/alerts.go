package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/hopscope/hopscope/collector/metrics"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/notify"
)

// Alerting makes alerts of the findings of windows, and follows the file of what operators acknowledged and muted. A collector has
// one, and so has the consumer of a fleet. One goroutine at a time ends windows; the others may ask for metrics.
type Alerting struct {
	cfg      notify.Config
	instance string
	log      *slog.Logger
	center   *notify.Center

	file  *RulesFile
	rules *notify.Rules // that are followed

	mu      sync.Mutex // guards the figures
	open    int
	refused uint64
	sent    map[notify.Status]uint64
}

// NewAlerting reads the file of rules, if there is one. A wrong file is logged, and nothing is muted.
func NewAlerting(cfg notify.Config, instance string, log *slog.Logger) (*Alerting, error) {
	a := &Alerting{cfg: cfg, instance: instance, log: log, file: OpenRules(cfg.File, log), rules: &notify.Rules{}, sent: map[notify.Status]uint64{}}
	if err := a.Reset(); err != nil {
		return nil, fmt.Errorf("alerts: %w", err)
	}
	a.adopt()
	return a, nil
}

// Reset forgets all alerts, for a process that restores a state or begins anew.
func (a *Alerting) Reset() error {
	c, err := notify.New(a.cfg, a.instance)
	if err != nil {
		return err
	}
	a.center = c
	return c.Follow(a.rules)
}

// AppendState appends the state that a process needs to go on.
func (a *Alerting) AppendState(dst []byte) []byte { return a.center.AppendState(dst) }

// ReadState restores the state of AppendState, with the same findings. After Restarted they are others.
func (a *Alerting) ReadState(b []byte) error { return a.center.ReadState(b) }

// Restarted notes that the detectors begin anew. Open alerts wait to be found again.
func (a *Alerting) Restarted() { a.center.Restarted() }

// Step returns the alerts that follow from the findings of a window, which ended at now.
func (a *Alerting) Step(now int64, found []inference.Finding, called *names.Names) []notify.Alert {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.adopt()
	a.center.UseNames(called)
	alerts := a.center.Step(now, found)
	a.open, a.refused = a.center.Counts()
	for i := range alerts {
		alerts[i].Text = called.Text(alerts[i].Text)
		a.sent[alerts[i].Status]++
	}
	return alerts
}

// adopt takes over rules that were read.
func (a *Alerting) adopt() {
	r := a.file.Rules()
	if r == a.rules {
		return
	}
	if err := a.center.Follow(r); err != nil { // it was checked when it was read
		a.log.Error("acknowledgements and mutes not followed", "error", err.Error())
		return
	}
	a.rules = r
}

// Rules returns the file of rules; it may be called on nil, which has none.
func (a *Alerting) Rules() *RulesFile {
	if a == nil {
		return nil
	}
	return a.file
}

// Refused is of how many findings no alert was made, because alerts.max_open were open. It may be called on nil.
func (a *Alerting) Refused() uint64 {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refused
}

// Problem returns why the rules are older than their file, or nothing. It may be called on nil.
func (a *Alerting) Problem() string { return a.Rules().Problem() }

// The metrics of alerts.
var (
	mAlertsOpen    = metrics.NewGauge("hopscope_alerts_open", "Open alerts, muted ones included; 0 without a receiver.")
	mAlertsSent    = metrics.NewCounter("hopscope_alerts_total", "Alerts handed to the receivers, by status.", "status")
	mAlertsRefused = metrics.NewCounter("hopscope_alerts_refused_total", "Findings without an alert, beyond max_open.")
	mAlertsRules   = metrics.NewCounter("hopscope_alerts_rules_failures_total", "Failed reads of the file of acknowledgements and mutes.")

	// AlertMetrics are all of them.
	AlertMetrics = []metrics.Metric{mAlertsOpen, mAlertsSent, mAlertsRefused, mAlertsRules}
)

// Emit returns the values of AlertMetrics. It may be called at any time, and on nil, which has sent nothing.
func (a *Alerting) Emit(emit metrics.Emit) {
	if a == nil {
		emit.All(
			metrics.Of(mAlertsOpen, 0),
			metrics.Of(mAlertsRefused, 0),
			metrics.Of(mAlertsRules, 0),
		)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	emit.All(
		metrics.Of(mAlertsOpen, a.open),
		metrics.Of(mAlertsRefused, a.refused),
		metrics.Of(mAlertsRules, a.file.failures.Load()),
	)
	for s := notify.Firing; s < notify.Test; s++ {
		emit(mAlertsSent, float64(a.sent[s]), s.String())
	}
}

// alertsEvery is how often the file of open alerts is written at most.
const alertsEvery = 5 * time.Second

// AlertKeeper keeps the open alerts of a collector over a restart.
type AlertKeeper struct {
	*Alerting
	path  string
	kept  []byte        // what the file holds, or will
	since time.Duration // monotonic
	busy  sync.Mutex    // while the file is being written
}

// OpenAlerts restores the alerts of the run before for a live collector.
func OpenAlerts(cfg notify.Config, instance string, log *slog.Logger) (*AlertKeeper, error) {
	a, err := NewAlerting(cfg, instance, log)
	if err != nil {
		return nil, err
	}
	k := &AlertKeeper{Alerting: a, path: cfg.StatePath(), since: -alertsEvery}
	Tidy(k.path, log)
	b, err := os.ReadFile(k.path)
	if err == nil {
		if err = a.ReadState(b); err == nil {
			a.Restarted()
			k.kept = b
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Error("the alerts of the run before are not known, and are sent again", "file", k.path, "error", err.Error())
	}
	return k, nil
}

// Keep writes the file in the background if it would be another one, or waits for that at the end.
func (k *AlertKeeper) Keep(now time.Duration, last bool) {
	if !last && now-k.since < alertsEvery {
		return
	}
	if last {
		k.busy.Lock()
	} else if !k.busy.TryLock() {
		return
	}
	b := k.AppendState(nil)
	if bytes.Equal(b, k.kept) {
		k.busy.Unlock()
		return
	}
	k.since = now
	write := func() {
		defer k.busy.Unlock()
		if err := ReplaceFile(k.path, b); err != nil {
			k.log.Error("the file of open alerts cannot be written; they would be sent again after a restart", "file", k.path, "error", err.Error())
			return
		}
		k.kept = b
	}
	if last {
		write()
		return
	}
	go write()
}

// LogFindings writes findings to the log, with the operator's names, a few of each window: a storm is logged as one.
func LogFindings(log *slog.Logger, found []inference.Finding, called *names.Names) {
	const most = 10
	for i := range found {
		if i == most {
			log.Warn("more findings", "count", len(found)-most)
			return
		}
		f := &found[i]
		level, state := slog.LevelWarn, "finding"
		if f.End != 0 {
			level, state = slog.LevelInfo, "finding ended"
		} else if f.Resting {
			level, state = slog.LevelInfo, "finding rests"
		} else if f.Severity == inference.Info || f.Cause != 0 { // its cause is a line of its own
			level = slog.LevelInfo
		}
		about := []any{"kind", f.Kind.String(), "severity", f.Severity.String(), "id", f.IDText(), "text", called.Text(f.Text)}
		if f.Element.Kind != inference.NoElement {
			about = append(about, "element", called.Text(f.Element.String()))
		}
		if f.Cause != 0 {
			about = append(about, "cause", f.CauseText())
		}
		log.Log(context.Background(), level, state, about...)
	}
}
