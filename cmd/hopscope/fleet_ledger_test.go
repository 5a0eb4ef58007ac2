package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

// What exporters send: all reports have as many hops, so that the store's counts of hops and of reports have to agree.
const (
	ledgerExporters = 4
	ledgerHops      = 3
	ledgerSlices    = 3
)

// ledgerFleet is a fleet of processes: two collectors, two consumers and a console, with a broker and a store that cases share.
type ledgerFleet struct {
	t        *testing.T
	broker   *servertest.Broker
	client   *kafka.Client
	influx   *servertest.Influx
	name     string // of the fleet
	prefix   string // of its topics
	window   time.Duration
	oneByOne bool   // reports go to consumers one by one
	seed     string // file
	rng      *rand.Rand

	collectors, consumers []*fleetMember
	console               *fleetMember

	gen  *traffic.Generator
	conn *net.UDPConn
	buf  []byte
	sent uint64
}

// fleetMember is where a member runs: its settings, ports and files outlive its process.
type fleetMember struct {
	f        *ledgerFleet
	command  string
	settings string
	udp      netip.AddrPort
	web      string
	clock    time.Duration // that its clock is ahead of the machine's

	cmd *exec.Cmd
	mu  sync.Mutex
	log bytes.Buffer
}

// Write keeps what the process logs.
func (m *fleetMember) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log.Write(b)
}

func (m *fleetMember) logged() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log.String()
}

func newLedgerFleet(t *testing.T, broker *servertest.Broker, client *kafka.Client, influx *servertest.Influx, name string, seed uint64, window time.Duration, oneByOne bool) *ledgerFleet {
	t.Helper()
	f := &ledgerFleet{t: t, broker: broker, client: client, influx: influx, name: name, prefix: name + ".", window: window, oneByOne: oneByOne, rng: rand.New(rand.NewPCG(seed, 77))}
	f.seed = filepath.Join(t.TempDir(), "seed")
	if err := os.WriteFile(f.seed, []byte("a seed of tests, long enough"), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	f.gen, err = traffic.New(traffic.Config{Seed: seed + 1, Flows: 60, Hops: ledgerHops, Exporters: ledgerExporters, Bytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	if f.conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.conn.Close() })
	for i := range 2 {
		f.collectors = append(f.collectors, f.collector(fmt.Sprint("collector-", i)))
		f.consumers = append(f.consumers, f.member("consume", fmt.Sprint("consumer-", i), fmt.Sprintf(
			"consume: {session: 6s, drain: 2s, checkpoint: 1s, corrections: 30m}\ninflux: {enabled: true, url: %q, org: %q, bucket: %q, token_env: HOPSCOPE_TEST_TOKEN}\n",
			influx.URL, influx.Org, influx.Bucket), ""))
	}
	f.console = f.member("console", "console", "", "")
	f.eventually("the topics are there", func() bool { // a busy broker takes longer than kafka.timeout to make them
		out, err := program("kafka", "topics", "create", "--config", f.collectors[0].settings).CombinedOutput()
		if err != nil {
			t.Logf("kafka topics create: %v\n%s", err, out)
		}
		return err == nil
	})
	return f
}

// collector makes a place for a collector. Several can have one name.
func (f *ledgerFleet) collector(name string) *fleetMember {
	udp := testkit.FreeAddr(f.t)
	m := f.member("collect", name, fmt.Sprintf("udp: {listen: [%q], workers: 1}\nshards: 1\nflows: {memory_bytes: 16777216}\n", udp),
		fmt.Sprintf("enabled: true, spool: {dir: %q}, queue: {retry_min: 10ms, retry_max: 200ms}, ", f.t.TempDir()))
	m.udp = netip.MustParseAddrPort(udp)
	return m
}

func (f *ledgerFleet) member(command, instance, settings, section string) *fleetMember {
	m := &fleetMember{f: f, command: command, web: testkit.FreeAddr(f.t)}
	if f.oneByOne {
		section += "reports: all, "
	}
	common := fmt.Sprintf("kafka: {%sbrokers: [%q], prefix: %q, fleet: %q, slices: %d, timeout: 2s}\nweb: {listen: %q}\nlog: {format: json}\n",
		section, f.broker.Addr, f.prefix, f.name, ledgerSlices, m.web)
	if command != "console" {
		common += fmt.Sprintf("instance: %s\nwindow: %v\nseed_file: %q\n", instance, f.window, f.seed)
	}
	m.settings = writeFile(f.t, common+settings)
	return m
}

// start starts all members, and waits until they are ready.
func (f *ledgerFleet) start() {
	f.t.Helper()
	all := slices.Concat(f.consumers, f.collectors, []*fleetMember{f.console})
	for _, m := range all {
		m.start()
	}
	for _, m := range all {
		m.ready()
	}
}

// start starts the process, and waits until it is there.
func (m *fleetMember) start() {
	m.f.t.Helper()
	m.cmd = program(m.command, "--config", m.settings)
	m.cmd.Env = append(m.cmd.Env, "HOPSCOPE_TEST_TOKEN="+cmp.Or(m.f.influx.Token, "1.8 asks for none"), fmt.Sprint("HOPSCOPE_TEST_CLOCK=", m.clock))
	m.cmd.Stderr = m
	if err := m.cmd.Start(); err != nil {
		m.f.t.Fatal(err)
	}
	cmd := m.cmd
	m.f.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		if m.f.t.Failed() {
			m.f.t.Logf("%s:\n%s", m.settings, m.logged())
		}
	})
	m.f.eventually(m.command+" serves", func() bool { status, _ := m.get("/healthz"); return status == http.StatusOK })
}

