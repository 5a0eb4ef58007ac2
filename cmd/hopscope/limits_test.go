package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/collector/fleet"
	"github.com/hopscope/hopscope/collector/settings"
	"github.com/hopscope/hopscope/collector/traffic"
	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/telemetry"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/p4/agent"
	"github.com/hopscope/hopscope/sink"
	"github.com/hopscope/hopscope/sink/web"
)

// limits are the settings that leave something out where more comes. Each names the number in which that is: hopscope_left_out, which the
// page, /readyz and the log have in sentences, or another metric. Those of an agent and of a control have the name of their program before
// them. Held names the test that makes more come: a case of [TestLimits],
// or FILE TEXT, where the text is in the file.
var limits = []struct{ setting, number, held string }{
	{"shard_queue_batches", "", "collector/collector_test.go raise shard_queue_batches"},
	{"alerts.max_open", "", "alerts"},
	{"exporters.metrics.memory_bytes", "", "streams"},
	{"exporters.tracking.max_exporters", "", "collector/leftout_test.go MaxExporters = 4"},
	{"ipfix.templates", "", "collector/leftout_test.go Templates = 4"},
	{"ipfix.parked_sets", "", "collector/leftout_test.go ParkedSets = 4"},
	{"udp.receive_buffer_bytes", "", "collector/collector_test.go ReceiveBufferBytes = 65536"},
	{"udp.max_datagram_bytes", "", "collector/leftout_test.go MaxDatagramBytes = 64"},
	{"afpacket.ring_bytes", "", "ingest/afpacket/source_linux_test.go c.RingBytes, c.Wait = 1<<20"},
	{"afpacket.max_frame_bytes", "", "ingest/afpacket/source_linux_test.go c.MaxFrameBytes = 100"},
	{"afxdp.umem_bytes", "", "ingest/afxdp/source_linux_test.go c.UMEMBytes, c.Mode = 1<<18, mode"},
	{"afxdp.ring_bytes", "", "ingest/afpacket/source_linux_test.go c.RingBytes, c.Wait = 1<<20"},
	{"afxdp.max_frame_bytes", "", "ingest/afxdp/source_linux_test.go c.MaxFrameBytes = 100"},
	{"otlp.max_request_bytes", "", "requests"},
	{"otlp.max_requests", "", "ingest/otlp/otlp_test.go MaxRequests"},
	{"flows.memory_bytes", "", "collector/leftout_test.go MemoryBytes = 1, 1<<20"},
	{"flows.max_path_length", "", "collector/leftout_test.go MaxPathLength = 1, 1"},
	{"flows.max_hops", "", "collector/leftout_test.go Flows.MaxHops = 16"},
	{"flows.daily_flows", "", "collector/leftout_test.go DailyFlows = 10"},
	{"flows.max_path_changes", "", "collector/leftout_test.go MaxPathChanges = 10"},
	{"flows.max_drops", "", "collector/leftout_test.go Flows.MaxDrops = 4"},
	{"pint.memory_bytes", "", "collector/leftout_pint_test.go MemoryBytes = 1 << 20"},
	{"pint.spray_bytes", "", "collector/leftout_pint_test.go SprayBytes = 64 << 10"},
	{"events.max_hops", "", "collector/leftout_test.go Events.MaxHops = 16"},
	{"events.max_flows", "", "collector/leftout_test.go Events.MaxFlows = 10"},
	{"events.max_drops", "", "collector/leftout_test.go Events.MaxDrops = 4"},
	{"events.max_probes", "", "collector/leftout_test.go Events.MaxProbes = 4"},
	{"parquet.raw_memory_bytes", "", "sink/parquet/raw_test.go func TestRawOverrun"},
	{"*.queue.max_bytes", "", "queues"},
	{"*.queue.max_batches", "", "queues"},
	{"*.spool.max_bytes", "", "spools"},
	{"*.spool.refused_bytes", "", "sink/refused_folder_test.go EvictedPoints"},
	{"syslog.max_bytes", "", "sink/notify/receiver/syslog_writer_test.go to be cut twice"},
	{"web.max_hops", "", "page"},
	{"web.max_flows", "", "page"},
	{"web.max_exporters", "", "page"},
	{"web.max_findings", "", "sink/web/api_test.go fs.openEvicted"},
	{"web.max_connections", "", "connections"},
	{"web.max_streams", "", "streams of events"},
	{"web.access.max_sessions", "", "sink/web/access/sessions_test.go web.access.max_sessions"},
	{"consume.max_open", "hopscope_left_out", "collector/fleet/leftout_test.go cfg.MaxOpen = most"},
	{"consume.max_records", "hopscope_left_out", "collector/fleet/leftout_test.go cfg.MaxRecords = most"},
	{"consume.window_bytes", "hopscope_left_out", "collector/fleet/leftout_test.go cfg.WindowBytes = size"},
	{"consume.held_bytes", "hopscope_consume_read_again_total", "collector/fleet/fault_test.go held := range"},
	{"agent send_limit_bps", "hopscope_agent_plans_refused_total", "p4/agent/limits_linux_test.go c.SendLimit = n"},
	{"agent receive_limit_bps", "hopscope_agent_plans_refused_total", "p4/agent/limits_linux_test.go c.ReceiveLimit = n"},
	{"agent probes_per_second", "hopscope_agent_plans_refused_total", "p4/agent/limits_linux_test.go c.ProbesPerSecond = n"},
	{"agent max_probes", "hopscope_agent_plans_refused_total", "p4/agent/limits_linux_test.go c.MaxProbes = int(n)"},
	{"agent mtu", "hopscope_agent_plans_refused_total", "p4/agent/limits_linux_test.go c.MTU = int(n)"},
	{"agent receive_buffer_bytes", "hopscope_agent_kernel_dropped_total", "p4/agent/limits_linux_test.go func TestLimitsOfBuffer"},
	{"agent stamp.reflector.max_sessions", "hopscope_agent_stamp_refused_total", "p4/agent/stamp_linux_test.go cfg.STAMP.Reflector.Sessions, cfg.STAMP.Reflector.Rate = 2, 20"},
	{"agent stamp.reflector.answers_per_second", "hopscope_agent_stamp_refused_total", "p4/agent/stamp_linux_test.go cfg.STAMP.Reflector.Sessions, cfg.STAMP.Reflector.Rate = 2, 20"},
	{"agent stamp.ioam.nodes", "hopscope_agent_stamp_traces_total", "p4/agent/headers_linux_test.go c.IOAM.Nodes, c.Sessions[0].SSID = 1, 6"},
	{"jsonl.keep_files", "hopscope_sink_removed_total", "sink/jsonl/file_test.go func TestRemoved"},
	{"control journal.keep", "hopscope_control_journal_removed_total", "p4/loop/journal_test.go func TestJournalRemoves"},
	{"control orchestrate.max_changes", "hopscope_control_orchestrate_unserved_interfaces", "p4/steer/orchestrate_test.go max_changes"},
	{"control orchestrate.mtu", "hopscope_control_orchestrate_unserved_interfaces", "p4/steer/orchestrate_test.go mtu"},
	{"control orchestrate.packet_bytes", "hopscope_control_orchestrate_unserved_interfaces", "p4/steer/orchestrate_test.go packet_bytes"},
	{"control delivery.margin", "hopscope_control_delivery_refused_reports", "cmd/hopscope/control_delivery_test.go d.Refused > 0"},
	{"control delivery.report_bytes", "hopscope_control_delivery_refused_reports", "cmd/hopscope/control_delivery_test.go report_bytes: %d"},
	{"control loop.budget_hops", "hopscope_control_left_out_links", "p4/loop/limits_test.go loop.budget_hops"},
	{"control loop.max_changes", "hopscope_control_left_out_links", "p4/loop/limits_test.go loop.max_changes"},
}

