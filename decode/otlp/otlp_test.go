package otlp

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/sflow"
)

const now = int64(1_790_000_000e9)

var sender = decode.AddrFrom(netip.MustParseAddr("192.0.2.9"))

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

func number(key string, value int64) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: value}}}
}

func attributes(kv ...*common.KeyValue) []*common.KeyValue { return kv }

// asked is a request of one resource.
func asked(host string, list ...*metrics.Metric) []byte {
	rm := &metrics.ResourceMetrics{ScopeMetrics: []*metrics.ScopeMetrics{{Metrics: list}}, Resource: &resourcepb.Resource{}}
	if host != "" {
		rm.Resource.Attributes = attributes(text("service.name", "exporter"), text("host.name", host))
	}
	b, err := proto.Marshal(&metrics.MetricsData{ResourceMetrics: []*metrics.ResourceMetrics{rm}})
	if err != nil {
		panic(err)
	}
	return b
}

func counterOf(name string, temporality metrics.AggregationTemporality, points ...*metrics.NumberDataPoint) *metrics.Metric {
	return &metrics.Metric{Name: name, Data: &metrics.Metric_Sum{Sum: &metrics.Sum{DataPoints: points, AggregationTemporality: temporality, IsMonotonic: true}}}
}

func gaugeOf(name string, points ...*metrics.NumberDataPoint) *metrics.Metric {
	return &metrics.Metric{Name: name, Data: &metrics.Metric_Gauge{Gauge: &metrics.Gauge{DataPoints: points}}}
}

func doubleAt(at int64, v float64, kv ...*common.KeyValue) *metrics.NumberDataPoint {
	return &metrics.NumberDataPoint{TimeUnixNano: uint64(at), Attributes: kv, Value: &metrics.NumberDataPoint_AsDouble{AsDouble: v}}
}

func testDecoder(more ...Rule) *Decoder {
	return New(Config{Rules: append(more, Builtin()...), Nodes: []string{"host.name"}, MemoryBytes: 1 << 20, Seed: 7})
}

// read returns copies of the reports of a request.
func read(t *testing.T, d *Decoder, data []byte, at int64) (list []decode.Report, got Result) {
	t.Helper()
	var b decode.Batch
	got = d.Read(&b, sender, data, at, func() {
		if len(b.Reports) != 1 {
			t.Fatalf("%d reports after one point", len(b.Reports))
		}
		r := *b.Reports[0]
		rare := *r.AddRare()
		rare.Histogram.Buckets = slices.Clone(rare.Histogram.Buckets)
		r.Hops, r.Rare = slices.Clone(r.Hops), &rare
		list = append(list, r)
		b.Reset()
	})
	return list, got
}

var latencyBounds = []float64{319, 831, 1343, 1855, 2367, 2879, 3391, 3903, 4415}

// The example of Cumulus' documentation: no count, the wrong unit and no temporality.
func TestCumulusLatency(t *testing.T) {
	m := &metrics.Metric{Name: "nvswitch_histogram_interface_latency", Unit: "packets", Data: &metrics.Metric_Histogram{Histogram: &metrics.Histogram{DataPoints: []*metrics.HistogramDataPoint{{
		Attributes: attributes(text("interface", "swp1s1"), number("tc", 3)), StartTimeUnixNano: uint64(now - 3e6), TimeUnixNano: uint64(now),
		BucketCounts: []uint64{5, 0, 7, 0, 0, 0, 0, 0, 0, 2}, ExplicitBounds: latencyBounds,
	}}}}}
	list, got := read(t, testDecoder(), asked("leaf-1", m), now)
	if len(list) != 1 || got.Points != 1 {
		t.Fatalf("%d reports, %+v", len(list), got)
	}
	r := list[0]
	want := []decode.Bucket{{High: 319, Count: 5}, {Low: 831, High: 1343, Count: 7}, {Low: 4415, High: 4415, Count: 2, Open: true}}
	if r.Error() != nil || r.Kind != decode.KindHistogram || r.AddRare().Histogram.Of != decode.HopLatency || !slices.Equal(r.AddRare().Histogram.Buckets, want) {
		t.Errorf("%v: %+v, want %+v", r.Error(), r.AddRare().Histogram, want)
	}
	h := r.Hops[0]
	if h.NodeID != nodeOf("leaf-1") || h.L2EgressIf != portOf("swp1s1") || h.L2EgressIf < named || !h.Set(decode.HopNodeID|decode.HopL2EgressIf|decode.HopQueueID) || h.QueueID != 3 {
		t.Errorf("hop %+v", h)
	}
	if list, _ = read(t, testDecoder(), asked("", m), now); len(list) != 1 || list[0].Hops[0].NodeID != 0xc0000209 {
		t.Errorf("of no named node: %+v", list) // it is the sender, and not node 0
	}
	// The next sample began behind this one. Nothing passed: it is no value, and not zero.
	p := m.GetHistogram().DataPoints[0]
	p.StartTimeUnixNano, p.TimeUnixNano, p.BucketCounts = uint64(now+997e6), uint64(now+1e9), make([]uint64, 10)
	if list, _ = read(t, testDecoder(), asked("leaf-1", m), now); len(list) != 1 || list[0].Error() != nil || len(list[0].Rare.Histogram.Buckets) != 0 {
		t.Errorf("without traffic: %+v", list)
	}
}

