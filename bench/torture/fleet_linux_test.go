//go:build torture

package torture

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
)

// fleetUnderTest is a fleet of processes with a broker and a store, and one single collector beside it. Every
// datagram goes to the fleet and to that collector, so that both must store the same, point by point.
//
// Datagrams are sent in the middle of windows. Two processes receive the same datagram at slightly different times,
// which then does not matter for the comparison.
type fleetUnderTest struct {
	t          *testing.T
	broker     *servertest.Broker
	server     *servertest.Influx
	seed       string // file
	alone      *place
	collectors []*place
	consumers  []*place
	console    *place

	gen     *traffic.Generator
	sent    int64 // datagrams
	buf     []byte
	mu      sync.Mutex     // of sent, where several send, and of torn
	pending sync.WaitGroup // faults
	last    time.Time      // of the datagrams
	torn    map[int64]bool // ends of windows, in s, in which the two copies of a datagram may rightly count differently
}

const fleetWindow = time.Second

// brokers is the broker that rows share which do not break it. It is started by the first of them, and ends with the
// table.
var brokers sharedBroker

type sharedBroker struct {
	t      *testing.T
	mu     sync.Mutex
	broker *servertest.Broker
	taken  int
}

// receive returns the broker, with topic names that no other row has.
func (s *sharedBroker) receive() *servertest.Broker {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broker == nil {
		s.broker = servertest.StartBroker(s.t, servertest.BrokerOptions{})
	}
	s.taken++
	b := *s.broker
	b.Prefix = fmt.Sprintf("row%d.", s.taken)
	return &b
}

type fleetOptions struct {
	collectors, consumers int
	broker                *servertest.Broker // of its own; nil shares one
	store                 string             // address of what stands before the store
	settings              string             // of all members, as YAML
	kafka                 string             // more lines of the section kafka, indented
	consume               string             // more lines of the section consume, indented
	disk                  *disk              // of the first collector
	unsupervised          bool               // no other process stands beside it
	postcards             bool               // of each hop a report, whose collectors are not those of the other hops
}

func newFleet(t *testing.T, o fleetOptions) *fleetUnderTest {
	t.Helper()
	f := &fleetUnderTest{t: t, broker: o.broker, server: startStore(t, servertest.Influx2)}
	if f.broker == nil {
		f.broker = brokers.receive()
	}
	dir := t.TempDir()
	f.seed = filepath.Join(dir, "seed")
	if err := writeSecret(f.seed, "a seed that only these tests know"); err != nil {
		t.Fatal(err)
	}
	common := fmt.Sprintf("seed_file: %q\ncorrections: 1h\nflows:\n  memory_bytes: 33554432\n%s", f.seed, o.settings)
	kafka := fmt.Sprintf("kafka:\n  brokers: [%q]\n  prefix: %q\n  fleet: fleet\n  slices: 4\n%s", f.broker.Internal, f.broker.Prefix, o.kafka)

	var err error
	cfg := traffic.Config{Seed: uint64(rng.Int64N(1 << 62)), Flows: 60, Hops: hops, Exporters: exporters, Bytes: 200}
	if o.postcards {
		cfg.Hops = 0
	}
	f.gen, err = traffic.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	window := fleetWindow.String()
	if !o.unsupervised {
		f.alone = newPlace(t, placeOptions{server: f.server, window: window, instance: "alone", settings: common})
	}
	for i := range o.collectors {
		p := newPlace(t, placeOptions{
			server: f.server, window: window, instance: fmt.Sprintf("collector-%d", i+1), settings: common,
			kafka: kafka + "  enabled: true\n  queue:\n    retry_min: 10ms\n    retry_max: 200ms\n",
		})
		if i == 0 {
			p.opt.disk = o.disk
		}
		f.collectors = append(f.collectors, p)
	}
	for i := range o.consumers {
		f.consumers = append(f.consumers, newPlace(t, placeOptions{
			server: f.server, store: o.store, window: window, instance: fmt.Sprintf("consumer-%d", i+1),
			settings: common + "consume:\n  session: 6s\n  checkpoint: 2s\n" + o.consume, kafka: kafka, consumer: true,
		}))
	}
	f.console = newPlace(t, placeOptions{server: f.server, window: window, instance: "console", kafka: kafka, console: true})
	create := exec.Command(program, "kafka", "topics", "create", "--config", f.collectors[0].config())
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("kafka topics create: %v\n%s", err, out)
	}
	return f
}

