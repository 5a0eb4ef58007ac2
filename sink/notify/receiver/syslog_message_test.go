package receiver

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hopscope/hopscope/sink/notify"
)

var at = time.Date(2026, 11, 22, 16, 0, 0, 123456789, time.UTC)

func syslogAlert(status notify.Status, severity, element string) notify.Alert {
	return notify.Alert{Status: status, Instance: "here", Key: "high-latency " + element, Finding: "7-1", Kind: "high-latency", Severity: severity,
		Element: element, Start: at, Updated: at.Add(time.Second), Value: 2.5, Baseline: 1, Text: "latency of " + element + " has risen"}
}

func testForm() form {
	return form{facility: 3, hostname: "host", app: "hopscope", sd: "hopscope@32473", max: 2048}
}

func TestMessages(t *testing.T) {
	f := testForm()
	resolved := syslogAlert(notify.Resolved, "critical", "node 1")
	resolved.End = at.Add(time.Minute)
	for _, tt := range []struct {
		a    notify.Alert
		want string
	}{
		{syslogAlert(notify.Firing, "critical", "node 1"),
			`<26>1 2026-11-22T16:00:01.123456Z host hopscope - high-latency [hopscope@32473 status="firing" key="high-latency node 1" kind="high-latency" severity="critical" element="node 1" instance="here" finding="7-1" start="2026-11-22T16:00:00.123456Z" value="2.5" baseline="1" evidence="0" open="0"] firing: latency of node 1 has risen`},
		{syslogAlert(notify.Repeated, "warning", "link 7–9"),
			`<28>1 2026-11-22T16:00:01.123456Z host hopscope - high-latency [hopscope@32473 status="repeated" key="high-latency link 7–9" kind="high-latency" severity="warning" element="link 7–9" instance="here" finding="7-1" start="2026-11-22T16:00:00.123456Z" value="2.5" baseline="1" evidence="0" open="0"] ` + "\ufeff" + `repeated: latency of link 7–9 has risen`},
		{resolved,
			`<29>1 2026-11-22T16:00:01.123456Z host hopscope - high-latency [hopscope@32473 status="resolved" key="high-latency node 1" kind="high-latency" severity="critical" element="node 1" instance="here" finding="7-1" start="2026-11-22T16:00:00.123456Z" end="2026-11-22T16:01:00.123456Z" value="2.5" baseline="1" evidence="0" open="0"] resolved: latency of node 1 has risen`},
		{notify.Alert{Status: notify.Heartbeat, Instance: "here", Severity: "info", Start: at, Updated: at, Text: "at work", Open: 3},
			`<30>1 2026-11-22T16:00:00.123456Z host hopscope - heartbeat [hopscope@32473 status="heartbeat" severity="info" instance="here" open="3"] at work`},
		{notify.Alert{Status: notify.Test, Instance: "here", Updated: at, Text: "a try"},
			`<29>1 2026-11-22T16:00:00.123456Z host hopscope - test [hopscope@32473 status="test" instance="here" open="0"] test: a try`},
		{notify.Alert{Kind: "a \n]é", Text: "a\nb\r\x00\u2028\u202e\ufeffc\xff", Instance: `"]\`},
			`<30>1 - host hopscope - a--]- [hopscope@32473 status="firing" kind="a  \]é" instance="\"\]\\" start="-" value="0" baseline="0" evidence="0" open="0"] firing: a b     c?`},
	} {
		if got := string(f.messageOf(&tt.a)); got != tt.want {
			t.Errorf("got  %q\nwant %q", got, tt.want)
		}
	}
}

// The message that the page shows is the one that is sent.
func TestPageOfSyslog(t *testing.T) {
	page, err := os.ReadFile("../../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	f := testForm()
	f.facility = slices.Index(facilities, "local4")
	start := time.Date(2026, 11, 22, 16, 0, 0, 0, time.UTC)
	m := f.messageOf(&notify.Alert{Instance: "collector-1", Key: "high-latency node 7", Finding: "18a4c0-3", Headline: "p99 latency at leaf-7: 1.5 ms, usually 200 µs", Runbook: "/docs/findings#high-latency", Kind: "high-latency", Severity: "critical", Element: "node 7",
		Start: start, Updated: start.Add(5 * time.Second), Time: start.Add(10 * time.Second), Value: 1.5e6, Baseline: 200_000, Evidence: 3, Text: "p99 latency of node 7 is 7.5 times what is usual", Open: 1})
	if !strings.Contains(string(page), "\n"+string(m)+"\n") {
		t.Errorf("docs/alerts.md does not show\n%s", m)
	}
}

// A text that does not fit is cut between two characters, and marked as cut. The fields before it are whole.
func TestCut(t *testing.T) {
	f := testForm()
	for _, limit := range []int{480, 481, 482, 483, 2048} {
		f.max = limit
		a := syslogAlert(notify.Firing, "warning", "node 1")
		a.Text = strings.Repeat("é€", 2000)
		m := f.messageOf(&a)
		if len(m) > limit || len(m) < limit-3 || !bytes.HasSuffix(m, []byte(" (cut)")) || !utf8.Valid(m) {
			t.Errorf("limit %d: %d bytes, %q", limit, len(m), m)
		}
		parse(t, m)
		f.hostname = strings.Repeat("h", 255)
		a.Key, a.Element, a.Instance = strings.Repeat(`"é`, 1000), strings.Repeat("]", 1000), strings.Repeat("\\", 1000)
		m = f.messageOf(&a)
		if len(m) > limit || !bytes.HasSuffix(m, []byte(" (cut)")) {
			t.Errorf("limit %d: %d bytes, %q", limit, len(m), m)
		}
		if values := parse(t, m); values["status"] != "firing" {
			t.Errorf("%q", values)
		}
		f.hostname = "host"
	}
}

