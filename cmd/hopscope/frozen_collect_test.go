package main_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// live are the settings of collectors here: one socket, so that datagrams stay in order, and tables that are small.
const live = `udp: {listen: ["127.0.0.1:0"], workers: 1}
web: {listen: "127.0.0.1:0"}
flows: {memory_bytes: 8388608}
log: {format: json}
`

// deadStore is an address without a server; retries are quick.
const deadStore = `url: "http://127.0.0.1:1", queue: {retry_min: 10ms, retry_max: 20ms}`

// startFed starts a collector of windows of a second, which receives frames with so many reports in one of them. Its
// page is then the same each time, except for the times. On a machine that was too busy for that, it tries again.
func startFed(t *testing.T, settings string, frames []frame, reports uint64) *collector {
	t.Helper()
	for range 20 {
		c := start(t, settingsFile(t, settings))
		c.until("the beginning of a second, and so of a window", func() bool { return time.Now().Nanosecond() < 2e8 })
		c.send(frames)
		full := 0
		// tooBusy reports whether the machine was: reports found no room, or were read behind the end of their window.
		tooBusy := func() bool {
			n := c.metric("hopscope_window_misplaced_reports_total")
			for _, stage := range []string{"kernel", "ring", "shard-queue"} {
				n += c.metric(fmt.Sprintf(`hopscope_ledger_dropped_total{sink="influx",stage=%q}`, stage))
			}
			return n > 0
		}
		c.until("the windows with all reports", func() bool {
			total := uint64(0)
			full = 0
			for _, n := range c.windows() {
				if total += n; n > 0 {
					full++
				}
			}
			return total == reports || tooBusy()
		})
		if full == 1 && !tooBusy() {
			return c
		}
		c.stop()
	}
	t.Fatal("no try brought all reports into one window")
	return nil
}

var apiTimes = regexp.MustCompile(`"(now_ms|start_ms|updated_ms|last_ms|end_ms|at_ms|changed_ms|start|end|reports_per_second|version|idle)":("[^"]*"|[\w.]+)`)

// windowed is a list with one entry a window: windows without reports come and go around the full one.
var windowed = regexp.MustCompile(`"(windows|reports|values|trend|count|latency_max|latency_p50|latency_p90|latency_p99|queue_max|queue_p50|queue_p99|tx_utilization_max|latency_p50_ns|latency_p99_ns|queue_p99_bytes|packets)":\[([\d.,null-]*)\]`)

// What the history holds depends on the minutes that ended while the collector ran.
var keptHistory = regexp.MustCompile(`"oldest_ms":\d+,"newest_ms":\d+,"bytes":\d+`)

var windowCount = regexp.MustCompile(`"windows":\d+`)

// apiText returns an answer without moments, rates, ports and the empty windows around the full one.
func apiText(t *testing.T, body string) string {
	t.Helper()
	body = anyPort.ReplaceAllString(body, "127.0.0.1:PORT")
	body = apiTimes.ReplaceAllString(body, `"$1":"~"`)
	body = keptHistory.ReplaceAllString(body, `"oldest_ms":"~","newest_ms":"~","bytes":"~"`)
	body = windowCount.ReplaceAllString(body, `"windows":"~"`)
	body = pointLedger.ReplaceAllString(body, "") // every window has points
	body = windowed.ReplaceAllStringFunc(body, func(list string) string {
		m := windowed.FindStringSubmatch(list)
		var values []string
		for _, v := range strings.Split(m[2], ",") {
			if v != "null" && v != "0" && v != "" && m[1] != "windows" {
				values = append(values, v)
			}
		}
		return fmt.Sprintf("%q:[%s]", m[1], strings.Join(values, ","))
	})
	return indent(t, body)
}

