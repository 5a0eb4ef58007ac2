package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/hopscope/hopscope/collector"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/internal/testkit"
	"github.com/hopscope/hopscope/sink"
)

// windowsSeen hands on every window.
type windowsSeen chan *sink.Window

func (windowsSeen) Name() string { return "test" }

func (c windowsSeen) WriteWindow(_ context.Context, w *sink.Window) error {
	c <- w
	return nil
}

// spectrum is a switch that counts as one with Cumulus Linux does.
type spectrum struct {
	start  uint64
	counts map[string][]uint64 // of latencies, since the start
	drops  float64             // of swp2, whose packets no metric counts

	packets, discards float64 // of swp4
	octets            float64 // of swp5
}

var spectrumBounds = []float64{319, 831, 1343, 1855, 2367, 2879, 3391, 3903, 4415}

func (s *spectrum) request(at time.Time) *metrics.MetricsData {
	text := func(key, value string) *common.KeyValue {
		return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
	}
	h := &metrics.Histogram{AggregationTemporality: metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE}
	for name, counts := range s.counts {
		h.DataPoints = append(h.DataPoints, &metrics.HistogramDataPoint{
			Attributes:        []*common.KeyValue{text("interface", name), {Key: "tc", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: 3}}}},
			StartTimeUnixNano: s.start, TimeUnixNano: uint64(at.UnixNano()), BucketCounts: counts, ExplicitBounds: spectrumBounds,
		})
	}
	gauge := func(name, port string, v float64) *metrics.Metric {
		return &metrics.Metric{Name: name, Data: &metrics.Metric_Gauge{Gauge: &metrics.Gauge{DataPoints: []*metrics.NumberDataPoint{{
			Attributes: []*common.KeyValue{text("interface", port)}, TimeUnixNano: uint64(at.UnixNano()), Value: &metrics.NumberDataPoint_AsDouble{AsDouble: v}}}}}}
	}
	return &metrics.MetricsData{ResourceMetrics: []*metrics.ResourceMetrics{{
		Resource: &resource.Resource{Attributes: []*common.KeyValue{text("host.name", "leaf-1")}},
		ScopeMetrics: []*metrics.ScopeMetrics{{Metrics: []*metrics.Metric{
			{Name: "nvswitch_histogram_interface_latency", Unit: "packets", Data: &metrics.Metric_Histogram{Histogram: h}},
			gauge("nvswitch_interface_discards_egress_hoq", "swp2", s.drops),
			gauge("nvswitch_interface_if_out_discards", "swp4", s.discards),
			gauge("nvswitch_interface_if_out_ucast_pkts", "swp4", s.packets),
			gauge("nvswitch_interface_if_out_octets", "swp5", s.octets),
			gauge("nvswitch_interface_if_in_octets", "swp5", s.octets),
			{Name: "node_load1", Data: &metrics.Metric_Gauge{Gauge: &metrics.Gauge{DataPoints: []*metrics.NumberDataPoint{{TimeUnixNano: uint64(at.UnixNano())}}}}},
		}}},
	}}}
}

// count lets packets pass an interface.
func (s *spectrum) count(name string, by ...uint64) {
	for i, n := range by {
		s.counts[name][i] += n
	}
}

