package receiver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/template"
	"time"

	"github.com/hopscope/hopscope/sink/notify"
)

// maxBody bounds what a template makes.
const maxBody = 1 << 20

// body makes the document of an alert.
type body struct {
	template *template.Template // nil for JSON
	json     bool               // what the template makes has to be JSON
}

// view is the data of a template. The status is a text, so that a template can compare it with one.
type view struct {
	notify.Alert
	Status string
}

var functions = template.FuncMap{
	// json is a value as JSON; a text has its quotes then.
	"json": func(v any) (string, error) {
		b, err := json.Marshal(v)
		return string(b), err
	},
	// slack takes the meaning away that chats give to these: without it, a text could call all members of a channel.
	"slack": strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace,
}

// body reads the template and tries it.
func (c *Webhook) body() (*body, error) {
	m := &body{json: c.json()}
	if c.TemplateFile == "" {
		return m, nil
	}
	text, err := os.ReadFile(c.TemplateFile)
	if err != nil {
		return nil, fmt.Errorf("template_file: %w", err)
	}
	if len(text) > maxBody {
		return nil, fmt.Errorf("template_file: %s has %d bytes: at most %d are read", c.TemplateFile, len(text), maxBody)
	}
	if m.template, err = template.New("template_file").Funcs(functions).Parse(string(text)); err != nil {
		return nil, fmt.Errorf("template_file: %s: %w", c.TemplateFile, err)
	}
	for _, a := range samples() {
		if _, err := m.bodyOf(&a); err != nil {
			return nil, fmt.Errorf("template_file: %s: with an alert that is %s: %w", c.TemplateFile, a.Status, err)
		}
	}
	return m, nil
}

// samples are alerts of every status, with texts that break what does not expect them.
func samples() (alerts []notify.Alert) {
	at := time.Date(2026, 11, 22, 22, 0, 0, 0, time.UTC)
	const hostile = "a \"quoted\" text, a \\ and a\nline {{break}} <@all>"
	for _, s := range []notify.Status{notify.Firing, notify.Repeated, notify.Resolved, notify.Heartbeat, notify.Test} {
		a := notify.Alert{Status: s, Instance: hostile, Start: at, Updated: at.Add(time.Minute), Time: at.Add(time.Minute), Text: hostile}
		if s != notify.Heartbeat {
			a.Key, a.Finding, a.Kind, a.Severity, a.Element = hostile, "1-2", "high-latency", "critical", hostile
			a.Headline, a.Runbook = hostile, "/docs/findings#high-latency"
			a.Value, a.Baseline, a.Evidence, a.Open = 1.5e6, 2e5, 3, 4
		}
		if s == notify.Resolved {
			a.End = a.Updated
		}
		alerts = append(alerts, a)
	}
	return alerts
}

// bodyOf makes the body of one alert.
func (m *body) bodyOf(a *notify.Alert) ([]byte, error) {
	shown := a.Screened()
	if m.template == nil {
		return json.Marshal(&shown)
	}
	var out bounded
	if err := m.template.Execute(&out, view{Alert: shown, Status: a.Status.String()}); err != nil {
		return nil, err
	}
	if m.json && !json.Valid(out.Bytes()) {
		return nil, errors.New("what the template makes is not JSON; write texts as {{json .Text}}, without quotes around it")
	}
	return out.Bytes(), nil
}

// bounded is a buffer with a limit, which stops a template that does not end.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxBody {
		return 0, fmt.Errorf("the template makes more than %d bytes", maxBody)
	}
	return b.Buffer.Write(p)
}
