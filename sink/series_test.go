package sink

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/inference"
	"github.com/hopscope/hopscope/inference/names"
)

func TestSeriesList(t *testing.T) {
	for _, s := range AllSeries {
		if s.Doc == "" || len(s.Fields) == 0 || FindSeries(s.Measurement) == nil {
			t.Errorf("%s is described badly", s.Measurement)
		}
		if !slices.IsSortedFunc(s.Tags, func(a, b TagSpec) int { return strings.Compare(a.Key, b.Key) }) {
			t.Errorf("%s: tags are not in order: %v", s.Measurement, s.Tags)
		}
		names := map[string]bool{"time": true}
		for _, tag := range s.Tags {
			if names[tag.Key] || tag.Doc == "" {
				t.Errorf("%s: tag %s", s.Measurement, tag.Key)
			}
			names[tag.Key] = true
		}
		for _, f := range s.Fields {
			if names[f.Key] || f.Doc == "" || f.Kind == String && f.Unit != "" {
				t.Errorf("%s: field %s", s.Measurement, f.Key)
			}
			names[f.Key] = true
		}
	}
}

func TestCheckPoint(t *testing.T) {
	good := func() Point {
		return Point{Measurement: "path", Tags: []Tag{{"flow", "f"}, {"instance", "here"}}, Fields: []Field{IntField("hops", 3), StringField("nodes", "1 > 2")}}
	}
	if p := good(); CheckPoint(&p) != nil {
		t.Errorf("%+v: %v", p, CheckPoint(&p))
	}
	for name, change := range map[string]func(*Point){
		"measurement":   func(p *Point) { p.Measurement = "paths" },
		"tag missing":   func(p *Point) { p.Tags = nil },
		"tag unknown":   func(p *Point) { p.Tags[0].Key = "flows" },
		"tag twice":     func(p *Point) { p.Tags = append(p.Tags, p.Tags[0]) },
		"field unknown": func(p *Point) { p.Fields[0].Key = "hop" },
		"field kind":    func(p *Point) { p.Fields[0].Kind = Float },
		"no field":      func(p *Point) { p.Fields = nil },
	} {
		p := good()
		change(&p)
		if CheckPoint(&p) == nil {
			t.Errorf("%s: %+v is accepted", name, p)
		}
	}
}

// TestPointsMatchSeries compares written points with the list of stored series.
func TestPointsMatchSeries(t *testing.T) {
	sum := inference.Summary{Count: 1, P50: 1, P90: 2, P99: 3, Max: 4}
	hop := inference.HopKey{Node: 1, EgressIf: 2}
	bucketed := sum
	bucketed.Bounds = &inference.Bounds{P50: 1, P90: 1, P99: 1, Open: 1}
	w := inference.Window{
		End:  1e18,
		Hops: []inference.HopStats{{HopKey: hop, Count: 1, Latency: bucketed, Queue: bucketed, Utilization: .5, HasUtilization: true}, {HopKey: inference.HopKey{Other: true}}},
		Flows: []inference.FlowStats{{Packets: 1, Hops: []inference.FlowHop{{HopKey: hop, Latency: sum, Queue: sum}}, PathID: 1, Share: .5, Confidence: .9, Unsettled: true,
			Others: []inference.FlowPath{{Nodes: []uint32{1}, Share: .2}}, Inseparable: []inference.FlowPaths{{Paths: [][]uint32{{2}}, Share: .1}},
			Sights: []inference.FlowSight{{Node: 1, Ingress: 3, Egress: 4, Records: 1, Packets: 5, Octets: 500, First: 1e18, Last: 1e18 + 7, Delayed: 2, DelaySum: 9, DelayMin: 4, DelayMax: 5}}}},
		Nameless:  []inference.NamelessStats{{Count: 1, Latency: sum, Queue: sum}},
		Paths:     []inference.PathChange{{Time: 1e18, From: []inference.HopKey{hop}, To: []inference.HopKey{hop}}},
		Exporters: []inference.ExporterStats{{Reports: 1}},
		Probes:    []inference.ProbeStats{{Sent: 1}, {ProbeKey: inference.ProbeKey{Path: 1}, Sent: 3, Received: 2, Missed: 1, Delay: sum}},
		Interfaces: []inference.InterfaceStats{
			{Node: 1, Samples: 1, Counters: decode.Counters{Has: ^decode.CounterField(0), Interface: 2}},
			{Node: 1, Samples: 1, Counters: decode.Counters{Has: decode.CountInErrors, Interface: 3, InErrors: 4}},
			{Node: 9, Samples: 1, Counters: decode.Counters{Has: decode.CountInErrors, Interface: 3, InErrors: 4}, Folded: true},
			{Node: 9, Samples: 2, Counters: decode.Counters{Has: decode.CountInPackets, Interface: 4, InPackets: 5}, Folded: true},
		},
	}
	seen := map[string]map[string]bool{}
	all := NewWindow("here", &w, []inference.Finding{{ID: 1, Kind: inference.PacketDrops, Updated: 1e18}, {ID: 2, Kind: inference.HighLatency, Updated: 1e18,
		Element: inference.ElementOfLink(7, 9), Cause: 3, Evidence: 1, Learning: true, Statistic: "p99 latency"}})
	all.Names = []names.Row{{Node: 1, Name: "leaf", Site: "berlin"}, {Node: 1, EgressIf: 2, Name: "leaf", Interface: "Ethernet2", Speed: 1e10}}
	all.Revision, all.Run = 1, &Run{Boot: "a", Version: "1", Start: 1, Reports: 2, Held: true}
	for _, p := range all.Points() {
		if i := slices.IndexFunc(p.Tags, func(t Tag) bool { return t.Key == "instance" }); i < 0 || p.Tags[i].Value != "here" {
			t.Errorf("%s does not say which instance it is from: %v", p.Measurement, p.Tags)
		}
		if err := CheckPoint(&p); err != nil {
			t.Error(err)
		}
		spec := FindSeries(p.Measurement)
		if spec == nil {
			t.Errorf("measurement %q is not in the list of series", p.Measurement)
			continue
		}
		var tags, want []string
		for _, tag := range p.Tags {
			tags = append(tags, tag.Key)
		}
		for _, tag := range spec.Tags {
			want = append(want, tag.Key)
		}
		if !reflect.DeepEqual(tags, want) {
			t.Errorf("%s has tags %v, the list says %v", p.Measurement, tags, want)
		}
		kinds := map[string]FieldKind{}
		for _, f := range spec.Fields {
			kinds[f.Key] = f.Kind
		}
		if seen[p.Measurement] == nil {
			seen[p.Measurement] = map[string]bool{}
		}
		for _, f := range p.Fields {
			seen[p.Measurement][f.Key] = true
			if kind, ok := kinds[f.Key]; !ok || kind != f.Kind {
				t.Errorf("%s.%s is a %s, the list says %v, %v", p.Measurement, f.Key, f.Kind, kind, ok)
			}
		}
	}
	for _, spec := range AllSeries {
		for _, f := range spec.Fields {
			if !seen[spec.Measurement][f.Key] {
				t.Errorf("%s.%s is in the list and never written", spec.Measurement, f.Key)
			}
		}
	}
}

