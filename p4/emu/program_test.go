package emu

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	bmv2 "github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/p4/emu/sim"
)

// commandsFor are the tables of switch i of a chain as a controller writes them on BMv2.
func commandsFor(n *Network, d *device, i, of, asked, hops, mtu int, byPort bool) []string {
	next := fmt.Sprintf("%#x", mac(macSwitch, i+1))
	if i == of-1 {
		next = fmt.Sprintf("%#x", mac(macHost, 9))
	}
	forward := fmt.Sprintf("=> 2 %s %#x", next, mac(macSwitch, i))
	c := []string{
		fmt.Sprintf("table_set_default egress.device set_device %d %d", d.id, d.clock),
		"table_add ingress.forward.forwarding4 ingress.forward.forward 0.0.0.0/0 " + forward,
		"table_add ingress.forward.forwarding6 ingress.forward.forward ::/0 " + forward,
		fmt.Sprintf("table_add egress.egress_port to_fabric 2 => %d", mtu),
	}
	if i == 0 {
		port := 0
		if byPort {
			port = 1
		}
		c = append(c, "table_add ingress.ingress_port host 1 => 0 0",
			fmt.Sprintf("table_add ingress.watch track 0&&&0 0&&&0 0&&&0 0&&&0 0&&&0 => 0xffffffff %#x 0 %d %d 1", asked, hops, port))
	}
	if i == of-1 {
		c[3] = fmt.Sprintf("table_add egress.egress_port to_host 2 => %d 100 1", mtu)
		c = append(c, "mirroring_add 100 5", "table_add egress.envelope.collector send 1 => 1 2 10.255.0.7 10.255.0.1 49152 32766 900")
	}
	return c
}

// The P4 program does switch by switch, with the same bytes, what the emulated network does to a packet in one go. That
// is source, transit nodes and sink node, with the report, over TCP and UDP, IPv4 and IPv6. It is with and without
// checksums, by DSCP and by port, until hops or room are used up. Utilisation and buffers are left out, which BMv2
// lacks. TCP by port is left out, because the emulated network puts a UDP header in front and the program does not.
func TestNetworkIsProgram(t *testing.T) {
	recorded, refused := 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 13))
		cfg := DefaultConfig()
		cfg.Topology, cfg.Flows, cfg.SinkInHeader, cfg.InnerBytes = "leaf-spine:2,6", 50, true, 1400
		cfg.TCPShare, cfg.IPv6Share, cfg.ClockSkew = .5, .4, time.Second
		cfg.Instructions = uint16(r.Uint32())&^(insTx|insBuffer|insReserved) | insNodeID
		cfg.MaxHops, cfg.MTU = 1+r.IntN(4), 1200+r.IntN(100)
		cfg.MinPacketBytes, cfg.MaxPacketBytes = 128, 1200
		n := mustNew(t, cfg, seed)
		f := &n.flows[r.IntN(len(n.flows))]
		if f.proto == udp && r.IntN(2) == 0 {
			n.cfg.Marker = MarkPort
		}
		size := 128 + 4*r.IntN(260) // whole words: the network fills reports up to them, and the program cuts
		if r.IntN(3) == 0 {
			size = (n.cfg.MTU+ethLen)&^3 - 4*r.IntN(30)
		}
		p := &packet{carries: Off}
		n.build(p, 3, f, size)
		p.sampled, p.hash, p.out, p.dst = true, f.hash, -1, f.dst
		if !p.V6 && p.Proto == udp && r.IntN(3) == 0 {
			be.PutUint16(p.Buf[p.L4+6:], 0)
		}
		var reported []byte
		n.emit = func(d Datagram) { reported = bytes.Clone(d.Payload) }
		of := 1 + r.IntN(5)
		for i := range of {
			d := &n.switches[i]
			step(t, n, p, d, i, of, r, &reported, &recorded, &refused)
		}
	}
	if recorded < 300 || refused < 100 {
		t.Errorf("%d blocks recorded and %d refused", recorded, refused)
	}
}

