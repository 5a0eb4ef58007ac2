package emu

import (
	"errors"
	"slices"

	"github.com/hopscope/hopscope/decode/intmd"
	"github.com/hopscope/hopscope/p4"
	programs "github.com/hopscope/hopscope/p4/emu/program"
	"github.com/hopscope/hopscope/p4/emu/sim"
)

// divert is a fault's line in the forwarding table of a switch: these flows leave by that interface.
type divert struct {
	share uint64 // of flows, in 2^-64
	iface int32
}

// divertSalt is the same in all switches, so that faults of several switches divert the same flows.
const divertSalt = 0x64697672

// fabric is the routes of a network as programs of switches ask for them.
type fabric struct {
	*Network
	p *packet // that a program has
}

// NextHops returns the interfaces that packet p of the fabric may leave by.
func (f *fabric) NextHops([]byte) (one int32, several []int32) {
	p := f.p
	if p.kind == sourceRouted {
		return -1, nil // it is not followed
	}
	dst := &f.hosts[p.dst]
	if d := &f.switches[p.node]; d.faulty && dst.node != p.node && slices.Contains(d.noRoute, dst.edge) {
		return -1, nil
	}
	return f.nextHops(p.node, dst, p.hash, p.V6)
}

// NextHop lets packet p of the fabric leave by an interface.
func (f *fabric) NextHop(out int32) programs.NextHop {
	f.p.out = out
	return programs.NextHop{Port: f.programPort(out), To: f.nextMAC(out), From: mac(macSwitch, int(f.p.node))}
}

// Salt is that of the switch that packet p of the fabric is in.
func (f *fabric) Salt() uint32 { return f.switches[f.p.node].salt }

// Device is the switch that packet p of the fabric is in.
func (f *fabric) Device() (node uint32, clock uint64) {
	d := &f.switches[f.p.node]
	return d.id, uint64(d.clock)
}

// Track is what the switch asks for in packets of hosts. Those with digests get no INT.
func (f *fabric) Track() (t programs.Track, ok bool) {
	p, d := f.p, &f.switches[f.p.node]
	t = programs.Track{
		Below: uint32(1<<32/uint64(f.cfg.SampleEvery) - 1), Bitmap: f.cfg.Instructions, Hops: uint8(f.cfg.MaxHops), ByPort: f.cfg.Marker == MarkPort,
	}
	if d.dialect == FANT {
		t.Domain = intmd.FANTDomain
	}
	if d.written.watches {
		t.Bitmap, t.Hops = f.watched(p, d)
	}
	return t, !p.pint && t.Bitmap != 0
}

// Entries of the routers stand for all ports to hosts, for those to switches, and for those that probes are followed from. Packets of
// hosts are none, whatever they look like: a site has the addresses of its agents in these entries.
const toHost, toFabric, trusted = 1, 2, 3

// Entry is one of these, for the port that packet p came by until its next hop is known, and then for that which it leaves by.
func (f *fabric) Entry(uint16) uint64 {
	i := f.p.out
	if i < 0 {
		i = f.p.in
	}
	switch h := f.ports[i].host; {
	case f.p.kind == sourceRouted && (h < 0 || f.agentOf[h] != nil || slices.ContainsFunc(f.probes, func(x pathProbe) bool { return x.from == h })):
		return trusted
	case h < 0:
		return toFabric
	}
	return toHost
}

// Register is the interface that packet p leaves by.
func (f *fabric) Register(uint16) int32 { return f.p.out }

// cpuPort is the port of the controller, the first that leads nowhere else.
const cpuPort = 510

// put writes an entry to a switch.
func put(s *programs.Switch, name, action string, match []p4.Match, params ...uint64) error {
	return s.Put(p4.Entry{Table: name, Action: action, Match: match, Params: p4.Uints(params...)})
}

// buildRouters makes the programs. They follow probes that come from other switches, and from hosts that send them. A report leaves by a clone to one collector, whatever it is about.
func (n *Network) buildRouters() error {
	n.fabric.Network = n
	mtu := uint64(n.cfg.MTU)
	port := func(k uint64) []p4.Match { return []p4.Match{p4.Number(k)} }
	var errs []error
	for i, without := range [][]programs.Part{{programs.INT}, {programs.Blocks}, nil} {
		s, err := programs.New("hopscope", without...)
		if err != nil {
			return err
		}
		n.routers[i] = s
		s.Follow(&n.fabric)
		s.CountNanoseconds()
		s.Mirror(1, 1)
		errs = append(errs, put(s, "egress.egress_port", "to_fabric", nil, mtu))
		all := p4.Masked(0, 0)
		errs = append(errs, s.Put(p4.Entry{Table: "ingress.probes", Action: "follow", Match: []p4.Match{p4.Masked(trusted, 0x1ff), all, all, all}, Priority: 1}))
	}
	s := n.routers[2]
	errs = append(errs,
		put(s, "ingress.ingress_port", "host", port(toHost), 0, 0), put(s, "egress.egress_port", "to_host", port(toHost), mtu, 1, 1),
		put(s, "egress.envelope.collector", "send", port(1), 0, 0, 0, 0, 0, 0, programs.ReportLargest))
	if above := n.cfg.QueueReportBytes; above > 0 && above < mostDepth {
		for _, k := range []uint64{toHost, toFabric} {
			errs = append(errs, put(s, "egress.queues", "watch_queue", port(k), uint64(above), uint64(n.cfg.QueueReportGap), 1, 1, 0))
		}
	}
	return errors.Join(errs...)
}