// TestFrozenPage holds the answers of a collector that got a fixed set of datagrams and stores their contents. They are
// the page's API, errors for wrong questions, /metrics, health, and the event stream.
func TestFrozenPage(t *testing.T) {
	frames := between(readCapture(t, frozen("faults.pcap.gz")), 20500*time.Millisecond, 27*time.Second)
	const reports = 271
	for _, shards := range []int{1, 4} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			t.Parallel()
			c := startFed(t, fmt.Sprintf(`window: 1s
shards: %d
events: {silence_after: 100000, silence_severe: 100000, end_after: 1000, path_stable: 1000}
influx: {enabled: true, url: %q, spool: {dir: spool/influx}}
parquet: {enabled: true, raw: true, dir: series, spool: {dir: spool/parquet}}
`, shards, newRecorder(t).URL)+live, frames, reports)
			c.until("the stores", func() bool {
				return c.metric(`hopscope_ledger_stored_total{sink="influx"}`) == reports &&
					c.metric(`hopscope_ledger_in_flight{sink="parquet",stage="spool"}`) == reports &&
					c.metric(`hopscope_sink_write_duration_seconds_count{ok="true",sink="parquet"}`) > 0
			})
			var b strings.Builder
			for _, path := range []string{
				"/api/status", "/api/windows", "/api/windows?metric=queue_max", "/api/windows?metric=nonsense", "/api/windows?since=x",
				"/api/hops", "/api/hops?sort=queue_p99&limit=2&offset=1", "/api/hops?sort=nonsense", "/api/hops?limit=0",
				"/api/hop?node=0&egress_if=1", "/api/hop?node=77&egress_if=1", "/api/hop",
				"/api/flows", "/api/flows?q=9000&limit=1", "/api/flow?key=10.0.1.2:46344+%3E+10.0.0.2:9000+tcp", "/api/flow?key=nonsense", "/api/flow",
				"/api/findings", "/api/exporters", "/api/exporters?limit=1&offset=1", "/api/ledger", "/api/nonsense", "/healthz", "/readyz",
			} {
				status, body := c.get(path)
				fmt.Fprintf(&b, "GET %s: %d\n", path, status)
				if strings.HasPrefix(body, "{") {
					body = apiText(t, body)
				}
				b.WriteString(body + "\n")
			}
			for _, args := range [][]string{{"top"}, {"flow"}, {"flow", "10.0.1.2:46344 > 10.0.0.2:9000 tcp"}, {"flow", "nonsense"}} {
				stdout, stderr, status := run(t, "", append(args, "--url", c.url)...)
				fmt.Fprintf(&b, "$ hopscope %s\n%s%sexit status %d\n\n", strings.Join(args, " "), clockTime.ReplaceAllString(stdout, "TIME"), stderr, status)
			}
			golden(t, "page/api.txt.gz", anyPort.ReplaceAllString(b.String(), "127.0.0.1:PORT"))
			_, metrics := c.get("/metrics")
			golden(t, fmt.Sprintf("page/metrics-%d.txt", shards), metricsText(metrics))
			golden(t, "page/events.txt", eventsText(t, c))
		})
	}
}

var (
	anyPort = regexp.MustCompile(`127\.0\.0\.1:[1-9]\d{3,}`)
	// How many points stand for a report, and what the last write said, is a matter of moments, too.
	pointsLost = regexp.MustCompile(`\d+ points were lost, because .*`)
	clockTime  = regexp.MustCompile(`\d\d:\d\d:\d\d`)
	// What grows with time: every window has points of exporters, also of those that sent nothing.
	growing = regexp.MustCompile(`(?m)^(hopscope_(?:sink_(?:write_duration_seconds|retries|points|series_points|spool|queue_bytes)|ledger_points_(?:made|stored|in_flight)|corrections_bytes|history_\w+)\S*) .*$`)
	eventID = regexp.MustCompile(`^[A-Z2-7]{10}-\d+$`)
)

// metricsText returns the metrics of hopscope, and of the Go runtime and the process that there are some.
func metricsText(metrics string) string {
	var b strings.Builder
	others := map[string]bool{}
	for line := range strings.Lines(metrics) {
		name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE ")
		if strings.HasPrefix(name, "hopscope_") {
			b.WriteString(line)
			continue
		}
		family, _, _ := strings.Cut(name, "_")
		others[family] = true
	}
	return growing.ReplaceAllString(b.String(), "$1 ~") + fmt.Sprintf("also %v\n", slices.Sorted(maps.Keys(others)))
}

