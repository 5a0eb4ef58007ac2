package receiver

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/notify"
)

func TestConfigOfWebhook(t *testing.T) {
	for _, tt := range []struct {
		change func(*Webhook)
		want   string // "" for what is right
	}{
		{func(*Webhook) {}, ""},
		{func(c *Webhook) { c.URL = "https://chat/hook?key=1" }, ""},
		{func(c *Webhook) { c.URL = "" }, "url: is missing"},
		{func(c *Webhook) { c.URLFile = "x" }, "url: only one"},
		{func(c *Webhook) { c.URL = "http://u:secret@h" }, "url: must not hold"},
		{func(c *Webhook) { c.URL = "http://u:secret@h:x" }, "url: is not"},
		{func(c *Webhook) { c.URL = "ftp://h/secret" }, "url: must be"},
		{func(c *Webhook) { c.URL = "http://h/#secret" }, "url: must not have"},
		{func(c *Webhook) { c.TLSInsecure = true }, "url: is http"},
		{func(c *Webhook) { c.URL, c.CertFile = "https://h", "x" }, "cert_file: needs"},
		{func(c *Webhook) { c.TokenFile, c.TokenEnv = "a", "b" }, "token_file: token_env"},
		{func(c *Webhook) { c.ContentType = "" }, "content_type: must"},
		{func(c *Webhook) { c.ContentType = "text/plain\r\nX: y" }, "content_type: must"},
		{func(c *Webhook) { c.Headers = []string{"X-A: b", "X-B:c"} }, ""},
		{func(c *Webhook) { c.Headers = []string{"X-A"} }, "headers: entry 1: must be"},
		{func(c *Webhook) { c.Headers = []string{"X A: b"} }, "headers: entry 1: must be"},
		{func(c *Webhook) { c.Headers = []string{"X-A: b\r\nX-B: c"} }, "headers: entry 1: X-A has a value"},
		{func(c *Webhook) { c.Headers = []string{"host: b"} }, "headers: entry 1: Host cannot"},
		{func(c *Webhook) { c.Headers = []string{"authorization: secret"} }, "headers: entry 1: Authorization is a secret"},
		{func(c *Webhook) { c.Headers, c.HeaderEnv = []string{"X-A: b"}, []string{"x-a: C"} }, "header_env: entry 1: X-A is set twice"},
		{func(c *Webhook) { c.TokenEnv, c.HeaderFiles = "A", []string{"Authorization: f"} }, "header_files: entry 1: Authorization is set by"},
	} {
		var c Webhook
		c.SetDefaults()
		c.URL = "http://chat/hook"
		tt.change(&c)
		err := c.Validate()
		if (err == nil) != (tt.want == "") || err != nil && (!strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "secret@") || strings.Contains(err.Error(), "/secret")) {
			t.Errorf("Validate(%+v) = %v, want %q", c, err, tt.want)
		}
		if w, err := c.Open(); (err == nil) != (tt.want == "") || (w == nil) != (err != nil) {
			t.Errorf("Open(%+v) = %v, %v", c, w, err)
		}
	}
	c := Webhook{URL: "https://chat:1/secret?secret"}
	if c.Target() != "https://chat:1" || !c.Alerts() || c.Doc("enabled") == "" {
		t.Errorf("Target = %q", c.Target())
	}
}

// The files that settings name are tried before the program starts, also the address in one.
func TestCheckFiles(t *testing.T) {
	for _, tt := range []struct {
		change func(*Webhook)
		want   string
	}{
		{func(c *Webhook) { c.URL, c.URLFile = "", file(t, "http://h/x\n") }, ""},
		{func(c *Webhook) { c.URL, c.URLFile = "", file(t, "secret") }, "url: must be"},
		{func(c *Webhook) { c.URL, c.URLFile = "", file(t, "") }, "url_file:"},
		{func(c *Webhook) { c.URL, c.URLEnv = "", "HOPSCOPE_TEST_NONE" }, "url_env:"},
		{func(c *Webhook) { c.TokenEnv = "HOPSCOPE_TEST_NONE" }, "token_env:"},
		{func(c *Webhook) { c.HeaderFiles = []string{"X-A: none"} }, "header_files: entry 1"},
		{func(c *Webhook) { c.HeaderEnv = []string{"X-A: HOPSCOPE_TEST_NONE"} }, "header_env: entry 1"},
		{func(c *Webhook) { c.URL, c.CAFile = "https://h", file(t, "no PEM") }, "ca_file:"},
		{func(c *Webhook) { c.TemplateFile = "none" }, "template_file:"},
	} {
		var c Webhook
		c.SetDefaults()
		c.URL = "http://h"
		tt.change(&c)
		err := c.CheckFiles()
		if (err == nil) != (tt.want == "") || err != nil && (!strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("CheckFiles(%+v) = %v, want %q", c, err, tt.want)
		}
		if w, err := c.Open(); (err == nil) != (tt.want == "") || (w == nil) != (err != nil) {
			t.Errorf("Open(%+v) = %v, %v", c, w, err)
		}
	}
}

