package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hopscope/hopscope/p4/loop"
	"github.com/hopscope/hopscope/planner/control"
)

const hostileText = "\x1b[2J\x1b]0;owned\x07\u202egpj.exe\u2066\u009b31m\r"

// hostile puts the text into every string of a document.
func hostile(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = hostile(v[k])
		}
	case []any:
		for i := range v {
			v[i] = hostile(v[i])
		}
	case string:
		if _, err := time.Parse(time.RFC3339, v); err != nil {
			return v + hostileText
		}
	}
	return v
}

// Servers whose answers hold escape sequences and marks of direction steer no terminal.
func TestHostileAnswers(t *testing.T) {
	answers := map[string]string{
		"/readyz":  `"ready"`,
		"/healthz": `"alive"`,
		"/log":     `[{"kind":"push","device":"agent-1","error":"refused","text":"x"}]`,
		"/status":  `{"name":"a","address":"b","interface":"c","plan":{"epoch":3,"from":"d"},"controller":{"connected":true,"address":"e"}}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var v any
		if err := json.Unmarshal([]byte(answers[r.URL.Path]), &v); err != nil {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		if text, ok := v.(string); ok {
			fmt.Fprint(w, text, hostileText)
			return
		}
		b, err := json.Marshal(hostile(v))
		if err != nil {
			t.Error(err)
		}
		w.Write(b)
	}))
	defer s.Close()
	for _, args := range []string{"health", "health --alive", "agent status", "control log"} {
		c := rootCommand()
		var out bytes.Buffer
		c.SetOut(&out)
		c.SetErr(&out)
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetArgs(append(strings.Fields(args), "--url", s.URL))
		err := c.ExecuteContext(t.Context()) // whose text passes the screen of main
		if out.Len() == 0 {
			t.Errorf("%s printed nothing: %v", args, err)
		}
		for _, r := range out.String() {
			if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
				t.Errorf("%s prints %q in %q", args, r, out.String())
				break
			}
		}
	}
}

// A journal whose names and reasons hold escape sequences and bidirectional marks keeps them. No output of a control
// has them raw: neither its commands nor what its page answers to others.
func TestHostileJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := loop.OpenJournal(path, 1<<20, 2)
	if err != nil {
		t.Fatal(err)
	}
	x := "x" + hostileText
	if err := j.Append([]control.Record{
		{Time: 1, What: control.Planned, Device: x, Epoch: 3, On: []string{x}, Off: []string{x}, Left: []string{x}, Why: x},
		{Time: 2, What: control.Answered, Device: x, Why: x, Entries: []control.Change{{Op: control.Hold, Why: x, Entry: control.Entry{Key: x, Value: x}}}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, err = loop.OpenJournal(path, 1<<20, 2); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if l := j.Last(2); len(l) != 2 || l[0].Why != x || l[1].Entries[0].Entry.Key != x {
		t.Fatalf("the journal does not have what was put in it: %+v", l)
	}
	p, err := serveControl("127.0.0.1:0", j, func(context.Context) loop.Standby { return loop.Standby{Why: x, InCharge: x, Term: 1, Refused: x} })
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	outputs := map[string]string{}
	for _, path := range []string{"/log", "/status", "/readyz", "/healthz", "/metrics", "/log?n=" + url.QueryEscape(x)} {
		res, err := http.Get(p.at() + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		outputs[path] = string(b)
	}
	for _, args := range []string{"log", "log --format json", "status", "status --format json", "pause"} {
		c := rootCommand()
		var out bytes.Buffer
		c.SetOut(&out)
		c.SetErr(&out)
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetArgs(append([]string{"control"}, append(strings.Fields(args), "--url", p.at())...))
		err := c.ExecuteContext(t.Context()) // whose text passes the screen of main
		if out.Len() == 0 && args != "pause" {
			t.Errorf("%s printed nothing: %v", args, err)
		}
		outputs[args] = out.String()
	}
	for name, out := range outputs {
		for _, r := range out {
			if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
				t.Errorf("%s gives %q in %q", name, r, out)
				break
			}
		}
	}
	for _, name := range []string{"/log", "log --format json"} { // JSON keeps values
		var list []control.Record
		if err := json.Unmarshal([]byte(outputs[name]), &list); err != nil || len(list) != 2 || list[0].Why != x || list[1].Device != x {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
	if !strings.Contains(outputs["log"], "gpj.exe") {
		t.Errorf("the log leaves the text out: %q", outputs["log"])
	}
}

// leaves returns every command that does something.
func leaves(c *cobra.Command) (all []*cobra.Command) {
	for _, x := range c.Commands() {
		all = append(all, leaves(x)...)
	}
	if len(all) == 0 && c.Runnable() {
		return []*cobra.Command{c}
	}
	return all
}

// Whatever a command writes to its outputs, as text, JSON or CSV, it steers no terminal, and JSON keeps its values.
func TestHostileTextOfEveryCommand(t *testing.T) {
	list := leaves(rootCommand())
	if len(list) < 40 {
		t.Fatalf("%d commands", len(list))
	}
	for i := range list {
		for _, format := range []string{"", "table", "json", "csv"} {
			root := rootCommand()
			c := leaves(root)[i]
			if format != "" && c.Flags().Lookup("format") == nil {
				continue
			}
			c.Args, c.DisableFlagParsing = nil, false
			c.RunE = func(c *cobra.Command, _ []string) error {
				doc, err := json.Marshal(hostileText)
				c.OutOrStdout().Write(append(doc, '\n'))
				fmt.Fprint(c.ErrOrStderr(), hostileText, "\xff\n")
				newLogger(logConfig{Level: "info", Format: "json"}, c.ErrOrStderr()).Warn(hostileText, hostileText, hostileText)
				newLogger(logConfig{Level: "info", Format: "text"}, c.ErrOrStderr()).Warn(hostileText, "text", hostileText)
				return err
			}
			var out, errs bytes.Buffer
			root.SetOut(&out)
			root.SetErr(&errs)
			args := strings.Fields(c.CommandPath())[1:]
			if format != "" {
				args = append(args, "--format", format)
			}
			for _, flag := range requiredOf(c) {
				args = append(args, "--"+flag, "1")
			}
			root.SetArgs(args)
			if err := root.ExecuteContext(t.Context()); err != nil {
				t.Errorf("%q: %v", args, err)
			}
			if strings.Count(errs.String(), "\n") != 3 {
				t.Errorf("%q logs %q", args, errs.String())
			}
			for _, r := range out.String() + errs.String() {
				if r != '\n' && !unicode.IsPrint(r) {
					t.Errorf("%q prints %q in %q", args, r, out.String()+errs.String())
					break
				}
			}
			var got string
			if err := json.Unmarshal(out.Bytes(), &got); c.Flags().Lookup("format") != nil && c.Flags().Lookup("format").Value.String() == "json" && (err != nil || got != hostileText) {
				t.Errorf("%q: %q does not read as it was: %v", args, out.String(), err)
			}
		}
	}
}

// requiredOf lists the flags that a command does not run without.
func requiredOf(c *cobra.Command) (names []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if len(f.Annotations[cobra.BashCompOneRequiredFlag]) > 0 {
			names = append(names, f.Name)
		}
	})
	return names
}

// No command knows another output than those that the border stands before.
func TestOutputsHaveABorder(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, out := range []string{"os.Stdout", "os.Stderr", "fmt.Print("} {
			if n := strings.Count(string(text), out); n > 0 && !strings.HasSuffix(name, "_test.go") && (name != "main.go" || out != "os.Stderr" || n != strings.Count(string(text), "names.Screen(os.Stderr)")) {
				t.Errorf("%s writes to %s", name, out)
			}
		}
	}
}

// A replay that is interrupted, one without a frame with a report, and one that leaves reports in a spool, say so and
// fail.
func TestReplayPartial(t *testing.T) {
	away := writeFile(t, fmt.Sprintf("influx: {enabled: true, url: \"http://127.0.0.1:1\", spool: {dir: %q}}\ndrain_timeout: 500ms\nlog: {level: error}\n", filepath.Join(t.TempDir(), "spool")))
	for _, tt := range []struct {
		name, args, err, partial string
	}{
		{"interrupted", "--profile geant --speed 1e-9", "interrupted after frame", "interrupted after frame"},
		{"foreign", "--profile geant --report-port 9", "none of 3 frames holds a report", ""},
		{"whole", "--profile geant", "", ""},
		{"left", "--profile geant --config " + away, "reports within drain_timeout: they are in its spool", ""},
	} {
		for _, format := range []string{"table", "json"} {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if tt.partial != "" {
				ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond) // at this speed it would take years
			}
			c := replayCommand()
			var out bytes.Buffer
			c.SetOut(&out)
			c.SetErr(&bytes.Buffer{})
			c.SilenceErrors, c.SilenceUsage = true, true
			c.SetArgs(append(strings.Fields(tt.args), "testdata/geant.pcap", "--format", format))
			err := c.ExecuteContext(ctx)
			cancel()
			if got := fmt.Sprint(err); (err == nil) != (tt.err == "") || err != nil && !strings.Contains(got, tt.err) || exitStatus(err) == 0 != (tt.err == "") {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.err)
			}
			got := ""
			if format == "json" {
				var s struct{ Partial string }
				if err := json.Unmarshal(out.Bytes(), &s); err != nil {
					t.Fatal(err)
				}
				got = s.Partial
			} else if line, _, _ := strings.Cut(out.String(), "\n"); strings.HasPrefix(line, "PARTIAL: ") {
				got = line
			}
			if (got == "") != (tt.partial == "") || !strings.Contains(got, tt.partial) {
				t.Errorf("%s, %s: the summary says %q, want %q:\n%s", tt.name, format, got, tt.partial, out.String())
			}
		}
	}
	if _, err := os.Stat("testdata/geant.pcap"); err != nil {
		t.Fatal(err)
	}
}
