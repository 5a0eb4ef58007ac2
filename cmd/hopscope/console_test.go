package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/inference/window"
	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

// consoleTest is a fleet of which only the records are there, and consoles that read them.
type consoleTest struct {
	t      *testing.T
	broker *servertest.Broker
	client *brokers.Client
	slicer window.Slicer
	codec  *fleet.Codec
	first  int64 // label of window 0
}

// learning says that the detectors know all hops of the fleet from window 4 on, but those of nodes 2 and 4.
func (c *consoleTest) learning(i int, k inference.HopKey) bool { return i < 4 || k.Node%2 == 0 }

const (
	testSlices = 3
	testWindow = 2 * time.Second
)

func (c *consoleTest) settings() string {
	return writeFile(c.t, fmt.Sprintf("kafka: {brokers: [%q], prefix: %q, timeout: 2s}\nweb: {listen: \"127.0.0.1:0\"}\nlog: {format: json}\n", c.broker.Addr, c.broker.Prefix))
}

// runningConsole is a console as its own process.
type runningConsole struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	mu   sync.Mutex
	said strings.Builder
	done chan struct{}
}

func (c *consoleTest) start() *runningConsole {
	c.t.Helper()
	r := &runningConsole{t: c.t, cmd: program("console", "--config", c.settings()), done: make(chan struct{})}
	out, err := r.cmd.StderrPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if r.cmd.ProcessState == nil {
			_ = r.cmd.Process.Kill()
			_ = r.cmd.Wait()
		}
	})
	found := make(chan string, 1)
	go func() {
		defer close(r.done)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			r.mu.Lock()
			r.said.WriteString(lines.Text() + "\n")
			r.mu.Unlock()
			var line struct{ URL string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.URL != "" {
				found <- line.URL
			}
		}
	}()
	select {
	case r.url = <-found:
	case <-r.done:
		c.t.Fatalf("the console ended:\n%s", r.log())
	}
	return r
}

func (r *runningConsole) log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said.String()
}

func (r *runningConsole) get(path string) (int, string) {
	r.t.Helper()
	res, err := http.Get(strings.TrimSuffix(r.url, "/") + path)
	if err != nil {
		r.t.Fatalf("%v\n%s", err, r.log())
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func (r *runningConsole) json(path string, v any) {
	r.t.Helper()
	status, body := r.get(path)
	if status != http.StatusOK {
		r.t.Fatalf("GET %s: %d %s", path, status, body)
	}
	if err := json.Unmarshal([]byte(body), v); err != nil {
		r.t.Fatalf("GET %s: %v\n%s", path, err, body)
	}
}

// until waits for what holds sooner or later.
func (r *runningConsole) until(what string, holds func() bool) {
	r.t.Helper()
	if !testkit.Await(holds) {
		_, status := r.get("/api/status")
		r.t.Fatalf("waiting for %s\n%s\n%s", what, status, r.log())
	}
}

func (r *runningConsole) metric(name string) float64 {
	r.t.Helper()
	_, body := r.get("/metrics")
	for line := range strings.Lines(body) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			var n float64
			if _, err := fmt.Sscan(v, &n); err != nil {
				r.t.Fatal(err)
			}
			return n
		}
	}
	r.t.Fatalf("no metric %s in\n%s", name, body)
	return 0
}

type windowsAnswer struct {
	Windows  []int64
	Reports  []uint64
	Missing  map[string][]string
	Replaced int
}

func (r *runningConsole) windows() (w windowsAnswer) {
	r.t.Helper()
	r.json("/api/windows?metric=count", &w)
	return w
}

// createTopics makes the two topics that the page needs.
func (c *consoleTest) createTopics() {
	c.t.Helper()
	topics := []kafka.TopicConfig{
		{Topic: c.broker.Prefix + brokers.Series, NumPartitions: 1, ReplicationFactor: 1},
		{Topic: c.broker.Prefix + brokers.Roster, NumPartitions: 1, ReplicationFactor: 1, ConfigEntries: []kafka.ConfigEntry{{ConfigName: "cleanup.policy", ConfigValue: "compact"}}},
	}
	var err error
	if !testkit.Await(func() bool {
		var res *kafka.CreateTopicsResponse
		res, err = c.client.CreateTopics(c.t.Context(), &kafka.CreateTopicsRequest{Topics: topics})
		if err == nil {
			for _, e := range res.Errors {
				if e != nil && !errors.Is(e, kafka.TopicAlreadyExists) {
					err = e
				}
			}
		}
		return err == nil
	}) {
		c.t.Fatal(err)
	}
}