// eventsText returns the event stream for three clients. One is new, one had its last event from another process, and
// one missed everything. It ends with the end of the stream, at which the collector ends too.
func eventsText(t *testing.T, c *collector) string {
	t.Helper()
	hello, id := newEvents(t, c, "").until("hello")
	epoch, _, _ := strings.Cut(id, "-")
	reset, _ := newEvents(t, c, "AAAAAAAAAA-1").until("reset")
	stream := newEvents(t, c, epoch+"-0")
	missed, _ := stream.until("resumed")
	says := func(kind string) bool {
		return slices.ContainsFunc(missed, func(e string) bool { return strings.HasPrefix(e, kind+" ") })
	}
	for end := time.Now().Add(patience); !(says("window") && says("ledger")) && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		stream = newEvents(t, c, epoch+"-0") // what is published settles for a moment first
		missed, _ = stream.until("resumed")
	}
	if status := c.stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	bye, _ := stream.until("bye")
	return strings.Join(append(append(append(hello, reset...), missed...), bye[len(bye)-1]), "")
}

// events reads an event stream.
type events struct {
	t    *testing.T
	scan *bufio.Scanner
}

func newEvents(t *testing.T, c *collector, last string) *events {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/api/events?last_event_id="+last, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Errorf("events: %s, %s", res.Status, got)
	}
	return &events{t, bufio.NewScanner(res.Body)}
}

// until returns the events up to the next of a kind, and its id. Numbers in states are left out, which change by the second.
func (e *events) until(end string) (list []string, id string) {
	e.t.Helper()
	kind := ""
	for id = ""; e.scan.Scan(); {
		key, value, _ := strings.Cut(e.scan.Text(), ": ")
		switch key {
		case "id":
			if id = value; !eventID.MatchString(id) {
				e.t.Errorf("event with the id %q", id)
			}
		case "event":
			kind = value
		case "data":
			value = apiTimes.ReplaceAllString(value, `"$1":"~"`)
			if kind == "window" || kind == "ledger" {
				value = anyNumber.ReplaceAllString(changing.ReplaceAllString(value, ""), ":N")
			}
			list = append(list, fmt.Sprintf("%s %s, with an id: %v\n", kind, value, id != ""))
			if kind == end {
				slices.SortStableFunc(list[:len(list)-1], func(a, b string) int { return strings.Compare(a, b) })
				return list, id
			}
			id = ""
		}
	}
	e.t.Fatalf("the event stream ended before %q: %v, %v", end, list, e.scan.Err())
	return nil, ""
}

var anyNumber = regexp.MustCompile(`:\d+`)

// changing is what a ledger has from a moment on: series that have had a point, and problems while the program starts and ends.
var changing = regexp.MustCompile(`"(?:collector|event|exporter|flow|hop|path)":\{[^}]*\},?|,"problems":\[[^\]]*\]`)

// TestFrozenSpool lets the program drain spools that an earlier one left: of InfluxDB after SIGTERM while no server answered, of
// Parquet after SIGKILL. What drains is exact, and the next run finds nothing. Windows are longer than the run: each that
// ends adds points to the ledger.
func TestFrozenSpool(t *testing.T) {
	t.Parallel()
	server := newRecorder(t)
	settings := settingsFile(t, fmt.Sprintf(`window: 1h
influx: {enabled: true, url: %q, spool: {dir: spool/influx}}
parquet: {enabled: true, dir: series, rotate_interval: 1h, spool: {dir: spool/parquet}}
`, server.URL)+live)
	dir := filepath.Dir(settings)
	if err := os.CopyFS(filepath.Join(dir, "spool"), os.DirFS(frozen("spool"))); err != nil {
		t.Fatal(err)
	}
	c := start(t, settings)
	c.until("the spool of InfluxDB", func() bool { return c.metric(`hopscope_ledger_in_flight{sink="influx",stage="spool"}`) == 0 })
	status := c.stop()
	text := fmt.Sprintf("%sexit status %d\n%s", anyPort.ReplaceAllString(c.logText(), "127.0.0.1:PORT"), status, ledgerText(t, c.out.String()))
	golden(t, "spool.txt", text)
	golden(t, "spool-lines.txt.gz", server.lines(t))
	golden(t, "spool-rows.txt.gz", parquetText(t, filepath.Join(dir, "series")))

	written := server.lines(t)
	c = start(t, settings)
	for _, sink := range []string{"influx", "parquet"} {
		if n := c.metric(fmt.Sprintf(`hopscope_ledger_in_flight{sink=%q,stage="spool"}`, sink)); n != 0 {
			t.Errorf("the spool of %s still has %v reports", sink, n)
		}
	}
	c.stop()
	same(t, "what is written after everything has drained", server.lines(t), written)
	if log := c.logText(); strings.Contains(log, "left windows in the spool") {
		t.Errorf("the spool was not empty:\n%s", log)
	}
}

