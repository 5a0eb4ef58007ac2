package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/internal/testkit"
)

// TestMain lets the test binary be the program, so that exit statuses and signals are the real ones.
func TestMain(m *testing.M) {
	if os.Getenv("HOPSCOPE_TEST_MAIN") != "" {
		if off, err := time.ParseDuration(os.Getenv("HOPSCOPE_TEST_CLOCK")); err == nil && off != 0 {
			base := time.Now()
			machineClock = func() (time.Time, time.Duration) {
				now := time.Now()
				return now.Round(0).Add(off), now.Sub(base)
			}
		}
		main()
		os.Exit(0)
	}
	if signal.Ignored(syscall.SIGHUP) { // under nohup, and so would the programs that tests start
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	os.Exit(m.Run())
}

func program(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), "HOPSCOPE_TEST_MAIN=1")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExitStatus(t *testing.T) {
	bad := writeFile(t, "window: 3\nudp: {workers: 900}\nweb: {listen: 0.0.0.0:80}\nnope: 1\n")
	good := writeFile(t, "window: 1s\n")
	capture := filepath.Join("..", "..", "decode", "testdata", "int05-in-report05.pcap")
	tests := []struct {
		args   string
		status int
		want   []string // in standard output or standard error
	}{
		{"", 0, []string{"Usage:", "demo"}},
		{"--version", 0, []string{"hopscope version"}},
		{"version", 0, []string{"hopscope ", " (go1", runtime.GOOS + "/" + runtime.GOARCH + ")"}},
		{"completion bash", 0, []string{"bash completion", " __complete "}},
		{"completion zsh", 0, []string{"#compdef hopscope", " __complete "}},
		{"completion fish", 0, []string{"fish completion", " __complete "}},
		{"completion powershell", 0, []string{"powershell completion", " __complete "}},
		{"nonsense", 64, []string{`no command "nonsense"`}},
		{"replay", 64, []string{"wants 1 argument, got 0"}},
		{"replay --nonsense x", 64, []string{"unknown flag"}},
		{"replay nowhere.pcap", 64, []string{"nowhere.pcap"}},
		{"replay x.pcap --profile klingon", 64, []string{"klingon", "geant"}},
		{"replay x.pcap --format xml", 64, []string{`"xml" is neither table nor json`}},
		{"replay " + capture + " --profile prometheus-exporter", 0, []string{"1 reports", "telemetry-report 0.5", "1 > 3 > 2", "received = 1 stored"}},
		{"config check " + good, 0, []string{"no problems"}},
		{"config check " + bad, 64, []string{"line 1: window:", "line 2: udp.workers: 900 is outside", "line 3: web", "line 4: nope: unknown key"}},
		{"collect --config " + bad, 64, []string{"line 1: window:", "line 4: nope"}},
		{"collect --config nowhere.yaml", 64, []string{"nowhere.yaml"}},
		{"config print " + good, 0, []string{"window: 1s", "# Length of a window"}},
		{"selftest --rate -1", 64, []string{"outside"}},
		{"selftest --flows 0", 64, []string{"lows"}},
		{"top --url ftp://x", 64, []string{"--url"}},
		{"top --url http://127.0.0.1:1", 1, []string{"no collector answers at http://127.0.0.1:1"}},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			out, err := program(strings.Fields(tt.args)...).CombinedOutput()
			status := 0
			if e, ok := err.(*exec.ExitError); ok {
				status = e.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if status != tt.status {
				t.Errorf("exit status %d, want %d:\n%s", status, tt.status, out)
			}
			for _, w := range tt.want {
				if !bytes.Contains(out, []byte(w)) {
					t.Errorf("no %q in\n%s", w, out)
				}
			}
		})
	}
}