// step takes a packet through one switch both ways.
func step(t *testing.T, n *Network, p *packet, d *device, i, of int, r *rand.Rand, reported *[]byte, recorded, refused *int) {
	t.Helper()
	s, err := bmv2.New("intmd")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commandsFor(n, d, i, of, int(n.cfg.Instructions), n.cfg.MaxHops, n.cfg.MTU, n.cfg.Marker == MarkPort) {
		if err := s.Command(c); err != nil {
			t.Fatal(err)
		}
	}
	us := func(most int64) time.Duration { return time.Duration(r.Int64N(most)) * time.Microsecond }
	h := Hop{Node: i, NodeID: d.id, EgressPort: 2, QueueBytes: r.Uint32N(1 << 19), Ingress: us(1 << 40)}
	h.ingressPort, h.Egress = uint16(1+3*min(i, 1)), h.Ingress+us(1<<20)
	pass := bmv2.Pass{
		IngressTime: uint64(h.Ingress / time.Microsecond), EgressTime: uint64(h.Egress / time.Microsecond), EnqueueDepth: h.QueueBytes,
		PacketLength: uint32(p.Size),
	}
	whole := func() []byte { return append(bytes.Clone(p.Buf), make([]byte, p.Size-len(p.Buf))...) }
	out, _, err := s.Process(bmv2.Frame{Port: h.ingressPort, Bytes: whole()}, []bmv2.Pass{pass, {Instance: 2}})
	if err != nil {
		t.Fatal(err)
	}

	*reported = nil
	if i == 0 {
		n.source(p, d)
	}
	p.DecrementTTL()
	to, kind := i+1, byte(macSwitch)
	if i == of-1 {
		to, kind = 9, macHost
	}
	next, self := mac(kind, to), mac(macSwitch, i)
	copy(p.Buf[copy(p.Buf, next[:]):], self[:])
	if p.sampled {
		before := p.added
		n.telemetry(p, d, &h, i == of-1)
		if i < of-1 {
			if p.added > before {
				*recorded++
			} else {
				*refused++
			}
		}
	}
	if want := whole(); len(out) == 0 || !bytes.Equal(out[0].Bytes, want) {
		t.Fatalf("switch %d of %d, bitmap %#04x, %d hops, MTU %d, marker %d:\n got %x\nwant %x", i, of, n.cfg.Instructions, n.cfg.MaxHops, n.cfg.MTU, n.cfg.Marker, out[0].Bytes, want)
	}
	if (len(out) == 2) != (*reported != nil) {
		t.Fatalf("switch %d of %d: %d frames leave, and a report %x", i, of, len(out), *reported)
	}
	if len(out) == 2 {
		got, want := out[1].Bytes[ethLen+20+udpLen:], *reported
		if len(want) > 900 { // of a packet the program holds 900 bytes, and says so in the length of the report
			want = append(bytes.Clone(want[:9]), want[9:min(len(want), len(got))]...)
			want[9] = got[9]
		}
		if len(got) < 100 || !bytes.Equal(got, want) {
			t.Fatalf("report of %d bytes:\n got %x\nwant %x", len(*reported), got, want)
		}
	}
}