// unlimited are the other settings of whole numbers, by why they leave nothing out.
var unlimited = map[string][]string{
	"what a device or a plan means by its bytes": {"exporters.dialects[].dscp", "exporters.dialects[].dscp_mask", "exporters.dialects.domains[].id", "exporters.dialects.units.*",
		"exporters.sites[].id", "ipfix.sampling[].rate", "kafka.topics.replication", "pint.search_ids"},
	"how work is divided, or handed on": {"shards", "udp.workers", "udp.batch_size", "afpacket.workers", "afxdp.workers", "afxdp.queues", "pcap.batch_frames", "influx.batch_points", "kafka.slices", "kafka.in_flight", "kafka.drain_bytes",
		"kafka.max_message_bytes", "consume.record_bytes", "*.spool.segment_bytes", "parquet.memory_bytes", "parquet.row_group_rows", "influx.split_requests", "flows.path_length", "pint.sketch_bytes"},
	"when a value is worth a finding, or how many are compared":                            {"events.[^m]*", "events.min_records"},
	"how far back something is kept or merged":                                             {"corrections_bytes", "history.max_bytes", "web.history_windows", "web.access.changes_bytes", "jsonl.rotate_bytes", "consume.patience"},
	"where loss ends and a restart begins, which series and findings say of each exporter": {"exporters.tracking.window", "exporters.tracking.max_gap"},
	"the busiest of all, whose number every window has":                                    {"flows.top_flows"},
	"one more is refused, with a sentence":                                                 {"web.access.max_tokens"},
	"senders wait in the queue of the system":                                              {"otlp.max_connections"},
	"by what an agent, a switch or a node is known": {"agent mark", "agent node_id", "agent hardware_id", "agent stamp.dscp", "agent stamp.ioam.namespace", "agent stamp.sessions[].*", "control first_node_id", "control switches[].device_id",
		"control orchestrate.session", "control orchestrate.collector", "control delivery.collector",
		"control switches[].election_id"},
	"how an agent hands frames over": {"agent batch_size", "agent stamp.size"},
	"when a link is suspicious, and when its probes change, of which the status has the time": {"control collector.queue_floor_bytes", "control loop.switch_cost_hops",
		"control loop.retry_after", "control loop.audit", "control loop.raise_after", "control loop.doubt_after", "control loop.clear_after"},
	"how far back a journal goes":                                  {"control journal.max_bytes"},
	"how many flows carry each interface":                          {"control orchestrate.redundancy"},
	"what a report has of a packet, and which links reports avoid": {"control delivery.packet_bytes", "control delivery.avoid_weight"},
}