// A template is tried with alerts of all statuses and with texts that break what does not escape them.
func TestTemplates(t *testing.T) {
	for _, tt := range []struct{ content, template, want, problem string }{
		{"application/json", `{"text": {{json .Text}}}`, `{"text": "latency of \"\u003cnode 1\u003e\" has risen"}`, ""},
		{"application/json", `{"text": {{json (slack .Text)}}}`, `{"text": "latency of \"\u0026lt;node 1\u0026gt;\" has risen"}`, ""},
		{"application/json", `{"s": {{json .Status}}, "up": {{if eq .Status "resolved"}}true{{else}}false{{end}}}`, `{"s": "firing", "up": false}`, ""},
		{"application/json", `{"at": "{{.Start.Format "15:04"}}", "v": {{printf "%.0f" .Value}}}`, `{"at": "16:00", "v": 2}`, ""},
		{"text/plain", `{{.Status}} {{.Key}}`, `firing high-latency <node 1>`, ""},
		{"application/json", `{"text": "{{.Text}}"}`, "", "not JSON"},
		{"application/vnd.x+json; charset=utf-8", `{"text": "{{.Text}}"}`, "", "not JSON"},
		{"text/plain", `{{.Text`, "", "unclosed action"},
		{"text/plain", `{{.Nothing}}`, "", "can't evaluate field Nothing"},
		{"text/plain", `{{if eq .Status "resolved"}}{{index .Text 1000}}{{end}}`, "", "with an alert that is resolved"},
		{"text/plain", `{{range 100000000}}{{$.Text}}{{end}}`, "", "more than 1048576 bytes"},
	} {
		var c Webhook
		c.SetDefaults()
		c.URL, c.ContentType, c.TemplateFile = "http://h", tt.content, file(t, tt.template)
		if err := c.CheckFiles(); (err == nil) != (tt.problem == "") || err != nil && (!strings.Contains(err.Error(), tt.problem) || !strings.HasPrefix(err.Error(), "template_file: ")) {
			t.Errorf("%s: CheckFiles = %v, want %q", tt.template, err, tt.problem)
		}
		if tt.problem != "" {
			continue
		}
		b, err := c.body()
		if err != nil {
			t.Fatal(err)
		}
		a := webhookAlert(notify.Firing, "<node 1>")
		if got, err := b.bodyOf(&a); err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.template, got, err, tt.want)
		}
	}
}

// A template that fails with one alert only refuses that one.
func TestTemplateFails(t *testing.T) {
	w := webhookWriter(t, "http://127.0.0.1:1", func(c *Webhook) {
		c.TemplateFile = file(t, `{{if eq .Instance "odd"}}{{index .Text 1000}}{{end}}{{json .}}`)
	})
	a := webhookAlert(notify.Firing, "node 1")
	a.Instance = "odd"
	err := w.Write(t.Context(), notify.Batch([]notify.Alert{a}))
	if !sink.Permanent(err) || !strings.Contains(err.Error(), `alert "high-latency node 1"`) {
		t.Errorf("Write = %v", err)
	}
	var back notify.Alert
	a.Instance = "even"
	if b, err := w.body.bodyOf(&a); err != nil || json.Unmarshal(b, &back) != nil || back != a {
		t.Errorf("{{json .}} gives %s, %v", b, err)
	}
}

// The example of the page is the sent document, and its template works.
func TestPageOfWebhook(t *testing.T) {
	page, err := os.ReadFile("../../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(after string) string {
		_, rest, ok := strings.Cut(string(page), after)
		text, _, end := strings.Cut(rest, "\n```\n")
		if !ok || !end {
			t.Fatalf("docs/alerts.md has no block %q", after)
		}
		return text
	}
	var a notify.Alert
	shown := block("```json\n")
	if err := json.Unmarshal([]byte(shown), &a); err != nil {
		t.Fatal(err)
	}
	if sent, err := json.MarshalIndent(a, "", "  "); err != nil || string(sent) != shown {
		t.Errorf("the page shows\n%s\nand this is sent:\n%s", shown, sent)
	}
	var c Webhook
	c.SetDefaults()
	c.URL, c.TemplateFile = "http://h", file(t, block("```text\n"))
	b, err := c.body()
	if err != nil {
		t.Fatal(err)
	}
	a.Text = "<!channel> \"quoted\""
	var sent struct{ Text string }
	if body, err := b.bodyOf(&a); err != nil || json.Unmarshal(body, &sent) != nil || sent.Text != "firing: &lt;!channel&gt; \"quoted\" (critical)" {
		t.Errorf("the template makes %s, %v", body, err)
	}
}
