package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/collector/stores"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/events"
	"github.com/hopscope/hopscope/inference/fleet"
	"github.com/hopscope/hopscope/inference/fleet/roster"
	"github.com/hopscope/hopscope/inference/shard"
	"github.com/hopscope/hopscope/inference/window"
	"github.com/hopscope/hopscope/ingest"
	"github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/internal/servertest"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

func TestMain(m *testing.M) { servertest.Main(m) }

const (
	testWindow = time.Second
	testSlices = 4
	testSeed   = 77
)

// memory is a store that keeps points as InfluxDB does: one with the same series and time takes the place of the other.
type memory struct {
	mu     sync.Mutex
	points map[string]string
	fails  bool
}

func (m *memory) Name() string { return "memory" }
func (m *memory) Close() error { return nil }

func (m *memory) Write(_ context.Context, b *sink.Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails {
		return fmt.Errorf("down")
	}
	for i := range b.Points {
		k, v := pointText(&b.Points[i])
		m.points[k] = v
	}
	return nil
}

func (m *memory) fail(down bool) {
	m.mu.Lock()
	m.fails = down
	m.mu.Unlock()
}

func (m *memory) wipe() {
	m.mu.Lock()
	m.points = map[string]string{}
	m.mu.Unlock()
}

func pointText(p *sink.Point) (key, value string) {
	return fmt.Sprint(p.Measurement, p.Tags, p.Time), fmt.Sprint(p.Fields)
}

func (m *memory) all() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]string{}
	for k, v := range m.points {
		out[k] = v
	}
	return out
}

// world is a fleet on a real broker: collectors that are simulated, and consumers.
type world struct {
	t      *testing.T
	b      *servertest.Broker
	log    *kafka.Log
	topics Topics
	store  *memory
	start  int64 // of the first window
	names  []string
	pubs   map[string]*fleet.Publisher
	seen   map[int64]*window.Partial // what one process would have seen, by label
	labels []int64
	rng    *rand.Rand

	session, drain time.Duration // of consumers: so long that a slow machine keeps its partitions

	mu    sync.Mutex
	clock int64 // of the fleet, which stands wherever a test set it: no window closes because this machine is busy
	set   time.Time
	goes  bool // the clock goes on from there: the test is about the patience of consumers
}

// now is the clock of the fleet.
func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.goes {
		return time.Unix(0, w.clock+int64(time.Since(w.set)))
	}
	return time.Unix(0, w.clock)
}

// at sets the clock to the end of a window.
func (w *world) at(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock, w.set = w.label(n)+int64(testWindow)/100, time.Now()
}

func newWorld(t *testing.T, collectors int) *world {
	b := servertest.SharedBroker(t)
	w := &world{
		t: t, b: b, topics: Topics{Windows: b.Prefix + "windows", Series: b.Prefix + "series", State: b.Prefix + "state"},
		store: &memory{points: map[string]string{}}, pubs: map[string]*fleet.Publisher{}, seen: map[int64]*window.Partial{},
		rng: rand.New(rand.NewPCG(1, 2)), session: 20 * time.Second, drain: 20 * time.Second,
	}
	b.CreateTopic(w.topics.Windows, testSlices)
	b.CreateTopic(w.topics.Series, 1)
	b.CreateTopic(w.topics.State, 2*testSlices+1, "cleanup.policy=compact")
	cfg := kafka.DefaultLogConfig()
	cfg.HeaderKey, cfg.Wait = fleet.HeaderKey, 50*time.Millisecond
	w.log = kafka.NewLog(b.Client(), cfg)
	for i := range collectors {
		name := fmt.Sprint("c", i)
		w.names = append(w.names, name)
		w.pubs[name] = fleet.NewPublisher(fleet.PublisherConfig{From: name, Boot: uint64(100 + i), Slicer: window.NewSlicer(testSeed, testSlices), Window: int64(testWindow)})
	}
	w.start = time.Now().Add(-time.Hour).Truncate(testWindow).UnixNano()
	w.clock, w.set = w.start, time.Now()
	return w
}

