package emu

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hopscope/hopscope/internal/testkit"
)

func mustNew(t testing.TB, cfg Config, seed uint64) *Network {
	t.Helper()
	n, err := New(cfg, seed)
	if err != nil {
		t.Fatalf("New(seed %d): %v", seed, err)
	}
	return n
}

// everyFault is a script that uses all kinds, some of them at the same time.
func everyFault() []Fault {
	const ms = time.Millisecond
	return []Fault{
		{Kind: CrossTraffic, At: 50 * ms, For: 200 * ms, Node: "agg-0-0", Peer: "core-0", Value: 1.3},
		{Kind: CutRate, At: 100 * ms, For: 50 * ms, Node: "agg-0-0", Peer: "core-0", Value: 0.1},
		{Kind: CutRate, At: 300 * ms, For: 100 * ms, Node: "edge-2-0", Peer: "agg-2-0", Value: 0.02},
		{Kind: LinkDown, At: 120 * ms, For: 150 * ms, Node: "edge-1-0", Peer: "agg-1-0"},
		{Kind: LinkDown, At: 220 * ms, For: 100 * ms, Node: "agg-0-0", Peer: "core-0"},
		{Kind: DenyFlows, At: 150 * ms, For: 100 * ms, Node: "agg-2-1", Value: 0.4},
		{Kind: WithdrawRoute, At: 250 * ms, For: 100 * ms, Node: "core-1", Peer: "edge-3-1"},
		{Kind: SlowSwitch, At: 300 * ms, For: 100 * ms, Node: "core-3", Delay: 3 * ms},
		{Kind: LoseReports, At: 50 * ms, For: 300 * ms, Node: "edge-3-0", Value: 0.2},
		{Kind: DuplicateReports, At: 100 * ms, For: 200 * ms, Node: "edge-0-0", Value: 0.3},
		{Kind: ReorderReports, At: 100 * ms, For: 200 * ms, Node: "edge-0-1", Value: 0.3},
		{Kind: SilenceReports, At: 350 * ms, For: 100 * ms, Node: "edge-2-1"},
		{Kind: RestartReports, At: 400 * ms, For: 50 * ms, Node: "edge-3-1"},
	}
}

// busyConfig loads a small fat-tree until its queues fill, with everything that can go wrong.
func busyConfig() Config {
	c := DefaultConfig()
	c.LinkRate, c.PacketRate, c.QueueBytes = 10e6, 8000, 30_000
	c.IPv6Share, c.FlowPackets = 0.3, 40
	c.ReportsPerDatagram, c.ReportHold, c.HardwareIDs = 3, 2*time.Millisecond, 2
	c.QueueReportBytes = 8_000
	c.ClockSkew = time.Millisecond
	c.Script, c.Repeat = everyFault(), 500*time.Millisecond
	c.Probes = someProbes()
	return c
}

func fingerprint(t *testing.T, cfg Config, seed uint64, steps int) string {
	n, h := mustNew(t, cfg, seed), sha256.New()
	for i := range steps {
		n.Run(time.Second*time.Duration(i+1)/time.Duration(steps), func(d Datagram) {
			fmt.Fprintf(h, "%d %v %d %d ", d.At, d.From, d.Port, len(d.Payload))
			h.Write(d.Payload)
		})
	}
	return fmt.Sprintf("%x %+v", h.Sum(nil), n.Stats())
}

func TestSameSeedSameBytes(t *testing.T) {
	cfg := busyConfig()
	first := fingerprint(t, cfg, 7, 1)
	if second := fingerprint(t, cfg, 7, 1); second != first {
		t.Errorf("second run differs:\n%s\n%s", first, second)
	}
	if sliced := fingerprint(t, cfg, 7, 613); sliced != first {
		t.Errorf("Run in 613 steps differs from Run in one:\n%s\n%s", first, sliced)
	}
	if other := fingerprint(t, cfg, 8, 1); other == first {
		t.Error("another seed gives the same bytes")
	}
}

// Reports that get lost do not change what packets do.
func TestReportDeliveryLeavesTrafficAlone(t *testing.T) {
	journeys := func(script []Fault) []byte {
		cfg, h := busyConfig(), sha256.New()
		cfg.Script, cfg.Repeat = script, 0
		cfg.Observe = func(j *Journey) { fmt.Fprintf(h, "%d %v %v %v %v;", j.Flow, j.At, j.Outcome, j.Key, j.Hops) }
		mustNew(t, cfg, 3).Run(time.Second, func(Datagram) {})
		return h.Sum(nil)
	}
	lossy := []Fault{
		{Kind: LoseReports, For: time.Second, Node: "edge-3-0", Value: 0.5},
		{Kind: SilenceReports, For: time.Second, Node: "edge-1-0"},
		{Kind: ReorderReports, For: time.Second, Node: "edge-2-0", Value: 0.5},
	}
	if !bytes.Equal(journeys(nil), journeys(lossy)) {
		t.Error("packets take other ways when reports are lost")
	}
}