// TestLimits walks the settings: each whole number is a limit with a number for what it leaves out, or leaves nothing out.
// Then it sends about ten times as much as limits allow.
func TestLimits(t *testing.T) {
	t.Run("all", testAllLimits)
	for name, run := range limitRuns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := defaultConfig()
			cfg.UDP.Workers, cfg.UDP.Listen, cfg.Web.Listen, cfg.Window, cfg.Shards = 1, []string{"127.0.0.1:0"}, "127.0.0.1:0", 200*time.Millisecond, 1
			cfg.Flows.MemoryBytes, cfg.DrainTimeout = 32<<20, 100*time.Millisecond
			cfg.Alerts.File = filepath.Join(t.TempDir(), "alerts.yaml")
			run.set(t, &cfg)
			l := startLimited(t, &cfg)
			run.send(t, l)
			for setting, most := range run.want {
				l.leavesOut(t, setting, most)
			}
		})
	}
}

func testAllLimits(t *testing.T) {
	found := map[string]int{} // by pattern
	probes, control := defaultAgentConfig(), defaultControlConfig()
	collect := defaultConfig()
	for program, cfg := range map[string]any{"": &collect, "agent ": &probes, "control ": &control} {
		walkLimits(t, program, cfg, found)
	}
	for _, list := range unlimited {
		for _, pattern := range list {
			if found[pattern] == 0 {
				t.Errorf("%s is no setting", pattern)
			}
		}
	}
	numbers := map[string]bool{}
	for _, m := range slices.Concat(fleet.Metrics, collector.RemovedMetrics, allControlMetrics()) {
		numbers[m.Name] = true
	}
	for _, m := range agent.Metrics() {
		numbers[m.Name] = true
	}
	for _, l := range limits {
		if found[l.setting] == 0 {
			t.Errorf("%s is no setting", l.setting)
		}
		if l.number != "" && !numbers[l.number] {
			t.Errorf("%s: no metric %s", l.setting, l.number)
		}
		file, text, elsewhere := strings.Cut(l.held, " ")
		if _, here := limitRuns[l.held]; here {
			continue
		}
		source, err := os.ReadFile(filepath.Join("..", "..", file))
		if !elsewhere || err != nil || !strings.Contains(string(source), text) {
			t.Errorf("%s: %q is neither a case nor a text of a test (%v)", l.setting, l.held, err)
		}
	}
}