// SONiC sends counters as gauges, and the queue behind the name of the interface.
func TestSONiC(t *testing.T) {
	d := testDecoder(Rule{Metric: "speed", Interface: "object_name", Joint: true, Statistic: Speed, Scale: 1e6})
	at := func(name, object string, second int64, v float64) *metrics.Metric {
		return gaugeOf(name, doubleAt(now+second*1e9, v, text("object_name", object), text("sai_type_id", "1"), text("sai_stat_id", "9")))
	}
	read(t, d, asked("", gaugeOf("speed", doubleAt(now, 10_000, text("object_name", "Ethernet1")))), now)
	list, _ := read(t, d, asked("",
		at("sai_counter_type_1_stat_9", "Ethernet1", 1, 5e12), at("sai_counter_type_1_stat_9", "Ethernet1", 2, 5e12+6.25e8),
		at("sai_counter_type_21_stat_24", "Ethernet1|3", 1, 70_000), at("sai_counter_type_1_stat_12", "Ethernet1", 1, 100), at("sai_counter_type_1_stat_12", "Ethernet1", 2, 107),
		at("sai_counter_type_1_stat_12", "Ethernet1", 3, 107)), now)
	if len(list) != 6 {
		t.Fatalf("%d reports, want 6", len(list))
	}
	if h := list[1].Hops; len(h) != 1 || !h[0].Set(decode.HopTxUtilization) || h[0].TxUtilization != 5000 || h[0].NodeID != 0xc0000209 {
		t.Errorf("half of 10 Gbit/s: %+v", h)
	}
	if len(list[0].Hops) != 0 || len(list[3].Hops) != 0 || list[3].Kind != decode.KindCounters || list[5].Kind != decode.KindCounters {
		t.Errorf("what is not known yet, or 0: %+v, %+v, %+v", list[0], list[3], list[5])
	}
	if h := list[2].Hops[0]; h.QueueID != 3 || h.QueueOccupancy != 70_000 || h.L2EgressIf != portOf("Ethernet1") {
		t.Errorf("queue: %+v", h)
	}
	if r := &list[4]; r.Kind != decode.KindDrop || r.Weight != 7 || r.DropReason != noReason || r.Flags&decode.Dropped == 0 {
		t.Errorf("drops: %+v", r)
	}
	if p := d.Learned(); len(p) != 2 || p[0].Name != "Ethernet1" || p[1].Speed != 1e10 || p[0].Host != "192.0.2.9" {
		t.Errorf("learned %+v", p)
	}
}

// The speed of an interface is what a metric reports, else what is configured of it, else what the rule says of all.
func TestSpeed(t *testing.T) {
	configured := 0.0
	d := New(Config{
		Rules: []Rule{{Metric: "octets", Interface: "port", Statistic: Octets, Speed: 1e6}, {Metric: "speed", Interface: "port", Statistic: Speed}},
		Nodes: []string{"host.name"}, MemoryBytes: 1 << 20,
		Speed: func(exporter decode.Addr, node, index uint32) float64 {
			if exporter != sender || node != 17 || index != 4 {
				t.Errorf("the speed of interface %d of node %d of %s", index, node, exporter)
			}
			return configured
		},
	})
	octets := 0.0
	used := func(second int64) uint32 {
		octets += 25_000 // 200 kbit
		list, _ := read(t, d, asked("17", gaugeOf("octets", doubleAt(now+second*1e9, octets, text("port", "4")))), now)
		if len(list) != 1 || second > 0 && len(list[0].Hops) != 1 {
			t.Fatalf("second %d: %+v", second, list)
		}
		if second == 0 {
			return 0
		}
		return list[0].Hops[0].TxUtilization
	}
	used(0)
	if got := used(1); got != 2000 {
		t.Errorf("%d by the rule, want 2000", got)
	}
	configured = 4e5
	if got := used(2); got != 5000 {
		t.Errorf("%d as configured, want 5000", got)
	}
	read(t, d, asked("17", gaugeOf("speed", doubleAt(now, 8e5, text("port", "4")))), now)
	if got := used(3); got != 2500 {
		t.Errorf("%d by the metric, want 2500", got)
	}
}