func (m *fleetMember) signal(sig syscall.Signal) {
	m.f.t.Helper()
	if err := m.cmd.Process.Signal(sig); err != nil {
		m.f.t.Fatal(err)
	}
}

// end ends the process by a signal.
func (m *fleetMember) end(sig syscall.Signal) {
	m.f.t.Helper()
	m.signal(sig)
	if err := m.cmd.Wait(); err != nil && sig != syscall.SIGKILL {
		m.f.t.Errorf("%s after %v: %v\n%s", m.command, sig, err, m.logged())
	}
}

func (m *fleetMember) get(path string) (status int, body string) {
	resp, err := http.Get("http://" + m.web + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

func (m *fleetMember) ready() {
	m.f.t.Helper()
	m.f.eventually(m.command+" is ready", func() bool { status, _ := m.get("/readyz"); return status == http.StatusOK })
}

// unready waits until the member says that it is not ready, in these words.
func (m *fleetMember) unready(words ...string) {
	m.f.t.Helper()
	var body string
	defer func() {
		if m.f.t.Failed() {
			m.f.t.Logf("it says %q", body)
		}
	}()
	m.f.eventually(fmt.Sprintf("%s is not ready, and says %q", m.command, words), func() bool {
		var status int
		status, body = m.get("/readyz")
		return status == http.StatusServiceUnavailable && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(body, w) })
	})
}

func (f *ledgerFleet) eventually(what string, holds func() bool) {
	f.t.Helper()
	if !testkit.Await(holds) {
		f.t.Fatalf("it never came about that %s", what)
	}
}