func (w *world) label(n int) int64 { return w.start + int64(n+1)*int64(testWindow) }

// part is what a collector saw of a window.
func (w *world) part(collector, n int) *window.Partial {
	end := w.label(n)
	p := &window.Partial{}
	p.Span(end-int64(testWindow), end)
	for i := range 20 {
		h := p.Hop(inference.HopKey{Node: uint32(1 + i), EgressIf: 3})
		for range 5 {
			h.Latency.AddValue(uint64(1000 + w.rng.IntN(5000)))
			p.Reports++
		}
	}
	for i := range 6 {
		k := decode.FlowKey{SrcPort: uint16(1000*collector + i), DstPort: 80, Proto: 6, IPVersion: 4}
		f := window.FlowPart{Key: k, Packets: uint64(1 + w.rng.IntN(9)), PathID: 7, Last: end - int64(i) - 1, Path: []inference.HopKey{{Node: uint32(i + 1), EgressIf: 3}, {Node: uint32(i), EgressIf: 4}}}
		f.Hop(f.Path[0]).Latency.AddValue(uint64(100 + i))
		p.AddFlow(&f)
		p.FlowCount++
	}
	p.AddExporters([]inference.ExporterStats{{
		ExporterKey: inference.ExporterKey{Addr: decode.Addr{15: byte(collector + 1)}, Node: uint32(collector + 1)}, Reports: p.Reports, Lost: int64(w.rng.IntN(4)), Last: end - 1, Sequenced: true,
	}})
	p.AddDrops(&inference.DropStats{Node: uint32(collector), Reason: 4, Count: uint64(1 + w.rng.IntN(3)), Last: end - 5})
	// What came later than the rest, in sections that readers have to have room for.
	k := decode.FlowKey{SrcPort: uint16(1000 * collector), DstPort: 80, Proto: 6, IPVersion: 4}
	p.AddLoss(&inference.FlowLoss{Flow: k, Packets: 50, Path: []inference.HopKey{{Node: 1, EgressIf: 3}, {Node: 2, EgressIf: 3}}})
	p.AddDeviation(&inference.Deviation{Flow: k, Ingress: 1, Digests: 9, Last: end - 3, Errors: []inference.MapError{{Kind: inference.Foreign, Node: 99, A: 1, B: 2}}})
	return p
}