// ledgerText returns the ledger of a summary.
func ledgerText(t *testing.T, summary string) string {
	t.Helper()
	_, ledger, ok := strings.Cut(summary, `"loss_ledger":`)
	if !ok {
		t.Fatalf("no ledger in %s", summary)
	}
	ledger, _, _ = strings.Cut(ledger, `,"seconds"`)
	ledger = jsonSince.ReplaceAllString(ledger, `"since":0`)
	return indent(t, ledger)
}

// pointLedger is the ledger in points.
var pointLedger = regexp.MustCompile(`,"points":\{"made".*?"series":\{(?:"\w+":\{[^}]*\},?)*\}\}`)

// TestFrozenShutdown holds where reports are before and after SIGTERM, with stores that answer or do not. SIGTERM comes
// while the window is open, or where asked for after its end.
func TestFrozenShutdown(t *testing.T) {
	frames := between(readCapture(t, frozen("faults.pcap.gz")), 0, 3*time.Second)
	foreign := readCapture(t, captures+"hostint05-reports.pcap")[:5] // malformed without their profile
	for _, tt := range []struct {
		name, settings string
		stage          string // that reports of the first sink are at before SIGTERM
	}{
		{"no-store", "window: 1h\n", "window"},
		{"up", "window: 1h\ninflux: {enabled: true, url: UP, spool: {enabled: false}}\n", "window"},
		{"up-spool", "window: 1h\ninflux: {enabled: true, url: UP, spool: {dir: spool}}\n", "window"},
		{"down-spool", "window: 1h\ninflux: {enabled: true, " + deadStore + ", spool: {dir: spool}}\n", "window"},
		{"down", "window: 1h\ndrain_timeout: 300ms\ninflux: {enabled: true, " + deadStore + ", spool: {enabled: false}}\n", "window"},
		{"down-spool-later", "window: 1s\ninflux: {enabled: true, " + deadStore + ", spool: {dir: spool}}\n", "spool"},
		{"down-later", "window: 1s\ndrain_timeout: 300ms\ninflux: {enabled: true, " + deadStore + ", spool: {enabled: false}}\n", "sink-queue"},
		{"parquet", "window: 1h\nparquet: {enabled: true, raw: true, dir: series, spool: {dir: spool}}\n", "window"},
		{"both", "window: 1h\ninflux: {enabled: true, " + deadStore + ", spool: {dir: spool/influx}}\nparquet: {enabled: true, dir: series, spool: {dir: spool/parquet}}\n", "window"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, settingsFile(t, strings.ReplaceAll(tt.settings, "UP", newRecorder(t).URL)+live))
			c.send(append(frames[:len(frames):len(frames)], foreign...))
			var before struct {
				Balances []struct {
					Sink     string
					Received int64
					InFlight map[string]int64 `json:"in_flight"`
				}
			}
			c.until("reports at "+tt.stage, func() bool {
				c.json("/api/ledger", &before)
				first := before.Balances[0]
				return first.InFlight[tt.stage] == first.Received-int64(len(foreign))
			})
			status := c.stop()
			// Whether a write failed before the window's end was logged is a matter of moments.
			log := anyPort.ReplaceAllString(c.logText("cannot write, trying again"), "127.0.0.1:PORT")
			log = pointsLost.ReplaceAllString(log, "N points were lost, because REASON")
			summary := c.out.String()
			if strings.HasSuffix(tt.name, "-later") { // the number of windows, which all have points, is a matter of moments, too
				summary = pointLedger.ReplaceAllString(summary, "")
			}
			golden(t, "shutdown/"+tt.name+".txt", fmt.Sprintf("before SIGTERM: %+v\n%sexit status %d\n%s", before.Balances, log, status, ledgerText(t, summary)))
		})
	}
}

