package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/ingest"
	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
	kafkasink "github.com/hopscope/hopscope/sink/kafka"
)

// fleetTest is a fleet with simulated collectors, on a real broker and with a real InfluxDB.
type fleetTest struct {
	t      *testing.T
	broker *servertest.Broker
	influx *servertest.Influx
	log    *brokers.Log
	window time.Duration
	seed   string // file
	pubs   []*fleet.Publisher
	seen   map[int64]*window.Partial
	labels []int64
}

func newFleetTest(t *testing.T) *fleetTest {
	f := newBareFleet(t)
	f.influx = servertest.StartInflux(t, servertest.InfluxVersions[0])
	return f
}

// newBareFleet makes one without a store.
func newBareFleet(t *testing.T) *fleetTest {
	f := &fleetTest{
		t: t, broker: servertest.StartBroker(t, servertest.BrokerOptions{}), window: time.Second,
		seed: filepath.Join(t.TempDir(), "seed"), seen: map[int64]*window.Partial{},
	}
	if err := os.WriteFile(f.seed, []byte("a seed of tests, long enough"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := readConfig(writeFile(t, fmt.Sprintf("seed_file: %s\n", f.seed)))
	if err != nil {
		t.Fatal(err)
	}
	seed, err := cfg.Seed()
	if err != nil {
		t.Fatal(err)
	}
	conf := kafkasink.DefaultConfig()
	conf.Brokers, conf.Prefix, conf.Slices = []string{f.broker.Addr}, f.broker.Prefix, 4
	params := roster.NewParams("fleet", conf.Slices, f.window, seed)
	admin, err := kafkasink.NewAdmin(conf, params, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if _, err := admin.Create(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	logCfg := brokers.DefaultLogConfig()
	logCfg.HeaderKey = fleet.HeaderKey
	f.log = brokers.NewLog(f.broker.Client(), logCfg)
	for i := range 2 {
		f.pubs = append(f.pubs, fleet.NewPublisher(fleet.PublisherConfig{
			From: fmt.Sprint("collector-", i), Boot: uint64(9 + i), Slicer: window.NewSlicer(seed, conf.Slices), Window: int64(f.window),
		}))
	}
	return f
}

func (f *fleetTest) settings(instance, level string) string {
	return writeFile(f.t, fmt.Sprintf(`instance: %s
window: 1s
seed_file: %s
kafka: {brokers: [%q], prefix: %q, timeout: 2s}
consume: {session: 6s, drain: 2s, checkpoint: 500ms, corrections: 30m, patience: 5}
influx: {enabled: true, url: %q, org: %q, bucket: %q, token_env: HOPSCOPE_TEST_TOKEN}
web: {listen: "127.0.0.1:0"}
log: {format: json, level: %s}
`, instance, f.seed, f.broker.Addr, f.broker.Prefix, f.influx.URL, f.influx.Org, f.influx.Bucket, level))
}

// send has a collector send a window, of which only it sees its flows and its exporter, and of which all see the hops.
func (f *fleetTest) send(i int, end int64) {
	f.t.Helper()
	f.sendWith(i, end, func(*window.Partial) {})
}

// sendWith has it send what add adds besides.
func (f *fleetTest) sendWith(i int, end int64, add func(*window.Partial)) {
	f.t.Helper()
	p := &window.Partial{}
	p.Span(end-int64(f.window), end)
	for n := range 30 {
		h := p.Hop(inference.HopKey{Node: uint32(1 + n), EgressIf: 2})
		for k := range 1 + n%4 {
			h.Latency.AddValue(uint64(1000 + 100*n + 7*k + i))
			h.Queue.AddValue(uint64(n))
			p.Reports++
		}
	}
	for n := range 5 {
		flow := window.FlowPart{
			Key: decode.FlowKey{SrcPort: uint16(100*i + n), DstPort: 80, Proto: 6, IPVersion: 4}, Packets: uint64(2 + n), PathID: 5, Last: end - 1,
			Path: []inference.HopKey{{Node: uint32(1 + n), EgressIf: 2}},
		}
		flow.Hop(flow.Path[0]).Latency.AddValue(uint64(1000 + n))
		p.AddFlow(&flow)
		p.FlowCount++
	}
	p.AddExporters([]inference.ExporterStats{{
		ExporterKey: inference.ExporterKey{Addr: decode.Addr{10: 0xff, 11: 0xff, 12: 10, 15: byte(1 + i)}, Node: uint32(1 + i)}, Reports: p.Reports, Last: end - 1, Sequenced: true,
	}})
	add(p)
	if f.seen[end] == nil {
		f.seen[end] = &window.Partial{}
		f.labels = append(f.labels, end)
	}
	f.seen[end].Merge(p)
	out, err := f.pubs[i].Window(nil, p, end, nil, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, r := range out {
		if _, err := f.log.Append(f.t.Context(), f.broker.Prefix+"windows", r.Partition, ingest.Message{Value: r.Value, Head: r.Head.Append(nil)}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// next waits for the end of a window and returns its label.
func (f *fleetTest) next() int64 {
	end := fleet.Label(time.Now().UnixNano(), int64(f.window))
	time.Sleep(time.Until(time.Unix(0, end)))
	return end
}

func (f *fleetTest) start(instance string, args ...string) (*process, string) {
	f.t.Helper()
	p := f.run(f.settings(instance, "info"), args...)
	return p, p.url
}

// run starts a consumer.
func (f *fleetTest) run(settings string, args ...string) *process {
	f.t.Helper()
	cmd := program(append([]string{"consume", "--config", settings, "--format", "json"}, args...)...)
	if f.influx != nil {
		cmd.Env = append(cmd.Env, "HOPSCOPE_TEST_TOKEN="+cmp.Or(f.influx.Token, "1.8 asks for none"))
	}
	p := &process{cmd: cmd}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	cmd.Stdout = &p.out
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	p.log = newLogReader(f.t, io.TeeReader(stderr, &p.logged))
	line := p.log.wait("consuming what a fleet publishes")
	go p.log.drain()
	p.url, _ = line["url"].(string)
	return p
}

// points are what is in InfluxDB, by series, field and time.
func (f *fleetTest) points() map[string]string {
	out := map[string]string{}
	for _, r := range f.influx.MustQuery(`from(bucket: BUCKET) |> range(start: -1h, stop: 1h)`) {
		var tags []string
		for k, v := range r {
			if k != "result" && k != "table" && !strings.HasPrefix(k, "_") {
				tags = append(tags, fmt.Sprint(k, "=", v))
			}
		}
		slices.Sort(tags)
		at, _ := r["_time"].(time.Time)
		out[fmt.Sprint(r["_measurement"], tags, r["_field"], at.UnixNano())] = fmt.Sprint(r["_value"])
	}
	return out
}

// want is what one process writes that sees everything.
func (f *fleetTest) want() map[string]string {
	flows := shard.DefaultConfig()
	d := events.New(events.DefaultConfig())
	out := map[string]string{}
	for _, end := range f.labels {
		w := f.seen[end].Window(flows.Limits())
		found := slices.Clone(d.Step(&w))
		sw := sink.NewWindow("fleet", &w, found)
		for _, p := range sw.Points() {
			var tags []string
			for _, t := range p.Tags {
				tags = append(tags, t.Key+"="+t.Value)
			}
			slices.Sort(tags)
			for _, x := range p.Fields {
				value := any(x.Int)
				switch x.Kind {
				case sink.Float:
					value = x.Float
				case sink.String:
					value = x.Str
				}
				out[fmt.Sprint(p.Measurement, tags, x.Key, p.Time)] = fmt.Sprint(value)
			}
		}
	}
	return out
}

func (f *fleetTest) equal() {
	f.t.Helper()
	want := f.want()
	var diff []string
	if testkit.Await(func() bool {
		got := f.points()
		diff = diff[:0]
		for k, v := range want {
			if g, ok := got[k]; !ok || g != v {
				diff = append(diff, fmt.Sprintf("%s is %q, want %s", k, g, v))
			}
		}
		for k := range got {
			// A collector that was away for longer than the patience is late with the first window after that, which has a revision then.
			if _, ok := want[k]; !ok && !strings.HasPrefix(k, "collector[") && !strings.Contains(k, "]revision") {
				diff = append(diff, "too much: "+k)
			}
		}
		return len(diff) == 0 && len(want) > 0
	}) {
		return
	}
	slices.Sort(diff)
	f.t.Fatalf("%d of %d values differ:\n%s", len(diff), len(want), strings.Join(diff[:min(10, len(diff))], "\n"))
}

// process is a consumer as its own process.
type process struct {
	cmd    *exec.Cmd
	log    *logReader
	logged lockedBuffer
	out    strings.Builder
	url    string // of its page
}

func (p *process) end(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil && sig != syscall.SIGKILL {
		t.Errorf("after %v: %v", sig, err)
	}
}

// A consumer is killed with -9 while windows come. Another one goes on, and InfluxDB has what one process would have written.
func TestConsumeCommand(t *testing.T) {
	t.Parallel()
	f := newFleetTest(t)
	one, _ := f.start("c-1")
	for range 4 {
		end := f.next()
		f.send(0, end)
		f.send(1, end)
	}
	one.end(t, syscall.SIGKILL)
	two, url := f.start("c-2")
	for range 4 {
		end := f.next()
		f.send(0, end)
		f.send(1, end)
	}
	f.equal()

	if url == "" {
		t.Fatal("the log does not say where the page is")
	}
	for deadline := time.Now().Add(testkit.Patience); ; time.Sleep(100 * time.Millisecond) {
		res, err := http.Get(url + "readyz")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("never ready: %v %v", res, err)
		}
	}
	metrics := get(t, url+"metrics", http.StatusOK)
	for _, m := range consumeMetrics {
		if !strings.Contains(metrics, "\n"+m.Name+" ") {
			t.Errorf("no metric %s", m.Name)
		}
	}
	if !strings.Contains(metrics, `hopscope_consume_held{partition="3",topic="windows"} 1`) {
		t.Errorf("a partition is not held:\n%s", metrics)
	}

	two.end(t, syscall.SIGTERM)
	var s struct {
		Windows, Slices, Reports uint64
		Ledger                   []sink.Balance
	}
	if err := json.Unmarshal([]byte(two.out.String()), &s); err != nil || s.Windows < 4 || s.Slices < 16 || len(s.Ledger) != 1 || s.Ledger[0].Stored != s.Reports {
		t.Errorf("summary %s: %v", two.out.String(), err)
	}
	// The roster knows the former members.
	var r roster.Roster
	for _, m := range f.broker.Read(f.broker.Prefix+"roster", 0, 0) {
		if err := r.Add(string(m.Key), m.Value); err != nil {
			t.Error(err)
		}
	}
	a, b := r.Member(roster.Consumer, "c-1"), r.Member(roster.Consumer, "c-2")
	if a == nil || a.Left || b == nil || !b.Left {
		t.Fatalf("in the roster: %+v, %+v", a, b)
	}
	var stored, all uint64
	for _, acc := range b.Parts {
		stored += acc.Stored["influx"]
	}
	for _, p := range f.seen {
		all += p.Reports
	}
	if stored != all {
		t.Errorf("the books have %d reports stored, of %d", stored, all)
	}
}

func TestConsumeUsage(t *testing.T) {
	for _, args := range [][]string{
		{"consume", "--format", "xml"},
		{"consume", "--from", "yesterday"},
		{"consume", "--from", "-5m"},
		{"consume", "--from", "2999-01-01T00:00:00Z"},
		{"consume", "--config", "no-such-file"},
		{"consume", "--config", writeFile(t, "consume: {session: 1ms}\n")},
		{"consume"}, // without a seed
	} {
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		cmd := program(args...)
		stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
		out, err := cmd.CombinedOutput()
		stop()
		cancel()
		if cmd.ProcessState.ExitCode() != exitUsage {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	now := time.Unix(1e9, 0)
	if at, err := parseFrom("90m", now); err != nil || !at.Equal(now.Add(-90*time.Minute)) {
		t.Errorf("90m ago is %v, %v", at, err)
	}
	if at, err := parseFrom("2001-09-09T01:00:00Z", now); err != nil || at.Unix() != 999997200 {
		t.Errorf("%v, %v", at, err)
	}
}
