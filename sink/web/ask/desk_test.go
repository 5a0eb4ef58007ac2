package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/sink/notify"
	"github.com/hopscope/hopscope/sink/web/access"
)

const token = "correct-horse-battery"

// office is a desk behind a gate.
type office struct {
	*Desk
	handler http.Handler
}

func newOffice(t *testing.T, command Command) *office {
	t.Helper()
	dir := t.TempDir()
	var c access.Config
	c.SetDefaults()
	c.Dir = filepath.Join(dir, "access")
	g, err := access.Open(access.Options{Config: c, Token: token, Public: func(string) bool { return false }, Post: func(path string) bool { return path != "/attention" && path != "/changes" && path != "/control/status" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	cause := inference.Finding{ID: 0xa7, Kind: inference.HighLatency, Severity: inference.Critical, Node: 7, Start: 1e18, Evidence: 1, Element: inference.Element{Kind: inference.NodeElement, Node: 7}}
	symptom := inference.Finding{ID: 0xa8, Kind: inference.HighQueue, Severity: inference.Warning, Node: 7, EgressIf: 3, Start: 1e18, Cause: 0xa7, Element: inference.Element{Kind: inference.InterfaceElement, Node: 7, EgressIf: 3}}
	open := NewFindings([]inference.Finding{cause, symptom}, nil)
	o := &office{Desk: &Desk{Gate: g, Rules: filepath.Join(dir, "alerts.yaml"), Open: func() []Finding { return open }, Command: command}}
	mux := http.NewServeMux()
	for path, h := range map[string]http.HandlerFunc{"/ack": o.ServeAcknowledge, "/mute": o.ServeMute, "/unmute": o.ServeUnmute, "/comment": o.ServeComment, "/control": o.ServeCommand} {
		mux.HandleFunc(path, g.Require(access.Operator, true, h))
	}
	mux.HandleFunc("/attention", g.Require(access.Viewer, false, o.ServeAttention))
	mux.HandleFunc("/control/status", g.Require(access.Viewer, false, o.ServeControl))
	mux.HandleFunc("/changes", g.Require(access.Operator, false, g.ServeChanges))
	o.handler = g.Guard(mux)
	return o
}

func (o *office) ask(method, path, body string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	o.handler.ServeHTTP(w, r)
	text, _ := io.ReadAll(w.Body) // of a recorder
	return w.Code, string(text)
}

func (o *office) post(t *testing.T, path, body string, want int) string {
	t.Helper()
	status, text := o.ask(http.MethodPost, path, body)
	if status != want {
		t.Fatalf("%s %s: %d %s, want %d", path, body, status, text, want)
	}
	return text
}

func (o *office) attention(t *testing.T) (out AttentionList) {
	t.Helper()
	status, text := o.ask(http.MethodGet, "/attention", "")
	if err := json.Unmarshal([]byte(text), &out); status != 200 || err != nil {
		t.Fatalf("%d %s: %v", status, text, err)
	}
	return out
}

// TestAttention acknowledges, mutes and comments, and finds all of it in the file of rules, at the findings and in the log.
func TestAttention(t *testing.T) {
	o := newOffice(t, nil)
	if a := o.attention(t); len(a.Attention) != 0 || !a.Alerts || a.Control {
		t.Fatalf("%+v", a)
	}
	if text := o.post(t, "/ack", `{"id":"00000000000000a8","note":"line card is being replaced"}`, 200); !strings.Contains(text, "acknowledged high-latency node 7") {
		t.Error(text) // with its cause
	}
	o.post(t, "/mute", `{"element":"node 7","for_seconds":7200,"note":"new software"}`, 200)
	o.post(t, "/comment", `{"id":"00000000000000a7","text":"called the\nvendor"}`, 200)
	o.post(t, "/comment", `{"id":"high-latency node 7","text":"second"}`, 200)
	rules, err := notify.ReadRules(o.Rules)
	if err != nil || len(rules.Acknowledged) != 1 || len(rules.Mutes) != 1 || rules.Acknowledged[0].By != "token file" || rules.Mutes[0].Element != "node 7" || rules.Mutes[0].Until == "" {
		t.Fatalf("%+v, %v", rules, err)
	}
	a := o.attention(t).Attention
	if len(a) != 2 || a[0].Acknowledged == nil || a[0].Acknowledged.Text != "line card is being replaced" || a[0].Muted == nil || a[0].MutedUntil != rules.Mutes[0].Until || len(a[0].Comments) != 2 || a[0].Comments[1].Text != "called the\nvendor" {
		t.Fatalf("%+v", a)
	}
	if a[1].ID != "00000000000000a8" || a[1].Acknowledged != nil || a[1].Muted == nil || a[1].MuteElement != "node 7" {
		t.Errorf("%+v", a[1])
	}
	o.post(t, "/unmute", `{"element":"node 7"}`, 200)
	if text := o.post(t, "/unmute", `{"element":"node 7"}`, 400); !strings.Contains(text, "nothing of that element") {
		t.Error(text)
	}
	if a := o.attention(t).Attention; len(a) != 1 || a[0].Muted != nil {
		t.Errorf("%+v", a)
	}
	var log access.ChangeList
	status, text := o.ask(http.MethodGet, "/changes?action=findings", "")
	if err := json.Unmarshal([]byte(text), &log); status != 200 || err != nil {
		t.Fatal(text)
	}
	var got []string
	for _, c := range log.Changes {
		got = append(got, fmt.Sprintf("%s %s %q", strings.TrimPrefix(c.Action, "findings/"), c.Target, c.Failed))
	}
	if want := `unmute node 7 "nothing of that element and kind is muted"; unmute node 7 ""; unmute node 7 ""; comment high-latency node 7 ""; comment high-latency node 7 ""; mute node 7 ""; ack high-latency node 7 ""`; strings.Join(got, "; ") != want {
		t.Errorf("log %s\nwant %s", strings.Join(got, "; "), want)
	}
}

// TestRefused holds that what makes no sense changes nothing, and is said.
func TestRefused(t *testing.T) {
	o := newOffice(t, nil)
	for _, c := range []struct{ path, body, want string }{
		{"/ack", `{"id":"00000000000000ff"}`, "no finding 00000000000000ff is open"}, {"/ack", `{"id":"nonsense"}`, "neither"}, {"/ack", `{"id":"high-latency node 7","note":"\u001b]0;x"}`, "printed"},
		{"/mute", `{}`, "one is needed"}, {"/mute", `{"element":"spine"}`, "no element"}, {"/mute", `{"kind":"slow"}`, "kind"}, {"/mute", `{"kind":"drops","for_seconds":-5}`, "366 days"},
		{"/comment", `{"id":"high-latency node 7","text":"  "}`, "empty"}, {"/comment", `{"id":"high-latency node 7","text":"` + strings.Repeat("x", 1001) + `"}`, "1000 bytes"},
		{"/control", `{"command":"pause"}`, "web.control"},
	} {
		status, text := o.ask(http.MethodPost, c.path, c.body)
		if status/100 != 4 || !strings.Contains(text, c.want) {
			t.Errorf("%s %s: %d %s, want %q", c.path, c.body, status, text, c.want)
		}
	}
	if _, err := os.Stat(o.Rules); !os.IsNotExist(err) {
		t.Errorf("the file of rules is there: %v", err)
	}
	o.Rules = ""
	if text := o.post(t, "/mute", `{"kind":"drops"}`, 409); !strings.Contains(text, "consumers") {
		t.Error(text)
	}
	if n := o.Gate.Stats(); n.Changes != 0 {
		t.Errorf("%+v", n)
	}
}

// TestUnreadableRules holds that a file of rules that cannot be read is named, and not replaced.
func TestUnreadableRules(t *testing.T) {
	o := newOffice(t, nil)
	if err := os.WriteFile(o.Rules, []byte("what: is this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if a := o.attention(t); a.Problem == "" {
		t.Errorf("%+v", a)
	}
	o.post(t, "/mute", `{"kind":"drops"}`, 400)
	if b, err := os.ReadFile(o.Rules); err != nil || string(b) != "what: is this\n" {
		t.Errorf("%s %v", b, err)
	}
}

// TestCommand holds what reaches the control of probes, in whose name, and what is recorded of its refusal.
func TestCommand(t *testing.T) {
	var got []string
	o := newOffice(t, func(_ context.Context, verb string, epoch uint32, author string) error {
		got = append(got, fmt.Sprint(verb, " ", epoch, " ", author))
		if verb == "approve" {
			return errors.New("no plan waits")
		}
		return nil
	})
	o.post(t, "/control", `{"command":"pause"}`, 200)
	if text := o.post(t, "/control", `{"command":"approve","epoch":7}`, 400); !strings.Contains(text, "no plan waits") {
		t.Error(text)
	}
	o.post(t, "/control", `{"command":"explode"}`, 400)
	o.post(t, "/control", `{"command":"pause","epoch":7}`, 400)
	if want := "pause 0 token file, approve 7 token file"; strings.Join(got, ", ") != want {
		t.Errorf("%v, want %s", got, want)
	}
	_, text := o.ask(http.MethodGet, "/changes", "")
	var log access.ChangeList
	if err := json.Unmarshal([]byte(text), &log); err != nil || len(log.Changes) != 3 || log.Changes[0].Failed != "no plan waits" || log.Changes[1].Target != "epoch 7" {
		t.Errorf("%s", text)
	}
	if !o.attention(t).Control {
		t.Error("the control is not named")
	}
}

// TestControlCommands holds which commands make sense in which state, and that each is listed in all.
func TestControlCommands(t *testing.T) {
	plan := ControlState{Phase: "steady", Epoch: 7, InForce: 7, Back: 6}
	with := func(change func(*ControlState)) ControlState {
		s := plan
		change(&s)
		return s
	}
	for _, c := range []struct {
		name  string
		state ControlState
		want  string // commands that make sense; those that are asked about have a sign
	}{
		{"steady", plan, "pause rollback? dry-run"},
		{"at first", ControlState{Phase: "starting"}, "pause dry-run"},
		{"paused", with(func(s *ControlState) { s.Paused = true }), "resume rollback? dry-run"},
		{"dry run", with(func(s *ControlState) { s.DryRun, s.Waiting = true, 8 }), "pause reject? wet-run?"},
		{"a plan waits", with(func(s *ControlState) { s.Waiting = 8 }), "pause approve? reject? rollback? dry-run"},
		{"change-over", with(func(s *ControlState) { s.Waiting, s.Phase = 8, "moving" }), "pause reject? rollback? dry-run"},
		{"a program waits", with(func(s *ControlState) { s.Loads = []string{"switch leaf-1"} }), "pause approve? rollback? dry-run"},
		{"a switch is out of service", with(func(s *ControlState) { s.Failed = []string{"switch leaf-1"} }), "pause resume rollback? dry-run"},
		{"stood down", with(func(s *ControlState) { s.Phase, s.Waiting = "stood-down", 8 }), "pause resume? reject? dry-run"},
		{"stands by", with(func(s *ControlState) { s.StandsBy = "this control stands by" }), ""},
		{"no answer", ControlState{NoAnswer: "no control answers"}, ""},
	} {
		c.state.describe()
		var got []string
		for _, x := range c.state.Commands {
			switch {
			case x.Barred == "" && x.Confirm != "":
				got = append(got, x.Command+"?")
			case x.Barred == "":
				got = append(got, x.Command)
			case x.Confirm != "":
				t.Errorf("%s: %s is barred and asked about", c.name, x.Command)
			}
		}
		if strings.Join(got, " ") != c.want || len(c.state.Commands) != 7 {
			t.Errorf("%s: %q of %d, want %q", c.name, got, len(c.state.Commands), c.want)
		}
	}
}

// TestControlAsked holds that many pages cost the control one request, that a command is seen at once, and that a control that does not
// answer is said.
func TestControlAsked(t *testing.T) {
	o := newOffice(t, func(context.Context, string, uint32, string) error { return nil })
	if status, text := o.ask(http.MethodGet, "/control/status", ""); status != 404 || !strings.Contains(text, "web.control") {
		t.Errorf("%d %s", status, text)
	}
	asked := 0
	o.Control = func(context.Context) (ControlState, error) {
		if asked++; asked > 2 {
			return ControlState{Phase: "steady"}, errors.New("connection refused")
		}
		return ControlState{Phase: "steady", Paused: asked == 2}, nil
	}
	state := func() (s ControlState) {
		t.Helper()
		status, text := o.ask(http.MethodGet, "/control/status", "")
		if err := json.Unmarshal([]byte(text), &s); status != 200 || err != nil {
			t.Fatalf("%d %s: %v", status, text, err)
		}
		return s
	}
	before := time.Now()
	for range 20 {
		state()
	}
	if most := 1 + int(time.Since(before)/freshState); asked > most {
		t.Fatalf("asked %d times, want at most %d", asked, most)
	}
	asked = 1
	o.post(t, "/control", `{"command":"pause"}`, 200)
	if s := state(); !s.Paused || s.Commands[0].Barred != "it is paused" {
		t.Errorf("%+v", s)
	}
	o.post(t, "/control", `{"command":"resume"}`, 200)
	if s := state(); s.NoAnswer != "connection refused" || s.Phase != "" || s.Commands[0].Barred != "the control does not answer" {
		t.Errorf("%+v", s)
	}
}