// start starts all members, and waits until the consumers have their partitions.
func (f *fleetUnderTest) start() (collectors, consumers []*run) {
	f.t.Helper()
	for _, p := range f.consumers {
		consumers = append(consumers, p.launch())
	}
	for _, p := range f.collectors {
		collectors = append(collectors, p.launch())
	}
	all := slices.Concat(consumers, collectors)
	if f.alone != nil {
		all = append(all, f.alone.launch())
	}
	for _, r := range all {
		r.up()
	}
	for _, c := range consumers {
		c.ready()
	}
	go f.watch()
	return collectors, consumers
}

// watch tears the windows in which the machine was too busy for a process to count what it had received. Its copies then
// count in another window than those of the other process, or the queue of a shard had no room for them.
func (f *fleetUnderTest) watch() {
	places := f.collectors
	if f.alone != nil {
		places = append([]*place{f.alone}, places...)
	}
	counted := make([]float64, len(places))
	for since := time.Now(); ; {
		select {
		case <-f.t.Context().Done():
			return
		case <-time.After(fleetWindow / 2):
		}
		began := time.Now()
		for i, p := range places {
			r := &run{p: p}
			n, ok := r.metric("hopscope_window_misplaced_reports_total")
			if !ok { // it was killed
				continue
			}
			n += float64(r.droppedByShards())
			if n != counted[i] && n > 0 {
				f.tear(since.Add(-2*fleetWindow), time.Now())
			}
			counted[i] = n
		}
		since = began
	}
}

// ready waits until the member reports that it is.
func (r *run) ready() {
	r.p.t.Helper()
	waitFor(r.p.t, time.Minute, r.p.opt.instance+" to be ready", func() bool {
		status, _ := r.get("/readyz")
		return status == http.StatusOK
	})
}

// sticky lets every exporter have one collector.
func (f *fleetUnderTest) sticky(exporter, _ int) []int { return []int{exporter % len(f.collectors)} }

// send sends for a number of windows. Route names the collectors that the n-th datagram goes to.
func (f *fleetUnderTest) send(windows int, route func(exporter, n int) []int) {
	f.t.Helper()
	const each = 1200 // datagrams of a window
	for range windows {
		border := time.Now().Truncate(fleetWindow)
		if time.Since(border) > fleetWindow/8 {
			border = border.Add(fleetWindow)
		}
		begin := border.Add(fleetWindow / 8)
		for i := range each {
			if i%10 == 0 {
				time.Sleep(time.Until(begin.Add(time.Duration(i) * fleetWindow * 5 / 8 / each)))
			}
			if late := time.Since(begin); late > fleetWindow*6/8 { // the machine is busy: the rest is for the next window
				begin = begin.Add(late.Truncate(fleetWindow) + fleetWindow)
				time.Sleep(time.Until(begin))
				begin = begin.Add(-time.Duration(i) * fleetWindow * 5 / 8 / each)
			}
			e := i % exporters
			f.buf = f.gen.NextFrom(e, f.buf)
			before := time.Now()
			for k, c := range route(e, i) { // a copy of a datagram is one that the other receives, too
				if k > 0 { // with other bytes: one collector would count a copy once, and several cannot know of one
					f.buf[len(f.buf)-1] ^= 1
				}
				f.write(f.alone)
				f.write(f.collectors[c])
			}
			f.sent++
			f.tear(before, time.Now())
		}
		f.last = time.Now()
	}
}

