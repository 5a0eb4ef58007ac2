package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/collector"
)

// TestPagesOfSize holds the example and the table of docs/sizing.md against the command.
func TestPagesOfSize(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "sizing.md")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	_, settings, _ := strings.Cut(page, "```yaml\n")
	settings, _, _ = strings.Cut(settings, "```")
	file := sizedFile(t, settings)

	flags := "--reports 500k --flows 400k --hops 2000 --exporters 250 --records 5k"
	example := "```\n$ hopscope config size hopscope.yaml " + flags + " --unit 4us\n" +
		sized(t, append([]string{"config", "size", file, "--unit=4us"}, strings.Fields(flags)...)...) + "```\n"

	big := sizedFile(t, settings+"\nexporters: {tracking: {max_exporters: 100000}}\nevents: {max_hops: 65535}\n")
	text, err := os.ReadFile(big)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(big, []byte(strings.Replace(string(text), "flows: {memory_bytes: 536870912}", "flows: {memory_bytes: 8589934592, max_hops: 65535}", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	table := "| reports a second | flows | hops | exporters | cores | memory | disk | points a second |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
	for _, load := range [][4]string{{"10k", "10k", "100", "10"}, {"50k", "100k", "1000", "100"}, {"200k", "200k", "1000", "100"}, {"500k", "1M", "4000", "500"}, {"1M", "2M", "10k", "1000"}} {
		var s collector.Sizing
		if err := json.Unmarshal([]byte(sized(t, "config", "size", big, "--format=json", "--unit=4us", "--reports="+load[0], "--flows="+load[1], "--hops="+load[2], "--exporters="+strings.Replace(load[3], "k", "000", 1))), &s); err != nil {
			t.Fatal(err)
		}
		cells := map[string]string{}
		for i := range s.Parts {
			cells[s.Parts[i].Of] = s.Parts[i].Text()
		}
		if len(s.Raise) > 0 {
			t.Errorf("%v exceeds settings: %q", load, s.Raise)
		}
		table += fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |\n", load[0], load[1], load[2], load[3],
			strings.TrimSuffix(cells["processor"], " cores"), cells["memory"], cells["disk"], strings.TrimSuffix(cells["points"], " points/s"))
	}
	want := marked(t, page, "example", example)
	want = marked(t, want, "table", table)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != page {
		t.Errorf("docs/sizing.md differs from what the program says; write it with: go test ./cmd/hopscope -run TestPagesOfSize -update")
	}
}

// sizedFile writes settings to a file.
func sizedFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hopscope.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sized returns what the program prints.
func sized(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("hopscope %s: %v", strings.Join(args, " "), err)
	}
	return out.String()
}

// marked puts text between the marks of a part of a page.
func marked(t *testing.T, page, part, text string) string {
	t.Helper()
	head, rest, ok := strings.Cut(page, "<!-- "+part+" -->\n")
	_, tail, end := strings.Cut(rest, "<!-- end -->")
	if !ok || !end {
		t.Fatalf("the page has no marks of %s", part)
	}
	return head + "<!-- " + part + " -->\n" + text + "<!-- end -->" + tail
}

// TestConfigSize holds what grows with what, that limits of settings hold and are named, and that shares of a fleet are
// shares.
func TestConfigSize(t *testing.T) {
	size := func(yaml string, flags ...string) (map[string]float64, *collector.Sizing) {
		t.Helper()
		var s collector.Sizing
		if err := json.Unmarshal([]byte(sized(t, append([]string{"config", "size", sizedFile(t, yaml), "--format=json", "--unit=1us"}, flags...)...)), &s); err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, p := range s.Parts {
			values[p.Of] = p.Value
		}
		return values, &s
	}
	const settings = "shards: 2\nudp: {workers: 2}\n"
	one, s := size(settings, "--reports=100k", "--flows=100k", "--hops=1000")
	if len(s.Raise) != 0 || len(s.Unknown) == 0 {
		t.Errorf("raise %q, not included %q", s.Raise, s.Unknown)
	}
	more, _ := size(settings, "--reports=200k", "--flows=200k", "--hops=2000")
	for _, of := range []string{"processor", "memory", "points", "reports in"} {
		if more[of] <= one[of] || more[of] > 2*one[of] {
			t.Errorf("%s: %g for the load, %g for twice the load", of, one[of], more[of])
		}
	}
	if each, _ := size(settings, "--reports=200k", "--flows=200k", "--hops=1000", "--exporters=200", "--collectors=2"); each["processor"] != one["processor"] || each["memory"] != one["memory"] {
		t.Errorf("a share takes %g and %g, the same load alone %g and %g", each["processor"], each["memory"], one["processor"], one["memory"])
	}
	full, s := size(settings, "--flows=10M", "--hops=100k", "--exporters=100000", "--path=40")
	if len(s.Raise) != 5 || full["  flows"] > 512<<20 {
		t.Errorf("raise %q, flows of %g bytes", s.Raise, full["  flows"])
	}
	stores, _ := size(settings + "influx: {enabled: true}\nparquet: {enabled: true, raw: true}\njsonl: {enabled: true, path: x}\n")
	for _, of := range []string{"  influx", "influx out", "  parquet", "  jsonl", "  history"} {
		if stores[of] <= 0 || one[of] != 0 {
			t.Errorf("%s: %g with stores, %g without", of, stores[of], one[of])
		}
	}
	lines, s := size("jsonl: {enabled: true, path: \"-\"}\n")
	if lines["  jsonl"] <= 0 || slices.ContainsFunc(s.Parts, func(p collector.SizePart) bool { return p.Of == "  jsonl" && p.Unit != "cores" }) {
		t.Errorf("lines on standard output: %+v", s.Parts)
	}
	// Memory that is named holds all flows; where none does, collectors that are named do.
	for _, tt := range []struct{ flows, want string }{{"50M", " hold all"}, {"1G", " hold all"}, {"1G --path=64", "7 times as many collectors"}} {
		flags := append(strings.Fields("--flows="+tt.flows), "--exporters=1")
		yaml := "flows: {max_path_length: 64}\n"
		_, s := size(yaml, flags...)
		if len(s.Raise) != 1 || !strings.Contains(s.Raise[0], tt.want) {
			t.Errorf("%s: raise %q, want %q", tt.flows, s.Raise, tt.want)
			continue
		}
		_, hold, _ := strings.Cut(s.Raise[0], "; ")
		hold, _, _ = strings.Cut(hold, " ")
		if strings.Contains(tt.want, "collectors") {
			hold = "1099511627776"
			flags = append(flags, "--collectors="+tt.want[:1])
		}
		if _, s = size("flows: {max_path_length: 64, memory_bytes: "+hold+"}\n", flags...); len(s.Raise) != 0 {
			t.Errorf("%s: raise %q with %s", tt.flows, s.Raise, hold)
		}
	}
}
