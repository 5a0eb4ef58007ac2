package emu

import (
	"slices"

	"github.com/hopscope/hopscope/p4/emu/sim"
	"github.com/hopscope/hopscope/planner/topo"
)

// routes holds, for every switch and every switch with hosts, the interfaces that begin a shortest path. Most switches
// have one such interface or the same ones towards many others, so that sets which are alike stand in memory once.
type routes struct {
	edges []int   // switches with hosts
	next  []int32 // of switch s towards edges[e], at e*N+s: an interface, -1 for none, or below that -2 less where its set is
	sets  []int32 // one after the other: how many interfaces, then these
	last  []int32 // by switch, while routes are rebuilt: where its last set is, or -1
	up    []bool  // by interface, while routes are rebuilt
	tree  *topo.Tree
}

// rebuild recomputes all routes from the links that are up.
func (r *routes) rebuild(n *Network) {
	nodes := n.graph.NumNodes()
	r.next, r.sets, r.last = r.next[:0], r.sets[:0], slices.Grow(r.last[:0], nodes)[:nodes]
	for s := range r.last {
		r.last[s] = -1
	}
	r.up = slices.Grow(r.up[:0], len(n.queues))[:len(n.queues)] // in one piece: every tree reads it whole
	for i := range n.queues {
		r.up[i] = n.queues[i].Up
	}
	up := func(i int) bool { return r.up[i] }
	for _, edge := range r.edges {
		r.tree = n.graph.ShortestPaths(r.tree, edge, up)
		for s := range nodes {
			r.next = append(r.next, r.code(s, r.tree.NextHops(s)))
		}
	}
}

// code gives what next holds for these interfaces of a switch.
func (r *routes) code(s int, hops []int32) int32 {
	switch len(hops) {
	case 0:
		return -1
	case 1:
		return hops[0]
	}
	if at := r.last[s]; at < 0 || !slices.Equal(r.set(at), hops) {
		r.last[s] = int32(len(r.sets))
		r.sets = append(append(r.sets, int32(len(hops))), hops...)
	}
	return -2 - r.last[s]
}

func (r *routes) set(at int32) []int32 { return r.sets[at+1 : at+1+r.sets[at]] }

// choose gives the egress interface of switch s for a packet of flow hash to the hosts of the e-th edge switch, or -1.
// Switches salt the hash differently; else those of the second tier would all choose as the first did.
func (r *routes) choose(s int32, salt uint64, e int32, nodes int, hash uint64) int32 {
	out := r.next[int(e)*nodes+int(s)]
	if out >= -1 {
		return out
	}
	set := r.set(-2 - out)
	return set[sim.Pick(sim.Mix(hash^salt), len(set))]
}

// divert is a fault's line in the forwarding table of a switch: these flows leave by that interface.
type divert struct {
	share uint64 // of flows, in 2^-64
	iface int32
}

// divertSalt is the same in all switches, so that faults of several switches divert the same flows.
const divertSalt = 0x64697672

// nextHop gives the egress interface of switch at for a packet of flow hash to dst, or -1. Faults come before what the
// control plane wrote, and this before the routes that switches find by themselves.
func (n *Network) nextHop(at int32, dst *host, hash uint64, v6 bool) int32 {
	if dst.node == at {
		return dst.iface
	}
	d := &n.switches[at]
	for i := 0; d.faulty && i < len(d.diverts); i++ {
		if v := &d.diverts[i]; sim.Mix(hash^divertSalt) < v.share && n.queues[v.iface].Up {
			return v.iface
		}
	}
	if d.written.routes {
		if out := n.controlRoute(d, at, dst, v6); out >= 0 {
			return out
		}
	}
	return n.routes.choose(at, d.salt, dst.edge, len(n.switches), hash)
}

// Route gives the egress interfaces that the packets of flow i take by the routes of this moment; ok is false if they
// do not lead to its destination, be it that they go round in circles. Faults that drop packets are not considered.
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
