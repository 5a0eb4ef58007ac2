package emu

import (
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

// nextHop returns the egress interface of switch at for a packet of flow hash to dst, or -1. Faults come before entries
// of the control plane, and these before the routes that switches find.
func (n *Network) nextHop(at int32, dst *host, hash uint32, v6 bool) int32 {
	if dst.node == at {
		return dst.iface
	}
	d := &n.switches[at]
	for i := 0; d.faulty && i < len(d.diverts); i++ {
		if v := &d.diverts[i]; sim.Mix(uint64(hash)^divertSalt) < v.share && n.queues[v.iface].Up {
			return v.iface
		}
	}
	if d.written.routes {
		if out := n.controlRoute(d, at, dst, v6); out >= 0 {
			return out
		}
	}
	return n.spread(at, dst.edge, hash)
}

// spread returns the interface of switch at that the shortest paths to the e-th edge switch give a flow, or -1. Among several ones
// the program chooses.
func (n *Network) spread(at, e int32, hash uint32) int32 {
	out, several := n.routes.Hops(at, e, len(n.switches))
	if several == nil {
		return out
	}
	return several[programs.Spread(n.switches[at].salt, hash, uint32(len(several)))]
}

// Route returns the egress interfaces of the packets of flow i by the present routes. The result ok is false if they do
// not lead to its destination, for example in a loop. Faults that drop packets are not considered.
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