// tear notes the windows that differ because the two copies of a datagram were sent or counted on different sides of
// a border. This happens when the machine gave the processor to another process in between.
func (f *fleetUnderTest) tear(from, to time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.torn == nil {
		f.torn = map[int64]bool{}
	}
	from = from.Truncate(fleetWindow)
	if border := to.Truncate(fleetWindow); border.After(from) {
		for at := from.Add(fleetWindow); !at.After(border.Add(fleetWindow)); at = at.Add(fleetWindow) {
			f.torn[at.Unix()] = true
		}
	}
}

func (f *fleetUnderTest) write(p *place) {
	if p.conn == nil {
		p.dial()
	}
	p.conn.WriteToUDPAddrPort(f.buf, p.udp) // there may be no listener
}

// meanwhile does something while datagrams are sent.
func (f *fleetUnderTest) meanwhile(what func()) { f.pending.Go(what) }

// stored returns the points of an instance, by series and time: what they hold, field by field. Windows after the
// last datagram are left out, since they go on and on.
func (f *fleetUnderTest) stored(instance string) map[string]string {
	f.t.Helper()
	points := map[string]map[string]string{}
	f.mu.Lock()
	torn := maps.Clone(f.torn)
	f.mu.Unlock()
	end := f.last.Truncate(fleetWindow).Add(2 * fleetWindow).Add(time.Millisecond)
	rows := f.server.MustQuery(fmt.Sprintf(`from(bucket: BUCKET) |> range(start: -2h, stop: %s) |> filter(fn: (r) => r.instance == %q and r._measurement != "collector")`,
		end.UTC().Format(time.RFC3339Nano), instance))
	for _, row := range rows {
		var key strings.Builder
		for _, k := range slices.Sorted(maps.Keys(row)) {
			switch k {
			case "_field", "_value", "_start", "_stop", "result", "table", "instance":
			default:
				fmt.Fprintf(&key, "%s=%v ", k, row[k])
			}
		}
		if torn[row["_time"].(time.Time).Unix()] {
			continue
		}
		k := key.String()
		if points[k] == nil {
			points[k] = map[string]string{}
		}
		field := row["_field"].(string)
		if field != "revision" { // counts how often a point was written
			points[k][field] = fmt.Sprint(row["_value"])
		}
	}
	out := map[string]string{}
	for k, fields := range points {
		var text strings.Builder
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			fmt.Fprintf(&text, "%s=%s ", name, fields[name])
		}
		out[k] = text.String()
	}
	return out
}

// difference is how the points of the fleet differ from those of the collector that stands alone.
type difference struct {
	points, missing, extra, other int
	examples                      []string
}

func (d *difference) same() bool { return d.points > 0 && d.missing+d.extra+d.other == 0 }