// TestInterfaceFields checks that a count that was not reported is absent, and that interfaces without series of their
// own are one.
func TestInterfaceFields(t *testing.T) {
	w := inference.Window{End: 1e18, Interfaces: []inference.InterfaceStats{
		{Node: 1, Samples: 1, Counters: decode.Counters{Has: decode.CountInErrors | decode.CountOutDiscards | decode.CountInOctets | decode.CountOutOctets, Interface: 3, OutDiscards: 4, InOctets: 500, OutOctets: 60}},
		{Node: 9, Samples: 1, Counters: decode.Counters{Has: decode.CountInErrors | decode.CountRxUtilization, Interface: 3, InErrors: 4, RxUtilization: 2500}, Folded: true},
		{Node: 9, Samples: 2, Counters: decode.Counters{Has: decode.CountInPackets | decode.CountRxUtilization, Interface: 4, InPackets: 5, RxUtilization: 1}, Folded: true},
	}}
	var got []string
	for _, p := range NewWindow("", &w, nil).Points() {
		line := p.Measurement
		for _, t := range p.Tags {
			line += " " + t.Key + "=" + t.Value
		}
		for _, f := range p.Fields {
			if f.Kind == Float {
				line += fmt.Sprintf(" %s=%v", f.Key, f.Float)
			} else {
				line += fmt.Sprintf(" %s=%d", f.Key, f.Int)
			}
		}
		got = append(got, line)
	}
	want := []string{"interface instance= interface=3 node=1 samples=1 in_errors=0 out_discards=4 in_octets=500 out_octets=60", "interface instance= interface=other node=other samples=3 in_packets=5 in_errors=4 rx_utilization_max=0.25"}
	if !slices.Equal(got, want) {
		t.Errorf("points\n%q, want\n%q", got, want)
	}
}

// TestEventFields checks that a value that a finding lacks is absent from its point.
func TestEventFields(t *testing.T) {
	fields := func(f inference.Finding) (got []string) {
		for _, p := range NewWindow("here", &inference.Window{}, []inference.Finding{f}).Points() {
			for _, x := range p.Fields {
				switch x.Key {
				case "element", "cause", "statistic":
					got = append(got, x.Key+" "+x.Str)
				case "evidence", "learning":
					got = append(got, fmt.Sprintf("%s %d", x.Key, x.Int))
				}
			}
		}
		return got
	}
	if got := fields(inference.Finding{ID: 1}); got != nil {
		t.Errorf("a finding that stands for itself has %q", got)
	}
	all := inference.Finding{Element: inference.ElementOfLink(7, 9), Cause: 3, Evidence: 2, Learning: true, Statistic: "p99 latency"}
	if got, want := fields(all), []string{"element link 7–9", "cause 0000000000000003", "evidence 2", "learning 1", "statistic p99 latency"}; !slices.Equal(got, want) {
		t.Errorf("the fields are %q, want %q", got, want)
	}
}

// Hops without a node id have points by exporter and position, and those beyond the limit have one. A value that was
// not reported is no field.
func TestNamelessPoints(t *testing.T) {
	w := &Window{Instance: "here", Window: &inference.Window{End: 7, Nameless: []inference.NamelessStats{
		{Count: 3},
		{NamelessKey: inference.NamelessKey{Position: 2}, Count: 4, Queue: inference.Summary{Count: 1, P99: 9}},
		{NamelessKey: inference.NamelessKey{Exporter: decode.AddrFrom4([]byte{10, 0, 0, 1}), Position: 1}, Count: 5, Latency: inference.Summary{Count: 5, P50: 8}},
	}}}
	for i, want := range []string{
		"[{exporter other} {instance here} {position other}] count",
		"[{exporter network} {instance here} {position 2}] count queue_p50 queue_p99 queue_max",
		"[{exporter 10.0.0.1} {instance here} {position 1}] count latency_p50 latency_p90 latency_p99 latency_max",
	} {
		p := points(w)[i]
		got := fmt.Sprint(p.Tags)
		for _, f := range p.Fields {
			got += " " + f.Key
		}
		if err := CheckPoint(&p); err != nil || got != want || p.Time != 7 || p.Measurement != "hop_position" {
			t.Errorf("%s at %d: %s, want %s: %v", p.Measurement, p.Time, got, want, err)
		}
	}
}