// make draws what a collector saw of a window, counts it as seen, and returns its records.
func (w *world) make(name string, n int) []fleet.Out {
	w.t.Helper()
	p := w.part(slices.Index(w.names, name), n)
	end := w.label(n)
	all := w.seen[end]
	if all == nil {
		all = &window.Partial{}
		w.seen[end] = all
		w.labels = append(w.labels, end)
		slices.Sort(w.labels)
	}
	all.Merge(p)
	out, err := w.pubs[name].Window(nil, p, end, nil, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) send(out []fleet.Out) {
	w.t.Helper()
	for _, r := range out {
		if _, err := w.log.Append(w.t.Context(), w.topics.Windows, r.Partition, messagesOf([]fleet.Out{r}, time.Now())...); err != nil {
			w.t.Fatal(err)
		}
	}
}

// window has all collectors send a window.
func (w *world) window(n int) {
	for _, name := range w.names {
		w.send(w.make(name, n))
	}
	w.at(n)
}

func testAnalysis() (window.Limits, window.AdmissionLimits, events.Config) {
	flows := shard.DefaultConfig()
	ev := events.DefaultConfig()
	return flows.Limits(), window.AdmissionLimits{Hops: flows.MaxHops, Flows: flows.DailyFlows, Exporters: 1 << 16}, ev
}

// want is what one process writes.
func (w *world) want() map[string]string {
	limits, admission, cfg := testAnalysis()
	d, a := events.New(cfg), window.NewAdmission(admission)
	out := map[string]string{}
	for _, end := range w.labels {
		p := w.seen[end]
		a.Fold(p, end)
		win := p.Window(limits)
		found := slices.Clone(d.Step(&win))
		a.Mark(&win, found)
		sw := sink.NewWindow("fleet", &win, found)
		sw.Run = &sink.Run{Boot: fleetRun, Version: "test", Start: end - int64(testWindow), Reports: win.Reports}
		for _, pt := range sw.Points() {
			k, v := pointText(&pt)
			out[k] = v
		}
	}
	return out
}

// process stands between a consumer and everything outside of it. It can be killed: from then on nothing comes out of it any more, as
// far as others see. And it can stand still: what it does comes out when it goes on.
type process struct {
	kafkago.RoundTripper
	store *memory

	mu    sync.Mutex
	dead  bool
	still chan struct{} // closed when it goes on; nil while it runs
}

var errDead = errors.New("killed")

func (p *process) wait() error {
	p.mu.Lock()
	still, dead := p.still, p.dead
	p.mu.Unlock()
	if still != nil {
		<-still
		return p.wait()
	}
	if dead {
		return errDead
	}
	return nil
}

func (p *process) RoundTrip(ctx context.Context, addr net.Addr, req kafkago.Request) (kafkago.Response, error) {
	if err := p.wait(); err != nil {
		return nil, err
	}
	res, err := p.RoundTripper.RoundTrip(ctx, addr, req)
	if werr := p.wait(); werr != nil {
		return nil, werr
	}
	return res, err
}

func (p *process) Name() string { return "memory" }
func (p *process) Close() error { return nil }

func (p *process) Write(ctx context.Context, b *sink.Batch) error {
	if err := p.wait(); err != nil {
		return err
	}
	return p.store.Write(ctx, b)
}

func (p *process) kill() {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
}

func (p *process) pause() (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	still := make(chan struct{})
	p.still = still
	return func() {
		p.mu.Lock()
		p.still = nil
		p.mu.Unlock()
		close(still)
	}
}

type consumer struct {
	*Consumer
	*process
	group  *kafka.Group
	cancel context.CancelFunc
	done   chan error
	ended  bool
}

// consume starts a consumer.
func (w *world) consume(id string, change func(*Config, *Options)) *consumer {
	w.t.Helper()
	limits, admission, ev := testAnalysis()
	cfg := defaultConfig()
	cfg.Session, cfg.Drain, cfg.Checkpoint, cfg.Corrections, cfg.Patience = w.session, w.drain, 300*time.Millisecond, 30*time.Minute, 20
	level := slog.LevelError
	if os.Getenv("FLEET_LOG") != "" {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	client := w.b.Client()
	process := &process{RoundTripper: client.Transport, store: w.store}
	client.Transport = process
	logCfg := kafka.DefaultLogConfig()
	logCfg.HeaderKey, logCfg.Wait = fleet.HeaderKey, 50*time.Millisecond
	kl := kafka.NewLog(client, logCfg)
	groupTopics := map[string]int{w.topics.Windows: testSlices, w.topics.Series: 1}
	if w.topics.Reports != "" {
		groupTopics[w.topics.Reports] = testSlices
	}
	group := kafka.NewGroup(client, kl, kafka.GroupConfig{
		Name: w.b.Prefix + "g", Topics: groupTopics, Session: cfg.Session, Rebalance: cfg.Drain * 4 / 3,
	}, log)
	queue := sink.DefaultQueueConfig()
	queue.RetryMin, queue.RetryMax = 10*time.Millisecond, 100*time.Millisecond
	opt := Options{
		ID: id, Log: log, Version: "test", Now: w.now, Params: roster.Params{Name: "fleet", Slices: testSlices, Window: testWindow}, Topics: w.topics, Kafka: kl, Group: group,
		Stores: []stores.Store{{Name: "memory", Writer: process, Queue: queue}},
		Limits: limits, Admission: admission, Events: ev,
		Expected: func() (out []fleet.Expected) {
			for _, n := range w.names {
				out = append(out, fleet.Expected{Name: n})
			}
			return out
		},
	}
	if change != nil {
		change(&cfg, &opt)
	}
	con, err := New(cfg, opt)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &consumer{Consumer: con, process: process, group: group, cancel: cancel, done: make(chan error, 1)}
	go func() { c.done <- con.Run(ctx) }()
	w.t.Cleanup(func() { w.stop(c) })
	return c
}

func (w *world) stop(c *consumer) {
	w.t.Helper()
	if c.ended {
		return
	}
	c.ended = true
	c.cancel()
	select {
	case err := <-c.done:
		if err != nil {
			w.t.Error(err)
		}
	case <-time.After(testkit.Patience):
		w.t.Error("a consumer does not end")
	}
}

func (w *world) eventually(what string, f func() bool) {
	w.t.Helper()
	testkit.Until(w.t, what, f)
}

// briefly gives consumers a short session, for tests in which one is killed or stands still and another one takes over.
func (w *world) briefly() { w.session, w.drain = 1500*time.Millisecond, 2*time.Second }

// equal waits until the store has what one process would have written, apart from revisions. Points of the series but are left out.
func (w *world) equal(but ...string) {
	w.t.Helper()
	want := w.want()
	without := func(points map[string]string) {
		for k := range points {
			if slices.ContainsFunc(but, func(series string) bool { return strings.HasPrefix(k, series+"[") }) {
				delete(points, k)
			}
		}
	}
	without(want)
	var diff []string
	if testkit.Await(func() bool {
		got := w.store.all()
		without(got)
		diff = diff[:0]
		for k, v := range want {
			switch g, ok := got[k]; {
			case !ok:
				diff = append(diff, "missing: "+k)
			case g != v && withoutRevision(g) != v:
				diff = append(diff, "different: "+k+"\n  got  "+g+"\n  want "+v)
			}
		}
		for k := range got {
			if _, ok := want[k]; !ok {
				diff = append(diff, "too much: "+k)
			}
		}
		return len(diff) == 0
	}) {
		return
	}
	slices.Sort(diff)
	w.t.Fatalf("%d of %d points differ:\n%s", len(diff), len(want), strings.Join(diff[:min(8, len(diff))], "\n"))
}

func withoutRevision(fields string) string {
	if i := strings.LastIndex(fields, " {revision "); i >= 0 {
		return fields[:i] + "]"
	}
	return fields
}

var _ ingest.Log = (*kafka.Log)(nil)
var _ ingest.Group = (*kafka.Group)(nil)

// A consumer has room for all that a record may have.
func TestLimits(t *testing.T) {
	v := reflect.ValueOf(ownerOf(t, false).w.c.limits)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("no %s: a record with some is refused", v.Type().Field(i).Name)
		}
	}
}

