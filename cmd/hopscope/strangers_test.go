package main_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector/summary"
)

// other returns a recording of testdata/strangers as a file. They are made, and each stands for a trouble that people had.
func other(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "strangers", name+".pcap.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "input.pcap")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// replayed returns the summary of a replay.
func replayed(t *testing.T, args ...string) (s summary.Summary) {
	t.Helper()
	out, stderr, status := run(t, t.TempDir(), append([]string{"replay", "--format", "json"}, args...)...)
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return s
}

// seen is what a summary says, in few words.
func seen(s *summary.Summary) (list []string) {
	for _, f := range s.Flows {
		var path []string
		for _, n := range f.Path.NodeIDs {
			path = append(path, fmt.Sprint(*n))
		}
		list = append(list, fmt.Sprintf("flow %s:%d > %s:%d proto %d by %s, %d packets, %d changes",
			f.Flow.Src, f.Flow.SrcPort, f.Flow.Dst, f.Flow.DstPort, f.Flow.Proto, strings.Join(path, " "), f.Packets, f.Path.Changes))
	}
	for _, h := range s.Hops {
		text := fmt.Sprintf("hop %d:%d %d reports", h.NodeID, h.EgressIf, h.Reports)
		if h.Latency != nil {
			text += fmt.Sprintf(", latency %d to %d", h.Latency.P50, h.Latency.Max)
		}
		list = append(list, text)
	}
	for _, n := range s.Nameless {
		text := fmt.Sprintf("hop%s at position %d %d reports", n.Exporter, n.Position, n.Reports)
		if n.Queue != nil {
			text += fmt.Sprintf(", queue %d to %d", n.Queue.P50, n.Queue.Max)
		}
		list = append(list, text)
	}
	for _, d := range s.Dialects {
		list = append(list, "dialect "+d.Text)
	}
	for _, m := range s.Remarks {
		list = append(list, "remark "+m.Text)
	}
	for _, f := range s.Findings {
		list = append(list, "finding "+f.Text)
	}
	return list
}

func TestStrangers(t *testing.T) {
	inner := []string{
		"flow 2001:db8:100::1:5000 > 2001:db8:200::1:7000 proto 17 by 1 20 3, 200 packets, 0 changes",
		"flow 2001:db8:100::1:5001 > 2001:db8:200::1:7000 proto 17 by 1 21 3, 200 packets, 0 changes",
		"hop 1:2 400 reports", "hop 3:2 400 reports", "hop 20:2 200 reports", "hop 21:2 200 reports",
	}
	for _, c := range []struct {
		name, port string
		want       []string
	}{
		{"f0-int-stack-input", "", []string{
			"flow 198.51.100.9:50000 > 198.51.100.8:50001 proto 17 by 4217755253, 50 packets, 0 changes",
			"hop 4217755253:11 50 reports, latency 1455 to 1455",
			"dialect 50 reports of 192.0.2.2 carry INT that profile auto cannot read; auto-unflagged explains all of it and was adopted",
		}},
		{"ioam-ip6ip6-inner-flow-input", "", inner},
		{"ioam-ip6ip6-inner-flow-twin", "", inner},
		{"read-but-called-unreadable-input", "", []string{"flow 198.51.100.9:5000 > 198.51.100.8:6000 proto 17 by , 60 packets, 0 changes"}},
		{"hops-without-id-input", "", []string{
			"flow 2001:db8::1:1 > 2001:db8::2:2 proto 17 by , 100 packets, 0 changes",
			"hop at position 1 100 reports, queue 0 to 0", "hop at position 2 100 reports, queue 10 to 10", "hop at position 3 100 reports, queue 9087 to 9087",
			"remark 300 hops name no node: they count by their exporter and their place in the report, on no path",
		}},
		{"same-packet-on-two-links-input", "", []string{
			"flow 198.51.100.9:5000 > 198.51.100.8:6000 proto 17 by 1 2 3, 150 packets, 0 changes",
			"hop 1:0 150 reports, latency 999 to 999", "hop 2:0 150 reports, latency 999 to 999", "hop 3:0 150 reports, latency 999 to 999",
		}},
		{"stack-under-shim-type-3-input", "", []string{
			"flow 198.51.100.1:5000 > 198.51.100.2:5001 proto 17 by 1 2 3, 50 packets, 0 changes",
			"hop 3:164 50 reports, latency 919 to 951", "hop 2:136 50 reports, latency 807 to 807", "hop 1:129 50 reports, latency 695 to 695",
			"dialect 50 reports of 198.51.100.1 carry INT that profile auto cannot read; p4-int-mandaryoshi explains all of it and was adopted",
		}},
		{"domain-specific-report-input", "3933", []string{
			"remark 30 reports of 192.0.2.9 hold data that are specific to a domain, which no rule reads; decode shows them as unknown. They name no hop",
		}},
		{"zero-ingress-time-input", "", []string{
			"flow 198.51.100.9:5000 > 198.51.100.8:5001 proto 17 by 7, 400 packets, 0 changes",
			"hop 7:0 400 reports, latency 1487 to 1487",
			"remark 20 hops of 192.0.2.2 have times that were not set, or that cannot be: they give no latency",
		}},
	} {
		args := []string{other(t, c.name)}
		if c.port != "" {
			args = append(args, "--report-port", c.port)
		}
		s := replayed(t, args...)
		if got := seen(&s); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// What a rule leaves out by default leaves a trace in decode.
func TestStrangersDecoded(t *testing.T) {
	for name, want := range map[string]string{
		"f0-int-stack-input":            "50 reports of 192.0.2.2 have their flag F not set, though their packets carry INT: profile auto-unflagged reads it",
		"stack-under-shim-type-3-input": "profile p4-int-mandaryoshi reads it",
		"domain-specific-report-input":  `"unknown":"0x`,
		"ioam-ip6ip6-inner-flow-input":  `"inner_flow":{"src":"2001:db8:100::1","dst":"2001:db8:200::1","proto":17,"src_port":5000,"dst_port":7000}`,
	} {
		out, stderr, status := run(t, t.TempDir(), "decode", other(t, name), "--report-port", "32766", "--report-port", "3933")
		if status != 0 || !strings.Contains(out+stderr, want) {
			t.Errorf("%s: status %d, no %q in\n%.300s\n%s", name, status, want, out, stderr)
		}
	}
	if _, stderr, _ := run(t, t.TempDir(), "decode", other(t, "read-but-called-unreadable-input")); strings.Contains(stderr, "cannot") {
		t.Error(stderr)
	}
}
