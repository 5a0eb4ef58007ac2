package emu

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/hopscope/hopscope/decode"
)

// Times between switches follow from the line and the pipeline, also when rates change while packets wait, and packets
// of one line stay in order.
func TestTimesBetweenSwitches(t *testing.T) {
	for _, rate := range []int64{10e6, 10e9} { // with the fast one, jitter is longer than the distance of packets
		cfg := DefaultConfig()
		cfg.LinkRate, cfg.PacketRate, cfg.Dialect = rate, 10_000*float64(rate)/10e6, Off
		cfg.PacketRate = min(cfg.PacketRate, 400_000)
		cfg.Script = []Fault{
			{Kind: CutRate, At: 10 * time.Millisecond, For: 40 * time.Millisecond, Node: "agg-0-0", Peer: "core-0", Value: 0.05},
			{Kind: CutRate, At: 30 * time.Millisecond, For: 30 * time.Millisecond, Node: "edge-2-0", Peer: "agg-2-0", Value: 0.02},
		}
		type arrival struct{ in, queued time.Duration }
		lines := map[[2]int][]arrival{}
		count := 0
		cfg.Observe = func(j *Journey) {
			for i, h := range j.Hops {
				if d := h.Queued - h.Ingress; d < cfg.Pipeline || d >= cfg.Pipeline+cfg.Jitter {
					t.Fatalf("rate %d: %v in the pipeline, want %v to %v", rate, d, cfg.Pipeline, cfg.Pipeline+cfg.Jitter)
				}
				k := [2]int{h.Node, int(h.ingressPort)}
				lines[k] = append(lines[k], arrival{h.Ingress, h.Queued})
				if i == 0 {
					continue
				}
				last := &j.Hops[i-1]
				least := time.Duration(int64(j.length) * 8e9 / rate)
				if on := h.Ingress - last.Egress - cfg.LinkDelay; on < least || on > 50*least+time.Microsecond {
					t.Fatalf("rate %d: %d bytes were %v on a line", rate, j.length, on)
				}
				count++
			}
		}
		mustNew(t, cfg, 5).Run(100*time.Millisecond, func(Datagram) {})
		for k, list := range lines {
			slices.SortFunc(list, func(a, b arrival) int { return cmp.Compare(a.in, b.in) })
			for i := 1; i < len(list); i++ {
				if list[i].queued < list[i-1].queued {
					t.Fatalf("rate %d: packets pass each other on the line to %v", rate, k)
				}
			}
		}
		if count < 1000 {
			t.Errorf("rate %d: %d lines were crossed", rate, count)
		}
	}
}

// If all switches hashed alike, those of the second tier would use only one of their two uplinks, and two of the four
// core switches. With the salt, 130 flows leave one of them unused with a chance below 1e-15.
func TestHashesAreSalted(t *testing.T) {
	n := mustNew(t, DefaultConfig(), 1)
	used := map[int]int{}
	for i := range n.NumFlows() {
		route, ok := n.Route(i)
		if !ok {
			t.Fatalf("flow %d has no route", i)
		}
		if len(route) == 5 {
			used[n.graph.Node(route[2])]++
		}
	}
	if len(used) != 4 {
		t.Errorf("flows by core switch: %v", used)
	}
}

// A host whose line is slower than its flow sends what the line carries, and packets do not age in the host for ever.
func TestHostLineIsTheLimit(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Flows, cfg.LinkRate, cfg.Dialect = 0, 8e6, Off
	cfg.ExtraFlows = []Flow{{From: 0, To: 15, Proto: tcp, SrcPort: 1, DstPort: 2, Rate: 3000, PacketBytes: 1000, Packets: 2000}}
	var last time.Duration
	cfg.Observe = func(j *Journey) { last = j.At }
	n := mustNew(t, cfg, 1)
	n.Run(10*time.Second, func(Datagram) {})
	s := n.Stats()
	// 2000 packets are offered within 0.667 s; a thousand a second fit, and 10 of them may wait.
	if s.Sent+s.hostRefused != 2000 || s.Sent < 660 || s.Sent > 680 || s.Delivered != s.Sent {
		t.Errorf("%+v", s)
	}
	if last > 700*time.Millisecond {
		t.Errorf("the last packet arrived at %v", last)
	}
}

