package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var subcommands = regexp.MustCompile(`(?m)^  ([a-z]\S*) +\S`)

// TestFrozenHelp holds the help of every command, which it finds in the help of the command above.
func TestFrozenHelp(t *testing.T) {
	var b strings.Builder
	var walk func(args []string)
	walk = func(args []string) {
		text := must(t, append(args, "--help")...)
		fmt.Fprintf(&b, "$ hopscope %s\n%s\n", strings.Join(append(args, "--help"), " "), text)
		_, list, ok := strings.Cut(text, "\nAvailable Commands:\n")
		if !ok {
			return
		}
		list, _, _ = strings.Cut(list, "\n\n")
		for _, m := range subcommands.FindAllStringSubmatch(list, -1) {
			walk(append(args[:len(args):len(args)], m[1]))
		}
	}
	walk(nil)
	golden(t, "help.txt", b.String())
}

// TestFrozenSettings holds the printed settings, and the messages about wrong ones.
func TestFrozenSettings(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good.yaml": `window: 2s
shards: 3
exporters:
  profile: onos
  profiles:
    - {prefix: 10.0.0.0/8, profile: geant}
    - {prefix: 2001:db8::/32, profile: fabric-tna}
udp: {listen: ["127.0.0.1:7000", "[::1]:7001"], steering: spread, allow_sources: [192.0.2.0/24]}
pint:
  nodes: 0-127,4096
  edges: [{prefix: 10.1.0.0/16, nodes: "14,15"}]
influx: {enabled: true, url: "https://influx.example/x", token_env: TOKEN, queue: {retry_min: 20ms}, spool: {max_bytes: 1000000}}
parquet: {enabled: true, raw: true, dir: /var/lib/hopscope/series}
web: {listen: ""}
log: {level: debug, format: json}
`,
		"bad.yaml": `window: 3
shards: 900
exporters: {profile: klingon, profiles: [{prefix: 10.0.0.0/99, profile: geant}, {prefix: 10.0.0.0/8, profile: x}]}
udp: {listen: [nowhere], workers: 900, steering: chance, nap: 7s}
flows: {memory_bytes: 1, top_flows: -1}
pint: {nodes: 9-1, topology: "fat-tree:3", routing: guess, confidence: 2, edges: [{prefix: x, nodes: ""}], plans: [nowhere.json]}
events: {threshold: 1, drops_severe: 0}
influx: {enabled: true, url: "ftp://x", token_env: A, token_file: b, cert_file: c, spool: {segment_bytes: 1, max_bytes: 65536}}
parquet: {enabled: true, dir: "", rotate_interval: 2h}
web: {listen: "0.0.0.0:80", tls_cert_file: x}
log: {level: loud}
nope: 1
`,
		"syntax.yaml": "window: 1s\n  shards: [\n",
		"empty.yaml":  "",
		"twice.yaml":  "window: 1s\nwindow: 2s\n",
		"type.yaml":   "udp: 7\nflows: [1]\nshards: many\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	for _, args := range []string{
		"config print", "config print good.yaml", "config check good.yaml", "config check bad.yaml", "config check syntax.yaml", "config check empty.yaml",
		"config check twice.yaml", "config check type.yaml", "config check nowhere.yaml", "config print bad.yaml", "collect --config bad.yaml",
	} {
		stdout, stderr, status := run(t, dir, strings.Fields(args)...)
		fmt.Fprintf(&b, "$ hopscope %s\n%s%sexit status %d\n\n", args, stdout, stderr, status)
	}
	golden(t, "settings.txt", memoryOfMachine.ReplaceAllString(b.String(), "memory: N MiB at most"))

	stdout := must(t, "config", "print")
	second, _, _ := run(t, dir, "config", "print", settingsFile(t, stdout))
	same(t, "config print of its own output", second, stdout)
}

// TestFrozenUsage holds exit statuses and standard error: 64 for a wrong question, 1 for a failure.
func TestFrozenUsage(t *testing.T) {
	dir := t.TempDir()
	fabric, err := os.ReadFile(captures + "fabric-report05.pcap")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"cut.pcap": fabric[:2000], "good.pcap": fabric, "text.pcap": []byte("this is no capture\n"), "empty.pcap": nil,
		"bad.yaml":   []byte("window: 3\nnope: 1\n"),
		"busy.yaml":  []byte("udp: {listen: [\"192.0.2.1:7\"]}\n"),
		"token.yaml": []byte("influx: {enabled: true, token_file: nowhere.token}\n"),
		"plan.yaml":  []byte("pint: {plans: [nowhere.json]}\n"),
		"topo.yaml":  []byte("pint: {topology: nowhere.graphml}\n"),
		"file.yaml":  []byte("parquet: {enabled: true, dir: good.pcap/x}\n"),
		"spool.yaml": []byte("influx: {enabled: true, spool: {dir: good.pcap/x}}\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	for _, args := range []string{
		"nonsense", "--nonsense", "collect extra", "collect --format xml", "collect --config nowhere.yaml", "collect --config bad.yaml",
		"collect --config busy.yaml", "collect --config token.yaml", "collect --config plan.yaml", "collect --config topo.yaml",
		"replay", "replay a b", "replay nowhere.pcap", "replay text.pcap", "replay empty.pcap", "replay cut.pcap --profile fabric-tna --flows 0 --hops 0",
		"replay good.pcap --nonsense", "replay good.pcap --profile klingon", "replay good.pcap --format xml", "replay good.pcap --flows -1",
		"replay good.pcap --speed -1", "replay good.pcap --nodes 9-1", "replay good.pcap --nodes x", "replay good.pcap --topology fat-tree:3",
		"replay good.pcap --topology nowhere", "replay good.pcap --nodes 0-3 --topology fat-tree:4", "replay good.pcap --report-port 70000",
		"replay good.pcap --report-port x", "replay good.pcap --config bad.yaml", "replay good.pcap --config nowhere.yaml",
		"replay good.pcap --config token.yaml", "replay good.pcap --config file.yaml", "replay good.pcap --config spool.yaml",
		"decode", "decode nowhere.pcap", "decode text.pcap", "decode good.pcap --profile klingon", "decode good.pcap --report-port 70000",
		"config nonsense", "config check", "config print a b",
		"top --url ftp://x", "top --url http://127.0.0.1:1", "top --format xml", "top extra", "top --token-file nowhere --url http://127.0.0.1:1",
		"flow --url http://127.0.0.1:1", "flow a b", "flow 10.0.0.1:1 --url nonsense",
		"selftest --rate -1", "selftest --flows 0", "selftest --format xml", "demo --listen 192.0.2.1:80 --duration 1ms", "demo --format xml",
		"plan", "plan nonsense", "plan queries", "plan queries nowhere.yaml", "plan cover", "plan cover --topology nowhere", "plan cover --topology fat-tree:3",
		"plan cover --topology fat-tree:4 --method magic", "plan orchestrate", "plan attention", "plan delivery", "bench nonsense", "bench pipeline --flows 0",
	} {
		stdout, stderr, status := run(t, dir, strings.Fields(args)...)
		fmt.Fprintf(&b, "$ hopscope %s\n", args)
		for _, text := range []string{firstLines(stdout, 3), firstLines(stderr, 4)} {
			b.WriteString(tableSeconds.ReplaceAllString(text, "$1 in SECONDS (RATE/s)"))
		}
		fmt.Fprintf(&b, "exit status %d\n\n", status)
	}
	golden(t, "usage.txt", temporaryPath.ReplaceAllString(b.String(), "TMP/$1"))
}

// firstLines returns the first n lines of text.
func firstLines(text string, n int) string {
	lines := strings.SplitAfterN(text, "\n", n+1)
	if len(lines) > n {
		lines[n] = ""
	}
	return strings.Join(lines, "")
}

// memoryOfMachine follows from the number of CPUs where the settings leave that open.
var memoryOfMachine = regexp.MustCompile(`memory: \d+ MiB at most.*`)