// A switch sends histograms. Its interfaces are hops with latencies known within their buckets; one without traffic is
// no hop. An interface with waiting packets is a finding, which says that the last bucket has no end. One with rising
// discards is a finding with their number among its packets. One whose speed only the inventory has is a hop with its
// use, and receives as much as it sends. Every data point is in the ledger.
func TestOTLP(t *testing.T) {
	dir := t.TempDir()
	cfg := defaultConfig()
	cfg.UDP.Workers, cfg.UDP.Listen, cfg.Web.Listen, cfg.Window, cfg.Shards, cfg.Corrections = 1, []string{"127.0.0.1:0"}, "", 100*time.Millisecond, 2, 0
	cfg.OTLP.Enabled, cfg.OTLP.GRPC, cfg.OTLP.HTTP = true, "127.0.0.1:0", ""
	cfg.Events.Warmup = 20
	cfg.JSONL.Enabled, cfg.JSONL.Config.Path, cfg.JSONL.Spool.Enabled = true, filepath.Join(dir, "series"), false
	cfg.Inventory = filepath.Join(dir, "inventory.yaml")
	speed := "nodes:\n  - {id: 3250019995, interfaces: [{id: 639173928, speed: 1G}]}\n" // leaf-1, swp5
	if err := os.WriteFile(cfg.Inventory, []byte(speed), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := make(windowsSeen, 1000)
	r, err := openLive(&cfg, collector.Options{Seed: 1, Writers: []sink.WindowWriter{seen}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	conn, err := grpc.NewClient(r.Addrs()[1].String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	s := &spectrum{start: uint64(time.Now().Add(-time.Hour).UnixNano()), counts: map[string][]uint64{}}
	for _, name := range []string{"swp1", "swp2", "swp3"} {
		s.counts[name] = []uint64{5, 500, 100, 0, 0, 0, 0, 0, 0, 1}
	}
	requests, windows, received := 0, 0, 0
	var found, discards *inference.Finding
	hops := map[string]int{}
	patience := time.After(testkit.Patience)
	for found == nil || discards == nil {
		s.packets += 1000
		s.octets += 12_500
		k := uint64(requests % 7)
		s.count("swp1", 20+k, 900+30*k, 60-k)
		if requests < 50 {
			s.count("swp2", 20+k, 900+20*k, 60-k)
		} else { // packets wait for longer than the last bound
			s.count("swp2", 0, 0, 60, 100, 0, 0, 0, 0, 50, 900)
			s.drops += 3
			s.discards += 30
		}
		if err := conn.Invoke(ctx, "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", s.request(time.Now()), &emptypb.Empty{}, grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
		requests++
		select {
		case w := <-seen:
			windows++
			for i := range w.Hops {
				h := &w.Hops[i]
				name := r.Names().HopEgress(h.HopKey)
				hops[name[:min(len(name), 4)]]++
				if h.HasUtilization != strings.HasPrefix(name, "swp5") {
					t.Errorf("%s: a use of %v, want one of swp5 alone", name, h.Utilization)
				}
				if h.Latency.Count > 0 && h.Latency.Bounds == nil {
					t.Errorf("%s: latencies without the bounds of their buckets: %+v", name, h)
				}
			}
			for i := range w.Interfaces {
				x := &w.Interfaces[i]
				in, ok := x.Received()
				if name := r.Names().HopEgress(x.Key()); ok && !strings.HasPrefix(name, "swp5") {
					t.Errorf("%s: a use of %v inwards, want one of swp5 alone", name, in)
				}
				for k := range w.Hops {
					if h := &w.Hops[k]; ok && h.HopKey == x.Key() && h.HasUtilization && math.Abs(h.Utilization-in) < 1e-4 {
						received++
					}
				}
			}
			for i := range w.Findings {
				switch f := &w.Findings[i]; f.Kind {
				case inference.HighLatency:
					found = f
				case inference.InterfaceDiscards:
					discards = f
				}
			}
		case <-patience:
			t.Fatalf("no finding in %d windows with %d requests", windows, requests)
		case err := <-ended:
			t.Fatal(err)
		}
	}
	stop()
	for open := true; open; {
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			open = false
		case <-seen:
		}
	}
	text := r.Names().Text(found.Text)
	if !strings.Contains(text, "leaf-1") || !strings.Contains(text, "swp2") || !strings.Contains(text, "where the last bucket of its histogram begins, and it can be any higher") {
		t.Errorf("finding %q", text)
	}
	var lost, of int
	text = r.Names().Text(discards.Text)
	_, counts, _ := strings.Cut(text, " counted ")
	if n, err := fmt.Sscanf(counts, "%d of %d packets as discards out since", &lost, &of); n != 2 || lost == 0 || of != lost/30*1030 || !strings.Contains(text, "leaf-1") || !strings.Contains(text, "swp4") {
		t.Errorf("finding %q, want 30 discards among 1030 packets of each request: %v", text, err)
	}
	if hops["swp3"]+hops["swp4"] > 0 || hops["swp1"] < 20 || hops["swp2"] < 20 || hops["swp5"] < 20 {
		t.Errorf("windows with hops %v, want none of swp3 and swp4", hops)
	}
	if received < 20 {
		t.Errorf("swp5 receives as much as it sends in %d windows", received)
	}
	if requests < 50 {
		t.Errorf("%q after %d requests, before the fault", text, requests)
	}
	t.Logf("%d requests, %d windows: %s; %s", requests, windows, r.Names().Text(found.Text), text)
	b := r.Balances()[0]
	if want := uint64(requests * 9); b.Received != want || b.Stored != uint64(requests*8) || b.Dropped["foreign"] != int64(requests) || b.Unsettled != 0 {
		t.Errorf("%+v, want %d points, of which %d are foreign", b, want, requests)
	}
	if u := r.Status().Unread; len(u) != 1 || u[0].Name != "node_load1" || u[0].Points != uint64(requests) || !strings.Contains(u[0].Text(), "exporters.metrics.rules") {
		t.Errorf("unread %+v", u)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	all := ""
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all += string(b)
	}
	for _, want := range []string{`"latency_p50_low":`, `"latency_beyond":`, `"kind":"drops"`, `"kind":"interface-discards"`, `"out_discards":`, `"in_octets":`, `"rx_utilization_max":`} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in the store", want)
		}
	}
}

// One request has more data points than a batch has reports. What is wrong with some of them is in the answer, and the same request again is
// taken for what it is. A rule of the settings reads what is not built in.
func TestOTLPAnswers(t *testing.T) {
	cfg := defaultConfig()
	cfg.UDP.Workers, cfg.UDP.Listen, cfg.Web.Listen = 1, []string{"127.0.0.1:0"}, ""
	cfg.OTLP.Enabled, cfg.OTLP.GRPC, cfg.OTLP.HTTP = true, "", "127.0.0.1:0"
	cfg.Exporters.Metrics.Rules = []collector.MetricRule{{Metric: "delay_*", Where: []string{"direction=tx"}, Interface: "port", Statistic: "latency", Unit: "us"}}
	seen := make(windowsSeen, 1000)
	r, err := openLive(&cfg, collector.Options{Seed: 1, Writers: []sink.WindowWriter{seen}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	at := time.Now().UnixNano()
	var points []string
	for i := range 3000 {
		points = append(points, fmt.Sprintf(`{"timeUnixNano":"%d","asDouble":%d,"attributes":[{"key":"port","value":{"stringValue":"e%d"}},{"key":"direction","value":{"stringValue":"tx"}}]}`,
			at, 20-i%100/99*40, i))
	}
	body := `{"resourceMetrics":[{"resource":{"attributes":[{"key":"host.name","value":{"stringValue":"10.0.0.7"}}]},"scopeMetrics":[{"metrics":[{"name":"delay_mean","gauge":{"dataPoints":[` +
		strings.Join(points, ",") + `]}},{"name":"delay_mean","gauge":{"dataPoints":[{"timeUnixNano":"5","asInt":"3"}]}}]}]}]}`
	send := func() string {
		t.Helper()
		resp, err := http.Post("http://"+r.Addrs()[1].String()+"/v1/metrics", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s %q %v", resp.Status, text, err)
		}
		return string(text)
	}
	if got, want := send(), `{"partialSuccess":{"rejectedDataPoints":"30","errorMessage":"30 of 3001 data points were refused: 30 bad-value"}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := send(); !strings.Contains(got, "30 of 3001") {
		t.Errorf("again: %s", got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	close(seen)
	hops := 0
	for w := range seen {
		for i := range w.Hops {
			h := &w.Hops[i]
			if hops++; h.Node != 0x0a000007 || h.Latency.Count != 1 || h.Latency.P50 < 19_500 || h.Latency.P50 > 20_500 || h.Latency.Bounds != nil {
				t.Errorf("hop %+v", h)
			}
		}
	}
	b := r.Balances()[0]
	if hops != 2970 || b.Received != 6002 || b.Stored != 2970 || b.Dropped["malformed"] != 30+3000 || b.Dropped["foreign"] != 2 || b.Unsettled != 0 {
		t.Errorf("%d hops, %+v", hops, b)
	}
}