func TestTTL(t *testing.T) {
	n := mustNew(t, DefaultConfig(), 1)
	for _, v6 := range []bool{false, true} {
		p := &packet{}
		n.build(p, 0, &flow{dst: 5, proto: udp, v6: v6, srcPort: 7, dstPort: 9}, 200)
		at := ethLen + 8
		if v6 {
			at = ethLen + 7
		}
		for ttl := byte(64); ttl > 1; ttl-- {
			if p.Buf[at] != ttl || !p.DecrementTTL() {
				t.Fatalf("IPv6 %v: TTL %d, want %d and to pass", v6, p.Buf[at], ttl)
			}
			checkPacket(t, p.Buf[ethLen:], 200-ethLen)
		}
		if p.DecrementTTL() {
			t.Errorf("IPv6 %v: a packet with TTL 1 passed", v6)
		}
	}
}

// Groups leave when they are full or when their first report has waited long enough, and not before.
func TestGroupsAreHeld(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Dialect, cfg.ReportsPerDatagram, cfg.ReportHold = XD20, 4, 5*time.Millisecond
	cfg.PacketRate, cfg.IPv6Share = 1500, 0.5
	n := mustNew(t, cfg, 1)
	sizes := map[int]int{}
	n.Run(2*time.Second, func(d Datagram) {
		reports := decodeStrictly(t, n, d, 1)
		first := reports[0].Hops[0]
		waited := d.At - time.Duration(int64(first.EgressTime)-n.epoch)
		// A report is written when the packet reaches the next queue: up to 0.3 ms later.
		const later = 300 * time.Microsecond
		if full := len(reports) == 4; !full && waited < cfg.ReportHold || waited > cfg.ReportHold+later {
			t.Fatalf("%d reports left %v after the first packet", len(reports), waited)
		}
		for i, r := range reports {
			if r.Seq != reports[0].Seq || r.FirstOfGroup != (i == 0) {
				t.Fatalf("report %d of a group: number %d, first %v", i, r.Seq, r.FirstOfGroup)
			}
		}
		sizes[len(reports)]++
	})
	if sizes[1] == 0 || sizes[2] == 0 || sizes[4] == 0 || sizes[5] != 0 {
		t.Errorf("datagrams by number of reports: %v", sizes)
	}
}

// Large reports end their group: by the size of a datagram, and because their length field says "to the end". Those of
// hopscope.p4 are not as large.
func TestLargeReportsEndTheirGroup(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Dialect = FANT
	cfg.ReportsPerDatagram, cfg.ReportHold, cfg.InnerBytes = 10, time.Second, 1400
	cfg.MinPacketBytes, cfg.MaxPacketBytes = 128, 900 // many reports just long enough to go to the end
	n := mustNew(t, cfg, 2)
	several, toTheEnd, count := 0, 0, 0
	n.Run(3*time.Second, func(d Datagram) {
		reports := decodeStrictly(t, n, d, 2)
		count += len(reports)
		for at, i := 8, 0; i < len(reports); i++ {
			if d.Payload[at+1] == 0xff {
				toTheEnd++
				if i != len(reports)-1 {
					t.Fatalf("report %d of %d goes to the end", i, len(reports))
				}
			}
			at += 4 + 4*int(d.Payload[at+1])
		}
		if len(reports) > 1 {
			several++
			if len(d.Payload) > largestDatagram {
				t.Fatalf("%d reports in %d bytes", len(reports), len(d.Payload))
			}
		}
		for _, r := range reports {
			if r.Kind != decode.KindStack {
				t.Fatalf("kind %v", r.Kind)
			}
		}
	})
	for i := range n.switches {
		count += n.switches[i].groups[0].count // still held
	}
	if w := n.Stats().Reports.Written; uint64(count) != w {
		t.Errorf("%d reports were written, %d decoded", w, count)
	}
	if several < 100 || toTheEnd < 100 {
		t.Errorf("%d groups, %d reports that go to the end", several, toTheEnd)
	}
}

// A switch may have more ports than hopscope.p4, for which numbers from 510 on mean something else than a port.
func TestManyPorts(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Topology, cfg.Script = "leaf-spine:1,520", nil
	ports := map[uint16]bool{}
	cfg.Observe = func(j *Journey) {
		for _, h := range j.Hops {
			ports[h.ingressPort], ports[h.EgressPort] = true, true
		}
	}
	cfg.Flows = 3000
	n := mustNew(t, cfg, 3)
	n.Run(time.Second, func(Datagram) {})
	if s := n.Stats(); s.Dropped[NoRoute] > 0 || s.Delivered < 1000 {
		t.Errorf("%d packets are delivered, and %v dropped", s.Delivered, s.Dropped)
	}
	for _, k := range []uint16{509, 510, 511, 512, 520} {
		if !ports[k] {
			t.Errorf("no packet passed port %d", k)
		}
	}
}