// Two collectors, one consumer: the points are those of one process.
func TestConsume(t *testing.T) {
	w := newWorld(t, 2)
	c := w.consume("a", nil)
	for n := range 5 {
		w.window(n)
	}
	w.equal()
	// Drops of two neighbours have a cause in common, which the owner finds as one process does.
	explains := func(v string) bool {
		return strings.Contains(v, " explains 2 drops; ") && strings.Contains(v, "link 0–1")
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(w.store.all())), explains) {
		t.Error("the points report of no cause")
	}
	// After five windows what is usual at a hop is not known yet, and consoles show that.
	documents := 0
	for _, m := range w.b.Read(w.topics.Series, 0, 0) {
		h, err := fleet.ReadHead(m.Header(fleet.HeaderKey))
		if err != nil || h.Kind != fleet.Whole {
			continue
		}
		d, err := fleet.DecodeWhole(fleet.NewCodec(0, window.Limits{}), m.Value)
		if err != nil {
			t.Fatal(err)
		}
		if documents++; !d.Learns(inference.HopKey{Node: 1, EgressIf: 3}) {
			t.Errorf("the document of window %d says nothing of learning: %+v", (d.End.UnixNano()-w.start)/int64(testWindow), d.Totals)
		}
	}
	if documents < 5 {
		t.Errorf("%d documents", documents)
	}
	w.eventually("the consumer is ready", func() bool { return len(c.NotReady()) == 0 })
	var reports uint64
	for _, p := range w.seen {
		reports += p.Reports
	}
	for _, b := range c.Balances() {
		if b.Received != reports || b.Stored != reports || b.Unsettled != 0 {
			t.Errorf("ledger %+v; want %d stored", b, reports)
		}
	}
	// It is ready to be taken over: what it did is not done again.
	w.stop(c)
	written := w.store.all()
	w.store.wipe()
	c = w.consume("b", nil)
	w.window(5)
	w.eventually("the window is written", func() bool { return len(w.store.all()) > 20 })
	for k := range written {
		if _, twice := w.store.all()[k]; twice {
			t.Fatalf("written again after an orderly end: %s", k)
		}
	}
	w.store.mu.Lock()
	for k, v := range written {
		w.store.points[k] = v
	}
	w.store.mu.Unlock()
	w.equal()
}