// send sends n reports, at 400 a second, those of an exporter to the collector that route names.
func (f *ledgerFleet) send(n int, route func(exporter int) *fleetMember) {
	f.t.Helper()
	for i := range n {
		e := i % ledgerExporters
		f.buf = f.gen.NextFrom(e, f.buf)
		_, _ = f.conn.WriteToUDPAddrPort(f.buf, route(e).udp) // there may be no listener
		f.sent++
		if i%4 == 3 {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// sticky lets every exporter have one collector.
func (f *ledgerFleet) sticky(exporter int) *fleetMember { return f.collectors[exporter%2] }

// some is a number of reports that ends at a random place of a window.
func (f *ledgerFleet) some() int { return 200 + 4*f.rng.IntN(100) }

// points are what the store has: reports of exporters, and hops.
func (f *ledgerFleet) points() (reports, hops uint64) {
	f.t.Helper()
	for _, r := range f.influx.MustQuery(fmt.Sprintf(`from(bucket: BUCKET) |> range(start: -1h, stop: 1h) |> filter(fn: (r) => r.instance == %q)`, f.name)) {
		n, _ := r["_value"].(int64)
		switch fmt.Sprint(r["_measurement"], ".", r["_field"]) {
		case "exporter.reports":
			reports += uint64(n)
		case "hop.count":
			hops += uint64(n)
		}
	}
	return reports, hops
}

// ledger is that of the fleet, as the console has it.
func (f *ledgerFleet) ledger() (b sink.Balance) {
	var answer struct{ Balances []sink.Balance }
	_, body := f.console.get("/api/ledger")
	if json.Unmarshal([]byte(body), &answer) == nil && len(answer.Balances) == 1 {
		b = answer.Balances[0]
	}
	return b
}

func total(stages map[string]int64) (sum uint64) {
	for _, n := range stages {
		sum += uint64(n)
	}
	return sum
}

// exact waits until the ledger has each report that was sent once, stored or dropped at the given stages. The store
// must agree with the ledger. Each named stage must have dropped some reports.
func (f *ledgerFleet) exact(dropped ...string) {
	f.t.Helper()
	var b sink.Balance
	var reports, hops uint64
	wrong := ""
	for deadline := time.Now().Add(testkit.Patience); ; time.Sleep(200 * time.Millisecond) {
		b = f.ledger()
		wrong = ""
		for stage, n := range b.Dropped {
			if n != 0 && !slices.Contains(dropped, stage) {
				wrong += fmt.Sprintf("%d reports are dropped as %s; ", n, stage)
			}
		}
		for _, stage := range dropped {
			if b.Dropped[stage] == 0 {
				wrong += fmt.Sprintf("none is dropped as %s; ", stage)
			}
		}
		switch {
		case b.Received != f.sent:
			wrong += fmt.Sprintf("%d are received; ", b.Received)
		case b.Unsettled != 0 || total(b.InFlight) != 0:
			wrong += fmt.Sprintf("%d are unsettled, %v in flight; ", b.Unsettled, b.InFlight)
		}
		if wrong == "" {
			if reports, hops = f.points(); hops != b.Stored*ledgerHops || reports != b.Stored {
				wrong = fmt.Sprintf("the store has %d reports and %d hops, %d each", reports, hops, ledgerHops)
			}
		}
		if wrong == "" {
			f.t.Logf("%d sent: %d stored, dropped %v", f.sent, b.Stored, b.Dropped)
			return
		}
		if time.Now().After(deadline) {
			break
		}
	}
	reports, hops = f.points()
	f.t.Errorf("%d were sent, and %s the ledger: received %d, stored %d, in flight %v, dropped %v; the store: %d reports, %d hops",
		f.sent, wrong, b.Received, b.Stored, b.InFlight, b.Dropped, reports, hops)
}

// topics are all of the fleet, with the number of their partitions.
func (f *ledgerFleet) topics() map[string]int {
	return map[string]int{"windows": ledgerSlices, "reports": ledgerSlices, "series": 1, "state": 2*ledgerSlices + 1, "roster": 1}
}

// put writes a record as others do.
func (f *ledgerFleet) put(topic string, partition int, r kafka.Record) {
	f.t.Helper()
	r.Time = time.Now()
	key, value := readBytes(r.Key), readBytes(r.Value)
	f.eventually("a record is in "+topic, func() bool {
		second := r
		if key != nil {
			second.Key = kafka.NewBytes(key)
		}
		if value != nil {
			second.Value = kafka.NewBytes(value)
		}
		resp, err := f.client.Produce(f.t.Context(), &kafka.ProduceRequest{
			Topic: f.prefix + topic, Partition: partition, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(second),
		})
		return err == nil && resp.Error == nil
	})
}

func readBytes(b kafka.Bytes) []byte {
	if b == nil {
		return nil
	}
	all, _ := kafka.ReadAll(b)
	return all
}

// ledgerCases are what a fleet lives through while its exporters send. Odd seeds have consumers count all reports one by one, or even
// ones where that says more.
var ledgerCases = []struct {
	name     string
	window   time.Duration
	oneByOne uint64 // the remainder of such seeds by 2
	run      func(f *ledgerFleet)
}{
	{name: "quiet", oneByOne: 1, run: func(f *ledgerFleet) {
		f.start()
		f.send(3*f.some(), f.sticky)
		f.exact()
	}},
	{name: "consumers", oneByOne: 1, run: func(f *ledgerFleet) {
		f.start()
		f.send(f.some(), f.sticky)
		for _, c := range f.consumers {
			c.end(syscall.SIGKILL)
			f.send(f.some(), f.sticky)
			c.start()
		}
		f.send(f.some(), f.sticky)
		f.exact()
	}},
	{name: "stranger", oneByOne: 1, run: func(f *ledgerFleet) {
		f.start()
		f.send(f.some(), f.sticky)
		f.strange()
		f.send(2*f.some(), f.sticky)
		f.exact()
	}},
	{name: "killed", run: func(f *ledgerFleet) {
		f.start()
		f.send(2*f.some(), f.sticky)
		for range 2 {
			f.collectors[0].end(syscall.SIGKILL)
			f.collectors[0].start()
			f.send(2*f.some(), f.sticky)
		}
		f.exact("down")
	}},
	{name: "poison", oneByOne: 1, run: func(f *ledgerFleet) {
		f.start()
		f.send(2*f.some(), f.sticky)
		f.poison(561)
		f.send(2*f.some(), f.sticky)
		f.exact()
	}},
	{name: "gone", oneByOne: 1, run: func(f *ledgerFleet) {
		f.start()
		f.send(2*f.some(), f.sticky)
		f.exact()
		for _, c := range f.consumers {
			c.end(syscall.SIGTERM)
		}
		f.send(2*f.some(), f.sticky)
		f.eventually("collectors have nothing in flight", func() bool {
			b := f.ledger()
			return b.Received == f.sent && uint64(b.InFlight["kafka"]) == total(b.InFlight)
		})
		f.windowEnds() // its part, which counts what exporters sent, is removed with their reports
		f.retire()
		for _, c := range f.consumers {
			c.start()
		}
		f.exact("retention")
		f.send(2*f.some(), f.sticky)
		f.exact("retention")
		if _, page := f.console.get("/api/ledger"); !strings.Contains(page, "retention removed ") {
			f.t.Errorf("the page does not say what became of them: %s", page)
		}
	}},
	{name: "name", oneByOne: 1, run: func(f *ledgerFleet) {
		f.start()
		f.send(f.some(), f.sticky)
		second := f.collector("collector-0")
		second.start()
		second.unready("collector-0", fmt.Sprint("process ", f.collectors[0].cmd.Process.Pid), "since")
		f.send(2*f.some(), func(e int) *fleetMember { // one exporter has been set to it already
			if e == 0 {
				return second
			}
			return f.sticky(e)
		})
		f.collectors[0].ready()
		capture := filepath.Join("..", "..", "decode", "testdata", "int05-in-report05.pcap")
		if _, problem, status := runs(f.t, "replay", capture, "--config", f.collector("collector-1").settings); status != exitUsage || !strings.Contains(problem, "has the name") {
			f.t.Errorf("a capture is replayed under the name of a collector that runs: status %d\n%s", status, problem)
		}
		f.collectors[0].end(syscall.SIGTERM)
		f.collectors[0] = second
		second.ready()
		f.send(f.some(), f.sticky)
		f.exact()
	}},
	{name: "ahead", window: 4 * time.Second, run: func(f *ledgerFleet) {
		f.collectors[0].clock, f.consumers[0].clock = 3*time.Second, 3*time.Second
		f.collectors[1].clock = -3 * time.Second
		f.start()
		f.send(6*f.some(), f.sticky)
		f.exact()
	}},
	{name: "behind", oneByOne: 1, run: func(f *ledgerFleet) {
		off := f.collectors[1]
		off.clock = -10 * f.window
		for _, m := range slices.Concat(f.consumers, []*fleetMember{f.console, f.collectors[0], off}) {
			m.start()
		}
		off.unready("the clock of this machine is", "behind Kafka's")
		for _, m := range slices.Concat(f.consumers, []*fleetMember{f.console, f.collectors[0]}) {
			m.ready()
		}
		f.send(3*f.some(), f.sticky)
		f.exact("rejected")
	}},
	{name: "stalled", oneByOne: 1, run: func(f *ledgerFleet) {
		f.start()
		f.send(f.some(), f.sticky)
		for _, c := range f.collectors {
			c.signal(syscall.SIGSTOP)
		}
		f.send(9*200, f.sticky) // longer than any consumer waits for them
		for _, c := range f.collectors {
			c.signal(syscall.SIGCONT)
		}
		f.send(f.some(), f.sticky)
		f.exact()
	}},
}

// TestFleetLedger checks the ledger of a fleet for each kind of event. Every report that was sent is received once and
// ends once. It is stored, as the points in the store say, or dropped with a stage.
func TestFleetLedger(t *testing.T) {
	testkit.Long(t)
	broker := servertest.StartBroker(t, servertest.BrokerOptions{Properties: map[string]string{"log.retention.check.interval.ms": "500", "log.segment.delete.delay.ms": "100"}})
	client := broker.Client()
	influx := servertest.StartInflux(t, servertest.InfluxVersions[0])
	for _, c := range ledgerCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(testkit.Rounds(1, 20)) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					t.Parallel()
					c.run(newLedgerFleet(t, broker, client, influx, fmt.Sprintf("%s-%d", c.name, seed), seed, cmp.Or(c.window, time.Second), seed%2 == c.oneByOne))
				})
			}
		})
	}
}