// produce writes a record to the series.
func (c *consoleTest) produce(head, value []byte) {
	c.t.Helper()
	c.broker.Write(c.broker.Prefix+brokers.Series, 0, servertest.Message{Value: value, Headers: []kafka.Header{{Key: fleet.HeaderKey, Value: head}}})
}

func (c *consoleTest) out(o fleet.Out) { c.t.Helper(); c.produce(o.Head.Append(nil), o.Value) }

// emit writes a record to the roster.
func (c *consoleTest) emit(key string, value []byte) {
	c.t.Helper()
	table := c.client.NewTable(c.client.Topic(brokers.Roster), rosterBounds)
	var err error
	if !testkit.Await(func() bool {
		_, err = table.Put(c.t.Context(), key, value)
		return err == nil
	}) {
		c.t.Fatal(err)
	}
}

func (c *consoleTest) label(i int) int64 { return c.first + int64(i)*int64(testWindow) }

var testFlow = decode.FlowKey{
	Src: decode.AddrFrom4([]byte{10, 0, 0, 1}), Dst: decode.AddrFrom4([]byte{10, 0, 0, 2}), SrcPort: 80, DstPort: 53, Proto: 17, IPVersion: 4,
}

// partial is what the collectors of the fleet saw of window i: 5 hops that n reports passed each.
func (c *consoleTest) partial(i int, n uint64) *window.Partial {
	p := &window.Partial{}
	p.Span(c.label(i-1), c.label(i))
	p.Reports, p.FlowCount = n, 1
	f := window.FlowPart{Key: testFlow, Packets: n, Last: c.label(i) - 1}
	for node := range uint32(5) {
		k := inference.HopKey{Node: node + 1, EgressIf: 2}
		h := p.Hop(k)
		for range n {
			h.Latency.AddValue(uint64(1000 * (node + 1)))
		}
		f.Path = append(f.Path, k)
		s := window.HopSketch{HopKey: k}
		s.Latency.AddValue(uint64(1000 * (node + 1)))
		f.Hops = append(f.Hops, s)
	}
	p.AddFlow(&f)
	p.AddLoss(&inference.FlowLoss{Flow: testFlow, Packets: n, Path: f.Path})
	p.AddDeviation(&inference.Deviation{Flow: testFlow, Ingress: 1, Digests: 9, Errors: []inference.MapError{{Kind: inference.Foreign, A: 1, B: 2, Node: 99}}})
	return p
}

// slice makes the record of one slice of a window.
func (c *consoleTest) slice(i, slice int, n, revision uint64, missing ...string) fleet.Out {
	c.t.Helper()
	var parts []*window.Partial
	for range testSlices {
		parts = append(parts, &window.Partial{})
	}
	c.partial(i, n).Split(&c.slicer, parts)
	out, err := fleet.EncodeSlice(nil, c.codec, "store-1", slice, &fleet.Merged{
		Start: c.label(i - 1), End: c.label(i), Revision: revision, Partial: parts[slice], Missing: missing, Sources: []fleet.Source{{From: "a", Boot: 1, Seq: uint64(i + 1)}},
	}, 1<<20)
	if err != nil || len(out) != 1 {
		c.t.Fatal(len(out), err)
	}
	return out[0]
}

// window writes all slices of window i, and its document.
func (c *consoleTest) window(i int, n uint64, findings []inference.Finding, missing ...string) {
	c.t.Helper()
	for slice := range testSlices {
		c.out(c.slice(i, slice, n, 0, missing...))
	}
	w := c.partial(i, n).Window(window.Limits{Flows: 10})
	for k := range w.Hops {
		w.Hops[k].Learning = c.learning(i, w.Hops[k].HopKey)
	}
	whole, err := fleet.EncodeWhole(c.codec, "store-1", fleet.NewDocument("backbone", &fleet.Assembled{Start: c.label(i - 1), End: c.label(i), Missing: missing}, &w, findings))
	if err != nil {
		c.t.Fatal(err)
	}
	c.out(whole)
}