// TestCollect runs the daemon as an operator would: settings, reports, page, reload, SIGTERM, summary.
func TestCollect(t *testing.T) {
	text := "window: 200ms\nudp: {listen: [\"127.0.0.1:0\"]}\nweb: {listen: \"127.0.0.1:0\"}\nlog: {format: json}\n"
	path := writeFile(t, text)
	c := program("collect", "--config", path, "--format", "json")
	var out bytes.Buffer
	c.Stdout = &out
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	log := newLogReader(t, stderr)
	addr, err := net.ResolveUDPAddr("udp", log.wait("receiving reports")["address"].(string))
	if err != nil {
		t.Fatal(err)
	}
	url := log.wait("serving the page")["url"].(string)

	gen, err := traffic.New(traffic.Config{Seed: 1, Flows: 10, Hops: 3, Exporters: 2, Bytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	res, err := traffic.Send(t.Context(), traffic.SendConfig{To: addr.AddrPort(), Rate: 5000, Count: 2000}, gen)
	if err != nil {
		t.Fatal(err)
	}
	metrics := ""
	if !testkit.Await(func() bool {
		metrics = get(t, url+"metrics", http.StatusOK)
		return strings.Contains(metrics, `hopscope_decode_reports_total{format="telemetry-report",kind="int-stack"} 2000`)
	}) {
		t.Fatalf("no 2000 reports in\n%s", metrics)
	}
	get(t, url+"healthz", http.StatusOK)
	get(t, url+"readyz", http.StatusOK)
	for _, cmd := range []string{"top", "flow"} {
		table, err := program(cmd, "--url", url).CombinedOutput()
		if err != nil || bytes.Count(table, []byte("\n")) < 3 {
			t.Errorf("hopscope %s: %v\n%s", cmd, err, table)
		}
	}

	if err := os.WriteFile(path, []byte(text+"shards: 1\nexporters: {profile: onos}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Process.Signal(syscall.SIGHUP)
	log.wait("settings reloaded")
	if keys := log.wait("changed settings that need a restart")["keys"]; keys != "shards" {
		t.Errorf("settings that need a restart are %v, want shards", keys)
	}

	c.Process.Signal(syscall.SIGTERM)
	log.drain()
	if err := c.Wait(); err != nil {
		t.Fatalf("after SIGTERM: %v", err)
	}
	var s collector.Summary
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		t.Fatalf("summary: %v\n%s", err, out.String())
	}
	if s.Reports != res.Sent || s.Ledger.Stored != res.Sent || len(s.Flows) != 10 || len(s.Exporters) != 2 {
		t.Errorf("%d sent, summary %+v", res.Sent, s)
	}
}

// runDemo runs a demo for a moment and returns its hints. Moments become longer until the demo has
// reports of all of these formats: a busy machine lets it do little in a short one.
func runDemo(t *testing.T, args []string, formats ...string) string {
	t.Helper()
	for length := 2500 * time.Millisecond; ; length *= 4 {
		c := program(append([]string{"demo", "--listen", "127.0.0.1:0", "--format", "json", "--duration", length.String()}, args...)...)
		var out, diag bytes.Buffer
		c.Stdout, c.Stderr = &out, &diag
		if err := c.Run(); err != nil {
			t.Fatalf("%v\n%s", err, diag.String())
		}
		var s collector.Summary
		if err := json.Unmarshal(out.Bytes(), &s); err != nil {
			t.Fatalf("summary %s: %v", out.String(), err)
		}
		missing := slices.ContainsFunc(formats, func(name string) bool { return s.ByFormat[name] == 0 })
		if missing && length > testkit.Patience/10 {
			t.Errorf("a demo of %v has no reports of one of %q: %v", length, formats, s.ByFormat)
			missing = false
		}
		if s.Malformed != 0 || s.Ledger.Unsettled != 0 {
			t.Errorf("summary %+v", s)
		}
		if !missing {
			return diag.String()
		}
	}
}

// TestDemo runs the demo for a moment and wants its address, its hints, a summary, and files in a folder that it makes.
func TestDemo(t *testing.T) {
	data := filepath.Join(t.TempDir(), "new", "data")
	hints := runDemo(t, []string{"--data", data}, "telemetry-report 2.0", "int-path")
	for _, want := range []string{"http://127.0.0.1:", "Try next", "bin/hopscope top --url http://127.0.0.1:", data + " (Parquet)\n", "Ctrl-C"} {
		if !strings.Contains(hints, want) {
			t.Errorf("no %q in\n%s", want, hints)
		}
	}
	if _, err := os.Stat(filepath.Join(data, "parquet")); err != nil {
		t.Error(err)
	}
}

// TestPlainDemo is TestDemo of a network without telemetry.
func TestPlainDemo(t *testing.T) {
	hints := runDemo(t, []string{"--plain"}, "telemetry-report 2.0")
	for _, want := range []string{"http://127.0.0.1:", "20 switches that send nothing, and 224 STAMP sessions", "top --probes --url http://127.0.0.1:", "removed at the end", "Ctrl-C"} {
		if !strings.Contains(hints, want) {
			t.Errorf("no %q in\n%s", want, hints)
		}
	}
}

func TestSelftest(t *testing.T) {
	out, err := program("selftest", "--rate", "3000", "--duration", "500ms", "--format", "json").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got struct {
		Steps []traffic.Step
		Best  float64 `json:"keeps_up_with"`
	}
	if err := json.Unmarshal(out, &got); err != nil || len(got.Steps) != 1 || got.Steps[0].Missing != 0 || got.Best == 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func get(t *testing.T, url string, status int) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		t.Fatalf("%s: %s, %v, want %d\n%s", url, res.Status, err, status, body)
	}
	return string(body)
}

// logReader waits for lines of a JSON log.
type logReader struct {
	t     *testing.T
	lines chan map[string]any
}

func newLogReader(t *testing.T, r io.Reader) *logReader {
	l := &logReader{t, make(chan map[string]any, 1000)}
	go func() {
		defer close(l.lines)
		s := bufio.NewScanner(r)
		for s.Scan() {
			m := map[string]any{}
			if json.Unmarshal(s.Bytes(), &m) != nil {
				m["msg"] = s.Text()
			}
			l.lines <- m
		}
	}()
	return l
}

// wait returns the next line with that message, and skips others.
func (l *logReader) wait(msg string) map[string]any {
	l.t.Helper()
	var seen []string
	timeout := time.After(testkit.Patience)
	for {
		select {
		case m, ok := <-l.lines:
			if ok && m["msg"] == msg {
				return m
			}
			if seen = append(seen, fmt.Sprint(m["msg"])); !ok {
				l.t.Fatalf("the log ended before %q: %q", msg, seen)
			}
		case <-timeout:
			l.t.Fatalf("no %q in the log: %q", msg, seen)
		}
	}
}

func (l *logReader) drain() {
	for range l.lines {
	}
}