// strange writes what other clients of Kafka write, which know nothing of the fleet, to all of its topics.
func (f *ledgerFleet) strange() {
	f.t.Helper()
	for topic, partitions := range f.topics() {
		for p := range partitions {
			f.put(topic, p, kafka.Record{Key: kafka.NewBytes([]byte("order/7")), Value: kafka.NewBytes([]byte(`{"order":7,"total":12.5}`))})
			f.put(topic, p, kafka.Record{Key: kafka.NewBytes([]byte("order/7"))})
			f.put(topic, p, kafka.Record{Key: kafka.NewBytes([]byte("x")), Value: kafka.NewBytes(nil), Headers: []kafka.Header{{Key: "traceparent", Value: []byte("00-1-2-01")}}})
		}
	}
}

// poison writes n records that are made of those of the fleet: damaged, doubled, cut, of a later version, old, and at random.
func (f *ledgerFleet) poison(n int) {
	f.t.Helper()
	type place struct {
		topic     string
		partition int
		records   []servertest.Message
	}
	var places []place
	for topic, partitions := range f.topics() {
		for p := range partitions {
			places = append(places, place{topic, p, f.broker.Read(f.prefix+topic, p, 0)})
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	})
	random := func(n int) []byte {
		b := make([]byte, 1+f.rng.IntN(n))
		for i := range b {
			b[i] = byte(f.rng.Uint32())
		}
		return b
	}
	flip := func(b []byte) []byte {
		b = bytes.Clone(b)
		if len(b) > 0 {
			b[f.rng.IntN(len(b))] ^= 1 << f.rng.IntN(8)
		}
		return b
	}
	cut := func(b []byte) []byte { return b[:len(b)-min(len(b), 1+f.rng.IntN(1+len(b)))] }
	for i := range n {
		p := places[i%len(places)]
		m := servertest.Message{Key: []byte("nonsense"), Value: random(300), Headers: []kafka.Header{{Key: fleet.HeaderKey, Value: random(60)}}}
		if len(p.records) > 0 && i%7 != 0 {
			m = p.records[f.rng.IntN(len(p.records))]
		}
		compacted := p.topic == "state" || p.topic == "roster" // the last one of a key counts, so it gets another
		head := bytes.Clone(m.Header(fleet.HeaderKey))
		switch f.rng.IntN(7) {
		case 0:
			m.Value = flip(m.Value)
		case 1:
			head = flip(head)
		case 2: // doubled
		case 3:
			m.Value = cut(m.Value)
		case 4:
			head = cut(head)
		case 5:
			if len(head) > 0 {
				head[0] = 99
			}
		case 6: // a value that is another one's
			m.Value = p.records[max(0, f.rng.IntN(max(1, len(p.records))))].Value
		}
		if compacted {
			m.Key = binary.BigEndian.AppendUint32([]byte("poison"), uint32(i))
		}
		r := kafka.Record{Headers: []kafka.Header{{Key: fleet.HeaderKey, Value: head}}}
		if m.Key != nil {
			r.Key = kafka.NewBytes(m.Key)
		}
		if m.Value != nil {
			r.Value = kafka.NewBytes(m.Value)
		}
		f.put(p.topic, p.partition, r)
	}
}