// Every refusal has its field, place and reason, and nothing beside it is lost.
func TestRefused(t *testing.T) {
	port := text("interface", "swp1")
	hist := func(change func(*metrics.HistogramDataPoint)) *metrics.Metric {
		p := &metrics.HistogramDataPoint{Attributes: attributes(port), TimeUnixNano: uint64(now), BucketCounts: []uint64{1, 2}, ExplicitBounds: []float64{9}}
		change(p)
		return &metrics.Metric{Name: "nvswitch_histogram_interface_latency", Data: &metrics.Metric_Histogram{Histogram: &metrics.Histogram{DataPoints: []*metrics.HistogramDataPoint{p}, AggregationTemporality: 1}}}
	}
	power := func(change func(*metrics.ExponentialHistogramDataPoint)) *metrics.Metric {
		p := &metrics.ExponentialHistogramDataPoint{Attributes: attributes(port), TimeUnixNano: uint64(now), Scale: 2, Positive: &metrics.ExponentialHistogramDataPoint_Buckets{BucketCounts: []uint64{3}}}
		change(p)
		return &metrics.Metric{Name: "nvswitch_histogram_interface_latency", Data: &metrics.Metric_ExponentialHistogram{ExponentialHistogram: &metrics.ExponentialHistogram{DataPoints: []*metrics.ExponentialHistogramDataPoint{p}, AggregationTemporality: 1}}}
	}
	good := hist(func(p *metrics.HistogramDataPoint) { p.Attributes = attributes(text("interface", "swp2")) })
	for name, c := range map[string]struct {
		m      *metrics.Metric
		field  string
		reason decode.Reason
	}{
		"no time":     {hist(func(p *metrics.HistogramDataPoint) { p.TimeUnixNano = 0 }), "time_unix_nano", decode.BadValue},
		"wrong count": {hist(func(p *metrics.HistogramDataPoint) { p.Count = 4 }), "count", decode.BadCount},
		"bounds":      {hist(func(p *metrics.HistogramDataPoint) { p.ExplicitBounds = []float64{9, 9} }), "bucket_counts", decode.BadCount},
		"bounds fall": {hist(func(p *metrics.HistogramDataPoint) {
			p.ExplicitBounds, p.BucketCounts = []float64{9, 9}, []uint64{1, 2, 3}
		}), "explicit_bounds", decode.BadValue},
		"NaN":            {hist(func(p *metrics.HistogramDataPoint) { p.ExplicitBounds = []float64{math.NaN()} }), "explicit_bounds", decode.BadValue},
		"too many":       {hist(func(p *metrics.HistogramDataPoint) { p.BucketCounts = make([]uint64, mostBuckets+1) }), "bucket_counts", decode.BadCount},
		"sum overflows":  {hist(func(p *metrics.HistogramDataPoint) { p.BucketCounts = []uint64{math.MaxUint64, 2} }), "bucket_counts", decode.BadValue},
		"no bucket":      {hist(func(p *metrics.HistogramDataPoint) { p.ExplicitBounds, p.BucketCounts = nil, []uint64{3} }), "explicit_bounds", decode.Unsupported},
		"no name":        {hist(func(p *metrics.HistogramDataPoint) { p.Attributes = attributes(text("interface", "")) }), "data_point", decode.BadValue},
		"negative":       {power(func(p *metrics.ExponentialHistogramDataPoint) { p.Negative = p.Positive }), "negative", decode.BadValue},
		"scale":          {power(func(p *metrics.ExponentialHistogramDataPoint) { p.Scale = 21 }), "scale", decode.BadValue},
		"offset":         {power(func(p *metrics.ExponentialHistogramDataPoint) { p.Positive.Offset = math.MaxInt32 }), "offset", decode.BadValue},
		"counter":        {counterOf("nvswitch_interface_if_in_errors", 2, doubleAt(now, -1, port)), "value", decode.BadValue},
		"infinite":       {gaugeOf("nvswitch_interface_if_in_errors", doubleAt(now, math.Inf(1), port)), "value", decode.BadValue},
		"latency as sum": {hist(func(p *metrics.HistogramDataPoint) {}), "", 0},
		"histogram of drops": {func() *metrics.Metric {
			m := hist(func(*metrics.HistogramDataPoint) {})
			m.Name = "nvswitch_interface_discards_egress_hoq"
			return m
		}(), "data", decode.BadType},
		"summary": {&metrics.Metric{Name: "nvswitch_interface_if_in_errors", Data: &metrics.Metric_Summary{Summary: &metrics.Summary{DataPoints: []*metrics.SummaryDataPoint{{TimeUnixNano: uint64(now), Attributes: attributes(port)}}}}}, "summary", decode.Unsupported},
	} {
		data := asked("leaf", c.m, good)
		list, got := read(t, testDecoder(), data, now)
		if len(list) != 2 || got.Points != 2 || got.Foreign != 0 || list[1].Error() != nil || len(list[1].Rare.Histogram.Buckets) != 2 {
			t.Errorf("%s: %d reports, %+v, and beside it %+v", name, len(list), got, list)
			continue
		}
		r := &list[0]
		if r.Err.Reason != c.reason || r.Err.Field != c.field || c.reason != 0 && (got.Refused[c.reason] != 1 || r.Err.Offset <= 0 || r.Err.Offset >= len(data)) {
			t.Errorf("%s: %+v, want %s %v", name, r.Err, c.field, c.reason)
		}
	}
}

