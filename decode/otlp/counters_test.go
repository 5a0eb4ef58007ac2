package otlp

import (
	"math"
	"testing"

	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/hopscope/hopscope/decode"
)

// step is a request of swp4 with what its metrics count, by the rest of their names.
type step struct {
	name   string
	second int64
	values []value
	want   decode.Counters // of the request
	drops  uint32          // that are reported as such
}

type value struct {
	metric string
	v      float64
}

// count returns the counts of the interface in the reports of a request, and the number of dropped packets.
func count(t *testing.T, list []decode.Report) (c decode.Counters, drops uint32) {
	t.Helper()
	for i := range list {
		r := &list[i]
		if r.Error() != nil {
			t.Errorf("%v", r.Error())
		}
		if r.Kind == decode.KindDrop {
			drops += r.Weight
		}
		if r.AddRare().Counters.Has != 0 {
			if r.NodeID != nodeOf("leaf-1") || r.Rare.Counters.Interface != portOf("swp4") {
				t.Errorf("counters of another interface: %+v", r)
			}
			c.Add(&r.Rare.Counters)
		}
	}
	return c, drops
}

func follow(t *testing.T, d *Decoder, metric func(name string, p *metrics.NumberDataPoint) *metrics.Metric, steps []step) {
	t.Helper()
	for _, x := range steps {
		at := now + x.second*1e9
		var list []*metrics.Metric
		for _, v := range x.values {
			list = append(list, metric("nvswitch_interface_"+v.metric, doubleAt(at, v.v, text("interface", "swp4"))))
		}
		reports, _ := read(t, d, asked("leaf-1", list...), at)
		c, drops := count(t, reports)
		if c.Interface = 0; c != x.want || drops != x.drops {
			t.Errorf("%s: %+v and %d drops, want %+v and %d", x.name, c, drops, x.want, x.drops)
		}
	}
}

const (
	ins  = decode.CountInPackets | decode.CountInErrors
	outs = decode.CountOutPackets | decode.CountOutDiscards
)

// The increments of sums are counted by direction. An unknown value is absent, and not zero.
func TestCounters(t *testing.T) {
	gauges := func(name string, p *metrics.NumberDataPoint) *metrics.Metric { return gaugeOf(name, p) }
	follow(t, testDecoder(), gauges, []step{
		{"the first", 0, []value{{"if_in_ucast_pkts", 100}, {"if_in_errors", 7}, {"if_out_ucast_pkts", 50}, {"if_out_discards", 3}}, decode.Counters{}, 0},
		{"packets before", 10, []value{{"if_in_ucast_pkts", 200}, {"if_in_multicast_pkts", 5}, {"if_in_errors", 9}, {"if_out_ucast_pkts", 90}},
			decode.Counters{Has: ins | decode.CountOutPackets, InPackets: 100, InErrors: 2, OutPackets: 40}, 0},
		{"discards before", 20, []value{{"if_out_discards", 13}, {"if_out_ucast_pkts", 91}}, decode.Counters{Has: outs, OutPackets: 1, OutDiscards: 10}, 0},
		{"discards alone wait", 30, []value{{"if_out_discards", 14}}, decode.Counters{}, 0},
		{"for packets of their direction", 31, []value{{"if_in_ucast_pkts", 200}}, decode.Counters{Has: decode.CountInPackets}, 0},
		{"which come", 32, []value{{"if_out_ucast_pkts", 99}}, decode.Counters{Has: outs, OutPackets: 8, OutDiscards: 1}, 0},
		{"nothing passes", 40, []value{{"if_out_ucast_pkts", 99}, {"if_out_discards", 19}}, decode.Counters{Has: outs, OutDiscards: 5}, 0},
		{"set to zero, and the packets first", 50, []value{{"if_out_ucast_pkts", 4}, {"if_out_discards", 20}}, decode.Counters{}, 0},
		{"from there on", 60, []value{{"if_out_ucast_pkts", 9}, {"if_out_discards", 22}}, decode.Counters{Has: outs, OutPackets: 5, OutDiscards: 2}, 0},
		{"set to zero, and the packets last", 70, []value{{"if_out_discards", 23}, {"if_out_ucast_pkts", 3}}, decode.Counters{}, 0},
		{"the waiting ones with it", 80, []value{{"if_out_ucast_pkts", 5}}, decode.Counters{Has: decode.CountOutPackets, OutPackets: 2}, 0},
		{"a reason beside all of them", 90, []value{{"if_out_ucast_pkts", 6}, {"discards_egress_hoq", 9}, {"if_out_discards", 30}}, decode.Counters{Has: outs, OutPackets: 1, OutDiscards: 7}, 0},
		{"counts once", 100, []value{{"if_out_ucast_pkts", 6}, {"discards_egress_hoq", 14}, {"if_out_discards", 35}}, decode.Counters{Has: outs, OutDiscards: 5}, 0},
		{"and alone where they cease", 800, []value{{"if_out_ucast_pkts", 6}, {"discards_egress_hoq", 17}}, decode.Counters{Has: outs, OutDiscards: 3}, 0},
		{"a filter of no direction", 801, []value{{"discards_port_isolation", 1}}, decode.Counters{}, 0},
		{"drops", 802, []value{{"discards_port_isolation", 3}}, decode.Counters{}, 2},
		{"a speed", 803, []value{{"oper_aggregate_speed", 84 * 8e4}, {"if_out_ucast_pkts", 9}}, decode.Counters{Has: decode.CountOutPackets, OutPackets: 3}, 0},
		{"more than the line carries", 804, []value{{"if_out_ucast_pkts", 9 + 30_002}}, decode.Counters{}, 0},
		{"as many as it does", 805, []value{{"if_out_ucast_pkts", 9 + 60_003}}, decode.Counters{Has: decode.CountOutPackets, OutPackets: 30_001}, 0},
		{"a speed in another unit", 806, []value{{"oper_aggregate_speed", 400_000}, {"if_out_ucast_pkts", 9 + 260_003}}, decode.Counters{Has: decode.CountOutPackets, OutPackets: 200_000}, 0},
	})
}

