package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/internal/testkit"
)

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ended waits for the program and returns its exit status; one that a signal killed has -1.
func ended(t *testing.T, c *exec.Cmd) int {
	t.Helper()
	done := make(chan struct{})
	go func() { _ = c.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(testkit.Patience):
		_ = c.Process.Kill()
		<-done
		t.Fatalf("%v did not end", c.Args[1:])
	}
	return c.ProcessState.ExitCode()
}

// SIGHUP before the settings are read for the first time is acted upon when they are, and SIGHUP while the collector
// drains changes nothing.
func TestHangupInEveryPhase(t *testing.T) {
	path := fifo(t)
	c := program("collect", "--config", path)
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout = io.Discard
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	log := newLogReader(t, stderr)
	w, err := os.OpenFile(path, os.O_WRONLY, 0) // now it waits for its settings
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Process.Signal(syscall.SIGHUP)
	if _, err := io.WriteString(w, "udp: {listen: [\"127.0.0.1:0\"]}\nweb: {listen: \"\"}\nlog: {format: json}\n"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if e := log.wait("settings not reloaded")["error"]; !strings.Contains(e.(string), "cannot be read again") {
		t.Errorf("reload of a FIFO: %v", e)
	}
	_ = c.Process.Signal(syscall.SIGTERM)
	for range 20 {
		_ = c.Process.Signal(syscall.SIGHUP)
	}
	log.drain()
	if got := ended(t, c); got != 0 {
		t.Errorf("exit status %d", got)
	}
}

// deadStore takes requests and does not answer them.
func deadStore(t *testing.T) string {
	t.Helper()
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-stop
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(stop) })
	return s.URL
}

// What a store did not take before the end, and no spool keeps, is reported and is a failure. A second SIGTERM ends the waiting for
// it.
func TestStoppingWithDeadStore(t *testing.T) {
	for _, x := range []struct {
		name, drain string
		second      bool
	}{{"drain_timeout is over", "300ms", false}, {"second SIGTERM", "10m", true}} {
		t.Run(x.name, func(t *testing.T) {
			path := writeFile(t, "window: 200ms\nudp: {listen: [\"127.0.0.1:0\"]}\nweb: {listen: \"\"}\nlog: {format: json}\ndrain_timeout: "+x.drain+
				"\ninflux: {enabled: true, url: \""+deadStore(t)+"\", spool: {enabled: false}}\n")
			c := program("collect", "--config", path)
			stderr, err := c.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			var last bytes.Buffer
			c.Stdout = io.Discard
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			log := newLogReader(t, io.TeeReader(stderr, &last))
			to, err := net.ResolveUDPAddr("udp", log.wait("receiving reports")["address"].(string))
			if err != nil {
				t.Fatal(err)
			}
			gen, err := traffic.New(traffic.Config{Seed: 1, Flows: 10, Hops: 3, Exporters: 2, Bytes: 200})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := traffic.Send(t.Context(), traffic.SendConfig{To: to.AddrPort(), Rate: 5000, Count: 500}, gen); err != nil {
				t.Fatal(err)
			}
			_ = c.Process.Signal(syscall.SIGTERM)
			log.wait("stopping")
			for range 5 {
				_ = c.Process.Signal(syscall.SIGHUP)
			}
			if x.second {
				_ = c.Process.Signal(syscall.SIGTERM)
			}
			log.drain()
			if got := ended(t, c); got != 1 {
				t.Errorf("exit status %d, want 1", got)
			}
			if !strings.Contains(last.String(), "influx: ") || !strings.Contains(last.String(), " points were lost") {
				t.Errorf("what was lost is not reported:\n%s", last.String())
			}
		})
	}
}

// Whatever a command reads, it ends when it is asked to.
func TestInterruptedWhileReading(t *testing.T) {
	for _, args := range []string{
		"config check FIFO", "config print FIFO", "collect --config FIFO", "replay x --config FIFO", "selftest --config FIFO",
		"decode FIFO", "decode x --topology FIFO --nodes=", "top --token-file FIFO",
		"plan cover --topology FIFO", "plan cover --topology fat-tree:4 --depots FIFO", "plan cover --topology fat-tree:4 --check FIFO",
		"plan attention --instance FIFO", "plan attention --metrics FIFO", "plan delivery --instance FIFO", "plan orchestrate --instance FIFO",
		"plan orchestrate --topology fat-tree:4 --demands FIFO", "plan queries FIFO",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			path := fifo(t)
			if strings.HasPrefix(args, "decode x") {
				args = strings.Replace(args, " x ", " ../../decode/testdata/int05-in-report05.pcap ", 1)
			}
			c := program(strings.Fields(strings.ReplaceAll(args, "FIFO", path))...)
			var out bytes.Buffer
			c.Stdout, c.Stderr = &out, &out
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			w, err := os.OpenFile(path, os.O_WRONLY, 0) // it has opened it, too
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			_ = c.Process.Signal(syscall.SIGTERM)
			if got := ended(t, c); got != 1 {
				t.Errorf("exit status %d, want 1:\n%s", got, out.String())
			}
		})
	}
}