// Reports that find no room are counted by the limit that keeps them out, those of other records and refusals are not.
func TestConsumerCrowded(t *testing.T) {
	part := &fleet.Record{Head: fleet.Head{Kind: fleet.Part, Reports: 10}}
	mark := &fleet.Record{Head: fleet.Head{Kind: fleet.Mark, Reports: 10}}
	for _, tt := range []struct {
		record        *fleet.Record
		kind          fleet.EventKind
		err           error
		evicted       map[int64]uint64
		full, crowded uint64
	}{
		{part, fleet.Nothing, nil, nil, 0, 0},
		{part, fleet.Refused, fleet.ErrFull, nil, 10, 0},
		{part, fleet.Refused, fleet.ErrFuture, nil, 0, 10},
		{part, fleet.Refused, fleet.ErrFuture, map[int64]uint64{1: 3, 2: 4}, 0, 17},
		{part, fleet.Nothing, nil, map[int64]uint64{1: 3}, 0, 3},
		{part, fleet.Refused, fleet.ErrOld, nil, 0, 0},
		{mark, fleet.Refused, fleet.ErrFull, nil, 0, 0},
	} {
		c := &Consumer{log: slog.New(slog.DiscardHandler), loggedLeft: map[string]bool{}, series: &stores.Set{}, receivers: &stores.Set{}}
		c.countFull(tt.record, tt.kind, tt.err, tt.evicted)
		if c.full != tt.full || c.windowsFull != tt.crowded {
			t.Errorf("%v, %v, %v, %v: %d and %d, want %d and %d", tt.record.Head.Kind, tt.kind, tt.err, tt.evicted, c.full, c.windowsFull, tt.full, tt.crowded)
		}
	}
}

// What the limits of a consumer leave out it says in sentences, and it stays ready. With others, nothing is left out.
func TestConsumerLeavesOut(t *testing.T) {
	for most, want := range map[int]string{1: "raise events.max_hops", 1 << 12: ""} {
		w := newWorld(t, 2)
		c := w.consume("a", func(_ *Config, o *Options) { o.Events.MaxHops = most })
		for n := range 3 {
			w.window(n)
		}
		w.eventually("the last window", func() bool { label, _, _ := c.Last(); return label >= w.start+3*int64(testWindow) })
		if said := strings.Join(c.LeftOut(), "\n"); !strings.Contains(said, want) || (said == "") != (want == "") {
			t.Errorf("with places for %d hops it says %q, want %q", most, said, want)
		}
		w.eventually("the consumer is ready", func() bool { return len(c.NotReady()) == 0 })
	}
}