// Uncounted points are listed by the name of their metric, with the reason if known. Metrics that the settings
// exclude are not listed.
func TestUnread(t *testing.T) {
	d := testDecoder(Rule{Metric: "hidden"})
	list, got := read(t, d, asked("leaf",
		gaugeOf("hidden", doubleAt(now, 1)), gaugeOf("node_cpu", doubleAt(now, 1), doubleAt(now, 2)), gaugeOf("nvswitch_wjh_total_events", doubleAt(now, 1)),
		counterOf("nvswitch_interface_if_in_errors", 2, doubleAt(now, 1, text("port", "swp1")))), now)
	if len(list) != 0 || got.Points != 5 || got.Foreign != 5 {
		t.Errorf("%d reports, %+v", len(list), got)
	}
	unread := map[string]Unread{}
	d.Unread(func(m string, x Unread) { unread[m] = x })
	if want := map[string]Unread{"node_cpu": {2, ""}, "nvswitch_interface_if_in_errors": {1, ""},
		"nvswitch_wjh_total_events": {1, `drop events of "what just happened" are among the discards of interfaces`}}; !maps.Equal(unread, want) {
		t.Errorf("%v, want %v", unread, want)
	}
	for i := range 2 * mostUnread {
		read(t, d, asked("leaf", gaugeOf(fmt.Sprint("m", i), doubleAt(now, 1))), now)
	}
	n, sum := 0, uint64(0)
	d.Unread(func(_ string, x Unread) { n, sum = n+1, sum+x.Points })
	if n > mostUnread+1 || sum != 4+2*mostUnread {
		t.Errorf("%d names of %d points", n, sum)
	}
}

// The memory for streams is bounded: what finds no room is refused, and those that are silent make room.
func TestStreamMemory(t *testing.T) {
	d := testDecoder()
	at := func(i int, second int64) []byte {
		return asked("leaf", counterOf("nvswitch_interface_if_in_errors", 2, doubleAt(now+second*1e9, 5, text("interface", fmt.Sprint("swp", i)))))
	}
	refused := 0
	for i := range 8000 {
		_, got := read(t, d, at(i, 1), now)
		refused += got.Refused[decode.NoRoom]
	}
	if want := 8000 - (1<<20)/streamBytes; refused != want {
		t.Errorf("%d refused, want %d", refused, want)
	}
	if _, got := read(t, d, at(9000, 700), now+700e9); got.Refused[decode.NoRoom] != 0 {
		t.Errorf("silent streams made no room: %+v", got)
	}
	if d.streams.used != streamBytes || len(d.streams.byKey) != 1 {
		t.Errorf("%d bytes of %d streams", d.streams.used, len(d.streams.byKey))
	}
}

