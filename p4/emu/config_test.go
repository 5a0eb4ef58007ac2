package emu

import (
	"encoding/json"
	"math"
	"net/netip"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode/pint"
)

func TestErrorsNameTheProblem(t *testing.T) {
	fault := func(f Fault) func(*Config) {
		return func(c *Config) {
			if f.For == 0 {
				f.For = time.Second
			}
			c.Script = []Fault{f}
		}
	}
	flow := func(edit func(*Flow)) func(*Config) {
		return func(c *Config) {
			f := Flow{From: 0, To: 3, Proto: udp, Rate: 10, PacketBytes: 200}
			edit(&f)
			c.ExtraFlows = []Flow{f}
		}
	}
	probe := func(from string, ports ...int) func(*Config) {
		return func(c *Config) { c.Probes = []Probe{{From: from, Ports: ports, Every: time.Second}} }
	}
	tests := []struct {
		name string
		edit func(*Config)
		want string
	}{
		{"sizes", func(c *Config) { c.MinPacketBytes = 1300 }, "min_packet_bytes: 1300 is above max_packet_bytes, 1200"},
		{"mtu", func(c *Config) { c.MTU = 1000 }, "max_packet_bytes: 1200 does not fit an MTU of 1000"},
		{"queue", func(c *Config) { c.QueueBytes = 1500 }, "queue_bytes: 1500 does not hold one packet"},
		{"rate", func(c *Config) { c.PacketRate = 0 }, "packets_per_second: 0 with 200 flows"},
		{"reserved", func(c *Config) { c.Instructions |= 2 }, "0xfd02 has reserved bits"},
		{"nothing", func(c *Config) { c.Instructions = 0 }, "asks for nothing"},
		{"length", func(c *Config) { c.MaxHops = 40 }, "40 blocks of 9 words make 363"},
		{"buffer", func(c *Config) { c.Dialects = map[string]Dialect{"core-0": md10}; c.Instructions |= insBuffer }, "INT 1.0 does not know"},
		{"exporters", func(c *Config) { c.Exporters = netip.MustParseAddr("::1") }, "exporters: ::1 is no IPv4 address"},
		{"dialect", func(c *Config) { c.Dialect = numDialects }, "is unknown"},
		{"range", func(c *Config) { c.SampleEvery = 0 }, "sample_every: 0 is outside 1..1000000"},
		{"topology", func(c *Config) { c.Topology = "fat-tree:5" }, "must be even"},
		{"hosts", func(c *Config) { c.Topology = "leaf-spine:1,1000"; c.HostsPerEdge = 250 }, "250000 hosts; at most 65536"},
		{"routes", func(c *Config) { c.Topology = "fat-tree:64" }, "routes to 2048 switches over 262144 interfaces are too many"},
		{"one switch", func(c *Config) { c.Topology = "random:1,0,1" }, "hosts on fewer than two switches"},
		{"no such switch", func(c *Config) { c.Dialects = map[string]Dialect{"spine-0": XD20} }, `no switch "spine-0"`},
		{"flow hosts", flow(func(f *Flow) { f.To = 99 }), "flow 0: from host 0 to host 99; there are 16 hosts"},
		{"flow proto", flow(func(f *Flow) { f.Proto = 1 }), "protocol 1 is neither TCP nor UDP"},
		{"flow rate", flow(func(f *Flow) { f.Rate = 0 }), "flow 0: 0 packets a second"},
		{"flow size", flow(func(f *Flow) { f.PacketBytes = 3000 }), "packets of 3000 bytes; 128..1514 fit"},
		{"flow start", flow(func(f *Flow) { f.Start = -1 }), "starts at -1ns"},
		{"probe switch", probe("x", 1), `probe 0: there is no switch "x"`},
		{"probe port", probe("edge-0-0", 9), "hop 1: switch edge-0-0 has no port 9"},
		{"probe label", probe("edge-0-0", 17), "hop 1 leaves by port 17, not 1 to 16"},
		{"probe ends", probe("edge-0-0", 3), "after its 1 hops the probe is on the way to switch agg-0-0, not at a host"},
		{"probe early", probe("edge-0-0", 1, 1), "reaches a host after 1 of its 2 hops"},
		{"probe sender", probe("core-0", 1), "switch core-0 has no host"},
		{"probe empty", probe("edge-0-0"), "empty path"},
		{"probe rate", func(c *Config) { c.Probes = []Probe{{From: "edge-0-0", Ports: []int{1}}} }, "at most once a millisecond"},
		{"probe ids", func(c *Config) { c.FirstNode = 250; c.Probes = someProbes() }, "node ids go up to 269"},
		{"probe udp", func(c *Config) { c.ProbePort = 99; c.Probes = someProbes() }, "probe_port 99"},
		{"share without plan", func(c *Config) { c.PINTShare = .5 }, "pint_share: 0.5 without an execution plan"},
		{"share", func(c *Config) { c.Plan, c.PINTShare = testPlan(t, pint.HashMix), 1.5 }, "pint_share: 1.5 is outside 0..1"},
		{"plan", func(c *Config) { c.Plan = &pint.Plan{} }, "plan: 0 bits"},
		{"plan and reports", func(c *Config) {
			c.Plan, c.Dialects = testPlan(t, pint.HashMix), map[string]Dialect{"core-0": local05}
		}, "plan: switches of dialect local-0.5 do not send reports 2.0"},
		{"fault divert", fault(Fault{Kind: DivertFlows, Node: "core-0", Peer: "edge-0-0", Value: 1}), "no link between core-0 and edge-0-0"},
		{"fault divert share", fault(Fault{Kind: DivertFlows, Node: "core-0", Peer: "agg-0-0"}), "value 0 is outside 0..1"},
		{"fault switch", fault(Fault{Kind: SilenceReports, Node: "x"}), `script, line 0 (silence-reports x): there is no switch "x"`},
		{"fault peer", fault(Fault{Kind: LinkDown, Node: "core-0", Peer: "x"}), `there is no switch "x"`},
		{"fault link", fault(Fault{Kind: LinkDown, Node: "core-0", Peer: "core-1"}), "no link between core-0 and core-1"},
		{"fault route", fault(Fault{Kind: WithdrawRoute, Node: "core-0", Peer: "core-1"}), "core-1 has no hosts"},
		{"fault value", fault(Fault{Kind: LoseReports, Node: "core-0", Value: 1.5}), "value 1.5 is outside 0..1"},
		{"fault cross", fault(Fault{Kind: CrossTraffic, Node: "core-0", Peer: "agg-0-0", Value: 5}), "value 5 is outside 0..4"},
		{"fault delay", fault(Fault{Kind: SlowSwitch, Node: "core-0"}), "delay 0s"},
		{"fault kind", fault(Fault{Kind: numFaults, Node: "core-0"}), "no such kind"},
		{"fault time", fault(Fault{Kind: SilenceReports, Node: "core-0", For: -1}), "from 0s for -1ns"},
		{"fault for ever", fault(Fault{Kind: SilenceReports, Node: "core-0", At: 1, For: math.MaxInt64}), "from 1ns for 2562047h47m16.854775807s"},
		{"fault repeat", func(c *Config) {
			fault(Fault{Kind: SilenceReports, Node: "core-0", At: time.Second})(c)
			c.Repeat = time.Second
		}, "ends at 2s, after the script repeats at 1s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := DefaultConfig()
			tt.edit(&cfg)
			n, err := New(cfg, 1)
			if n != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New: %v, want an error with %q", err, tt.want)
			}
		})
	}
	cfg := DefaultConfig()
	cfg.MTU, cfg.QueueBytes, cfg.Instructions = 1000, 10, 2
	if err := cfg.Validate(); strings.Count(err.Error(), "\n") < 2 {
		t.Errorf("not all problems are reported at once: %v", err)
	}
}

