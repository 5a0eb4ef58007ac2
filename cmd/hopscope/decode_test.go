package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/ingest/pcapfile"
)

// runDecode runs the command as the shell would.
func runDecode(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	var out, diag bytes.Buffer
	c := decodeCommand()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetOut(&out)
	c.SetErr(&diag)
	c.SetArgs(args)
	err = c.ExecuteContext(ctx)
	return out.String(), diag.String(), err
}

// objects parses JSON lines; flags are a set.
func objects(t *testing.T, text string) (list []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		var o map[string]any
		if err := d.Decode(&o); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if flags, ok := o["flags"].([]any); ok {
			slices.SortFunc(flags, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
		list = append(list, o)
	}
	return list
}

func TestDecodeCaptures(t *testing.T) {
	const probes = "../../decode/srint/testdata/"
	for _, tt := range []struct {
		capture, profile, golden string
		args                     []string
		summary                  string
	}{
		{"testdata/fabric-tna", "fabric-tna", "", nil, "9 frames, 9 reports, 0 errors"},
		{"testdata/geant", "geant", "", nil, "3 hops of 10.0.0.3" + impossibleTimes + "3 frames, 3 reports, 0 errors"},
		{"testdata/geant-maxhop", "geant", "", nil, "2 frames, 2 reports, 0 errors"},
		{"testdata/host-int", "host-int", "", nil, "4 frames, 4 reports, 0 errors"},
		{"testdata/laofan", "p4-int-laofan", "", nil, "2 frames, 2 reports, 0 errors"},
		{"testdata/laofan", "auto", "testdata/laofan-auto", []string{"--report-port", "1234"},
			"2 reports of 10.0.0.1 carry INT that profile auto cannot read; p4-int-laofan explains all of it, but there is too little to adopt it; here: --profile p4-int-laofan\n" +
				"2 frames, 2 reports, 2 errors"},
		{"testdata/onos", "onos", "", nil, "3 frames, 3 reports, 0 errors"},
		{"testdata/postcard-braine", "postcard-braine", "", nil, "4 frames, 4 reports, 0 errors"},
		{"testdata/prometheus-exporter", "prometheus-exporter", "", nil, "1 frame, 1 report, 0 errors"},
		{probes + "int-path", "int-path", "", []string{"--all"}, "21 frames, 12 reports, 0 errors, 9 without telemetry"},
		{probes + "int-probe", "auto", "", []string{"--all"}, "27 frames, 19 reports, 0 errors, 8 without telemetry"},
	} {
		t.Run(filepath.Base(tt.capture)+"/"+tt.profile, func(t *testing.T) {
			file := tt.capture + ".pcap"
			stdout, stderr, err := runDecode(t.Context(), append(tt.args, file, "--profile", tt.profile)...)
			if err != nil {
				t.Fatal(err)
			}
			if want := file + ": " + strings.ReplaceAll(tt.summary, "\n", "\n"+file+": ") + "\n"; stderr != want {
				t.Errorf("standard error %q, want %q", stderr, want)
			}
			if tt.golden == "" {
				tt.golden = tt.capture
			}
			golden, err := os.ReadFile(tt.golden + ".jsonl")
			if err != nil {
				t.Fatal(err)
			}
			got, want := objects(t, stdout), objects(t, string(golden))
			// Frames without telemetry are printed with --all, and are no reports.
			all := len(got)
			got = slices.DeleteFunc(got, func(o map[string]any) bool { return o["layers"] != nil && o["stopped_at"] != nil })
			if without := all - len(got); len(tt.args) > 0 && tt.args[0] == "--all" && !strings.Contains(tt.summary, fmt.Sprint(without, " without telemetry")) || len(tt.args) == 0 && without > 0 {
				t.Errorf("%d frames without telemetry are printed", without)
			}
			if len(got) != len(want) {
				t.Fatalf("%d reports, want %d", len(got), len(want))
			}
			for i := range want {
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Errorf("report %d:\n got %v\nwant %v", i+1, got[i], want[i])
				}
			}
		})
	}
}