// What falls without a new start was set in between, as by a command on the switch: what it counted is not known. It
// is not a huge number.
func TestFallen(t *testing.T) {
	d := testDecoder()
	hist := func(second int64, counts ...uint64) *metrics.Metric {
		return &metrics.Metric{Name: "nvswitch_histogram_interface_latency", Data: &metrics.Metric_Histogram{Histogram: &metrics.Histogram{AggregationTemporality: 2, DataPoints: []*metrics.HistogramDataPoint{{
			Attributes: attributes(text("interface", "swp1")), TimeUnixNano: uint64(now + second*1e9), BucketCounts: counts, ExplicitBounds: []float64{10}}}}}}
	}
	drops := func(second int64, v float64) *metrics.Metric {
		return counterOf("nvswitch_interface_discards_egress_hoq", 2, doubleAt(now+second*1e9, v, text("interface", "swp1")))
	}
	list, got := read(t, d, asked("leaf", hist(1, 100, 50), hist(2, 101, 60), hist(3, 7, 90), hist(4, 8, 90), drops(1, 40), drops(2, 45), drops(3, 3)), now)
	if len(list) != 7 || got.Refused != [decode.NumReasons]int{} {
		t.Fatalf("%d reports, %+v", len(list), got)
	}
	for i, want := range [][2]uint64{{0, 0}, {1, 10}, {0, 0}, {1, 0}} {
		var have [2]uint64
		for _, b := range list[i].Rare.Histogram.Buckets {
			if b.Open {
				have[1] += b.Count
			} else {
				have[0] += b.Count
			}
		}
		if have != want {
			t.Errorf("point %d: %d, want %d", i, have, want)
		}
	}
	if list[4].Kind != decode.KindCounters || list[5].Weight != 5 || list[6].Weight != 0 {
		t.Errorf("drops: %v, %d, %d, want none, 5, none", list[4].Kind, list[5].Weight, list[6].Weight)
	}
	// Other bounds make another histogram: the next point has the increment.
	other := func(second int64, counts ...uint64) *metrics.Metric {
		m := hist(second, counts...)
		m.GetHistogram().DataPoints[0].ExplicitBounds = []float64{20}
		return m
	}
	list, _ = read(t, d, asked("leaf", other(5, 500, 500), other(6, 501, 500)), now)
	if len(list[0].Rare.Histogram.Buckets) != 0 || !slices.Equal(list[1].Rare.Histogram.Buckets, []decode.Bucket{{High: 20, Count: 1}}) {
		t.Errorf("other bounds: %+v", list)
	}
}

// life is a stream of histograms from its device's point of view.
type life struct {
	name      string
	delta     bool
	start, at uint64
	counts    []uint64 // since the start
	since     []uint64 // since the last point that was sent
	got       []uint64 // at the last point that came
	gotStart  uint64
	arrived   bool
	want      []uint64
}

// TestStreams simulates devices that count, restart, and send points that are lost, duplicated or late. It compares
// the reports with a second computation of the differences, from the counts themselves.
func TestStreams(t *testing.T) {
	bounds := []float64{10, 20, 40, 80, 500}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 28))
		d := testDecoder(Rule{Metric: "lat", Interface: "if", Statistic: Latency})
		lives := make([]*life, 6)
		for i := range lives {
			l := &life{name: fmt.Sprint("eth", i), delta: i%3 == 0, at: uint64(now), start: uint64(now) - uint64(rng.Int64N(400e9))}
			l.counts, l.since, l.got, l.want = make([]uint64, 6), make([]uint64, 6), make([]uint64, 6), make([]uint64, 6)
			for k := range l.counts {
				l.counts[k] = rng.Uint64N(1000)
			}
			lives[i] = l
		}
		have := map[string][]uint64{}
		var late [][]byte
		repeated, sent := 0, 0
		receive := func(b []byte) {
			list, got := read(t, d, b, now)
			repeated += got.Refused[decode.Repeated]
			for _, r := range list {
				if r.Err.Reason != 0 {
					continue
				}
				for _, l := range lives {
					if portOf(l.name) != r.Hops[0].L2EgressIf {
						continue
					}
					if have[l.name] == nil {
						have[l.name] = make([]uint64, 6)
					}
					for _, b := range r.AddRare().Histogram.Buckets {
						i := slices.Index(bounds, float64(b.High))
						if b.Open {
							i = 5
						}
						have[l.name][i] += b.Count
					}
				}
			}
		}
		for range 200 {
			l := lives[rng.IntN(len(lives))]
			l.at += uint64(1e9 + rng.Int64N(20e9))
			if rng.IntN(12) == 0 { // it begins anew
				l.start = l.at - uint64(rng.Int64N(1e9))
				clear(l.counts)
				if !l.delta {
					clear(l.since)
				}
			}
			for k := range l.counts {
				n := rng.Uint64N(5) * rng.Uint64N(50)
				l.counts[k] += n
				l.since[k] += n
			}
			p := &metrics.HistogramDataPoint{Attributes: attributes(text("if", l.name)), TimeUnixNano: l.at, StartTimeUnixNano: l.start, ExplicitBounds: bounds, BucketCounts: slices.Clone(l.counts)}
			h := &metrics.Histogram{DataPoints: []*metrics.HistogramDataPoint{p}, AggregationTemporality: metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE}
			if l.delta {
				h.AggregationTemporality, p.BucketCounts = metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA, slices.Clone(l.since)
			}
			if rng.IntN(2) == 0 {
				for _, n := range p.BucketCounts {
					p.Count += n
				}
			}
			clear(l.since)
			b := asked("leaf", &metrics.Metric{Name: "lat", Data: &metrics.Metric_Histogram{Histogram: h}})
			if rng.IntN(6) == 0 {
				continue // lost
			}
			fell := slices.ContainsFunc([]int{0, 1, 2, 3, 4, 5}, func(k int) bool { return l.counts[k] < l.got[k] })
			for k := range l.want {
				switch {
				case l.delta, l.arrived && l.gotStart != l.start && fell, !l.arrived && l.at-l.start <= uint64(time.Minute):
					l.want[k] += p.BucketCounts[k]
				case l.arrived:
					l.want[k] += l.counts[k] - l.got[k]
				}
			}
			copy(l.got, l.counts)
			l.gotStart, l.arrived = l.start, true
			sent++
			receive(b)
			if rng.IntN(5) == 0 {
				late = append(late, b)
			}
		}
		for _, b := range late {
			receive(b)
		}
		if repeated != len(late) {
			t.Errorf("seed %d: %d points are repeated, want %d of %d", seed, repeated, len(late), sent)
		}
		for _, l := range lives {
			if l.arrived && !slices.Equal(have[l.name], l.want) {
				t.Errorf("seed %d: %s, delta %v: %d, want %d", seed, l.name, l.delta, have[l.name], l.want)
			}
		}
	}
}