// walkLimits holds the whole numbers of the settings of a program against the tables, and counts what is found of these.
func walkLimits(t *testing.T, program string, cfg any, found map[string]int) {
	numbers := 0
	for key, allowed := range settings.Keys(cfg) {
		if wholeNumbers.MatchString(allowed) {
			numbers++
			name, fits := program+key, 0
			for _, l := range limits {
				if ok, err := path.Match(literal(l.setting), name); ok || err != nil {
					fits++
					found[l.setting]++
				}
			}
			for _, list := range unlimited {
				for _, pattern := range list {
					if ok, err := path.Match(literal(pattern), name); ok || err != nil {
						fits++
						found[pattern]++
					}
				}
			}
			if fits != 1 {
				t.Errorf("%s is %d times in the tables: is it a limit, and which number shows what it leaves out?", name, fits)
			}
		}
	}
	if least := map[string]int{"": 100, "agent ": 10, "control ": 10}[program]; numbers < least {
		t.Errorf("%s%d settings are whole numbers, want %d", program, numbers, least)
	}
}

// wholeNumbers is the range of a whole number in the reference. A ratio such as 0..1 looks the same, and is in the tables, too.
var wholeNumbers = regexp.MustCompile(`^[0-9]+\.\.[0-9]+$`)

// literal escapes the brackets of lists in a pattern.
func literal(pattern string) string { return strings.ReplaceAll(pattern, "[]", `\[\]`) }

// limitRun sets limits to about a tenth of what it sends, and says how much they leave out at least, by setting.
type limitRun struct {
	set  func(t *testing.T, c *config)
	send func(t *testing.T, l *limited)
	want map[string]uint64
}