// syslogHeader is that of RFC 5424 §6 up to the structured data.
var syslogHeader = regexp.MustCompile(`^<(\d{1,3})>1 (?:-|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z) [!-~]{1,255} [!-~]{1,48} - [!-~]{1,32} \[hopscope@32473`)

// parse reads a message as a receiver does that takes nothing but what RFC 5424 allows, and returns its structured data.
func parse(t *testing.T, m []byte) map[string]string {
	t.Helper()
	fail := func(why string) map[string]string {
		t.Helper()
		t.Fatalf("%s: %q", why, m)
		return nil
	}
	if !utf8.Valid(m) {
		return fail("not UTF-8")
	}
	if i := bytes.IndexFunc(m, unicode.IsControl); i >= 0 {
		return fail(fmt.Sprintf("a control character at %d", i))
	}
	head := syslogHeader.Find(m)
	if head == nil {
		return fail("no header")
	}
	values := map[string]string{}
	rest := string(m[len(head):])
	for {
		if text, ok := strings.CutPrefix(rest, "] "); ok {
			if marked := strings.HasPrefix(text, mark); marked == (strings.IndexFunc(text, func(r rune) bool { return r > 127 }) < 0) {
				return fail("the mark of UTF-8 is wrong")
			}
			return values
		}
		name, after, ok := strings.Cut(strings.TrimPrefix(rest, " "), `="`)
		if !ok || rest[0] != ' ' || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") != "" {
			return fail("no name at " + rest)
		}
		if _, twice := values[name]; twice {
			return fail(name + " comes twice")
		}
		var v []byte
		for after != "" && after[0] != '"' {
			switch {
			case after[0] == '\\' && len(after) > 1 && strings.ContainsRune(`"\]`, rune(after[1])):
				after = after[1:]
			case after[0] == '\\' || after[0] == ']':
				return fail("not escaped at " + after)
			}
			v = append(v, after[0])
			after = after[1:]
		}
		if after == "" {
			return fail("no end of " + name)
		}
		values[name], rest = string(v), after[1:]
	}
}

