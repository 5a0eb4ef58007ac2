package main_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const captures = "../../decode/testdata/"

// replays are captures with the settings and arguments that they are replayed with.
var replays = []struct {
	name, file string
	settings   string
	args       string
	bounded    bool // tables overflow: what is folded depends on the number of shards
}{
	{"fabric", captures + "fabric-report05.pcap", "", "--profile fabric-tna", false},
	{"geant-network", captures + "geant-int10-network.pcap", "", "--profile geant", false},
	{"geant-reports", captures + "geant-int10-reports.pcap", "", "--profile geant", false},
	{"geant-maxhop", captures + "geant-int10-maxhop.pcap", "", "--profile geant", false},
	{"onos-network", captures + "onos-int10-network.pcap", "", "--profile onos", false},
	{"onos-reports", captures + "onos-int10-reports.pcap", "", "--profile onos", false},
	{"onos-network-auto", captures + "onos-int10-network.auto.pcap", "", "", false},
	{"host-int-network", captures + "hostint05-network.pcap", "", "--profile host-int", false},
	{"host-int-reports", captures + "hostint05-reports.pcap", "", "--profile host-int", false},
	{"host-int-malformed", captures + "hostint05-reports.pcap", "", "", false},
	{"postcards", captures + "postcard-reports.pcap", "", "--profile postcard-braine", false},
	{"prometheus-exporter", captures + "int05-in-report05.pcap", "", "--profile prometheus-exporter", false},
	{"laofan", "testdata/laofan.pcap", "", "--profile p4-int-laofan", false},
	{"laofan-port", "testdata/laofan.pcap", "", "--report-port 1234", false},
	{"int-path", "../../decode/srint/testdata/int-path.pcap", "", "--profile int-path", false},
	{"int-probe", "../../decode/srint/testdata/int-probe.pcap", "", "--profile int-probe --flows 3 --hops 4", false},
	{"pint-mininet", frozen("pint-mininet.pcap.gz"), "", "--profile pint-mininet --nodes 0-127", false},
	{"pint-unknown-nodes", frozen("pint-mininet.pcap.gz"), "", "--profile pint-mininet", false},
	{"faults", frozen("faults.pcap.gz"), faultSettings, "", false},
	{"faults-small-tables", frozen("faults.pcap.gz"), smallTables, "", true},
}

// faultSettings let every kind of finding come and go within the 71 seconds of faults.pcap.gz.
const faultSettings = `window: 1s
pint: {topology: "leaf-spine:2,3", plans: [testdata/frozen/faults.plan.json]}
events: {warmup: 5, min_records: 1, history: 30, loss_ratio: 0.01, digests_strange: 2}
log: {level: error}
`

// smallTables fold what has no place: hops, busiest flows, lists of drops and path changes, exporters.
const smallTables = `window: 2s
flows: {max_hops: 8, top_flows: 3, max_path_changes: 2, max_drops: 1}
exporters: {tracking: {max_exporters: 3}}
log: {level: error}
`

// TestFrozenReplay holds the summaries of replays, as JSON and as a table. For one shard they hold to the last digit,
// and for four shards except for what shardless removes. All flows and hops are printed, so that no tie decides which
// is left out.
func TestFrozenReplay(t *testing.T) {
	for _, tt := range replays {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			summaries := func(shards int) (object, table string) {
				config := settingsFile(t, fmt.Sprintf("shards: %d\n%s", shards, tt.settings))
				args := append([]string{"replay", tt.file, "--config", config, "--flows", "1000", "--hops", "1000"}, strings.Fields(tt.args)...)
				return summaryText(t, must(t, append(args, "--format", "json")...)), summaryText(t, must(t, args...))
			}
			name := "replay/" + tt.name + ".txt"
			if strings.HasPrefix(tt.name, "faults") {
				name += ".gz"
			}
			object, table := summaries(1)
			golden(t, name, object+table)
			if tt.bounded {
				return
			}
			object4, table4 := summaries(4)
			same(t, "JSON of 4 shards", shardless(t, object4), shardless(t, object))
			same(t, "table of 4 shards", shardlessTable(table4), shardlessTable(table))
		})
	}
}

// shardless removes from a summary in JSON what depends on the number of shards. That is the order of equally busy
// flows and of equally slow hops, and the memory of digests. Quantiles of a flow over its whole life go too, because
// its sketch keeps a sample that the shard draws. So does the one dropped packet that a finding names.
func shardless(t *testing.T, text string) string {
	t.Helper()
	var s map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&s); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if digests, ok := s["digests"].(map[string]any); ok {
		delete(digests, "bytes")
	}
	line := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	list := func(key string, number func(map[string]any) string) {
		rows := s[key].([]any)
		slices.SortFunc(rows, func(a, b any) int {
			return cmp.Or(strings.Compare(number(b.(map[string]any)), number(a.(map[string]any))), strings.Compare(line(a), line(b)))
		})
	}
	for _, f := range s["flows"].([]any) {
		for _, h := range f.(map[string]any)["hops"].([]any) {
			for _, key := range []string{"latency_ns", "queue_bytes"} {
				if q, ok := h.(map[string]any)[key].(map[string]any); ok {
					delete(q, "p50")
					delete(q, "p90")
					delete(q, "p99")
				}
			}
		}
	}
	list("flows", func(f map[string]any) string { return fmt.Sprintf("%20v", f["packets"]) })
	list("hops", func(h map[string]any) string {
		q := [2]any{0, 0}
		for i, key := range []string{"latency_ns", "queue_bytes"} {
			if m, ok := h[key].(map[string]any); ok {
				q[i] = m["p99"]
			}
		}
		return fmt.Sprintf("%20v%20v", q[0], q[1])
	})
	return dropFlow(indent(t, line(s)))
}