// TestConsole follows a fleet from before its topics are made, on a real broker that goes away and comes back.
func TestConsole(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	broker := servertest.StartBroker(t, servertest.BrokerOptions{})
	client, err := brokers.Config{Brokers: []string{broker.Addr}, Prefix: broker.Prefix, Timeout: 5 * time.Second}.Dial("test")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := &consoleTest{t: t, broker: broker, client: client, slicer: window.NewSlicer(1, testSlices), codec: fleet.NewCodec(0, window.Limits{})}
	c.first = fleet.Label(time.Now().Add(-time.Minute).UnixNano(), int64(testWindow))

	// Without topics the page says what to do.
	r := c.start()
	type fleetStatus struct {
		Problem       string
		MissingTopics []string `json:"missing_topics"`
		Collectors    int
		Consumers     int
		States        map[string]int
	}
	status := func() fleetStatus {
		t.Helper()
		var s struct{ Fleet fleetStatus }
		r.json("/api/status", &s)
		return s.Fleet
	}
	r.until("the topics to be missed", func() bool { return len(status().MissingTopics) == 2 })
	if got := status().Problem; !strings.Contains(got, "hopscope kafka topics create") {
		t.Errorf("without topics the problem is %q", got)
	}
	if code, body := r.get("/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("GET /readyz without topics: %d %s", code, body)
	}

	c.createTopics()
	r.until("a fleet without members", func() bool {
		code, _ := r.get("/readyz")
		return code == http.StatusOK
	})

	// The fleet comes, with five windows.
	params, err := json.Marshal(roster.Params{Name: "backbone", Slices: testSlices, Window: testWindow})
	if err != nil {
		t.Fatal(err)
	}
	c.emit(roster.ParamsKey, params)
	now := time.Now().UnixNano()
	balance := func(received, stored, flight uint64) *roster.Balance {
		return &roster.Balance{Sink: "kafka", Received: received, Stored: stored, InFlight: map[string]uint64{"window": flight}, Dropped: map[string]uint64{"kernel": received - stored - flight}}
	}
	say := func(s *roster.Member) { t.Helper(); c.emit(roster.MemberKey(s.Role, s.Name), s.Append(nil)) }
	say(&roster.Member{Role: roster.Collector, Name: "a", Boot: 1, Version: "v9", Start: now, Updated: now + 3600e9, Rate: 50, All: balance(100, 80, 15), Pages: []string{"http://127.0.0.1:1/"}})
	say(&roster.Member{Role: roster.Collector, Name: "b", Boot: 2, Version: "v9", Start: now, Updated: now + 3600e9, Rate: 20, All: balance(50, 40, 10)})
	say(&roster.Member{Role: roster.Collector, Name: "old", Boot: 3, Version: "v8", Start: now - 9, Updated: now - 7200e9, Left: true})
	say(&roster.Member{Role: roster.Consumer, Name: "store-1", Boot: 4, Version: "v9", Start: now, Updated: now + 3600e9, Parts: []roster.Account{
		{Topic: fleet.Windows, Partition: 0, Generation: 1, Held: true, Taken: 70, Dropped: map[string]uint64{roster.DroppedLate: 2}, Stored: map[string]uint64{"influx": 60}, Late: 1, Duplicates: 2},
		{Topic: fleet.Windows, Partition: 1, Generation: 1, Held: true, Taken: 30, Stored: map[string]uint64{"influx": 30}},
	}})
	finding := inference.Finding{ID: 77, Kind: inference.HighLatency, Severity: inference.Critical, Start: c.label(3), Updated: c.label(3), Node: 5, EgressIf: 2, Text: "p99 latency is 5 ms."}
	for i := range 5 {
		var found []inference.Finding
		if i == 3 {
			found = append(found, finding)
		}
		c.window(i, uint64(10+i), found)
	}
	r.until("five windows", func() bool { return len(r.windows().Windows) == 5 })
	if got := fmt.Sprint(r.windows().Reports); got != "[10 11 12 13 14]" {
		t.Errorf("reports by window: %s", got)
	}
	r.until("hops to be learning", func() bool {
		var list struct{ Hops []struct{ Learning bool } }
		r.json("/api/hops?sort=node", &list)
		return fmt.Sprint(list.Hops) == "[{false} {true} {false} {true} {false}]"
	})
	r.until("Kafka to answer", func() bool { return status().Problem == "" })
	if f := status(); f.Problem != "" || len(f.MissingTopics) > 0 || f.Collectors != 3 || f.Consumers != 1 || f.States["alive"] != 3 || f.States["left"] != 1 {
		t.Errorf("fleet: %+v", f)
	}
	// The ledgers, added up.
	var ledger struct{ Balances []sink.Balance }
	r.json("/api/ledger", &ledger)
	if len(ledger.Balances) != 1 {
		t.Fatalf("ledger: %+v", ledger)
	}
	b := ledger.Balances[0]
	if b.Sink != "influx" || b.Received != 150 || b.Stored != 90 || b.InFlight["window"] != 25 || b.InFlight["kafka"] != 20 || b.InFlight["consumer"] != 8 ||
		b.Dropped["kernel"] != 5 || b.Dropped["late"] != 2 || b.Unsettled != 0 {
		t.Errorf("ledger: %+v, want 150 received = 90 stored + 53 in flight + 7 dropped", b)
	}
	var exported strings.Builder
	_, metrics := r.get("/metrics")
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, `hopscope_console_members{role="collector",state="alive"}`) || strings.HasPrefix(line, `hopscope_console_fleet_reports{part="in_flight",sink="influx",stage="kafka"}`) {
			exported.WriteString(line)
		}
	}
	if got := exported.String(); got != "hopscope_console_fleet_reports{part=\"in_flight\",sink=\"influx\",stage=\"kafka\"} 20\nhopscope_console_members{role=\"collector\",state=\"alive\"} 2\n" {
		t.Errorf("metrics:\n%s", got)
	}

	// Commands ask it as they ask a collector.
	ask := func(args ...string) string {
		t.Helper()
		out, err := program(append(args, "--url", r.url)...).CombinedOutput()
		if err != nil {
			t.Fatalf("hopscope %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if got := strings.Split(ask("top"), "\n"); len(got) != 7 || !strings.HasPrefix(got[1], "5     2       5") {
		t.Errorf("hopscope top:\n%s", strings.Join(got, "\n"))
	}
	if got := ask("flow", testFlow.String()); !strings.HasPrefix(got, "10.0.0.1:80 > 10.0.0.2:53 udp\n60 packets lately, path 1 > 2 > 3 > 4 > 5, changed 0 times\n") {
		t.Errorf("hopscope flow:\n%s", got)
	}
	r.until("the finding", func() bool { return strings.Contains(ask("findings"), "p99 latency is 5 ms.") })

	// What no member of the fleet would write is refused, and what comes behind it is shown.
	broken := c.slice(5, 0, 3, 0)
	broken.Value = append([]byte{}, broken.Value...)
	broken.Value[len(broken.Value)-1] ^= 1
	c.out(broken)
	c.produce([]byte("no head"), []byte("x"))
	c.produce(nil, nil)
	forged := c.slice(5, 1, 3, 0)
	forged.Value = []byte("no zstd")
	forged.Head.Sum = fleet.Sum(forged.Value)
	forged.Head.Kind = fleet.Whole
	c.out(forged)
	later := forged
	later.Head.Kind = 99
	c.out(later)
	c.emit("collector/evil", []byte(`{"role":"collector","name":"evil","run":{"received":1}}`))
	c.emit("consumer/../evil", []byte("{}"))
	c.emit("nonsense", []byte("{"))
	c.window(5, 15, nil, "b")
	r.until("the window behind what is broken", func() bool { return len(r.windows().Windows) == 6 })
	if got := r.windows().Missing; fmt.Sprint(got) != fmt.Sprintf("map[%d:[b]]", c.label(5)/1e6) {
		t.Errorf("windows without a collector: %v", got)
	}
	r.until("six records to be refused", func() bool { return r.metric("hopscope_console_records_refused_total") == 6 })
	var members struct {
		Members []struct{ Name, State string }
	}
	r.json("/api/fleet", &members)
	if got := fmt.Sprint(members.Members); got != "[{b missing} {a alive} {old left} {store-1 alive}]" {
		t.Errorf("members: %s", got)
	}

	// A window of tomorrow would keep those of today from being shown.
	for slice := range testSlices {
		c.out(c.slice(43200, slice, 1, 0))
	}
	r.until("the window of tomorrow to be refused", func() bool { return r.metric("hopscope_console_records_refused_total") == 6+testSlices })

	// A late part comes: a slice of an older window is published again. Those that had come are not added twice.
	c.out(c.slice(2, 0, 12, 0))
	for slice := range testSlices {
		c.out(c.slice(2, slice, 1000, 1))
	}
	r.until("window 2 as it is now", func() bool { return len(r.windows().Reports) == 6 && r.windows().Reports[2] == 1000 })
	if got := r.windows(); fmt.Sprint(got.Reports) != "[10 11 1000 13 14 15]" || got.Replaced == 0 {
		t.Errorf("windows after the late part: %+v", got)
	}

	// The broker goes away and comes back. The page stays, and goes on by itself.
	broker.Stop()
	r.until("Kafka to be missed", func() bool { return status().Problem != "" })
	if got := len(r.windows().Windows); got != 6 {
		t.Errorf("without Kafka the page has %d windows", got)
	}
	broker.Start()
	c.window(6, 16, nil)
	r.until("the window after the restart", func() bool { return len(r.windows().Windows) == 7 })
	r.until("no problem", func() bool { return status().Problem == "" })

	// Another console that starts now shows the same.
	other := c.start()
	other.until("readiness", func() bool {
		code, _ := other.get("/readyz")
		return code == http.StatusOK && len(other.windows().Windows) == 7 && other.windows().Reports[2] == 1000
	})
	for _, path := range []string{"/api/hops", "/api/flows", "/api/findings", "/api/fleet"} {
		_, mine := r.get(path)
		_, its := other.get(path)
		if path == "/api/hops" { // ids are the page's own
			continue
		}
		if path == "/api/fleet" { // without the processor for the time of its patience, a console closes a window before its slices come
			mine, its = withoutSlices(mine), withoutSlices(its)
		}
		if mine != its {
			t.Errorf("GET %s differs:\n%s\n%s", path, mine, its)
		}
	}
	for _, x := range []*runningConsole{r, other} {
		if err := x.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-x.done
		if err := x.cmd.Wait(); err != nil {
			t.Errorf("the console ended with %v\n%s", err, x.log())
		}
	}
}

// withoutSlices removes from the answer of /api/fleet the windows that were closed without a slice.
func withoutSlices(answer string) string {
	return regexp.MustCompile(`,?\{"end_ms":[0-9]+,"missing":\["\(slice [0-9]+\)"\]\}`).ReplaceAllString(answer, "")
}

// A console warns of a token that others can read.
func TestConsoleWarns(t *testing.T) {
	token := writeFile(t, "correct-horse-battery\n")
	cfg := defaultConfig()
	cfg.Web.TokenFile = token
	if got := consoleWarnings(&cfg); len(got) > 0 {
		t.Errorf("of a secret token: %v", got)
	}
	if err := os.Chmod(token, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := consoleWarnings(&cfg); len(got) != 1 || got[0].Path != "web.token_file" {
		t.Errorf("of a token that all can read: %v", got)
	}
}

// A console that is asked wrongly says so.
func TestConsoleRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"web: {listen: \"\"}\n":                   "a console is nothing but the page",
		"kafka: {brokers: [nowhere]}\n":           `"nowhere" is not HOST:PORT`,
		"kafka: {tls: true, ca_file: /no/such}\n": "ca_file",
		"web: {listen: \"0.0.0.0:0\"}\n":          "token_file: required",
	} {
		out, err := program("console", "--config", writeFile(t, text)).CombinedOutput()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != exitUsage || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s\nwant status %d and %q", text, err, out, exitUsage, want)
		}
	}
}