// Exponential histograms whose scale changes as they grow lose nothing: octaves, which all scales from 0 on keep
// apart, count what values were in them.
func TestExponential(t *testing.T) {
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 29))
		d := testDecoder(Rule{Metric: "lat", Interface: "if", Statistic: Latency})
		var values []float64
		want, have := map[int]uint64{}, map[int]uint64{}
		zeros, haveZeros := uint64(0), uint64(0)
		scale, last := int32(7), 0
		for step := range 20 {
			for range rng.IntN(300) {
				values = append(values, math.Exp(5+4*rng.Float64()))
			}
			if rng.IntN(4) == 0 && scale > 0 {
				scale -= int32(rng.IntN(2) + 1)
				scale = max(scale, 0)
			}
			zeros += rng.Uint64N(3)
			index := func(v float64) int { return int(math.Ceil(math.Log2(v)*math.Exp2(float64(scale)))) - 1 }
			counts := map[int]uint64{}
			for _, v := range values {
				counts[index(v)]++
			}
			p := &metrics.ExponentialHistogramDataPoint{Attributes: attributes(text("if", "e")), TimeUnixNano: uint64(now + int64(step)*1e9), StartTimeUnixNano: uint64(now - 1e9), Scale: scale, ZeroCount: zeros, Count: uint64(len(values)) + zeros}
			if len(counts) > 0 {
				keys := slices.Sorted(maps.Keys(counts))
				p.Positive = &metrics.ExponentialHistogramDataPoint_Buckets{Offset: int32(keys[0])}
				for i := keys[0]; i <= keys[len(keys)-1]; i++ {
					p.Positive.BucketCounts = append(p.Positive.BucketCounts, counts[i])
				}
			}
			list, got := read(t, d, asked("leaf", &metrics.Metric{Name: "lat", Data: &metrics.Metric_ExponentialHistogram{ExponentialHistogram: &metrics.ExponentialHistogram{
				DataPoints: []*metrics.ExponentialHistogramDataPoint{p}, AggregationTemporality: 2}}}), now)
			if len(list) != 1 || list[0].Error() != nil {
				t.Fatalf("seed %d: %+v %+v", seed, got, list)
			}
			for _, v := range values[last:] {
				want[int(math.Ceil(math.Log2(v)))]++
			}
			last = len(values)
			for _, b := range list[0].Rare.Histogram.Buckets {
				if b.High == 0 {
					haveZeros += b.Count
					continue
				}
				have[int(math.Ceil(math.Log2((float64(b.Low)+float64(b.High))/2)))] += b.Count
			}
		}
		if !maps.Equal(want, have) || zeros != haveZeros {
			t.Errorf("seed %d: %v and %d zeros, want %v and %d", seed, have, haveZeros, want, zeros)
		}
	}
}

