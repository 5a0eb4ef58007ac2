package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/internal/testkit"
)

// past is what the page answers of the last hour.
type past struct {
	Hops  []struct{ Node string }
	Range struct {
		Merged uint64
		Lacks  []string
	}
}

func (c *collector) past() (p past) {
	c.t.Helper()
	text := c.read("/api/windows?from="+strconv.FormatInt(time.Now().Add(-time.Hour).UnixMilli(), 10), http.StatusOK)
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		c.t.Fatal(err)
	}
	return p
}

// endBy ends a collector by a signal.
func (c *collector) endBy(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
	<-c.ended
	_ = c.cmd.Wait() // a killed one has no status of success
}

// read returns what the page answers with a status.
func (c *collector) read(path string, status int) string {
	c.t.Helper()
	res, err := http.Get(c.url + path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		c.t.Fatalf("%s: %s, %v, want %d\n%s", path, res.Status, err, status, body)
	}
	return string(body)
}

func historySettings(t *testing.T, history string) string {
	t.Helper()
	return settingsFile(t, fmt.Sprintf("window: 200ms\nudp: {listen: [\"127.0.0.1:0\"]}\nweb: {listen: \"127.0.0.1:0\"}\nlog: {level: info, format: json}\n%s\n", history))
}

// sendReports sends so many reports, or until ctx ends where that is 0.
func (c *collector) sendReports(ctx context.Context, count uint64) {
	c.t.Helper()
	gen, err := traffic.New(traffic.Config{Seed: 3, Flows: 10, Hops: 3, Exporters: 2, Bytes: 200})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := traffic.Send(ctx, traffic.SendConfig{To: c.to, Rate: 500, Count: count}, gen); err != nil {
		c.t.Error(err)
	}
}

// The page shows the picture of before after a restart, and a kill costs the open minute at most.
func TestHistory(t *testing.T) {
	var c *collector
	var dir, settings string
	for first := false; !first; {
		dir = filepath.Join(t.TempDir(), "spool")
		// Without history.dir it is in the directory of the first spool.
		settings = historySettings(t, fmt.Sprintf("jsonl: {enabled: true, path: %q, spool: {dir: %q}}", filepath.Join(t.TempDir(), "lines"), dir))
		minute := time.Now().Truncate(time.Minute)
		c = start(t, settings)
		p := c.past()
		if first = time.Now().Truncate(time.Minute).Equal(minute); !first {
			c.endBy(syscall.SIGTERM) // a minute ended meanwhile, which the history may have
		} else if p.Range.Merged != 0 || len(p.Hops) != 0 || !strings.HasPrefix(strings.Join(p.Range.Lacks, ""), "the history is empty") {
			t.Errorf("before the first minute: %+v", p)
		}
	}
	c.sendReports(t.Context(), 500)
	testkit.Until(t, "the page has hops", func() bool {
		return !strings.Contains(c.read("/api/hops", http.StatusOK), `"total":0`)
	})
	c.endBy(syscall.SIGTERM)
	if list, err := filepath.Glob(filepath.Join(dir, "history", "minute-*.hist")); err != nil || len(list) == 0 {
		t.Fatalf("files of the history: %q (%v)", list, err)
	}

	c = start(t, settings)
	before := c.past()
	if before.Range.Merged == 0 || len(before.Hops) == 0 {
		t.Fatalf("after a restart: %+v", before)
	}
	c.endBy(syscall.SIGTERM)
}

// What was written before a kill is there.
func TestHistoryKilled(t *testing.T) {
	testkit.Long(t)
	dir := filepath.Join(t.TempDir(), "history")
	settings := historySettings(t, fmt.Sprintf("history: {dir: %q}", dir))
	c := start(t, settings)
	sending, stop := context.WithCancel(t.Context())
	sent := make(chan struct{})
	go func() {
		c.sendReports(sending, 0)
		close(sent)
	}()
	written := regexp.MustCompile(`(?m)^hopscope_history_written_total ([1-9]\d*)$`)
	testkit.Until(t, "a minute has ended and is written", func() bool { return written.MatchString(c.read("/metrics", http.StatusOK)) })
	before := c.past()
	stop()
	<-sent
	c.endBy(syscall.SIGKILL)
	c = start(t, settings)
	if after := c.past(); before.Range.Merged == 0 || after.Range.Merged < before.Range.Merged || len(after.Hops) != len(before.Hops) {
		t.Errorf("before the kill %+v, after it %+v", before, after)
	}
	c.endBy(syscall.SIGTERM)
}

// A collector runs without a history that cannot be opened, and says why.
func TestHistoryFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, historySettings(t, fmt.Sprintf("history: {dir: %q}", file)))
	why := regexp.MustCompile(`no history: mkdir .*: not a directory`)
	for _, path := range []string{"/api/status", "/api/ledger", "/readyz"} {
		if text := c.read(path, http.StatusOK); !why.MatchString(text) {
			t.Errorf("%s says nothing of it: %s", path, text)
		}
	}
	if text := c.read("/api/windows?from=1", http.StatusNotFound); !why.MatchString(text) {
		t.Error(text)
	}
	c.endBy(syscall.SIGTERM)
	c = start(t, historySettings(t, ""))
	if text := c.read("/api/status", http.StatusOK); !strings.Contains(text, `"why":"no history: set history.dir, or enable a store with a spool"`) {
		t.Error(text)
	}
	c.endBy(syscall.SIGTERM)
}
