package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/pcapfile"
	"github.com/hopscope/hopscope/internal/testkit"
)

var captures = flag.String("captures", "", "folder of captures, of each of which TestCollectCaptures prints what collect reads, as a line of its table")

// collectCapture runs collect with default settings over a capture, and returns its summary and the frames of the capture.
func collectCapture(t *testing.T, file string) (s collector.Summary, frames int) {
	t.Helper()
	file, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := pcapfile.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b ingest.Batch
	for err == nil {
		err = r.ReadBatch(&b, 256)
		frames += len(b.Frames)
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	c := program("collect", "--format", "json", "--config", writeFile(t, fmt.Sprintf(
		"pcap: {files: [%q]}\nudp: {listen: [\"127.0.0.1:0\"]}\nweb: {listen: \"127.0.0.1:0\"}\nlog: {format: json}\n", file)))
	c.Dir = t.TempDir()
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
	url := log.wait("serving the page")["url"].(string)
	go log.drain()
	if !testkit.Await(func() bool {
		return strings.Contains(get(t, url+"metrics", http.StatusOK), fmt.Sprintf("\nhopscope_pcap_frames_total %d\n", frames))
	}) {
		t.Fatal("the capture is not read to its end")
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	return s, frames
}

// captureRow is what the table says of a capture.
func captureRow(file string, frames int, s *collector.Summary) string {
	var kinds, said []string
	for _, k := range slices.Sorted(maps.Keys(s.ByKind)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", s.ByKind[k], k))
	}
	for _, k := range slices.Sorted(maps.Keys(s.MalformedReasons)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", s.MalformedReasons[k], k))
	}
	for _, d := range s.Dialects {
		said = append(said, fmt.Sprintf("%s %s", strings.Join(d.Explains, ", "), d.State))
	}
	said = slices.Compact(said)
	text := func(list []string) string {
		if len(list) == 0 {
			return "none"
		}
		return strings.Join(list, ", ")
	}
	if len(said) == 0 && s.Reports > 0 {
		said = []string{"auto"}
	}
	return fmt.Sprintf("| %s | %d | %s | %s | %d | %d |", filepath.Base(file), frames, text(kinds), text(said), s.HopCount, s.FlowCount)
}

// TestCollectCaptures lets collect read recordings of other people's programs, as `pcap.files` of otherwise default settings.
// Every dialect is recognised or named, and adopted where there is enough of it, from the first report on.
//
// Of the recordings in decode/testdata, collect with pcap.files as its one setting reads:
//
//	| recordings | reports of frames | dialect | hops, flows |
//	| --- | --- | --- | --- |
//	| fabric-tna | 1529 drops and postcards of 1529 | auto | 4, 5 |
//	| GEANT: reports; in the network | 1419 of 1419, 660 of 660; 380 to 400 of 400 | geant | 1 to 3, 2 to 6 |
//	| Intel host INT: reports; in the network | 67 of 67; 387 of 387 | host-int | 3, 6; 1, 6 |
//	| P4-INT (elavinal); P4-INT (laofan), reports | 324 of 500; 628 of 628 | p4-int-elavinal; p4-int-laofan | 1 to 3, 3 |
//	| ONOS: reports; in the network | 725 of 725, 1830 of 1830; 193 to 300 of 300 | onos | 2 to 4, 2 to 4 |
//	| INT 2.1 before the sink; INT-Probe, two rings and a chain | 334 of 400; 14 of 60, 177 of 870, 396 of 801 | auto | 1 to 8 |
//	| INT-path, chain and ring | 278 of 6331, 720 of 720 | int-path | 3, 277; 8, 714 |
//	| IOAM of Linux | 360 of 360 | auto | 2 and 6, 42 |
//	| Mininet-PINT | all of 4000 to 5000 | pint-mininet | by [topology](pint.md), 1 |
//	| postcards (braine) | 1305 of 1305 | postcard-braine | 3, 0 |
//
// Dialects are adopted, except prometheus-exporter and int-path in two files with too few reports, which are suggested. Sink nodes of
// GEANT, ONOS and P4-INT remove the telemetry, so that captures behind them have none.
func TestCollectCaptures(t *testing.T) {
	if *captures != "" {
		files, err := filepath.Glob(filepath.Join(*captures, "*.pcap"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no captures in %s: %v", *captures, err)
		}
		for _, file := range files {
			s, frames := collectCapture(t, file)
			fmt.Println(captureRow(file, frames, &s))
		}
		return
	}
	for file, want := range map[string]string{ // parts of recordings, some of them too short for anything to be adopted
		"decode/testdata/onos-int10-reports":                   "| 200 | 200 telemetry-report int-stack | onos adopted | 4 | 2 |",
		"decode/testdata/onos-int10-network":                   "| 120 | 73 int-md bad-width | onos suggested | 0 | 0 |",
		"decode/testdata/geant-int10-reports":                  "| 200 | 200 telemetry-report int-stack | geant adopted | 3 | 6 |",
		"decode/testdata/geant-int10-network":                  "| 100 | 91 int-md int-stack | geant adopted | 2 | 6 |",
		"decode/testdata/geant-int10-maxhop":                   "| 60 | 60 telemetry-report int-stack | geant adopted | 3 | 2 |",
		"decode/testdata/hostint05-reports":                    "| 67 | 3 telemetry-report drop, 64 telemetry-report int-stack | host-int adopted | 3 | 6 |",
		"decode/testdata/int05-in-report05":                    "| 1 | none | prometheus-exporter suggested | 0 | 0 |",
		"decode/testdata/fabric-report05":                      "| 179 | 59 telemetry-report drop, 120 telemetry-report postcard | auto | 4 | 5 |",
		"decode/testdata/postcard-reports":                     "| 100 | 100 telemetry-report bad-type | postcard-braine suggested | 0 | 0 |",
		"internal/plain/testdata/geant-int10-3sw-after-sink":   "| 8 | none | none | 0 | 0 |",
		"internal/plain/testdata/intmd20-elav-4sw-before-sink": "| 24 | 15 int-md int-stack | p4-int-elavinal suggested | 0 | 3 |",
		"internal/plain/testdata/intmd21-3sw-reports":          "| 32 | none | p4-int-laofan suggested | 0 | 0 |",
		"internal/plain/testdata/intprobe-ring5":               "| 16 | 7 int-probe probe | auto | 8 | 0 |",
		"internal/plain/testdata/onos-int10-4sw-iperf-reports": "| 24 | 24 telemetry-report postcard | onos suggested | 0 | 2 |",
		"internal/plain/testdata/pint-path12":                  "| 40 | none | pint-mininet suggested | 0 | 0 |",
		"decode/srint/testdata/int-path":                       "| 21 | none | int-path suggested | 0 | 0 |",
		"decode/ioam/testdata/ioam6-linux":                     "| 360 | 360 ioam trace | auto | 6 | 42 |",
	} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			s, frames := collectCapture(t, filepath.Join("../..", file+".pcap"))
			if got := captureRow(file, frames, &s); got != "| "+filepath.Base(file)+" "+want {
				t.Errorf("collect says\n%s, want\n%s", got, want)
			}
			for _, d := range s.Dialects {
				if d.State == "adopted" && d.Stored > 0 {
					t.Errorf("%d reports were read without the dialect", d.Stored)
				}
			}
		})
	}
}