// windowEnds waits until the parts of the window that is open now are in Kafka, of all slices and collectors.
func (f *ledgerFleet) windowEnds() {
	f.t.Helper()
	label := time.Now().Truncate(f.window).Add(f.window).UnixNano()
	f.eventually("the open window is in Kafka", func() bool {
		for p := range ledgerSlices {
			done := map[string]bool{}
			for _, m := range f.broker.Read(f.prefix+"windows", p, 0) {
				if h, err := fleet.ReadHead(m.Header(fleet.HeaderKey)); err == nil && h.Kind == fleet.Part && h.End >= label {
					done[h.From] = true
				}
			}
			if len(done) < len(f.collectors) {
				return false
			}
		}
		return true
	})
}

// retire has retention remove all that there is in windows and reports, and sets it back.
func (f *ledgerFleet) retire() {
	f.t.Helper()
	topics := []string{f.prefix + "windows", f.prefix + "reports"}
	keep := func(ms string) {
		f.t.Helper()
		var r kafka.AlterConfigsRequest
		for _, topic := range topics {
			r.Resources = append(r.Resources, kafka.AlterConfigRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, Configs: []kafka.AlterConfigRequestConfig{
				{Name: "retention.ms", Value: ms}, {Name: "segment.ms", Value: ms}, {Name: "message.timestamp.type", Value: "LogAppendTime"},
			}})
		}
		f.eventually("the retention is set", func() bool {
			_, err := f.client.AlterConfigs(f.t.Context(), &r)
			return err == nil
		})
	}
	ends := map[string][]int64{}
	for _, topic := range topics {
		for p := range ledgerSlices {
			_, end := f.broker.Offsets(topic, p)
			ends[topic] = append(ends[topic], end)
		}
	}
	keep("500")
	f.eventually("retention has removed everything", func() bool {
		for topic, ends := range ends {
			for p, end := range ends {
				if first, _ := f.broker.Offsets(topic, p); first < end {
					return false
				}
			}
		}
		return true
	})
	keep("86400000")
}