func TestDecodeTable(t *testing.T) {
	stdout, _, err := runDecode(t.Context(), "testdata/geant-maxhop.pcap", "--profile", "geant", "--format", "table")
	if err != nil {
		t.Fatal(err)
	}
	want := `TIME                         EXPORTER         KIND         FLOW                                           PATH (NODE LATENCY, FIRST HOP FIRST)
2026-11-20T10:43:22.057242Z  10.0.0.4         int-stack    10.0.1.1:4607 > 10.0.2.2:8959 udp              101 5.42ms > 7 5.295ms > 65538 5.259ms [tracked, hop-limit]
`
	if !strings.HasPrefix(stdout, want) {
		t.Errorf("got\n%s\nwant\n%s", stdout, want)
	}
	stdout, _, err = runDecode(t.Context(), "testdata/laofan.pcap", "--report-port", "1234", "--format", "table")
	if want := " 10.0.0.1         -            -                                              3 error: telemetry-report: report_length at byte 51: bad-length\n"; err != nil || !strings.Contains(stdout, want) {
		t.Errorf("got\n%s\nwant a row with\n%s", stdout, want)
	}
}

// A capture that ends early: its frames before the damage are printed, and the error names file and byte.
func TestDecodeTruncatedCapture(t *testing.T) {
	data, err := os.ReadFile("testdata/geant.pcap")
	if err != nil {
		t.Fatal(err)
	}
	whole, _, err := runDecode(t.Context(), "testdata/geant.pcap", "--profile", "geant")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cut.pcap")
	if err := os.WriteFile(file, data[:len(data)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := runDecode(t.Context(), file, "--profile", "geant")
	lines := strings.SplitAfter(whole, "\n")
	if stdout != lines[0]+lines[1] || stderr != file+": 2 hops of 10.0.0.3"+impossibleTimes+file+": 2 frames, 2 reports, 0 errors\n" {
		t.Errorf("output %q, standard error %q", stdout, stderr)
	}
	var u usageError
	if !errors.Is(err, pcapfile.ErrTruncated) || errors.As(err, &u) || !strings.HasPrefix(err.Error(), file+": record 3 at byte ") {
		t.Errorf("error %v", err)
	}
}

func TestDecodeAskedWrongly(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"testdata/geant.pcap", "--profile", "gaent"}, `no profile "gaent"; there are auto, auto-unflagged, prometheus-exporter, fabric-tna, geant, `},
		{[]string{"testdata/geant.pcap", "--report-port", "0"}, "--report-port 0 is outside 1..65535"},
		{[]string{"testdata/geant.pcap", "--report-port", "65536"}, "--report-port 65536 is outside 1..65535"},
		{[]string{"testdata/geant.pcap", "--format", "xml"}, `--format "xml" is neither table nor json`},
		{nil, "decode wants 1 argument, got 0"},
		{[]string{"a", "b"}, "decode wants 1 argument, got 2"},
	} {
		stdout, stderr, err := runDecode(t.Context(), tt.args...)
		var u usageError
		if !errors.As(err, &u) || !strings.HasPrefix(err.Error(), tt.want) || stdout != "" || stderr != "" {
			t.Errorf("decode %q: %v, want %s", tt.args, err, tt.want)
		}
	}
	for file, usage := range map[string]bool{filepath.Join(t.TempDir(), "none.pcap"): true, t.TempDir(): true, "decode.go": false} {
		_, _, err := runDecode(t.Context(), file)
		if err == nil || errors.As(err, new(usageError)) != usage || !strings.Contains(err.Error(), file) {
			t.Errorf("decode %s: %v, want an error that names it, and a wrong question: %t", file, err, usage)
		}
	}
}

// standardInput connects the input of the command to a pipe and returns its other end.
func standardInput(t *testing.T) (w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdin
	os.Stdin = r
	t.Cleanup(func() { os.Stdin = old; r.Close(); w.Close() })
	return w
}