// Whatever the texts are, a message is one, its fields are those of the alert, and it is not too long.
func FuzzMessage(f *testing.F) {
	f.Add("high-latency node 1", "high-latency", "node 1", "text", uint8(0), 480)
	f.Add(`"] [x y="`, "\\", "]", "\n<0>1 ", uint8(3), 2048)
	f.Add("\xff\ufffd\ufeff", "a b", "\u202e", strings.Repeat("€", 3000), uint8(5), 65000)
	f.Fuzz(func(t *testing.T, key, kind, element, text string, status uint8, limit int) {
		form := testForm()
		form.max = 480 + int(uint(limit)%64_521)
		a := notify.Alert{Status: notify.Status(status % 6), Key: key, Kind: kind, Element: element, Text: text, Instance: element + key, Severity: kind, Updated: at, Start: at}
		m := form.messageOf(&a)
		if len(m) > form.max {
			t.Fatalf("%d bytes, want at most %d: %q", len(m), form.max, m)
		}
		values := parse(t, m)
		if values["status"] != a.Status.String() {
			t.Errorf("status %q", values["status"])
		}
		if got, ok := values["key"]; ok && got != cleanText(key) && !strings.HasPrefix(cleanText(key), strings.TrimSuffix(got, cutSign)) {
			t.Errorf("key %q, want %q", got, key)
		}
		if len(m) < 480 && (values["key"] != cleanText(key) || values["element"] != cleanText(element)) && len(key) <= 30 && len(element) <= 30 && len(kind) <= 30 {
			t.Errorf("key %q and element %q, want %q and %q", values["key"], values["element"], key, element)
		}
	})
}

func TestConfigOfSyslog(t *testing.T) {
	for _, tt := range []struct {
		change func(*Syslog)
		want   string
	}{
		{func(*Syslog) {}, ""},
		{func(c *Syslog) { c.Network, c.Address = "unix", "/dev/log" }, ""},
		{func(c *Syslog) { c.Network, c.Address = "tls", "[::1]:6514" }, ""},
		{func(c *Syslog) { c.Network = "unix" }, "address: must be the whole path"},
		{func(c *Syslog) { c.Address = "host" }, "address: must be HOST:PORT"},
		{func(c *Syslog) { c.Address = ":514" }, "address: must be HOST:PORT"},
		{func(c *Syslog) { c.Hostname = "a b" }, "hostname:"},
		{func(c *Syslog) { c.Hostname = strings.Repeat("a", 256) }, "hostname:"},
		{func(c *Syslog) { c.AppName = "" }, "app_name:"},
		{func(c *Syslog) { c.AppName = strings.Repeat("a", 49) }, "app_name:"},
		{func(c *Syslog) { c.SDID = "a.b-c@1.2" }, "sd_id:"},
		{func(c *Syslog) { c.SDID = `a]b@1` }, "sd_id:"},
		{func(c *Syslog) { c.SDID = `a"b@1` }, "sd_id:"},
		{func(c *Syslog) { c.SDID = `a=b@1` }, "sd_id:"},
		{func(c *Syslog) { c.SDID = `a@b@1` }, "sd_id:"},
		{func(c *Syslog) { c.SDID = `a b@1` }, "sd_id:"},
		{func(c *Syslog) { c.SDID = `hop.scope\^@1` }, ""},
		{func(c *Syslog) { c.CAFile = "x" }, "network: is udp"},
		{func(c *Syslog) { c.Network, c.KeyFile = "tls", "x" }, "cert_file: needs"},
	} {
		var c Syslog
		c.SetDefaults()
		tt.change(&c)
		err := c.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Validate(%+v) = %v, want %q", c, err, tt.want)
		}
		if w, err := c.Open(); (err == nil) != (tt.want == "") || (w == nil) != (err != nil) {
			t.Errorf("Open(%+v) = %v, %v", c, w, err)
		}
	}
	var c Syslog
	c.SetDefaults()
	if c.Target() != "udp 127.0.0.1:514" || !c.Alerts() || c.Doc("tls_insecure") == "" {
		t.Errorf("Target = %q", c.Target())
	}
	c.Network, c.CAFile = "tls", "none"
	if err := c.CheckFiles(); err == nil || !strings.Contains(err.Error(), "ca_file") {
		t.Errorf("CheckFiles = %v", err)
	}
	for name, want := range map[string]int{"kern": 0, "daemon": 3, "ftp": 11, "local0": 16, "local7": 23} {
		c := Syslog{}
		c.SetDefaults()
		c.Facility = name
		if w, err := newSyslog(c); err != nil || w.form.facility != want {
			t.Errorf("facility %s is %+v, %v", name, w, err)
		}
	}
}