func (f *fleetUnderTest) compare(leaveOut func(series string) bool) (d difference) {
	f.t.Helper()
	want, got := f.stored("alone"), f.stored("fleet")
	example := func(what, k string) {
		if len(d.examples) < 8 {
			d.examples = append(d.examples, fmt.Sprintf("%s: %s\n   alone %s\n   fleet %s", what, k, want[k], got[k]))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if leaveOut != nil && leaveOut(k) {
			continue
		}
		d.points++
		switch have, ok := got[k]; {
		case !ok:
			d.missing++
			example("missing", k)
		case have != want[k]:
			d.other++
			example("different", k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[k]; !ok && (leaveOut == nil || !leaveOut(k)) {
			d.extra++
			example("extra", k)
		}
	}
	return d
}

// settled waits until the fleet has stored what the other one has, and fills in the row. It returns how long after
// the last datagram that was.
func (f *fleetUnderTest) settled(r *result, leaveOut func(series string) bool) {
	f.t.Helper()
	f.pending.Wait()
	time.Sleep(time.Until(f.last.Add(2 * fleetWindow)))
	var d difference
	for end := time.Now().Add(testkit.Patience); ; {
		began := time.Now()
		d = f.compare(leaveOut)
		if d.same() || time.Now().After(end) {
			break
		}
		time.Sleep(max(300*time.Millisecond, time.Since(began))) // what comparing costs is taken from the fleet
	}
	r.Unit, r.Sent, r.Stored = "points", int64(d.points), int64(d.points-d.missing-d.other)
	r.Unaccounted, r.Doubled = int64(d.missing+d.other), int64(d.extra)
	r.Remark = strings.TrimPrefix(fmt.Sprintf("%s; equal after %.1f s", r.Remark, time.Since(f.last).Seconds()), "; ")
	f.mu.Lock()
	torn := len(f.torn)
	f.mu.Unlock()
	if torn > 0 {
		r.Remark += fmt.Sprintf(", without %d windows at whose end a process was held up", torn)
	}
	if !d.same() {
		f.t.Errorf("%d points alone: the fleet lacks %d, has %d others, and %d differ:\n%s\n%s", d.points, d.missing, d.extra, d.other,
			strings.Join(d.examples, "\n"), f.tails())
	}
}

// takenOver waits until the window in which a consumer was killed is in the store, whole and returns the time since
// then.
func (f *fleetUnderTest) takenOver(killed time.Time) time.Duration {
	f.t.Helper()
	label := killed.Truncate(fleetWindow).Add(fleetWindow)
	hops := func(instance string) int {
		return len(f.server.MustQuery(fmt.Sprintf(`from(bucket: BUCKET) |> range(start: %s, stop: %s) |> filter(fn: (r) => r.instance == %q and r._measurement == "hop" and r._field == "count")`,
			label.Add(-time.Millisecond).UTC().Format(time.RFC3339Nano), label.Add(time.Millisecond).UTC().Format(time.RFC3339Nano), instance)))
	}
	waitFor(f.t, time.Minute, "the window of the kill", func() bool {
		return time.Since(label) > fleetWindow/2 && hops("alone") > 0 && hops("fleet") == hops("alone")
	})
	return time.Since(killed)
}

func (f *fleetUnderTest) tails() string {
	var b strings.Builder
	for _, p := range append([]*place{f.alone}, f.collectors...) {
		if p == nil { // no other process stands beside it
			continue
		}
		// Where a machine is too busy, what was received in one window counts in another, and then the two rightly
		// differ.
		n, ok := (&run{p: p}).metric("hopscope_window_misplaced_reports_total")
		fmt.Fprintf(&b, "%s counts %v reports in another window than they were received in (known: %t)\n", p.opt.instance, n, ok)
	}
	for _, p := range slices.Concat(f.collectors, f.consumers) {
		fmt.Fprintf(&b, "--- %s\n%s\n", p.opt.instance, p.tail())
	}
	return b.String()
}

// fleetRow is a fleet that lives through something while windows are sent.
func fleetRow(name string, o fleetOptions, during func(f *fleetUnderTest, collectors, consumers []*run)) row {
	return row{name: name, run: func(t *testing.T, r *result) {
		f := newFleet(t, o)
		collectors, consumers := f.start()
		f.send(3, f.sticky)
		during(f, collectors, consumers)
		f.send(3, f.sticky)
		f.settled(r, nil)
	}}
}

func fleetRows() []row {
	two := fleetOptions{collectors: 2, consumers: 2}
	times := short(1, 5)
	return []row{
		fleetRow("fleet: nothing happens", two, func(f *fleetUnderTest, _, _ []*run) { f.send(2, f.sticky) }),
		{name: "fleet: kill -9 of a consumer", run: func(t *testing.T, r *result) {
			f := newFleet(t, two)
			_, consumers := f.start()
			f.send(3, f.sticky)
			var longest time.Duration
			for range times {
				f.meanwhile(func() {
					time.Sleep(moment(0, 1500*time.Millisecond))
					consumers[0].kill()
					longest = max(longest, f.takenOver(time.Now()))
				})
				f.send(9, f.sticky)
				f.pending.Wait()
				consumers[0] = f.consumers[0].start()
				f.send(3, f.sticky)
			}
			f.settled(r, nil)
			r.Remark = fmt.Sprintf("taken over after %.1f s; %s", longest.Seconds(), r.Remark)
		}},
		fleetRow("fleet: all consumers are away for a while", two, func(f *fleetUnderTest, _, consumers []*run) {
			for _, c := range consumers {
				c.kill()
			}
			f.send(3, f.sticky)
			for i := range consumers {
				consumers[i] = f.consumers[i].start()
			}
			f.send(8, f.sticky)
		}),
		fleetRow("fleet: a consumer is paused past its session", two, func(f *fleetUnderTest, _, consumers []*run) {
			consumers[0].pause()
			f.send(9, f.sticky)
			consumers[0].resume()
			f.send(3, f.sticky)
		}),
		{name: "fleet: kill -9 of the broker", first: true, run: func(t *testing.T, r *result) {
			o := two
			o.broker = servertest.StartBroker(t, servertest.BrokerOptions{})
			f := newFleet(t, o)
			f.start()
			f.send(2, f.sticky)
			for range times {
				f.meanwhile(func() {
					time.Sleep(moment(0, time.Second))
					f.broker.Kill()
					time.Sleep(moment(0, time.Second))
					f.broker.Restart()
				})
				f.send(8, f.sticky)
				f.pending.Wait()
			}
			f.send(3, f.sticky)
			f.settled(r, nil)
		}},
		{name: "fleet: the broker is restarted, and then slow", run: func(t *testing.T, r *result) {
			o := two
			o.broker = servertest.StartBroker(t, servertest.BrokerOptions{})
			f := newFleet(t, o)
			f.start()
			f.send(2, f.sticky)
			f.meanwhile(func() {
				f.broker.Stop()
				f.broker.Start()
				for range short(3, 20) {
					f.broker.Pause()
					time.Sleep(1500 * time.Millisecond)
					f.broker.Continue()
					time.Sleep(500 * time.Millisecond)
				}
			})
			f.send(short(12, 60), f.sticky)
			f.settled(r, nil)
		}},
		{name: "fleet: InfluxDB is away", run: func(t *testing.T, r *result) {
			f := newFleet(t, two)
			f.start()
			f.send(2, f.sticky)
			f.meanwhile(func() {
				f.server.Stop()
				time.Sleep(short(8*time.Second, time.Minute))
				f.server.Start()
			})
			f.send(short(10, 65), f.sticky)
			f.settled(r, nil)
		}},
		fleetRow("fleet: partitions are added", two, func(f *fleetUnderTest, _, _ []*run) {
			f.addPartitions("windows", 6)
			f.addPartitions("reports", 6)
			f.send(8, f.sticky)
		}),
		fleetRow("fleet: unreadable records", two, func(f *fleetUnderTest, _, _ []*run) {
			f.spoil()
			f.send(3, f.sticky)
		}),
		fleetRow("fleet: an exporter moves between collectors", two, func(f *fleetUnderTest, _, _ []*run) {
			f.send(2, func(e, n int) []int { return []int{(e + 1) % 2} })
			f.send(2, f.sticky)
			f.send(1, func(e, n int) []int { return []int{(e + n/600) % 2} })
		}),
		{name: "fleet: all restart, one after the other", first: true, run: func(t *testing.T, r *result) {
			f := newFleet(t, two)
			collectors, consumers := f.start()
			console := f.console.start()
			f.send(3, f.sticky)
			restart := func(runs []*run, places []*place, route func(i int) func(int, int) []int) {
				for i := range runs {
					f.meanwhile(func() {
						runs[i].stop()
						runs[i] = places[i].start()
					})
					f.send(5, route(i))
					f.pending.Wait()
				}
			}
			for end := time.Now().Add(short(0, 9*time.Minute)); ; {
				// The other collectors take over what one would have received.
				restart(collectors, f.collectors, func(i int) func(int, int) []int { return func(int, int) []int { return []int{1 - i} } })
				restart(consumers, f.consumers, func(int) func(int, int) []int { return f.sticky })
				consoles := []*run{console}
				restart(consoles, []*place{f.console}, func(int) func(int, int) []int { return f.sticky })
				console = consoles[0]
				if time.Now().After(end) {
					break
				}
			}
			f.send(3, f.sticky)
			f.settled(r, nil)
			f.balanced(console)
		}},
	}
}

// addPartitions lets a topic have more partitions than before.
func (f *fleetUnderTest) addPartitions(topic string, n int32) {
	f.t.Helper()
	topic = f.broker.Prefix + topic
	client := f.broker.Client()
	var err error
	waitFor(f.t, time.Minute, "partitions of "+topic, func() bool { // the client may not know the controller yet
		var resp *kafka.CreatePartitionsResponse
		resp, err = client.CreatePartitions(f.t.Context(), &kafka.CreatePartitionsRequest{
			Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: n}},
		})
		if err == nil {
			err = resp.Errors[topic]
		}
		return err == nil
	})
	if err != nil {
		f.t.Errorf("adding partitions to %s: %v", topic, err)
	}
}

// balanced waits until the console says that all reports are stored, none twice, and that its ledger adds up.
func (f *fleetUnderTest) balanced(console *run) {
	f.t.Helper()
	var body string
	ok := waitFor(f.t, time.Minute, "the fleet's ledger to settle", func() bool {
		_, body = console.get("/api/ledger")
		var ledger struct{ Balances []balance }
		if err := json.Unmarshal([]byte(body), &ledger); err != nil || len(ledger.Balances) == 0 {
			return false
		}
		b := &ledger.Balances[0]
		return b.Received == f.sent && b.Stored == f.sent && sum(b.InFlight) == 0 && b.Unsettled == 0
	})
	if !ok {
		_, members := console.get("/api/fleet")
		f.t.Errorf("%d reports were sent; the fleet's ledger is %s\n%s", f.sent, body, members)
	}
}

// oneByOne holds that reports went through Kafka one by one.
func (f *fleetUnderTest) oneByOne() {
	f.t.Helper()
	batches := 0
	for p := range 4 {
		for _, m := range f.broker.Read(f.broker.Prefix+"reports", p, 0) {
			if h, err := fleet.ReadHead(m.Header(fleet.HeaderKey)); err == nil && h.Kind == fleet.Reports {
				batches++
			}
		}
	}
	if batches < 10 {
		f.t.Errorf("%d batches of reports went through Kafka", batches)
	}
}

// put writes a record as another program would.
func (f *fleetUnderTest) put(topic string, partition int, head, value []byte) {
	f.t.Helper()
	m := servertest.Message{Value: value}
	if head != nil {
		m.Headers = []kafka.Header{{Key: "hopscope", Value: head}}
	}
	f.broker.Write(topic, partition, m)
}

// spoil writes records into every partition that are torn, bit-flipped, of another version, or nonsense.
func (f *fleetUnderTest) spoil() {
	f.t.Helper()
	for _, topic := range []string{"windows", "reports", "series"} {
		name := f.broker.Prefix + topic
		partitions := 4
		if topic == "series" {
			partitions = 1
		}
		for p := range partitions {
			_, end := f.broker.Offsets(name, p)
			var good servertest.Message
			if all := f.broker.Read(name, p, max(0, end-20)); len(all) > 0 {
				good = all[0]
			}
			head := good.Header("hopscope")
			flip := func(b []byte) []byte {
				b = slices.Clone(b)
				if len(b) > 0 {
					b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
				}
				return b
			}
			future := slices.Clone(head)
			if len(future) > 0 {
				future[0] = 99
			}
			f.put(name, p, head, good.Value[:len(good.Value)/2]) // torn
			f.put(name, p, head, flip(good.Value))
			f.put(name, p, flip(head), good.Value)
			f.put(name, p, future, good.Value) // of a later version
			f.put(name, p, nil, []byte("nonsense"))
			f.put(name, p, []byte{}, nil)
		}
	}
}