func TestDecodeStandardInput(t *testing.T) {
	data, err := os.ReadFile("testdata/geant.pcap")
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := runDecode(t.Context(), "testdata/geant.pcap", "--profile", "geant")
	if err != nil {
		t.Fatal(err)
	}
	w := standardInput(t)
	go func() { w.Write(data); w.Close() }()
	stdout, stderr, err := runDecode(t.Context(), "-", "--profile", "geant")
	if err != nil || stdout != want || stderr != "standard input: 3 hops of 10.0.0.3"+impossibleTimes+"standard input: 3 frames, 3 reports, 0 errors\n" {
		t.Errorf("%v, output %q, standard error %q", err, stdout, stderr)
	}
}

// impossibleTimes is the remark on hops of the GEANT program's sink, whose latency is its egress time.
const impossibleTimes = " have times that were not set, or that cannot be: they give no latency\n"

// signalling ends ctx once something was written.
type signalling struct {
	bytes.Buffer
	end func()
}

func (s *signalling) Write(b []byte) (int, error) {
	s.end()
	return s.Buffer.Write(b)
}

// A live capture shows what came without waiting for more, and an interrupt is its regular end. That of a file is not.
func TestDecodeInterrupted(t *testing.T) {
	data, err := os.ReadFile("testdata/geant.pcap")
	if err != nil {
		t.Fatal(err)
	}
	w := standardInput(t)
	if _, err := w.Write(data); err != nil { // and leave it open
		t.Fatal(err)
	}
	for _, tt := range []struct{ file, err, summary string }{
		{"-", "", "standard input: 3 hops of 10.0.0.3" + impossibleTimes + "standard input: 3 frames, 3 reports, 0 errors\n"},
		{"testdata/geant.pcap", "interrupted after frame 3", "testdata/geant.pcap: 3 hops of 10.0.0.3" + impossibleTimes + "testdata/geant.pcap: 3 frames, 3 reports, 0 errors\n"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		out := signalling{end: cancel}
		var diag bytes.Buffer
		c := decodeCommand()
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetOut(&out)
		c.SetErr(&diag)
		c.SetArgs([]string{tt.file, "--profile", "geant"})
		err := c.ExecuteContext(ctx)
		if got := strings.Count(out.String(), "\n"); got != 3 || diag.String() != tt.summary {
			t.Errorf("%s: %d lines, standard error %q, want %q", tt.file, got, diag.String(), tt.summary)
		}
		if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%s: %v, want %s", tt.file, err, tt.err)
		}
	}
}

func TestDecodeOutputFails(t *testing.T) {
	decodeTo := func(out *os.File) (string, error) {
		var diag bytes.Buffer
		c := decodeCommand()
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetOut(out)
		c.SetErr(&diag)
		c.SetArgs([]string{"testdata/geant.pcap", "--profile", "geant"})
		err := c.ExecuteContext(t.Context())
		return diag.String(), err
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	if stderr, err := decodeTo(w); err != nil || stderr != "" {
		t.Errorf("closed pipe: %v, standard error %q, want silence", err, stderr)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	if _, err := decodeTo(full); err == nil || err.Error() != "write the reports: no space left on device" {
		t.Errorf("full disk: %v", err)
	}
}

// A capture that no decoder can walk says so, instead of looking like one without telemetry.
func TestDecodeForeignLinkType(t *testing.T) {
	data, err := os.ReadFile("testdata/geant.pcap")
	if err != nil {
		t.Fatal(err)
	}
	data[20] = 127 // radiotap
	file := filepath.Join(t.TempDir(), "wifi.pcap")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := runDecode(t.Context(), file, "--profile", "geant")
	if want := file + ": 3 frames, 0 reports, 0 errors; 3 of link type 127, which is not read\n"; err != nil || stdout != "" || stderr != want {
		t.Errorf("%v, output %q, standard error %q, want %q", err, stdout, stderr, want)
	}
}

func TestProgress(t *testing.T) {
	for _, tt := range []struct {
		read, size int64
		want       string
	}{{5 << 20, 0, "5 MB"}, {5 << 20, 20 << 20, "25 % of 20 MB"}, {1 << 20, 1 << 20, "100 % of 1 MB"}} {
		if got := progress(tt.read, tt.size); got != tt.want {
			t.Errorf("progress(%d, %d) = %q, want %q", tt.read, tt.size, got, tt.want)
		}
	}
}