// Discards of an interface that does not count packets have no share, and stay drops with their reason, also once
// packets cease to come.
func TestDropsWithoutPackets(t *testing.T) {
	d := testDecoder()
	gauges := func(name string, p *metrics.NumberDataPoint) *metrics.Metric { return gaugeOf(name, p) }
	follow(t, d, gauges, []step{
		{"the first", 0, []value{{"discards_egress_hoq", 40}}, decode.Counters{}, 0},
		{"no packets", 10, []value{{"discards_egress_hoq", 45}}, decode.Counters{}, 5},
		{"of the other direction", 20, []value{{"if_in_ucast_pkts", 4}, {"discards_egress_hoq", 46}}, decode.Counters{}, 1},
		{"of this one", 30, []value{{"if_out_ucast_pkts", 4}, {"discards_egress_hoq", 48}}, decode.Counters{}, 0},
		{"known", 40, []value{{"if_out_ucast_pkts", 5}}, decode.Counters{Has: outs, OutPackets: 1, OutDiscards: 2}, 0},
		{"no more", 700, []value{{"discards_egress_hoq", 49}}, decode.Counters{}, 1},
	})
	at := now + 710e9
	list, _ := read(t, d, asked("leaf-1", gaugeOf("nvswitch_interface_discards_egress_hoq", doubleAt(at, 60, text("interface", "swp4")))), at)
	if len(list) != 1 || list[0].Weight != 11 || list[0].DropReason != noBuffer || list[0].Hops[0].L2EgressIf != portOf("swp4") {
		t.Errorf("%+v", list)
	}
}

// Points of deltas count whole, and so does a sum since a start behind the last point.
func TestCountersTemporality(t *testing.T) {
	deltas := func(name string, p *metrics.NumberDataPoint) *metrics.Metric { return counterOf(name, 1, p) }
	follow(t, testDecoder(), deltas, []step{
		{"the first", 0, []value{{"if_out_ucast_pkts", 100}, {"if_out_discards", 7}}, decode.Counters{Has: outs, OutPackets: 100, OutDiscards: 7}, 0},
		{"less", 1, []value{{"if_out_ucast_pkts", 50}, {"if_out_discards", 0}}, decode.Counters{Has: outs, OutPackets: 50}, 0},
	})
	start := uint64(now - 3600e9)
	sums := func(name string, p *metrics.NumberDataPoint) *metrics.Metric {
		p.StartTimeUnixNano = start
		return counterOf(name, 2, p)
	}
	d := testDecoder()
	follow(t, d, sums, []step{
		{"the first", 0, []value{{"if_out_ucast_pkts", 100}, {"if_out_discards", 7}}, decode.Counters{}, 0},
		{"more", 1, []value{{"if_out_ucast_pkts", 150}, {"if_out_discards", 8}}, decode.Counters{Has: outs, OutPackets: 50, OutDiscards: 1}, 0},
	})
	start = uint64(now + 2e9)
	follow(t, d, sums, []step{
		{"a restart", 3, []value{{"if_out_ucast_pkts", 20}, {"if_out_discards", 9}}, decode.Counters{Has: outs, OutPackets: 20, OutDiscards: 9}, 0},
		{"sums that are huge", 4, []value{{"if_out_ucast_pkts", math.MaxFloat64}, {"if_out_discards", 10}}, decode.Counters{}, 0},
	})
}