// INT in packets of hosts is what hopscope.p4 writes by entries of its tables: source, transit and sink node, frames and
// reports, with utilisation and buffers, over both versions of IP and both transports, with shares of packets, until hops
// or room are used up. The length that a packet leaves with is known before.
func TestINTIsProgram(t *testing.T) {
	reports, recorded, refused, passed := 0, 0, 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 17))
		cfg := DefaultConfig()
		cfg.Topology, cfg.Flows, cfg.InnerBytes, cfg.TCPShare, cfg.IPv6Share, cfg.ClockSkew = "fat-tree:4", 20, 1400, .5, .4, time.Second
		cfg.Instructions = uint16(r.Uint32())&^insReserved | insNodeID
		cfg.MaxHops, cfg.MTU, cfg.SampleEvery, cfg.Marker = 1+r.IntN(6), 1200+r.IntN(100), 1+r.IntN(2), marker(r.IntN(2))
		cfg.MinPacketBytes, cfg.MaxPacketBytes, cfg.DropReports = 128, 1200, false
		n := mustNew(t, cfg, seed)
		f := &n.flows[r.IntN(len(n.flows))]
		size := 128 + 4*r.IntN(260) // whole words: the network fills reports up to them, and the program cuts
		if r.IntN(3) == 0 {
			size = (n.cfg.MTU+ethLen)&^3 - 4*r.IntN(30)
		}
		p := &packet{carries: Off, kind: data, hash: f.hash, dst: f.dst, out: -1, node: n.hosts[f.src].node, in: n.hosts[f.src].iface}
		n.build(p, 3, f, size)
		var reported []byte
		n.emit = func(d Datagram) { reported = bytes.Clone(d.Payload) }
		whole := func() []byte { return append(bytes.Clone(p.Buf), make([]byte, p.Size-len(p.Buf))...) }
		for entering := true; ; entering = false {
			d := &n.switches[p.node]
			before := whole()
			if why := n.route(p, d, entering); why != Delivered {
				t.Fatal(why)
			}
			passed++
			s := loaded(t, n, d, p, entering)
			last := n.ports[p.out].host >= 0
			h := Hop{
				Node: int(p.node), NodeID: d.id, ingressPort: uint16(n.ports[p.in].number), EgressPort: uint16(n.ports[p.out].number), QueueBytes: r.Uint32N(1 << 19),
				Ingress: time.Duration(r.Int64N(1 << 50)), Utilization: r.Uint32N(10_000),
			}
			h.Egress = h.Ingress + time.Duration(r.Int64N(1<<31))
			if p.pass != nil {
				leaves, added := n.routers[2].Leaves(p.pass), p.added
				n.writeINT(p, d, &h, last)
				if leaves != p.Size {
					t.Fatalf("seed %d: %d bytes leave, %d were foreseen", seed, p.Size, leaves)
				}
				switch {
				case last:
				case h.recorded:
					recorded++
				case p.added == added:
					refused++
				}
			}
			pass := bmv2.Pass{
				IngressTime: uint64(h.Ingress), EgressTime: uint64(h.Egress), EnqueueDepth: h.QueueBytes, PacketLength: uint32(len(before)),
				Shown: &bmv2.Shown{Utilization: h.Utilization},
			}
			clone := pass
			clone.Instance = 2
			out, _, err := s.Process(bmv2.Frame{Port: h.ingressPort, Bytes: before}, []bmv2.Pass{pass, clone})
			if err != nil || len(out) == 0 || out[0].Port != h.EgressPort || !bytes.Equal(out[0].Bytes, whole()) {
				t.Fatalf("seed %d, bitmap %#04x, last %v: %v\n got %x\nwant %x", seed, cfg.Instructions, last, err, whole(), out)
			}
			if (len(out) == 2) != (reported != nil) {
				t.Fatalf("seed %d: %d frames leave, and a report %x", seed, len(out), reported)
			}
			if last {
				if reported != nil {
					reports++
					if want := out[1].Bytes[madeAt:]; !bytes.Equal(reported[8:], want) {
						t.Fatalf("seed %d: report\n got %x\nwant %x", seed, reported[8:], want)
					}
				}
				break
			}
			peer := n.ports[p.out].peer
			p.in, p.node, p.out = peer, n.ports[peer].node, -1
		}
	}
	if reports < 150 || recorded < 300 || refused < 50 || passed < 1000 {
		t.Errorf("%d reports, %d blocks recorded and %d refused at %d switches", reports, recorded, refused, passed)
	}
}