// programPort is the number of an interface for hopscope.p4, where ports have 9 bits, 510 is the controller, and 511 drops. Those
// of larger switches pass as 0: no entry for packets of hosts asks for a port.
func (n *Network) programPort(iface int32) uint16 {
	if k := n.ports[iface].number; k < cpuPort {
		return uint16(k)
	}
	return 0
}

// route takes a packet of a host through the program of a switch, which chooses the interface that it leaves by. Where nothing
// that is measured in the queue comes into the frame, it is finished here.
func (n *Network) route(p *packet, d *device, entering bool) Outcome {
	// Switches hold the same but for what the fabric computes. They share a program.
	s := n.routers[1]
	switch {
	case d.dialect == Off:
		s = n.routers[0]
	case d.ours && !(entering && d.written.policies):
		s = n.routers[2]
	}
	x := n.newPass()
	p.pass, n.fabric.p, n.measured = x, p, programs.Pass{}
	leaves := s.Ingress(x, n.programPort(p.in), p.Buf, p.Size)
	_, measured := x.Instructions()
	if measured = measured && leaves && s == n.routers[2]; measured && entering {
		n.sample(p, d, s.Leaves(x) > p.Size)
	}
	switch {
	case d.denies(p):
		return Denied
	case measured:
		return Delivered
	case leaves && s.Egress(x, &n.measured):
		p.replace(x)
		n.release(p)
		return Delivered
	case x.Reason() == reasonTTL:
		return Expired
	}
	return NoRoute
}

// nextHop returns the egress interface of switch at for a packet of flow hash to dst, or -1.
func (n *Network) nextHop(at int32, dst *host, hash uint32, v6 bool) int32 {
	out, several := n.nextHops(at, dst, hash, v6)
	if len(several) > 0 {
		out = several[programs.Spread(n.switches[at].salt, hash, uint32(len(several)))]
	}
	return out
}

// nextHops returns the interfaces among which flows to dst are spread at a switch, or the only one, or -1. Faults come
// before entries of the control plane, and these before the routes that switches find.
func (n *Network) nextHops(at int32, dst *host, hash uint32, v6 bool) (one int32, several []int32) {
	if dst.node == at {
		return dst.iface, nil
	}
	d := &n.switches[at]
	for i := 0; d.faulty && i < len(d.diverts); i++ {
		if v := &d.diverts[i]; sim.Mix(uint64(hash)^divertSalt) < v.share && n.queues[v.iface].Up {
			return v.iface, nil
		}
	}
	if d.written.routes {
		if out := n.controlRoute(d, at, dst, v6); out >= 0 {
			return out, nil
		}
	}
	return n.routes.Hops(at, dst.edge, len(n.switches))
}

// Route returns the egress interfaces of the packets of flow i by the present routes. The result ok is false if they do
// not lead to its destination, for example in a loop. Faults that drop packets are not considered, nor is INT between UDP and TCP
// headers, behind which switches hash other ports.
func (n *Network) Route(i int) (interfaces []int, ok bool) {
	f := &n.flows[i]
	at, dst := n.hosts[f.src].node, &n.hosts[f.dst]
	for range n.switches {
		out := n.nextHop(at, dst, f.hash, f.v6)
		if out < 0 || !n.queues[out].Up {
			return interfaces, false
		}
		interfaces = append(interfaces, int(out))
		if at == dst.node {
			return interfaces, true
		}
		at = n.ports[n.ports[out].peer].node
	}
	return interfaces, false
}

// Path returns the node ids of the switches on the [Network.Route] of flow i.
func (n *Network) Path(i int) (nodes []uint32, ok bool) {
	interfaces, ok := n.Route(i)
	for _, out := range interfaces {
		nodes = append(nodes, n.switches[n.ports[out].node].id)
	}
	return nodes, ok
}