// Octets are counted, and those received are a share of the interface where its speed is known. A counter that falls
// counts nothing, whether it has 32 bits and wraps or was set to zero, and neither does what comes with it.
func TestReceived(t *testing.T) {
	const octets = decode.CountInOctets | decode.CountRxUtilization
	gauges := func(name string, p *metrics.NumberDataPoint) *metrics.Metric { return gaugeOf(name, p) }
	deltas := func(name string, p *metrics.NumberDataPoint) *metrics.Metric { return counterOf(name, 1, p) }
	follow(t, testDecoder(), gauges, []step{
		{"the first", 0, []value{{"if_in_octets", 1 << 31}, {"if_in_ucast_pkts", 9}}, decode.Counters{}, 0},
		{"no speed", 10, []value{{"if_in_octets", 1<<31 + 500}}, decode.Counters{Has: decode.CountInOctets, InOctets: 500}, 0},
		{"a quarter", 20, []value{{"oper_aggregate_speed", 1e8}, {"if_in_octets", 1<<31 + 500 + 31_250_000}}, decode.Counters{Has: octets, InOctets: 31_250_000, RxUtilization: 2500}, 0},
		{"nothing", 30, []value{{"if_in_octets", 1<<31 + 500 + 31_250_000}}, decode.Counters{Has: octets}, 0},
		{"the line, and what is sent", 40, []value{{"if_in_octets", 1<<31 + 500 + 156_250_000}, {"if_out_octets", 5}}, decode.Counters{Has: octets, InOctets: 125_000_000, RxUtilization: 10_000}, 0},
		{"more than a speed that is wrong", 50, []value{{"if_in_octets", 1<<31 + 500 + 306_250_000}}, decode.Counters{Has: decode.CountInOctets, InOctets: 150_000_000}, 0},
		{"more than the line carries", 60, []value{{"if_in_octets", 1<<31 + 500 + 706_250_000}}, decode.Counters{}, 0},
		{"a wrap", 70, []value{{"if_in_octets", 1000}, {"if_in_ucast_pkts", 19}}, decode.Counters{}, 0},
		{"from there on", 80, []value{{"if_in_octets", 12_501_000}, {"if_in_ucast_pkts", 29}}, decode.Counters{Has: octets | decode.CountInPackets, InPackets: 10, InOctets: 12_500_000, RxUtilization: 1000}, 0},
		{"set to zero", 90, []value{{"if_in_octets", 0}}, decode.Counters{}, 0},
	})
	follow(t, testDecoder(), gauges, []step{
		{"the first", 0, []value{{"if_out_octets", 1 << 31}, {"if_in_octets", 5}}, decode.Counters{}, 0},
		{"both", 10, []value{{"if_out_octets", 1<<31 + 500}, {"if_in_octets", 12}}, decode.Counters{Has: decode.CountOutOctets | decode.CountInOctets, OutOctets: 500, InOctets: 7}, 0},
		{"a wrap", 20, []value{{"if_out_octets", 3}, {"if_in_octets", 19}}, decode.Counters{}, 0},
		{"more than the line carries", 30, []value{{"oper_aggregate_speed", 1e6}, {"if_out_octets", 1 << 31}}, decode.Counters{}, 0},
	})
	follow(t, testDecoder(), deltas, []step{
		{"a delta", 0, []value{{"oper_aggregate_speed", 1e8}, {"if_in_octets", 7}}, decode.Counters{Has: decode.CountInOctets, InOctets: 7}, 0},
		{"less", 10, []value{{"if_in_octets", 5}}, decode.Counters{Has: decode.CountInOctets, InOctets: 5}, 0},
	})
	list, _ := read(t, testDecoder(), asked("leaf-1", counterOf("nvswitch_interface_if_in_octets", 1, doubleAt(now, 7))), now)
	if len(list) != 0 {
		t.Errorf("octets of no interface: %+v", list)
	}
}

// SONiC counts packets and discards by the numbers of SAI.
func TestSONiCCounters(t *testing.T) {
	d := testDecoder()
	at := func(second int64, counts map[string]float64) []byte {
		var list []*metrics.Metric
		for stat, v := range counts {
			list = append(list, gaugeOf("sai_counter_type_1_stat_"+stat, doubleAt(now+second*1e9, v, text("object_name", "swp4"))))
		}
		return asked("leaf-1", list...)
	}
	read(t, d, at(0, map[string]float64{"0": 1, "1": 1, "2": 1, "3": 1, "4": 1, "6": 1, "7": 1, "10": 1, "11": 1, "12": 1, "13": 1, "15": 1, "16": 1}), now)
	list, got := read(t, d, at(1, map[string]float64{"0": 41, "1": 3, "2": 7, "3": 11, "4": 12, "6": 4, "7": 5, "10": 6, "11": 8, "12": 13, "13": 14, "15": 7, "16": 8}), now+1e9)
	c, drops := count(t, list)
	want := decode.Counters{Has: 63 | decode.CountInOctets, InOctets: 40, InPackets: 2 + 3 + 4, OutPackets: 5 + 6 + 7, InErrors: 11, OutErrors: 13, InDiscards: 10, OutDiscards: 12}
	if c != want || drops != 0 || got.Foreign != 2 {
		t.Errorf("%+v, %d drops, %+v, want %+v", c, drops, got, want)
	}
}