// TestFrozenReload holds the effects of SIGHUP, and the log lines about them.
func TestFrozenReload(t *testing.T) {
	t.Parallel()
	text := "instance: frozen\nwindow: 500ms\nshards: 2\n" + live
	settings := settingsFile(t, text)
	write := func(text string) {
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hostInt := readCapture(t, captures+"hostint05-reports.pcap")[:10]
	drops := between(readCapture(t, frozen("faults.pcap.gz")), 26*time.Second, 30*time.Second)
	c := start(t, settings)
	hangup := func() {
		if err := c.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	var found struct {
		Open, Ended []struct{ Kind, Severity string }
	}
	severities := func() (list []string) {
		c.json("/api/findings", &found)
		for _, f := range append(found.Open, found.Ended...) {
			if f.Kind == "drops" {
				list = append(list, f.Severity)
			}
		}
		return list
	}
	c.send(hostInt)
	const malformed, stacks = `hopscope_decode_errors_total{format="telemetry-report",reason="bad-type"}`, `hopscope_decode_reports_total{format="telemetry-report",kind="int-stack"}`
	c.until("10 malformed reports", func() bool { return c.metric(malformed) == 10 })
	c.send(drops)
	c.until("a finding", func() bool { return len(severities()) > 0 })
	before := severities()

	write(strings.Replace(text, "500ms", "2s", 1) + "exporters: {profiles: [{prefix: 127.0.0.0/16, profile: host-int}], tracking: {max_gap: 4096}}\nevents: {drops_severe: 1, forget_after: 7}\ninflux: {token_env: X}\n")
	hangup()
	c.wait("settings reloaded", 1)
	c.nextWindow() // the detectors take their thresholds between two windows
	c.nextWindow()
	good := c.metric(stacks)
	c.send(hostInt)
	c.until("10 good reports", func() bool { return c.metric(stacks) == good+10 })
	if n := c.metric(malformed); n != 10 {
		t.Errorf("%v malformed reports with the profile, want the 10 of before", n)
	}
	c.send(drops)
	c.until("a critical finding", func() bool { return slices.Contains(severities(), "critical") })

	write("window: 3\nnope: 1\n")
	hangup()
	c.wait("settings not reloaded", 1)
	write(strings.Replace(text, "shards: 2", "shards: 1", 1))
	hangup()
	c.wait("settings reloaded", 2)
	c.wait("changed settings that need a restart", 2)
	if slices.Contains(before, "critical") {
		t.Errorf("drops were %v before the thresholds changed", before)
	}
	status := c.stop()
	log := anyPort.ReplaceAllString(c.logText("finding", "finding ended", "more findings", "reports cannot be read", "reports may be copies"), "127.0.0.1:PORT")
	golden(t, "reload.txt", fmt.Sprintf("%sexit status %d\n", temporaryPath.ReplaceAllString(log, "TMP/$1"), status))
}

// TestFrozenLiveGap holds that a live collector does not skip empty windows, unlike the clock of a replay. Every window
// has a point of every exporter.
func TestFrozenLiveGap(t *testing.T) {
	t.Parallel()
	server := newRecorder(t)
	c := start(t, settingsFile(t, fmt.Sprintf("window: 200ms\ninflux: {enabled: true, url: %q, spool: {enabled: false}}\n", server.URL)+live))
	c.send(between(readCapture(t, frozen("faults.pcap.gz")), 0, time.Second))
	for range 8 {
		c.nextWindow()
	}
	c.stop()
	empty := 0
	for line := range strings.Lines(points(server.lines(t), "exporter")) {
		if strings.HasPrefix(line, "exporter,address=127.16.0.5,") && strings.Contains(line, " reports=0i,") {
			empty++
		}
	}
	if empty < 6 {
		t.Errorf("%d empty windows have a point, want more than the three that a replay shows", empty)
	}
}
