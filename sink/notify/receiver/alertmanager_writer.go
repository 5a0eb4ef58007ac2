package receiver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/notify"
)

// AlertmanagerWriter sends alerts to one Alertmanager.
type AlertmanagerWriter struct {
	conf   Alertmanager
	labels map[string]string
	client *httpClient
	last   map[string]string // severity that an alert was sent with, by key
}

// maxLast bounds the remembered alerts. A forgotten one ends by itself in the Alertmanager.
const maxLast = 20_000

// perRequest is how many alerts one request has.
const perRequest = 500

// maxAnnotation bounds the sent part of a text.
const maxAnnotation = 4096

// newAlertmanager reads the token and the certificates. It does not connect.
func newAlertmanager(conf Alertmanager) (*AlertmanagerWriter, error) {
	if err := conf.Validate(); err != nil {
		return nil, err
	}
	client, err := conf.client()
	if err != nil {
		return nil, err
	}
	labels, err := conf.labels()
	if err != nil {
		return nil, err
	}
	return &AlertmanagerWriter{conf: conf, labels: labels, client: client, last: map[string]string{}}, nil
}

// Name is "alertmanager".
func (w *AlertmanagerWriter) Name() string { return "alertmanager" }

// Close ends idle connections.
func (w *AlertmanagerWriter) Close() error { return w.client.Close() }

// postable is an alert as the API takes it.
type postable struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt,omitzero"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// outgoing is the request's part for one point.
type outgoing struct {
	point    int
	alerts   []postable
	key      string
	severity string // "" for one that is resolved
}

// Key implements [sink.Keyed].
func (w *AlertmanagerWriter) Key(p *sink.Point) string { return notify.PointKey(p) }

// Write sends the alerts of a batch. An error names the remaining ones.
func (w *AlertmanagerWriter) Write(ctx context.Context, b *sink.Batch) error {
	var o notify.Outcome
	entries := w.entries(b, &o)
	for len(entries) > 0 {
		n := min(perRequest, len(entries))
		w.send(ctx, b, entries[:n], &o)
		entries = entries[n:]
	}
	return o.Err()
}

// entries makes the alerts to send of every point.
func (w *AlertmanagerWriter) entries(b *sink.Batch, o *notify.Outcome) (out []outgoing) {
	last := map[string]string{} // what this batch changes
	for i := range b.Points {
		alerts, err := notify.Alerts(&sink.Batch{Points: b.Points[i : i+1]})
		if err != nil {
			o.Fail(b.Points[i:i+1], &sink.PermanentError{Err: err})
		}
		for j := range alerts {
			a := &alerts[j]
			if a.Status == notify.Heartbeat && !w.conf.Heartbeats {
				continue
			}
			e := outgoing{point: i, key: a.Key, severity: a.Severity}
			former, ok := last[a.Key]
			if !ok {
				former = w.last[a.Key]
			}
			if a.Key != "" && former != "" && former != a.Severity {
				e.alerts = append(e.alerts, w.ended(a, former))
			}
			e.alerts = append(e.alerts, w.alertOf(a))
			if a.Status == notify.Resolved {
				e.severity = ""
			}
			last[a.Key] = e.severity
			out = append(out, e)
		}
	}
	return out
}

// send sends entries in one request, and, if that fails, in smaller and smaller ones, so that one does not take others with
// it.
func (w *AlertmanagerWriter) send(ctx context.Context, b *sink.Batch, entries []outgoing, o *notify.Outcome) {
	var points []sink.Point
	var all []postable
	for i := range entries {
		all = append(all, entries[i].alerts...)
		points = append(points, b.Points[entries[i].point])
	}
	if o.Stopped() || len(entries) == 1 && o.Held(points) {
		o.Leave(points)
		return
	}
	var err error
	if held := o.Held(points); !held {
		var body []byte
		if body, err = json.Marshal(all); err == nil {
			err = w.client.post(ctx, body)
		} else {
			err = &sink.PermanentError{Err: err}
		}
		if err == nil {
			o.Pass()
			for i := range entries {
				w.sent(&entries[i])
			}
			return
		}
	}
	switch {
	case len(entries) == 1:
		o.Fail(points, err)
	case err != nil && !sink.Permanent(err) && !notify.Doubtful(err):
		o.Stop(err)
		o.Leave(points)
	default:
		half := len(entries) / 2
		w.send(ctx, b, entries[:half], o)
		w.send(ctx, b, entries[half:], o)
	}
}