// loaded is a switch with hopscope.p4 and the entries by which it does with p what switch d of a network does, which has chosen
// where p leaves.
func loaded(t *testing.T, n *Network, d *device, p *packet, entering bool) *bmv2.Switch {
	t.Helper()
	s, err := bmv2.New("hopscope")
	if err != nil {
		t.Fatal(err)
	}
	s.CountNanoseconds()
	port := n.ports[p.out].number
	forward := fmt.Sprintf("=> %d %#x %#x", port, n.nextMAC(p.out), mac(macSwitch, int(p.node)))
	list := []string{
		fmt.Sprintf("table_set_default egress.device set_device %d %d", d.id, d.clock),
		"table_add ingress.forward.forwarding4 forward 0.0.0.0/0 " + forward, "table_add ingress.forward.forwarding6 forward ::/0 " + forward,
		fmt.Sprintf("table_set_default egress.egress_port to_fabric %d", n.cfg.MTU),
		"mirroring_add 100 5", "table_add egress.envelope.collector send 1 => 1 2 10.255.0.7 10.255.0.1 49152 32766 900",
	}
	if n.ports[p.out].host >= 0 {
		list = append(list, fmt.Sprintf("table_add egress.egress_port to_host %d => %d 100 1", port, n.cfg.MTU))
	}
	if entering {
		list = append(list, fmt.Sprintf("table_add ingress.ingress_port host %d => 0 0", n.ports[p.in].number),
			fmt.Sprintf("table_add ingress.watch track 0&&&0 0&&&0 0&&&0 0&&&0 0&&&0 => %d %d 0 %d %d 1", 1<<32/n.cfg.SampleEvery-1, n.cfg.Instructions, n.cfg.MaxHops, n.cfg.Marker))
	}
	for _, c := range list {
		if err := s.Command(c); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Packets of hosts leave a switch by the port, with the bytes, that hopscope.p4 gives them by entries of its tables of routes,
// groups and salt, over both versions of IP and both transports.
func TestNextHopIsProgram(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Topology, cfg.IPv6Share = "leaf-spine:5,6", .5
	n := mustNew(t, cfg, 3)
	used := map[int32]int{}
	for node := range int32(len(n.switches)) {
		s, err := bmv2.New("hopscope")
		if err != nil {
			t.Fatal(err)
		}
		list := []string{fmt.Sprintf("table_set_default ingress.forward.salt set_salt %d", n.switches[node].salt)}
		for e, edge := range n.routes.Edges {
			out, several := n.routes.Hops(node, int32(e), len(n.switches))
			if several == nil {
				several = []int32{out}
			}
			if out == -1 && int(node) == edge {
				continue
			}
			for i, to := range several {
				list = append(list, fmt.Sprintf("table_add ingress.forward.member forward %d %d => %d %#x %#x", e, i, n.ports[to].number, n.nextMAC(to), mac(macSwitch, int(node))))
			}
			v4, v6 := sim.HostAddr4(e, -1), sim.HostAddr6(e, -1)
			list = append(list,
				fmt.Sprintf("table_add ingress.forward.forwarding4 spread %v/24 => %d %d", netip.AddrFrom4(v4), e, len(several)),
				fmt.Sprintf("table_add ingress.forward.forwarding6 spread %v/112 => %d %d", netip.AddrFrom16(v6), e, len(several)))
		}
		for _, c := range list {
			if err := s.Command(c); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n.flows {
			f := &n.flows[i]
			if n.hosts[f.dst].node == node {
				continue
			}
			lo, _ := n.graph.Interfaces(int(node))
			p := &packet{node: node, in: int32(lo), dst: f.dst, hash: f.hash, out: -1}
			n.build(p, i, f, 200)
			var x bmv2.Packet
			if !s.Ingress(&x, 1, p.Buf, p.Size) || !s.Egress(&x, &bmv2.Pass{}) || n.route(p, &n.switches[node], false) != Delivered {
				t.Fatalf("flow %d is dropped at switch %d", i, node)
			}
			if got := n.ports[p.out].number; got != int32(x.Port) || !bytes.Equal(p.Buf, x.Head) {
				t.Fatalf("flow %d at switch %d leaves by port %d, want %d:\n got %x\nwant %x", i, node, got, x.Port, p.Buf, x.Head)
			}
			if out := n.nextHop(node, &n.hosts[f.dst], f.hash, f.v6); out != p.out {
				t.Fatalf("flow %d at switch %d leaves by interface %d, and its route by %d", i, node, p.out, out)
			}
			used[p.out]++
		}
	}
	if len(used) < 50 {
		t.Errorf("packets left by %d interfaces", len(used))
	}
}