func checkConservation(t *testing.T, n *Network, delivered uint64) Stats {
	t.Helper()
	s := n.Stats()
	var dropped uint64
	for _, d := range s.Dropped {
		dropped += d
	}
	if s.Sent != s.Delivered+dropped+s.InFlight {
		t.Fatalf("at %v: sent %d != delivered %d + dropped %v + in flight %d", n.Now(), s.Sent, s.Delivered, s.Dropped, s.InFlight)
	}
	if s.crossSent != s.crossDelivered+s.crossDropped+s.crossQueued {
		t.Fatalf("at %v: cross traffic: %+v", n.Now(), s)
	}
	if s.ProbesSent != s.ProbesDelivered+s.probesDropped+s.ProbesInFlight {
		t.Fatalf("at %v: probes: %+v", n.Now(), s)
	}
	r := s.Reports
	if r.Datagrams != r.delivered+r.Lost {
		t.Fatalf("at %v: reports: %+v", n.Now(), r)
	}
	held := uint64(0)
	for i := range n.switches {
		if len(n.switches[i].held) > 0 {
			held++
		}
	}
	if delivered != r.delivered+r.Duplicated-held {
		t.Fatalf("at %v: emitted %d, want %d delivered + %d duplicated - %d held back", n.Now(), delivered, r.delivered, r.Duplicated, held)
	}
	for i := range n.queues {
		q := &n.queues[i]
		total := int64(0)
		for k := range q.Size {
			total += int64(q.At(k).Bytes)
		}
		if total != q.Bytes || q.Bytes > int64(q.Limit) {
			t.Fatalf("at %v: queue %d holds %d bytes in %d packets, limit %d", n.Now(), i, total, q.Bytes, q.Limit)
		}
	}
	return s
}

func TestConservation(t *testing.T) {
	n := mustNew(t, busyConfig(), 11)
	var delivered uint64
	for n.Now() < 3*time.Second {
		n.Run(n.Now()+7*time.Millisecond, func(d Datagram) {
			if !d.Probe {
				delivered++
			}
		})
		checkConservation(t, n, delivered)
	}
	s := n.Stats()
	for _, o := range []Outcome{QueueFull, linkFailed, Denied, NoRoute} {
		if s.Dropped[o] == 0 {
			t.Errorf("no packet was dropped because: %v", o)
		}
	}
	if s.crossDropped == 0 || s.ProbesDelivered == 0 || s.probesDropped == 0 {
		t.Errorf("the faults did not happen: %+v", s)
	}
	if s.Reports.Lost == 0 || s.Reports.Duplicated == 0 || s.Reports.Reordered == 0 || s.Reports.Suppressed == 0 || s.Reports.drops == 0 {
		t.Errorf("the faults did not happen: %+v", s.Reports)
	}
}

