package demux

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hopscope/hopscope/decode"
	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/decode/sflow"
	"github.com/hopscope/hopscope/internal/plain"
)

// datagramOf is a datagram of an agent, of which up is the uptime in ms.
func datagramOf(seq, up uint32, samples ...sflow.Sample) []byte {
	d := sflow.Datagram{IPv: 4, Seq: seq, Uptime: up, SubAgent: 3, Samples: uint32(len(samples)), Agent: decode.AddrFrom4([]byte{10, 0, 0, 9})}
	b := sflow.AppendDatagram(nil, &d)
	for i := range samples {
		b = sflow.AppendSample(b, &samples[i])
	}
	return b
}

// A sampled packet with INT is two reports, of which one counts the packet, also where the sample cut the stack. A
// mark before what is no INT is none.
func TestSFlowStack(t *testing.T) {
	h := intmd.Header{Version: decode.V21, Instructions: 0x9000, RemainingHops: 8, Proto: packet.ProtoUDP, Original: 53}
	hops := make([]decode.Hop, 3)
	for i := range hops {
		hops[i] = decode.Hop{NodeID: uint32(i + 1), QueueID: 1, QueueOccupancy: 9, Has: decode.HopNodeID | decode.HopQueueID | decode.HopQueueOccupancy}
	}
	stack := intmd.Append(nil, &h, hops)
	x := packet.AppendIPv4(packet.AppendEthernet(nil, packet.MAC{2, 5: 2}, packet.MAC{2, 5: 1}, packet.EtherIPv4),
		&packet.IPv4{TOS: 0x17 << 2, TTL: 60, Proto: packet.ProtoUDP, Src: [4]byte{10, 0, 1, 1}, Dst: [4]byte{10, 0, 2, 2}}, packet.UDPLen+len(stack))
	x = append(packet.AppendUDP(x, 4000, 53, len(stack)), stack...)
	spoilt := slices.Clone(x)
	spoilt[14+20+8+4] = 0xf0 // a version that does not exist
	d := New(profile(t, "auto"))
	var b decode.Batch
	src := decode.AddrFrom4([]byte{192, 0, 2, 1})
	for _, c := range []struct {
		name  string
		data  []byte
		nodes int
	}{{"whole", x, 3}, {"cut", x[:len(x)-7], 2}, {"spoilt", spoilt, 0}} {
		s := sflow.Sample{Kind: sflow.Flow, Seq: 1, Rate: 100, Has: sflow.HasHeader, Protocol: 1, FrameLen: uint32(len(x)), Header: c.data}
		payload := datagramOf(1, 1, s, s)
		read := func() int { b.Reset(); return d.Datagram(&b, src, payload, 7) }
		each := 2
		if c.nodes == 0 {
			each = 1
		}
		if n := read(); n != 2*each || n != len(b.Reports) {
			t.Errorf("%s: %d reports: %s", c.name, n, lines(&b))
			continue
		}
		for i, r := range b.Reports {
			stack := i%each == 1
			if (r.Format == decode.INTMD) != stack || (r.Flags&decode.Sampled != 0) != stack || r.FirstOfGroup != (i == 0) || r.Seq != 1 || r.HWID != 3 || r.Exporter != b.Reports[0].Exporter || r.Err.Reason != 0 {
				t.Errorf("%s: report %d: %+v", c.name, i, r)
			}
			if stack && (len(r.Hops) != c.nodes || (r.Flags&decode.Truncated != 0) != (c.nodes < 3) || r.Flow != b.Reports[i-1].Flow) {
				t.Errorf("%s: report %d: %+v", c.name, i, r)
			}
		}
		if n := testing.AllocsPerRun(100, func() { read() }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

// The agent's data become reports of its own node: a drop with its reason, a hop with its delay, the use of an
// interface.
func TestSFlow(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	made := func(kind sflow.Kind, has sflow.Field) sflow.Sample {
		s := plain.RandomSFlowSample(rnd)
		for s.Kind != kind {
			s = plain.RandomSFlowSample(rnd)
		}
		s.Has, s.Input, s.Output, s.Seq, s.Drops, s.Class, s.Index = has, sflow.Port{Value: 3}, sflow.Port{Value: 70000}, 1, 0, 0, 3
		return s
	}
	drop := made(sflow.Discard, sflow.HasHeader|sflow.HasQueue)
	drop.Reason, drop.Queue = 259, 5
	slow := made(sflow.Flow, sflow.HasHeader|sflow.HasDelay|sflow.HasDepth)
	slow.Delay, slow.Depth, slow.Rate = 1500, 9000, 512
	plain := made(sflow.Flow, sflow.HasHeader)
	discarded := made(sflow.Flow, sflow.HasHeader)
	discarded.Output = sflow.Port{Format: 1, Value: 258}
	counters := made(sflow.Counters, sflow.HasInterface)
	counters.Interface.Index, counters.Interface.Speed, counters.Interface.OutOctets = 7, 1e9, 1000

	d := New(profile(t, "auto"))
	var b decode.Batch
	src := decode.AddrFrom4([]byte{192, 0, 2, 1})
	read := func(payload []byte) []*decode.Report {
		b.Reset()
		if n := d.Datagram(&b, src, payload, 7); n != len(b.Reports) {
			t.Fatalf("%d reports, and says %d", len(b.Reports), n)
		}
		return b.Reports
	}
	r := read(datagramOf(41, 10_000, drop, slow, plain, discarded, counters))
	if len(r) != 4 {
		t.Fatalf("%d reports: %s", len(r), lines(&b))
	}
	for i, kind := range []decode.Kind{decode.KindDrop, decode.KindPostcard, decode.KindSample, decode.KindDrop} {
		x := r[i]
		if x.Kind != kind || x.Exporter != decode.AddrFrom4([]byte{10, 0, 0, 9}) || x.NodeID != 0x0a000009 || x.HWID != 3 || x.Seq != 41 || x.FirstOfGroup != (i == 0) || x.Has&decode.HasFlow == 0 || x.Err.Reason != 0 {
			t.Errorf("report %d: %+v", i, x)
		}
	}
	if h := r[0].Hops[0]; r[0].Units.DropReason(r[0].DropReason) != "no buffer space" || r[0].Flags&decode.Dropped == 0 || h.IngressIf != 3 || h.L2EgressIf != 70000 || h.QueueID != 5 {
		t.Errorf("drop: %+v", r[0])
	}
	if h := r[1].Hops[0]; h.Latency != 1500 || h.QueueOccupancy != 9000 || r[1].Weight != 512 {
		t.Errorf("hop: %+v", r[1])
	}
	if len(r[2].Hops) != 0 || r[2].Weight != plain.Rate {
		t.Errorf("sample: %+v", r[2])
	}
	if r[3].Units.DropReason(r[3].DropReason) != "acl" {
		t.Errorf("discarded sample: %+v", r[3])
	}

	// Half a second later: a tenth of the line's capacity. One sample of the drops' source is missing, and the agent
	// dropped four.
	counters.Interface.OutOctets += 1e9 / 8 / 10 / 2
	drop.Seq, drop.Drops = 3, 4
	r = read(datagramOf(42, 10_500, counters, drop))
	if len(r) != 2 || r[0].Kind != decode.KindCounters || r[0].Hops[0].TxUtilization != 1000 || r[0].Hops[0].EgressIf != 7 {
		t.Errorf("counters: %s", lines(&b))
	}
	if missing, dropped := d.sflow.missing.Load(), d.sflow.dropped.Load(); missing != 1 || dropped != 4 {
		t.Errorf("%d missing and %d dropped inside", missing, dropped)
	}
	// The device restarted, and counts from 0.
	counters.Interface.OutOctets = 5
	if r = read(datagramOf(1, 100, counters)); len(r) != 1 || len(r[0].Hops) != 0 || r[0].Seq != 1 || !r[0].FirstOfGroup {
		t.Errorf("restart: %s", lines(&b))
	}
	payload := datagramOf(43, 11_000, drop, slow, plain, counters)
	if n := testing.AllocsPerRun(100, func() { b.Reset(); d.Datagram(&b, src, payload, 7) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if r = read(payload[:len(payload)-4]); r[len(r)-1].Err.Field != "sample_length" || r[len(r)-1].Err.Format != decode.SFlow {
		t.Errorf("cut: %s", lines(&b))
	}
	// In a capture, at any port.
	frame := udpFrame(payload, profile(t, "auto"), 9999)
	b.Reset()
	if d.Frame(&b, packet.LinkEthernet, frame, len(frame), 7) == 0 || b.Reports[0].Format != decode.SFlow || b.Reports[0].Err.Reason != 0 {
		t.Errorf("frame: %s", lines(&b))
	}
	// The flow is that of the packet in a tunnel.
	vxlan := udpFrame(append([]byte{8, 0, 0, 0, 0, 0, 1, 0}, udpFrame(make([]byte, 30), Profile{}, 53)...), Profile{}, 4789)
	drop.Header, drop.FrameLen, drop.Protocol = vxlan, uint32(len(vxlan)), 1
	router := NewRouter(profile(t, "auto"), nil)
	b.Reset()
	if router.Datagram(&b, src, datagramOf(44, 11_100, drop), 7); len(b.Reports) != 1 || b.Reports[0].Flow.DstPort != 53 {
		t.Errorf("tunnel: %s", lines(&b))
	}
	// A profile that does not read it reports so.
	other := New(profile(t, "fabric-tna"))
	b.Reset()
	if other.Datagram(&b, src, payload, 7); len(b.Reports) != 1 || b.Reports[0].Err.Reason != decode.NotRead || b.Reports[0].Format != decode.SFlow {
		t.Errorf("fabric-tna: %s", lines(&b))
	}
}

// Counters of packets are sums of 32 bits. Their increments are reported, also across a wrap, and not if they are
// unknown. Those of octets have 64, and do not wrap.
func TestSFlowCounters(t *testing.T) {
	base := sflow.Interface{
		Index: 7, Speed: 1e9, InOctets: 1 << 40, OutOctets: 1 << 41, InUnicast: 1<<32 - 100, InMulticast: 5, InBroadcast: noCounter, OutUnicast: 3000,
		InErrors: 1<<32 - 3, OutErrors: noCounter, InDiscards: 9, OutDiscards: 70, OutMulticast: noCounter, OutBroadcast: noCounter,
	}
	type step struct {
		name        string
		seq, uptime uint32
		change      func(*sflow.Interface)
		want        decode.Counters
	}
	const octets = decode.CountInOctets | decode.CountRxUtilization
	const all = octets | decode.CountOutOctets | decode.CountInPackets | decode.CountOutPackets | decode.CountInErrors | decode.CountInDiscards | decode.CountOutDiscards
	d := New(profile(t, "auto"))
	var b decode.Batch
	i := base
	for n, x := range []step{
		{"the first", 1, 60_000, func(*sflow.Interface) {}, decode.Counters{}},
		{"wraps", 2, 80_000, func(i *sflow.Interface) { i.InUnicast, i.InErrors, i.OutDiscards = 900, 7, 75 }, decode.Counters{Has: all, InPackets: 1000, InErrors: 10, OutDiscards: 5}},
		{"again", 2, 80_000, func(i *sflow.Interface) { i.OutDiscards = 75 }, decode.Counters{}},
		{"out of order", 1, 60_000, func(i *sflow.Interface) { i.OutDiscards = 70 }, decode.Counters{}},
		{"no rise", 3, 100_000, func(i *sflow.Interface) { i.OutDiscards = 75 }, decode.Counters{Has: all}},
		{"samples lost", 6, 160_000, func(i *sflow.Interface) { i.OutDiscards = 175 }, decode.Counters{Has: all, OutDiscards: 100}},
		{"more than the line carries", 7, 180_000, func(i *sflow.Interface) { i.InUnicast += 1e9; i.InErrors++ }, decode.Counters{Has: all &^ decode.CountInPackets, InErrors: 1}},
		{"one set to zero", 8, 200_000, func(i *sflow.Interface) { i.OutDiscards = 0 }, decode.Counters{Has: all &^ decode.CountOutDiscards}},
		{"all set to zero", 9, 220_000, func(i *sflow.Interface) { *i = sflow.Interface{Index: 7, Speed: 1e9, OutErrors: 3} }, decode.Counters{}},
		{"counts them all", 10, 240_000, func(i *sflow.Interface) { i.OutErrors = 4 }, decode.Counters{Has: all | decode.CountOutErrors, OutErrors: 1}},
		{"agent began anew", 1, 500, func(i *sflow.Interface) { i.OutErrors = 9 }, decode.Counters{}},
		{"and goes on", 2, 20_500, func(i *sflow.Interface) { i.OutErrors = 11 }, decode.Counters{Has: all | decode.CountOutErrors, OutErrors: 2}},
		{"a fifth of the line", 3, 40_500, func(i *sflow.Interface) { i.InOctets += 500e6 }, decode.Counters{Has: all | decode.CountOutErrors, InOctets: 500e6, RxUtilization: 2000}},
		{"all of it, by times that are rounded", 4, 60_500, func(i *sflow.Interface) { i.InOctets += 2625e6 }, decode.Counters{Has: all | decode.CountOutErrors, InOctets: 2625e6, RxUtilization: 10_000}},
		{"more than a speed that is wrong", 5, 80_500, func(i *sflow.Interface) { i.InOctets += 3e9 }, decode.Counters{Has: all&^decode.CountRxUtilization | decode.CountOutErrors, InOctets: 3e9}},
		{"more octets than the line carries", 6, 100_500, func(i *sflow.Interface) { i.InOctets += 6e9; i.OutOctets += 6e9 }, decode.Counters{Has: all&^octets&^decode.CountOutOctets | decode.CountOutErrors}},
		{"no speed", 7, 120_500, func(i *sflow.Interface) { i.Speed = 0; i.InOctets += 6e9 }, decode.Counters{Has: all&^decode.CountRxUtilization | decode.CountOutErrors, InOctets: 6e9}},
		{"octets set to zero", 8, 140_500, func(i *sflow.Interface) { i.Speed, i.InOctets = 1e9, 7 }, decode.Counters{}},
		{"and go on", 9, 160_500, func(i *sflow.Interface) { i.InOctets += 250e6 }, decode.Counters{Has: all | decode.CountOutErrors, InOctets: 250e6, RxUtilization: 1000}},
		{"octets cease", 10, 180_500, func(i *sflow.Interface) { i.InOctets, i.OutOctets = noOctets, i.OutOctets+125e6 }, decode.Counters{Has: all&^octets | decode.CountOutErrors, OutOctets: 125e6}},
		{"are not counted", 11, 200_500, func(i *sflow.Interface) { i.OutErrors, i.OutOctets = 12, noOctets }, decode.Counters{Has: all&^octets&^decode.CountOutOctets | decode.CountOutErrors, OutErrors: 1}},
		{"no octets, all above half", 12, 210_500, func(i *sflow.Interface) {
			*i = sflow.Interface{Index: 7, InOctets: noOctets, OutOctets: noOctets, InUnicast: 3e9, OutUnicast: 3e9, InErrors: 3e9, OutErrors: noCounter, OutDiscards: noCounter}
		}, decode.Counters{Has: all &^ octets &^ decode.CountOutOctets &^ decode.CountOutDiscards &^ decode.CountInPackets &^ decode.CountOutPackets &^ decode.CountInErrors}},
		{"all of them set to zero", 13, 212_500, func(i *sflow.Interface) { i.InUnicast, i.OutUnicast, i.InErrors = 20, 30, 0 }, decode.Counters{Has: decode.CountInDiscards}},
		{"above half again", 14, 214_500, func(i *sflow.Interface) { i.InUnicast, i.OutUnicast = 2e9, 2e9 }, decode.Counters{
			Has: decode.CountInPackets | decode.CountOutPackets | decode.CountInErrors | decode.CountInDiscards, InPackets: 2e9 - 20, OutPackets: 2e9 - 30}},
		{"and on", 15, 216_500, func(i *sflow.Interface) { i.InUnicast, i.OutUnicast = 4e9, 4e9 }, decode.Counters{
			Has: decode.CountInPackets | decode.CountOutPackets | decode.CountInErrors | decode.CountInDiscards, InPackets: 2e9, OutPackets: 2e9}},
		{"one wraps", 16, 218_500, func(i *sflow.Interface) { i.InUnicast = 5; i.OutUnicast++ }, decode.Counters{
			Has: decode.CountInPackets | decode.CountOutPackets | decode.CountInErrors | decode.CountInDiscards, InPackets: 1<<32 - 4e9 + 5, OutPackets: 1}},
		{"another interface", 17, 220_500, func(i *sflow.Interface) { i.Index, i.OutErrors = 8, 5000 }, decode.Counters{}},
	} {
		x.change(&i)
		s := sflow.Sample{Kind: sflow.Counters, Seq: x.seq, Index: 7, Has: sflow.HasInterface, Interface: i}
		b.Reset()
		d.Datagram(&b, decode.Addr{}, datagramOf(uint32(n), x.uptime, s), 7)
		if x.want.Has != 0 {
			x.want.Interface = 7
		}
		if len(b.Reports) != 1 || b.Reports[0].AddRare().Counters != x.want {
			t.Errorf("%s: %+v, want %+v", x.name, b.Reports[0].AddRare().Counters, x.want)
		}
	}
}

// Agents without headers report the flow. The values of a header take precedence. The name of a trap replaces an
// unspecific reason, and is learned once.
func TestSFlowWithoutHeader(t *testing.T) {
	six := decode.Addr{0x20, 1, 0xd, 0xb8, 15: 1}
	ip := sflow.IP{Version: 6, Src: six, Dst: six, Length: 1000, Proto: 6, SrcPort: 443, DstPort: 40000}
	d := New(profile(t, "auto"))
	var b decode.Batch
	read := func(samples ...sflow.Sample) []*decode.Report {
		b.Reset()
		d.Datagram(&b, decode.Addr{}, datagramOf(1, 1, samples...), 7)
		return b.Reports
	}
	four := ip
	four.Version, four.Src, four.Dst, four.Proto = 4, decode.AddrFrom4([]byte{10, 0, 0, 1}), decode.AddrFrom4([]byte{10, 0, 0, 2}), 1
	for _, c := range []struct {
		name, flow string
		ports      bool
		sample     sflow.Sample
		octets     uint64
	}{
		{"IPv6", "[2001:db8::1]:443 > [2001:db8::1]:40000 tcp", true, sflow.Sample{Has: sflow.HasIP, IP: ip}, 10_000},
		{"IPv4, ICMP", "10.0.0.1:0 > 10.0.0.2:0 icmp", false, sflow.Sample{Has: sflow.HasIP, IP: four}, 10_000},
		{"a header of no IP", "10.0.0.1:0 > 10.0.0.2:0 icmp", false, sflow.Sample{Has: sflow.HasIP | sflow.HasHeader, IP: four, Protocol: 2, FrameLen: 900, Header: make([]byte, 64)}, 9000},
		{"a header", "10.0.1.1:1 > 10.0.2.2:2 udp", true, sflow.Sample{Has: sflow.HasIP | sflow.HasHeader, IP: four, Protocol: 11, FrameLen: 900,
			Header: packet.AppendUDP(packet.AppendIPv4(nil, &packet.IPv4{Proto: 17, Src: [4]byte{10, 0, 1, 1}, Dst: [4]byte{10, 0, 2, 2}}, 8), 1, 2, 0)}, 9000},
	} {
		c.sample.Kind, c.sample.Rate = sflow.Flow, 10
		r := read(c.sample)
		if len(r) != 1 || r[0].Flow.String() != c.flow || r[0].Has&decode.HasFlow == 0 || (r[0].Has&decode.HasPorts != 0) != c.ports || r[0].AddTraffic().Octets != c.octets {
			t.Errorf("%s: %s, %+v", c.name, lines(&b), r[0].AddTraffic())
		}
	}
	ip.SrcPort = 1 << 16
	if r := read(sflow.Sample{Kind: sflow.Flow, Has: sflow.HasIP, IP: ip}); len(r) != 1 || r[0].Has&decode.HasFlow != 0 || r[0].Err.Reason != 0 {
		t.Errorf("a port of 65536: %s", lines(&b))
	}

	rt := NewRouter(profile(t, "auto"), nil)
	d = rt.fallback
	for _, c := range []struct {
		reason      uint32
		trap, linux string
		want, why   string
	}{
		{256, "tail_drop", "", "no buffer space", "sFlow: no buffer space: tail_drop"},
		{259, "tail_drop", "QDISC_DROP", "no buffer space", ""},
		{259, "", "QDISC_DROP", "no buffer space", "sFlow: no buffer space: tail_drop, QDISC_DROP"},
		{9999, "", "TCP_RESET", "tcp reset", "sFlow: tcp reset: TCP_RESET"},
		{256, "", "NOT_SPECIFIED", "unknown", ""},
		{256, "a_trap_of_a_maker", "", "unknown", "sFlow: a_trap_of_a_maker"},
		{256, "another", "", "unknown", "sFlow: a_trap_of_a_maker, another"},
		{256, "third", "", "unknown", "sFlow: a_trap_of_a_maker, another, third"},
		{256, "fourth", "", "unknown", "sFlow: a_trap_of_a_maker, another, third and others"},
		{256, "fifth", "", "unknown", ""},
	} {
		s := sflow.Sample{Kind: sflow.Discard, Has: sflow.HasTrap | sflow.HasLinuxReason, Reason: c.reason, Trap: []byte(c.trap), LinuxReason: []byte(c.linux)}
		r := read(s)
		if name := r[0].Units.DropReason(r[0].DropReason); name != c.want {
			t.Errorf("%+v: %s", c, name)
		}
		switch list := rt.Learned(); {
		case c.why == "" && len(list) == 0:
		case len(list) != 1 || list[0].Why != c.why || list[0].Node != 10<<24|9 || list[0].Reason != r[0].DropReason:
			t.Errorf("%+v: learned %+v", c, list)
		}
		payload := datagramOf(1, 1, s)
		if n := testing.AllocsPerRun(10, func() { b.Reset(); d.Datagram(&b, decode.Addr{}, payload, 7) }); n != 0 {
			t.Errorf("%+v: %v allocations", c, n)
		}
	}
}

// Versions 4 and 2 are named for any profile, and not stored.
func TestSFlow4(t *testing.T) {
	for _, name := range []string{"auto", "sflow", "fabric-tna", "geant"} {
		for _, version := range []byte{2, 4} {
			for _, only := range []Kind{Anything, ReportsOnly, SFlowOnly, IPFIXOnly} {
				payload := append([]byte{0, 0, 0, version, 0, 0, 0, 1, 10, 0, 0, 9}, make([]byte, 12)...)
				rt := NewRouter(profile(t, name), nil)
				rt.Only(only)
				var b decode.LazyBatch
				if rt.Lazy(&b, decode.Addr{1}, payload, len(payload), 7); len(b.List) != 1 {
					t.Fatalf("%s: %d reports", name, len(b.List))
				}
				if r := b.List[0].Report(); r.Format != decode.SFlow4 || r.Err.Reason != decode.NotRead || r.Exporter != (decode.Addr{1}) {
					t.Errorf("%s, version %d at a port for %s: %+v", name, version, only, r)
				}
			}
		}
	}
}

func FuzzSFlowReports(f *testing.F) {
	rnd := rand.New(rand.NewPCG(2, 1))
	for range 8 {
		f.Add(plain.RandomSFlow(rnd, true))
	}
	d := New(Profile{SFlow: true, Units: decode.DefaultUnits})
	var b decode.Batch
	f.Fuzz(func(t *testing.T, payload []byte) {
		b.Reset()
		if n := d.Datagram(&b, decode.Addr{}, payload, 7); n != len(b.Reports) || n == 0 {
			t.Fatalf("%d reports, and says %d", len(b.Reports), n)
		}
		sane(t, &b, len(payload))
	})
}
