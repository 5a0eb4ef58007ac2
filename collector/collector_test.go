package collector

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/decode/pint"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/ingest/udp"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/emu"
	"github.com/hopscope/hopscope/p4/emu/scenario"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/influx"
	"github.com/hopscope/hopscope/sink/parquet"
)

// soak is how long the long tests run: HOPSCOPE_SOAK, or a few seconds.
func soak(t *testing.T) time.Duration {
	d, err := time.ParseDuration(os.Getenv("HOPSCOPE_SOAK"))
	if err != nil {
		d = 3 * time.Second
	}
	t.Logf("for %s (HOPSCOPE_SOAK)", d)
	return d
}

// program is the settings of a program with a source and two stores.
type program struct {
	Config   `yaml:""`
	UDP      udp.Config `yaml:"udp"`
	Analysis `yaml:""`
	Influx   StoreConfig[influx.Config]  `yaml:"influx"`
	Parquet  StoreConfig[parquet.Config] `yaml:"parquet"`
}

func testConfig() *program {
	cfg := &program{}
	settings.SetDefaults(cfg)
	cfg.Window = 100 * time.Millisecond
	cfg.Shards = 3
	cfg.UDP.Listen = []string{"127.0.0.1:0", "[::1]:0"}
	cfg.UDP.Workers = 2
	cfg.Flows.MemoryBytes = 32 << 20
	return cfg
}

// running is a collector that runs until stop.
type running struct {
	*Collector
	t      *testing.T
	cancel context.CancelFunc
	done   chan error
}

func start(t *testing.T, cfg *program) *running {
	t.Helper()
	return startWith(t, cfg, Options{})
}

