package emu

import (
	"slices"

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

// programPort is the number of an interface for hopscope.p4, where ports have 9 bits, 510 is the controller, and 511 drops. Those
// of larger switches pass as 0: no entry for packets of hosts asks for a port.
func (n *Network) programPort(iface int32) uint16 {
	if k := n.ports[iface].number; k < 510 {
		return uint16(k)
	}
	return 0
}

// route takes a packet of a host through the program of a switch, which chooses the interface that it leaves by. Without the parts
// that dialects write, nothing that is measured in the queue is in the frame, which is finished here.
func (n *Network) route(p *packet, d *device) Outcome {
	// Switches hold the same but for routes and salts, which the fabric computes. They share a program.
	s, x := n.routers[0], &n.trial
	if d.dialect != Off {
		s = n.routers[1]
	}
	n.fabric.p, n.measured = p, programs.Pass{}
	switch {
	case s.Ingress(x, n.programPort(p.in), p.Buf, p.Size) && s.Egress(x, &n.measured):
		p.replace(x)
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
