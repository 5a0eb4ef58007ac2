package emu

import "github.com/hopscope/hopscope/planner/topo"

// routes holds, for every switch and every switch with hosts, the interfaces that begin a shortest path.
type routes struct {
	edges []int    // switches with hosts
	first []uint32 // of switch s towards edges[e]: hops[first[e*N+s]:first[e*N+s+1]]
	hops  []int32
	tree  *topo.Tree
}

// rebuild recomputes all routes from the links that are up.
func (r *routes) rebuild(n *Network) {
	nodes := n.graph.NumNodes()
	r.first = append(r.first[:0], 0)
	r.hops = r.hops[:0]
	up := func(i int) bool { return n.queues[i].up }
	for _, edge := range r.edges {
		r.tree = n.graph.ShortestPaths(r.tree, edge, up)
		for s := range nodes {
			r.hops = append(r.hops, r.tree.NextHops(s)...)
			r.first = append(r.first, uint32(len(r.hops)))
		}
	}
}

// next gives the egress interface of switch s for a packet of flow hash to the hosts of the e-th edge switch, or -1.
// Switches salt the hash differently; else those of the second tier would all choose as the first did.
func (r *routes) next(s int32, salt uint64, e int32, nodes int, hash uint64) int32 {
	at := int(e)*nodes + int(s)
	set := r.hops[r.first[at]:r.first[at+1]]
	switch len(set) {
	case 0:
		return -1
	case 1:
		return set[0]
	}
	return set[pick(mix(hash^salt), len(set))]
}

// divert is a fault's line in the forwarding table of a switch: these flows leave by that interface.
type divert struct {
	share uint64 // of flows, in 2^-64
	iface int32
}

// divertSalt is the same in all switches, so that faults of several switches divert the same flows.
const divertSalt = 0x64697672

// nextHop gives the egress interface of switch at for a packet of flow hash to dst, or -1.
func (n *Network) nextHop(at int32, dst *host, hash uint64) int32 {
	if dst.node == at {
		return dst.iface
	}
	d := &n.switches[at]
	for i := range d.diverts {
		if v := &d.diverts[i]; mix(hash^divertSalt) < v.share && n.queues[v.iface].up {
			return v.iface
		}
	}
	return n.routes.next(at, d.salt, dst.edge, len(n.switches), hash)
}

// Route gives the egress interfaces that the packets of flow i take by the routes of this moment; ok is false if they
// do not lead to its destination, be it that they go round in circles. Faults that drop packets are not considered.
func (n *Network) Route(i int) (interfaces []int, ok bool) {
	f := &n.flows[i]
	at, dst := n.hosts[f.src].node, &n.hosts[f.dst]
	for range n.switches {
		out := n.nextHop(at, dst, f.hash)
		if out < 0 || !n.queues[out].up {
			return interfaces, false
		}
		interfaces = append(interfaces, int(out))
		if at == dst.node {
			return interfaces, true
		}
		at = n.ifNode[n.ifPeer[out]]
	}
	return interfaces, false
}

// Path gives the node ids of the switches on the [Network.Route] of flow i.
func (n *Network) Path(i int) (nodes []uint32, ok bool) {
	interfaces, ok := n.Route(i)
	for _, out := range interfaces {
		nodes = append(nodes, n.switches[n.ifNode[out]].id)
	}
	return nodes, ok
}