var limitRuns = map[string]limitRun{
	"page": {
		set:  func(_ *testing.T, c *config) { c.Web.MaxHops, c.Web.MaxFlows, c.Web.MaxExporters = 16, 16, 16 },
		send: func(t *testing.T, l *limited) { l.stacks(t, 4000) },
		want: map[string]uint64{"web.max_hops": 24, "web.max_flows": 84, "web.max_exporters": 24},
	},
	"connections": {
		set: func(_ *testing.T, c *config) { c.Web.MaxConnections = 8 },
		send: func(t *testing.T, l *limited) {
			for range 80 {
				c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(l.url, "http://"), "/"))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
			}
		},
		want: map[string]uint64{"web.max_connections": 72},
	},
	"streams of events": {
		set: func(_ *testing.T, c *config) { c.Web.MaxStreams = 1 },
		send: func(t *testing.T, l *limited) {
			for i := range 10 {
				res, err := http.Get(l.url + "api/events")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { res.Body.Close() })
				if refused := res.StatusCode != http.StatusOK; refused != (i > 0) {
					t.Errorf("stream %d: %s", i, res.Status)
				}
			}
		},
		want: map[string]uint64{"web.max_streams": 9},
	},
	"requests": {
		set: func(_ *testing.T, c *config) {
			c.OTLP.Enabled, c.OTLP.GRPC, c.OTLP.HTTP, c.OTLP.MaxRequestBytes = true, "", "127.0.0.1:0", 65536
		},
		send: func(t *testing.T, l *limited) {
			for range 10 {
				if got := l.export(t, make([]byte, 655360), "gzip"); got != http.StatusRequestEntityTooLarge {
					t.Errorf("status %d", got)
				}
			}
		},
		want: map[string]uint64{"otlp.max_request_bytes": 10},
	},
	"streams": {
		set: func(_ *testing.T, c *config) {
			c.OTLP.Enabled, c.OTLP.GRPC, c.OTLP.HTTP, c.Exporters.Metrics.MemoryBytes = true, "", "127.0.0.1:0", 65536
		},
		send: func(t *testing.T, l *limited) {
			s := &spectrum{start: uint64(time.Now().Add(-time.Hour).UnixNano()), counts: map[string][]uint64{}}
			for i := range 2000 {
				s.counts[fmt.Sprintf("swp%d", i)] = make([]uint64, len(spectrumBounds)+1)
			}
			data, err := proto.Marshal(s.request(time.Now()))
			if err != nil {
				t.Fatal(err)
			}
			l.export(t, data, "")
		},
		want: map[string]uint64{"exporters.metrics.memory_bytes": 1000},
	},
	"alerts": {
		set: func(_ *testing.T, c *config) {
			c.Alerts.MaxOpen, c.Alerts.Learning, c.Webhook.Enabled, c.Webhook.Config.URL, c.Webhook.Spool.Enabled = 4, true, true, "http://127.0.0.1:1/", false
		},
		send: func(t *testing.T, l *limited) { l.drops(t) },
		want: map[string]uint64{"alerts.max_open": 36},
	},
	"queues": {
		set: func(t *testing.T, c *config) {
			c.Influx.Enabled, c.Influx.Config.URL, c.Influx.Spool.Enabled, c.Influx.Queue.MaxBatches = true, "http://127.0.0.1:1/", false, 1
			c.Influx.Config.Org, c.Influx.Config.Bucket = "o", "b"
			c.Influx.Config.TokenFile = filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(c.Influx.Config.TokenFile, []byte("0123456789abcdef"), 0o600); err != nil {
				t.Fatal(err)
			}
			c.Webhook.Enabled, c.Webhook.Config.URL, c.Webhook.Spool.Enabled, c.Webhook.Queue.MaxBatches = true, "http://127.0.0.1:1/", false, 1
			c.Webhook.Config.Heartbeats = true // all drops may come in one window, which is one batch
			c.Alerts.Learning, c.Alerts.Heartbeat = true, 200*time.Millisecond
		},
		send: func(t *testing.T, l *limited) {
			for range 10 {
				l.stacks(t, 1000)
				l.drops(t)
			}
		},
		want: map[string]uint64{"influx.queue.max_bytes and influx.queue.max_batches": 1, "webhook.queue.max_bytes and webhook.queue.max_batches": 1},
	},
	"spools": {
		set: func(t *testing.T, c *config) {
			c.Influx.Enabled, c.Influx.Config.URL, c.Influx.Spool.Enabled = true, "http://127.0.0.1:1/", true
			c.Influx.Config.Org, c.Influx.Config.Bucket = "o", "b"
			c.Influx.Spool.Dir, c.Influx.Spool.MaxBytes, c.Influx.Spool.SegmentBytes = t.TempDir(), 65536, 16384
			c.Influx.Config.TokenFile = filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(c.Influx.Config.TokenFile, []byte("0123456789abcdef"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		send: func(t *testing.T, l *limited) {
			for range 10 {
				l.stacks(t, 4000)
			}
		},
		want: map[string]uint64{"influx.spool.max_bytes": 1},
	},
}

// A page says in /readyz what its limits left out, whatever program it is of.
func TestReadyzOfPage(t *testing.T) {
	cfg := defaultConfig().Web
	cfg.Listen, cfg.MaxStreams = "127.0.0.1:0", 1
	none := func() []string { return nil }
	page, err := openPage(cfg, web.Deps{Status: func() web.Status { return web.Status{} }, Ledger: func() []sink.Balance { return nil }}, nil, prometheus.NewRegistry(), none, none)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- page.Serve(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for range 10 {
		res, err := http.Get(page.URL() + "api/events")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
	}
	if text := get(t, page.URL()+"readyz", http.StatusOK); !strings.HasPrefix(text, "ready\n9 ") || !strings.Contains(text, ": raise web.max_streams") {
		t.Errorf("/readyz says %q", text)
	}
}

// limited is a collector whose limits are low.
type limited struct {
	*running
	url string
}

func startLimited(t *testing.T, cfg *config) *limited {
	t.Helper()
	r, err := openLive(cfg, collector.Options{Seed: 1, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.Run(ctx) // the stores that are not there are an error
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return &limited{r, r.url()}
}

// leavesOut waits until a limit has left out so much, by the metrics and by what the page shows.
func (l *limited) leavesOut(t *testing.T, setting string, least uint64) {
	t.Helper()
	said := regexp.MustCompile(`"([0-9]+(?: [0-9]{3})*) [^"]*: raise ` + regexp.QuoteMeta(setting) + `"`)
	metric := regexp.MustCompile(`(?m)^hopscope_left_out\{setting="` + regexp.QuoteMeta(setting) + `"\} ([0-9.e+]+)$`)
	count := func(of *regexp.Regexp, text string) (sum float64) {
		for _, m := range of.FindAllStringSubmatch(text, -1) {
			n, err := strconv.ParseFloat(strings.ReplaceAll(m[1], " ", ""), 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
		return sum
	}
	var shown, measured float64
	if !testkit.Await(func() bool {
		shown, measured = count(said, get(t, l.url+"api/ledger", http.StatusOK)), count(metric, get(t, l.url+"metrics", http.StatusOK))
		return shown >= float64(least) && measured >= float64(least)
	}) {
		t.Fatalf("%s: the page says %v, the metrics say %v, want %d", setting, shown, measured, least)
	}
}

// stacks sends reports of 400 flows over 40 exporters.
func (l *limited) stacks(t *testing.T, n uint64) {
	t.Helper()
	gen, err := traffic.New(traffic.Config{Seed: 1, Flows: 400, Hops: 5, Exporters: 40, Bytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := traffic.Send(t.Context(), traffic.SendConfig{To: l.Addrs()[0], Count: n, Rate: 20_000}, gen); err != nil {
		t.Fatal(err)
	}
}

// drops sends a drop of each of 40 nodes.
func (l *limited) drops(t *testing.T) {
	t.Helper()
	conn, err := net.Dial("udp", l.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for node := range uint32(40) {
		h := telemetry.Header{NodeID: node + 1, Inner: telemetry.InnerIPv4, Flags: decode.Dropped, Metadata: telemetry.MDInterfaces | telemetry.MDDrop, DropReason: 3}
		inner := packet.AppendIPv4(nil, &packet.IPv4{TTL: 60, Proto: packet.ProtoUDP, Src: [4]byte{10, 0, 1, 1}, Dst: [4]byte{10, 0, 2, 2}}, 8)
		inner = packet.AppendUDP(inner, 5000, 6000, 0)
		if _, err := conn.Write(append(telemetry.Append20(telemetry.AppendGroup(nil, 1, 0, h.NodeID), &h, len(inner)), inner...)); err != nil {
			t.Fatal(err)
		}
	}
}

// export sends a request of OTLP and returns the status of the answer.
func (l *limited) export(t *testing.T, data []byte, encoding string) int {
	t.Helper()
	if encoding == "gzip" {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(data)
		_ = z.Close()
		data = packed.Bytes()
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.Addrs()[1].String()+"/v1/metrics", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", encoding)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}