var (
	dropText   = regexp.MustCompile(`, the last of [^"\n]*`)
	dropCell   = regexp.MustCompile(`(?m)^(event .* kind=drops .* flow=).*( text=)`) // of a Parquet row
	dropTag    = regexp.MustCompile(`(?m)^(event,instance=frozen,kind=drops.*,flow=)"[^"]*"`)
	wideSpaces = regexp.MustCompile(` {2,}`)
)

// dropFlow takes away which packet of several a finding names as the last that was dropped.
func dropFlow(text string) string {
	text = dropText.ReplaceAllString(text, ", the last of FLOW")
	text = dropCell.ReplaceAllString(text, "${1}FLOW$2")
	return dropTag.ReplaceAllString(text, `$1"FLOW"`)
}

// shardlessTable does for the table what shardless does for JSON.
func shardlessTable(table string) string {
	var lines []string
	for line := range strings.Lines(table) {
		cells := wideSpaces.Split(strings.TrimSpace(line), -1)
		if len(cells) > 2 && strings.Contains(cells[1], " > ") && !strings.Contains(line, "warning") { // a flow
			cells = cells[:3]
		}
		lines = append(lines, strings.Join(cells, "  ")+"\n")
	}
	slices.Sort(lines)
	return dropFlow(strings.Join(lines, ""))
}

// TestFrozenSeed holds that the seed is an argument, and 1 if it is not given.
func TestFrozenSeed(t *testing.T) {
	config := settingsFile(t, "shards: 1\n"+faultSettings)
	one := summaryText(t, must(t, "replay", frozen("faults.pcap.gz"), "--config", config, "--format", "json"))
	same(t, "replay with --seed 1", summaryText(t, must(t, "replay", frozen("faults.pcap.gz"), "--config", config, "--format", "json", "--seed", "1")), one)
	two := summaryText(t, must(t, "replay", frozen("faults.pcap.gz"), "--config", config, "--format", "json", "--seed", "2"))
	golden(t, "replay/faults-seed-2.txt.gz", two)
}

// TestFrozenFindings holds ids, texts and times of findings as they begin, rise and end: every state in which a store
// gets them. Four shards may only name another packet as the last that was dropped.
func TestFrozenFindings(t *testing.T) {
	events := func(shards int) string {
		return points(replayToInflux(t, frozen("faults.pcap.gz"), shards, faultSettings), "event")
	}
	one := events(1)
	golden(t, "findings.txt", one)
	same(t, "findings of 4 shards", dropFlow(events(4)), dropFlow(one))
	for _, kind := range []string{"path-change", "drops", "exporter-loss", "exporter-silence", "high-latency", "high-queue", "strange-digests", "routing-loop"} {
		if !strings.Contains(one, "event,instance=frozen,kind="+kind+",") {
			t.Errorf("no finding of the kind %s", kind)
		}
	}
}

// points returns the lines of some measurements.
func points(lines string, measurements ...string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		if name, _, _ := strings.Cut(line, ","); slices.Contains(measurements, name) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestFrozenLineProtocol holds every line that InfluxDB gets.
func TestFrozenLineProtocol(t *testing.T) {
	for _, tt := range []struct {
		name, file, settings string
		bounded              bool
	}{
		{"fabric", captures + "fabric-report05.pcap", "window: 1s\nexporters: {profile: fabric-tna}\n", false},
		{"int-probe", "../../decode/srint/testdata/int-probe.pcap", "window: 5s\n", false},
		{"geant", captures + "geant-int10-reports.pcap", "window: 10s\nexporters: {profile: geant}\n", false},
		{"pint-mininet", frozen("pint-mininet.pcap.gz"), "window: 10s\nexporters: {profile: pint-mininet}\npint: {nodes: 0-127}\n", false},
		{"faults", frozen("faults.pcap.gz"), faultSettings, false},
		{"faults-small-tables", frozen("faults.pcap.gz"), smallTables, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			one := replayToInflux(t, tt.file, 1, tt.settings)
			golden(t, "influx/"+tt.name+".txt.gz", one)
			if !tt.bounded {
				same(t, "lines of 4 shards", sortedLines(dropFlow(replayToInflux(t, tt.file, 4, tt.settings))), sortedLines(dropFlow(one)))
			}
		})
	}
}

// replayToInflux replays a capture into a recording server and returns the lines in order.
func replayToInflux(t *testing.T, file string, shards int, settings string) string {
	t.Helper()
	server := newRecorder(t)
	config := settingsFile(t, fmt.Sprintf("shards: %d\n%sinflux: {enabled: true, url: %q, spool: {enabled: false}}\n", shards, settings, server.URL))
	must(t, "replay", file, "--config", config)
	return server.lines(t)
}

// TestFrozenGap holds the result of a capture with a hole of 37 seconds. The clock of a replay shows the detectors
// three empty windows of it, and skips the others. Exporters with a history of a few windows may pause as long; their
// losses are reported.
func TestFrozenGap(t *testing.T) {
	frames := readCapture(t, frozen("faults.pcap.gz"))
	holed := append(between(frames, 0, 7*time.Second), between(frames, 44*time.Second, 48*time.Second)...)
	file := writeCapture(t, holed)
	for _, shards := range []int{1, 4} {
		for _, silence := range []int{3, 4} {
			name := fmt.Sprintf("gap-silence-after-%d.txt", silence)
			settings := fmt.Sprintf("window: 1s\nevents: {silence_after: %d, silence_severe: 30, warmup: 5, min_records: 1}\nlog: {level: error}\n", silence)
			golden(t, name, points(replayToInflux(t, file, shards, settings), "event", "exporter"))
		}
	}
}
