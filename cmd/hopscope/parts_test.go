package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/internal/testkit"
)

// TestCapturesBesideSockets runs the daemon with sockets, interfaces, a capture and a FIFO as its sources and JSON lines as its
// store. It compares the result with a replay of the same captures.
func TestCapturesBesideSockets(t *testing.T) {
	if !testkit.Isolated(t) {
		return
	}
	capture := filepath.Join("..", "..", "decode", "testdata", "geant-int10-reports.pcap")
	replayed, err := program("replay", capture, "--profile", "geant", "--format", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var want collector.Summary
	if err := json.Unmarshal(replayed, &want); err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	fifo, lines := filepath.Join(dir, "fifo"), filepath.Join(dir, "series.jsonl")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	path := writeFile(t, fmt.Sprintf("window: 200ms\nexporters: {profile: geant}\nudp: {listen: [\"127.0.0.1:0\"]}\n"+
		"afpacket: {interfaces: [lo], workers: 1}\nafxdp: {interfaces: [host0], workers: 1, umem_bytes: 262144}\notlp: {enabled: true, grpc: \"127.0.0.1:0\", http: \"127.0.0.1:0\"}\npcap: {files: [%q, %q]}\njsonl: {enabled: true, path: %q, spool: {dir: %q}}\nweb: {listen: \"127.0.0.1:0\"}\nlog: {format: json}\n",
		capture, fifo, lines, filepath.Join(dir, "spool")))
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
	log.wait("reading frames")
	log.wait("writing series")
	url := log.wait("serving the page")["url"].(string)

	data, err := os.ReadFile(capture)
	if err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	counted := fmt.Sprintf("hopscope_ledger_stored_total{sink=\"jsonl\"} %d\n", 2*want.Reports)
	metrics := ""
	if !testkit.Await(func() bool {
		metrics = get(t, url+"metrics", http.StatusOK)
		return strings.Contains(metrics, counted)
	}) {
		t.Fatalf("no %q in\n%s", counted, metrics)
	}
	cfg := defaultConfig()
	for _, m := range collector.Metrics(&cfg) {
		if !strings.Contains(metrics, "# HELP "+m.Name+" ") && len(m.Labels) == 0 {
			t.Errorf("no metric %s", m.Name)
		}
	}
	get(t, url+"readyz", http.StatusOK)
	status := get(t, url+"api/status", http.StatusOK)
	for _, part := range []string{capture, fifo, lines} {
		if !strings.Contains(status, part) {
			t.Errorf("the page does not name %s:\n%s", part, status)
		}
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	log.drain()
	if err := c.Wait(); err != nil {
		t.Fatalf("after SIGTERM: %v", err)
	}
	var got collector.Summary
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("summary: %v\n%s", err, out.String())
	}
	if got.Reports != 2*want.Reports || got.FlowCount != want.FlowCount || got.HopCount != want.HopCount || got.Ledger.Unsettled != 0 {
		t.Errorf("%d reports of %d flows and %d hops, want %d of %d and %d; %+v", got.Reports, got.FlowCount, got.HopCount,
			2*want.Reports, want.FlowCount, want.HopCount, got.Ledger)
	}
	records := uint64(0)
	for _, h := range want.Hops {
		records += 2 * h.Reports
	}
	if n := hopRecords(t, lines); n != records {
		t.Errorf("the lines hold %d hop records, want %d", n, records)
	}
}

// hopRecords adds up the field count of all lines of series hop.
func hopRecords(t *testing.T, path string) (n uint64) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		var line struct {
			Measurement string
			Fields      struct{ Count uint64 }
		}
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatalf("%v in %s", err, s.Text())
		}
		if line.Measurement == "hop" {
			n += line.Fields.Count
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// Where JSON lines take standard output, the summary goes to standard error.
func TestLinesToStandardOutput(t *testing.T) {
	capture := filepath.Join("..", "..", "decode", "testdata", "geant-int10-reports.pcap")
	path := writeFile(t, fmt.Sprintf("jsonl: {enabled: true, spool: {dir: %q}}\n", filepath.Join(t.TempDir(), "spool")))
	c := program("replay", capture, "--profile", "geant", "--config", path)
	var out, summary bytes.Buffer
	c.Stdout, c.Stderr = &out, &summary
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, summary.String())
	}
	for line := range bytes.Lines(out.Bytes()) {
		if !json.Valid(line) {
			t.Fatalf("standard output holds %q", line)
		}
	}
	if out.Len() == 0 || !strings.Contains(summary.String(), "Loss ledger") {
		t.Errorf("%d bytes of lines, and on standard error\n%s", out.Len(), summary.String())
	}
}