// randomConfig draws any configuration that New should take, small enough to be quick.
func randomConfig(r *rand.Rand) Config {
	c := DefaultConfig()
	c.Topology = []string{"fat-tree:2", "fat-tree:4", "leaf-spine:2,3", "leaf-spine:1,2", "random:6,9,3"}[r.IntN(5)]
	c.HostsPerEdge = 1 + r.IntN(4)
	c.LinkRate = int64(1e5 + r.ExpFloat64()*2e7)
	c.QueueBytes = 1600 + r.IntN(50_000)
	c.Pipeline, c.Jitter = time.Duration(r.IntN(50_000)), time.Duration(r.IntN(50_000))
	c.Flows, c.PacketRate, c.Skew = 1+r.IntN(50), 10+r.Float64()*20_000, r.Float64()*2
	c.MinPacketBytes = 128 + r.IntN(700)
	c.MaxPacketBytes = c.MinPacketBytes + r.IntN(600)
	c.FlowPackets, c.TCPShare, c.IPv6Share = float64(r.IntN(2)*(1+r.IntN(50))), r.Float64(), r.Float64()
	c.SampleEvery = 1 + r.IntN(2)*r.IntN(5)
	c.Dialect, c.Marker = Dialect(r.IntN(int(numDialects))), marker(r.IntN(2))
	c.Instructions = uint16(r.Uint32()) &^ (insReserved | insBuffer)
	c.Instructions |= insNodeID
	c.MaxHops = 1 + r.IntN(8)
	c.InnerBytes = r.IntN(2) * r.IntN(1400)
	c.IPReports, c.SinkInHeader, c.DropReports = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
	c.ReportsPerDatagram, c.HardwareIDs = 1+r.IntN(5), 1+r.IntN(5)
	c.QueueReportBytes = r.IntN(2) * r.IntN(20_000)
	c.FirstSequence = r.Uint32()
	g, err := parse(c.Topology)
	if err != nil {
		panic(err)
	}
	c.Dialects = map[string]Dialect{}
	for i := range g.NumNodes() {
		if r.IntN(4) == 0 {
			c.Dialects[g.NodeName(i)] = Dialect(r.IntN(int(numDialects)))
		}
	}
	c.Repeat = time.Duration(1+r.IntN(2)) * 200 * time.Millisecond
	for range r.IntN(8) {
		l := r.IntN(g.NumLinks())
		a, b := g.Ends(l)
		if r.IntN(2) == 0 {
			a, b = b, a
		}
		f := Fault{
			Kind: FaultKind(r.IntN(int(numFaults))), At: time.Duration(r.Int64N(1e8)), For: 1 + time.Duration(r.Int64N(1e8)),
			Node: g.NodeName(g.Node(a)), Peer: g.NodeName(g.Node(b)), Value: 1 - r.Float64(), Delay: 1 + time.Duration(r.Int64N(1e7)),
		}
		if f.Kind == WithdrawRoute {
			f.Peer = edgeName(g, r)
		}
		c.Script = append(c.Script, f)
	}
	return c
}

func TestRandomConfigurations(t *testing.T) {
	for seed := range uint64(testkit.Rounds(30, 150)) {
		cfg := randomConfig(rand.New(rand.NewPCG(seed, 0)))
		if seed%2 == 0 {
			addPlan(t, &cfg, seed)
		}
		n, err := New(cfg, seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		var delivered uint64
		for range 10 {
			n.Run(n.Now()+40*time.Millisecond, func(d Datagram) {
				delivered++
				decodeStrictly(t, n, d, seed)
			})
			checkConservation(t, n, delivered)
		}
	}
}

// checksum is the Internet checksum the slow way: RFC 1071, one word after the other.
func checksum(parts ...[]byte) uint16 {
	s := uint32(0)
	for _, b := range parts {
		for i := 0; i < len(b); i += 2 {
			w := uint32(b[i]) << 8
			if i+1 < len(b) {
				w |= uint32(b[i+1])
			}
			if s += w; s > 0xffff {
				s -= 0xffff
			}
		}
	}
	return uint16(s)
}

// checkPacket checks lengths and checksums of a whole IP packet, of which b holds the first bytes and the rest is zeros.
// It gives the protocol and the L4 segment.
func checkPacket(t *testing.T, b []byte, total int) (proto byte, l4 []byte) {
	t.Helper()
	b = append(bytes.Clone(b), make([]byte, max(0, total-len(b)))...)[:total]
	var src, dst []byte
	switch b[0] >> 4 {
	case 4:
		if int(binary.BigEndian.Uint16(b[2:])) != total {
			t.Fatalf("IPv4 total length %d, want %d: %x", binary.BigEndian.Uint16(b[2:]), total, b[:40])
		}
		if c := checksum(b[:20]); c != 0xffff {
			t.Fatalf("IPv4 header checksum is off: %#04x: %x", c, b[:20])
		}
		proto, src, dst, l4 = b[9], b[12:16], b[16:20], b[20:]
	case 6:
		if int(binary.BigEndian.Uint16(b[4:]))+40 != total {
			t.Fatalf("IPv6 payload length %d, want %d: %x", binary.BigEndian.Uint16(b[4:]), total-40, b[:48])
		}
		proto, src, dst, l4 = b[6], b[8:24], b[24:40], b[40:]
	default:
		t.Fatalf("no IP: %x", b[:20])
	}
	at := 16
	if proto == udp {
		at = 6
		if int(binary.BigEndian.Uint16(l4[4:])) != len(l4) {
			t.Fatalf("UDP length %d, want %d", binary.BigEndian.Uint16(l4[4:]), len(l4))
		}
		if l4[6] == 0 && l4[7] == 0 {
			return proto, l4
		}
	}
	pseudo := binary.BigEndian.AppendUint32([]byte{0, proto}, uint32(len(l4)))
	if c := checksum(src, dst, pseudo, l4); c != 0xffff {
		t.Fatalf("L4 checksum %x of protocol %d is off by %#04x: %x", l4[at:at+2], proto, c^0xffff, b[:100])
	}
	return proto, l4
}