// FuzzRead holds for any request that each of its points becomes a report, is refused or is counted as foreign. The
// number of points equals that of the protocol's library, if that can read the request.
func FuzzRead(f *testing.F) {
	f.Add(asked("leaf", counterOf("nvswitch_interface_if_in_errors", 2, doubleAt(now, 1, text("interface", "swp1")), doubleAt(now+1, 3, text("interface", "swp1")))))
	f.Add(asked("leaf", gaugeOf("nvswitch_interface_if_out_ucast_pkts", doubleAt(now, 1, text("interface", "swp1")), doubleAt(now+1, 9, text("interface", "swp1"))),
		gaugeOf("nvswitch_interface_if_out_discards", doubleAt(now, 1, text("interface", "swp1")), doubleAt(now+1, 3, text("interface", "swp1")))))
	f.Add(asked("10.0.0.1", &metrics.Metric{Name: "nvswitch_histogram_interface_latency", Data: &metrics.Metric_Histogram{Histogram: &metrics.Histogram{DataPoints: []*metrics.HistogramDataPoint{{
		Attributes: attributes(text("interface", "swp1"), number("tc", 1)), TimeUnixNano: uint64(now), BucketCounts: []uint64{1, 2, 3}, ExplicitBounds: []float64{1, 2}}}}}}))
	f.Add(asked("", &metrics.Metric{Name: "nvswitch_histogram_interface_egress_buffer", Data: &metrics.Metric_ExponentialHistogram{ExponentialHistogram: &metrics.ExponentialHistogram{DataPoints: []*metrics.ExponentialHistogramDataPoint{{
		Attributes: attributes(text("interface", "swp1")), TimeUnixNano: uint64(now), Scale: 3, ZeroCount: 1, Positive: &metrics.ExponentialHistogramDataPoint_Buckets{Offset: 70, BucketCounts: []uint64{1, 2, 3}}}}}}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := testDecoder()
		for range 2 {
			list, got := read(t, d, data, now)
			n, err := Points(data)
			var whole metrics.MetricsData
			if proto.Unmarshal(data, &whole) == nil && (err == nil || err.Reason != decode.BadType) {
				if want := pointsOf(&whole); err != nil || n < want {
					t.Fatalf("%d points and %v, want %d", n, err, want)
				}
			}
			if err != nil {
				if len(list) != 1 || got != (Result{}) || list[0].Err.Reason != err.Reason || err.Offset > len(data) {
					t.Fatalf("broken: %d reports, %+v, %v", len(list), got, err)
				}
				continue
			}
			refused := 0
			for _, n := range got.Refused {
				refused += n
			}
			bad := 0
			for i := range list {
				r := &list[i]
				switch {
				case r.Err.Reason != 0:
					bad++
				case r.Has&decode.HasNodeID == 0, len(r.Hops) > 1, len(r.Hops) == 0 && (r.Kind == decode.KindDrop || r.Kind == decode.KindHistogram),
					r.AddRare().Counters.Has != 0 && (r.Kind != decode.KindCounters || len(r.Hops) != 0):
					t.Fatalf("report %+v", r)
				}
				for _, b := range r.AddRare().Histogram.Buckets {
					if b.Low > b.High || b.Count == 0 {
						t.Fatalf("bucket %+v", b)
					}
				}
			}
			if got.Points > n || got.Points != len(list)+got.Foreign || bad != refused || d.streams.used > d.streams.most {
				t.Fatalf("%d points, %+v, %d reports of which %d are refused", n, got, len(list), bad)
			}
		}
	})
}

func pointsOf(m *metrics.MetricsData) (n int) {
	for _, rm := range m.ResourceMetrics {
		for _, sm := range rm.ScopeMetrics {
			for _, x := range sm.Metrics {
				n += len(x.GetGauge().GetDataPoints()) + len(x.GetSum().GetDataPoints()) + len(x.GetHistogram().GetDataPoints()) +
					len(x.GetExponentialHistogram().GetDataPoints()) + len(x.GetSummary().GetDataPoints())
			}
		}
	}
	return n
}

// The reasons of drops are those of sFlow.
func TestReasons(t *testing.T) {
	for code, name := range map[uint8]string{
		noReason: "unknown", byACL: "acl", noBuffer: "no buffer space", vlanTag: "vlan tag mismatch", ingressLAN: "ingress vlan filter",
		loopback: "port loopback filter", damaged: "unknown l2", egressLAN: "egress vlan filter",
	} {
		found := false
		for n := range uint32(sflow.Reasons) {
			found = found || sflow.ReasonName(n) == name && sflow.ReasonCode(n) == code
		}
		if !found {
			t.Errorf("reason %d is not %q", code, name)
		}
	}
}

// Every metric of Cumulus and SONiC that is known is counted or named with the reason why not: none is left out in
// silence.
func TestBuiltinLeavesNothingInSilence(t *testing.T) {
	for _, r := range Builtin() {
		if (r.Statistic == None) != (r.Why != "") {
			t.Errorf("%s has statistic %s and the reason %q", r.Metric, Statistics[r.Statistic], r.Why)
		}
	}
	d := testDecoder()
	list := []*metrics.Metric{gaugeOf("sai_counter_type_21_stat_2", doubleAt(now, 1)), gaugeOf("nvswitch_interface_discards_ingress_discard_all", doubleAt(now, 1))}
	for _, name := range []string{"ingress_buffer", "counter", "microburst", "microburst_egress"} {
		list = append(list, &metrics.Metric{Name: "nvswitch_histogram_interface_" + name, Data: &metrics.Metric_Histogram{Histogram: &metrics.Histogram{
			DataPoints: []*metrics.HistogramDataPoint{{TimeUnixNano: uint64(now), Count: 1, BucketCounts: []uint64{1, 0}, ExplicitBounds: []float64{9}}}}}})
	}
	if reports, got := read(t, d, asked("leaf", list...), now); len(reports) != 0 || got.Foreign != 6 {
		t.Errorf("%d reports, %+v", len(reports), got)
	}
	named := 0
	d.Unread(func(m string, x Unread) {
		if x.Points == 1 && x.Why != "" {
			named++
		}
	})
	if named != 6 {
		t.Errorf("%d of 6 metrics are named with a reason", named)
	}
}

// A collector that starts beside a switch which began a moment before counts nothing of what an earlier collector can
// have counted. What begins after it counts whole. Sums that fall, or begin anew, are counted as such, once each.
func TestRestarts(t *testing.T) {
	const name = "nvswitch_interface_if_out_ucast_pkts"
	sum := func(start, at int64, v float64) []byte {
		p := doubleAt(at, v, text("interface", "swp4"))
		p.StartTimeUnixNano = uint64(start)
		return asked("leaf-1", counterOf(name, 2, p))
	}
	collector := func(since int64) *Decoder {
		return New(Config{Rules: Builtin(), Nodes: []string{"host.name"}, MemoryBytes: 1 << 20, Seed: 7, Since: since})
	}
	total, resets := uint64(0), 0
	receive := func(d *Decoder, data []byte, at int64) {
		list, got := read(t, d, data, at)
		c, _ := count(t, list)
		total, resets = total+c.OutPackets, resets+got.Resets
	}
	const second = int64(1e9)
	first := collector(now)
	receive(first, sum(now+second, now+10*second, 100), now+10*second) // the switch began after the collector
	receive(first, sum(now+second, now+20*second, 250), now+20*second)
	again := collector(now + 25*second)
	receive(again, sum(now+second, now+30*second, 300), now+30*second) // 50 of these came while none ran, and are not known
	receive(again, sum(now+second, now+40*second, 310), now+40*second)
	if total != 260 || resets != 0 {
		t.Errorf("%d packets and %d resets over a restart of the collector, want 260 and none", total, resets)
	}
	receive(again, sum(now+45*second, now+50*second, 7), now+50*second) // of the switch
	receive(again, sum(now+45*second, now+60*second, 9), now+60*second)
	receive(again, sum(now+45*second, now+70*second, 3), now+70*second) // fell, and its start stayed
	if resets != 2 || total != 269 {
		t.Errorf("%d packets and %d resets over two of the switch, want 269 and 2", total, resets)
	}
	delta := doubleAt(now+80*second, 5, text("interface", "swp5"))
	delta.StartTimeUnixNano = uint64(now + 70*second)
	next := doubleAt(now+90*second, 4, text("interface", "swp5"))
	next.StartTimeUnixNano = uint64(now + 80*second)
	for _, p := range []*metrics.NumberDataPoint{delta, next} {
		if _, got := read(t, again, asked("leaf-1", counterOf(name, 1, p)), int64(p.TimeUnixNano)); got.Resets != 0 {
			t.Error("a delta is called a reset")
		}
	}
	buckets := func(at int64, counts ...uint64) []byte {
		return asked("leaf-1", &metrics.Metric{Name: "nvswitch_histogram_interface_latency", Data: &metrics.Metric_Histogram{Histogram: &metrics.Histogram{
			AggregationTemporality: 2, DataPoints: []*metrics.HistogramDataPoint{{TimeUnixNano: uint64(at), Attributes: attributes(text("interface", "swp4")),
				BucketCounts: counts, ExplicitBounds: []float64{319}}}}}})
	}
	resets = 0
	for i, counts := range [][]uint64{{5, 5}, {6, 9}, {1, 0}, {2, 0}} {
		at := now + int64(100+i)*second
		_, got := read(t, again, buckets(at, counts...), at)
		resets += got.Resets
	}
	if resets != 1 {
		t.Errorf("%d resets of a histogram that fell once", resets)
	}
}