// sent remembers with which severity an alert fires.
func (w *AlertmanagerWriter) sent(e *outgoing) {
	switch {
	case e.key == "":
	case e.severity == "":
		delete(w.last, e.key)
	case len(w.last) < maxLast || w.last[e.key] != "":
		w.last[e.key] = e.severity
	}
}

// heartbeatName is the name of the alert that always fires.
const heartbeatName = "hopscope-heartbeat"

// alertOf makes an alert as the API takes it.
func (w *AlertmanagerWriter) alertOf(a *notify.Alert) postable {
	p := postable{Labels: w.labelsOf(a, a.Severity), StartsAt: a.Start, GeneratorURL: w.conf.Page,
		Annotations: map[string]string{"summary": w.summary(a), "description": cleanLabel(a.Text)}}
	switch a.Status {
	case notify.Resolved:
		p.EndsAt = later(a.End, notify.SentAt(a), a.Start)
	case notify.Heartbeat:
		p.EndsAt = notify.SentAt(a).Add(w.conf.HeartbeatTimeout)
	}
	if a.Finding != "" {
		p.Annotations["finding"] = cleanLabel(a.Finding)
	}
	if a.Runbook != "" {
		p.Annotations["runbook_url"] = cleanLabel(w.runbook(a))
	}
	if a.Headline != "" {
		p.Annotations["headline"] = cleanLabel(a.Headline)
	}
	return p
}

// runbook returns the address of an alert's runbook. One on the page of a collector is put behind the address of the
// page, where the settings have it.
func (w *AlertmanagerWriter) runbook(a *notify.Alert) string {
	if strings.HasPrefix(a.Runbook, "/") && w.conf.Page != "" {
		return strings.TrimSuffix(w.conf.Page, "/") + a.Runbook
	}
	return a.Runbook
}

// ended is an alert with the severity that it had before.
func (w *AlertmanagerWriter) ended(a *notify.Alert, severity string) postable {
	return postable{Labels: w.labelsOf(a, severity), StartsAt: a.Start, EndsAt: later(notify.SentAt(a), a.Start),
		Annotations: map[string]string{"summary": w.summary(a), "description": "the severity is " + cleanLabel(a.Severity) + " now"}}
}

// later returns the first of times that is set, if it is after the start, which is the last of times. Otherwise it
// returns the start plus 1 ms: the API refuses an end before the start.
func later(times ...time.Time) time.Time {
	start := times[len(times)-1]
	for _, t := range times {
		if !t.IsZero() {
			if t.After(start) {
				return t
			}
			break
		}
	}
	return start.Add(time.Millisecond)
}

func (w *AlertmanagerWriter) labelsOf(a *notify.Alert, severity string) map[string]string {
	labels := maps.Clone(w.labels)
	name := a.Kind
	switch a.Status {
	case notify.Heartbeat:
		name = heartbeatName
	case notify.Test:
		name = cmp.Or(name, "hopscope-test")
	}
	labels["alertname"] = cleanLabel(cmp.Or(name, "hopscope"))
	for name, value := range map[string]string{"severity": severity, "element": element(a), "instance": a.Instance} {
		if value = cleanLabel(value); value != "" { // an empty label is none
			labels[name] = value
		}
	}
	return labels
}

// element returns the subject of an alert. If it names none, its key may, and two alerts with different keys must not
// have the same labels.
func element(a *notify.Alert) string {
	if a.Element != "" || a.Key == a.Kind {
		return a.Element
	}
	return strings.TrimPrefix(a.Key, a.Kind+" ")
}

func (w *AlertmanagerWriter) summary(a *notify.Alert) string {
	switch {
	case a.Status == notify.Heartbeat:
		return "hopscope " + cleanLabel(a.Instance) + " is at work"
	case a.Key == "":
		return cleanLabel(a.Text)
	}
	return cleanLabel(fmt.Sprintf("%s (%s)", a.Key, a.Severity))
}

// cleanLabel bounds a text and makes it one that can be shown, and UTF-8, which the API asks for.
func cleanLabel(text string) string {
	return cutText(names.Printable(text), maxAnnotation)
}
