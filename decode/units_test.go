package decode

import (
	"net/netip"
	"slices"
	"testing"
)

func TestLatency(t *testing.T) {
	us := Units{LatencyNS: 1000, TimeNS: 1000, LatencyCalc: true}
	for _, c := range []struct {
		name  string
		units Units
		hop   Hop
		want  uint64
		ok    bool
	}{
		{"reported", us, Hop{Has: HopLatency | HopIngressTime | HopEgressTime, Latency: 7, IngressTime: 1, EgressTime: 100, TimeBits: 64}, 7000, true},
		{"from times", us, Hop{Has: HopIngressTime | HopEgressTime, IngressTime: 10, EgressTime: 12, TimeBits: 64}, 2000, true},
		{"across the wrap of 32 bits", us, Hop{Has: HopIngressTime | HopEgressTime, IngressTime: 0xfffffff0, EgressTime: 0x200, TimeBits: 32}, 528000, true},
		{"across the wrap of 48 bits", us, Hop{Has: HopIngressTime | HopEgressTime, IngressTime: 1<<48 - 1, EgressTime: 1, TimeBits: 48}, 2000, true},
		{"clock went backwards", us, Hop{Has: HopIngressTime | HopEgressTime, IngressTime: 12, EgressTime: 10, TimeBits: 64}, 0, false},
		{"ingress not set", DefaultUnits, Hop{Has: HopIngressTime | HopEgressTime, EgressTime: 1700000000 * 1e9, TimeBits: 64}, 0, false},
		{"ingress not set, of 32 bits", us, Hop{Has: HopIngressTime | HopEgressTime, EgressTime: 2000, TimeBits: 32}, 0, false},
		{"egress not set", us, Hop{Has: HopIngressTime | HopEgressTime, IngressTime: 0xffffff00, TimeBits: 32}, 0, false},
		{"longer than 32 bits can say", DefaultUnits, Hop{Has: HopIngressTime | HopEgressTime, IngressTime: 1, EgressTime: 1<<32 + 1, TimeBits: 48}, 0, false},
		{"longer than any queue", us, Hop{Has: HopIngressTime | HopEgressTime, IngressTime: 1, EgressTime: 200e6, TimeBits: 32}, 0, false},
		{"probe without enqueue time", us, Hop{Has: HopIngressTime | HopEnqTime | HopQueueDelay, IngressTime: 5, QueueDelay: 4, TimeBits: 48}, 0, false},
		{"probe without ingress time", us, Hop{Has: HopIngressTime | HopEnqTime | HopQueueDelay, EnqTime: 8, QueueDelay: 4, TimeBits: 48}, 0, false},
		{"times are not compared", Units{LatencyNS: 1, TimeNS: 1}, Hop{Has: HopIngressTime | HopEgressTime, EgressTime: 2, TimeBits: 64}, 0, false},
		{"probe", us, Hop{Has: HopIngressTime | HopEnqTime | HopQueueDelay, IngressTime: 1<<32 + 5, EnqTime: 8, QueueDelay: 4, TimeBits: 48}, 7000, true},
		{"queue alone", us, Hop{Has: HopQueueDelay, QueueDelay: 4}, 4000, true},
		{"nothing", us, Hop{}, 0, false},
	} {
		if got, ok := c.units.Latency(&c.hop); got != c.want || ok != c.ok {
			t.Errorf("%s: Latency = %d, %v, want %d, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestQueueAndUtilization(t *testing.T) {
	u := Units{QueueBytes: 80, TxFullScale: 10000}
	h := Hop{Has: HopQueueOccupancy | HopTxUtilization, QueueOccupancy: 3, TxUtilization: 2500}
	if got, ok := u.Queue(&h); got != 240 || !ok {
		t.Errorf("Queue = %d, %v", got, ok)
	}
	if got, ok := u.Utilization(&h); got != 0.25 || !ok {
		t.Errorf("Utilization = %v, %v", got, ok)
	}
	if _, ok := u.Queue(&Hop{}); ok {
		t.Error("Queue of an empty hop")
	}
	if _, ok := u.Utilization(&Hop{}); ok {
		t.Error("Utilization of an empty hop")
	}
	if _, ok := (&Units{}).Utilization(&h); ok {
		t.Error("Utilization without a scale")
	}
}

func TestFlowKey(t *testing.T) {
	key := func(src, dst string, sport, dport uint16, proto, version uint8) FlowKey {
		return FlowKey{
			Src: AddrFrom(netip.MustParseAddr(src)), Dst: AddrFrom(netip.MustParseAddr(dst)),
			SrcPort: sport, DstPort: dport, Proto: proto, IPVersion: version,
		}
	}
	four := key("10.0.1.1", "10.0.2.2", 1111, 2222, 17, 4)
	for _, c := range []struct {
		key  FlowKey
		want string
	}{
		{four, "10.0.1.1:1111 > 10.0.2.2:2222 udp"},
		{key("2001:db8::1", "::ffff:10.0.0.1", 1, 2, 6, 6), "[2001:db8::1]:1 > [::ffff:10.0.0.1]:2 tcp"},
		{key("10.0.1.1", "10.0.2.2", 0, 0, 47, 4), "10.0.1.1:0 > 10.0.2.2:0 proto 47"},
		{FlowKey{}, "no flow"},
	} {
		if got := c.key.String(); got != c.want {
			t.Errorf("String = %q, want %q", got, c.want)
		}
	}
	// Every part of the key, and the seed, changes the hash.
	all := []FlowKey{
		four, key("10.0.2.2", "10.0.1.1", 2222, 1111, 17, 4), key("10.0.1.1", "10.0.2.2", 2222, 1111, 17, 4),
		key("10.0.1.2", "10.0.2.2", 1111, 2222, 17, 4), key("10.0.1.1", "10.0.2.3", 1111, 2222, 17, 4),
		key("10.0.1.1", "10.0.2.2", 1112, 2222, 17, 4), key("10.0.1.1", "10.0.2.2", 1111, 2223, 17, 4),
		key("10.0.1.1", "10.0.2.2", 1111, 2222, 6, 4), key("10.0.1.1", "10.0.2.2", 1111, 2222, 17, 6), {},
	}
	seen := map[uint64]int{}
	for i := range all {
		for seed := range uint64(100) {
			key := NewHashKey(seed)
			h := key.Flow(&all[i])
			if at, dup := seen[h]; dup {
				t.Fatalf("%v and %v hash alike", all[at], all[i])
			}
			seen[h] = i
		}
	}
	if a := AddrFrom4([]byte{10, 0, 1, 1}); a != four.Src || a.String() != "10.0.1.1" {
		t.Errorf("AddrFrom4 = %v", a)
	}
}

// The names are those of the JSON and of the metrics.
func TestNames(t *testing.T) {
	formats, kinds, reasons := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for f := Format(1); int(f) < NumFormats; f++ {
		formats[f.String()] = true
	}
	for k := Kind(1); int(k) < NumKinds; k++ {
		kinds[k.String()] = true
	}
	for r := Reason(1); int(r) < NumReasons; r++ {
		reasons[r.String()] = true
	}
	if len(formats) != NumFormats-1 || len(kinds) != NumKinds-1 || len(reasons) != NumReasons-1 || formats[""] || kinds[""] || reasons[""] {
		t.Errorf("names: %v, %v, %v", formats, kinds, reasons)
	}
	for v, want := range map[Version]string{V05: "0.5", V10: "1.0", V20: "2.0", V21: "2.1", 0: ""} {
		if v.String() != want {
			t.Errorf("Version %d = %q, want %q", v, v, want)
		}
	}
	flags := (Dropped | Congested | Tracked | Transit | HopLimit | MTU | Copy | Discard | Truncated).AppendNames(nil)
	want := []string{"dropped", "congested", "tracked", "transit", "hop-limit", "mtu", "copy", "discard", "truncated"}
	if !slices.Equal(flags, want) {
		t.Errorf("flags %q, want %q", flags, want)
	}
	// telemetry takes the four flags of a report 2.0 as one reversed nibble.
	if got := []Flags{Dropped, Congested, Tracked, Transit}; !slices.Equal(got, []Flags{1, 2, 4, 8}) {
		t.Errorf("the report flags are %v, not the first four bits in the order of the header", got)
	}
	r := Report{}
	if r.Error() != nil {
		t.Error("a report without a failure has an error")
	}
	r.Fail(INTMD, "hop_ml", 86, BadWidth)
	r.Fail(INTMD, "length", 2, Short)
	if got := r.Error().Error(); got != "int-md: hop_ml at byte 86: bad-width" {
		t.Errorf("Error = %q", got)
	}
}

// TestReckonedLatency holds that a latency which the device computed from an unset time counts as none, by the times
// beside it. Any other latency counts as reported.
func TestReckonedLatency(t *testing.T) {
	const both = HopLatency | HopIngressTime | HopEgressTime
	us := DefaultUnits
	us.TimeNS = 1000 // times in microseconds, latencies in nanoseconds
	low := func(x uint64) uint32 { return uint32(x) }
	egress := uint64(1_795_171_850_330_628_000)
	for _, c := range []struct {
		name  string
		units Units
		h     Hop
		ns    uint64
		ok    bool
	}{
		{"both set", DefaultUnits, Hop{Has: both, TimeBits: 64, IngressTime: egress - 1500, EgressTime: egress, Latency: 1500}, 1500, true},
		{"ingress 0, the latency of its own", DefaultUnits, Hop{Has: both, TimeBits: 64, EgressTime: egress, Latency: 300_000}, 300_000, true},
		{"ingress 0, 64 bits", DefaultUnits, Hop{Has: both, TimeBits: 64, EgressTime: egress, Latency: low(egress)}, 0, false},
		{"ingress 0, a little earlier than the stamp", DefaultUnits, Hop{Has: both, TimeBits: 64, EgressTime: egress, Latency: low(egress) - 2000}, 0, false},
		{"ingress 0, 48 bits", DefaultUnits, Hop{Has: both, TimeBits: 48, EgressTime: 1<<47 | 1<<31, Latency: 1 << 31}, 0, false},
		{"ingress 0, 32 bits", DefaultUnits, Hop{Has: both, TimeBits: 32, EgressTime: 3e9, Latency: 3e9}, 0, false},
		{"ingress 0, microseconds", us, Hop{Has: both, TimeBits: 48, EgressTime: 7_723_576, Latency: low(7_723_576_000)}, 0, false},
		{"egress 0", DefaultUnits, Hop{Has: both, TimeBits: 48, IngressTime: 5e9, Latency: low(1<<48 - 5e9)}, 0, false},
		{"egress before ingress", DefaultUnits, Hop{Has: both, TimeBits: 48, IngressTime: 5e9, EgressTime: 5e9 - 700, Latency: 1<<32 - 700}, 0, false},
		{"ingress set behind: the times count", DefaultUnits, Hop{Has: both, TimeBits: 64, IngressTime: egress - 1500, EgressTime: egress, Latency: low(egress)}, 1500, true},
		{"the egress alone", DefaultUnits, Hop{Has: HopLatency | HopEgressTime, TimeBits: 32, EgressTime: 3e9, Latency: 3e9 - 40}, 0, false},
		{"the ingress alone", DefaultUnits, Hop{Has: HopLatency | HopIngressTime, TimeBits: 32, IngressTime: 1e9, Latency: 1<<32 - 1e9}, 0, false},
		{"a long latency beside an egress", DefaultUnits, Hop{Has: HopLatency | HopEgressTime, TimeBits: 32, EgressTime: 3e9, Latency: 1e9}, 1e9, true},
		{"no times: nothing is guessed", DefaultUnits, Hop{Has: HopLatency, Latency: 1<<32 - 700}, 1<<32 - 700, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if ns, ok := c.units.Latency(&c.h); ns != c.ns || ok != c.ok {
				t.Errorf("%d ns, %v, want %d, %v", ns, ok, c.ns, c.ok)
			}
			r := Report{Units: &c.units, Hops: []Hop{c.h}}
			reckoned := !c.ok || c.h.Latency != uint32(c.ns)
			if n := r.Unset(); (n == 1) != reckoned {
				t.Errorf("%d hops have times that were not set, want %v", n, reckoned)
			}
		})
	}
}