func TestDialectText(t *testing.T) {
	for d := range numDialects {
		b, err := json.Marshal(d)
		var back Dialect
		if err2 := json.Unmarshal(b, &back); err != nil || err2 != nil || back != d {
			t.Errorf("%v: %s, %v, %v, %v", d, b, err, err2, back)
		}
	}
	if err := new(Dialect).UnmarshalText([]byte("int-md")); err == nil {
		t.Error(`"int-md" was taken for a dialect`)
	}
	if _, err := numDialects.MarshalText(); err == nil {
		t.Error("a dialect without a name was written")
	}
}

// The emulated network must not depend on what it tests. It shares the encoders of the formats with the decoders'
// packages. Tests there compare them with bytes put together by hand, and TestBytes compares the network with hashes of
// its bytes.
func TestDeps(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range strings.Fields(string(out)) {
		switch strings.TrimPrefix(dep, "github.com/hopscope/hopscope/") {
		case "ingest/peer", "ingest/retry", "sink/flock":
			continue // of connections to controllers and of files, and nothing that reads reports
		}
		for _, room := range []string{"ingest", "sink", "sketches", "inference", "cmd", "decode/demux"} {
			if strings.Contains(dep, "hopscope/hopscope/"+room) {
				t.Errorf("p4/emu imports %s, which it is to be a test of", dep)
			}
		}
	}
}

// Every field with a range is checked against it, however it was filled in. A value just outside, or at the extreme of
// its type, is refused by the field's name.
func TestRangesHold(t *testing.T) {
	fields := reflect.TypeFor[Config]()
	ranges := 0
	for i := range fields.NumField() {
		f := fields.Field(i)
		if f.Tag.Get("range") == "" {
			continue
		}
		ranges++
		var values []any
		switch f.Type {
		case reflect.TypeFor[time.Duration]():
			values = []any{time.Duration(-1), time.Duration(math.MinInt64), time.Duration(math.MaxInt64)}
		case reflect.TypeFor[int](), reflect.TypeFor[int64]():
			values = []any{-1, math.MinInt, math.MaxInt}
		case reflect.TypeFor[float64]():
			values = []any{-.001, math.NaN(), math.Inf(1), math.Inf(-1)}
		}
		if values == nil {
			t.Errorf("%s has a range, and the type %v", f.Name, f.Type)
		}
		for _, x := range values {
			cfg := DefaultConfig()
			reflect.ValueOf(&cfg).Elem().Field(i).Set(reflect.ValueOf(x).Convert(f.Type))
			want := f.Tag.Get("yaml") + ": "
			if n, err := New(cfg, 1); n != nil || err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "is outside "+f.Tag.Get("range")) {
				t.Errorf("%s %v: %v", f.Name, x, err)
			}
		}
	}
	if ranges < 30 {
		t.Errorf("%d fields have a range", ranges)
	}
}