// startWith is start with a network and plans for PINT.
func startWith(t *testing.T, cfg *program, opt Options) *running {
	t.Helper()
	opt.Seed = 1
	if opt.Log == nil {
		opt.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	var err error
	if opt.Sources, err = OpenSources(cfg); err != nil {
		t.Fatal(err)
	}
	if opt.Stores, opt.Reports, err = OpenStores(cfg, Live); err != nil {
		t.Fatal(err)
	}
	c, err := New(cfg.Config, cfg.Analysis, opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{c, t, cancel, make(chan error, 1)}
	go func() { r.done <- c.Run(ctx) }()
	t.Cleanup(func() { cancel() })
	return r
}

func (r *running) stop() Summary {
	r.t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		r.t.Fatal(err)
	}
	return r.Summary(1000, 1000)
}

// waitFor polls until the condition holds.
func (r *running) waitFor(what string, holds func() bool) {
	r.t.Helper()
	if !testkit.Await(holds) {
		r.t.Fatalf("waited in vain for %s", what)
	}
}

// TestLedgerAtEveryMoment loads a collector beyond what its queues hold and looks at the ledger all the time.
func TestLedgerAtEveryMoment(t *testing.T) {
	cfg := testConfig()
	cfg.ShardQueueBatches = 1
	cfg.UDP.ReceiveBufferBytes = 65536
	r := start(t, cfg)
	watching, stopWatching := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	looks := 0
	watch.Go(func() {
		for watching.Err() == nil {
			looks++
			for _, b := range r.ledger.Snapshot() {
				if b.Unsettled != 0 {
					t.Errorf("ledger does not balance: %s", LedgerLine(&b))
					return
				}
			}
			runtime.Gosched()
		}
	})
	gen, err := traffic.New(traffic.Config{Seed: 1, Flows: 1000, Hops: 5, Exporters: 8, Bytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	sent := uint64(0)
	for _, to := range r.Addrs() {
		res, err := traffic.Send(t.Context(), traffic.SendConfig{To: to, Count: 100_000}, gen)
		if err != nil {
			t.Fatal(err)
		}
		sent += res.Sent
	}
	s := r.stop()
	stopWatching()
	watch.Wait()
	b := s.Ledger.Balance
	t.Logf("%d looks; %s", looks, LedgerLine(&b))
	if said := strings.Contains(strings.Join(r.Status().LeftOut, "\n"), "raise shard_queue_batches"); said != (b.Dropped[DroppedShardQueue.String()] > 0) {
		t.Errorf("left out: %q", r.Status().LeftOut)
	}
	if b.Received != sent || b.Unsettled != 0 {
		t.Errorf("%d reports sent, %s", sent, LedgerLine(&b))
	}
	for stage, n := range b.InFlight {
		if n != 0 {
			t.Errorf("%d still in flight at %s after the end", n, stage)
		}
	}
	// The exporters' sequence numbers show the losses of the ledger, except those at either end of the run, where no
	// neighbour shows them. The tracking saw the reports that a full shard queue dropped.
	lost := int64(0)
	for _, e := range s.Exporters {
		lost += e.Lost
	}
	if kernel := b.Dropped["kernel"]; lost > kernel {
		t.Errorf("tracking says %d lost, the kernel dropped only %d", lost, kernel)
	}
}

// TestNothingLost is the same without overload: every report of every flow is counted once.
func TestNothingLost(t *testing.T) {
	r := start(t, testConfig())
	load := traffic.Config{Seed: 2, Flows: 300, Hops: 4, Exporters: 5, Bytes: 200}
	gen, err := traffic.New(load)
	if err != nil {
		t.Fatal(err)
	}
	const n, atOnce = 20_000, 500 // a socket buffer has room for some hundreds, however late the collector comes to it
	for sent := uint64(atOnce); sent <= n; sent += atOnce {
		if _, err := traffic.Send(t.Context(), traffic.SendConfig{To: r.Addrs()[0], Rate: 20_000, Count: atOnce}, gen); err != nil {
			t.Fatal(err)
		}
		r.waitFor("the reports are received", func() bool { return r.opt.Sources[0].Stats().Frames >= sent })
	}
	s := r.stop()
	if s.Reports != n || s.Malformed != 0 || s.Ledger.Stored != n {
		t.Fatalf("%d sent; %d reports, %d malformed; %s", n, s.Reports, s.Malformed, LedgerLine(&s.Ledger.Balance))
	}
	packets := uint64(0)
	for _, f := range s.Flows {
		packets += f.Packets
		if len(f.Path.NodeIDs) != load.Hops || !f.Path.Complete {
			t.Fatalf("flow %v has path %v, want %d hops", f.Flow, f.Path, load.Hops)
		}
	}
	if packets != n || s.FlowCount != load.Flows {
		t.Errorf("%d packets of %d flows, want %d of %d", packets, s.FlowCount, n, load.Flows)
	}
	records := uint64(0)
	for _, h := range s.Hops {
		records += h.Reports
	}
	if records != n*uint64(load.Hops) {
		t.Errorf("%d hop records, want %d", records, n*load.Hops)
	}
	for _, e := range s.Exporters {
		if e.Lost != 0 || e.Duplicated != 0 || e.Restarts != 0 {
			t.Errorf("exporter %+v, want no loss", e)
		}
	}
}

// TestRandomBytes sends noise to the report port: random bytes, and good reports with bytes changed or cut off. The
// process stays, memory stays flat, and every datagram is counted.
func TestRandomBytes(t *testing.T) {
	cfg := testConfig()
	// Noise names ever new nodes and exporters: tables that are small are full when the measurement begins.
	cfg.CorrectionsBytes, cfg.Exporters.Tracking.MaxExporters = 1<<20, 256
	cfg.Flows.MaxHops, cfg.Flows.DailyFlows, cfg.Events.MaxHops = 256, 100, 256
	r := start(t, cfg)
	seed := testkit.Seed(t)
	noise, err := traffic.NewNoise(traffic.Config{Seed: seed, Flows: 1000, Hops: 5, Exporters: 8, Bytes: 400})
	if err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	length := soak(t)
	sent := uint64(0)
	send := func(d time.Duration) {
		res, err := traffic.Send(t.Context(), traffic.SendConfig{To: r.Addrs()[0], Rate: 20_000, Duration: d}, noise)
		if err != nil {
			t.Fatal(err)
		}
		sent += res.Sent
	}
	send(length / 3) // tables and batches grow to the size of the traffic
	for sent < 20_000 {
		send(time.Second) // on a busy machine
	}
	before := heap()
	send(length * 2 / 3)
	after := heap()
	for end := time.Now().Add(testkit.Patience); after > before+16<<20 && time.Now().Before(end); after = heap() {
		time.Sleep(50 * time.Millisecond) // windows under way have memory that is free after them
	}
	s := r.stop()
	b := s.Ledger.Balance
	t.Logf("%d datagrams, heap %d to %d kB; %s; malformed %v", sent, before>>10, after>>10, LedgerLine(&b), s.MalformedReasons)
	if most := TotalMemory(Memory(&cfg.Config, &cfg.Analysis, cfg)); after > before+16<<20 || after > uint64(most) {
		t.Errorf("seed %d: heap grew from %d to %d bytes, and may take %d", seed, before, after, most)
	}
	if st := r.opt.Sources[0].Stats(); st.Frames+st.KernelDropped != sent || b.Unsettled != 0 {
		t.Errorf("seed %d: %d datagrams sent, %+v counted; %s", seed, sent, st, LedgerLine(&b))
	}
	reasons := uint64(0)
	for _, n := range s.MalformedReasons {
		reasons += n
	}
	if int64(reasons) != b.Dropped["malformed"] || reasons+s.Reports+uint64(b.Dropped["kernel"])+uint64(b.Dropped["foreign"]) != b.Received {
		t.Errorf("seed %d: %d by reason, %d reports; %s", seed, reasons, s.Reports, LedgerLine(&b))
	}
}

// TestDemoNetwork plays the emulated network and wants each of its faults found, and ended. How much an exporter pauses, and
// when enough has come to end a loss, depends on the machine here; TestDemoRecovers looks at both.
func TestDemoNetwork(t *testing.T) {
	t.Parallel()
	emulated, err := scenario.PINTDemo()
	if err != nil {
		t.Fatal(err)
	}
	emulated.Epoch = time.Now()
	network, err := emu.New(emulated, 1)
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig()
	cfg.Events.Warmup = 15
	ids := make([]uint32, network.Graph().NumNodes())
	for i := range ids {
		ids[i] = network.NodeID(i)
	}
	r := startWith(t, cfg, Options{Network: &Network{Nodes: ids, Links: network.Graph().NodePairs()}, Plans: []*pint.Plan{emulated.Plan}})
	// Ten times as fast, with windows of a tenth of a second: what the demo shows in three minutes.
	if _, err := scenario.Play(t.Context(), network, scenario.PlayConfig{Reports: r.Addrs()[0], Speed: 10, Until: emulated.Repeat}); err != nil {
		t.Fatal(err)
	}
	s := r.stop()
	traced := 0
	for i := range s.Flows {
		f := &s.Flows[i]
		if f.Path.Digests == 0 || !f.Path.Complete {
			continue
		}
		traced++
		for h := range f.Hops {
			if f.Hops[h].Latency == nil {
				t.Errorf("no latency at hop %d of %s, whose path is known from %d digests", h+1, f.Key, f.Path.Digests)
			}
		}
	}
	if traced < 20 {
		t.Errorf("the paths of %d flows were traced", traced)
	}
	started, ended := map[string]int{}, map[string]int{}
	for _, f := range s.Findings {
		started[f.Kind]++
		if f.End != 0 {
			ended[f.Kind]++
		}
	}
	t.Logf("findings %v, ended %v", started, ended)
	for _, k := range []inference.Kind{inference.PathChanged, inference.PacketDrops, inference.ExporterLoss, inference.HighLatency, inference.HighQueue, inference.RoutingLoop} {
		if started[k.String()] == 0 || ended[k.String()] == 0 && k != inference.ExporterLoss {
			t.Errorf("no finding of kind %s, or none that ended", k)
		}
	}
}

// TestReload applies a changed file, and refuses a wrong one as a whole.
func TestReload(t *testing.T) {
	cfg := testConfig()
	r := start(t, cfg)
	next := *cfg
	next.Exporters.Profile = "onos"
	next.Events.FalseADay = 20
	if err := r.Reload(next.Config, next.Analysis); err != nil {
		t.Errorf("Reload = %v", err)
	}
	next.Exporters.Profile = "nobody"
	if err := r.Reload(next.Config, next.Analysis); err == nil {
		t.Error("Reload takes a dialect that does not exist")
	}
	r.stop()
}

// TestReloadTogether reloads from many goroutines while no window ends.
func TestReloadTogether(t *testing.T) {
	cfg := testConfig()
	c := newEngine(t, nil, Options{})
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range testkit.Rounds(200, 1000) {
				if err := c.Reload(cfg.Config, cfg.Analysis); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLedgerLine(t *testing.T) {
	b := sink.Balance{Sink: "influx", Received: 10, Stored: 7, InFlight: map[string]int64{"window": 1}, Dropped: map[string]int64{"kernel": 2, "spool": 0}}
	want := "influx: 10 received = 7 stored + 1 in flight (window 1) + 2 dropped (kernel 2)"
	if got := LedgerLine(&b); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
