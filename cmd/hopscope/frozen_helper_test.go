package main_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The frozen tests hold what users, stores and scripts see of the program. They drive it from outside, as a user does,
// and import nothing of it, so that its inside can change below them. The file testdata/frozen/README.md describes how
// its captures and spools were made.

// updating reports whether the goldens in testdata/frozen are to be written anew. The flag is the one by which the
// generated pages are written, too.
func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// run runs the program to its end in a directory of its own choice.
func run(t *testing.T, dir string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	c := command(args...)
	c.Dir = dir
	var out, diag bytes.Buffer
	c.Stdout, c.Stderr = &out, &diag
	err := c.Run()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), diag.String(), e.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return out.String(), diag.String(), 0
}

// must is run for what has to succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, status := run(t, "", args...)
	if status != 0 {
		t.Fatalf("hopscope %s: exit status %d\n%s", strings.Join(args, " "), status, stderr)
	}
	return stdout
}

// command is the program: the test binary itself, which its environment asks to be it, or another build of the program that
// HOPSCOPE_FROZEN_PROGRAM names.
func command(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	if other := os.Getenv("HOPSCOPE_FROZEN_PROGRAM"); other != "" {
		c = exec.Command(other, args...)
	}
	c.Env = append(os.Environ(), "HOPSCOPE_TEST_MAIN=1", "HTTP_PROXY=", "http_proxy=", "COLUMNS=", "TZ=UTC")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// frozen returns the path of a file of testdata/frozen.
func frozen(name string) string { return filepath.Join("testdata", "frozen", name) }

// golden compares text with a file of testdata/frozen, which is packed if its name ends with .gz.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := frozen(name)
	if updating() {
		data := []byte(got)
		if strings.HasSuffix(name, ".gz") {
			data = pack(t, data)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, ".gz") {
		data = unpack(t, data)
	}
	want := string(data)
	if strings.HasPrefix(name, "influx/") || strings.HasPrefix(name, "spool/") {
		got, want = sortedFields(got), sortedFields(want)
	}
	same(t, name, got, want)
}

// sortedFields puts the fields of every line of line protocol into the order of their keys. A store reads them in any.
func sortedFields(lines string) string {
	out := strings.Split(lines, "\n")
	for i, line := range out {
		start, end := unescaped(line, ' ', 0), strings.LastIndexByte(line, ' ')
		if start < 0 || end <= start {
			continue
		}
		var fields []string
		at, quoted := start+1, false
		for k := at; k <= end; k++ {
			switch {
			case line[k] == '"' && line[k-1] != '\\':
				quoted = !quoted
			case !quoted && (line[k] == ',' || k == end):
				fields = append(fields, line[at:k])
				at = k + 1
			}
		}
		slices.Sort(fields)
		out[i] = line[:start+1] + strings.Join(fields, ",") + line[end:]
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// unescaped finds the next c in s that no backslash stands before.
func unescaped(s string, c byte, from int) int {
	for i := from; i < len(s); i++ {
		if s[i] == c && (i == 0 || s[i-1] != '\\') {
			return i
		}
	}
	return -1
}

// same reports the lines in which got differs from want, a few of them.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	const most = 8
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	first := 0
	for first < len(g) && first < len(w) && g[first] == w[first] {
		first++
	}
	end := 0
	for end < len(g)-first && end < len(w)-first && g[len(g)-1-end] == w[len(w)-1-end] {
		end++
	}
	var b strings.Builder
	part := func(sign string, lines []string) {
		for i, l := range lines {
			if i == most {
				fmt.Fprintf(&b, "%s ... %d more lines\n", sign, len(lines)-most)
				return
			}
			if len(l) > 400 {
				l = l[:400] + "..."
			}
			fmt.Fprintf(&b, "%s %s\n", sign, l)
		}
	}
	part("-", w[first:len(w)-end])
	part("+", g[first:len(g)-end])
	t.Errorf("%s differs from line %d on (- want, + got):\n%s", what, first+1, b.String())
}

func pack(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unpack(t *testing.T, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	return data
}

// settingsFile writes settings to a file of its own.
func settingsFile(t *testing.T, text string) string {
	t.Helper()
	if !strings.Contains(text, "instance:") { // the host's name is in no golden
		text = "instance: frozen\n" + text
	}
	path := filepath.Join(t.TempDir(), "hopscope.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sortedLines returns the lines of texts in order, with one newline each.
func sortedLines(texts ...string) string {
	var lines []string
	for _, text := range texts {
		for line := range strings.Lines(text) {
			lines = append(lines, strings.TrimSuffix(line, "\n")+"\n")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// A frame of a capture with Ethernet frames.
type frame struct {
	time time.Duration // since 1970
	data []byte
}

// readCapture reads a pcap file of either byte order and precision.
func readCapture(t *testing.T, path string) []frame {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".gz") {
		data = unpack(t, data)
	}
	var order binary.ByteOrder = binary.LittleEndian
	unit := time.Microsecond
	switch binary.BigEndian.Uint32(data) {
	case 0xa1b23c4d:
		order, unit = binary.BigEndian, time.Nanosecond
	case 0xa1b2c3d4:
		order = binary.BigEndian
	case 0x4d3cb2a1:
		unit = time.Nanosecond
	}
	var frames []frame
	for b := data[24:]; len(b) > 0; {
		n := order.Uint32(b[8:])
		at := time.Duration(order.Uint32(b))*time.Second + time.Duration(order.Uint32(b[4:]))*unit
		frames = append(frames, frame{at, b[16 : 16+n]})
		b = b[16+n:]
	}
	return frames
}

// between returns the frames from from to to after the first one.
func between(frames []frame, from, to time.Duration) []frame {
	var out []frame
	for _, f := range frames {
		if at := f.time - frames[0].time; at >= from && at < to {
			out = append(out, f)
		}
	}
	return out
}

// writeCapture writes frames as a pcap file with nanoseconds.
func writeCapture(t *testing.T, frames []frame) string {
	t.Helper()
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b23c4d)
	b = le.AppendUint32(b, 2|4<<16)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(b, 1<<16)
	b = le.AppendUint32(b, 1) // Ethernet
	for _, f := range frames {
		b = le.AppendUint32(b, uint32(f.time/time.Second))
		b = le.AppendUint32(b, uint32(f.time%time.Second))
		b = le.AppendUint32(b, uint32(len(f.data)))
		b = le.AppendUint32(b, uint32(len(f.data)))
		b = append(b, f.data...)
	}
	path := filepath.Join(t.TempDir(), "capture.pcap")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// recorder is a server that takes what is written to InfluxDB and keeps it.
type recorder struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	other  []string // requests that are no writes
}

func newRecorder(t *testing.T) *recorder {
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		if q.URL.Path == "/api/v2/query" { // which other runs write under the name of the instance: none
			return
		}
		if err != nil || q.Method != http.MethodPost || q.URL.RequestURI() != "/api/v2/write?bucket=hopscope&org=hopscope&precision=ns" {
			r.other = append(r.other, fmt.Sprint(q.Method, " ", q.URL, " ", err))
		} else {
			r.bodies = append(r.bodies, string(body))
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(r.Close)
	return r
}

// lines returns what was written so far, in order.
func (r *recorder) lines(t *testing.T) string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.other) > 0 {
		t.Errorf("requests that are no writes: %q", r.other)
	}
	// What a run reports of itself differs from one to the next.
	return regexp.MustCompile(`(?m)^collector,.*\n`).ReplaceAllString(sortedLines(r.bodies...), "")
}

var (
	jsonSince     = regexp.MustCompile(`"since":\d+`)
	jsonSeconds   = regexp.MustCompile(`"seconds":[^,}]*,"reports_per_second":[^,}]*`)
	tableSeconds  = regexp.MustCompile(`(?m)^([\d ]+ reports) in \S+ \([\d ]+/s\)`)
	temporaryPath = regexp.MustCompile(regexp.QuoteMeta(os.TempDir()) + `/\S*?([^/\s:"]+\.[a-z]+)`)
)

// summaryText returns the summary of a run in many lines, without wall-clock times.
func summaryText(t *testing.T, summary string) string {
	t.Helper()
	if !strings.HasPrefix(summary, "{") {
		return tableSeconds.ReplaceAllString(summary, "$1 in SECONDS (RATE/s)")
	}
	summary = jsonSeconds.ReplaceAllString(summary, `"seconds":0,"reports_per_second":0`)
	return indent(t, summary)
}

func indent(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "", " "); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return strings.TrimSpace(b.String()) + "\n"
}
